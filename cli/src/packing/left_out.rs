//! Reports samples that were not packed, and notes and warnings of a source.

use std::path::Path;

use grainstore_format::shown_path;
use grainstore_sources::{Remark, Skipped, Source};

use crate::hints::hint;
use crate::printer::Printer;

/// Number of skipped samples that are named on stderr; `--json` names all.
const SHOWN_MAX: usize = 10;

/// Names what was skipped.
pub(crate) fn warn_of(skipped: &[Skipped], printer: &Printer) {
    for skipped in skipped.iter().take(SHOWN_MAX) {
        printer.warn(format!("skipped {}: {}", shown_path(&skipped.path), shown(&skipped.why)));
    }
    if skipped.len() > SHOWN_MAX {
        printer.warn(format!("skipped {} more; --json lists them all", skipped.len() - SHOWN_MAX));
    }
}

/// Prints the notes and warnings of a source.
pub(crate) fn print_notes(source: &dyn Source, printer: &Printer) {
    let description = source.description();
    for note in &description.notes {
        printer.note(shown(note));
    }
    for warning in &description.warnings {
        printer.warn(shown(warning));
    }
}

/// A remark with the command line's text for its remedy.
fn shown(remark: &Remark) -> String {
    match remark.remedy.as_deref() {
        Some(remedy) => format!("{remark}; {}", hint(remedy)),
        None => remark.to_string(),
    }
}

/// Notes or warnings for `--json`.
pub(crate) fn texts(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(shown).collect()
}

/// Skipped samples for `--json`: each with its path and the reason.
pub(crate) fn listed(skipped: &[Skipped]) -> Vec<serde_json::Value> {
    let one = |skipped: &Skipped| serde_json::json!({"path": text_of(&skipped.path), "why": shown(&skipped.why)});
    skipped.iter().map(one).collect()
}

/// A path as a JSON string: unchanged if it is UTF-8, otherwise escaped.
pub(crate) fn text_of(path: &Path) -> String {
    path.to_str().map_or_else(|| shown_path(path), str::to_owned)
}
