//! Checks that the merged index and a segment's own index agree. spec.md: MRG-1, HDR-2, MET-1.

use std::ops::Range;
use std::sync::OnceLock;

use grainstore_format::memory::reserve;
use grainstore_format::{Attribute, AttributeType, Categories, SectionKind, escape_bytes};
use rayon::prelude::*;

use super::columns::field_ranges;
use super::report::FileReport;
use super::slices::{Fault, KeyCursor, PART_LEN, RawValues, bits, categories, locations, no_memory, parallel_parts};
use crate::StoreError;
use crate::columns::item_of;
use crate::index::Index;
use crate::index::numbers::little_endian;
use crate::location::Location;

/// The merged index, and its categories, which are decoded once for all segments.
pub(super) struct MergedIndex {
    pub(super) index: Index,
    /// By attribute; `None` if they cannot be read or are damaged.
    codes: Vec<OnceLock<Option<CodesByName>>>,
}

impl MergedIndex {
    pub(super) fn new(index: Index) -> Self {
        let codes = index.metadata.schema.attributes().iter().map(|_| OnceLock::new()).collect();
        Self { index, codes }
    }

    fn codes(&self, report: &FileReport<'_>, number: usize) -> Option<&CodesByName> {
        let decode = || sound(report, CodesByName::of(&self.index, item_of(number)));
        self.codes.get(number)?.get_or_init(decode).as_ref()
    }
}

/// The categories of an attribute, to find a code by its name.
struct CodesByName {
    categories: Categories,
    /// The codes, in the order of their names.
    sorted: Vec<u32>,
}

impl CodesByName {
    fn of(index: &Index, item: u16) -> Result<Self, Fault> {
        let categories = categories(index, item)?;
        let mut sorted = Vec::new();
        reserve(&mut sorted, categories.len() as u64).map_err(|error| no_memory(index, error))?;
        sorted.extend((0..).take(categories.len()));
        sorted.sort_unstable_by_key(|code| categories.get(*code));
        Ok(Self { categories, sorted })
    }

    fn code_of(&self, name: &str) -> Option<u32> {
        let found = self.sorted.binary_search_by_key(&Some(name), |code| self.categories.get(*code)).ok()?;
        self.sorted.get(found).copied()
    }
}

/// The value, unless it cannot be read or is damaged. Damage has been reported by the check of the index.
fn sound<T>(report: &FileReport<'_>, result: Result<T, Fault>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Fault::Unreadable(error)) => report.readable(Err(error)),
        Err(Fault::Wrong(_) | Fault::Stopped) => None,
    }
}

/// Compares a segment's own index with its part of the merged one.
pub(super) fn check_agreement(report: &FileReport<'_>, own: &Index, all: &MergedIndex, segment: usize) {
    let merged = &all.index;
    let Some(record) = merged.table.records().get(segment) else { return };
    if own.table.records() != [*record] {
        return report.damage("the segment's index and the merged one disagree on samples or data end");
    }
    if own.frame.geometry() != merged.frame.geometry() {
        report.damage("the segment's index and the merged one disagree on chunk size, alignment or hash seed");
    }
    if own.metadata.schema != merged.metadata.schema {
        return report.damage("the segment's index and the merged one have different schemas");
    }
    if segment + 1 == merged.table.records().len() && own.metadata.user.text() != merged.metadata.user.text() {
        report.damage("the user metadata of the merged index are not those of the last segment");
    }
    if own.frame.directory.is_keyed() != merged.frame.directory.is_keyed() {
        return report.damage("the segment's index and the merged one disagree on whether samples have keys");
    }
    let attributes = own.metadata.schema.attributes().iter().enumerate();
    let attributes = attributes.filter_map(|(number, attribute)| {
        let merged_codes = match attribute.kind {
            AttributeType::Category => Some(sound(report, merged_codes(own, all.codes(report, number)?, number))?),
            _ => None,
        };
        Some(SharedAttribute { item: item_of(number), attribute, merged_codes })
    });
    let attributes = attributes.collect();
    let pair = IndexPair { report, own, merged, first: merged.table.ordinals(segment).start, segment, attributes };
    parallel_parts(0..own.sample_count(), PART_LEN).for_each(|ordinals| {
        if report.is_stopped() {
            return;
        }
        report.readable(pair.entries(ordinals.clone()));
        report.readable(pair.attributes(ordinals.clone()));
        report.readable(pair.fields(ordinals.clone()));
        sound(report, pair.keys(ordinals));
    });
}

