//! Claim: a chunked epoch reads each byte about once (at most 1.02 times in extents), at the rate of the device.
//!
//! Warm and buffered it shows what the reader costs; for the device, set `GRAINSTORE_BENCH_DIR` to a directory on it
//! and compare `direct` with `fio --rw=randread --bs=256k --direct=1 --iodepth=64` before and after.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grainstore_benches::{Filling, Fixture, scaled};
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{EpochOptions, IoChoice, Reader, ReaderOptions};
use grainstore_writer::Compression;

/// A window of 32 MiB, so that it is a part of the dataset and not all of it.
const WINDOW_LEN: u64 = 32 << 20;

fn options(epoch: u64) -> EpochOptions {
    EpochOptions {
        order: OrderChoice::Fixed(Order::Chunked),
        seed: 7,
        epoch,
        window_len: WINDOW_LEN,
        ..EpochOptions::default()
    }
}

fn epoch_chunked(c: &mut Criterion) {
    for (name, payload_len, count) in [("110KB", 110_000, 2048), ("512B", 512, 400_000)] {
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
            let mut group = c.benchmark_group(format!("epoch_chunked/{name}/{mode:?}"));
            group.sample_size(10);
            let throughput = [
                ("bytes", Throughput::Bytes(fixture.payload_bytes())),
                ("samples", Throughput::Elements(fixture.samples)),
            ];
            for (name, throughput) in throughput {
                group.throughput(throughput);
                let mut epoch = 0;
                group.bench_function(name, |b| {
                    b.iter(|| {
                        epoch += 1;
                        let batches = reader.epoch(&options(epoch)).unwrap();
                        let bytes: u64 = batches.map(|batch| batch.unwrap().payload_bytes()).sum();
                        assert_eq!(bytes, fixture.payload_bytes());
                    });
                });
            }
        }
    }
}

/// Every sample once with its own bytes, in another order each epoch, and no byte read twice.
fn check(reader: &Reader, fixture: &Fixture) {
    let mut orders = [1, 2].map(|number| {
        let (mut epoch, mut seen) = (reader.epoch(&options(number)).unwrap(), Vec::new());
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            let first = batch.ordinals()[0];
            assert!(batch.payload(0) == fixture.payload(first), "sample {first} has other bytes");
            seen.extend_from_slice(batch.ordinals());
        }
        let (read, stored) = (epoch.stats().read_bytes, epoch.stats().stored_bytes);
        // Where an extent is small or a read is widened to blocks, up to two blocks an extent come on top.
        let extents = u64::from(reader.extents().unwrap().count());
        assert!(read <= stored + stored / 50 + 8192 * extents, "{read} bytes read for {stored}");
        seen
    });
    assert!(orders[0] != orders[1]);
    for order in &mut orders {
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..fixture.samples));
    }
}

criterion_group!(benches, epoch_chunked);
criterion_main!(benches);
