//! Packs a source into a dataset.

use std::path::Path;

use grainstore_format::{Geometry, Remedy, shown_path};
use grainstore_sources::{Layout, Remark, Skipped, Source};
use grainstore_writer::{DatasetWriter, ResumePoint, Summary, WriterOptions, abandoned};

use crate::duplicates::Drops;
use crate::feed::{How, PackingOrder, Skip};
use crate::packer::{Account, Packer};
use crate::{ConvertError, ConvertOptions, Events, Mixing, OnKept, Order, Progress, check_destination, hash_seed};

impl ConvertOptions {
    fn for_writer(&self, source: &dyn Source) -> WriterOptions {
        let hash_seed = hash_seed(self.seed);
        WriterOptions {
            geometry: Geometry { chunk_size: self.chunk_size, alignment: self.alignment, hash_seed },
            segment_size: self.segment_size,
            compression: self.compression,
            keyed: source.description().is_keyed,
            jobs: self.jobs,
            overwrite: self.overwrite,
            ..WriterOptions::with_metadata(source.description().metadata.clone())
        }
    }
}

/// What was packed, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertSummary {
    /// What the writer wrote.
    pub written: Summary,
    /// Samples that cannot be read and were skipped, in the order of the conversion.
    pub skipped: Vec<Skipped>,
    /// Samples that the function of [`Mapped`](crate::Mapped) left out.
    pub left_out_count: u64,
    /// Samples that were skipped because another one has their key.
    pub duplicate_count: u64,
    /// Samples that were skipped because another one has their content.
    pub same_content: SameContent,
    /// Samples that an interrupted conversion had already packed.
    pub resumed_count: u64,
    /// How the samples were mixed.
    pub mixing: Mixing,
}

/// Samples that were skipped because another one has their content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SameContent {
    /// Number of samples.
    pub samples: u64,
    /// How many of these have other attributes than the one that stays, such as another label.
    pub with_other_attributes: u64,
}

/// Packs all samples of `source` into the dataset `destination`, which appears when it is complete and durable.
///
/// # Errors
/// Where the source cannot be read, the dataset cannot be written, one is inside the other, or `events` stops it.
/// Complete segments then stay in `destination.partial`, for [`OnKept::Resume`] (except those of a stream). Where there
/// are none, everything that was written is removed. A dataset that was to be replaced is unchanged.
pub fn convert(
    source: &dyn Source,
    destination: &Path,
    options: &ConvertOptions,
    events: &dyn Events,
) -> Result<ConvertSummary, ConvertError> {
    for origin in &source.description().origins {
        check_destination(origin, destination, options.overwrite)?;
    }
    check_kept(destination, options.on_kept)?;
    let drops = Drops::find(source, options, None, events)?;
    let plan = PackingOrder::of(source, options.order, events)?;
    let stamp = stamp_of(source, options);
    let for_writer = options.for_writer(source);
    let (writer, point) = match (options.on_kept == OnKept::Resume, source.description().is_once) {
        // A stream cannot be read again, and it is unknown whether the next stream is the same.
        (true, true) => return Err(not_resumable(source)),
        (false, true) => (DatasetWriter::create(destination, for_writer)?, None),
        (true, false) => DatasetWriter::resume(destination, for_writer, &stamp)?,
        (false, false) => (DatasetWriter::create_journaled(destination, for_writer, &stamp)?, None),
    };
    pack(Packing { source, plan, drops, options, events }, writer, point)
}

/// Refuses to delete what an interrupted conversion left, unless the options allow it. [`convert`] checks this too; a
/// caller can check before it opens a large source.
///
/// # Errors
/// `KeptWork` where there is such work; `Locked` where a conversion is still running.
pub fn check_kept(destination: &Path, on_kept: OnKept) -> Result<(), ConvertError> {
    match on_kept {
        OnKept::Resume | OnKept::Restart => Ok(()),
        OnKept::Refuse => abandoned(destination)?.map_or(Ok(()), |path| Err(ConvertError::KeptWork { path })),
    }
}

fn changed(source: &dyn Source) -> ConvertError {
    let path = source.description().first_path();
    let why =
        "it, or another file of the source, was written to while it was packed: start over when nothing writes to it";
    ConvertError::Refused { path, why: why.into() }
}

fn unknown_note(source: &dyn Source) -> ConvertError {
    let path = source.description().first_path();
    let why = "the interrupted conversion skipped samples, and which they were cannot be read";
    ConvertError::Refused { path, why: Remark::new(why, Remedy::Restart) }
}

