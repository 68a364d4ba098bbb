//! The directory that a writer writes to, and the step that commits its files: a new directory, or that of an
//! existing dataset.

use std::path::{Path, PathBuf};

use grainstore_format::{Manifest, SegmentRef};

use crate::WriteError;
use crate::commit::PartialDirectory;
use crate::extension::Extension;

pub(crate) enum TargetDirectory {
    New(PartialDirectory),
    Existing(Extension),
}

impl TargetDirectory {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::New(partial) => partial.path(),
            Self::Existing(extension) => extension.path(),
        }
    }

    /// The segments that the dataset already had.
    pub(crate) fn segments(&self) -> &[SegmentRef] {
        self.before().map_or(&[], Manifest::segments)
    }

    /// The number of samples in them.
    pub(crate) fn sample_count(&self) -> u64 {
        self.before().and_then(|manifest| manifest.generations().last()).map_or(0, |last| last.sample_count)
    }

    /// The segment counts of the generations that the dataset already had.
    pub(crate) fn generations(&self) -> Vec<u32> {
        self.before().map_or(&[][..], Manifest::generations).iter().map(|generation| generation.segment_count).collect()
    }

    /// The number in the name of the first new segment.
    pub(crate) fn first_number(&self) -> u64 {
        match self {
            Self::New(_) => 0,
            Self::Existing(extension) => extension.first_number(),
        }
    }

    /// Keeps the finished segments even if the writer fails.
    pub(crate) fn keep(&mut self) {
        if let Self::New(partial) = self {
            partial.keep();
        }
    }

    /// Removes the finished segments when the writer is dropped.
    pub(crate) fn give_up(&mut self) {
        if let Self::New(partial) = self {
            partial.give_up();
        }
    }

    /// Commits. Returns the path of the replaced dataset if it could not be removed.
    pub(crate) fn commit(self, manifest: &Manifest) -> Result<Option<PathBuf>, WriteError> {
        match self {
            Self::New(partial) => partial.commit(manifest),
            Self::Existing(extension) => extension.commit(manifest).map(|()| None),
        }
    }

    fn before(&self) -> Option<&Manifest> {
        match self {
            Self::New(_) => None,
            Self::Existing(extension) => Some(extension.before()),
        }
    }
}
