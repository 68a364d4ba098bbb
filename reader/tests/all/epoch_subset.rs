//! An epoch over a subset: it visits each sample of the subset once, in an order of its own, and reads only the bytes
//! that it needs.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_reader::plan::{Order, PlanError};
use grainstore_reader::{EpochOptions, EpochStats, IoChoice, ReadError, Subset};

use crate::common::{self, Made, ORDERS, Random, Shape};

fn options(order: Order, subset: &Arc<Subset>) -> EpochOptions {
    let batch_size = NonZeroUsize::new(32).unwrap();
    EpochOptions { batch_size, subset: Some(Arc::clone(subset)), ..common::epoch_options(order) }
}

/// The ordinals of all ranks in the order of their positions, and the statistics of the ranks.
fn run(made: &Made, io: IoChoice, options: &EpochOptions) -> (Vec<u64>, Vec<EpochStats>) {
    let reader = made.reader(io);
    let (mut samples, mut stats) = (Vec::new(), Vec::new());
    for rank in 0..options.world {
        let mut epoch = reader.epoch(&EpochOptions { rank, ..options.clone() }).unwrap();
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            made.check(&batch);
            samples.extend(batch.positions().iter().copied().zip(batch.ordinals().iter().copied()));
        }
        stats.push(epoch.stats());
    }
    samples.sort_unstable();
    (samples.into_iter().map(|(_, ordinal)| ordinal).collect(), stats)
}

/// PLN-9
#[test]
fn a_subset_of_any_kind_is_visited_once_by_any_number_of_ranks() {
    let mut random = Random(5);
    let len = |random: &mut Random| if random.below(60) == 0 { 40_000 } else { random.below(900) };
    let payload_lens: Vec<usize> = (0..1500).map(|_| to_usize(len(&mut random))).collect();
    let shape = Shape { lz4: true, segment_size: 100_000, ..Shape::plain(4096, payload_lens) };
    let made = shape.write();
    let n = 1500;
    let every = |k: u64| Subset::from_ordinals(n, (0..n).filter(|ordinal| ordinal % k == 0)).unwrap();
    let random_half = Subset::from_ordinals(n, (0..n).filter(|_| random.below(2) == 0)).unwrap();
    let subsets = [
        every(2),
        every(11),
        every(500),
        random_half,
        Subset::from_range(n, 700..1100).unwrap(),
        Subset::from_range(n, 0..n).unwrap(),
        Subset::from_ordinals(n, [n - 1]).unwrap(),
    ];
    for subset in subsets.map(Arc::new) {
        for order in ORDERS {
            for world in [1, 3, 4] {
                let options = EpochOptions { world, ..options(order, &subset) };
                for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
                    let (mut ordinals, _) = run(&made, io, &options);
                    let plan = made.reader(io).plan(&options).unwrap();
                    assert!(plan.plan().ordinals_from(0).eq(ordinals.iter().copied()), "{order}, {subset:?}");
                    ordinals.sort_unstable();
                    assert!(ordinals.into_iter().eq((0..n).filter(|ordinal| subset.contains(*ordinal))));
                }
            }
        }
    }
}

#[test]
fn a_subset_of_all_samples_has_the_order_of_all_samples() {
    let made = Shape::plain(4096, vec![300; 500]).write();
    let all = Arc::new(Subset::from_range(500, 0..500).unwrap());
    for order in ORDERS {
        let whole = EpochOptions { subset: None, ..options(order, &all) };
        let io = IoChoice::Buffered;
        assert_eq!(run(&made, io, &options(order, &all)).0, run(&made, io, &whole).0);
    }
}

#[test]
fn only_the_wanted_samples_are_read_if_they_are_under_half_of_an_extent() {
    // 22 samples of 12,000 bytes in an extent: the gap between neighbours is too long to be read.
    let made = Shape::plain(256 << 10, vec![12_000; 880]).write();
    let of = |step: u64| Arc::new(Subset::from_ordinals(880, (0..880).filter(|ordinal| ordinal % step == 0)).unwrap());
    for (order, io) in [(Order::Chunked, IoChoice::Buffered), (Order::Sequential, IoChoice::Buffered)] {
        let sparse = run(&made, io, &options(order, &of(4))).1.remove(0);
        assert_eq!(sparse.read_bytes, sparse.stored_bytes, "{order}");
        // More than half is wanted: each extent is read once, with the gaps.
        let dense = Arc::new(Subset::from_ordinals(880, (0..880).filter(|ordinal| ordinal % 3 > 0)).unwrap());
        let dense = run(&made, io, &options(order, &dense)).1.remove(0);
        assert!(dense.read_bytes > dense.stored_bytes * 4 / 3 && dense.read_bytes <= 880 * 12_000, "{order}");
        assert!(dense.request_count < 100, "{order}: {} reads", dense.request_count);
    }
    let direct = run(&made, IoChoice::Direct, &options(Order::Chunked, &of(4))).1.remove(0);
    assert!(direct.read_bytes <= direct.stored_bytes + 220 * 2 * 4096);
}

#[test]
fn an_empty_subset_and_one_of_another_dataset_are_refused() {
    let reader = Shape::plain(4096, vec![300; 50]).write().reader(IoChoice::Buffered);
    let refused = |subset: Subset| match reader.epoch(&options(Order::Chunked, &Arc::new(subset))) {
        Err(ReadError::Plan(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Subset::from_ordinals(50, []).unwrap()), PlanError::EmptySubset);
    let other = refused(Subset::from_range(49, 0..9).unwrap());
    assert_eq!(other, PlanError::SubsetOfOther { expected: 50, found: 49 });
}
