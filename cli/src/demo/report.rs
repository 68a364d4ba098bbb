//! The results of a demo: as a table for people, as a document for programs.

use std::time::Duration;

use serde::Serialize;

use crate::cold::Cold;
use crate::filesystem::FileSystem;
use crate::sizes::shown_size;

/// Number of epochs that have a row in the table.
const EPOCHS_SHOWN: u32 = 3;

/// The speed of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Rate {
    /// Number of samples, or of files.
    pub(crate) samples: u64,
    /// Bytes of their payloads.
    pub(crate) payload_bytes: u64,
    /// Seconds.
    pub(crate) elapsed_s: f64,
    /// Samples per second.
    pub(crate) samples_per_s: f64,
    /// Payload per second, in 10^6 bytes.
    pub(crate) mb_per_s: f64,
}

/// How the epoch was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EpochStep {
    #[serde(flatten)]
    pub(crate) rate: Rate,
    /// The order, with `auto` resolved.
    pub(crate) order: String,
    /// `direct` or `buffered`.
    pub(crate) io: &'static str,
    /// The engine's name.
    pub(crate) engine: &'static str,
    /// Bytes read from files.
    pub(crate) read_bytes: u64,
}

/// All results of a demo.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DemoReport {
    /// The folder of the demo, if it was kept.
    pub(crate) kept: Option<String>,
    /// The file system of the datasets.
    pub(crate) file_system: FileSystem,
    /// How reads were made cold.
    pub(crate) cold: Option<Cold>,
    /// The units of the figures.
    pub(crate) units: Units,
    /// A report for each folder of files.
    pub(crate) folders: Vec<FolderReport>,
}

/// The units of the figures, for readers of the document.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Units {
    pub(crate) elapsed_s: &'static str,
    pub(crate) samples_per_s: &'static str,
    pub(crate) mb_per_s: &'static str,
    #[serde(rename = "times_*")]
    pub(crate) times: &'static str,
}

/// The units that this version measures in.
pub(crate) const UNITS: Units = Units {
    elapsed_s: "seconds",
    samples_per_s: "samples (or files) per second",
    mb_per_s: "10^6 bytes of payload per second",
    times: "samples_per_s of the dataset divided by that of the plain files, in the same round",
};

/// The results for one folder of files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FolderReport {
    /// `small` or `large` for files made by the demo, `files` for the user's own.
    pub(crate) name: &'static str,
    /// The folder that was packed.
    pub(crate) source: String,
    /// Samples of the dataset.
    pub(crate) samples: u64,
    /// Their bytes.
    pub(crate) payload_bytes: u64,
    /// Files that could not be read.
    pub(crate) skipped: usize,
    /// The file system of the files.
    pub(crate) source_file_system: FileSystem,
    /// Packing, cold.
    pub(crate) convert: Rate,
    /// Checking, cold.
    pub(crate) verify: Rate,
    /// Epochs and random reads, and reads of the same files.
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

/// One epoch and some random reads, and the same files in the same order right after each, all cold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Round {
    pub(crate) epoch: EpochStep,
    /// The first of the files, if there was no time for all.
    pub(crate) files_one_by_one: Rate,
    pub(crate) files_16_threads: Rate,
    pub(crate) random_samples: Rate,
    pub(crate) random_files: Rate,
}

/// The rounds, summarized as medians.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Rounds {
    /// The number of rounds.
    pub(crate) rounds: usize,
    /// The shuffled epochs, one per round, each in another order.
    pub(crate) epochs: Vec<EpochStep>,
    /// The median epoch.
    pub(crate) epoch: EpochStep,
    /// The files in the epoch's order, one by one; only the first of them if there was no time for all.
    pub(crate) files_one_by_one: Rate,
    /// The same with 16 threads.
    pub(crate) files_16_threads: Rate,
    /// Samples drawn at random, one by one.
    pub(crate) random_samples: Rate,
    /// The same files, one by one.
    pub(crate) random_files: Rate,
    /// Samples per second of the epoch, divided by those of the files one by one in the same round.
    pub(crate) times_one_by_one: f64,
    /// The same for 16 threads.
    pub(crate) times_16_threads: f64,
    /// The same for random samples and their files.
    pub(crate) times_random: f64,
}

impl Rounds {
    /// Summarizes each value by its own median: disks drift from round to round, so ratios are computed within one
    /// round.
    ///
    /// # Panics
    /// If there is no round.
    pub(crate) fn of(rounds: &[Round]) -> Self {
        let speed = |rate: &Rate| rate.samples_per_s;
        let median_of = |rate: fn(&Round) -> &Rate| *rate(median(rounds.iter(), |round| speed(rate(round))));
        let times = |dataset: fn(&Round) -> &Rate, files: fn(&Round) -> &Rate| {
            let times = rounds.iter().map(|round| speed(dataset(round)) / speed(files(round)).max(1e-9));
            median(times, |times| *times)
        };
        Self {
            rounds: rounds.len(),
            epochs: rounds.iter().map(|round| round.epoch.clone()).collect(),
            epoch: median(rounds.iter(), |round| speed(&round.epoch.rate)).epoch.clone(),
            files_one_by_one: median_of(|round| &round.files_one_by_one),
            files_16_threads: median_of(|round| &round.files_16_threads),
            random_samples: median_of(|round| &round.random_samples),
            random_files: median_of(|round| &round.random_files),
            times_one_by_one: times(|round| &round.epoch.rate, |round| &round.files_one_by_one),
            times_16_threads: times(|round| &round.epoch.rate, |round| &round.files_16_threads),
            times_random: times(|round| &round.random_samples, |round| &round.random_files),
        }
    }
}

