//! What a demo measured: as a table for people, as a document for programs.

use std::time::Duration;

use serde::Serialize;

use crate::cold::Cold;
use crate::filesystem::FileSystem;
use crate::sizes::shown_size;

/// How fast a step was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Rate {
    /// Samples, or files.
    pub(crate) samples: u64,
    /// Their bytes.
    pub(crate) payload_bytes: u64,
    /// Seconds.
    pub(crate) elapsed_s: f64,
    /// Samples in a second.
    pub(crate) samples_per_s: f64,
    /// Payload in a second, in 10^6 bytes.
    pub(crate) mb_per_s: f64,
}

/// How the epoch was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EpochStep {
    #[serde(flatten)]
    pub(crate) rate: Rate,
    /// The order, `auto` resolved.
    pub(crate) order: String,
    /// `direct` or `buffered`.
    pub(crate) io: &'static str,
    /// The engine's name.
    pub(crate) engine: &'static str,
    /// Bytes read from files.
    pub(crate) read_bytes: u64,
}

/// Everything that a demo has to tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The folder that was packed.
    pub(crate) source: String,
    /// The folder of the demo, where it was kept.
    pub(crate) kept: Option<String>,
    /// Samples of the dataset.
    pub(crate) samples: u64,
    /// Their bytes.
    pub(crate) payload_bytes: u64,
    /// Files that could not be read.
    pub(crate) skipped: usize,
    /// What the files lie on.
    pub(crate) source_file_system: FileSystem,
    /// What the dataset lies on.
    pub(crate) file_system: FileSystem,
    /// How reads were made cold.
    pub(crate) cold: Cold,
    /// Packing, cold.
    pub(crate) convert: Rate,
    /// Checking, cold.
    pub(crate) verify: Rate,
    /// Epochs, and the files that they consist of.
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

/// One epoch, and the same files in the same order right after it, all cold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Round {
    pub(crate) epoch: EpochStep,
    /// The first of the files, where there was no time for all.
    pub(crate) files_one_by_one: Rate,
    pub(crate) files_16_threads: Rate,
}

/// The medians of some rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Rounds {
    /// How many there were.
    pub(crate) rounds: usize,
    /// A shuffled epoch.
    pub(crate) epoch: EpochStep,
    /// The files in the epoch's order, one by one; the first of them, where there was no time for all.
    pub(crate) files_one_by_one: Rate,
    /// The same with 16 threads.
    pub(crate) files_16_threads: Rate,
    /// Samples of the epoch in a second, in those of the files one by one in the same round.
    pub(crate) times_one_by_one: f64,
    /// The same for 16 threads.
    pub(crate) times_16_threads: f64,
}

impl Rounds {
    /// The medians, each of its own: disks drift from round to round, so ratios are taken within one.
    ///
    /// # Panics
    /// Where there is no round.
    pub(crate) fn of(rounds: &[Round]) -> Self {
        let speed = |rate: &Rate| rate.samples_per_s;
        let median_of = |rate: fn(&Round) -> &Rate| *rate(median(rounds.iter(), |round| speed(rate(round))));
        let times = |rate: fn(&Round) -> &Rate| {
            let times = rounds.iter().map(|round| speed(&round.epoch.rate) / speed(rate(round)).max(1e-9));
            median(times, |times| *times)
        };
        Self {
            rounds: rounds.len(),
            epoch: median(rounds.iter(), |round| speed(&round.epoch.rate)).epoch.clone(),
            files_one_by_one: median_of(|round| &round.files_one_by_one),
            files_16_threads: median_of(|round| &round.files_16_threads),
            times_one_by_one: times(|round| &round.files_one_by_one),
            times_16_threads: times(|round| &round.files_16_threads),
        }
    }
}

/// The item in the middle by `key`; of two the lower.
fn median<T>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> f64) -> T {
    let mut items: Vec<T> = items.collect();
    items.sort_by(|a, b| key(a).total_cmp(&key(b)));
    items.swap_remove((items.len() - 1) / 2)
}

