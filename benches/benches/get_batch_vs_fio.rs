//! Claim: a cold `get_batch` of 256 random small samples reads at 0.95 or more of fio's rate, with the same number of
//! reads of the same size in each batch.
//!
//! Direct, the index loaded before; no sample is read twice before all are read once. Samples of a batch are hardly
//! ever neighbours, so each is one read; the kernel's counters of the first few batches give the size of the reads.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    BlockSizes, Dataset, Effort, FioBaseline, FioEngine, Job, Meter, Ordinals, Report, Row, Shape, Target, bracketed,
    check_batch, check_contents, drop_caches, is_test_run, open_direct,
};
use grainstore_reader::Reader;

const BATCH: u32 = 256;

/// Batches, one after the other.
struct Run {
    effort: Effort,
    samples: u64,
}

fn main() {
    let mut report = Report::new("get_batch_vs_fio");
    for shape in Shape::selected(&[Shape::Tiny, Shape::Cifar]) {
        let dataset = shape.dataset();
        let reader = open_direct(&dataset);
        check_contents(&reader, dataset.fixture());
        let mut ordinals = Ordinals::new(3, dataset.fixture().samples);
        let probe = run(&reader, &dataset, &mut ordinals, 0.0);
        let mean_len = probe.effort.read_bytes.map_or(dataset.fixture().mean_len(), |bytes| bytes / probe.samples);
        let sizes = BlockSizes::around(mean_len);
        add_case(&mut report, shape.name(), &dataset, &reader, &mut ordinals, sizes);
    }
    report.finish();
}

fn add_case(
    report: &mut Report,
    case: &str,
    dataset: &Dataset,
    reader: &Reader,
    ordinals: &mut Ordinals,
    sizes: BlockSizes,
) {
    let engine = FioEngine::IoUringBatches(BATCH);
    let mut fio = FioBaseline::new(Job { engine, sizes }, reader.collection().member(0).unwrap());
    let seconds = if is_test_run() { 0.0 } else { 2.0 };
    let rounds = bracketed(|| fio.measure(), |_| run(reader, dataset, ordinals, seconds));
    let rate = |run: &Run| run.samples as f64 / run.effort.wall_s;
    let ratio = rounds.against_fio(rate, |fio| fio.reads_per_s);
    report.add(Row::against_fio(case, "samples/s / fio's reads/s", Target::AtLeast(0.95), ratio));
    report.add(Row::fact(case, "samples/s", rounds.spread(|run| Some(rate(run)))));
    let batch = rounds.spread(|run| Some(run.effort.wall_s * 1e6 * f64::from(BATCH) / run.samples as f64));
    report.add(Row::fact(case, "time of a batch, us", batch));
    let cpu = rounds.spread(|run| Some(run.effort.cpu_s * 1e6 / run.samples as f64));
    report.add(Row::fact(case, "CPU time of a sample, us", cpu));
    report.add(Row::fact(case, "bytes read for a sample", rounds.spread(|run| run.effort.amplification(run.samples))));
    report.add_device(case, &rounds);
}

/// Batches for `seconds`; at least 16.
fn run(reader: &Reader, dataset: &Dataset, ordinals: &mut Ordinals, seconds: f64) -> Run {
    drop_caches(&dataset.path());
    let (meter, mut samples, mut batches) = (Meter::start(), 0, 0);
    while batches < 16 || meter.elapsed_s() < seconds {
        let batch = reader.get_batch(&ordinals.take_many(BATCH as usize)).unwrap();
        assert_eq!(batch.len(), BATCH as usize);
        let _ = check_batch(&batch, dataset.fixture());
        samples += batch.len() as u64;
        batches += 1;
    }
    Run { effort: meter.stop(), samples }
}
