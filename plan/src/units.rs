//! The units of the chunked order: groups of neighbouring extents, which are shuffled as one.
//!
//! Unit j of a member is its extents j x group to (j + 1) x group; the last may be shorter. A unit never spans two
//! members. A subset has of each unit the extents with one of its samples, and no empty units; an extent that is cut is one
//! of the group. order.md: PLN-5, PLN-9.

use std::num::NonZeroU32;
use std::ops::Range;

use super::extents::Extents;

/// The units of some extents.
#[derive(Clone)]
pub(super) struct Units {
    extent_count: u32,
    /// The first extent of every unit; `None` where every extent is a unit.
    first: Option<Vec<u32>>,
}

impl Units {
    pub(super) fn new(extents: &Extents, group: NonZeroU32) -> Self {
        let are_extents = group == NonZeroU32::MIN && !extents.is_cut();
        let first = (!are_extents).then(|| first_extents(extents, group).collect());
        Self { extent_count: extents.count(), first }
    }

    pub(super) fn count(&self) -> u32 {
        let Some(first) = &self.first else { return self.extent_count };
        let count = u32::try_from(first.len());
        debug_assert!(count.is_ok(), "there are no more units than extents");
        count.unwrap_or(u32::MAX)
    }

    /// The extents of a unit; never empty.
    pub(super) fn extents(&self, unit: u32) -> Range<u32> {
        match &self.first {
            None => unit..unit + 1,
            Some(first) => {
                let next = first.get(unit as usize + 1);
                first[unit as usize]..next.copied().unwrap_or(self.extent_count)
            }
        }
    }
}

impl Extents {
    /// Number of units of `group` extents: how many of the groups of extents have a sample. order.md: PLN-7.
    #[must_use]
    pub fn unit_count(&self, group: NonZeroU32) -> u32 {
        if group == NonZeroU32::MIN && !self.is_cut() {
            return self.count();
        }
        first_extents(self, group).fold(0, |count, _| count + 1)
    }
}

/// The first extent of every unit, ascending.
fn first_extents(extents: &Extents, group: NonZeroU32) -> impl Iterator<Item = u32> + use<'_> {
    let mut later_members = extents.members().iter().copied().skip(1).peekable();
    // In numbers of all extents: where the current member starts, and the current unit ends.
    let mut member_start = 0;
    let mut unit_end = 0;
    (0..extents.count()).filter(move |&extent| {
        let number = u64::from(extents.number_in_dataset(extent));
        while let Some(start) = later_members.next_if(|&start| u64::from(start) <= number) {
            member_start = u64::from(start);
        }
        if number < unit_end {
            return false;
        }
        let group = u64::from(group.get());
        unit_end = member_start + ((number - member_start) / group + 1) * group;
        if let Some(&next_member) = later_members.peek() {
            unit_end = unit_end.min(u64::from(next_member));
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ExtentsBuilder, Subset};

    /// Members of this many extents of 10 samples.
    fn extents(members: &[u64]) -> Extents {
        let mut builder = ExtentsBuilder::new(4096);
        for &count in members {
            builder.start_member(4096);
            for _ in 0..count {
                builder.chunk(10, 1).unwrap();
            }
        }
        builder.finish()
    }

    fn units(extents: &Extents, group: u32) -> Vec<Range<u32>> {
        let group = NonZeroU32::new(group).unwrap();
        let units = Units::new(extents, group);
        assert_eq!(extents.unit_count(group), units.count());
        (0..units.count()).map(|unit| units.extents(unit)).collect()
    }

    /// PLN-5
    #[test]
    fn a_unit_is_a_group_of_extents_and_the_last_may_be_shorter() {
        let seven = extents(&[7]);
        assert_eq!(units(&seven, 1), [0..1, 1..2, 2..3, 3..4, 4..5, 5..6, 6..7]);
        assert_eq!(units(&seven, 3), [0..3, 3..6, 6..7]);
        let whole = 0..7;
        assert_eq!(units(&seven, 7), std::slice::from_ref(&whole));
        assert_eq!(units(&seven, u32::MAX), [whole]);
    }

    /// PLN-5, PLN-8
    #[test]
    fn units_do_not_span_members() {
        assert_eq!(units(&extents(&[5, 1, 4]), 2), [0..2, 2..4, 4..5, 5..6, 6..8, 8..10]);
        assert_eq!(units(&extents(&[5, 1, 4]), u32::MAX), [0..5, 5..6, 6..10]);
    }

    /// PLN-9
    #[test]
    fn a_subset_has_of_each_unit_the_extents_with_a_sample_and_no_empty_units() {
        // Members of 5 and 4 extents, in units of 2: extents 0 1 | 2 3 | 4, and 5 6 | 7 8.
        let subset = Subset::from_ordinals(90, [15, 45, 49, 50, 60, 61]).unwrap();
        let some = extents(&[5, 4]).within(&Arc::new(subset)).unwrap();
        assert_eq!(some.count(), 4, "extents 1, 4, 5 and 6");
        assert_eq!(units(&some, 2), [0..1, 1..2, 2..4]);
        assert_eq!(units(&some, 9), [0..2, 2..4]);
        assert_eq!(units(&some, 1), [0..1, 1..2, 2..3, 3..4]);
    }

    /// PLN-9
    #[test]
    fn an_extent_that_is_visited_more_than_65536_times_is_cut_and_stays_in_its_unit() {
        let visits = std::iter::repeat_n(15, 140_000).chain([3, 25, 45]);
        let subset = Subset::with_repeats(50, visits).unwrap();
        let some = extents(&[5]).within(&Arc::new(subset)).unwrap();
        let cut: Vec<Range<u64>> = (0..some.count()).map(|extent| some.samples(extent)).collect();
        assert_eq!(cut, [0..1, 1..65_537, 65_537..131_073, 131_073..140_001, 140_001..140_002, 140_002..140_003]);
        assert_eq!(units(&some, 1), [0..1, 1..4, 4..5, 5..6]);
        assert_eq!(units(&some, 2), [0..4, 4..5, 5..6]);
    }
}
