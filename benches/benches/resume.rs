//! Claim: an epoch of 100,000,000 samples that resumes in its middle is planned within 0.5 s, cold, including the
//! opening of its dataset.
//!
//! Chunked, direct, samples of 8 bytes, a new reader each time; 10,000,000 samples unless it is a large run. The index
//! is loaded while batches are made; the time that loading takes alone is reported too.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    Dataset, Fixture, Lengths, Meter, Report, Row, Spread, Target, check_batch, check_contents, drop_caches,
    epoch_options, is_large_run, is_selected, open_direct, round_count, scaled,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, EpochState, IoChoice, Reader, ReaderOptions};

const SAMPLE_LEN: u64 = 8;

/// Seconds since the dataset began to be opened.
struct Run {
    opened_s: f64,
    planned_s: f64,
    first_batch_s: f64,
    /// CPU seconds until then.
    first_batch_cpu_s: f64,
    /// Bytes of the index that were read until then.
    index_bytes: u64,
    tenth_batch_s: f64,
    /// When the index was in memory and the tenth batch was returned.
    loaded_s: f64,
}

fn main() {
    let mut report = Report::new("resume");
    add_case(&mut report, 10_000_000);
    if is_large_run() {
        add_case(&mut report, 100_000_000);
    }
    report.finish();
}

fn add_case(report: &mut Report, count: u64) {
    let case = format!("{SAMPLE_LEN}B x {count}");
    if !is_selected(&case) {
        return;
    }
    let fixture = Fixture { keyed: false, ..Fixture::noise(scaled(count), Lengths::Same(SAMPLE_LEN)) };
    let dataset = fixture.kept();
    check_contents(&open_direct(&dataset), &fixture);
    let runs: Vec<Run> = (0..round_count() as u64).map(|round| run(&dataset, round)).collect();
    let spread = |number: fn(&Run) -> f64| Spread::of(runs.iter().map(|run| Some(number(run))));
    report.add(Row::claim(&case, "planned in the middle, s", Target::AtMost(0.5), spread(|run| run.planned_s)));
    report.add(Row::fact(&case, "opened, s", spread(|run| run.opened_s)));
    report.add(Row::fact(&case, "first batch, s", spread(|run| run.first_batch_s)));
    report.add(Row::fact(&case, "CPU to the first batch, s", spread(|run| run.first_batch_cpu_s)));
    report.add(Row::fact(&case, "index read for it, MB", spread(|run| run.index_bytes as f64 / 1e6)));
    report.add(Row::fact(&case, "tenth batch, s", spread(|run| run.tenth_batch_s)));
    report.add(Row::fact(&case, "index loaded, s", spread(|run| run.loaded_s)));
    let alone = Spread::of((0..round_count()).map(|_| Some(load(&dataset))));
    report.add(Row::fact(&case, "open and load the index, s", alone));
}

fn run(dataset: &Dataset, number: u64) -> Run {
    let state = state_in_the_middle(dataset, number);
    let options = EpochOptions { resume: Some(state), ..epoch_options(Order::Chunked, number) };
    drop_caches(&dataset.path());
    let (meter, cpu) = (Meter::start(), Meter::start());
    let reader = open(dataset);
    let opened_s = meter.elapsed_s();
    let mut epoch = reader.epoch(&options).unwrap();
    let planned_s = meter.elapsed_s();
    let mut next_batch = || {
        let batch = epoch.next_batch().unwrap().unwrap();
        let _ = check_batch(&batch, dataset.fixture());
        meter.elapsed_s()
    };
    let first_batch_s = next_batch();
    let (first_batch_cpu_s, index_bytes) =
        (cpu.stop().cpu_s, reader.collection().member(0).unwrap().index_bytes_read());
    let tenth_batch_s = (1..10).fold(0.0, |_, _| next_batch());
    reader.load().unwrap();
    let loaded_s = meter.elapsed_s();
    Run { opened_s, planned_s, first_batch_s, first_batch_cpu_s, index_bytes, tenth_batch_s, loaded_s }
}

fn open(dataset: &Dataset) -> Reader {
    Reader::open(dataset.path(), ReaderOptions { io: IoChoice::Direct, ..ReaderOptions::default() }).unwrap()
}

/// The state of the epoch at its middle.
fn state_in_the_middle(dataset: &Dataset, number: u64) -> EpochState {
    let plan = open(dataset).plan(&epoch_options(Order::Chunked, number)).unwrap();
    plan.state_after(dataset.fixture().samples / 2 / 256)
}

/// Seconds to open the dataset and load its index, with no other work.
fn load(dataset: &Dataset) -> f64 {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    open(dataset).load().unwrap();
    meter.elapsed_s()
}
