//! Claim: a cold `get`, one at a time, takes at most 1.10 times the mean latency of fio's reads of that size (psync).
//!
//! Direct, the index loaded before; no sample is read twice before all are read once. The kernel's counters of the
//! first few samples give the size of the reads: whole blocks.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    BlockSizes, Dataset, Effort, FioBaseline, FioEngine, Job, Meter, Ordinals, Report, Row, Shape, Target, bracketed,
    check_contents, drop_caches, is_test_run, open_direct,
};
use grainstore_reader::Reader;

/// Samples, one after the other.
struct Run {
    effort: Effort,
    samples: u64,
}

fn main() {
    let mut report = Report::new("get_latency_vs_fio");
    for shape in Shape::selected(&Shape::ALL) {
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
    let mut fio = FioBaseline::new(Job { engine: FioEngine::Psync, sizes }, reader.collection().member(0).unwrap());
    let seconds = if is_test_run() { 0.0 } else { 2.0 };
    let rounds = bracketed(|| fio.measure(), |_| run(reader, dataset, ordinals, seconds));
    let latency = |run: &Run| run.effort.wall_s / run.samples as f64;
    let ratio = rounds.against_fio(latency, |fio| fio.latency_s);
    report.add(Row::against_fio(case, "mean latency / fio's", Target::AtMost(1.10), ratio));
    report.add(Row::fact(case, "mean latency, us", rounds.spread(|run| Some(latency(run) * 1e6))));
    let cpu = rounds.spread(|run| Some(run.effort.cpu_s * 1e6 / run.samples as f64));
    report.add(Row::fact(case, "CPU time of a get, us", cpu));
    report.add(Row::fact(case, "bytes read for a sample", rounds.spread(|run| run.effort.amplification(run.samples))));
    report.add_device(case, &rounds);
}

/// Samples for `seconds`; at least 200.
fn run(reader: &Reader, dataset: &Dataset, ordinals: &mut Ordinals, seconds: f64) -> Run {
    drop_caches(&dataset.path());
    let (meter, mut samples) = (Meter::start(), 0);
    while samples < 200 || meter.elapsed_s() < seconds {
        let ordinal = ordinals.take_one();
        let sample = reader.get(ordinal).unwrap();
        assert_eq!(sample.payload.len() as u64, dataset.fixture().payload_len(ordinal));
        samples += 1;
    }
    Run { effort: meter.stop(), samples }
}
