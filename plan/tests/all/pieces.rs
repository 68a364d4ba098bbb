//! The pieces of a lane, the schedule of all lanes and a long sequence of ordinals agree with the single positions of
//! the plan.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use grainstore_plan::{EXTENT_SAMPLES_MAX, ExtentsBuilder, Lanes, Order, Piece, Plan, PlanSpec, Visits};
use proptest::prelude::*;

fn chunked(sizes: &[u64], seed: u64, lanes: u64, group: u32) -> Plan {
    of_order(Order::Chunked, sizes, seed, lanes, group)
}

fn of_order(order: Order, sizes: &[u64], seed: u64, lanes: u64, group: u32) -> Plan {
    let group = NonZeroU32::new(group).unwrap();
    let mut builder = ExtentsBuilder::new(4096);
    for &size in sizes {
        builder.chunk(size, 1).unwrap();
    }
    let extents = Arc::new(builder.finish());
    Plan::new(PlanSpec { extents, seed, epoch: 3, fingerprint: 9, order, lanes, group }).unwrap()
}

fn first_position(lanes: &Lanes, piece: &Piece) -> u64 {
    piece.first_round * lanes.lane_count() + piece.lane
}

/// 1, or up to more extents than there are.
fn group() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(1), 3 => 2..6_u32, 1 => 6..50_u32, 1 => Just(u32::MAX)]
}

/// Sizes of extents, skewed, a number of lanes that leaves none empty, and a group.
fn shape() -> impl Strategy<Value = (Vec<u64>, u64, u32)> {
    let size = prop_oneof![5 => 1..4u64, 3 => 1..40u64, 1 => 200..600u64];
    prop::collection::vec(size, 1..40).prop_flat_map(|sizes| {
        let sample_count: u64 = sizes.iter().sum();
        let lanes = prop_oneof![1..=sample_count.min(12), 1..=sample_count];
        (Just(sizes), lanes, group())
    })
}

proptest! {
    /// PLN-5
    #[test]
    fn pieces_of_a_lane_agree_with_its_positions((sizes, lane_count, group) in shape(), seed: u64) {
        let plan = chunked(&sizes, seed, lane_count, group);
        let lanes = plan.lanes().unwrap();
        for lane in 0..lane_count {
            let mut round = 0;
            for piece in lanes.pieces(lane) {
                prop_assert_eq!((piece.lane, piece.first_round), (lane, round));
                let ordinals = piece.indices();
                prop_assert_eq!(piece.len(), ordinals.len() as u64);
                for ordinal in ordinals {
                    prop_assert_eq!(plan.at(round * lane_count + lane), ordinal);
                    round += 1;
                }
            }
            prop_assert_eq!(round, lanes.lane_len(lane));
        }
    }

    /// PLN-5
    #[test]
    fn ranges_of_a_piece_hold_its_ordinals_and_are_inside_its_extent((sizes, lane_count, group) in shape(), seed: u64) {
        let plan = chunked(&sizes, seed, lane_count, group);
        for Visits { piece, .. } in plan.lanes().unwrap().schedule() {
            let extent = plan.extents().samples(piece.extent);
            let ranges: Vec<Range<u64>> = piece.ranges().collect();
            prop_assert!(ranges.iter().all(|range| extent.start <= range.start && range.end <= extent.end));
            prop_assert!(ranges.len() == 1 || (ranges.len() == 2 && ranges[1].start == extent.start && ranges[0].end == extent.end));
            let mut ordinals = piece.indices();
            let mut slots = vec![7; 3];
            piece.slots_into(&mut slots);
            prop_assert!(slots.iter().map(|&slot| piece.index_of(slot)).eq(ordinals.iter().copied()));
            ordinals.sort_unstable();
            let mut covered: Vec<u64> = ranges.into_iter().flatten().collect();
            covered.sort_unstable();
            prop_assert_eq!(ordinals, covered);
        }
    }

    /// PLN-5
    #[test]
    fn schedule_is_all_pieces_by_first_need((sizes, lane_count, group) in shape(), seed: u64) {
        let plan = chunked(&sizes, seed, lane_count, group);
        let lanes = plan.lanes().unwrap();
        let mut sorted: Vec<Piece> = (0..lane_count).flat_map(|lane| lanes.pieces(lane)).collect();
        sorted.sort_by_key(|piece| first_position(lanes, piece));
        let schedule: Vec<Piece> = lanes.schedule().map(|visits| visits.piece).collect();
        prop_assert_eq!(&schedule, &sorted);
        prop_assert_eq!(schedule.iter().map(Piece::len).sum::<u64>(), plan.len());
    }

    /// PLN-5
    #[test]
    fn pieces_from_a_round_are_the_rest_of_the_lane((sizes, lane_count, group) in shape(), seed: u64, at: prop::sample::Index) {
        let plan = chunked(&sizes, seed, lane_count, group);
        let lanes = plan.lanes().unwrap();
        let lane = at.index(usize::try_from(lane_count).unwrap()) as u64;
        let round = at.index(usize::try_from(lanes.lane_len(lane) + 1).unwrap()) as u64;
        let rest: Vec<Piece> =
            lanes.pieces(lane).filter(|piece| piece.first_round + piece.len() > round).collect();
        prop_assert_eq!(lanes.pieces_from(lane, round).collect::<Vec<_>>(), rest);
    }

    /// PLN-3, PLN-4, PLN-5
    #[test]
    fn ordinals_from_any_position_are_the_positions_that_follow(
        (sizes, lane_count, group) in shape(), seed: u64, from: prop::sample::Index,
        order in prop_oneof![3 => Just(Order::Chunked), 1 => Just(Order::Full), 1 => Just(Order::Sequential)],
    ) {
        let plan = of_order(order, &sizes, seed, lane_count, group);
        let from = from.index(usize::try_from(plan.len() + 1).unwrap()) as u64;
        let ordinals = plan.ordinals_from(from);
        prop_assert_eq!(ordinals.len() as u64, plan.len() - from);
        prop_assert!(ordinals.eq((from..plan.len()).map(|position| plan.at(position))));
    }

    /// PLN-5
    #[test]
    fn lanes_are_of_equal_length_to_one_sample((sizes, lane_count, group) in shape(), seed: u64) {
        let plan = chunked(&sizes, seed, lane_count, group);
        let lanes = plan.lanes().unwrap();
        let lens: Vec<u64> = (0..lane_count).map(|lane| lanes.lane_len(lane)).collect();
        prop_assert_eq!(lens.iter().sum::<u64>(), plan.len());
        prop_assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1);
        // So positions have no gap: a lane is shorter only where the last round has no position for it.
        prop_assert!(lens.is_sorted_by(|left, right| left >= right));
    }
}

