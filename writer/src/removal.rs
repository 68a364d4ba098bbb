//! Removes samples from a dataset: a new generation without them. spec.md: GEN-5.
//!
//! ```text
//! before     00000.seg   00001.seg   00002.seg   00003.seg      00001 loses some samples, 00002 all
//! after      00000.seg   00004.seg               00003.seg      00004 is what stays of 00001
//! ```
//! A segment of which nothing is removed stays as it is. The others are copied without the samples that go: stored
//! bytes, keys, attributes and fields as they are, each sample after its checksum. The rename of the manifest commits.

mod stored;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Fingerprint, FormatError, Manifest, SegmentKind, SegmentRef};

use self::stored::StoredBytes;
use crate::existing::check_segments;
use crate::extension::Extension;
use crate::finished::FinishedSegment;
use crate::index::IndexSpec;
use crate::merge::merge;
use crate::names::{index_name, segment_name};
use crate::rows::SegmentRows;
use crate::segment::SegmentWriter;
use crate::storage::Storage;
use crate::{DiskStorage, WriteError, WriterOptions};

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalSummary {
    /// Samples that were removed.
    pub removed: u64,
    /// Samples that are left.
    pub samples: u64,
    /// Segments that are left.
    pub segments: u64,
    /// Segments that were copied without the samples that were removed.
    pub copied_segments: u64,
    /// Stored bytes of the samples that were copied.
    pub copied_bytes: u64,
    /// Bytes of the segment files that the dataset no longer names.
    pub replaced_bytes: u64,
    /// Whether these files, and those of earlier generations, are removed; otherwise the next writer removes them.
    pub is_freed: bool,
    /// The dataset's fingerprint.
    pub fingerprint: Fingerprint,
}

/// How far a removal is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Samples that were copied.
    pub samples: u64,
    /// Their stored bytes.
    pub bytes: u64,
}

/// A dataset from which samples are to be removed, locked against other writers.
pub struct Removal {
    storage: Arc<dyn Storage>,
    extension: Extension,
    /// That of every segment, with the user metadata of the dataset.
    spec: IndexSpec,
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stay,
    Copy,
    Go,
}

/// A segment of the dataset as it was.
struct Part<'a> {
    segment: &'a SegmentRef,
    /// The ordinal of its first sample.
    first: u64,
    /// The ordinals of its samples that are removed.
    removed: &'a [u64],
    fate: Fate,
}

impl Removal {
    /// Locks the dataset `dataset`, a directory with a manifest, and removes files that earlier generations left in it.
    ///
    /// # Errors
    /// `NotReducible` if it is not a dataset's directory; `Locked` if another writer has locked it; `Damaged` if its
    /// manifest or an index is damaged.
    pub fn begin(dataset: &Path) -> Result<Self, WriteError> {
        Self::begin_on(Arc::new(DiskStorage), dataset, WriterOptions::DEFAULT_MEMORY_LEN)
    }

    /// As [`Removal::begin`], on `storage`, with buffers of `memory_len` bytes.
    ///
    /// # Errors
    /// As [`Removal::begin`].
    pub fn begin_on(storage: Arc<dyn Storage>, dataset: &Path, memory_len: u64) -> Result<Self, WriteError> {
        let extension = Extension::begin(&storage, dataset).map_err(|error| match error {
            WriteError::NotExtendable { path, why } => WriteError::NotReducible { path, why, is_external: false },
            others => others,
        })?;
        let segments = extension.before().segments();
        let spec = check_segments(storage.as_ref(), extension.path(), segments, memory_len)?;
        Ok(Self { storage, extension, spec })
    }

    /// The fingerprint of the dataset as it is.
    pub fn fingerprint(&self) -> Fingerprint {
        self.extension.before().fingerprint()
    }

    /// Commits a generation without the samples of these ordinals, which ascend strictly. Where `frees` is set, the
    /// files that it does without are removed at once: readers that have the dataset open fail then. `on_copied` can
    /// stop it; the result is `None` then.
    ///
    /// # Errors
    /// `NotReducible` if no sample would be left, or if samples go from a file that grainstore does not own;
    /// `NotCopied` if a sample that stays is damaged; if files cannot be written. The dataset is unchanged then.
    pub fn remove(
        self,
        ordinals: &[u64],
        frees: bool,
        on_copied: &mut dyn FnMut(Copied) -> ControlFlow<()>,
    ) -> Result<Option<RemovalSummary>, WriteError> {
        let before = self.extension.before().clone();
        let parts = self.parts(&before, ordinals)?;
        let mut refs = Vec::new();
        let mut copied = Copied::default();
        let mut next = self.extension.first_number();
        let first_copy = next;
        for part in &parts {
            match part.fate {
                Fate::Go => {}
                Fate::Stay => refs.push(part.segment.clone()),
                Fate::Copy => {
                    let name = segment_name(next);
                    let Some(finished) = self.copy(part, name, &mut copied, on_copied)? else { return Ok(None) };
                    refs.push(finished.reference());
                    next += 1;
                }
            }
        }
        let unchanged = parts.iter().take_while(|part| part.fate == Fate::Stay).count();
        let manifest = self.manifest(refs, unchanged)?;
        let replaced = parts.iter().filter(|part| part.fate != Fate::Stay).map(|part| part.segment);
        let mut summary = RemovalSummary {
            removed: ordinals.len() as u64,
            samples: manifest.segments().iter().map(|segment| segment.sample_count).sum(),
            segments: manifest.segments().len() as u64,
            copied_segments: next - first_copy,
            copied_bytes: copied.bytes,
            replaced_bytes: replaced.map(|segment| segment.file_len).sum(),
            is_freed: false,
            fingerprint: manifest.fingerprint(),
        };
        summary.is_freed = self.extension.commit_and_free(&manifest, frees)?;
        let RemovalSummary { removed, samples, copied_segments, copied_bytes, fingerprint, .. } = &summary;
        tracing::info!(removed, samples, copied_segments, copied_bytes, %fingerprint, "samples removed");
        Ok(Some(summary))
    }

