//! `grainstore adopt`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use grainstore_converters::{AdoptOptions, AdoptSummary, ConvertError, OnBad, adopt, check_destination};
use grainstore_format::{ChunkSize, shown_path};
use grainstore_sources::Source;
use serde::Serialize;
use serde_json::Value;

use super::convert::parse_chunk_size;
use crate::Exit;
use crate::external::External;
use crate::packing::bar::Bar;
use crate::packing::hints::PackTask;
use crate::packing::left_out;
use crate::packing::source_args::{Paths, SourceArgs};
use crate::printer::Printer;
use crate::sizes::{counted, parse_jobs, per_second, shown_size};

/// Make a dataset of files that stay where they are: the index without the copy
///
/// For samples that are stored contiguously and uncompressed in TFRecord, tar or LMDB files. SRC is read once, for
/// checksums, and never written; DST contains only the index. Everything works on it as on any dataset, as long as the
/// files do not change: a file whose length or content changes is rejected by name.
///
/// Files outside the parent folder of DST are adopted only with --allow-external, and read only with it.
///
/// Samples keep the order of the files, so epochs of small samples mix better if the files were written in shuffled
/// order.
#[derive(clap::Args)]
#[command(override_usage = "grainstore adopt [OPTIONS] <SRC>... <DST>")]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    source: SourceArgs,
    /// Seed of the key hash; if keys come from strangers, pass a secret --seed, so that nobody can choose keys that
    /// collide
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Bytes of a chunk, the unit that epochs read in: a power of two from 4K to 1G
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = parse_chunk_size)]
    chunk_size: ChunkSize,
    /// Threads that read (default: 16 for one file, one for each core for several)
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Skip samples that cannot be read or understood; they are counted and listed
    #[arg(long)]
    skip_bad: bool,
    /// Replace the dataset DST once the new one is complete; anything else is never replaced
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct AdoptDocument<'a> {
    path: String,
    source: &'a str,
    samples: u64,
    files: u64,
    payload_bytes: u64,
    fingerprint: String,
    skipped: usize,
    skipped_samples: Vec<Value>,
    left_out_keys: u64,
    left_out_files: u64,
    notes: Vec<String>,
    warnings: Vec<String>,
    elapsed_s: f64,
    mb_per_s: f64,
}

impl AdoptArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the files cannot be adopted; then nothing is left behind.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let destination = self.paths.split()?.1;
        let (source, summary) = match self.adopt(destination, printer, external) {
            Ok(adopted) => adopted,
            Err(error) => return PackTask::Adopting.ended(error, destination, printer),
        };
        self.print(source.as_ref(), &summary, began.elapsed(), printer)?;
        Ok(Exit::Done)
    }

    fn adopt(
        &self,
        destination: &Path,
        printer: &Printer,
        external: External,
    ) -> Result<(Box<dyn Source>, AdoptSummary), ConvertError> {
        let sources = self.paths.sources();
        sources.iter().try_for_each(|source| check_destination(source, destination, self.overwrite))?;
        let source = self.source.open(sources, self.skip_bad, external, printer)?;
        let options = AdoptOptions {
            seed: self.seed,
            chunk_size: self.chunk_size,
            on_bad: if self.skip_bad { OnBad::Skip } else { OnBad::Stop },
            allow_external: external.is_allowed(),
            jobs: self.jobs,
            overwrite: self.overwrite,
        };
        let summary = adopt(source.as_ref(), destination, &options, &Bar::new(printer, "adopting"))?;
        Ok((source, summary))
    }

    fn print(
        &self,
        source: &dyn Source,
        summary: &AdoptSummary,
        elapsed: Duration,
        printer: &Printer,
    ) -> anyhow::Result<()> {
        let written = &summary.written;
        let elapsed_s = elapsed.as_secs_f64();
        let described = source.description();
        let destination = self.paths.split()?.1;
        if self.json {
            return printer.json(&AdoptDocument {
                path: shown_path(destination),
                source: described.kind,
                samples: written.samples,
                files: written.segments,
                payload_bytes: written.payload_bytes,
                fingerprint: written.fingerprint.to_string(),
                skipped: summary.skipped.len(),
                skipped_samples: left_out::listed(&summary.skipped),
                left_out_keys: described.not_packed.keys,
                left_out_files: described.not_packed.files,
                notes: left_out::texts(&described.notes),
                warnings: left_out::texts(&described.warnings),
                elapsed_s,
                mb_per_s: written.payload_bytes as f64 / 1e6 / elapsed_s.max(1e-9),
            });
        }
        let samples = counted(written.samples, "sample");
        let files = counted(written.segments, "file");
        let skipped = summary.skipped.len();
        let left = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        let destination = shown_path(destination);
        let size = shown_size(written.payload_bytes);
        printer.line(format!("{destination}: {samples} in {files} that stay where they are, {size}{left}"))?;
        left_out::warn_of(&summary.skipped, printer);
        left_out::print_notes(source, printer);
        if let Some(leftover) = &written.leftover {
            printer.warn(format!("{}: the replaced dataset could not be removed", shown_path(leftover)));
        }
        printer.note(format!("read {size} in {elapsed_s:.1} s, {}", per_second(written.payload_bytes, elapsed)));
        Ok(())
    }
}
