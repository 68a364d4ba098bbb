//! How well an order mixes a dataset that is stored class by class: 400,000 samples of 512 B, 85 in each extent, 1,000
//! classes, batches of 256, eleven looks over the epoch. The more lanes, the closer to a full shuffle. The figures are
//! also compared with those of order.md.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and prints what it measured")]

use std::collections::HashSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use grainstore_plan::{Distinct, Extents, ExtentsBuilder, Mixing, Order, Plan, PlanSpec};

const SAMPLES: u64 = 400_000;
const PER_EXTENT: u64 = 85;
const CLASSES: u64 = 1000;
const BATCH: u64 = 256;

fn extents(sizes: impl IntoIterator<Item = u64>) -> Arc<Extents> {
    let mut builder = ExtentsBuilder::new(4096);
    sizes.into_iter().for_each(|sample_count| builder.chunk(sample_count, 1).unwrap());
    Arc::new(builder.finish())
}

fn equal_extents(sample_count: u64, per_extent: u64) -> Arc<Extents> {
    let starts = (0..sample_count).step_by(usize::try_from(per_extent).unwrap());
    extents(starts.map(|start| per_extent.min(sample_count - start)))
}

fn plan(order: Order, lanes: u64) -> Plan {
    let extents = equal_extents(SAMPLES, PER_EXTENT);
    Plan::new(PlanSpec { extents, seed: 3, epoch: 0, fingerprint: 1, order, lanes, group: NonZeroU32::MIN }).unwrap()
}

fn measure(plan: &Plan, batch_size: u64, class_of: &dyn Fn(u64) -> Option<u64>) -> Mixing {
    Mixing::measure(plan, NonZeroU64::new(batch_size).unwrap(), Some(class_of), Mixing::PLACES)
}

fn mixing(order: Order, lanes: u64) -> Mixing {
    measure(&plan(order, lanes), BATCH, &|ordinal| Some(ordinal * CLASSES / SAMPLES))
}

fn distinct(parts: f64, classes: f64) -> Distinct {
    Distinct { parts, classes: Some(classes) }
}

fn assert_within(found: f64, expected: f64, share: f64) {
    assert!((found - expected).abs() <= share * expected, "{found} against {expected}");
}

/// Checks the parts and classes of one batch, and the classes of sixteen, within 3 % of each figure. The figures of the
/// chunked order were computed from its definition for this seed.
fn assert_near(found: &Mixing, expected: [f64; 3]) {
    println!("{found:?}, expected {expected:?}");
    let found = [found.one.parts, found.one.classes.unwrap(), found.sixteen.classes.unwrap()];
    found.into_iter().zip(expected).for_each(|(found, expected)| assert_within(found, expected, 0.03));
}

/// PLN-4
#[test]
fn full_order_mixes_as_a_uniform_shuffle_does() {
    let found = mixing(Order::Full, 1);
    assert_near(&found, [found.full_one.parts, found.full_one.classes.unwrap(), found.full_sixteen.classes.unwrap()]);
    assert_within(found.sixteen.parts, found.full_sixteen.parts, 0.03);
}

/// MIX-2
#[test]
fn a_uniform_shuffle_is_expected_to_mix_like_draws_without_replacement() {
    let found = mixing(Order::Full, 1);
    // Of d equally likely parts, m draws with replacement hit d (1 - (1 - 1/d)^m): a little fewer.
    let hit = |parts: f64, draws: f64| parts * (1.0 - (1.0 - 1.0 / parts).powf(draws));
    for (found, with_return) in [
        (found.full_one.parts, hit(256.0, 256.0)),
        (found.full_one.classes.unwrap(), hit(1000.0, 256.0)),
        (found.full_sixteen.parts, hit(256.0, 4096.0)),
        (found.full_sixteen.classes.unwrap(), hit(1000.0, 4096.0)),
    ] {
        assert!(found >= with_return, "{found} against {with_return}");
        assert_within(found, with_return, 0.001);
    }
}

/// PLN-5
#[test]
fn hundreds_of_lanes_mix_a_batch_like_a_full_shuffle() {
    assert_near(&mixing(Order::Chunked, 768), [164.0, 231.0, 629.0]);
    assert_near(&mixing(Order::Chunked, 384), [162.0, 231.0, 409.0]);
}

