//! An attribute of all members' samples.

use grainstore_format::AttributeValue;

use super::Collection;
use crate::{Column, StoreError};

/// The values of an attribute for all samples of a [`Collection`]: the members' columns end to end, none of them copied.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    /// The first ordinal of each member, and its column.
    parts: Vec<(u64, Column<'a>)>,
}

impl<'a> Columns<'a> {
    /// The value of sample `ordinal`; none where it has none, or there is no such sample.
    pub fn get(&self, ordinal: u64) -> Option<AttributeValue> {
        let place = self.parts.partition_point(|(first, _)| *first <= ordinal).checked_sub(1)?;
        let (first, column) = self.parts.get(place)?;
        column.get(ordinal - first)
    }

    /// Each member's first ordinal, and its column: for who wants the values as they lie in memory.
    pub fn parts(&self) -> &[(u64, Column<'a>)] {
        &self.parts
    }
}

impl Collection {
    /// The column of `attribute`: [`Dataset::column`](crate::Dataset::column) of every member.
    ///
    /// # Errors
    /// As [`Dataset::column`](crate::Dataset::column) and [`Collection::member`].
    pub fn column(&self, attribute: &str) -> Result<Columns<'_>, StoreError> {
        let part = |member| Ok((self.member_ordinals(member).start, self.member(member)?.column(attribute)?));
        Ok(Columns { parts: (0..self.member_count()).map(part).collect::<Result<_, StoreError>>()? })
    }
}
