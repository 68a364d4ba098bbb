//! The distribution of sample sizes by powers of two, as numbers and as a chart in plain text.

use grainstore_format::to_usize;
use serde::Serialize;

use crate::sizes::shown_exact;

/// Characters of the longest bar.
const BAR_LEN: u64 = 40;

/// Counts lengths: bin 0 holds length 0, bin `b` the lengths from 2^(b-1) up to 2^b.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: [u64; 65],
}

/// One bin that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bin {
    /// The smallest length of the bin, in bytes.
    from_len: u64,
    /// The largest length of the bin, in bytes.
    to_len: u64,
    /// Samples in it.
    samples: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; 65] }
    }
}

impl Histogram {
    /// Counts a sample of `len` bytes.
    pub(crate) fn add(&mut self, len: u64) {
        let bin = (u64::BITS - len.leading_zeros()) as usize;
        self.counts[bin] += 1;
    }

    /// The bins between the smallest and the largest length, including those without samples.
    pub(crate) fn bins(&self) -> Vec<Bin> {
        let first = self.counts.iter().position(|&count| count > 0).unwrap_or(0);
        let end = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let bins = self.counts.iter().enumerate().take(end).skip(first);
        bins.map(|(bin, &samples)| Bin { from_len: smallest(bin), to_len: largest(bin), samples }).collect()
    }

    /// One line per bin: `64K to 128K    1234  ########`.
    pub(crate) fn chart(&self) -> Vec<String> {
        let bins = self.bins();
        let most = bins.iter().map(|bin| bin.samples).max().unwrap_or(0).max(1);
        let count_width = most.to_string().len();
        let line = |bin: &Bin| {
            let bar = "#".repeat(bar_len(bin.samples, most));
            let text = format!("{:<16} {:>count_width$}  {bar}", label(bin), bin.samples);
            text.trim_end().to_owned()
        };
        bins.iter().map(line).collect()
    }
}

/// The range of a bin for people; the upper end is the next bin's lower end.
fn label(bin: &Bin) -> String {
    match bin.to_len {
        0 => "empty".to_owned(),
        u64::MAX => format!("{} and more", shown_exact(bin.from_len)),
        last => format!("{} to {}", shown_exact(bin.from_len), shown_exact(last + 1)),
    }
}

/// At least one character if there is a sample.
fn bar_len(samples: u64, most: u64) -> usize {
    to_usize(samples.saturating_mul(BAR_LEN) / most).max(usize::from(samples > 0))
}

fn smallest(bin: usize) -> u64 {
    bin.checked_sub(1).map_or(0, |shift| 1 << shift)
}

fn largest(bin: usize) -> u64 {
    if bin < 64 { (1 << bin) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        lengths.iter().for_each(|&len| histogram.add(len));
        histogram
    }

    #[test]
    fn a_length_falls_into_the_bin_that_holds_it() {
        for len in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX] {
            let bins = of(&[len]).bins();
            assert_eq!(bins.len(), 1, "{len}");
            assert!((bins[0].from_len..=bins[0].to_len).contains(&len), "{len}: {bins:?}");
        }
    }

    #[test]
    fn the_chart_shows_gaps_and_never_hides_a_sample() {
        let mut lengths = vec![100_000; 400];
        lengths.extend([0, 20_000]);
        let chart = of(&lengths).chart();
        assert_eq!(chart.first().map(String::as_str), Some("empty              1  #"));
        assert_eq!(chart.last().unwrap(), &format!("64K to 128K      400  {}", "#".repeat(40)));
        assert!(chart.contains(&"16K to 32K         1  #".to_owned()), "{chart:?}");
        assert!(chart.contains(&"32K to 64K         0".to_owned()), "{chart:?}");
    }

    #[test]
    fn nothing_has_no_chart() {
        assert_eq!(of(&[]).chart(), Vec::<String>::new());
    }
}
