//! Attributes and fields of an index. spec.md: DIR-3, ATR-1 to ATR-3, CAT-1, CAT-2, FLD-1
//! to FLD-4, CON-6.

use std::ops::Range;

use grainstore_format::{AttributeType, FieldType, SectionKind, escape_bytes};
use rayon::prelude::*;

use super::report::FileReport;
use super::slices::{Fault, PART_LEN, RawValues, bits, categories, locations, parallel_parts, required_column};
use crate::StoreError;
use crate::columns::{has_field_sections, item_of};
use crate::index::Index;
use crate::index::numbers::little_endian;

/// Checks all columns of an index.
pub(super) fn check_columns(report: &FileReport<'_>, index: &Index) {
    let schema = &index.metadata.schema;
    schema.attributes().par_iter().enumerate().for_each(|(number, attribute)| {
        let what = format!("attribute \"{}\"", escape_bytes(attribute.name.as_bytes()));
        let present = check_bitmap(report, index, SectionKind::Validity, item_of(number), &what);
        if present == Some(0) && index.record(SectionKind::Categories, item_of(number)).is_some() {
            report.damage(format!("{what}: it has categories, but no sample has it"));
        }
        let category_count = check_categories(report, index, item_of(number), &what);
        let attribute = AttributeToCheck { item: item_of(number), kind: &attribute.kind, what: &what, category_count };
        parallel_parts(0..index.sample_count(), PART_LEN).for_each(|ordinals| {
            if report.is_stopped() {
                return;
            }
            report.readable(check_values(report, index, &attribute, ordinals));
        });
    });
    check_fields(report, index);
}

/// Checks that unused bits are zero, and that some bit is not set: otherwise there would be no bitmap. Returns how many
/// bits are set; `None` without a bitmap, or if it cannot be read. spec.md: ATR-2, FLD-3, CON-6.
fn check_bitmap(report: &FileReport<'_>, index: &Index, kind: SectionKind, item: u16, what: &str) -> Option<u64> {
    let record = index.record(kind, item)?;
    let used = index.sample_count() % 8;
    let sums = parallel_parts(0..record.len, PART_LEN).map(|range| {
        if report.is_stopped() {
            return None;
        }
        let last = range.end == record.len;
        let bytes = report.readable(index.read_uncached(kind, item, range))?;
        let tail = bytes.last().copied().unwrap_or(0);
        if last && used > 0 && tail >> used != 0 {
            report.damage(format!("{what}: unused bits of section {} are set", record.label()));
        }
        Some(bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>())
    });
    let ones = sums.reduce(|| Some(0), |a, b| Some(a? + b?))?;
    if ones >= index.sample_count() {
        report.damage(format!("{what}: section {} is present, but all samples have a value", record.label()));
    }
    Some(ones)
}

/// An attribute whose values are checked.
struct AttributeToCheck<'a> {
    item: u16,
    kind: &'a AttributeType,
    what: &'a str,
    /// `None` if the categories cannot be read.
    category_count: Option<u64>,
}

/// Checks the categories of an attribute; returns how many there are. spec.md: CAT-1.
fn check_categories(report: &FileReport<'_>, index: &Index, item: u16, what: &str) -> Option<u64> {
    match categories(index, item) {
        Ok(categories) => return Some(categories.len() as u64),
        Err(Fault::Wrong(error)) => report.damage(format!("{what}: {error}")),
        Err(Fault::Unreadable(error)) => drop(report.readable::<()>(Err(error))),
        Err(Fault::Stopped) => {}
    }
    None
}

/// spec.md: ATR-1, ATR-2, CAT-2.
fn check_values(
    report: &FileReport<'_>,
    index: &Index,
    attribute: &AttributeToCheck<'_>,
    ordinals: Range<u64>,
) -> Result<(), StoreError> {
    let AttributeToCheck { item, kind, what, category_count } = *attribute;
    let values = RawValues::of(index, item, &ordinals)?;
    let valid = bits(index, SectionKind::Validity, item, &ordinals)?;
    for ((ordinal, value), valid) in ordinals.zip(values.iter()).zip(valid) {
        let number = little_endian(value);
        if !valid && value.iter().any(|&byte| byte != 0) {
            report.sample(ordinal, None, None, format!("{what} is absent, but its value is not 0"));
        } else if *kind == AttributeType::Bool && number > 1 {
            report.sample(ordinal, None, None, format!("{what} is {number}, which is not a bool"));
        }
        if let (true, AttributeType::Category, Some(count)) = (valid, kind, category_count)
            && number >= count
        {
            report.sample(ordinal, None, None, format!("{what} has code {number}, there are {count} categories"));
        }
    }
    Ok(())
}

/// spec.md: FLD-1 to FLD-4.
fn check_fields(report: &FileReport<'_>, index: &Index) {
    let fields = index.metadata.schema.fields();
    fields.par_iter().enumerate().for_each(|(number, field)| {
        let what = format!("field \"{}\"", escape_bytes(field.name.as_bytes()));
        check_bitmap(report, index, SectionKind::FieldValidity, item_of(number), &what);
        parallel_parts(0..index.sample_count(), PART_LEN).for_each(|ordinals| {
            if !report.is_stopped() {
                let _ = report.readable(check_field(report, index, (number, &field.kind, &what), ordinals));
            }
        });
    });
}

fn check_field(
    report: &FileReport<'_>,
    index: &Index,
    (number, kind, what): (usize, &FieldType, &str),
    ordinals: Range<u64>,
) -> Result<(), StoreError> {
    let fields = field_ranges(index, number, ordinals.clone())?;
    for (ordinal, field) in ordinals.zip(fields) {
        let FieldRange { valid, offset, len, payload_len } = field;
        if !valid && (offset, len) != (0, 0) {
            report.sample(ordinal, None, None, format!("{what} is absent, but has {len} bytes at {offset}"));
        }
        if valid && offset.checked_add(len).is_none_or(|end| end > payload_len) {
            let text = format!("{what} is {len} bytes at {offset}, the payload has {payload_len}");
            report.sample(ordinal, None, None, text);
        }
        if valid && !kind.allows_len(len) {
            report.sample(ordinal, None, None, format!("{what} is {len} bytes, its type is {}", kind.name()));
        }
    }
    Ok(())
}

/// The range of a field in a sample's payload, with or without sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldRange {
    pub(super) valid: bool,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) payload_len: u64,
}

/// The ranges of a field in some samples. spec.md: FLD-1.
pub(super) fn field_ranges(index: &Index, number: usize, ordinals: Range<u64>) -> Result<Vec<FieldRange>, StoreError> {
    let item = item_of(number);
    let payloads = locations(index, ordinals.clone())?.into_iter().map(|location| location.raw_len());
    if !has_field_sections(index) {
        return Ok(payloads.map(|len| FieldRange { valid: true, offset: 0, len, payload_len: len }).collect());
    }
    let offsets = required_column(index, SectionKind::FieldOffset, item, &ordinals)?;
    let lens = required_column(index, SectionKind::FieldLen, item, &ordinals)?;
    let valid = bits(index, SectionKind::FieldValidity, item, &ordinals)?;
    let all = payloads.zip(offsets).zip(lens).zip(valid);
    Ok(all.map(|(((payload_len, offset), len), valid)| FieldRange { valid, offset, len, payload_len }).collect())
}