impl Rate {
    pub(crate) fn new(samples: u64, payload_bytes: u64, elapsed: Duration) -> Self {
        let elapsed_s = elapsed.as_secs_f64().max(1e-9);
        Self {
            samples,
            payload_bytes,
            elapsed_s,
            samples_per_s: samples as f64 / elapsed_s,
            mb_per_s: payload_bytes as f64 / 1e6 / elapsed_s,
        }
    }
}

impl Report {
    /// The table, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("{} files, {}, on {}", self.samples, shown_size(self.payload_bytes), self.place()),
            format!("cold: {}", self.cold.text()),
            String::new(),
            row(["", "s", "MB/s", "samples/s", "epoch faster by"].map(str::to_owned)),
        ];
        lines.push(self.step("pack the files", &self.convert, None));
        lines.push(self.step("verify the dataset", &self.verify, None));
        let Rounds { epoch, files_one_by_one, files_16_threads, times_one_by_one, times_16_threads, .. } = &self.rounds;
        let name = format!("epoch, {} order, {}", epoch.order, epoch.io);
        lines.push(self.step(&name, &epoch.rate, None));
        lines.push(self.step("same files, one by one", files_one_by_one, Some(*times_one_by_one)));
        lines.push(self.step("same files, 16 threads", files_16_threads, Some(*times_16_threads)));
        lines.push(String::new());
        lines.push(format!(
            "The epoch came {times_one_by_one:.1} times as fast as the same files in the same order one by one, \
             {times_16_threads:.1} times as fast as with 16 threads (medians of {}).",
            self.rounds.rounds
        ));
        lines.push("These are rates of this machine and its disk at this moment; others will differ.".to_owned());
        lines
    }

    fn place(&self) -> String {
        let shown = |place: &FileSystem| format!("{} ({})", place.kind, place.device);
        if self.source_file_system == self.file_system {
            shown(&self.file_system)
        } else {
            format!("{}; the dataset on {}", shown(&self.source_file_system), shown(&self.file_system))
        }
    }

    /// A row; the last column says how many times as fast the epoch was.
    fn step(&self, name: &str, rate: &Rate, times: Option<f64>) -> String {
        let name =
            if rate.samples < self.samples { format!("{name} (the first {})", rate.samples) } else { name.to_owned() };
        row([
            name,
            format!("{:.2}", rate.elapsed_s),
            format!("{:.1}", rate.mb_per_s),
            format!("{:.0}", rate.samples_per_s),
            times.map_or_else(String::new, |times| format!("{times:.2}x")),
        ])
    }
}

fn row([name, elapsed, mb, samples, times]: [String; 5]) -> String {
    format!("{name:<44} {elapsed:>9} {mb:>9} {samples:>10} {times:>16}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(epoch_s: u64, one_s: u64, many_s: u64) -> Round {
        let rate = |seconds| Rate::new(100, 5_000_000, Duration::from_secs(seconds));
        let (order, io, engine) = ("full".to_owned(), "direct", "pread");
        let epoch = EpochStep { rate: rate(epoch_s), order, io, engine, read_bytes: 5_000_000 };
        Round { epoch, files_one_by_one: rate(one_s), files_16_threads: rate(many_s) }
    }

    #[test]
    fn a_rate_counts_samples_and_megabytes_in_a_second() {
        let rate = Rate::new(100, 5_000_000, Duration::from_secs(2));
        assert_eq!((rate.samples_per_s, rate.mb_per_s), (50.0, 2.5));
        assert!(Rate::new(1, 1, Duration::ZERO).mb_per_s.is_finite());
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_then_the_median() {
        // The disk became slower all the time, and the epoch was twice as fast in each round.
        let rounds = Rounds::of(&[round(1, 2, 1), round(2, 4, 4), round(4, 8, 4)]);
        assert_eq!((rounds.times_one_by_one, rounds.times_16_threads), (2.0, 1.0));
        assert_eq!(rounds.epoch.rate.elapsed_s, 2.0);
        assert_eq!(rounds.files_one_by_one.elapsed_s, 4.0);
        assert_eq!(Rounds::of(&[round(1, 3, 2)]).times_one_by_one, 3.0);
    }
}