    /// What becomes of each segment. Nothing is written before all of this is known to be possible.
    fn parts<'a>(&self, before: &'a Manifest, ordinals: &'a [u64]) -> Result<Vec<Part<'a>>, WriteError> {
        let total: u64 = before.segments().iter().map(|segment| segment.sample_count).sum();
        let is_sorted = ordinals.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_sorted || ordinals.last().is_none_or(|&last| last >= total) {
            let what = format!("the ordinals of samples to remove: expected 1 or more below {total} that ascend");
            return Err(FormatError::Invalid(what).into());
        }
        let refuse = |why: String, is_external| {
            Err(WriteError::NotReducible { path: self.extension.path().to_owned(), why, is_external })
        };
        if ordinals.len() as u64 == total {
            return refuse(format!("none of its {total} samples would be left, and a dataset has at least one"), false);
        }
        let mut parts = Vec::with_capacity(before.segments().len());
        let (mut rest, mut first) = (ordinals, 0);
        for segment in before.segments() {
            let end = first + segment.sample_count;
            let (removed, later) = rest.split_at(rest.partition_point(|&ordinal| ordinal < end));
            let fate = match removed.len() as u64 {
                0 => Fate::Stay,
                all if all == segment.sample_count => Fate::Go,
                _ => Fate::Copy,
            };
            parts.push(Part { segment, first, removed, fate });
            (rest, first) = (later, end);
        }
        // The user metadata of a dataset is that of its last segment. spec.md: GEN-4.
        if let Some(last) = parts.iter_mut().rfind(|part| part.fate != Fate::Go)
            && last.fate == Fate::Stay
        {
            let path = self.extension.path().join(index_name(last.segment));
            let own = SegmentRows::open(self.storage.as_ref(), path)?.metadata;
            if own.user != self.spec.metadata.user {
                last.fate = Fate::Copy;
            }
        }
        let external = parts.iter().find(|part| part.fate != Fate::Stay && part.segment.kind != SegmentKind::Native);
        match external {
            None => Ok(parts),
            Some(part) => {
                let path = grainstore_format::shown_path(&part.segment.path);
                refuse(format!("\"{path}\", which was adopted, is a file that grainstore never writes to"), true)
            }
        }
    }

    /// Copies the samples of a segment that stay to a new one. `None` where it was stopped.
    fn copy(
        &self,
        part: &Part<'_>,
        name: String,
        copied: &mut Copied,
        on_copied: &mut dyn FnMut(Copied) -> ControlFlow<()>,
    ) -> Result<Option<FinishedSegment>, WriteError> {
        let path = self.extension.path().join(&part.segment.path);
        let mut rows = SegmentRows::open(self.storage.as_ref(), path.clone())?;
        let mut stored = StoredBytes::open(self.storage.as_ref(), path.clone())?;
        let mut segment = SegmentWriter::create(&self.storage, self.extension.path().join(&name), self.spec.clone())?;
        let mut removed = part.removed.iter().copied().peekable();
        let mut ordinals = part.first..;
        while let (Some(row), Some(ordinal)) = (rows.next()?, ordinals.next()) {
            if removed.next_if_eq(&ordinal).is_some() {
                continue;
            }
            let crc = segment.push_stored(&row, |output| stored.copy(row.offset, row.stored_len, output))?;
            if let Err(why) = crc {
                return Err(WriteError::NotCopied { path, ordinal, key: row.key.to_vec(), why });
            }
            copied.samples += 1;
            copied.bytes += row.stored_len;
            if on_copied(*copied).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(FinishedSegment { name, emitted: segment.finish()? }))
    }

    /// The manifest of what is left; the first `unchanged` segments are those of the manifest before. Generations that
    /// held a segment that is gone are gone, too.
    fn manifest(&self, refs: Vec<SegmentRef>, unchanged: usize) -> Result<Manifest, WriteError> {
        let generations = self.extension.before().generations().iter().map(|generation| generation.segment_count);
        let earlier: Vec<u32> =
            generations.filter(|&count| count as usize <= unchanged && (count as usize) < refs.len()).collect();
        let Some(first) = refs.first() else { return Err(WriteError::Empty) };
        let own = grainstore_format::IndexRef { file: index_name(first).to_owned(), fingerprint: first.fingerprint };
        let unmerged = Manifest::new(own, refs.clone(), &earlier)?;
        if refs.len() == 1 {
            return Ok(unmerged);
        }
        let directory = self.extension.path();
        let paths = refs.iter().map(|segment| directory.join(index_name(segment)));
        let index = merge(&self.storage, directory, paths, &self.spec, unmerged.fingerprint())?;
        Ok(Manifest::new(index, refs, &earlier)?)
    }
}