fn not_resumable(source: &dyn Source) -> ConvertError {
    let path = source.description().first_path();
    ConvertError::Refused { path, why: "a stream is read once, so a conversion of it cannot be resumed".into() }
}

/// What is packed, and how.
pub(crate) struct Packing<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) plan: PackingOrder,
    pub(crate) drops: Drops,
    pub(crate) options: &'a ConvertOptions,
    pub(crate) events: &'a dyn Events,
}

/// Writes all samples to `writer`; those after `point` where an interrupted conversion is resumed.
pub(crate) fn pack(
    packing: Packing<'_>,
    mut writer: DatasetWriter,
    point: Option<ResumePoint>,
) -> Result<ConvertSummary, ConvertError> {
    let Packing { source, plan, drops, options, events } = packing;
    let first = source.description().first_path();
    let _span = tracing::info_span!("pack", kind = source.description().kind, path = %shown_path(&first)).entered();
    let resumed_count = point.as_ref().map_or(0, |point| point.samples);
    let account = match &point {
        Some(point) => Account::restored(&point.note, point.samples).ok_or_else(|| unknown_note(source))?,
        None => Account::default(),
    };
    let unstored_places = account.unstored_places();
    let noted = account.clone();
    writer.set_notes(move |samples| noted.note(samples));
    let done_count = resumed_count + unstored_places.len() as u64;
    let entries_max = options.limit.unwrap_or(u64::MAX);
    let samples_total = plan.entry_count(source).map(|count| count.saturating_sub(drops.len()).min(entries_max));
    let mut packer = Packer {
        source,
        writer: &mut writer,
        events,
        on_bad: options.on_bad,
        drops: &drops,
        entries_max,
        account,
        progress: Progress { samples: done_count, ..Progress::begin(source, samples_total) },
    };
    let skip = Skip { count: done_count, counts: &|id| !drops.contains(id), unstored_places: &unstored_places };
    let before = (!source.description().is_listed).then(|| source.stamp());
    plan.feed(source, How::new(Layout::Packed, options.jobs), skip, |feed| packer.pack(feed))?;
    // Samples of a folder or a list are read by themselves, and a file that has another length is an error. Other data
    // are read in pieces, and a write between two reads would mix samples of both.
    if before.is_some_and(|before| before != source.stamp()) {
        return Err(changed(source));
    }
    let mut skipped = source.description().skipped.clone();
    skipped.extend(packer.account.skipped());
    let left_out_count = packer.account.left_out_count();
    if writer.taken() == 0 && !skipped.is_empty() {
        let path = source.description().first_path();
        return Err(ConvertError::NothingReadable { path, count: skipped.len() as u64 });
    }
    if writer.taken() == 0 && drops.len() > 0 {
        let path = source.description().first_path();
        let what = match (drops.by_key(), drops.by_content().samples) {
            (_, 0) => "a key that is taken already",
            (0, _) => "content that is stored already",
            _ => "a key that is taken, or content that is stored, already",
        };
        return Err(ConvertError::NothingNew { path, what });
    }
    events.on_finish();
    Ok(ConvertSummary {
        written: writer.finish()?,
        skipped,
        left_out_count,
        duplicate_count: drops.by_key(),
        same_content: drops.by_content(),
        resumed_count,
        mixing: plan.mixing(),
    })
}

/// What must be the same for a conversion to resume: the source, and all options that affect the order of samples. The
/// writer checks the options that affect their bytes. A conversion that stopped at a bad sample may resume and skip it.
fn stamp_of(source: &dyn Source, options: &ConvertOptions) -> String {
    let ConvertOptions { order, limit, on_duplicate, skip_same_content, source_words, .. } = options;
    let kind = source.description().kind;
    let data = source.stamp();
    let source = format!("source: {kind}, names and lengths and times {data:016x}; {source_words}");
    let order = match order {
        Order::Shuffled { seed } => format!("order: shuffled by seed {seed}"),
        Order::Source => "order: that of the source".to_owned(),
    };
    let limit = limit.map_or("limit: none".to_owned(), |limit| format!("limit: {limit}"));
    let duplicates = format!("duplicate keys: {on_duplicate}");
    let content = format!("duplicate content: {}", if *skip_same_content { "skipped" } else { "kept" });
    [source, order, limit, duplicates, content].join("; ")
}
