//! A dataset of a collection, which stays closed until it is needed.
//!
//! It is opened once to read its facts, and closed again: a closed member holds a few words of memory, no file and no
//! index. When it is opened again, it must still be the same dataset.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use grainstore_format::{ChunkSize, Fingerprint};

use crate::{Dataset, OpenOptions, StoreError};

/// A dataset, open or closed, and the facts known about it.
#[derive(Debug)]
pub(super) struct MemberDataset {
    path: PathBuf,
    /// With the generation that was opened first.
    options: OpenOptions,
    pub(super) facts: MemberFacts,
    /// `None` if the whole index is needed for them: for a generation that is not the newest.
    pub(super) sums: Option<Sums>,
    opened: OnceLock<Dataset>,
}

/// What must be the same each time a member is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberFacts {
    pub(super) fingerprint: Fingerprint,
    pub(super) sample_count: u64,
    pub(super) segment_count: usize,
    /// The sum of the lengths of the segments' files.
    pub(super) segment_bytes: u64,
    pub(super) chunk_size: ChunkSize,
    pub(super) has_field_columns: bool,
}

/// The bytes of all samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) stored_bytes: u64,
    pub(super) payload_bytes: u64,
}

impl MemberFacts {
    fn of(dataset: &Dataset) -> Self {
        Self {
            fingerprint: dataset.fingerprint(),
            sample_count: dataset.sample_count(),
            segment_count: dataset.segments().len(),
            segment_bytes: segment_bytes(dataset),
            chunk_size: dataset.geometry().chunk_size,
            has_field_columns: dataset.has_field_columns(),
        }
    }
}

impl Sums {
    fn of(dataset: &Dataset) -> Result<Option<Self>, StoreError> {
        if !dataset.is_newest() {
            return Ok(None);
        }
        Ok(Some(Self { stored_bytes: dataset.stored_bytes()?, payload_bytes: dataset.payload_bytes()? }))
    }
}

impl MemberDataset {
    /// The facts about a dataset that was opened with `options`, which the caller then closes.
    pub(super) fn closed(dataset: &Dataset, options: &OpenOptions) -> Result<Self, StoreError> {
        let newest =
            || dataset.0.manifest.as_ref().map_or(0, |manifest| manifest.generations().len().saturating_sub(1));
        let generation = Some(options.generation.unwrap_or_else(newest));
        Ok(Self {
            path: dataset.path().to_owned(),
            options: OpenOptions { generation, ..options.clone() },
            facts: MemberFacts::of(dataset),
            sums: Sums::of(dataset)?,
            opened: OnceLock::new(),
        })
    }

    /// A dataset that stays open.
    pub(super) fn open(dataset: Dataset) -> Result<Self, StoreError> {
        let member = Self::closed(&dataset, &OpenOptions::default())?;
        Ok(Self { opened: OnceLock::from(dataset), ..member })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The dataset, if it is open.
    pub(super) fn opened(&self) -> Option<&Dataset> {
        self.opened.get()
    }

    /// The dataset, opened if needed.
    #[inline]
    pub(super) fn dataset(&self) -> Result<&Dataset, StoreError> {
        match self.opened.get() {
            Some(dataset) => Ok(dataset),
            None => self.open_again(),
        }
    }

    /// Two threads may do this at the same time; one of the two datasets is dropped then.
    #[cold]
    fn open_again(&self) -> Result<&Dataset, StoreError> {
        let dataset = Dataset::open_with(&self.path, &self.options).map_err(|error| match error {
            StoreError::NoSuchGeneration { .. } => self.replaced("it has fewer generations".into()),
            other => other,
        })?;
        let found = MemberFacts::of(&dataset);
        let expected = self.facts;
        if found.fingerprint != expected.fingerprint {
            return Err(
                self.replaced(format!("its fingerprint is {}, it was {}", found.fingerprint, expected.fingerprint))
            );
        }
        if found != expected {
            return Err(self.replaced("its fingerprint is the same, but its files are not".into()));
        }
        Ok(self.opened.get_or_init(|| dataset))
    }

    fn replaced(&self, how: String) -> StoreError {
        StoreError::Changed { path: self.path.clone(), what: how }
    }
}

/// The sum of the lengths of the files of all segments.
pub(super) fn segment_bytes(dataset: &Dataset) -> u64 {
    dataset.segments().iter().map(|segment| segment.file_len()).fold(0, u64::saturating_add)
}
