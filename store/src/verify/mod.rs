//! Checks all structures of a dataset, and every byte of its samples.
//!
//! Damage is reported and the check continues: a damaged page hides no other, and a segment whose own index is lost is
//! read through the merged one. Work is shared among threads; each needs up to 30 MB, and four of them 130 MB where LZ4
//! samples are longer than 8 MiB, or 256 MiB for a field of that length whose contents are checked. Categories come on top: a thread that decodes those of an attribute needs up to
//! 180 MB. The decoded ones of the merged index are kept, and 4 bytes a category for each segment that is compared.
//!
//! | a message about | is made in |
//! | --- | --- |
//! | the manifest, an index that is not that of its only segment, where the data ends | `mod.rs` |
//! | the data file of a segment: missing, another length, another fingerprint | `../segment.rs` |
//! | header, footer, directory, the checksum of a section's page, padding | `frame.rs` |
//! | an entry, a chunk, the table of long samples, raw lengths | `entries.rs`, by the rules in `../entry_rules.rs` |
//! | a key, a key group, a bucket, a slot | `keys.rs` |
//! | an attribute, a field, a bitmap of them | `columns.rs` |
//! | the stored bytes of a sample, an LZ4 block, alignment, bytes between samples | `samples.rs` |
//! | what a field holds, by the caller's rule | `contents.rs` |
//! | a segment's index that disagrees with the merged one | `agree.rs` |
//!
//! `report.rs` passes all of them to the caller; `slices.rs` reads parts of sections for these checks.

mod agree;
mod columns;
mod contents;
mod entries;
mod frame;
mod keys;
mod report;
mod samples;
mod slices;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use grainstore_format::{FileKind, Manifest, SegmentKind, SegmentRef};
use rayon::prelude::*;

use crate::index::{Frame, Index};
use crate::open::{
    PathKind, check_is_ours, check_lone, data_end_fits, index_file_of, other_version_of_header, path_kind,
    read_manifest,
};
use crate::segment::{AllowedPaths, ExternalData, FileTime, check_data_file};
use crate::threads::pool;
use crate::{IndexMemory, StoreError};
use agree::MergedIndex;

pub use contents::{FieldCheck, FieldRule};
pub use report::{Damage, DamageList};
use report::{FileReport, Reporter};
use samples::{SegmentData, SegmentIndex};

/// How to verify.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The number of threads; by default one per core.
    pub threads: Option<usize>,
    /// As in [`OpenOptions`](crate::OpenOptions).
    pub allow_external: bool,
    /// When another thread sets it, the check stops soon with an error.
    pub stop: Option<Arc<AtomicBool>>,
    /// What a field must hold, beside what the format requires: a sample that breaks this rule is damage, too.
    pub field_check: Option<FieldCheck>,
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// Samples of the dataset.
    pub samples: u64,
    /// Segments of the dataset.
    pub segments: u64,
    /// Bytes of samples and indexes that were read and checked.
    pub checked_bytes: u64,
    /// Samples whose field was held against [`VerifyOptions::field_check`].
    pub checked_fields: u64,
    /// How many times damage was reported; 0 if there is none.
    pub damaged: u64,
    /// Notices for the user that are not damage, as sentences.
    pub notices: Vec<String>,
}

/// Checks a dataset directory (all segments of all generations), or a lone native segment.
///
/// `on_damage` is called for everything that is wrong, `on_progress` with the number of bytes checked since its last
/// call; both are called from several threads.
///
/// # Errors
/// If `path` is not a dataset, was written by a newer version or names files that may not be read, if threads cannot be
/// started, there is no memory, or the check was stopped. Damage is not an error.
pub fn verify(
    path: &Path,
    options: &VerifyOptions,
    on_damage: &(dyn Fn(Damage) + Sync),
    on_progress: &(dyn Fn(u64) + Sync),
) -> Result<VerifyReport, StoreError> {
    let reporter = Reporter::new(on_damage, on_progress, options);
    let kind = path_kind(path)?;
    let counts = pool(options.threads)?.install(|| match kind {
        PathKind::Directory => verify_directory(&reporter, path, AllowedPaths::new(options.allow_external)),
        PathKind::LoneFile => verify_lone(&reporter, path),
    })?;
    let report = VerifyReport {
        samples: counts.samples,
        segments: counts.segments,
        checked_bytes: reporter.checked_bytes(),
        checked_fields: reporter.checked_fields(),
        damaged: reporter.damaged(),
        notices: reporter.notices(),
    };
    let is_stopped = reporter.is_stopped();
    match reporter.into_failure() {
        Some(error) => Err(error),
        None if is_stopped => Err(StoreError::Stopped { path: path.to_owned() }),
        None => Ok(report),
    }
}

/// Samples and segments that were checked.
struct DatasetCounts {
    samples: u64,
    segments: u64,
}

fn verify_lone(reporter: &Reporter<'_>, path: &Path) -> Result<DatasetCounts, StoreError> {
    check_is_ours(path)?;
    check_version(path)?;
    Ok(DatasetCounts { samples: check_lone_segment(reporter, path, &name_of(path)), segments: 1 })
}

