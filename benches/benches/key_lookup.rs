//! Claim: looking up one of 10,000,000 keys in a warm index takes 0.6 us or less, found or not (a few cache misses),
//! and 0.2 us or less per key in a batch (the misses overlap). For comparison: a `BTreeMap` of the same keys, and
//! opening a file by its name, which is the lookup in a folder of files.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Fixture, Lengths, Random, directory, scaled};
use grainstore_store::Dataset;
use tempfile::TempDir;

/// Keys that are looked up together.
const BATCH_COUNT: usize = 1024;
/// Number of files in the folder of the comparison with files.
const FOLDER_COUNT: u64 = 1000;

fn key_lookup(c: &mut Criterion) {
    let fixture = Fixture::noise(scaled(10_000_000), Lengths::Same(1));
    let built = fixture.build();
    let dataset = Dataset::open(built.path()).unwrap();
    let order = Random::new(3).shuffled(fixture.samples);
    let known: Vec<Vec<u8>> = order.iter().map(|&ordinal| Fixture::key(ordinal)).collect();
    let unknown: Vec<Vec<u8>> = order.iter().map(|ordinal| format!("sample_{ordinal}").into_bytes()).collect();
    // This also warms the index: after a few lookups all of it is in memory.
    for (ordinals, keys) in order.chunks(BATCH_COUNT).zip(known.chunks(BATCH_COUNT)) {
        assert!(dataset.find_batch(keys).unwrap().into_iter().eq(ordinals.iter().copied().map(Some)));
    }

    let mut group = c.benchmark_group(format!("key_lookup/{} keys/warm", fixture.samples));
    group.throughput(Throughput::Elements(1));
    let mut keys = order.iter().zip(&known).cycle();
    group.bench_function("find", |b| {
        b.iter(|| assert!(keys.next().is_some_and(|(&ordinal, key)| dataset.find(key).unwrap() == Some(ordinal))));
    });
    let mut keys = unknown.iter().cycle();
    group.bench_function("find nothing", |b| {
        b.iter(|| assert_eq!(keys.next().map(|key| dataset.find(key).unwrap()), Some(None)));
    });
    let mut ordinals = order.iter().cycle();
    group.bench_function("key of an ordinal", |b| {
        b.iter(|| assert!(ordinals.next().is_some_and(|&ordinal| dataset.key(ordinal).unwrap().is_some())));
    });
    in_batches(&mut group, &dataset, &order, &known);
    in_a_tree(&mut group, &order, &known);
    drop((known, unknown));
    by_file_name(&mut group);
}

/// Looks up a batch at a time; the throughput is in keys.
fn in_batches(group: &mut BenchmarkGroup<'_, WallTime>, dataset: &Dataset, order: &[u64], known: &[Vec<u8>]) {
    group.throughput(Throughput::Elements(BATCH_COUNT as u64));
    let mut batches = order.chunks_exact(BATCH_COUNT).zip(known.chunks_exact(BATCH_COUNT)).cycle();
    group.bench_function(format!("find_batch of {BATCH_COUNT}"), |b| {
        b.iter(|| {
            let (ordinals, keys) = batches.next().unwrap();
            let found = dataset.find_batch(keys).unwrap();
            assert!(found.iter().zip(ordinals).all(|(found, ordinal)| *found == Some(*ordinal)));
        });
    });
    group.throughput(Throughput::Elements(1));
}

fn in_a_tree(group: &mut BenchmarkGroup<'_, WallTime>, order: &[u64], known: &[Vec<u8>]) {
    let tree: BTreeMap<Vec<u8>, u64> = known.iter().cloned().zip(order.iter().copied()).collect();
    let mut keys = order.iter().zip(known).cycle();
    group.bench_function("a BTreeMap instead", |b| {
        b.iter(|| assert!(keys.next().is_some_and(|(ordinal, key)| tree.get(key) == Some(ordinal))));
    });
}

/// The files are empty, and far fewer than the keys: the comparison is in favour of the files.
fn by_file_name(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (folders, paths) = files(scaled(100_000));
    let order = Random::new(5).shuffled(paths.len() as u64);
    let mut paths = order.iter().map(|&place| &paths[usize::try_from(place).unwrap()]).cycle();
    group.bench_function(format!("open one of {} files instead", order.len()), |b| {
        b.iter(|| assert!(paths.next().is_some_and(|path| File::open(path).is_ok())));
    });
    drop(folders);
}

fn files(count: u64) -> (TempDir, Vec<PathBuf>) {
    let root = directory();
    let paths = (0..count).map(|ordinal| {
        let folder = root.path().join((ordinal / FOLDER_COUNT).to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("sample-{ordinal}"));
        File::create(&path).unwrap();
        path
    });
    let paths = paths.collect();
    (root, paths)
}

criterion_group!(benches, key_lookup);
criterion_main!(benches);
