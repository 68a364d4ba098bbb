//! Claim: an epoch runs at the rate of the device: chunked at 0.95 or more of fio's random reads of 256 KiB, full at
//! 0.90 or more of its random reads of a sample's size; chunked reads at most 1.03 bytes for each stored byte.
//!
//! Cold and direct, whole epochs, the index loaded before. Rates count payload, so bytes that are read twice lower the
//! rate.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    BlockSizes, Ceiling, Dataset, Effort, FioBaseline, FioEngine, Job, Meter, Report, Rounds, Row, Shape, Target,
    bracketed, check_batch, check_contents, drop_caches, epoch_options, is_selected, open_direct, peak_memory_len,
    reset_peak_memory,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochStats, Reader};

const DEPTH: u32 = 32;

/// One epoch.
struct Run {
    effort: Effort,
    stats: EpochStats,
    peak_len: Option<u64>,
}

/// The targets of a case.
struct Targets {
    rate: f64,
    cpu_s_per_gb: f64,
}

fn main() {
    let mut report = Report::new("epoch_vs_fio");
    for shape in Shape::ALL {
        let case = format!("{}/chunked", shape.name());
        if is_selected(&case) {
            let cpu_s_per_gb = if shape == Shape::Tiny { 0.35 } else { 0.20 };
            let targets = Targets { rate: 0.95, cpu_s_per_gb };
            let dataset = shape.dataset();
            add_case(&mut report, &case, &dataset, Order::Chunked, BlockSizes::same(256 << 10), &targets);
        }
    }
    let case = "110KB/full";
    if is_selected(case) {
        let dataset = Shape::ImageNet.dataset();
        let targets = Targets { rate: 0.90, cpu_s_per_gb: 0.20 };
        add_case(&mut report, case, &dataset, Order::Full, BlockSizes::nearest(dataset.fixture().mean_len()), &targets);
    }
    report.finish();
}

fn add_case(report: &mut Report, case: &str, dataset: &Dataset, order: Order, sizes: BlockSizes, targets: &Targets) {
    let reader = open_direct(dataset);
    check_contents(&reader, dataset.fixture());
    let mut fio =
        FioBaseline::new(Job { engine: FioEngine::IoUring(DEPTH), sizes }, reader.collection().member(0).unwrap());
    let rounds = bracketed(|| fio.measure(), |number| run(&reader, dataset, order, number));
    add_rows(report, case, order, &rounds, targets);
}

fn run(reader: &Reader, dataset: &Dataset, order: Order, number: u64) -> Run {
    let fixture = dataset.fixture();
    drop_caches(&dataset.path());
    reset_peak_memory();
    let meter = Meter::start();
    let mut epoch = reader.epoch(&epoch_options(order, number)).unwrap();
    let bytes: u64 = epoch.by_ref().map(|batch| check_batch(&batch.unwrap(), fixture)).sum();
    let effort = meter.stop();
    assert_eq!((epoch.stats().samples, bytes), (fixture.samples, fixture.payload_bytes()));
    Run { effort, stats: epoch.stats(), peak_len: peak_memory_len() }
}

fn add_rows(report: &mut Report, case: &str, order: Order, rounds: &Rounds<Ceiling, Run>, targets: &Targets) {
    let rate = |run: &Run| run.stats.payload_bytes as f64 / run.effort.wall_s;
    let ratio = rounds.against_fio(rate, |fio| fio.bytes_per_s);
    report.add(Row::against_fio(case, "payload rate / fio's rate", Target::AtLeast(targets.rate), ratio));
    let cpu = rounds.spread(|run| Some(run.effort.cpu_s_per_gb(run.stats.payload_bytes)));
    report.add(Row::claim(case, "CPU-s/GB", Target::AtMost(targets.cpu_s_per_gb), cpu));
    let read = rounds.spread(|run| run.effort.amplification(run.stats.stored_bytes));
    report.add(match order {
        Order::Chunked => Row::claim(case, "bytes read / bytes stored", Target::AtMost(1.03), read),
        _ => Row::fact(case, "bytes read / bytes stored", read),
    });
    report.add(Row::fact(case, "payload, MB/s", rounds.spread(|run| Some(rate(run) / 1e6))));
    let samples = rounds.spread(|run| Some(run.stats.samples as f64 / run.effort.wall_s));
    report.add(Row::fact(case, "samples/s", samples));
    let peak = rounds.spread(|run| run.peak_len.map(|len| len as f64 / 1e6));
    report.add(Row::fact(case, "peak memory, MB", peak));
    report.add_device(case, rounds);
    if let Some(run) = rounds.measured().last() {
        report.note(format!("{case}: engine {}, {:?}", run.stats.engine, run.stats.io));
    }
}
