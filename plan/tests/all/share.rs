//! Compares a rank's share of an epoch with a naive model: global batches are cut from the positions of the order, then
//! divided among the ranks.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_plan::{
    Extents, ExtentsBuilder, Order, Plan, PlanError, PlanSpec, PlannedBatch, Share, ShareSpec, Subset, Tail,
};
use proptest::prelude::*;

const ORDERS: [Order; 3] = [Order::Sequential, Order::Full, Order::Chunked];
const TAILS: [Tail; 3] = [Tail::Drop, Tail::Short, Tail::Pad];

fn extents(lens: &[u64]) -> Arc<Extents> {
    let mut builder = ExtentsBuilder::new(4096);
    lens.iter().for_each(|len| builder.chunk(*len, 1).unwrap());
    Arc::new(builder.finish())
}

fn plan(extents: &Arc<Extents>, order: Order, lanes: u64, group: u32) -> Plan {
    let lanes = lanes.min(extents.sample_count());
    let group = NonZeroU32::new(group).unwrap();
    Plan::new(PlanSpec { extents: Arc::clone(extents), seed: 3, epoch: 2, fingerprint: 9, order, lanes, group })
        .unwrap()
}

fn spec(rank: u64, world: u64, batch_size: usize, start: u64, tail: Tail) -> ShareSpec {
    ShareSpec { rank, world, batch_size: NonZeroUsize::new(batch_size).unwrap(), start, tail }
}

/// The contents of every rank's batches: for each global batch and rank, positions and ordinals.
fn model(plan: &Plan, world: u64, batch_size: usize, start: u64, tail: Tail) -> Vec<Vec<Vec<(u64, u64)>>> {
    let global = world * batch_size as u64;
    let mut batches = Vec::new();
    let mut begin = start;
    while begin < plan.len() {
        let end = match tail {
            Tail::Drop if begin + global > plan.len() => break,
            Tail::Drop | Tail::Pad => begin + global,
            Tail::Short => plan.len().min(begin + global),
        };
        let positions: Vec<(u64, u64)> = (begin..end).map(|p| (p, plan.at(p % plan.len()))).collect();
        let of_rank = |rank: u64| -> Vec<(u64, u64)> {
            if plan.order() == Order::Sequential {
                let (each, over) = (positions.len() as u64 / world, positions.len() as u64 % world);
                let first = rank * each + rank.min(over);
                let count = each + u64::from(rank < over);
                positions.iter().copied().skip(to_usize(first)).take(to_usize(count)).collect()
            } else {
                positions.iter().copied().filter(|(p, _)| p % world == rank).collect()
            }
        };
        batches.push((0..world).map(of_rank).collect());
        begin += global;
    }
    batches
}

fn shown(step: PlannedBatch) -> Vec<(u64, u64)> {
    step.positions.zip(step.ordinals).collect()
}

