//! Claim: planning an epoch costs 50 ns an extent or less, and any position of the full order 2 us or less.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Random, scaled};
use grainstore_reader::plan::{Extents, ExtentsBuilder, Order, Plan, PlanSpec};

/// Samples of an extent: 110 KB each would make a dataset of 220 GB.
const SAMPLES_OF_AN_EXTENT: u64 = 2;
const LANES: u64 = 768;

fn extents(count: u64) -> Arc<Extents> {
    let mut builder = ExtentsBuilder::new(1 << 18);
    (0..count).for_each(|_| builder.chunk(SAMPLES_OF_AN_EXTENT, 110_000).unwrap());
    Arc::new(builder.finish())
}

fn plan_of(extents: &Arc<Extents>, order: Order, epoch: u64) -> Plan {
    let lanes = LANES.min(extents.sample_count());
    Plan::new(PlanSpec { extents: Arc::clone(extents), seed: 7, epoch, fingerprint: 5, order, lanes }).unwrap()
}

/// Every sample once, and single positions agree with the run of all.
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
    let extents = extents(scaled(1_000_000));
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
        let mut random = Random::new(3);
        group.bench_function(format!("{order}/any position"), |b| {
            b.iter(|| assert!(black_box(plan.at(random.below(n))) < n));
        });
    }
}

criterion_group!(benches, plan);
criterion_main!(benches);
