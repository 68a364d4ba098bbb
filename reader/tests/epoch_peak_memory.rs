//! The peak memory of a process during an epoch, as the system counts it: the plan, the window, the read-ahead and the
//! batches in use, for any size of dataset.
//!
//! Each case runs in a separate process, since the peak is that of a whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and prints the peak that it saw")]

mod common;

use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use common::Random;
use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{EpochOptions, IoChoice, Reader, ReaderOptions};
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};

const MIB: u64 = 1 << 20;
const MARK: &str = "GRAINSTORE_TEST_PEAK_OF";

/// A dataset of equal samples, and how it is read.
#[derive(Clone, Copy)]
struct Case {
    payload_len: usize,
    sample_count: u64,
    lz4: bool,
    batch_size: usize,
    window_len: u64,
    orders: &'static [Order],
}

const SMALL: Case = Case {
    payload_len: 512,
    sample_count: 600_000,
    lz4: false,
    batch_size: 256,
    window_len: 64 * MIB,
    orders: &[Order::Chunked],
};
const IMAGES: Case = Case {
    payload_len: 110_000,
    sample_count: 3000,
    lz4: false,
    batch_size: 32,
    window_len: 64 * MIB,
    orders: &[Order::Chunked, Order::Full, Order::Sequential],
};
const COMPRESSED: Case = Case {
    payload_len: 16_000,
    sample_count: 24_000,
    lz4: true,
    batch_size: 128,
    window_len: 32 * MIB,
    orders: &[Order::Chunked, Order::Full],
};
const LONE: Case = Case {
    payload_len: 4 << 20,
    sample_count: 80,
    lz4: false,
    batch_size: 2,
    window_len: 64 * MIB,
    orders: &[Order::Chunked, Order::Full],
};

impl Case {
    fn write(&self, path: &Path) {
        let geometry =
            Geometry { chunk_size: ChunkSize::new(256 << 10).unwrap(), alignment: Alignment::PACKED, hash_seed: 1 };
        let compression = if self.lz4 { Compression::Lz4 } else { Compression::None };
        let options = WriterOptions { geometry, compression, keyed: false, ..WriterOptions::default() };
        let mut writer = DatasetWriter::create(path, options).unwrap();
        let noise = Random(3).bytes(self.payload_len);
        for ordinal in 0..self.sample_count {
            let mut payload = noise.clone();
            if self.lz4 {
                payload[self.payload_len / 2..].fill(0);
            }
            payload[..8].copy_from_slice(&ordinal.to_le_bytes());
            writer.write(Sample::new("", payload)).unwrap();
        }
        writer.finish().unwrap();
    }

    fn options(&self, order: OrderChoice) -> EpochOptions {
        let batch_size = NonZeroUsize::new(self.batch_size).unwrap();
        EpochOptions { order, seed: 5, batch_size, window_len: self.window_len, ..EpochOptions::default() }
    }

    /// The most bytes that an epoch may take.
    fn bound(&self, order: Order) -> u64 {
        let batch_len = (self.payload_len * self.batch_size) as u64;
        let window_len = if order == Order::Chunked { self.window_len } else { 0 };
        let prefetch_len = (self.window_len / 8).max(8 * MIB);
        // Batches in the queue; one being made, one laid out ahead, one with the caller.
        let batches_len = (2 * batch_len).max(8 * MIB) + 3 * batch_len;
        17 * self.sample_count + (window_len + prefetch_len + batches_len) * 11 / 10 + 64 * MIB
    }

    /// Reads the dataset in this process; prints its memory before and at the peak.
    fn read(&self, path: &Path, io: IoChoice, order: OrderChoice) {
        let reader = Reader::open(path, ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
        let before = peak_len();
        let mut seen = 0;
        for batch in reader.epoch(&self.options(order)).unwrap() {
            let batch = batch.unwrap();
            for (payload, ordinal) in batch.payloads().zip(batch.ordinals()) {
                assert_eq!((payload.len(), &payload[..8]), (self.payload_len, &ordinal.to_le_bytes()[..]));
            }
            seen += batch.len() as u64;
        }
        assert_eq!(seen, self.sample_count);
        println_to_parent(before, peak_len());
    }
}

/// Prints a line that the parent process finds among the test framework's output.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn println_to_parent(before: u64, peak: u64) {
    println!("\npeak {before} {peak}");
}

/// The peak memory of this process so far, in bytes.
fn peak_len() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// Writes the dataset once, and reads it in every order with direct and buffered I/O.
fn check(name: &str, case: Case) {
    if let Some(what) = env::var_os(MARK) {
        let what = what.to_str().unwrap().to_owned();
        let parts: Vec<&str> = what.split('|').collect();
        return case.read(Path::new(parts[0]), parts[1].parse().unwrap(), parts[2].parse().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.grain");
    case.write(&path);
    for order in case.orders {
        for io in [IoChoice::Direct, IoChoice::Buffered] {
            let (before, peak) = peak_of(name, &format!("{}|{io}|{order}", path.display()));
            let taken = peak - before;
            let bound = case.bound(*order);
            eprintln!(
                "{name}: {order}, {io}: {} MiB before, {} MiB more at the peak, bound {} MiB",
                before / MIB,
                taken / MIB,
                bound / MIB
            );
            assert!(taken <= bound, "{order}, {io}: {taken} bytes, expected {bound} at most");
            let data_len = case.payload_len as u64 * case.sample_count;
            assert!(bound < data_len, "a bound that the dataset does not reach shows nothing");
        }
    }
}

fn peak_of(name: &str, what: &str) -> (u64, u64) {
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--nocapture"]).env(MARK, what).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    let numbers = stdout.lines().find_map(|line| line.strip_prefix("peak ")).unwrap();
    let (before, peak) = numbers.split_once(' ').unwrap();
    (before.parse().unwrap(), peak.parse().unwrap())
}

#[test]
fn many_small_samples() {
    check("many_small_samples", SMALL);
}

#[test]
fn samples_of_110_kb() {
    check("samples_of_110_kb", IMAGES);
}

#[test]
fn compressed_samples() {
    check("compressed_samples", COMPRESSED);
}

#[test]
fn lone_samples_stay_within_the_bound() {
    check("lone_samples_stay_within_the_bound", LONE);
}
