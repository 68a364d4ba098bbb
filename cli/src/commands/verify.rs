//! `grainstore verify`: checks everything and lists what is damaged.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
#[cfg(feature = "pictures")]
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use grainstore_format::{Remedy, shown_path};
use grainstore_store::{Damage, DamageList, FieldCheck, StoreError, VerifyOptions, VerifyReport};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ls::key_members;
use crate::external::External;
#[cfg(feature = "pictures")]
use crate::hints::WithHint;
use crate::hints::hint;
use crate::printer::{ClosedPipe, Counted, Printer};
use crate::sizes::{counted, parse_jobs, per_second, shown_size};
use crate::{Exit, interrupt};

/// How long the printing thread waits for news before it checks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// Messages that wait to be printed.
const NEWS_COUNT_MAX: usize = 1024;

/// Check every checksum and every rule of a dataset, and list what is damaged
///
/// Reads everything. Exits with 0 if the dataset is intact and with 1 if it is damaged; then it prints one line per
/// defect, in no particular order, with the file, the sample's ordinal and key, and the offset in the file,
/// where they are known. The last line is a summary.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// Threads that read and check (default: one for each core)
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Check that the picture of every sample can be decoded: JPEG, PNG or WebP
    #[cfg(feature = "pictures")]
    #[arg(long)]
    check_images: bool,
    /// The field with the pictures, if it is not the only one of bytes or called "image"
    #[cfg(feature = "pictures")]
    #[arg(long, value_name = "NAME", requires = "check_images")]
    field: Option<String>,
    /// Print one JSON document instead; damage is sorted by segment, ordinal and offset, at most 100,000 are listed
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct VerifyDocument {
    path: String,
    ok: bool,
    samples: u64,
    segments: u64,
    checked_bytes: u64,
    /// `null` if pictures were not checked.
    checked_images: Option<u64>,
    elapsed_s: f64,
    damaged: u64,
    damages: Vec<DamageRow>,
    /// Remarks that are not damage.
    notices: Vec<String>,
}

#[derive(Serialize)]
struct DamageRow {
    segment: Option<String>,
    ordinal: Option<u64>,
    #[serde(flatten)]
    key: Map<String, Value>,
    offset: Option<u64>,
    what: String,
}

/// Messages from the checking threads to the printing one.
enum News {
    Damage(Damage),
    Checked(u64),
    Finished(Result<VerifyReport, StoreError>),
}

/// Collects or prints damage.
struct Listing<'a> {
    printer: &'a Printer,
    json: bool,
    damages: DamageList,
    /// The reader of the list has closed stdout; the exit status is still reported.
    closed: bool,
    /// Of the first damage that has one.
    remedy: Option<Remedy>,
}