/// The name of a file for messages.
fn name_of(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
}

/// Checks a lone native segment. Returns its number of samples; 0 if it is not known.
fn check_lone_segment(reporter: &Reporter<'_>, path: &Path, name: &str) -> u64 {
    let report = reporter.file(name, 0);
    let file_len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let job = SegmentJob { report, index_report: report, path, external: false, file_len, number: 0, merged: None };
    let own = job.check_own(path, None);
    job.check_data(own.as_ref());
    own.map_or(0, |own| own.sample_count())
}

fn verify_directory(reporter: &Reporter<'_>, path: &Path, allowed: AllowedPaths) -> Result<DatasetCounts, StoreError> {
    let manifest = match read_manifest(path) {
        Ok(manifest) => manifest,
        Err(error) if error.is_refusal() || error.is_other_version() => return Err(error),
        Err(error) => {
            reporter.file(Manifest::FILE_NAME, 0).unreadable(None, error);
            return verify_without_manifest(reporter, path);
        }
    };
    check_paths(path, &manifest, allowed)?;
    check_access(reporter, path, &manifest)?;
    check_versions(reporter, path, &manifest)?;
    let merged = check_merged(reporter, path, &manifest).map(MergedIndex::new);
    let firsts = manifest.segments().iter().scan(0, |sum, segment| {
        let first = *sum;
        *sum += segment.sample_count;
        Some(first)
    });
    let segments: Vec<(u64, &SegmentRef)> = firsts.zip(manifest.segments()).collect();
    segments.par_iter().enumerate().for_each(|(number, (first, segment))| {
        if reporter.is_stopped() {
            return;
        }
        let reports = (reporter.file(&segment.path, *first), reporter.file(index_file_of(segment), *first));
        let data = ExternalData::of(&segment.kind, allowed);
        check_segment(reports, path, (number, segment, data), merged.as_ref());
    });
    let samples = segments.iter().map(|(_, segment)| segment.sample_count).sum();
    Ok(DatasetCounts { samples, segments: segments.len() as u64 })
}

/// Refuses segments whose files are outside the allowed directory. spec.md: EXT-4.
fn check_paths(path: &Path, manifest: &Manifest, allowed: AllowedPaths) -> Result<(), StoreError> {
    for segment in manifest.segments().iter().filter(|segment| segment.kind != SegmentKind::Native) {
        allowed.check(path, segment)?;
        if let Err(error @ StoreError::Outside { .. }) = allowed.check_links(path, &path.join(&segment.path)) {
            return Err(error);
        }
    }
    Ok(())
}

/// Refuses files that may not be read: they could not be checked, which is not damage.
fn check_access(reporter: &Reporter<'_>, path: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let indexes = manifest.segments().iter().filter_map(|segment| match &segment.kind {
        SegmentKind::External { index_file, .. } => Some(index_file),
        _ => None,
    });
    let paths = manifest.segments().iter().map(|segment| &segment.path);
    for name in paths.chain(indexes).chain([&manifest.index().file]).take_while(|_| !reporter.is_stopped()) {
        if let Err(error) = crate::index::file::open_regular(&path.join(name))
            && error.is_refusal()
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Refuses files of another version: they could not be checked, which is not damage. spec.md: VER-1.
fn check_versions(reporter: &Reporter<'_>, path: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let own = manifest.segments().par_iter().map(index_file_of);
    own.chain([&manifest.index().file])
        .try_for_each(|name| if reporter.is_stopped() { Ok(()) } else { check_version(&path.join(name)) })
}

/// Refuses a file of another version.
fn check_version(path: &Path) -> Result<(), StoreError> {
    other_version_of_header(path).map_or(Ok(()), Err)?;
    match Frame::open(path, IndexMemory::Owned) {
        Err(error) if error.is_other_version() => Err(error),
        _ => Ok(()),
    }
}

/// Without a manifest every native segment is checked as a lone one, with ordinals from 0.
fn verify_without_manifest(reporter: &Reporter<'_>, path: &Path) -> Result<DatasetCounts, StoreError> {
    let files = std::fs::read_dir(path).map_err(|error| StoreError::io(path, error))?;
    let mut files: Vec<_> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|extension| extension == "seg") && file.is_file())
        .collect();
    files.sort();
    files.par_iter().try_for_each(|file| check_version(file))?;
    let check = |file: &std::path::PathBuf| check_lone_segment(reporter, file, &name_of(file));
    Ok(DatasetCounts { samples: files.par_iter().map(check).sum(), segments: files.len() as u64 })
}

