//! The picture: accuracy over the share of the dataset that each next sample is drawn from, as SVG.
//!
//! It has no background and colours between dark and light, so it can be read on a page of either kind (text follows
//! the page's kind where the viewer knows it). Marks and names distinguish the rows without colours.

use crate::scale::Scale;
use crate::settings::{Order, Stored};
use crate::training::Compared;

const LEFT: f64 = 56.0;
const RIGHT: f64 = 616.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 316.0;
/// The power of ten at the left edge; the right edge is the whole dataset.
const LEFT_DECADE: f64 = -3.5;

const GRID: &str = "stroke-opacity=\"0.3\"";
/// The colour of the grid and of everything that is not a row of marks.
const GREY: &str = "#888";

const HEAD: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 364" role="img" font-family="sans-serif" font-size="12" fill="#777">
<title>Test accuracy over the share of the dataset that each next sample is drawn from</title>
<style>text { fill: #333 } @media (prefers-color-scheme: dark) { text { fill: #ccc } }</style>
"##;

/// Some of the results as a row of marks.
struct Series<'a> {
    colour: &'static str,
    name: &'static str,
    /// Distance of its name below its leftmost mark.
    name_below: f64,
    /// A mark, drawn around the position of the pen.
    mark: &'static str,
    results: Vec<(f64, &'a Compared)>,
}

/// Draws the results at the learning rate that is best for the full order.
pub(crate) fn draw(scale: &Scale, results: &[Compared]) -> String {
    let is_level = |result: &&Compared| {
        result.setting.stored == Stored::ByClass && matches!(result.setting.order, Order::Full | Order::Sequential)
    };
    let levels = results.iter().filter(is_level).map(level);
    let series = all_series(scale, results);
    let svg: String = [axes()].into_iter().chain(levels).chain(series.iter().map(Series::drawn)).collect();
    format!("{HEAD}{svg}</svg>\n")
}

fn all_series<'a>(scale: &Scale, results: &'a [Compared]) -> [Series<'a>; 3] {
    let select = |stored: Stored, is_wanted: fn(Order) -> bool| {
        let wanted = results.iter().filter(|result| result.setting.stored == stored && is_wanted(result.setting.order));
        let share = |samples: u64| samples as f64 / scale.samples() as f64;
        wanted.filter_map(|result| Some((share(result.setting.window_samples(scale)?), result))).collect::<Vec<_>>()
    };
    let is_chunked = |order| matches!(order, Order::Chunked { .. });
    let is_buffer = |order| matches!(order, Order::Buffer { .. });
    [
        Series {
            colour: "#3b82d6",
            name: "chunked, stored by class",
            name_below: 20.0,
            mark: "m-3 -3h6v6h-6z",
            results: select(Stored::ByClass, is_chunked),
        },
        Series {
            colour: "#d0692a",
            name: "shuffle buffer, stored by class",
            name_below: 20.0,
            mark: "m-4 -4l8 8m0 -8l-8 8",
            results: select(Stored::ByClass, is_buffer),
        },
        Series {
            colour: "#3a9a5f",
            name: "chunked, stored shuffled",
            name_below: -10.0,
            mark: "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
            results: select(Stored::Shuffled, is_chunked),
        },
    ]
}

impl Series<'_> {
    /// A line, marks with one standard deviation to either side, and the name.
    fn drawn(&self) -> String {
        let (mut line, mut marks, mut name) = (String::new(), String::new(), String::new());
        for &(share, result) in &self.results {
            let accuracies = &result.accuracies[0];
            let [middle, high, low] =
                [0.0, 1.0, -1.0].map(|times| y(accuracies.mean() + times * accuracies.deviation()));
            let (x, pen) = (x(share), if line.is_empty() { 'M' } else { 'L' });
            line += &format!("{pen}{x:.1} {middle:.1}");
            marks += &format!("M{x:.1} {middle:.1}{}M{x:.1} {high:.1}V{low:.1}", self.mark);
            name = text("start", x - 4.0, middle + self.name_below, self.name);
        }
        path(self.colour, "stroke-width=\"1.5\"", &(line + &marks)) + &name
    }
}

/// An order in which every sample, or only one, may come next: a line from edge to edge.
fn level(result: &Compared) -> String {
    let y = y(result.accuracies[0].mean());
    let name = result.setting.order.to_string().replace('`', "");
    path(GREY, "stroke-dasharray=\"5 4\"", &format!("M{LEFT} {y:.1}H{RIGHT}"))
        + &text("start", RIGHT + 6.0, y + 4.0, &name)
}

fn axes() -> String {
    let mut axes = String::new();
    for percent in (0..=100).step_by(20) {
        let y = y(f64::from(percent) / 100.0);
        axes += &path(GREY, GRID, &format!("M{LEFT} {y:.1}H{RIGHT}"));
        axes += &text("end", LEFT - 6.0, y + 4.0, &format!("{percent} %"));
    }
    for (share, name) in [(0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %")] {
        axes += &path(GREY, GRID, &format!("M{:.1} {TOP}V{BOTTOM}", x(share)));
        axes += &text("middle", x(share), BOTTOM + 18.0, name);
    }
    axes += &text("start", LEFT + 6.0, TOP + 14.0, "test accuracy");
    let middle = f64::midpoint(LEFT, RIGHT);
    axes + &text("middle", middle, BOTTOM + 38.0, "of the dataset is what each next sample is drawn from")
}

fn path(colour: &str, style: &str, places: &str) -> String {
    format!("<path fill=\"none\" stroke=\"{colour}\" {style} d=\"{places}\"/>\n")
}

fn text(anchor: &str, x: f64, y: f64, words: &str) -> String {
    format!("<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>\n")
}

fn x(share: f64) -> f64 {
    RIGHT + (RIGHT - LEFT) * share.log10() / -LEFT_DECADE
}

fn y(accuracy: f64) -> f64 {
    BOTTOM + (TOP - BOTTOM) * accuracy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_the_picture_are_the_whole_and_none_and_all_right() {
        assert_eq!([x(1.0), x(10_f64.powf(LEFT_DECADE))], [RIGHT, LEFT]);
        assert_eq!([y(0.0), y(1.0)], [BOTTOM, TOP]);
    }
}
