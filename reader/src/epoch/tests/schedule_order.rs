//! The schedule without reads: its lanes yield the samples of the plan, and its units are those that the samples name.

use std::collections::HashMap;

use super::*;
use crate::epoch::schedule::ReadSchedule;
use crate::epoch::unit_number::UnitNumber;
use crate::epoch::walk::LaneTurns;
use crate::plan::{Subset, Tail};

/// Number of lanes, number of ranks, and n: the subset has every n-th sample.
const SHAPES: [(u64, u64, u64); 7] = [(5, 1, 1), (7, 3, 1), (50, 1, 1), (50, 7, 1), (5, 1, 8), (40, 3, 8), (1, 5, 2)];

#[test]
fn lanes_yield_the_samples_of_the_plan_and_units_count_their_samples() {
    let made = MixedDataset::new(12);
    let reader = Reader::new(made.dataset(), ReaderOptions::default()).unwrap();
    for order in ORDERS {
        for (lanes, world, every) in SHAPES {
            for (tail, rank) in [(Tail::Short, 0), (Tail::Pad, world - 1), (Tail::Drop, world / 2)] {
                let wanted = (0..400).step_by(to_usize(every));
                let options = EpochOptions {
                    lanes: Some(lanes),
                    world,
                    rank,
                    tail,
                    subset: (every > 1).then(|| Arc::new(Subset::from_ordinals(400, wanted).unwrap())),
                    ..options(order)
                };
                let plan = reader.plan(&options).unwrap();
                let counts = sample_counts(&made, &plan);
                let mut units = schedule(&made, &plan);
                let mut unit_count = 0;
                while let Some(unit) = units.next_unit() {
                    assert_eq!(counts.get(&unit.number), Some(&unit.sample_count), "{options:?}");
                    unit_count += 1;
                }
                assert!(units.is_exhausted() && unit_count == counts.len(), "{options:?}");
            }
        }
    }
}

/// Walks all lanes as batches do. Returns how many samples name each unit.
fn sample_counts(made: &MixedDataset, plan: &EpochPlan) -> HashMap<UnitNumber, u32> {
    let mut schedule = schedule(made, plan);
    let mut counts = HashMap::new();
    for batch in plan.steps(0) {
        let turns = LaneTurns::of(plan.plan(), &batch.positions);
        let samples: Vec<_> =
            turns.take(batch.ordinals.len()).map(|lane| schedule.next_sample(lane).unwrap()).collect();
        assert!(samples.iter().map(|(_, ordinal)| *ordinal).eq(batch.ordinals.iter().copied()));
        for (unit, _) in samples {
            *counts.entry(unit).or_default() += 1;
        }
    }
    counts
}

fn schedule(made: &MixedDataset, plan: &EpochPlan) -> ReadSchedule {
    let extents = Arc::clone(plan.plan().extents());
    let mut schedule = ReadSchedule::new(Collection::from(made.dataset()), extents, None, None, 64 << 10);
    schedule.append(plan, 0);
    schedule
}
