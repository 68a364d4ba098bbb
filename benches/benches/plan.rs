//! Claim: planning an epoch costs 50 ns an extent or less, and any position of the full order 2 us or less.
//!
//! In the chunked order a position costs a draw for each sample of its piece: reported for extents of 2 samples, of 512
//! and of 32,768, as samples of 110 KB, 512 bytes and 8 bytes have.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Random, scaled};
use grainstore_reader::plan::{Extents, ExtentsBuilder, Order, Plan, PlanSpec};

/// Samples of an extent. With samples of 110 KB, this would be a dataset of 220 GB.
const SAMPLES_OF_AN_EXTENT: u64 = 2;
/// Extents, and samples of each: of 100,000,000 samples or so.
const SMALL_SAMPLES: [(u64, u64); 2] = [(195_000, 512), (3050, 32_768)];
const LANES: u64 = 768;

fn extents_of(count: u64, samples_of_each: u64) -> Arc<Extents> {
    let mut builder = ExtentsBuilder::new(1 << 18);
    (0..count).for_each(|_| builder.chunk(samples_of_each, 1).unwrap());
    Arc::new(builder.finish())
}

fn plan_of(extents: &Arc<Extents>, order: Order, epoch: u64) -> Plan {
    let lanes = LANES.min(extents.sample_count());
    Plan::new(PlanSpec {
        extents: Arc::clone(extents),
        seed: 7,
        epoch,
        fingerprint: 5,
        order,
        lanes,
        group: NonZeroU32::MIN,
    })
    .unwrap()
}

/// Checks that every sample occurs once, and that single positions agree with the whole sequence.
fn check(plan: &Plan) {
    let ordinals: Vec<u64> = plan.ordinals_from(0).collect();
    for position in (0..plan.len()).step_by(997) {
        assert_eq!(plan.at(position), ordinals[usize::try_from(position).unwrap()]);
    }
    let mut sorted = ordinals;
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..plan.len()));
}

fn plan(c: &mut Criterion) {
    let extents = extents_of(scaled(1_000_000), SAMPLES_OF_AN_EXTENT);
    let (count, n) = (u64::from(extents.count()), extents.sample_count());
    [Order::Chunked, Order::Full].iter().for_each(|&order| check(&plan_of(&extents, order, 1)));

    let mut group = c.benchmark_group(format!("plan/{count} extents"));
    group.sample_size(20);
    group.throughput(Throughput::Elements(count));
    let mut epoch = 0;
    group.bench_function("chunked/new", |b| {
        b.iter(|| {
            epoch += 1;
            assert_eq!(plan_of(&extents, Order::Chunked, epoch).len(), n);
        });
    });

    group.throughput(Throughput::Elements(n));
    let chunked = plan_of(&extents, Order::Chunked, 1);
    group.bench_function("chunked/all ordinals", |b| {
        b.iter(|| assert_eq!(chunked.ordinals_from(0).fold(0, u64::wrapping_add), n * (n - 1) / 2));
    });

    group.throughput(Throughput::Elements(1));
    for order in [Order::Full, Order::Chunked] {
        let plan = plan_of(&extents, order, 1);
        add_any_position(&mut group, &format!("{order}/any position"), &plan);
    }
    group.finish();

    let mut group = c.benchmark_group("plan/small samples");
    for (count, samples_of_each) in SMALL_SAMPLES {
        let plan = plan_of(&extents_of(scaled(count), samples_of_each), Order::Chunked, 1);
        add_any_position(&mut group, &format!("chunked/any position, {samples_of_each} an extent"), &plan);
    }
}

fn add_any_position(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, plan: &Plan) {
    let (n, mut random) = (plan.len(), Random::new(3));
    group.bench_function(name, |b| b.iter(|| assert!(black_box(plan.at(random.below(n))) < n)));
}

criterion_group!(benches, plan);
criterion_main!(benches);
