//! Claim: an epoch of 100,000,000 samples that goes on in its middle is planned within 0.5 s of the opening of its
//! dataset, cold.
//!
//! Chunked, direct, samples of 8 bytes, a reader of its own each time; 10,000,000 of them unless it is a large run. The
//! index is loaded while batches are made; how long that takes by itself is told beside it.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    Dataset, Fixture, Lengths, Meter, Report, Row, Spread, Target, check_batch, check_contents, drop_caches,
    epoch_options, is_large_run, is_selected, open_direct, round_count, scaled,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{Epoch, IoChoice, Reader, ReaderOptions};

const SAMPLE_LEN: u64 = 8;

/// Seconds since the dataset began to be opened.
struct Run {
    opened_s: f64,
    planned_s: f64,
    first_batch_s: f64,
    tenth_batch_s: f64,
    /// When the index was in memory, had nobody else asked for it since.
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
    report.add(Row::fact(&case, "tenth batch, s", spread(|run| run.tenth_batch_s)));
    report.add(Row::fact(&case, "index loaded, s", spread(|run| run.loaded_s)));
    let alone = Spread::of((0..round_count()).map(|_| Some(load(&dataset))));
    report.add(Row::fact(&case, "open and load the index, s", alone));
}

fn run(dataset: &Dataset, number: u64) -> Run {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    let reader = open(dataset);
    let opened_s = meter.elapsed_s();
    let mut epoch = go_on_in_the_middle(&reader, number);
    let planned_s = meter.elapsed_s();
    let mut next_batch = || {
        let batch = epoch.next_batch().unwrap().unwrap();
        let _ = check_batch(&batch, dataset.fixture());
        meter.elapsed_s()
    };
    let (first_batch_s, tenth_batch_s) = (next_batch(), (1..10).fold(0.0, |_, _| next_batch()));
    reader.load().unwrap();
    Run { opened_s, planned_s, first_batch_s, tenth_batch_s, loaded_s: meter.elapsed_s() }
}

fn open(dataset: &Dataset) -> Reader {
    Reader::open(dataset.path(), ReaderOptions { io: IoChoice::Direct, ..ReaderOptions::default() }).unwrap()
}

/// An epoch, and the ordinals of a batch in its middle.
fn go_on_in_the_middle(reader: &Reader, number: u64) -> Epoch {
    let epoch = reader.epoch(&epoch_options(Order::Chunked, number)).unwrap();
    let middle = epoch.plan().len() / 2;
    let (count, n) = (epoch.plan().ordinals_from(middle).take(256).count(), epoch.plan().len());
    assert_eq!(count as u64, (n - middle).min(256));
    epoch
}

/// Seconds to open the dataset and load its index, with nothing beside it.
fn load(dataset: &Dataset) -> f64 {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    open(dataset).load().unwrap();
    meter.elapsed_s()
}
