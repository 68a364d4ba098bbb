//! Entries against segments, chunks, long table and raw lengths. spec.md: sections 6.1 to 6.4.

use grainstore_format::{Entry, SectionKind};
use rayon::prelude::*;

use super::report::FileReport;
use super::slices::{PART_LEN, key_of, parallel_parts};
use crate::StoreError;
use crate::entry_rules::{EntryRules, EntrySlice, EntryTotals};
use crate::index::Index;
use crate::load::{check_totals, read_chunks};

/// Checks all entries of an index.
pub(super) fn check_entries(report: &FileReport<'_>, index: &Index, external: &[bool]) {
    // A page that cannot be read has been reported; a broken rule is reported here.
    let report_broken_rule = |error: StoreError| {
        if is_broken_rule(&error) {
            report.damage(error.without_path())
        } else {
            report.readable(Err(error)).unwrap_or_default()
        }
    };
    let (chunks, long) = match (read_chunks(index), index.long()) {
        (Ok(chunks), Ok(long)) => (chunks, long),
        (chunks, long) => {
            if let Err(error) = chunks {
                report_broken_rule(error);
            }
            if let Err(error) = long {
                report_broken_rule(error);
            }
            return;
        }
    };
    let chunk_size = index.frame.geometry().chunk_size;
    let rules = EntryRules { table: &index.table, external, chunks: &chunks, long, chunk_size };
    let sums =
        parallel_parts(0..index.sample_count(), PART_LEN).map(|ordinals| check_part(report, index, &rules, ordinals));
    // If a part could not be read, the totals are unknown.
    let sum = sums.reduce(|| Some(EntryTotals::default()), |a, b| Some(a?.plus(b?)));
    if let Some(totals) = sum
        && let Err(error) = check_totals(index, long, totals)
    {
        report.damage(error.without_path());
    }
}

/// Whether an error is a broken rule, not a page that cannot be read.
fn is_broken_rule(error: &StoreError) -> bool {
    use grainstore_format::FormatError::Damaged;
    matches!(error, StoreError::Format { source: Damaged { what, .. }, .. } if *what != "index")
}

fn check_part(
    report: &FileReport<'_>,
    index: &Index,
    rules: &EntryRules<'_>,
    ordinals: std::ops::Range<u64>,
) -> Option<EntryTotals> {
    if report.is_stopped() {
        return None;
    }
    let width = Entry::LEN as u64;
    // One more in front: samples must not overlap where two parts meet.
    let from = ordinals.start.saturating_sub(1);
    let bytes = index.read_uncached(SectionKind::Entries, 0, from * width..ordinals.end * width);
    let bytes = report.readable(bytes)?;
    let raw_len = match index.record(SectionKind::RawLen, 0) {
        Some(_) => {
            let bytes = index.read_uncached(SectionKind::RawLen, 0, 4 * ordinals.start..4 * ordinals.end);
            Some(report.readable(bytes)?)
        }
        None => None,
    };
    let all = Entry::slice_of(&bytes);
    let (before, entries) = if from < ordinals.start { (all.first().copied(), all.get(1..)?) } else { (None, all) };
    let slice = EntrySlice::new(ordinals.start, entries, before, raw_len.as_deref())?;
    let mut report_rule = |ordinal: u64, what: std::fmt::Arguments<'_>| {
        report.sample(ordinal, key_of(index, ordinal), None, what.to_string());
    };
    Some(rules.check(slice, &mut report_rule))
}
