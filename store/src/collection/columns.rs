//! An attribute of all members' samples.

use std::borrow::Cow;

use grainstore_format::{AttributeValue, Categories};

use super::{Collection, OneOrSeveral};
use crate::{Column, StoreError};

/// The categories of an attribute of a [`Collection`], each once, in the order of first appearance: those of the first
/// member, then those that only later members have.
#[derive(Debug, Clone)]
pub struct MergedCategories<'a> {
    /// The categories, in the order of their codes.
    pub categories: &'a Categories,
    /// For each member, the code in `categories` of each of its own codes.
    pub codes: Cow<'a, [Vec<u32>]>,
}

impl Collection {
    /// The column of `attribute`: [`Dataset::column`](crate::Dataset::column) of every member.
    ///
    /// # Errors
    /// As [`Dataset::column`](crate::Dataset::column) and [`Collection::member`].
    pub fn column(&self, attribute: &str) -> Result<CollectionColumn<'_>, StoreError> {
        let part = |member| Ok((self.member_ordinals(member).start, self.member(member)?.column(attribute)?));
        let parts = (0..self.member_count()).map(part).collect::<Result<_, StoreError>>()?;
        Ok(CollectionColumn::new(parts))
    }

    /// The categories of `attribute`, in the order of their codes: [`Dataset::categories`](crate::Dataset::categories)
    /// of every member, each once.
    ///
    /// # Errors
    /// As [`Dataset::categories`](crate::Dataset::categories) and [`Collection::member`], and if they are longer than
    /// 4 GiB together.
    pub fn categories(&self, attribute: &str) -> Result<&Categories, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.categories(attribute),
            OneOrSeveral::Several(several) => several.merged_categories(attribute).map(|(categories, _)| categories),
        }
    }

    /// The categories of `attribute`, and the code in them of each member's codes. Those of several members are merged
    /// at the first call.
    ///
    /// # Errors
    /// As [`Collection::categories`].
    pub fn merged_categories(&self, attribute: &str) -> Result<MergedCategories<'_>, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => {
                let categories = dataset.categories(attribute)?;
                let codes = (0..).zip(categories.iter()).map(|(code, _)| code).collect();
                Ok(MergedCategories { categories, codes: Cow::Owned(vec![codes]) })
            }
            OneOrSeveral::Several(several) => {
                let (categories, codes) = several.merged_categories(attribute)?;
                Ok(MergedCategories { categories, codes: Cow::Borrowed(codes) })
            }
        }
    }
}

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
