//! The orders of an epoch against their definition.

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_reader::plan::{ExtentsBuilder, LaneBudget, Order, Plan, PlanError, PlanSpec, Visits, default_lanes};

use crate::input::Input;

#[path = "../../plan/tests/all/naive/mod.rs"]
mod naive;

const CHUNK_SIZE: u64 = 4096;
/// Samples of a plan: every position is computed three times, once slowly.
const MAX_SAMPLES: u64 = 1000;

// The order, in the two low bits of an input's first byte; the others are the group.
pub(crate) const CHUNKED: u8 = 0;
pub(crate) const FULL: u8 = 1;
pub(crate) const ALSO_CHUNKED: u8 = 2;
pub(crate) const SEQUENTIAL: u8 = 3;
pub(crate) const CHUNKED_IN_PAIRS: u8 = CHUNKED + 4;

/// PLN-2 to PLN-5, PLN-7: seeds, order, group and lanes, then the chunks of a dataset.
pub fn plan(data: &[u8]) {
    let mut input = Input(data);
    check_default_lanes(&mut Input(data));
    let order_byte = input.byte();
    // The rest of the byte is the group: 1 to 64 extents.
    let group = NonZeroU32::MIN.saturating_add(u32::from(order_byte / 4));
    let order = match order_byte % 4 {
        FULL => Order::Full,
        SEQUENTIAL => Order::Sequential,
        _ => Order::Chunked,
    };
    let (lanes, start) = (u64::from(input.u16()), u64::from(input.u16()));
    let (seed, epoch, fingerprint) = (input.u64(), u64::from(input.byte()), u64::from(input.u32()));
    let chunks = chunks(&mut input);
    let mut builder = ExtentsBuilder::new(CHUNK_SIZE);
    for &(sample_count, last_len) in &chunks {
        builder.chunk(sample_count, last_len).unwrap();
    }
    let extents = Arc::new(builder.finish());
    let first = naive::first(&chunks, CHUNK_SIZE);
    assert!((0..extents.count()).map(|extent| extents.samples(extent).end).eq(first[1..].iter().copied()));
    let n = extents.sample_count();
    // Any number of lanes is tried, but most inputs should have a legal one.
    let lanes = if lanes > 60_000 { lanes } else { lanes % (n + 2) };
    match Plan::new(PlanSpec { extents, seed, epoch, fingerprint, order, lanes, group }) {
        Err(PlanError::NoSamples) => assert_eq!(n, 0),
        Err(_) => assert!(n > 0 && order == Order::Chunked && !(1..=n).contains(&lanes)),
        Ok(plan) => {
            let expected = match order {
                Order::Sequential => (0..n).collect(),
                Order::Full => naive::full(n, seed, epoch, fingerprint),
                Order::Chunked => {
                    let units = naive::units(&[first.len() - 1], group.get() as usize);
                    let mut naive =
                        naive::Lanes::of_units(&first, &units, naive::key(&[seed, epoch, fingerprint]), lanes);
                    (0..n).map(|position| naive.at(position)).collect()
                }
            };
            check_plan(&plan, &expected, start);
        }
    }
}

fn chunks(input: &mut Input<'_>) -> Vec<(u64, u64)> {
    let (mut chunks, mut total) = (Vec::new(), 0);
    while !input.is_empty() {
        let (count, len) = (u64::from(input.byte()), u64::from(input.byte()));
        // Two in three lengths below 8 chunks, one at it or above.
        chunks.push((count, len * 8 * CHUNK_SIZE / 170));
        total += count;
        if total > MAX_SAMPLES {
            chunks.pop();
            break;
        }
    }
    chunks
}

fn check_plan(plan: &Plan, expected: &[u64], start: u64) {
    let n = expected.len() as u64;
    assert_eq!(plan.len(), n);
    let ordinals: Vec<u64> = plan.ordinals_from(0).collect();
    assert_eq!(ordinals, expected);
    let mut sorted = ordinals.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..n), "every sample once");
    let start = start % (n + 1);
    assert!(plan.ordinals_from(start).eq(ordinals[start as usize..].iter().copied()));
    let step = (n / 64).max(1);
    for position in (start % step..n).step_by(step as usize) {
        assert_eq!(plan.at(position), ordinals[position as usize]);
    }
    let Some(lanes) = plan.lanes() else { return };
    let mut from_pieces = vec![None; ordinals.len()];
    for Visits { piece, .. } in lanes.schedule() {
        let extent = plan.extents().samples(piece.extent);
        for (round, ordinal) in (piece.first_round..).zip(piece.indices()) {
            assert!(extent.contains(&ordinal));
            let position = round * lanes.lane_count() + piece.lane;
            assert_eq!(from_pieces[position as usize].replace(ordinal), None);
        }
    }
    assert!(from_pieces.into_iter().eq(ordinals.into_iter().map(Some)));
}

fn check_default_lanes(input: &mut Input<'_>) {
    let extent_count = input.u32();
    let (window_len, chunk_size, stored_bytes) = (input.u64(), input.u64(), input.u64());
    let unit_count = input.u32() % extent_count.saturating_add(1);
    let lanes = default_lanes(LaneBudget { window_len, chunk_size, stored_bytes, extent_count, unit_count });
    assert!(lanes == 1 || (lanes <= 768 && lanes <= u64::from(unit_count) / 2));
}
