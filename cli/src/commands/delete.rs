//! `grainstore delete`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::ArgGroup;
use grainstore_converters::{Deletion, Doomed};
use grainstore_format::shown_path;
use grainstore_reader::Expression;
use serde::Serialize;

use crate::Exit;
use crate::packing::bar::Bar;
use crate::packing::hints::PackTask;
use crate::printer::Printer;
use crate::sizes::{counted, shown_size};

/// Delete samples of a dataset, as a new generation without them
///
/// Segments that hold none of them stay as they are; what stays of the others is copied to new segments, each sample
/// after its checksum. Until everything is done, and after any failure, the dataset is unchanged. The old files stay
/// until the next `append` or `delete`, for readers that have the dataset open; --free removes them at once. Ordinals of
/// later samples change, so a state that was saved before is refused, and generations that held a deleted sample are
/// gone.
#[derive(clap::Args)]
// The group that comes by itself has all arguments, so that DATASET alone would do.
#[group(skip)]
#[command(group(ArgGroup::new("which").args(["subset", "keys", "ordinals", "free"]).required(true).multiple(true)))]
pub(crate) struct DeleteArgs {
    /// Dataset directory
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// Delete the samples for which this is true, such as 'label == 3'
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["keys", "ordinals"])]
    subset: Option<Expression>,
    /// Delete the samples with the keys in this file, one on each line
    #[arg(long, value_name = "FILE", conflicts_with = "ordinals")]
    keys: Option<PathBuf>,
    /// Delete the samples with the ordinals in this file, one on each line
    #[arg(long, value_name = "FILE")]
    ordinals: Option<PathBuf>,
    /// Only print how many samples, and how many bytes, would be deleted
    #[arg(long, conflicts_with = "free")]
    dry_run: bool,
    /// Remove the files that the dataset does without at once, also those of earlier deletions; readers that have it open
    /// fail. Alone, it only does this
    #[arg(long)]
    free: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct DeleteDocument {
    path: String,
    dry_run: bool,
    deleted: u64,
    deleted_bytes: u64,
    samples: u64,
    segments: Option<u64>,
    copied_segments: u64,
    copied_bytes: u64,
    replaced_bytes: u64,
    freed: bool,
    fingerprint: String,
    elapsed_s: f64,
}

impl DeleteArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the samples cannot be deleted; then the dataset is unchanged.
    pub(crate) fn run(&self, printer: &Printer) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let keys = self.keys.as_deref().map(lines).transpose()?;
        let ordinals = self.ordinals.as_deref().map(numbers).transpose()?;
        let doomed = match (&self.subset, &keys, &ordinals) {
            (Some(subset), ..) => Doomed::Subset(subset),
            (_, Some(keys), _) => Doomed::Keys(keys),
            (_, _, Some(ordinals)) => Doomed::Ordinals(ordinals),
            _ => Doomed::Nothing,
        };
        let deletion = match Deletion::of(&self.path, &doomed) {
            Ok(deletion) => deletion,
            Err(error) => return PackTask::Deleting.ended(error, &self.path, printer),
        };
        let mut document = DeleteDocument {
            path: shown_path(&self.path),
            dry_run: self.dry_run,
            deleted: deletion.samples(),
            deleted_bytes: deletion.stored_bytes(),
            samples: deletion.samples_left(),
            segments: None,
            copied_segments: 0,
            copied_bytes: 0,
            replaced_bytes: 0,
            freed: false,
            fingerprint: deletion.fingerprint().to_string(),
            elapsed_s: 0.0,
        };
        if !self.dry_run {
            let summary = match deletion.run(self.free, &Bar::new(printer, "copying")) {
                Ok(summary) => summary,
                Err(error) => return PackTask::Deleting.ended(error, &self.path, printer),
            };
            document.segments = Some(summary.segments);
            document.copied_segments = summary.copied_segments;
            document.copied_bytes = summary.copied_bytes;
            document.replaced_bytes = summary.replaced_bytes;
            document.freed = summary.is_freed;
            document.fingerprint = summary.fingerprint.to_string();
        }
        document.elapsed_s = began.elapsed().as_secs_f64();
        if self.json {
            printer.json(&document)?;
            return Ok(Exit::Done);
        }
        self.print(&document, printer)?;
        Ok(Exit::Done)
    }

    fn print(&self, document: &DeleteDocument, printer: &Printer) -> anyhow::Result<()> {
        let DeleteDocument { path, deleted, deleted_bytes, samples, .. } = document;
        let would_be = if self.dry_run { "would be " } else { "" };
        let deleted = counted(*deleted, "sample");
        printer
            .line(format!("{path}: {deleted} {would_be}deleted ({}), {samples} left", shown_size(*deleted_bytes)))?;
        if document.copied_segments > 0 {
            let segments = counted(document.copied_segments, "segment");
            printer.note(format!("{} of {segments} copied", shown_size(document.copied_bytes)));
        }
        if document.replaced_bytes > 0 && !document.freed {
            printer.note(format!(
                "{} of old files stay until the next `append` or `delete`, for readers that have the dataset open",
                shown_size(document.replaced_bytes)
            ));
            printer.hint("`grainstore delete DATASET --free` removes them at once");
        }
        Ok(())
    }
}

/// The lines of a file that are not empty. A key may end with a carriage return: one belongs to the line's end only if
/// all lines end with one.
fn lines(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let bytes = std::fs::read(file).with_context(|| shown_path(file))?;
    let ended = || bytes.split_inclusive(|&byte| byte == b'\n');
    let is_crlf = ended().all(|line| line.ends_with(b"\r\n") || !line.ends_with(b"\n"));
    let end: &[u8] = if is_crlf { b"\r\n" } else { b"\n" };
    let lines = ended().map(|line| line.strip_suffix(end).unwrap_or(line));
    Ok(lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

fn numbers(file: &Path) -> anyhow::Result<Vec<u64>> {
    let number = |line: Vec<u8>| {
        let text = String::from_utf8_lossy(&line).into_owned();
        let shown = grainstore_format::escape_bytes(text.as_bytes());
        text.trim().parse().map_err(|_| anyhow!("{}: \"{shown}\" is not an ordinal", shown_path(file)))
    };
    lines(file)?.into_iter().map(number).collect()
}
