//! `grainstore convert`.

use std::path::Path;
use std::time::Instant;

use grainstore_converters::{ConvertError, ConvertOptions, OnKept, check_destination, check_kept, convert};
use grainstore_format::{Alignment, ChunkSize};
use grainstore_sources::attributes::with_attributes;

use crate::Exit;
use crate::external::External;
use crate::packing::bar::Bar;
use crate::packing::hints::PackTask;
use crate::packing::pack_args::PackArgs;
use crate::packing::report::FinishedPacking;
use crate::packing::source_args::{AttributeArgs, Packed, Paths, SourceArgs, coverage_note};
use crate::printer::Printer;
use crate::sizes::parse_size;

/// Pack data into a dataset: a folder, TFRecord, LMDB, tar or Parquet files, other datasets, or a stream
///
/// A folder: every file becomes a sample, its path below SRC is the key, its bytes are the payload. If all files are at
/// CLASS/FILE, each sample also has the attribute `label`, the number of its class in the order of the names, and the
/// dataset has `class_names`; the payload's field is called `image` if all files are pictures, otherwise `data`.
/// Several folders become one dataset with an attribute `split`.
///
/// TFRecord: features become fields and attributes. LMDB: keys and values. tar: files with the same stem form a sample,
/// as in WebDataset. Parquet: columns of bytes and text become fields, numbers become attributes. The mapping is
/// printed; --map changes it.
///
/// Datasets: their samples are packed anew, with keys, attributes, fields and user metadata. Several become one;
/// --subset chooses samples, --only and --exclude attributes and fields.
///
/// DST appears when it is complete and durable; until then the data is in DST.partial. After Ctrl-C or a failure,
/// --resume continues with what is there and --restart discards it; if no segment was finished, nothing is left behind.
/// The same SRC, order, seed and options give the same bytes.
#[derive(clap::Args)]
#[command(override_usage = "grainstore convert [OPTIONS] <SRC>... <DST>")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    paths: Paths,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    attributes: AttributeArgs,
    #[command(flatten)]
    pack: PackArgs,
    /// Seed of the stored order and of the key hash; if keys come from strangers, pass a secret --seed, so that nobody
    /// can choose keys that collide
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Bytes of a chunk, the unit that epochs read in: a power of two from 4K to 1G
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = parse_chunk_size)]
    chunk_size: ChunkSize,
    /// Where samples start: on multiples of a power of two up to 4096 bytes (1: back to back), or no-edges (back to back, but no
    /// sample shorter than a chunk crosses the end of one)
    #[arg(long, value_name = "BYTES", default_value = "1")]
    align: Alignment,
    /// Replace the dataset DST once the new one is complete; anything else is never replaced
    #[arg(long)]
    overwrite: bool,
    /// Continue an interrupted conversion with the same SRC and options; the result has the same bytes as without the
    /// interruption
    #[arg(long, conflicts_with = "restart")]
    resume: bool,
    /// Discard what an interrupted conversion left, and start over
    #[arg(long)]
    restart: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

impl ConvertArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be made; then no dataset exists under its name.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let destination = self.paths.split()?.1;
        let (source, summary, note) = match self.pack(destination, external, printer) {
            Ok(packed) => packed,
            Err(error) => return PackTask::Packing.ended(error, destination, printer),
        };
        let made = FinishedPacking {
            work: PackTask::Packing,
            destination,
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

    fn pack(&self, destination: &Path, external: External, printer: &Printer) -> Result<Packed, ConvertError> {
        let sources = self.paths.sources();
        // What can be checked without reading the source is checked before it is read.
        sources.iter().try_for_each(|source| check_destination(source, destination, self.overwrite))?;
        check_kept(destination, self.on_kept())?;
        let table = self.attributes.read()?;
        let source = self.source.open(sources, self.pack.skip_bad, external, printer)?;
        let source = with_attributes(source, table.as_ref())?;
        let bar = Bar::new(printer, "packing");
        let summary = convert(source.as_ref(), destination, &self.options(), &bar)?;
        let note = coverage_note(&table, destination, summary.written.samples)?;
        Ok((source, summary, note))
    }

    fn on_kept(&self) -> OnKept {
        match (self.resume, self.restart) {
            (true, _) => OnKept::Resume,
            (_, true) => OnKept::Restart,
            _ => OnKept::Refuse,
        }
    }

    fn options(&self) -> ConvertOptions {
        ConvertOptions {
            chunk_size: self.chunk_size,
            alignment: self.align,
            overwrite: self.overwrite,
            on_kept: self.on_kept(),
            source_words: self.source.words(),
            ..self.pack.options(self.seed)
        }
    }
}

pub(super) fn parse_chunk_size(text: &str) -> Result<ChunkSize, String> {
    ChunkSize::new(parse_size(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_could_not_be_written_are_refused_at_once() {
        assert_eq!(parse_chunk_size("4K").unwrap().bytes(), 4096);
        assert!(parse_chunk_size("3K").unwrap_err().contains("power of two"));
    }
}
