//! Generated files for a demo: `class_0007/sample_0001234.bin`, one folder per class as in ImageNet.
//!
//! A file consists of random bytes, so that it does not compress, like a JPEG. Its length and its bytes are drawn from
//! (seed, number): the same spec gives the same files on any number of threads. Lengths follow a log-normal
//! distribution around a median, as those of images do.
//!
//! Nothing is synced to the device; after a crash the files can be made again.

use std::f64::consts::TAU;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use rayon::prelude::*;

use crate::random::fraction;
use grainstore_format::{SplitMix64, finalise};

/// Standard deviation of the logarithm of the lengths, about that of ImageNet's training images.
const SIGMA: f64 = 0.45;
/// Lengths are clamped to these multiples of the median, so that no file is empty and none is huge.
const LEN_LIMITS: (f64, f64) = (0.05, 15.0);

/// The files to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSpec {
    /// Number of files, at least one for each class.
    pub(crate) samples: u64,
    /// Number of classes, at least one; each is a directory, and files are spread over them evenly.
    pub(crate) classes: u32,
    /// Median of the lengths, in bytes.
    pub(crate) median_len: u32,
    /// Seed of all random numbers.
    pub(crate) seed: u64,
}

impl FileSpec {
    /// Expected mean length of a file, in bytes: the mean of this log-normal distribution is 1.107 times its median.
    pub(crate) fn mean_len(&self) -> u64 {
        u64::from(self.median_len) * 111 / 100
    }
}

/// The files that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileTotals {
    /// Files written.
    pub(crate) files: u64,
    /// Total length of the files, in bytes.
    pub(crate) bytes: u64,
}

impl FileTotals {
    fn plus(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes + other.bytes }
    }
}

/// Writes the files of `spec` below `root`, which must be new or empty.
///
/// `progress` is called after each file with the number of files written so far; an error from it stops the work. Calls
/// come from many threads, so a smaller number may follow a larger one.
///
/// # Errors
/// If the spec requests no files, no classes or more classes than files, if `root` is not empty, if a file cannot be
/// written, or if `progress` returned an error; files made before that stay.
pub(crate) fn make_files(
    root: &Path,
    spec: FileSpec,
    progress: &(dyn Fn(u64) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<FileTotals> {
    check(spec)?;
    make_directories(root, spec)?;
    let done = AtomicU64::new(0);
    (0..spec.samples)
        .into_par_iter()
        .map_init(Vec::new, |content, number| {
            fill(content, spec, number);
            let path = file_path(root, spec, number);
            fs::File::create_new(&path)
                .and_then(|mut created| created.write_all(content))
                .with_context(|| format!("cannot write {}", path.display()))?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1)?;
            Ok(FileTotals { files: 1, bytes: content.len() as u64 })
        })
        .try_reduce(FileTotals::default, |a, b| Ok(a.plus(b)))
}

fn check(spec: FileSpec) -> anyhow::Result<()> {
    ensure!(spec.classes > 0, "a folder of classes needs at least one class");
    ensure!(
        spec.samples >= u64::from(spec.classes),
        "{} files cannot fill {} classes: each class needs at least one",
        spec.samples,
        spec.classes
    );
    Ok(())
}

fn make_directories(root: &Path, spec: FileSpec) -> anyhow::Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    let mut present = fs::read_dir(root).with_context(|| format!("cannot list {}", root.display()))?;
    ensure!(present.next().is_none(), "{}: not empty, and the files would mix with what is there", root.display());
    (0..spec.classes).into_par_iter().try_for_each(|class| {
        let path = root.join(class_name(class.into()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))
    })
}

fn file_path(root: &Path, spec: FileSpec, number: u64) -> PathBuf {
    let class = u128::from(number) * u128::from(spec.classes) / u128::from(spec.samples);
    root.join(class_name(class)).join(format!("sample_{number:07}.bin"))
}

fn class_name(class: u128) -> String {
    format!("class_{class:04}")
}