/// Checks the index that the manifest names, unless it is that of the only segment.
fn check_merged(reporter: &Reporter<'_>, path: &Path, manifest: &Manifest) -> Option<Index> {
    let report = reporter.file(&manifest.index().file, 0);
    if let [only] = manifest.segments()
        && (only.kind == SegmentKind::Native || manifest.index().file == *index_file_of(only))
    {
        if manifest.index().file != *index_file_of(only) {
            report.damage("the manifest names another index than its only segment");
        } else if manifest.index().fingerprint != only.fingerprint {
            report.damage("the manifest has two fingerprints for it, as an index and as its only segment");
        }
        return None;
    }
    let frame = frame::check_frame(&report, &path.join(&manifest.index().file), FileKind::Index)?;
    frame::check_fingerprint(&report, &frame, manifest.index().fingerprint);
    let index = or_report(&report, Index::from_frame(frame))?;
    let counts = manifest.segments().iter().map(|segment| segment.sample_count);
    if !counts.eq(index.table.records().iter().map(|record| record.sample_count)) {
        report.damage("it and the manifest disagree on the number of samples of the segments");
        return None;
    }
    let external: Vec<bool> = manifest.segments().iter().map(|s| s.kind != SegmentKind::Native).collect();
    check_relations(&report, &index, &external);
    Some(index)
}

fn check_relations(report: &FileReport<'_>, index: &Index, external: &[bool]) {
    entries::check_entries(report, index, external);
    keys::check_keys(report, index);
    columns::check_columns(report, index);
}

fn check_segment(
    (report, index_report): (FileReport<'_>, FileReport<'_>),
    path: &Path,
    (number, segment, data): (usize, &SegmentRef, Option<ExternalData>),
    merged: Option<&MergedIndex>,
) {
    let data_path = path.join(&segment.path);
    let index_path = path.join(index_file_of(segment));
    let external = data.is_some();
    match or_report(&report, check_data_file(path, &data_path, segment.file_len, data.as_ref())) {
        // A missing native segment has been reported; its index is missing with it.
        None if !external && !data_path.is_file() => return,
        Some(FileTime::Other) => report.modified(),
        _ => {}
    }
    let file_len = segment.file_len;
    let merged_index = merged.map(|merged| &merged.index);
    let job = SegmentJob { report, index_report, path: &data_path, external, file_len, number, merged: merged_index };
    let own = job.check_own(&index_path, Some(segment));
    if let (Some(own), Some(merged)) = (&own, merged) {
        agree::check_agreement(&index_report, own, merged, number);
    }
    job.check_data(own.as_ref());
}

/// The value, or `None` after the error was reported.
fn or_report<T>(report: &FileReport<'_>, result: Result<T, StoreError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            report.unreadable(None, error);
            None
        }
    }
}

/// One segment to be checked.
struct SegmentJob<'a> {
    /// Of the data.
    report: FileReport<'a>,
    /// Of the segment's own index.
    index_report: FileReport<'a>,
    path: &'a Path,
    external: bool,
    file_len: u64,
    number: usize,
    merged: Option<&'a Index>,
}

impl SegmentJob<'_> {
    /// Checks the segment's own index; `None` if it cannot be used.
    fn check_own(&self, index_path: &Path, segment: Option<&SegmentRef>) -> Option<Index> {
        let report = &self.index_report;
        let kind = if self.external { FileKind::Index } else { FileKind::Segment };
        let frame = frame::check_frame(report, index_path, kind)?;
        let index = {
            if let Some(segment) = segment {
                frame::check_fingerprint(report, &frame, segment.fingerprint);
            }
            or_report(report, Index::from_frame(frame))?
        };
        if !self.external {
            or_report(report, check_lone(&index));
        }
        let expected = segment.map_or(index.sample_count(), |segment| segment.sample_count);
        let ([record], true) = (index.table.records(), index.sample_count() == expected) else {
            let found = index.sample_count();
            let segments = index.table.len();
            report.damage(format!(
                "the segment's index has {found} samples in {segments} segments, {expected} samples are expected"
            ));
            return None;
        };
        if !data_end_fits(!self.external, record.data_end, self.file_len) {
            let what = format!("its data ends at {}, the file has {} bytes", record.data_end, self.file_len);
            self.report.damage(what);
        }
        check_relations(report, &index, &[self.external]);
        Some(index)
    }

    /// Checks the samples, located by its own index or the merged one.
    fn check_data(&self, own: Option<&Index>) {
        let merged = self.merged.map(|index| SegmentIndex { index, first: index.table.ordinals(self.number).start });
        let indexes: Vec<SegmentIndex<'_>> =
            own.map(|index| SegmentIndex { index, first: 0 }).into_iter().chain(merged).collect();
        let Some(source) = indexes.first() else { return };
        let number = if own.is_some() { 0 } else { self.number };
        let Some(record) = source.index.table.records().get(number) else { return };
        // A file that cannot be opened has been reported.
        let Ok((file, file_len)) = crate::index::file::open_regular(self.path) else { return };
        let data = SegmentData {
            report: self.report,
            file: &file,
            file_len,
            external: self.external,
            sample_count: record.sample_count,
            geometry: *source.index.frame.geometry(),
            indexes: indexes.clone(),
        };
        data.check();
        if let (Some(own), false) = (own, self.external) {
            data.check_end(record.data_end, own.frame.footer.index_offset());
        }
    }
}