/// The median item by `key`; of two in the middle, the lower.
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

impl DemoReport {
    /// The tables, one item per line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.folders.iter().flat_map(|folder| folder.table(&self.file_system)).collect();
        lines.extend(self.folders.iter().map(FolderReport::conclusion));
        lines.extend(self.cold.map(|cold| format!("cold: {}", cold.text())));
        lines.push("These are rates of this machine and its disk at this moment; others will differ.".to_owned());
        lines
    }
}

impl FolderReport {
    fn table(&self, dataset_file_system: &FileSystem) -> Vec<String> {
        let Rounds { epochs, files_one_by_one, files_16_threads, random_samples, random_files, .. } = &self.rounds;
        let mean_len = shown_size(self.payload_bytes / self.samples.max(1));
        let mut lines = vec![
            format!(
                "{}: {} of {mean_len} on average, {}, on {}",
                self.name,
                self.samples,
                shown_size(self.payload_bytes),
                self.place(dataset_file_system)
            ),
            row(["", "s", "MB/s", "samples/s", "grainstore is"].map(str::to_owned)),
            self.step("pack the files", &self.convert, None),
            self.step("verify the dataset", &self.verify, None),
        ];
        for (number, epoch) in (1..=EPOCHS_SHOWN).zip(epochs) {
            let how = if number == 1 { format!("{} order", epoch.order) } else { "another order".to_owned() };
            lines.push(self.step(&format!("epoch {number}, {how}"), &epoch.rate, None));
        }
        lines.push(self.step("the same files, one by one", files_one_by_one, Some(self.rounds.times_one_by_one)));
        lines.push(self.step("the same files, 16 threads", files_16_threads, Some(self.rounds.times_16_threads)));
        let count = random_samples.samples;
        lines.push(Self::rate_row(&format!("{count} random samples, one by one"), random_samples, None));
        lines.push(Self::rate_row("the same files, one by one", random_files, Some(self.rounds.times_random)));
        lines.push(String::new());
        lines
    }

    fn conclusion(&self) -> String {
        let Rounds { times_one_by_one, times_16_threads, times_random, rounds, .. } = &self.rounds;
        format!(
            "{}: an epoch is {times_one_by_one:.1} times as fast as the same files one by one, {times_16_threads:.1} \
             times as fast as with 16 threads; a random sample {times_random:.1} times (medians of {rounds})",
            self.name
        )
    }

    fn place(&self, dataset_file_system: &FileSystem) -> String {
        let shown = |place: &FileSystem| format!("{} ({})", place.kind, place.device);
        if self.source_file_system == *dataset_file_system {
            shown(dataset_file_system)
        } else {
            format!("{}; the dataset on {}", shown(&self.source_file_system), shown(dataset_file_system))
        }
    }

    /// A row for all samples, or for the first of them.
    fn step(&self, name: &str, rate: &Rate, times: Option<f64>) -> String {
        if rate.samples < self.samples {
            Self::rate_row(&format!("{name} (the first {})", rate.samples), rate, times)
        } else {
            Self::rate_row(name, rate, times)
        }
    }

    /// A row; the last column shows how many times faster the dataset was.
    fn rate_row(name: &str, rate: &Rate, times: Option<f64>) -> String {
        row([
            name.to_owned(),
            format!("{:.2}", rate.elapsed_s),
            format!("{:.1}", rate.mb_per_s),
            format!("{:.0}", rate.samples_per_s),
            times.map_or_else(String::new, |times| format!("{times:.1}x as fast")),
        ])
    }
}

fn row([name, elapsed, mb, samples, times]: [String; 5]) -> String {
    format!("  {name:<46} {elapsed:>7} {mb:>8} {samples:>10} {times:>15}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(epoch_s: u64, one_s: u64, many_s: u64) -> Round {
        let rate = |seconds| Rate::new(100, 5_000_000, Duration::from_secs(seconds));
        let order = "full".to_owned();
        let io = "direct";
        let engine = "pread";
        let epoch = EpochStep { rate: rate(epoch_s), order, io, engine, read_bytes: 5_000_000 };
        Round {
            epoch,
            files_one_by_one: rate(one_s),
            files_16_threads: rate(many_s),
            random_samples: rate(1),
            random_files: rate(epoch_s),
        }
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
        assert_eq!((rounds.times_one_by_one, rounds.times_16_threads, rounds.times_random), (2.0, 1.0, 2.0));
        assert_eq!(rounds.epoch.rate.elapsed_s, 2.0);
        assert_eq!(rounds.files_one_by_one.elapsed_s, 4.0);
        assert_eq!(Rounds::of(&[round(1, 3, 2)]).times_one_by_one, 3.0);
    }
}
