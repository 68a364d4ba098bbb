//! Checks that the merged index and a segment's own index agree. spec.md: MRG-1, HDR-2, MET-1.

use std::collections::HashMap;
use std::ops::Range;

use grainstore_format::{Attribute, AttributeType, SectionKind, escape_bytes};
use rayon::prelude::*;

use super::columns::field_ranges;
use super::report::FileReport;
use super::slices::{Fault, KeyCursor, PART_LEN, RawValues, bits, categories, locations, parallel_parts};
use crate::StoreError;
use crate::columns::item_of;
use crate::index::Index;
use crate::index::numbers::little_endian;
use crate::location::Location;

/// Compares a segment's own index with its part of the merged one.
pub(super) fn check_agreement(report: &FileReport<'_>, own: &Index, merged: &Index, segment: usize) {
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
    let attributes = attributes.filter_map(|(number, attribute)| SharedAttribute::of(own, merged, number, attribute));
    let attributes = attributes.collect();
    let pair = IndexPair { report, own, merged, first: merged.table.ordinals(segment).start, segment, attributes };
    parallel_parts(0..own.sample_count(), PART_LEN).for_each(|ordinals| {
        if report.is_stopped() {
            return;
        }
        report.readable(pair.entries(ordinals.clone()));
        report.readable(pair.attributes(ordinals.clone()));
        report.readable(pair.fields(ordinals.clone()));
        // Keys that are damaged have been reported.
        if let Err(Fault::Unreadable(error)) = pair.keys(ordinals) {
            report.readable::<()>(Err(error));
        }
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
    name: &'a str,
    /// For `category`: the merged code of each of the segment's codes. spec.md: CAT-3.
    merged_codes: Option<Vec<Option<u64>>>,
}

impl<'a> SharedAttribute<'a> {
    /// `None` if the categories of one index cannot be read or are damaged, which has been reported.
    fn of(own: &Index, merged: &Index, number: usize, attribute: &'a Attribute) -> Option<Self> {
        let item = item_of(number);
        let merged_codes = if attribute.kind == AttributeType::Category {
            let (own, merged) = (categories(own, item)?.ok()?, categories(merged, item)?.ok()?);
            let codes: HashMap<&str, u64> = merged.iter().zip(0..).collect();
            Some(own.iter().map(|name| codes.get(name).copied()).collect())
        } else {
            None
        };
        Some(Self { item, name: &attribute.name, merged_codes })
    }

    /// Whether both values are the same.
    fn is_equal(&self, own: &[u8], merged: &[u8]) -> bool {
        let Some(codes) = &self.merged_codes else { return own == merged };
        let own = usize::try_from(little_endian(own)).ok().and_then(|code| codes.get(code));
        own.copied().flatten() == Some(little_endian(merged))
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
                    self.differs(ordinal, &format!("attribute \"{}\"", escape_bytes(attribute.name.as_bytes())));
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
