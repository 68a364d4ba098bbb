//! Claim: opening a dataset of 2,000,000 samples and loading its index takes at most 1.3 times the time that the device
//! needs for the same number of bytes, and reads none of them twice; finding one key reads at most 1 MiB of the index.
//!
//! Cold. The device's time is that of a loop of `pread`, 1 MiB at a time, over the same part of the same file.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use grainstore_benches::{
    Dataset, Effort, Fixture, Lengths, Meter, Random, Report, Row, Shape, Spread, Target, bracketed, drop_caches,
    index_range, is_large_run, is_selected, round_count,
};
use grainstore_reader::{IoChoice, Reader, ReaderOptions};

const STEP_LEN: usize = 1 << 20;

/// An index that was opened and loaded.
struct Run {
    effort: Effort,
    index_bytes_read: u64,
}

fn main() {
    let mut report = Report::new("open_large");
    let dataset = Shape::Tiny.dataset();
    let case = format!("{} keys", dataset.fixture().samples);
    if is_selected(&case) {
        add_load(&mut report, &case, &dataset);
        add_lookup(&mut report, &case, &dataset);
    }
    if is_large_run() && is_selected("50000000 keys") {
        let large = Fixture::noise(50_000_000, Lengths::Same(8)).kept();
        add_lookup(&mut report, "50000000 keys", &large);
    }
    report.finish();
}

fn add_load(report: &mut Report, case: &str, dataset: &Dataset) {
    let opened = grainstore_store::Dataset::open(dataset.path()).unwrap();
    opened.load().unwrap();
    let (index, file) = (index_range(&opened), opened.segments()[0].path().to_owned());
    let loaded = index.start..index.end.min(index.start + opened.index_bytes_read());
    let baseline = || {
        drop_caches(&dataset.path());
        let meter = Meter::start();
        read_through(&File::open(&file).unwrap(), loaded.clone());
        meter.stop()
    };
    let rounds = bracketed(baseline, |_| load(dataset));
    let ratio = rounds.ratio(|run| run.effort.wall_s, |device| Some(device.wall_s));
    report.add(Row::claim(case, "open and load / device's time", Target::AtMost(1.3), ratio));
    let index_len = index.end - index.start;
    let once = rounds.spread(|run| Some(run.index_bytes_read as f64 / index_len as f64));
    report.add(Row::claim(case, "bytes asked for / index bytes", Target::AtMost(1.0), once));
    let fetched = rounds.spread(|run| run.effort.amplification(run.index_bytes_read));
    report.add(Row::claim(case, "bytes fetched / bytes asked for", Target::AtMost(1.05), fetched));
    report.add(Row::fact(case, "open and load, ms", rounds.spread(|run| Some(run.effort.wall_s * 1e3))));
    report.add(Row::fact(case, "CPU of it, ms", rounds.spread(|run| Some(run.effort.cpu_s * 1e3))));
    report.add(Row::fact(case, "index, MB", Some(Spread::once(index_len as f64 / 1e6))));
    let device = rounds.device(|device| Some((loaded.end - loaded.start) as f64 / 1e6 / device.wall_s));
    report.add(Row::fact(case, "pread loop, MB/s", device));
}

fn load(dataset: &Dataset) -> Run {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    let opened = grainstore_store::Dataset::open(dataset.path()).unwrap();
    opened.load().unwrap();
    let effort = meter.stop();
    assert_eq!(opened.payload_bytes().unwrap(), dataset.fixture().payload_bytes());
    Run { effort, index_bytes_read: opened.index_bytes_read() }
}

fn read_through(file: &File, range: Range<u64>) {
    let mut buffer = vec![0; STEP_LEN];
    for offset in range.clone().step_by(STEP_LEN) {
        let len = usize::try_from(range.end - offset).unwrap_or(STEP_LEN).min(STEP_LEN);
        file.read_exact_at(&mut buffer[..len], offset).unwrap();
    }
}

fn add_lookup(report: &mut Report, case: &str, dataset: &Dataset) {
    let mut random = Random::new(11);
    let looked: Vec<(u64, Effort)> =
        (0..round_count()).map(|_| look_up(dataset, random.below(dataset.fixture().samples))).collect();
    let read = Spread::of(looked.iter().map(|(bytes, _)| Some(*bytes as f64 / f64::from(1 << 20))));
    report.add(Row::claim(case, "index read for a key, MiB", Target::AtMost(1.0), read));
    let time = Spread::of(looked.iter().map(|(_, effort)| Some(effort.wall_s * 1e3)));
    report.add(Row::fact(case, "open and get by key, cold, ms", time));
}

/// Opens the dataset and gets one sample by its key. Returns the bytes of the index that were read, and the effort.
fn look_up(dataset: &Dataset, ordinal: u64) -> (u64, Effort) {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    let options = ReaderOptions { io: IoChoice::Direct, ..ReaderOptions::default() };
    let reader = Reader::open(dataset.path(), options).unwrap();
    let sample = reader.get_by_key(&Fixture::key(ordinal)).unwrap().unwrap();
    let effort = meter.stop();
    assert_eq!((sample.ordinal, &sample.payload), (ordinal, &dataset.fixture().payload(ordinal)));
    (reader.collection().member(0).unwrap().index_bytes_read(), effort)
}