struct IndexPair<'a> {
    report: &'a FileReport<'a>,
    own: &'a Index,
    merged: &'a Index,
    /// The ordinal in the merged index of the segment's first sample.
    first: u64,
    segment: usize,
    attributes: Vec<SharedAttribute<'a>>,
}

/// An attribute of both indexes.
struct SharedAttribute<'a> {
    item: u16,
    attribute: &'a Attribute,
    /// For `category`: the merged code of each of the segment's codes, or [`NO_CODE`]. spec.md: CAT-3.
    merged_codes: Option<Vec<u32>>,
}

/// In place of the code of a category that the merged index does not have.
const NO_CODE: u32 = u32::MAX;

/// The merged code of each of the segment's codes.
fn merged_codes(own: &Index, merged: &CodesByName, number: usize) -> Result<Vec<u32>, Fault> {
    let categories = categories(own, item_of(number))?;
    let mut codes = Vec::new();
    reserve(&mut codes, categories.len() as u64).map_err(|error| no_memory(own, error))?;
    codes.extend(categories.iter().map(|name| merged.code_of(name).unwrap_or(NO_CODE)));
    Ok(codes)
}

impl SharedAttribute<'_> {
    /// Whether both values are the same.
    fn is_equal(&self, own: &[u8], merged: &[u8]) -> bool {
        let Some(codes) = &self.merged_codes else { return own == merged };
        let own = usize::try_from(little_endian(own)).ok().and_then(|code| codes.get(code));
        own.is_some_and(|&code| code != NO_CODE && u64::from(code) == little_endian(merged))
    }
}

impl IndexPair<'_> {
    fn shifted(&self, ordinals: &Range<u64>) -> Range<u64> {
        ordinals.start + self.first..ordinals.end + self.first
    }

    fn differs(&self, ordinal: u64, what: &str) {
        self.report.sample(
            ordinal,
            None,
            None,
            format!("the segment's index and the merged one disagree on its {what}"),
        );
    }

    fn entries(&self, ordinals: Range<u64>) -> Result<(), StoreError> {
        let own = locations(self.own, ordinals.clone())?;
        let merged = locations(self.merged, self.shifted(&ordinals))?;
        for ((ordinal, own), merged) in ordinals.zip(own).zip(merged) {
            if (Location { segment: self.segment, ..own }) != merged {
                self.differs(ordinal, "entry");
            }
        }
        Ok(())
    }

    fn attributes(&self, ordinals: Range<u64>) -> Result<(), StoreError> {
        let shifted = self.shifted(&ordinals);
        for attribute in &self.attributes {
            let item = attribute.item;
            let own_values = RawValues::of(self.own, item, &ordinals)?;
            let merged_values = RawValues::of(self.merged, item, &shifted)?;
            let own_valid = bits(self.own, SectionKind::Validity, item, &ordinals)?;
            let merged_valid = bits(self.merged, SectionKind::Validity, item, &shifted)?;
            let values = own_values.iter().zip(merged_values.iter());
            let valid = own_valid.into_iter().zip(merged_valid);
            for ((ordinal, (own, merged)), valid) in ordinals.clone().zip(values).zip(valid) {
                // The value of a sample without one is checked in each index.
                let agree = match valid {
                    (true, true) => attribute.is_equal(own, merged),
                    (own, merged) => own == merged,
                };
                if !agree {
                    self.differs(
                        ordinal,
                        &format!("attribute \"{}\"", escape_bytes(attribute.attribute.name.as_bytes())),
                    );
                }
            }
        }
        Ok(())
    }

    fn fields(&self, ordinals: Range<u64>) -> Result<(), StoreError> {
        for (number, field) in self.own.metadata.schema.fields().iter().enumerate() {
            let own = field_ranges(self.own, number, ordinals.clone())?;
            let merged = field_ranges(self.merged, number, self.shifted(&ordinals))?;
            for ((ordinal, own), merged) in ordinals.clone().zip(own).zip(merged) {
                if own != merged {
                    self.differs(ordinal, &format!("field \"{}\"", escape_bytes(field.name.as_bytes())));
                }
            }
        }
        Ok(())
    }

    fn keys(&self, ordinals: Range<u64>) -> Result<(), Fault> {
        if !self.own.frame.directory.is_keyed() {
            return Ok(());
        }
        let mut own = KeyCursor::new(self.own, ordinals.clone())?;
        let mut merged = KeyCursor::new(self.merged, self.shifted(&ordinals))?;
        while let (Some((ordinal, own)), Some((_, merged))) = (own.next_key()?, merged.next_key()?) {
            if own != merged {
                self.differs(ordinal, "key");
            }
        }
        Ok(())
    }
}