/// Replaces `content` with the content of file `number`.
fn fill(content: &mut Vec<u8>, spec: FileSpec, number: u64) {
    let mut random = SplitMix64::new(finalise(finalise(spec.seed).wrapping_add(number)));
    let len = draw_len(f64::from(spec.median_len), &mut random);
    content.clear();
    while content.len() < len {
        content.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    content.truncate(len);
}

/// A length from the log-normal distribution, in bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 15 times a u32, and not negative")]
fn draw_len(median_len: f64, random: &mut SplitMix64) -> usize {
    // Box and Muller's transform; 1 - u keeps the logarithm's argument above zero.
    let radius = (-2.0 * (1.0 - fraction(random)).ln()).sqrt();
    let normal = radius * (TAU * fraction(random)).cos();
    let factor = (SIGMA * normal).exp().clamp(LEN_LIMITS.0, LEN_LIMITS.1);
    (median_len * factor).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(samples: u64, classes: u32, seed: u64) -> FileSpec {
        FileSpec { samples, classes, seed, median_len: 2_800 }
    }

    fn made(spec: FileSpec) -> (tempfile::TempDir, FileTotals) {
        let folder = tempfile::tempdir().unwrap();
        let totals = make_files(folder.path(), spec, &|_| Ok(())).unwrap();
        (folder, totals)
    }

    fn contents(folder: &Path, spec: FileSpec) -> Vec<Vec<u8>> {
        (0..spec.samples).map(|number| fs::read(file_path(folder, spec, number)).unwrap()).collect()
    }

    #[test]
    fn lengths_spread_around_the_median_and_their_mean_is_the_expected_one() {
        let mut random = SplitMix64::new(11);
        let mut lens: Vec<usize> = (0..20_000).map(|_| draw_len(95_000.0, &mut random)).collect();
        lens.sort_unstable();
        let median = lens[10_000] as f64;
        assert!((median / 95_000.0 - 1.0).abs() < 0.02, "median {median}");
        // One sigma below and above the median are at 16 % and 84 %.
        let spread = (lens[16_800] as f64 / lens[3_200] as f64).ln() / 2.0;
        assert!((spread - SIGMA).abs() < 0.02, "spread {spread}");
        let mean = lens.iter().sum::<usize>() as f64 / 20_000.0;
        let expected = FileSpec { median_len: 95_000, ..spec(1, 1, 0) }.mean_len() as f64;
        assert!((mean / expected - 1.0).abs() < 0.02, "mean {mean}");
    }

    #[test]
    fn the_shortest_file_is_not_empty() {
        let mut random = SplitMix64::new(3);
        assert!((0..1000).all(|_| draw_len(1.0, &mut random) >= 1));
    }

    #[test]
    fn the_same_spec_makes_the_same_files_on_any_number_of_threads() {
        let spec = spec(12, 5, 9);
        let (first, totals) = made(spec);
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (second, again) = alone.install(|| made(spec));
        assert_eq!(totals, again);
        assert_eq!(contents(first.path(), spec), contents(second.path(), spec));
    }

    #[test]
    fn every_file_differs_and_another_seed_makes_others() {
        let spec = spec(12, 3, 1);
        let other = FileSpec { seed: 2, ..spec };
        let first = made(spec).0;
        let second = made(other).0;
        let mut files = contents(first.path(), spec);
        files.extend(contents(second.path(), other));
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), 24);
    }

    #[test]
    fn classes_share_the_files_evenly_and_totals_count_them() {
        let (folder, totals) = made(spec(10, 4, 0));
        let mut bytes = 0;
        let mut counts = Vec::new();
        for class in 0..4 {
            let files = fs::read_dir(folder.path().join(class_name(class))).unwrap();
            let lens: Vec<u64> = files.map(|file| file.unwrap().metadata().unwrap().len()).collect();
            counts.push(lens.len());
            bytes += lens.iter().sum::<u64>();
        }
        assert_eq!(counts, [3, 2, 3, 2]);
        assert_eq!(totals, FileTotals { files: 10, bytes });
        assert!(folder.path().join("class_0000/sample_0000000.bin").is_file());
        assert!(folder.path().join("class_0003/sample_0000009.bin").is_file());
    }

    #[test]
    fn progress_counts_every_file_once() {
        let folder = tempfile::tempdir().unwrap();
        let seen = std::sync::Mutex::new(Vec::new());
        let note = |files| {
            seen.lock().unwrap().push(files);
            Ok(())
        };
        make_files(folder.path(), spec(6, 2, 4), &note).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_error_from_progress_ends_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let stop = |files| if files < 3 { Ok(()) } else { Err(anyhow::anyhow!("enough")) };
        let made = make_files(folder.path(), spec(500, 1, 4), &stop);
        assert_eq!(made.unwrap_err().to_string(), "enough");
        assert!(fs::read_dir(folder.path().join(class_name(0))).unwrap().count() < 500);
    }

    #[test]
    fn refuses_specs_that_leave_a_class_empty_and_folders_that_hold_something() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |samples, classes| {
            make_files(folder.path(), spec(samples, classes, 0), &|_| Ok(())).unwrap_err().to_string()
        };
        assert_eq!(refusal(5, 0), "a folder of classes needs at least one class");
        assert_eq!(refusal(2, 3), "2 files cannot fill 3 classes: each class needs at least one");
        fs::write(folder.path().join("mine"), b"").unwrap();
        assert!(refusal(1, 1).contains("not empty"));
    }
}
