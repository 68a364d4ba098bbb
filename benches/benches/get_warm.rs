//! Claim: one thread gets 1,000,000 warm samples of 3,073 bytes a second or more by default, which maps them, and 750,000
//! or more through the page cache.
//!
//! Random ordinals over the whole dataset, which is in the page cache; its index is in memory.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    Dataset, Effort, Meter, Ordinals, Report, Row, Shape, Target, bracketed, check_contents, is_selected, is_test_run,
};
use grainstore_reader::{IoChoice, Reader, ReaderOptions};

const CASES: [(&str, f64); 3] = [("auto", 1_000_000.0), ("buffered", 750_000.0), ("mapped", 1_000_000.0)];

fn main() {
    let mut report = Report::new("get_warm");
    let dataset = Shape::Cifar.dataset();
    for (name, least) in CASES.into_iter().filter(|(name, _)| is_selected(name)) {
        match name.parse() {
            Ok(io) => add_case(&mut report, name, &dataset, io, least),
            Err(_) => report.note(format!("{name}: this reader does not have it")),
        }
    }
    report.finish();
}

fn add_case(report: &mut Report, name: &str, dataset: &Dataset, io: IoChoice, least: f64) {
    let reader = Reader::open(dataset.path(), ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
    reader.load().unwrap();
    check_contents(&reader, dataset.fixture());
    let mut ordinals = Ordinals::new(3, dataset.fixture().samples);
    let gets = dataset.fixture().samples * if is_test_run() { 1 } else { 4 };
    run(&reader, dataset, &mut ordinals, dataset.fixture().samples);
    let rounds = bracketed(|| (), |_| run(&reader, dataset, &mut ordinals, gets));
    let case = format!("3KB/{name}");
    let rate = rounds.spread(|effort| Some(gets as f64 / effort.wall_s));
    report.add(Row::claim(&case, "gets/s, one thread", Target::AtLeast(least), rate));
    let cpu = rounds.spread(|effort| Some(effort.cpu_s * 1e9 / gets as f64));
    report.add(Row::fact(&case, "CPU time of a get, ns", cpu));
    let cold = rounds.spread(|effort| Some(effort.read_bytes.unwrap_or(0) as f64));
    report.add(Row::fact(&case, "bytes read from the device", cold));
}

/// Gets the next `gets` samples.
fn run(reader: &Reader, dataset: &Dataset, ordinals: &mut Ordinals, gets: u64) -> Effort {
    let meter = Meter::start();
    for _ in 0..gets {
        let ordinal = ordinals.take_one();
        let sample = reader.get(ordinal).unwrap();
        assert_eq!(sample.payload.len() as u64, dataset.fixture().payload_len(ordinal));
    }
    meter.stop()
}
