//! Claim: from 100,000 to 10,000,000 samples, neither CPU time per gigabyte nor memory beyond the index grows.
//!
//! Chunked, direct, samples of 512 bytes, the index loaded before. The window has 96 lanes, the most for which the
//! smallest dataset has extents. The same number of samples is read from each dataset, in a separate process for each.
//! A large run adds 100,000,000 samples of 8 bytes, and compares them with 10,000,000 of them.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::path::Path;
use std::process::Stdio;

use grainstore_benches::{
    Fixture, Lengths, Meter, Report, Row, Spread, Target, check_contents, child_argument, child_command, epoch_options,
    is_large_run, is_selected, open_direct, open_direct_at, peak_memory_len, round_count, scaled,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, Reader};
use serde::{Deserialize, Serialize};

const LANES: u64 = 96;
/// An extent for each lane. The read-ahead depends on it too.
const WINDOW_LEN: u64 = LANES * (256 << 10);
/// Samples that are read, in one epoch or several.
const SAMPLES_READ: u64 = 2_000_000;
/// The largest ratio that does not count as growth.
const FLAT: Target = Target::AtMost(1.10);

/// Datasets that differ only in how many samples they have.
struct Family {
    sample_len: u64,
    counts: &'static [u64],
}

/// What a separate process reports.
#[derive(Serialize, Deserialize)]
struct Measured {
    cpu_s_per_gb: f64,
    index_bytes: u64,
    /// `None` where the kernel does not count it.
    beyond_index_bytes: Option<u64>,
}

/// The numbers of one dataset, over all rounds.
struct Point {
    cpu_s_per_gb: Option<Spread>,
    beyond_index_mb: Option<Spread>,
}

fn main() {
    if let Some(path) = child_argument() {
        return report(&read_some(&path));
    }
    let mut report = Report::new("growth");
    add_family(&mut report, &Family { sample_len: 512, counts: &[100_000, 1_000_000, 10_000_000] });
    if is_large_run() {
        add_family(&mut report, &Family { sample_len: 8, counts: &[10_000_000, 100_000_000] });
    }
    report.finish();
}

fn add_family(report: &mut Report, family: &Family) {
    let case = format!("{}B", family.sample_len);
    if !is_selected(&case) {
        return;
    }
    let points: Vec<Point> = family.counts.iter().map(|&count| add_point(report, family, count)).collect();
    let growth = |number: fn(&Point) -> Option<&Spread>| {
        let (first, last) = (number(points.first()?)?, number(points.last()?)?);
        Some(Spread::once(last.median / first.median))
    };
    let cpu = growth(|point| point.cpu_s_per_gb.as_ref());
    report.add(Row::claim(&case, "CPU-s/GB, largest / smallest", FLAT, cpu));
    let memory = growth(|point| point.beyond_index_mb.as_ref());
    report.add(Row::claim(&case, "memory beyond the index, largest / smallest", FLAT, memory));
}

fn add_point(report: &mut Report, family: &Family, count: u64) -> Point {
    let fixture = Fixture { keyed: false, ..Fixture::noise(scaled(count), Lengths::Same(family.sample_len)) };
    let dataset = fixture.kept();
    check_contents(&open_direct(&dataset), &fixture);
    let measured: Vec<Measured> = (0..round_count()).map(|_| ask_child(&dataset.path())).collect();
    let case = format!("{}B x {}", family.sample_len, fixture.samples);
    let spread = |number: fn(&Measured) -> Option<f64>| Spread::of(measured.iter().map(number));
    let point = Point {
        cpu_s_per_gb: spread(|measured| Some(measured.cpu_s_per_gb)),
        beyond_index_mb: spread(|measured| measured.beyond_index_bytes.map(|bytes| bytes as f64 / 1e6)),
    };
    report.add(Row::fact(&case, "CPU-s/GB", point.cpu_s_per_gb.clone()));
    report.add(Row::fact(&case, "memory beyond the index, MB", point.beyond_index_mb.clone()));
    report.add(Row::fact(&case, "index in memory, MB", spread(|measured| Some(measured.index_bytes as f64 / 1e6))));
    point
}

fn ask_child(path: &Path) -> Measured {
    let output = child_command(path).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the process that reads {} failed", path.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(measured: &Measured) {
    serde_json::to_writer(std::io::stdout(), measured).unwrap();
}

fn read_some(path: &Path) -> Measured {
    let reader = open_direct_at(path);
    let meter = Meter::start();
    let (mut bytes, mut left, mut number) = (0, scaled(SAMPLES_READ), 0);
    while left > 0 {
        let (read, read_bytes) = read_epoch(&reader, number, left);
        bytes += read_bytes;
        left -= read;
        number += 1;
    }
    let cpu_s_per_gb = meter.stop().cpu_s_per_gb(bytes);
    let index_bytes = reader.collection().member(0).unwrap().index_bytes_read();
    let beyond_index_bytes = peak_memory_len().map(|peak| peak.saturating_sub(index_bytes));
    Measured { cpu_s_per_gb, index_bytes, beyond_index_bytes }
}

/// Reads an epoch, or `samples_max` of it: samples and bytes.
fn read_epoch(reader: &Reader, number: u64, samples_max: u64) -> (u64, u64) {
    let dataset = reader.collection();
    let sample_len = dataset.payload_bytes().unwrap() / dataset.sample_count();
    let options = EpochOptions { lanes: Some(LANES), window_len: WINDOW_LEN, ..epoch_options(Order::Chunked, number) };
    let (mut samples, mut bytes) = (0, 0);
    for batch in reader.epoch(&options).unwrap() {
        let batch = batch.unwrap();
        assert!(batch.payloads().all(|payload| payload.len() as u64 == sample_len));
        samples += batch.len() as u64;
        bytes += batch.payload_bytes();
        if samples >= samples_max {
            return (samples_max, bytes);
        }
    }
    assert_eq!(samples, dataset.sample_count());
    (samples, bytes)
}
