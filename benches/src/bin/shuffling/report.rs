//! The table of the results of the networks.

use crate::scale::Scale;
use crate::training::{Accuracies, Compared};

/// A row for each order, as Markdown.
pub(crate) fn table(scale: &Scale, results: &[Compared]) -> String {
    let mut table = String::from(
        "| stored | order | samples to draw from | classes in a batch | in sixteen | test accuracy | at a quarter of the rate |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    results.iter().for_each(|result| table.push_str(&row(scale, result)));
    table
}

fn row(scale: &Scale, result: &Compared) -> String {
    let window = match result.setting.window_samples(scale) {
        None => String::new(),
        Some(samples) => format!("{} ({})", grouped(samples), percent(samples as f64 / scale.samples() as f64)),
    };
    format!(
        "| {} | {} | {window} | {:.1} | {:.1} | {} | {} |\n",
        result.setting.stored,
        result.setting.order,
        result.classes_in_one,
        result.classes_in_sixteen,
        accuracy(&result.accuracies[0]),
        accuracy(&result.accuracies[1]),
    )
}

fn accuracy(accuracies: &Accuracies) -> String {
    format!("{:.1} ± {:.1} %", 100.0 * accuracies.mean(), 100.0 * accuracies.deviation())
}

/// A share in percent, with two significant digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        10.0.. => format!("{percent:.0} %"),
        1.0..10.0 => format!("{percent:.1} %"),
        0.1..1.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.3} %"),
    }
}

/// A number with a comma before each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped_and_small_shares_keep_two_digits() {
        assert_eq!([7, 999, 1000, 1_281_167].map(grouped), ["7", "999", "1,000", "1,281,167"]);
        assert_eq!([0.491_52, 0.031, 0.000_64].map(percent), ["49 %", "3.1 %", "0.064 %"]);
    }
}
