//! `grainstore append`.

use std::path::Path;
use std::time::Instant;

use grainstore_converters::{ConvertError, append, nothing_added};
use grainstore_format::shown_path;
use grainstore_sources::attributes::with_attributes;
use serde::Serialize;

use crate::Exit;
use crate::errors::on_one_line;
use crate::external::External;
use crate::packing::bar::Bar;
use crate::packing::hints::PackTask;
use crate::packing::pack_args::PackArgs;
use crate::packing::report::FinishedPacking;
use crate::packing::source_args::{AttributeArgs, Packed, Paths, SourceArgs, coverage_note};
use crate::printer::Printer;

/// Add samples to a dataset, as a new generation
///
/// Takes the same sources as `convert`. The samples are added after the existing ones, with the same attributes and
/// fields; new class names are added after the old ones and labels are renumbered to match. Readers that have the
/// dataset open keep reading what they opened, and a saved state of an epoch resumes with its own generation. Until
/// everything is done, and after any failure, DST is unchanged. A source without samples is nothing to add: the command
/// reports that and exits with 0.
#[derive(clap::Args)]
#[command(override_usage = "grainstore append [OPTIONS] <SRC>... <DST>")]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    pack: PackArgs,
    /// Seed of the order in which the new samples are stored
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// What `--json` prints if there was nothing to add.
#[derive(Serialize)]
struct NothingDocument {
    path: String,
    samples: u64,
    segments: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    fingerprint: String,
    notes: [String; 1],
}

impl AppendArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the samples cannot be added; then the dataset is unchanged.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let dataset = self.paths.split()?.1;
        let (source, summary, note) = match self.add(dataset, external, printer) {
            Ok(added) => added,
            Err(error) if error.is_nothing_to_add() => return self.nothing(&error, dataset, printer),
            Err(error) => return PackTask::Adding.ended(error, dataset, printer),
        };
        let made = FinishedPacking {
            work: PackTask::Adding,
            destination: dataset,
            source: source.as_ref(),
            summary: &summary,
            elapsed: began.elapsed(),
            note,
        };
        if self.json {
            made.print_json(printer)?
        } else {
            made.print(printer)?
        }
        Ok(Exit::Done)
    }

    /// Reports that the source has nothing to add: a day without data is no failure. The dataset stays as it is.
    fn nothing(&self, why: &ConvertError, dataset: &Path, printer: &Printer) -> anyhow::Result<Exit> {
        let unchanged = nothing_added(dataset)?;
        let why = on_one_line(why);
        if self.json {
            printer.json(&NothingDocument {
                path: shown_path(dataset),
                samples: unchanged.samples,
                segments: unchanged.segments,
                payload_bytes: unchanged.payload_bytes,
                stored_bytes: unchanged.stored_bytes,
                fingerprint: unchanged.fingerprint.to_string(),
                notes: [why],
            })?;
        } else {
            printer.line(format_args!("{}: nothing to add", shown_path(dataset)))?;
            printer.note(why);
        }
        Ok(Exit::Done)
    }

    fn add(&self, dataset: &Path, external: External, printer: &Printer) -> Result<Packed, ConvertError> {
        let table = self.attributes.read()?;
        let source = self.source.open(self.paths.sources(), self.pack.skip_bad, external, printer)?;
        let source = with_attributes(source, table.as_ref())?;
        let bar = Bar::new(printer, "adding");
        let summary = append(source.as_ref(), dataset, &self.pack.options(self.seed), &bar)?;
        let note = coverage_note(&table, dataset, summary.written.samples)?;
        Ok((source, summary, note))
    }
}
