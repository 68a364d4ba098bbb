//! Claim: a chunked epoch returns its first batch of 256 within 1.5 times the time that the device needs for the
//! extents of its samples (768 lanes: 256 extents).
//!
//! Cold and direct, the index loaded before. The device's time is the bytes of those extents at the rate of fio's
//! random reads of 256 KiB.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::collections::BTreeSet;

use grainstore_benches::{
    BlockSizes, Dataset, FioBaseline, FioEngine, Job, Meter, Report, Row, Shape, Target, bracketed, check_batch,
    check_contents, drop_caches, epoch_options, is_test_run, open_direct,
};
use grainstore_reader::Reader;
use grainstore_reader::plan::{Extents, Order};

/// First batches of a round.
const EPOCHS: u64 = 4;

/// First batches of several epochs.
#[derive(Default)]
struct Run {
    wall_s: f64,
    touched_bytes: u64,
    epochs: u64,
}

fn main() {
    let mut report = Report::new("first_batch");
    for shape in Shape::selected(&Shape::ALL) {
        add_case(&mut report, shape.name(), &shape.dataset());
    }
    report.finish();
}

fn add_case(report: &mut Report, case: &str, dataset: &Dataset) {
    let reader = open_direct(dataset);
    check_contents(&reader, dataset.fixture());
    let job = Job { engine: FioEngine::IoUring(32), sizes: BlockSizes::same(256 << 10) };
    let mut fio = FioBaseline::new(job, reader.collection().member(0).unwrap());
    let epochs = if is_test_run() { 1 } else { EPOCHS };
    let rounds = bracketed(
        || fio.measure(),
        |number| {
            let numbers = number * epochs..(number + 1) * epochs;
            numbers.fold(Run::default(), |run, epoch| run.and(first_batch(&reader, dataset, epoch)))
        },
    );
    let time_of_a_byte = |run: &Run| run.wall_s / run.touched_bytes as f64;
    let ratio = rounds.against_fio(time_of_a_byte, |fio| 1.0 / fio.bytes_per_s);
    report.add(Row::against_fio(case, "first batch / device's time", Target::AtMost(1.5), ratio));
    let time = rounds.spread(|run| Some(run.wall_s * 1e3 / run.epochs as f64));
    report.add(Row::fact(case, "first batch, ms", time));
    let touched = rounds.spread(|run| Some(run.touched_bytes as f64 / 1e6 / run.epochs as f64));
    report.add(Row::fact(case, "bytes of its extents, MB", touched));
    report.add_device(case, &rounds);
}

fn first_batch(reader: &Reader, dataset: &Dataset, number: u64) -> Run {
    drop_caches(&dataset.path());
    let meter = Meter::start();
    let mut epoch = reader.epoch(&epoch_options(Order::Chunked, number)).unwrap();
    let batch = epoch.next().unwrap().unwrap();
    let wall_s = meter.elapsed_s();
    assert_eq!(batch.len() as u64, dataset.fixture().samples.min(256));
    let _ = check_batch(&batch, dataset.fixture());
    Run { wall_s, touched_bytes: touched_bytes(reader, batch.ordinals()), epochs: 1 }
}

/// Bytes of the extents that these samples are drawn from.
fn touched_bytes(reader: &Reader, ordinals: &[u64]) -> u64 {
    let extents = reader.extents().unwrap();
    let touched: BTreeSet<u32> = ordinals.iter().map(|&ordinal| extent_of(&extents, ordinal)).collect();
    let bytes = touched.into_iter().map(|extent| {
        let samples = extents.samples(extent);
        let (first, last) = (reader.collection().locate(samples.start), reader.collection().locate(samples.end - 1));
        let (first, last) = (first.unwrap(), last.unwrap());
        last.offset + last.stored_len - first.offset
    });
    bytes.sum()
}

/// The extent of a sample, by bisection: extents ascend.
fn extent_of(extents: &Extents, ordinal: u64) -> u32 {
    let (mut low, mut high) = (0, extents.count());
    while high - low > 1 {
        let middle = low.midpoint(high);
        if extents.samples(middle).start <= ordinal { low = middle } else { high = middle }
    }
    low
}

impl Run {
    fn and(self, other: Self) -> Self {
        Self {
            wall_s: self.wall_s + other.wall_s,
            touched_bytes: self.touched_bytes + other.touched_bytes,
            epochs: self.epochs + other.epochs,
        }
    }
}
