//! The result of a conversion, as text and as JSON.

use std::path::Path;
use std::time::Duration;

use grainstore_converters::{ConvertSummary, SameContent};
use grainstore_format::shown_path;
use grainstore_sources::Source;
use serde::Serialize;
use serde_json::Value;

use super::hints::PackTask;
use super::left_out;
use super::pack_args::{mixing_name, mixing_note};
use crate::printer::Printer;
use crate::sizes::{counted, per_second, shown_size};

/// What `--json` prints.
#[derive(Serialize)]
struct PackDocument<'a> {
    path: String,
    source: &'a str,
    samples: u64,
    segments: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    fingerprint: String,
    /// Null if there are no classes.
    classes: Option<usize>,
    fields: Vec<&'a str>,
    attributes: Vec<&'a str>,
    keyed: bool,
    order: &'a str,
    skipped: usize,
    skipped_samples: Vec<Value>,
    duplicates: u64,
    content_duplicates: u64,
    content_duplicates_with_other_attributes: u64,
    left_out_keys: u64,
    left_out_files: u64,
    resumed_samples: u64,
    notes: Vec<String>,
    warnings: Vec<String>,
    elapsed_s: f64,
    mb_per_s: f64,
}

/// A finished conversion.
pub(crate) struct FinishedPacking<'a> {
    pub(crate) work: PackTask,
    pub(crate) destination: &'a Path,
    pub(crate) source: &'a dyn Source,
    pub(crate) summary: &'a ConvertSummary,
    pub(crate) elapsed: Duration,
    /// Another note for the user.
    pub(crate) note: Option<String>,
}

impl FinishedPacking<'_> {
    /// Prints the line of data, and the messages.
    pub(crate) fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let summary = self.summary;
        let written = &summary.written;
        let samples = counted(written.samples, "sample");
        let segments = counted(written.segments, "segment");
        let skipped = summary.skipped.len();
        let left_out = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        let added = if self.work == PackTask::Adding { " added" } else { "" };
        let destination = shown_path(self.destination);
        let size = shown_size(written.stored_bytes);
        printer.line(format!("{destination}: {samples}{added}, {segments}, {size}{left_out}"))?;
        self.talk(printer);
        let size = shown_size(written.payload_bytes);
        let rate = per_second(written.payload_bytes, self.elapsed);
        printer.note(format!("packed {size} in {:.1} s, {rate}", self.elapsed.as_secs_f64()));
        Ok(())
    }

    /// Prints what else the user should know.
    fn talk(&self, printer: &Printer) {
        let summary = self.summary;
        left_out::warn_of(&summary.skipped, printer);
        if summary.duplicate_count > 0 {
            printer.warn(format!("skipped because another sample has the same key: {}", summary.duplicate_count));
        }
        let SameContent { samples, with_other_attributes } = summary.same_content;
        if samples > 0 {
            printer.warn(format!("skipped as duplicates by content: {samples}"));
        }
        if with_other_attributes > 0 {
            printer.warn(format!("of these with other attributes than the sample that stays: {with_other_attributes}"));
        }
        left_out::print_notes(self.source, printer);
        if let Some(note) = mixing_note(summary.mixing) {
            printer.note(note);
        }
        if let Some(note) = &self.note {
            printer.note(note);
        }
        if summary.resumed_count > 0 {
            printer.note(format!("{} were packed before", counted(summary.resumed_count, "sample")));
        }
        if let Some(leftover) = &summary.written.leftover {
            printer.warn(format!("{}: the replaced dataset could not be removed", shown_path(leftover)));
        }
    }

    /// The document for `--json`.
    pub(crate) fn print_json(&self, printer: &Printer) -> anyhow::Result<()> {
        let source = self.source;
        let summary = self.summary;
        let written = &summary.written;
        let elapsed_s = self.elapsed.as_secs_f64();
        let described = source.description();
        let metadata = &described.metadata;
        printer.json(&PackDocument {
            path: shown_path(self.destination),
            source: described.kind,
            samples: written.samples,
            segments: written.segments,
            payload_bytes: written.payload_bytes,
            stored_bytes: written.stored_bytes,
            fingerprint: written.fingerprint.to_string(),
            classes: metadata.user.member("class_names")?.and_then(|names| names.as_array().map(Vec::len)),
            fields: metadata.schema.fields().iter().map(|field| field.name.as_str()).collect(),
            attributes: metadata.schema.attributes().iter().map(|attribute| attribute.name.as_str()).collect(),
            keyed: described.is_keyed,
            order: mixing_name(summary.mixing),
            skipped: summary.skipped.len(),
            skipped_samples: left_out::listed(&summary.skipped),
            duplicates: summary.duplicate_count,
            content_duplicates: summary.same_content.samples,
            content_duplicates_with_other_attributes: summary.same_content.with_other_attributes,
            left_out_keys: described.not_packed.keys,
            left_out_files: described.not_packed.files,
            resumed_samples: summary.resumed_count,
            notes: left_out::texts(&described.notes).into_iter().chain(self.note.clone()).collect(),
            warnings: left_out::texts(&described.warnings),
            elapsed_s,
            mb_per_s: written.payload_bytes as f64 / 1e6 / elapsed_s.max(1e-9),
        })
    }
}
