//! Where a writer's files go, and the step that makes them a dataset: a new directory, or one that is a dataset already.

use std::path::{Path, PathBuf};

use grainstore_format::{Manifest, SegmentRef};

use crate::WriteError;
use crate::commit::Workplace;
use crate::extension::Extension;

pub(crate) enum TargetDirectory {
    New(Workplace),
    Existing(Extension),
}

impl TargetDirectory {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::New(workplace) => workplace.path(),
            Self::Existing(extension) => extension.path(),
        }
    }

    /// The segments that the dataset had before.
    pub(crate) fn segments(&self) -> &[SegmentRef] {
        self.before().map_or(&[], Manifest::segments)
    }

    /// Their samples.
    pub(crate) fn sample_count(&self) -> u64 {
        self.before().and_then(|manifest| manifest.generations().last()).map_or(0, |last| last.sample_count)
    }

    /// The segment counts of the generations that the dataset had before.
    pub(crate) fn generations(&self) -> Vec<u32> {
        self.before().map_or(&[][..], Manifest::generations).iter().map(|generation| generation.segment_count).collect()
    }

    /// The number that the first new segment is named by.
    pub(crate) fn first_number(&self) -> u64 {
        match self {
            Self::New(_) => 0,
            Self::Existing(extension) => extension.first_number(),
        }
    }

    /// The finished segments stay, whatever becomes of the writer.
    pub(crate) fn keep(&mut self) {
        if let Self::New(workplace) = self {
            workplace.keep();
        }
    }

    /// They go with the writer.
    pub(crate) fn give_up(&mut self) {
        if let Self::New(workplace) = self {
            workplace.give_up();
        }
    }

    /// Commits; where a replaced dataset still lies, if it could not be removed.
    pub(crate) fn publish(self, manifest: &Manifest) -> Result<Option<PathBuf>, WriteError> {
        match self {
            Self::New(workplace) => workplace.publish(manifest),
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
