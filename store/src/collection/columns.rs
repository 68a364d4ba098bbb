//! An attribute of all members' samples.

use grainstore_format::AttributeValue;

use crate::Column;

/// The values of an attribute for all samples of a [`Collection`](super::Collection): the columns of its members end to
/// end, none of them copied.
#[derive(Debug, Clone)]
pub struct CollectionColumn<'a> {
    /// The first ordinal of each member, and its column.
    parts: Vec<(u64, Column<'a>)>,
}

impl<'a> CollectionColumn<'a> {
    pub(super) fn new(parts: Vec<(u64, Column<'a>)>) -> Self {
        Self { parts }
    }

    /// The value of sample `ordinal`; none if it has none, or there is no such sample.
    pub fn get(&self, ordinal: u64) -> Option<AttributeValue> {
        let index = self.parts.partition_point(|(first, _)| *first <= ordinal).checked_sub(1)?;
        let (first, column) = self.parts.get(index)?;
        column.get(ordinal - first)
    }

    /// Each member's first ordinal, and its column: for callers that need the values as they are in memory.
    pub fn parts(&self) -> &[(u64, Column<'a>)] {
        &self.parts
    }
}