impl VerifyArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no dataset, it was written by a newer version, or no thread can be started.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let news = self.start(external)?;
        let mut listing =
            Listing { printer, json: self.json, damages: DamageList::default(), closed: false, remedy: None };
        let Some(report) = self.follow(&news, external, &mut listing)? else { return Ok(Exit::Interrupted) };
        let elapsed = started.elapsed();
        self.print_result(printer, listing, &report, elapsed)?;
        Ok(if report.damaged == 0 { Exit::Done } else { Exit::No })
    }

    /// Starts checking on other threads. Nothing is written, so they can be abandoned when the user wants to stop.
    fn start(&self, external: External) -> anyhow::Result<Receiver<News>> {
        // Bounded, since damage may be found faster than it can be printed.
        let (sender, receiver) = mpsc::sync_channel(NEWS_COUNT_MAX);
        let path = self.path.clone();
        let threads = self.jobs.map(NonZeroUsize::get);
        let field_check = self.field_check(external)?;
        let options = VerifyOptions { threads, allow_external: external.is_allowed(), stop: None, field_check };
        let started = std::thread::Builder::new().spawn(move || check(&path, &options, &sender));
        started.context("cannot start a thread to work with")?;
        Ok(receiver)
    }

    /// The check of the pictures, if they are to be checked.
    #[cfg(feature = "pictures")]
    fn field_check(&self, external: External) -> anyhow::Result<Option<FieldCheck>> {
        if !self.check_images {
            return Ok(None);
        }
        let dataset = external.open(&self.path)?;
        let fields = dataset.schema().fields().iter().map(|field| (field.name.as_str(), &field.kind));
        let fields: Vec<_> = fields.collect();
        let number = grainstore_pictures::field_of(&fields, self.field.as_deref());
        let number = number.map_err(anyhow::Error::from).hint("--field NAME names the field with the pictures")?;
        let check = |bytes: &[u8]| grainstore_pictures::check(bytes).map_err(|error| error.to_string());
        Ok(fields.get(number).map(|(name, _)| FieldCheck { field: (*name).to_owned(), check: Arc::new(check) }))
    }

    #[cfg(not(feature = "pictures"))]
    fn field_check(&self, _: External) -> anyhow::Result<Option<FieldCheck>> {
        Ok(None)
    }

    /// The pictures that could be decoded; `None` if none were to be.
    fn checked_images(&self, report: &VerifyReport) -> Option<u64> {
        #[cfg(feature = "pictures")]
        let is_asked = self.check_images;
        #[cfg(not(feature = "pictures"))]
        let is_asked = false;
        is_asked.then_some(report.checked_fields)
    }

    /// The report; `None` if the user wants to stop.
    fn follow(
        &self,
        news: &Receiver<News>,
        external: External,
        listing: &mut Listing<'_>,
    ) -> anyhow::Result<Option<VerifyReport>> {
        let bar = listing.printer.progress(Counted::Bytes, data_len(&self.path, external));
        bar.set_message("checking");
        loop {
            if interrupt::requested() {
                return Ok(None);
            }
            match news.recv_timeout(PATIENCE) {
                Ok(News::Damage(damage)) => listing.add(damage)?,
                Ok(News::Checked(bytes)) => bar.inc(bytes),
                Ok(News::Finished(report)) => return Ok(Some(report?)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the thread that checks has died")),
            }
        }
    }

    fn print_result(
        &self,
        printer: &Printer,
        listing: Listing<'_>,
        report: &VerifyReport,
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        if listing.closed {
            return Ok(());
        }
        report.notices.iter().for_each(|notice| printer.warn(notice));
        let size = shown_size(report.checked_bytes);
        let result = if self.json {
            printer.json(&self.document(listing.damages, report, elapsed))
        } else {
            let verdict = if report.damaged == 0 { "ok".to_owned() } else { format!("{} damaged", report.damaged) };
            let samples = counted(report.samples, "sample");
            let segments = counted(report.segments, "segment");
            let pictures = self.checked_images(report).map(|count| format!(", {}", counted(count, "picture")));
            let pictures = pictures.unwrap_or_default();
            printer.line(format_args!("{}: {samples}{pictures}, {segments}, {size}: {verdict}", shown_path(&self.path)))
        };
        unless_closed(result)?;
        if let Some(remedy) = &listing.remedy {
            printer.hint(hint(remedy));
        }
        printer.note(format_args!(
            "checked {size} in {:.1} s, {}, {} damaged",
            elapsed.as_secs_f64(),
            per_second(report.checked_bytes, elapsed),
            report.damaged
        ));
        Ok(())
    }

    fn document(&self, damages: DamageList, report: &VerifyReport, elapsed: Duration) -> VerifyDocument {
        VerifyDocument {
            path: shown_path(&self.path),
            ok: report.damaged == 0,
            samples: report.samples,
            segments: report.segments,
            checked_bytes: report.checked_bytes,
            checked_images: self.checked_images(report),
            elapsed_s: elapsed.as_secs_f64(),
            damaged: report.damaged,
            damages: damages.into_sorted().into_iter().map(row).collect(),
            notices: report.notices.clone(),
        }
    }
}

impl Listing<'_> {
    fn add(&mut self, damage: Damage) -> anyhow::Result<()> {
        self.remedy = self.remedy.take().or_else(|| damage.remedy());
        if self.json {
            self.damages.add(damage);
        } else if !self.closed {
            // Flushed, since the check may continue for minutes.
            self.closed = !unless_closed(self.printer.line(damage).and_then(|()| self.printer.flush()))?;
        }
        Ok(())
    }
}

/// Whether something was printed: a closed pipe must not hide that there is damage.
fn unless_closed(printed: anyhow::Result<()>) -> anyhow::Result<bool> {
    match printed {
        Err(error) if error.is::<ClosedPipe>() => Ok(false),
        other => other.map(|()| true),
    }
}

fn check(path: &Path, options: &VerifyOptions, sender: &SyncSender<News>) {
    // Nobody listens any more once the user wants to stop.
    let send = |news| drop(sender.send(news));
    let report = grainstore_store::verify(path, options, &|damage| send(News::Damage(damage)), &|bytes| {
        send(News::Checked(bytes))
    });
    send(News::Finished(report));
}

/// Bytes of all segments, for the progress bar; `None` if the dataset is too damaged to open.
fn data_len(path: &Path, external: External) -> Option<u64> {
    let dataset = external.open(path).ok()?;
    Some(dataset.segments().iter().map(|segment| segment.file_len()).sum())
}

fn row(damage: Damage) -> DamageRow {
    DamageRow {
        segment: damage.segment,
        ordinal: damage.ordinal,
        key: damage.key.map(key_members).unwrap_or_default(),
        offset: damage.offset,
        what: damage.what,
    }
}
