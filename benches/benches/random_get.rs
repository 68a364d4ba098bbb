//! Claim: random samples of 110 KB, read directly in batches, come at 90 % of fio's rate or more (same size and depth).
//!
//! Set `GRAINSTORE_BENCH_DIR` to a directory on the device, and compare `Direct/get_batch` with
//! `fio --rw=randread --bs=112k --direct=1 --ioengine=psync --numjobs=16` before and after.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Filling, Fixture, Random, scaled};
use grainstore_reader::{IoChoice, Reader, ReaderOptions};
use grainstore_writer::Compression;

/// Samples of a batch.
const BATCH: u64 = 64;

fn random_get(c: &mut Criterion) {
    for (name, payload_len, count) in [("110KB", 110_000, 2048), ("512B", 512, 200_000)] {
        let fixture = Fixture {
            samples: scaled(count),
            payload_len,
            filling: Filling::Noise,
            compression: Compression::None,
            seed: 7,
        };
        let built = fixture.build();
        for io in [IoChoice::Buffered, IoChoice::Direct] {
            let reader = Reader::open(built.path(), ReaderOptions { io, ..ReaderOptions::default() }).unwrap();
            check(&reader, &fixture);
            let mode = reader.io().mode;
            let mut group = c.benchmark_group(format!("random_get/{name}/{mode:?}"));
            group.sample_size(20);
            let mut random = Random::new(3);
            group.throughput(Throughput::Bytes(payload_len));
            group.bench_function("get", |b| {
                b.iter(|| {
                    let sample = reader.get(random.below(fixture.samples)).unwrap();
                    assert_eq!(sample.payload.len() as u64, payload_len);
                });
            });
            group.throughput(Throughput::Bytes(BATCH * payload_len));
            group.bench_function(format!("get_batch of {BATCH}"), |b| {
                b.iter(|| {
                    let ordinals: Vec<u64> = (0..BATCH).map(|_| random.below(fixture.samples)).collect();
                    assert_eq!(reader.get_batch(&ordinals).unwrap().payload_bytes(), BATCH * payload_len);
                });
            });
        }
    }
}

/// A part of the samples, one by one and as a batch, has its own bytes.
fn check(reader: &Reader, fixture: &Fixture) {
    let order = Random::new(5).shuffled(fixture.samples);
    let ordinals: Vec<u64> = order.into_iter().take(256).collect();
    let batch = reader.get_batch(&ordinals).unwrap();
    for (&ordinal, payload) in ordinals.iter().zip(batch.payloads()) {
        let expected = fixture.payload(ordinal);
        assert!(payload == expected && reader.get(ordinal).unwrap().payload == expected, "sample {ordinal}");
    }
}

criterion_group!(benches, random_get);
criterion_main!(benches);
