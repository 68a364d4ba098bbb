//! Claim: looking up one of 1,000,000 keys in a warm index takes 2 us or less, found or not (a handful of cache misses).
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Filling, Fixture, Random, scaled};
use grainstore_store::Dataset;
use grainstore_writer::Compression;

fn key_lookup(c: &mut Criterion) {
    let fixture = Fixture {
        samples: scaled(1_000_000),
        payload_len: 1,
        filling: Filling::Noise,
        compression: Compression::None,
        seed: 7,
    };
    let built = fixture.build();
    let dataset = Dataset::open(&built.path()).unwrap();
    let order = Random::new(3).shuffled(fixture.samples);
    // Warms the index too: after a few lookups it is in memory whole.
    for &ordinal in &order {
        assert_eq!(dataset.find(&Fixture::key(ordinal)).unwrap(), Some(ordinal));
    }
    let known: Vec<(u64, Vec<u8>)> = order.iter().map(|&ordinal| (ordinal, Fixture::key(ordinal))).collect();
    let unknown: Vec<Vec<u8>> = order.iter().map(|ordinal| format!("sample_{ordinal}").into_bytes()).collect();

    let mut group = c.benchmark_group(format!("key_lookup/{} keys/warm", fixture.samples));
    group.throughput(Throughput::Elements(1));
    let mut keys = known.iter().cycle();
    group.bench_function("find", |b| {
        b.iter(|| {
            let found = keys.next().map(|(ordinal, key)| dataset.find(key).unwrap() == Some(*ordinal));
            assert_eq!(found, Some(true));
        });
    });
    let mut keys = unknown.iter().cycle();
    group.bench_function("find nothing", |b| {
        b.iter(|| assert_eq!(keys.next().map(|key| dataset.find(key).unwrap()), Some(None)));
    });
    let mut ordinals = order.iter().cycle();
    group.bench_function("key of an ordinal", |b| {
        b.iter(|| assert!(ordinals.next().is_some_and(|&ordinal| dataset.key(ordinal).unwrap().is_some())));
    });
}

criterion_group!(benches, key_lookup);
criterion_main!(benches);