/// PLN-2, PLN-5
#[test]
fn an_extent_of_65536_samples_is_one_piece_of_16_bit_slots() {
    let plan = chunked(&[EXTENT_SAMPLES_MAX], 1, 1, 1);
    let pieces: Vec<Piece> = plan.lanes().unwrap().pieces(0).collect();
    // One lane over one extent: the turn and the phase cut it into three pieces at most.
    assert!(pieces.len() <= 3);
    assert_eq!(pieces.iter().map(Piece::len).sum::<u64>(), EXTENT_SAMPLES_MAX);
    let mut ordinals: Vec<u64> = plan.ordinals_from(0).collect();
    ordinals.sort_unstable();
    assert!(ordinals.into_iter().eq(0..EXTENT_SAMPLES_MAX));
}

/// PLN-5
#[test]
fn every_lane_adds_at_most_two_pieces_to_those_of_the_extents() {
    // The I/O that cuts, phases and the turn cost: an extent is read once more for each of them.
    let (extent_count, lane_count) = (5000, 96);
    for group in [1, 2, 16, 333, u32::MAX] {
        let plan = chunked(&[85; 5000], 4, lane_count, group);
        let piece_count = plan.lanes().unwrap().schedule().count() as u64;
        assert!(piece_count >= extent_count);
        assert!(piece_count <= extent_count + 2 * lane_count + 1, "{piece_count} pieces in groups of {group}");
    }
}

/// PLN-5
#[test]
fn a_lane_reads_the_extents_of_a_unit_one_after_the_other() {
    let (extent_count, lane_count) = (5000_u64, 96);
    for group in [2, 16, 333] {
        let plan = chunked(&[85; 5000], 4, lane_count, group);
        let lanes = plan.lanes().unwrap();
        let mut request_count = 0;
        for lane in 0..lane_count {
            let extents: Vec<u32> = lanes.pieces(lane).map(|piece| piece.extent).collect();
            // A request is broken where the next extent is not the neighbour, or is of the next unit.
            let broken =
                extents.windows(2).filter(|pair| pair[1] != pair[0] + 1 || pair[1].is_multiple_of(group)).count()
                    as u64;
            request_count += 1 + broken;
        }
        let unit_count = extent_count.div_ceil(u64::from(group));
        assert!(request_count <= unit_count + 2 * lane_count + 1, "{request_count} requests in groups of {group}");
    }
}

#[test]
fn an_iterator_past_its_end_stays_there() {
    let plan = chunked(&[3, 4], 1, 2, 1);
    let lanes = plan.lanes().unwrap();
    assert_eq!(plan.ordinals_from(7).next(), None);
    assert_eq!(plan.ordinals_from(u64::MAX).len(), 0);
    assert_eq!(lanes.pieces_from(1, u64::MAX).next(), None);
    let mut schedule = lanes.schedule();
    assert!(schedule.by_ref().count() >= 2);
    assert_eq!(schedule.next(), None);
}

#[test]
fn only_the_chunked_order_has_lanes() {
    for order in [Order::Sequential, Order::Full] {
        assert!(of_order(order, &[3, 4], 1, 2, 1).lanes().is_none());
    }
}
