//! An attribute of all members' samples.

use std::borrow::Cow;
use std::collections::HashMap;

use grainstore_format::{AttributeValue, Categories};

use super::Collection;
use crate::{Column, StoreError};

/// The categories of an attribute of a [`Collection`], each once, in the order of first appearance: those of the first
/// member, then those that only later members have.
#[derive(Debug, Clone)]
pub struct MergedCategories<'a> {
    /// The categories, in the order of their codes.
    pub categories: Cow<'a, Categories>,
    /// For each member, the code in `categories` of each of its own codes.
    pub codes: Vec<Vec<u32>>,
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
    /// As [`Dataset::categories`](crate::Dataset::categories) and [`Collection::member`], and if there are too many.
    pub fn categories(&self, attribute: &str) -> Result<Cow<'_, Categories>, StoreError> {
        Ok(self.merged_categories(attribute)?.categories)
    }

    /// The categories of `attribute`, and the code in them of each member's codes.
    ///
    /// # Errors
    /// As [`Collection::categories`].
    pub fn merged_categories(&self, attribute: &str) -> Result<MergedCategories<'_>, StoreError> {
        let members = self.members().map(|member| member?.categories(attribute));
        let members: Vec<&Categories> = members.collect::<Result<_, StoreError>>()?;
        let mut merged = HashMap::new();
        let mut names = Vec::new();
        let mut code_of = |name| {
            *merged.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        };
        let codes: Vec<Vec<usize>> = members.iter().map(|member| member.iter().map(&mut code_of).collect()).collect();
        let too_many = |error| match self.paths().next() {
            Some(path) => StoreError::Format { path: path.to_owned(), source: error },
            None => StoreError::NoMembers,
        };
        let categories = match members.as_slice() {
            [only] => Cow::Borrowed(*only),
            _ => Cow::Owned(Categories::new(names).map_err(too_many)?),
        };
        // `Categories` holds 2^20 at most.
        let narrow = |codes: Vec<usize>| codes.into_iter().filter_map(|code| u32::try_from(code).ok()).collect();
        Ok(MergedCategories { categories, codes: codes.into_iter().map(narrow).collect() })
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
