//! `grainstore convert`.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use grainstore_converters::folder::listing::{ListingError, OnUnreadable};
use grainstore_converters::folder::{FolderOptions, FolderSource, Order};
use grainstore_converters::{
    ConvertError, ConvertOptions, ConvertSummary, Events, Progress, Source, check_destination, convert,
};
use grainstore_format::{Alignment, ChunkSize, MAX_OFFSET, escape_bytes};
use grainstore_writer::{Compression, WriteError};
use indicatif::ProgressBar;
use serde::Serialize;

use super::{counted, shown_path};
use crate::Exit;
use crate::hints::WithHint;
use crate::interrupt;
use crate::printer::{Counted, Printer};
use crate::sizes::{parse_jobs, parse_size, per_second, shown_size};

/// Files that were left out and are named on stderr; `--json` names all.
const SKIPPED_SHOWN_MAX: usize = 10;

/// Pack a folder into a dataset
///
/// Every file becomes a sample: its path below SRC is the key, its bytes are the payload. Where all files lie at
/// CLASS/FILE, each sample also has the attribute `label`, the number of its class in the order of the names, and the
/// dataset has `class_names`; the payload's field is called `image` where all files are pictures, else `data`.
/// DST appears when it is whole and durable; until then the work stands in DST.partial, which Ctrl-C removes.
/// The same SRC, order, seed and options give the same bytes.
#[derive(clap::Args)]
pub(crate) struct ConvertArgs {
    /// Folder to pack
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Dataset to make, such as imagenet.grain; never inside SRC
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// What SRC is
    #[arg(long, value_enum, value_name = "KIND", default_value_t = SourceKind::Auto)]
    from: SourceKind,
    /// Order in which samples are stored; shuffled makes chunked epochs mix classes better
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = StoredOrder::Shuffled)]
    order: StoredOrder,
    /// Seed of the stored order and of the key hash; who packs keys from strangers passes a secret --seed, so that
    /// nobody can choose keys that collide
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Bytes of a chunk, the unit that epochs read in: a power of two from 4K to 1G
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = parse_chunk_size)]
    chunk_size: ChunkSize,
    /// Bytes of a segment file; a sample that is larger gets a segment of its own
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_segment_size)]
    segment_size: u64,
    /// Compression of samples up to 64 MiB; pictures, sound and video do not shrink
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Method::None)]
    compress: Method,
    /// Where samples start: on multiples of 1 (back to back), 8, 64 or 4096 bytes, or no-edges (back to back, but no
    /// sample shorter than a chunk crosses the end of one)
    #[arg(long, value_name = "BYTES", default_value = "1")]
    align: Alignment,
    /// Threads that read files, and that checksum and compress (default: 16, and one for each core)
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Only the first N files of the order
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Replace the dataset DST once the new one is whole; other things are never replaced
    #[arg(long)]
    overwrite: bool,
    /// Leave out what cannot be read, and files that change while they are read; they are counted and listed
    #[arg(long)]
    skip_unreadable: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SourceKind {
    /// Found out from SRC
    Auto,
    /// A folder of plain files
    Folder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StoredOrder {
    /// Drawn from --seed
    Shuffled,
    /// By path
    Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    None,
    Lz4,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    path: String,
    samples: u64,
    segments: u64,
    payload_bytes: u64,
    stored_bytes: u64,
    fingerprint: String,
    /// Absent classes are null.
    classes: Option<usize>,
    field: &'a str,
    skipped: usize,
    skipped_paths: Vec<String>,
    links_to_folders: u64,
    special_files: u64,
    elapsed_s: f64,
    mb_per_s: f64,
}

impl ConvertArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Where the dataset cannot be made; then nothing of it is left.
    pub(crate) fn run(&self, printer: &Printer) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let (source, summary) = match self.pack(printer) {
            Ok(packed) => packed,
            Err(ConvertError::Interrupted) => return Ok(Exit::Interrupted),
            Err(error) => return with_hint(error),
        };
        self.print(printer, &source, &summary, began.elapsed())?;
        Ok(Exit::Done)
    }

    fn pack(&self, printer: &Printer) -> Result<(FolderSource, ConvertSummary), ConvertError> {
        check_destination(&self.source, &self.destination, self.overwrite)?;
        let mut source = match self.from {
            SourceKind::Auto | SourceKind::Folder => {
                let listing = printer.progress(Counted::Things("files"), None);
                listing.set_message("listing");
                FolderSource::open(&self.source, &self.folder_options())?
            }
        };
        let bar = Bar::new(printer, source.sample_count());
        let summary = convert(&mut source, &self.destination, &self.convert_options(), &bar)?;
        Ok((source, summary))
    }

    fn folder_options(&self) -> FolderOptions {
        FolderOptions {
            order: match self.order {
                StoredOrder::Shuffled => Order::Shuffled { seed: self.seed },
                StoredOrder::Source => Order::Source,
            },
            limit: self.limit,
            on_unreadable: if self.skip_unreadable { OnUnreadable::Skip } else { OnUnreadable::Stop },
            jobs: self.jobs,
        }
    }

    fn convert_options(&self) -> ConvertOptions {
        ConvertOptions {
            seed: self.seed,
            chunk_size: self.chunk_size,
            alignment: self.align,
            segment_size: self.segment_size,
            compression: match self.compress {
                Method::None => Compression::None,
                Method::Lz4 => Compression::Lz4,
            },
            jobs: self.jobs,
            overwrite: self.overwrite,
        }
    }

    fn print(
        &self,
        printer: &Printer,
        source: &FolderSource,
        summary: &ConvertSummary,
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        let written = &summary.written;
        let skipped = summary.skipped.len();
        if self.json {
            return printer.json(&self.report(source, summary, elapsed));
        }
        let (samples, segments) = (counted(written.samples, "sample"), counted(written.segments, "segment"));
        let left_out = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        let destination = shown_path(&self.destination);
        printer
            .line(format!("{destination}: {samples}, {segments}, {}{left_out}", shown_size(written.stored_bytes)))?;
        self.talk(printer, source, summary);
        let (size, rate) = (shown_size(written.payload_bytes), per_second(written.payload_bytes, elapsed));
        printer.note(format!("packed {size} in {:.1} s, {rate}", elapsed.as_secs_f64()));
        Ok(())
    }

    /// What else the user should know.
    fn talk(&self, printer: &Printer, source: &FolderSource, summary: &ConvertSummary) {
        for skipped in summary.skipped.iter().take(SKIPPED_SHOWN_MAX) {
            printer.warn(format!("skipped {}: {}", shown_path(&skipped.path), skipped.why));
        }
        if summary.skipped.len() > SKIPPED_SHOWN_MAX {
            printer.warn(format!("skipped {} more; --json lists them all", summary.skipped.len() - SKIPPED_SHOWN_MAX));
        }
        let listing = source.listing();
        printer.note(labels(source));
        if listing.skipped_dir_links() > 0 {
            let links = counted(listing.skipped_dir_links(), "link");
            printer.warn(format!("{links} to folders NOT packed: only links to files are followed"));
        }
        if listing.skipped_special() > 0 {
            printer.note(format!("pipes, sockets and devices, passed over: {}", listing.skipped_special()));
        }
        if let Some(leftover) = &summary.written.leftover {
            printer.warn(format!("{}: the replaced dataset could not be removed", shown_path(leftover)));
        }
    }

    fn report<'a>(&self, source: &'a FolderSource, summary: &ConvertSummary, elapsed: Duration) -> Report<'a> {
        let (written, elapsed_s) = (&summary.written, elapsed.as_secs_f64());
        Report {
            path: shown_path(&self.destination),
            samples: written.samples,
            segments: written.segments,
            payload_bytes: written.payload_bytes,
            stored_bytes: written.stored_bytes,
            fingerprint: written.fingerprint.to_string(),
            classes: source.class_count(),
            field: source.metadata().schema.fields().first().map_or("", |field| &field.name),
            skipped: summary.skipped.len(),
            skipped_paths: summary.skipped.iter().map(|skipped| text_of(&skipped.path)).collect(),
            links_to_folders: source.listing().skipped_dir_links(),
            special_files: source.listing().skipped_special(),
            elapsed_s,
            mb_per_s: written.payload_bytes as f64 / 1e6 / elapsed_s.max(1e-9),
        }
    }
}

