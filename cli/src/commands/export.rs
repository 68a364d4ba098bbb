//! `grainstore export`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::anyhow;
use clap::ValueEnum;
use grainstore_export::{
    Events, ExportError, ExportOptions, ExportSummary, Format, Progress, Selection, SkippedSample, export,
};
use grainstore_format::{Remedy, shown_path};
use grainstore_reader::{Expression, IoChoice, OnDamage, Reader, ReaderOptions};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::Exit;
use crate::errors::on_one_line;
use crate::external::External;
use crate::hints::{WithHint, hint};
use crate::interrupt;
use crate::printer::{Counted, Printer};
use crate::sizes::{counted, parse_jobs, parse_size, per_second, shown_size};

/// Number of skipped samples that are named on stderr; `--json` names all.
const SKIPPED_SHOWN_MAX: usize = 10;

/// Write a dataset out again as files, tar, TFRecord, LMDB or Parquet
///
/// Exports all samples, or those of --subset, with what --only and --exclude choose of them, in the order of their ordinals: the formats' own libraries can read the
/// result. A folder has one file for each field of each sample, named after the key, and attributes.jsonl if the
/// folders' names do not give the labels. A tar file can be read by WebDataset. A TFRecord file contains one
/// tf.train.Example per sample. LMDB stores the payloads by key, or Examples if there are attributes or several fields.
/// Parquet has a column for the key and for each attribute and field. OUT must not exist, and appears when it is
/// complete and durable; until then the data is in OUT.partial, which Ctrl-C removes. The order of samples and the
/// bytes of tar, TFRecord and Parquet files do not depend on --jobs.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// What to write: a folder; or one file, if the name ends in .tar, .tfrecord or .parquet
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The format of OUT (default: the one that OUT ends in: .tar, .tfrecord, .parquet or .lmdb)
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<To>,
    /// Only samples that match this, such as 'label in 3, 7..9 and key_hash < 0.9'
    #[arg(long, value_name = "EXPRESSION")]
    subset: Option<Expression>,
    /// Only these attributes and fields, comma-separated; the key stays
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// All attributes and fields but these, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Payload bytes of each file in a folder of tar, TFRecord or Parquet
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_shard_size)]
    shard_size: u64,
    /// Threads that write (default: one for each core)
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// An older generation of the dataset; the first one is 0
    #[arg(long, value_name = "N")]
    generation: Option<usize>,
    /// Skip samples that cannot be read or are damaged; they are counted and listed
    #[arg(long)]
    skip_damaged: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    Folder,
    Tar,
    #[value(name = "tfrecord")]
    TfRecord,
    Lmdb,
    Parquet,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ExportDocument {
    path: String,
    format: &'static str,
    samples: u64,
    payload_bytes: u64,
    files: u64,
    skipped: usize,
    skipped_samples: Vec<SkippedRow>,
    notes: Vec<String>,
    elapsed_s: f64,
    mb_per_s: f64,
}

#[derive(Serialize)]
struct SkippedRow {
    ordinal: u64,
    what: String,
}

