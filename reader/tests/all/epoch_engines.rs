//! The engine and the kind of I/O decide only how fast an epoch is: with every engine, its batches have the order of
//! the plan and the contents of the dataset.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroUsize;

use grainstore_format::to_usize;
use grainstore_reader::{EngineChoice, EpochOptions, IoChoice, Reader, ReaderOptions};

use crate::common::{self, Made, ORDERS, Random, Shape};

/// Tiny samples, empty ones, some that are read straight into their batch, some compressed, some longer than eight
/// chunks; in several segments.
fn mixed() -> Made {
    let mut random = Random(21);
    let payload_len = |random: &mut Random| match random.below(30) {
        0 => 70_000 + random.below(60_000),
        1..4 => 0,
        4..8 => 20_000 + random.below(20_000),
        _ => random.below(1500),
    };
    let payload_lens = (0..700).map(|_| to_usize(payload_len(&mut random))).collect();
    Shape { lz4: true, segment_size: 700_000, ..Shape::plain(4096, payload_lens) }.write()
}

fn options_of_readers() -> Vec<ReaderOptions> {
    let mut all = Vec::new();
    for io in [IoChoice::Buffered, IoChoice::Direct] {
        for queue_len in [1, 4096, 8 << 20] {
            all.push(ReaderOptions { io, engine: EngineChoice::Auto, queue_len, ..ReaderOptions::default() });
        }
        for threads in [1, 16] {
            all.push(ReaderOptions { io, engine: EngineChoice::Pread, threads, ..ReaderOptions::default() });
        }
    }
    all.push(ReaderOptions { io: IoChoice::Mapped, ..ReaderOptions::default() });
    all.push(ReaderOptions { io: IoChoice::Buffered, dont_cache: true, ..ReaderOptions::default() });
    all
}

#[test]
fn order_and_contents_match_the_plan_with_every_engine() {
    let made = mixed();
    for reader_options in options_of_readers() {
        let reader = Reader::open(made.path(), reader_options.clone()).unwrap();
        for order in ORDERS {
            for (batch_size, window_len) in [(1, 200_000), (64, 100_000), (1000, 10 << 20)] {
                let batch_size = NonZeroUsize::new(batch_size).unwrap();
                let options = EpochOptions { batch_size, window_len, ..common::epoch_options(order) };
                let mut epoch = reader.epoch(&options).unwrap();
                let plan = epoch.plan().clone();
                let mut position = 0;
                while let Some(batch) = epoch.next_batch() {
                    let batch = batch.unwrap();
                    assert_eq!(batch.positions().first(), Some(&position));
                    let planned = (position..plan.len()).take(batch_size.get()).map(|position| plan.at(position));
                    assert!(batch.ordinals().iter().copied().eq(planned), "{order}, {reader_options:?}");
                    made.check(&batch);
                    position += batch.len() as u64;
                }
                assert_eq!(position, 700, "{order}, {reader_options:?}");
                assert_eq!(epoch.stats().samples, 700);
                assert_eq!(epoch.stats().payload_bytes, made.payload_bytes());
            }
        }
    }
}
