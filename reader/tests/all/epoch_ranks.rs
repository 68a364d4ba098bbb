//! Any number of ranks share an epoch: batch k of all ranks together has the same samples, and together they read what
//! one reader reads.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::{NonZeroU32, NonZeroUsize};
use std::thread;

use grainstore_format::to_usize;
use grainstore_reader::plan::{Order, PlanError, Tail};
use grainstore_reader::{Batch, EpochOptions, EpochStats, IoChoice, ReadError, Reader};

use crate::common::{self, Made, ORDERS, Random, Shape};

const WORLDS: [u64; 8] = [1, 2, 3, 4, 5, 7, 8, 24];
/// A global batch that all of these worlds divide.
const GLOBAL_BATCH: u64 = 840;

fn made(count: u64, longest: u64) -> Made {
    let mut random = Random(21);
    let payload_lens = (0..count).map(|_| to_usize(random.below(longest))).collect();
    Shape { segment_size: 300_000, ..Shape::plain(4096, payload_lens) }.write()
}

fn of_rank(rank: u64, world: u64, options: &EpochOptions) -> EpochOptions {
    let batch_size = NonZeroUsize::new(to_usize(GLOBAL_BATCH / world)).unwrap();
    EpochOptions { rank, world, batch_size, ..options.clone() }
}