proptest! {
    /// RNK-1, RNK-2, RNK-3
    #[test]
    fn every_rank_has_the_share_of_the_model(
        lens in prop::collection::vec(0..20_u64, 1..30),
        (lanes, group, world, batch_size) in (1..20_u64, 1..7_u32, 1..9_u64, 1..9_usize),
        (start, order, tail) in (0..100_u64, 0..3_usize, 0..3_usize),
    ) {
        let extents = extents(&lens);
        prop_assume!(extents.sample_count() > 0);
        let (plan, tail) = (plan(&extents, ORDERS[order], lanes, group), TAILS[tail]);
        let start = start % (plan.len() + 1);
        let expected = model(&plan, world, batch_size, start, tail);
        for rank in 0..world {
            let share = Share::new(&plan, spec(rank, world, batch_size, start, tail)).unwrap();
            prop_assert_eq!(share.batch_count(), expected.len() as u64);
            let steps: Vec<Vec<(u64, u64)>> = share.steps(&plan, 0).map(shown).collect();
            let own: Vec<Vec<(u64, u64)>> = expected.iter().map(|ranks| ranks[to_usize(rank)].clone()).collect();
            prop_assert_eq!(&steps, &own);
            for (batch, positions) in (0..).zip(&own) {
                prop_assert_eq!(&share.steps(&plan, batch).next().map(shown), &Some(positions.clone()));
                for (place, (position, _)) in (0..).zip(positions) {
                    prop_assert_eq!(share.batch_of(*position), (batch, place));
                }
            }
            prop_assert_eq!(share.positions(share.batch_count()).count, 0);
        }
    }

    /// PLN-9
    #[test]
    fn a_subset_is_planned_as_a_dataset_of_its_samples_would_be(
        lens in prop::collection::vec(0..20_u64, 1..30),
        bits in prop::collection::vec(any::<bool>(), 600),
        (lanes, order) in (1..20_u64, 0..3_usize),
    ) {
        let whole = extents(&lens);
        let wanted: Vec<u64> = (0..whole.sample_count()).filter(|ordinal| bits[to_usize(*ordinal)]).collect();
        prop_assume!(!wanted.is_empty());
        let subset = Arc::new(Subset::from_ordinals(whole.sample_count(), wanted.iter().copied()).unwrap());
        let counts: Vec<u64> = (0..whole.count())
            .map(|extent| whole.samples(extent).filter(|ordinal| bits[to_usize(*ordinal)]).count() as u64)
            .collect();
        let plan_of_subset = plan(&Arc::new(whole.within(&subset).unwrap()), ORDERS[order], lanes, 1);
        let plan_of_counts = plan(&extents(&counts), ORDERS[order], lanes, 1);
        let expected: Vec<u64> = plan_of_counts.ordinals_from(0).map(|index| wanted[to_usize(index)]).collect();
        prop_assert_eq!(plan_of_subset.ordinals_from(0).collect::<Vec<_>>(), &expected[..]);
        prop_assert!((0..plan_of_subset.len()).map(|position| plan_of_subset.at(position)).eq(expected));
    }

    /// The pieces that are read for a rank are those that its positions need, in the order of first need.
    #[test]
    fn the_pieces_of_all_positions_are_those_of_the_lanes(
        lens in prop::collection::vec(0..20_u64, 1..30),
        (lanes, group) in (1..20_u64, 1..7_u32),
    ) {
        let extents = extents(&lens);
        prop_assume!(extents.sample_count() > 0);
        let plan = plan(&extents, Order::Chunked, lanes, group);
        for visits in plan.lanes().unwrap().schedule() {
            prop_assert!(visits.is_whole() && visits.skipped == 0);
            prop_assert_eq!(visits.indices(), visits.piece.indices());
        }
    }
}

#[test]
fn invalid_arguments_are_refused_in_a_sentence() {
    let plan = plan(&extents(&[10, 10]), Order::Chunked, 3, 1);
    let error = |spec| Share::new(&plan, spec).unwrap_err().to_string();
    assert_eq!(error(spec(4, 4, 1, 0, Tail::Short)), "rank is 4, expected 0 to 3 (world is 4)");
    assert_eq!(error(spec(0, 0, 1, 0, Tail::Short)), "world is 0, expected 1 or more");
    assert_eq!(error(spec(0, 1, 1, 21, Tail::Short)), "position is 21, expected 0 to 20 (the epoch's samples)");
    let huge = spec(0, 1 << 40, 1 << 40, 0, Tail::Short);
    assert_eq!(Share::new(&plan, huge).unwrap().batch_count(), 1);
    assert!(matches!(
        Share::new(&plan, ShareSpec { tail: Tail::Pad, ..huge }).unwrap_err(),
        PlanError::PaddingTooLong { global_batch_len: u64::MAX, .. }
    ));
    let none = Arc::new(Subset::from_ordinals(20, []).unwrap());
    let extents = Arc::new(extents(&[10, 10]).within(&none).unwrap());
    let spec =
        PlanSpec { extents, seed: 0, epoch: 0, fingerprint: 0, order: Order::Full, lanes: 1, group: NonZeroU32::MIN };
    assert_eq!(Plan::new(spec).unwrap_err().to_string(), "subset has no samples, an epoch needs at least 1");
    let other = Arc::new(Subset::from_ordinals(21, [1]).unwrap());
    let error = plan.extents().within(&other).unwrap_err().to_string();
    assert_eq!(error, "subset is of 21 samples, the dataset has 20");
}

#[test]
fn ranks_read_extents_of_their_own_where_the_world_divides_the_lanes() {
    let plan = plan(&extents(&[5; 40]), Order::Chunked, 12, 1);
    for (world, readers, lanes) in [(1, 1, 12), (4, 1, 3), (12, 1, 1), (5, 5, 12), (8, 2, 3), (24, 2, 1)] {
        let share = Share::new(&plan, spec(0, world, 2, 0, Tail::Short)).unwrap();
        assert_eq!((share.ranks_per_piece_max(), share.visited_lane_count()), (readers, lanes), "world {world}");
    }
}

#[test]
fn every_tail_is_read_back() {
    for tail in TAILS {
        assert_eq!(tail.to_string().parse::<Tail>().unwrap(), tail);
    }
    let error = "Pad".parse::<Tail>().unwrap_err().to_string();
    assert_eq!(error, "tail is \"Pad\", expected drop, short or pad");
}
