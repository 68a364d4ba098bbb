//! Plain files, read like a training loader without grainstore reads them: open, read, close, in a given order.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use grainstore_format::shown_path;
use indicatif::ProgressBar;

use super::report::Rate;
use crate::interrupt::check_interrupt;

/// How files are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileReading {
    /// Threads, each with one file at a time.
    pub(crate) threads: usize,
    /// No further file is started after this time.
    pub(crate) limit: Duration,
}

/// Reads files in the given order, and measures the speed.
///
/// # Errors
/// If one cannot be read, or the user wants to stop.
pub(crate) fn read_files(paths: &[PathBuf], how: FileReading, bar: &ProgressBar) -> anyhow::Result<Rate> {
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let bytes = AtomicU64::new(0);
    let read = || -> anyhow::Result<u64> {
        let mut buffer = Vec::new();
        let mut count = 0;
        while started.elapsed() < how.limit {
            check_interrupt()?;
            let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            buffer.clear();
            let len = File::open(path)
                .and_then(|mut file| file.read_to_end(&mut buffer))
                .with_context(|| format!("cannot read {}", shown_path(path)))?;
            bytes.fetch_add(len as u64, Ordering::Relaxed);
            count += 1;
            bar.inc(1);
        }
        Ok(count)
    };
    let samples = thread::scope(|scope| {
        let threads: Vec<_> = (0..how.threads).map(|_| scope.spawn(read)).collect();
        let counts = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a reading thread died"))?);
        counts.sum::<anyhow::Result<u64>>()
    })?;
    Ok(Rate::new(samples, bytes.into_inner(), started.elapsed()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..40).map(|number| folder.path().join(number.to_string())).collect();
        paths.iter().for_each(|path| fs::write(path, "12345").unwrap());
        (folder, paths)
    }

    #[test]
    fn every_file_is_read_once_by_any_number_of_threads() {
        let (_folder, paths) = folder();
        for threads in [1, 16] {
            let how = FileReading { threads, limit: Duration::MAX };
            let rate = read_files(&paths, how, &ProgressBar::hidden()).unwrap();
            assert_eq!((rate.samples, rate.payload_bytes), (40, 200));
        }
    }

    #[test]
    fn no_file_is_begun_after_the_limit_and_a_missing_one_is_named() {
        let (_folder, mut paths) = folder();
        let how = FileReading { threads: 2, limit: Duration::ZERO };
        assert_eq!(read_files(&paths, how, &ProgressBar::hidden()).unwrap().samples, 0);
        paths.push(PathBuf::from("no/such/file"));
        let how = FileReading { limit: Duration::MAX, ..how };
        let error = read_files(&paths, how, &ProgressBar::hidden()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read no/such/file");
    }
}
