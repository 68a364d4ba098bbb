//! Where the fields of a payload are, and the payload of the fields that are taken.

use std::ops::Range;

/// A payload made of ranges of another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The ranges of the old payload, in the order of the new one.
    pub(super) ranges: Vec<Range<u64>>,
    /// The fields in the new payload.
    pub(super) fields: Vec<Option<Range<u64>>>,
    pub(super) len: u64,
}

impl Cut {
    /// Puts `fields` of an old payload one after the other.
    pub(super) fn of(fields: impl IntoIterator<Item = Option<Range<u64>>>) -> Self {
        let mut cut = Self { ranges: Vec::new(), fields: Vec::new(), len: 0 };
        for field in fields {
            let Some(range) = field else {
                cut.fields.push(None);
                continue;
            };
            let start = cut.len;
            cut.len = start.saturating_add(range.end.saturating_sub(range.start));
            cut.fields.push(Some(start..cut.len));
            match cut.ranges.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => cut.ranges.push(range),
            }
        }
        cut
    }

    /// Whether the new payload is the old one, of `len` bytes.
    pub(super) fn is_whole(&self, len: u64) -> bool {
        match self.ranges.as_slice() {
            [] => len == 0,
            [only] => *only == (0..len),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_put_one_after_the_other_without_what_is_between_them() {
        let cut = Cut::of([Some(10..20), None, Some(0..5), Some(5..7)]);
        assert_eq!(cut.ranges, [10..20, 0..7]);
        assert_eq!(cut.fields, [Some(0..10), None, Some(10..15), Some(15..17)]);
        assert_eq!(cut.len, 17);
        assert!(!cut.is_whole(20));
    }

    #[test]
    fn a_packed_payload_stays_as_it_is() {
        assert!(Cut::of([Some(0..3), Some(3..9)]).is_whole(9));
        assert!(!Cut::of([Some(0..3), Some(3..9)]).is_whole(10));
        assert!(Cut::of([None]).is_whole(0));
    }
}