/// PLN-5
#[test]
fn fewer_lanes_than_samples_in_a_batch_mix_less() {
    assert_near(&mixing(Order::Chunked, 96), [84.0, 102.0, 157.0]);
    assert_near(&mixing(Order::Chunked, 24), [27.0, 31.0, 82.0]);
}

/// The first positions of the looks, as order.md defines them.
///
/// MIX-1
#[test]
fn looks_are_at_whole_batches_at_the_specified_positions() {
    for (sample_count, batch_size, places) in
        [(1000, 7, 11), (1000, 7, 3), (100, 7, 11), (6, 7, 11), (1, 1, 1), (112, 7, 5)]
    {
        let extents = equal_extents(sample_count, 10);
        let spec = PlanSpec {
            extents,
            seed: 5,
            epoch: 2,
            fingerprint: 9,
            order: Order::Chunked,
            lanes: 1,
            group: NonZeroU32::MIN,
        };
        let plan = Plan::new(spec).unwrap();
        // Every fifth sample is in no class.
        let class_of = |ordinal: u64| (!ordinal.is_multiple_of(5)).then_some(ordinal % 13);
        let (batch, place_count) = (NonZeroU64::new(batch_size).unwrap(), NonZeroU32::new(places).unwrap());
        let found = Mixing::measure(&plan, batch, Some(&class_of), place_count);
        assert_eq!(found.places, place_count);
        for (batch_count, found) in [(1, found.one), (16, found.sixteen)] {
            let expected = Naive { plan: &plan, batch_count, batch_size, places: places.into() }.mean(&class_of);
            assert_eq!(found, expected, "{batch_count} batches of {batch_size} of {sample_count}");
        }
    }
}

struct Naive<'a> {
    plan: &'a Plan,
    batch_count: u64,
    batch_size: u64,
    places: u64,
}

impl Naive<'_> {
    fn mean(&self, class_of: &dyn Fn(u64) -> Option<u64>) -> Distinct {
        let n = self.plan.len();
        let (mut parts, mut classes) = (0, 0);
        for j in 1..=self.places {
            let ordinals = self.look(j);
            parts += ordinals.iter().map(|ordinal| ordinal * 256 / n).collect::<HashSet<_>>().len();
            classes += ordinals.iter().filter_map(|&ordinal| class_of(ordinal)).collect::<HashSet<_>>().len();
        }
        distinct(parts as f64 / self.places as f64, classes as f64 / self.places as f64)
    }

    fn look(&self, j: u64) -> Vec<u64> {
        let (n, b) = (self.plan.len(), self.batch_size);
        let m = (self.batch_count * b).min(n);
        let start = b * (j * (n / b) / (self.places + 1)).min((n - m) / b);
        (start..start + m).map(|position| self.plan.at(position)).collect()
    }
}

#[test]
fn a_batch_larger_than_any_dataset_holds_every_part() {
    let all = Mixing::measure(&plan(Order::Full, 1), NonZeroU64::MAX, None, NonZeroU32::MIN);
    let every = Distinct { parts: 256.0, classes: None };
    assert_eq!([all.one, all.sixteen, all.full_one, all.full_sixteen], [every; 4]);
}

/// The test vector of order.md.
///
/// MIX-1, MIX-2
#[test]
fn the_worked_example_is_reproduced() {
    let extents = extents([3, 2, 4, 1, 2]);
    let spec = PlanSpec {
        extents,
        seed: 7,
        epoch: 1,
        fingerprint: 5,
        order: Order::Chunked,
        lanes: 3,
        group: NonZeroU32::MIN,
    };
    let found = measure(&Plan::new(spec).unwrap(), 4, &|ordinal| Some(ordinal / 3));
    assert_eq!((found.one, found.sixteen), (distinct(4.0, 37.0 / 11.0), distinct(12.0, 4.0)));
    assert_within(found.full_one.parts, 4.0, 1e-12);
    assert_within(found.full_one.classes.unwrap(), 4.0 * (1.0 - 126.0 / 495.0), 1e-12);
    assert_eq!(found.full_sixteen, distinct(12.0, 4.0));
}