/// The batches of each rank, and its statistics. All ranks read at the same time.
fn all_ranks(made: &Made, reader: &Reader, world: u64, options: &EpochOptions) -> Vec<(Vec<Batch>, EpochStats)> {
    let run = |rank: u64| {
        let mut epoch = reader.epoch(&of_rank(rank, world, options)).unwrap();
        let expected = epoch.len();
        let batches: Vec<Batch> = epoch.by_ref().map(Result::unwrap).collect();
        assert_eq!(batches.len() as u64, expected, "rank {rank} of {world}");
        batches.iter().for_each(|batch| made.check(batch));
        (batches, epoch.stats())
    };
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..world).map(|rank| scope.spawn(move || run(rank))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// The samples of every global batch, by position, and which of them are padding.
fn global_batches(ranks: &[(Vec<Batch>, EpochStats)]) -> Vec<Vec<(u64, u64)>> {
    let batch_count = ranks[0].0.len();
    let of_all = |k: usize| {
        let samples = ranks.iter().flat_map(|(batches, _)| {
            let batch = &batches[k];
            batch.positions().iter().copied().zip(batch.ordinals().iter().copied())
        });
        let mut samples: Vec<(u64, u64)> = samples.collect();
        samples.sort_unstable();
        samples
    };
    (0..batch_count).map(of_all).collect()
}

/// RNK-1, RNK-2
#[test]
fn every_world_sees_the_same_global_batches() {
    let made = made(5000, 600);
    for io in [IoChoice::Buffered, IoChoice::Direct] {
        for order in ORDERS {
            let reader = made.reader(io);
            let group = NonZeroU32::new(if io == IoChoice::Direct { 5 } else { 1 });
            let options = EpochOptions { lanes: Some(24), group, ..common::epoch_options(order) };
            let alone = global_batches(&all_ranks(&made, &reader, 1, &options));
            assert_eq!(alone.iter().map(Vec::len).sum::<usize>(), 5000);
            for world in WORLDS {
                let ranks = all_ranks(&made, &reader, world, &options);
                assert!(ranks.iter().all(|(batches, _)| batches.len() == ranks[0].0.len()));
                assert_eq!(global_batches(&ranks), alone, "{order}, world {world}");
            }
        }
    }
}

/// RNK-3
#[test]
fn a_tail_is_dropped_short_or_padded_in_the_same_way_for_every_world() {
    // 840 x 5 + 10: most ranks of 24 have no sample of a short tail.
    let made = made(4210, 50);
    let reader = made.reader(IoChoice::Buffered);
    for order in ORDERS {
        let options = |tail| EpochOptions { lanes: Some(24), tail, ..common::epoch_options(order) };
        let plan = reader.plan(&options(Tail::Drop)).unwrap();
        for world in WORLDS {
            let batches = |tail| all_ranks(&made, &reader, world, &options(tail));
            let whole = global_batches(&batches(Tail::Drop));
            assert_eq!(whole.len(), 5);
            let ranks = batches(Tail::Short);
            let short = global_batches(&ranks);
            assert_eq!((&short[..5], short[5].len()), (&whole[..], 10));
            assert_eq!(
                ranks.iter().filter(|(batches, _)| batches[5].is_empty()).count() as u64,
                world.saturating_sub(10)
            );
            let ranks = batches(Tail::Pad);
            let padded = global_batches(&ranks);
            assert_eq!((&padded[..5], &padded[5][..10]), (&whole[..], &short[5][..]));
            let expected: Vec<(u64, u64)> = (0..830).map(|i| (4210 + i, plan.plan().at(i))).collect();
            assert_eq!(&padded[5][10..], &expected[..], "{order}, world {world}");
            for (batches, _) in &ranks {
                let last = &batches[5];
                let marked = last.positions().iter().filter(|position| **position >= 4210).count();
                assert_eq!((last.padded_count(), last.len() as u64), (marked, GLOBAL_BATCH / world));
                assert!(batches[..5].iter().all(|batch| batch.padded_count() == 0));
            }
        }
    }
}

#[test]
fn more_padding_than_samples_repeats_them_again() {
    let made = made(7, 50);
    for order in ORDERS {
        let options = EpochOptions { lanes: Some(2), tail: Tail::Pad, ..common::epoch_options(order) };
        let reader = made.reader(IoChoice::Buffered);
        let plan = reader.plan(&options).unwrap();
        for world in [1, 5, 24] {
            let expected: Vec<(u64, u64)> = (0..GLOBAL_BATCH).map(|i| (i, plan.plan().at(i % 7))).collect();
            assert_eq!(global_batches(&all_ranks(&made, &reader, world, &options)), [expected], "{order}, {world}");
        }
    }
}

#[test]
fn ranks_with_lanes_of_their_own_read_together_what_one_reader_reads_and_hold_their_share() {
    let mut random = Random(4);
    // 9 MiB in extents of 64 KiB.
    let payload_lens = (0..3000).map(|_| to_usize(2000 + random.below(2000))).collect();
    let made = Shape::plain(64 << 10, payload_lens).write();
    let reader = made.reader(IoChoice::Direct);
    let window_len = 1 << 20;
    for group in [1, 4] {
        let group = NonZeroU32::new(group);
        check_shares(
            &reader,
            &made,
            &EpochOptions { lanes: Some(24), group, window_len, ..common::epoch_options(Order::Chunked) },
        );
    }
}

fn check_shares(reader: &Reader, made: &Made, options: &EpochOptions) {
    let read = |ranks: &[(Vec<Batch>, EpochStats)]| ranks.iter().map(|(_, stats)| stats.read_bytes).sum::<u64>();
    let held = |ranks: &[(Vec<Batch>, EpochStats)]| ranks.iter().map(|(_, stats)| stats.held_bytes_max).max().unwrap();
    let alone = all_ranks(made, reader, 1, options);
    for world in [2, 3, 4, 8, 24] {
        let ranks = all_ranks(made, reader, world, options);
        assert!(read(&ranks) * 100 <= read(&alone) * 103, "world {world}: {} of {}", read(&ranks), read(&alone));
        // Its share of the window, and as much read ahead; an extent or two where the share is tiny; and a group of
        // samples that are being copied to the batch.
        let bound = 2 * 24 * (64 << 10) / world * 9 / 8 + (1 << 20) + (256 << 10);
        assert!(held(&ranks) <= bound, "world {world}: {} of {bound}", held(&ranks));
        let plan = reader.plan(&of_rank(0, world, options)).unwrap();
        assert_eq!((plan.notice(), plan.share().ranks_per_piece_max()), (None, 1));
    }
    // 5 ranks each visit every lane: a notice reports this, and the factor is not exceeded.
    let ranks = all_ranks(made, reader, 5, options);
    assert!(read(&ranks) <= read(&alone) * 5 * 103 / 100);
    let plan = reader.plan(&of_rank(3, 5, options)).unwrap();
    assert_eq!(plan.share().ranks_per_piece_max(), 5);
    let expected = "24 lanes cannot be divided among 5 ranks: up to 5 of them read from the same chunks";
    let notice = plan.notice().unwrap();
    assert!(
        notice.starts_with(expected) && notice.ends_with("; a number of lanes that 5 divides avoids it"),
        "{notice}"
    );
    let resumed = EpochOptions { resume: Some(plan.state_after(1)), ..of_rank(3, 5, options) };
    let notice = reader.plan(&resumed).unwrap().notice().unwrap();
    assert!(notice.starts_with(expected) && !notice.contains("avoids it"), "{notice}");
}

#[test]
fn a_followed_epoch_of_a_rank_equals_the_epoch_alone() {
    let made = made(3000, 300);
    for order in ORDERS {
        for tail in [Tail::Drop, Tail::Short, Tail::Pad] {
            let reader = made.reader(IoChoice::Buffered);
            let fresh = made.reader(IoChoice::Buffered);
            let options = EpochOptions { lanes: Some(12), tail, ..common::epoch_options(order) };
            for number in 0..3 {
                let options = EpochOptions { epoch: number, followed: true, ..of_rank(2, 3, &options) };
                let batches = |reader: &Reader, options: &EpochOptions| -> Vec<(Vec<u64>, Vec<u64>)> {
                    let epoch = reader.epoch(options).unwrap();
                    epoch.map(Result::unwrap).map(|b| (b.ordinals().to_vec(), b.positions().to_vec())).collect()
                };
                let alone = EpochOptions { followed: false, ..options.clone() };
                assert_eq!(batches(&reader, &options), batches(&fresh, &alone), "{order}, {tail}, epoch {number}");
            }
        }
    }
}

#[test]
fn an_invalid_rank_is_refused() {
    let reader = made(20, 50).reader(IoChoice::Buffered);
    let refused = |rank, world| match reader.epoch(&EpochOptions { rank, world, ..EpochOptions::default() }) {
        Err(ReadError::Plan(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(3, 3), PlanError::RankOutOfRange { rank: 3, world: 3 });
    assert_eq!(refused(0, 0), PlanError::NoRanks);
}