impl ExportArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If OUT cannot be made; then nothing of it is left behind.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let options = ReaderOptions { io: IoChoice::Auto, generation: self.generation, ..external.reader_options() };
        let format = self.format()?;
        let reader = Reader::open(&self.path, options)?;
        let selection = match &self.subset {
            None => Selection::all(&reader),
            Some(expression) => expression.select_from(reader.collection())?.into(),
        };
        if let (Some(expression), 0) = (&self.subset, selection.len()) {
            let error = anyhow!("no sample is in the subset {expression}; nothing was written");
            return Err(error).hint("`grainstore ls` shows keys and attributes");
        }
        let bar = Bar(printer.progress(Counted::Things("samples"), Some(selection.len())));
        bar.0.set_message("checking names");
        let exported = export(&reader, &selection, &self.out, &self.options(format), &bar);
        bar.0.finish_and_clear();
        let summary = match exported {
            Ok(summary) => summary,
            Err(ExportError::Interrupted) => return Ok(Exit::Interrupted),
            Err(error) => return with_hint(error),
        };
        self.print(printer, format, summary, began)?;
        Ok(Exit::Done)
    }

    /// The format that was asked for, or that OUT's name says.
    fn format(&self) -> anyhow::Result<Format> {
        Ok(match self.to {
            Some(To::Folder) => Format::Folder,
            Some(To::Tar) => Format::Tar,
            Some(To::TfRecord) => Format::TfRecord,
            Some(To::Lmdb) => Format::Lmdb,
            Some(To::Parquet) => Format::Parquet,
            None => {
                let error = || anyhow!("{}: its name does not say which format to write", shown_path(&self.out));
                let hint = "--to names it: folder, tar, tfrecord, lmdb or parquet";
                Format::of_name(&self.out).ok_or_else(error).hint(hint)?
            }
        })
    }

    fn options(&self, format: Format) -> ExportOptions {
        let on_damage = if self.skip_damaged { OnDamage::Skip } else { OnDamage::Fail };
        let (only, exclude) = (self.only.clone(), self.exclude.clone());
        let (shard_len, jobs) = (self.shard_size, self.jobs);
        ExportOptions { shard_len, jobs, on_damage, only, exclude, ..ExportOptions::to(format) }
    }

    fn print(&self, printer: &Printer, format: Format, summary: ExportSummary, began: Instant) -> anyhow::Result<()> {
        let elapsed = began.elapsed();
        if self.json {
            return printer.json(&self.report(format, summary, elapsed.as_secs_f64()));
        }
        let skipped = summary.skipped.len();
        let left_out = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        let samples = counted(summary.samples, "sample");
        let files = counted(summary.files, "file");
        let size = shown_size(summary.payload_bytes);
        printer.line(format_args!("{}: {samples}, {files}, {size}{left_out}", shown_path(&self.out)))?;
        for SkippedSample { error, .. } in summary.skipped.iter().take(SKIPPED_SHOWN_MAX) {
            printer.warn(format_args!("skipped: {}", on_one_line(error)));
        }
        if skipped > SKIPPED_SHOWN_MAX {
            printer.warn(format_args!("skipped {} more; --json names all", skipped - SKIPPED_SHOWN_MAX));
        }
        summary.notes.iter().for_each(|note| printer.warn(note));
        let rate = per_second(summary.payload_bytes, elapsed);
        printer.note(format_args!("exported {size} in {:.1} s, {rate}", elapsed.as_secs_f64()));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn report(&self, format: Format, summary: ExportSummary, elapsed_s: f64) -> ExportDocument {
        let row = |skipped: &SkippedSample| SkippedRow { ordinal: skipped.ordinal, what: on_one_line(&skipped.error) };
        ExportDocument {
            path: shown_path(&self.out),
            format: format.name(),
            samples: summary.samples,
            payload_bytes: summary.payload_bytes,
            files: summary.files,
            skipped: summary.skipped.len(),
            skipped_samples: summary.skipped.iter().map(row).collect(),
            notes: summary.notes,
            elapsed_s,
            mb_per_s: summary.payload_bytes as f64 / 1e6 / elapsed_s.max(1e-9),
        }
    }
}

/// A progress bar that also stops the export on Ctrl-C.
struct Bar(ProgressBar);

impl Events for Bar {
    fn on_progress(&self, progress: Progress) {
        self.0.set_message(format!("writing {}", shown_size(progress.payload_bytes)));
        self.0.set_position(progress.samples);
    }

    fn on_finish(&self) {
        self.0.set_message("syncing");
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}

/// The error with the flag or the action that helps.
fn with_hint(error: ExportError) -> anyhow::Result<Exit> {
    let hint = match error.remedy() {
        Some(Remedy::FreeSpace) => {
            "the disk is full: free space or choose an OUT on another disk; what was written has been removed"
                .to_owned()
        }
        Some(Remedy::UseOtherDestination) => "choose another OUT".to_owned(),
        Some(remedy) => hint(&remedy),
        None => return Err(error.into()),
    };
    // All errors except the reader's include their cause: shown as a chain, it would be printed twice.
    let error = match error {
        ExportError::Read(error) => error.into(),
        error => anyhow::Error::msg(error.to_string()),
    };
    Err::<Exit, _>(error).hint(hint)
}

fn parse_shard_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a file has 1 byte of payload or more".to_owned()),
        size => Ok(size),
    }
}