/// A progress bar that also stops the conversion on Ctrl-C.
struct Bar {
    bar: ProgressBar,
    began: Instant,
    /// When bytes and rate were last written out.
    said: Cell<Instant>,
}

impl Bar {
    fn new(printer: &Printer, total: Option<u64>) -> Self {
        let bar = printer.progress(Counted::Things("files"), total);
        bar.set_message("packing");
        Self { bar, began: Instant::now(), said: Cell::new(Instant::now()) }
    }
}

impl Events for Bar {
    fn on_progress(&self, progress: Progress) {
        self.bar.set_position(progress.samples);
        if self.bar.is_hidden() || self.said.get().elapsed() < Duration::from_millis(200) {
            return;
        }
        self.said.set(Instant::now());
        let rate = per_second(progress.bytes, self.began.elapsed());
        self.bar.set_message(format!("packing {}, {rate}", shown_size(progress.bytes)));
    }

    fn on_finish(&self) {
        self.bar.set_message("writing the index and syncing");
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}

/// The error with the flag or the action that helps.
fn with_hint(error: ConvertError) -> anyhow::Result<Exit> {
    let hint = match &error {
        error if error.is_skippable() => "--skip-unreadable goes on without what cannot be read, and lists it",
        error if error.is_disk_full() => {
            "the disk is full: free space or choose a DST on another disk; what was written has been removed"
        }
        ConvertError::Write(WriteError::DestinationExists { .. }) => {
            "--overwrite replaces it, once the new dataset is whole"
        }
        ConvertError::Write(WriteError::Locked { .. }) => "wait for the other conversion, or choose another DST",
        ConvertError::DestinationInsideSource { .. } => "choose a DST outside SRC",
        ConvertError::SourceInsideDestination { .. } => "choose another DST",
        ConvertError::NoParent { .. } => "make the folder first",
        ConvertError::Listing(ListingError::NoFiles { .. }) => {
            "SRC is a folder with files in it; links to folders are not followed, name the folder they lead to"
        }
        ConvertError::Listing(ListingError::NotAFolder { .. }) => "SRC is a folder of plain files",
        _ => return Err(error.into()),
    };
    // All but the listing's errors say their cause themselves: shown as a chain, it would stand there twice.
    let error = match error {
        ConvertError::Listing(error) => error.into(),
        error => anyhow::Error::msg(error.to_string()),
    };
    Err::<Exit, _>(error).hint(hint)
}

fn parse_chunk_size(text: &str) -> Result<ChunkSize, String> {
    ChunkSize::new(parse_size(text)?).map_err(|error| error.to_string())
}

fn parse_segment_size(text: &str) -> Result<u64, String> {
    let size = parse_size(text)?;
    // A larger one could only fail, and late.
    if (1..=MAX_OFFSET).contains(&size) { Ok(size) } else { Err("a segment has 1 byte to 16T".to_owned()) }
}

/// Whether the samples have labels, and if not, why.
fn labels(source: &FolderSource) -> String {
    let listing = source.listing();
    if let Some(classes) = source.class_count() {
        return format!("labels: {} (the folders)", counted(classes as u64, "class"));
    }
    let is_class_file = |path: &[u8]| path.iter().filter(|&&byte| byte == b'/').count() == 1;
    let other = (0..listing.len()).map(|index| listing.relative_path(index)).find(|path| !is_class_file(path));
    let shown = other.map_or_else(String::new, |path| format!(", such as {}", escape_bytes(path)));
    format!("no labels: not every file is at CLASS/FILE{shown}")
}

/// A path as JSON holds it: as it is where it is UTF-8, else escaped.
fn text_of(path: &Path) -> String {
    path.to_str().map_or_else(|| shown_path(path), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_could_not_be_written_are_refused_at_once() {
        assert_eq!(parse_chunk_size("4K").unwrap().bytes(), 4096);
        assert!(parse_chunk_size("3K").unwrap_err().contains("power of two"));
        assert_eq!(parse_segment_size("1G"), Ok(1 << 30));
        assert!(parse_segment_size("0").is_err());
        assert!(parse_segment_size("17T").is_err());
    }
}
