//! Claim: samples that are in memory are written, checksummed and synced about as fast as the device takes the bytes.
//!
//! To see the writer's own work without a device, set `GRAINSTORE_BENCH_DIR` to a directory in memory.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Filling, Fixture, Lengths, directory, scaled};
use grainstore_reader::{IoChoice, Reader, ReaderOptions};
use grainstore_writer::{Compression, Sample};

fn convert_write(c: &mut Criterion) {
    for (length, payload_len, count) in [("110KB", 110_000, 2048), ("512B", 512, 200_000)] {
        for (name, compression, filling) in
            [("raw", Compression::None, Filling::Noise), ("lz4", Compression::Lz4, Filling::Half)]
        {
            let fixture = Fixture {
                samples: scaled(count),
                lengths: Lengths::Same(payload_len),
                filling,
                compression,
                keyed: true,
                seed: 7,
            };
            let mut group = c.benchmark_group(format!("convert_write/{length}/{name}"));
            group.sample_size(10);
            write(&mut group, &fixture);
        }
    }
}

fn write(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>, fixture: &Fixture) {
    let (directory, samples) = (directory(), fixture.in_memory());
    let target = directory.path().join("bench.grain");
    fixture.write(&target, samples.clone());
    check(&target, &samples);
    std::fs::remove_dir_all(&target).unwrap();
    let throughput =
        [("bytes", Throughput::Bytes(fixture.payload_bytes())), ("samples", Throughput::Elements(fixture.samples))];
    for (name, throughput) in throughput {
        group.throughput(throughput);
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| (0..iterations).map(|_| write_once(fixture, &target, &samples)).sum());
        });
    }
}

/// The time from the first sample to the last sync. Copying the samples and removing the dataset are not in it.
fn write_once(fixture: &Fixture, target: &Path, samples: &[Sample]) -> Duration {
    let samples = samples.to_vec();
    let start = Instant::now();
    let summary = fixture.write(target, samples);
    let elapsed = start.elapsed();
    assert_eq!((summary.samples, summary.payload_bytes), (fixture.samples, fixture.payload_bytes()));
    std::fs::remove_dir_all(target).unwrap();
    elapsed
}

fn check(target: &Path, samples: &[Sample]) {
    let reader = Reader::open(target, ReaderOptions { io: IoChoice::Buffered, ..ReaderOptions::default() }).unwrap();
    assert_eq!(reader.collection().sample_count(), samples.len() as u64);
    for (ordinal, sample) in (0..).zip(samples).step_by(61) {
        assert_eq!(reader.get(ordinal).unwrap().payload, sample.payload);
        assert_eq!(reader.collection().find(&sample.key).unwrap(), Some(ordinal));
    }
}

criterion_group!(benches, convert_write);
criterion_main!(benches);
