//! Deletes samples of a dataset: a new generation without them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_format::{Fingerprint, escape_bytes};
use grainstore_reader::{Expression, SelectError, Subset};
use grainstore_sources::SourceError;
use grainstore_store::{Dataset, OpenOptions};
use grainstore_writer::{Removal, RemovalSummary};

use crate::{ConvertError, Events, Progress};

/// Which samples are deleted.
#[derive(Clone, Debug)]
pub enum Doomed<'a> {
    /// Those for which this is true.
    Subset(&'a Expression),
    /// Those with these keys, all of which the dataset has.
    Keys(&'a [Vec<u8>]),
    /// Those with these ordinals, in any order.
    Ordinals(&'a [u64]),
    /// None: nothing is done but to free the space of earlier generations.
    Nothing,
}

/// A deletion that has not begun. Only the index was read.
#[derive(Debug)]
pub struct Deletion {
    dataset: Dataset,
    ordinals: Vec<u64>,
    stored_bytes: u64,
}

impl Deletion {
    /// Finds the samples to delete.
    ///
    /// # Errors
    /// Where `dataset` cannot be opened, the expression does not suit it, or it has no sample of a key or ordinal.
    pub fn of(dataset: &Path, doomed: &Doomed<'_>) -> Result<Self, ConvertError> {
        let dataset = Dataset::open_with(dataset, &OpenOptions { allow_external: true, ..OpenOptions::default() })?;
        let ordinals = match doomed {
            Doomed::Subset(subset) => selected(&dataset, subset).map_err(of_selection)?,
            Doomed::Keys(keys) => with_keys(&dataset, keys)?,
            Doomed::Ordinals(ordinals) => in_order(&dataset, ordinals.to_vec())?,
            Doomed::Nothing => Vec::new(),
        };
        let mut stored_bytes = 0;
        for &ordinal in &ordinals {
            stored_bytes += dataset.locate(ordinal)?.stored_len;
        }
        Ok(Self { dataset, ordinals, stored_bytes })
    }

    /// The number of samples to delete.
    pub fn samples(&self) -> u64 {
        self.ordinals.len() as u64
    }

    /// Their stored bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// The number of samples that are left.
    pub fn samples_left(&self) -> u64 {
        self.dataset.sample_count() - self.samples()
    }

    /// The fingerprint of the dataset with the samples.
    pub fn fingerprint(&self) -> Fingerprint {
        self.dataset.fingerprint()
    }

    /// Deletes them: commits a new generation. Segments that hold none of them stay as they are, what stays of the
    /// others is copied. Without a sample to delete, there is no new generation.
    ///
    /// The files that the dataset does without stay until the next writer, for readers that have it open. Where `frees`
    /// is set, they are removed at once, and such readers fail.
    ///
    /// # Errors
    /// Where all samples would be deleted, or some of an adopted file; where a sample that stays is damaged; where the
    /// dataset is being written, or cannot be; or where `events` stops it. The dataset is unchanged then.
    pub fn run(self, frees: bool, events: &dyn Events) -> Result<RemovalSummary, ConvertError> {
        let path = self.dataset.path().to_owned();
        let unchanged = RemovalSummary {
            removed: 0,
            samples: self.dataset.sample_count(),
            segments: self.dataset.segments().len() as u64,
            copied_segments: 0,
            copied_bytes: 0,
            replaced_bytes: 0,
            is_freed: frees,
            fingerprint: self.fingerprint(),
        };
        if self.ordinals.is_empty() && !frees {
            return Ok(unchanged);
        }
        let removal = Removal::begin(&path)?;
        if removal.fingerprint() != self.fingerprint() {
            return Err(refused(path, "another process changed it just now: try again".to_owned()));
        }
        if self.ordinals.is_empty() {
            return Ok(unchanged);
        }
        let removed = removal.remove(&self.ordinals, frees, &mut |copied| {
            events.on_progress(Progress { samples: copied.samples, bytes: copied.bytes, ..Progress::default() });
            if events.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        removed.ok_or(ConvertError::Interrupted)
    }
}

fn selected(dataset: &Dataset, subset: &Expression) -> Result<Vec<u64>, SelectError> {
    subset.check(dataset)?;
    let mut words = Vec::new();
    subset.evaluate_into(dataset, 0, &mut words)?;
    let found = Subset::from_words(dataset.sample_count(), words)?;
    Ok(found.ordinals_in(0..dataset.sample_count()).collect())
}

fn with_keys(dataset: &Dataset, keys: &[Vec<u8>]) -> Result<Vec<u64>, ConvertError> {
    let found = dataset.find_batch(keys)?;
    let mut missing = keys.iter().zip(&found).filter(|(_, ordinal)| ordinal.is_none()).map(|(key, _)| key);
    if let Some(first) = missing.next() {
        let count = missing.count() + 1;
        let (all, first) = (keys.len(), escape_bytes(first));
        let why = format!("it has no sample of {count} of the {all} keys, the first of them is \"{first}\"");
        return Err(refused(dataset.path().to_owned(), why));
    }
    in_order(dataset, found.into_iter().flatten().collect())
}

fn in_order(dataset: &Dataset, mut ordinals: Vec<u64>) -> Result<Vec<u64>, ConvertError> {
    ordinals.sort_unstable();
    ordinals.dedup();
    match ordinals.last() {
        Some(&last) if last >= dataset.sample_count() => {
            let why = format!("it has no sample {last}, its ordinals go from 0 to {}", dataset.sample_count() - 1);
            Err(refused(dataset.path().to_owned(), why))
        }
        _ => Ok(ordinals),
    }
}

fn of_selection(error: SelectError) -> ConvertError {
    SourceError::Selection(Box::new(error)).into()
}

fn refused(path: PathBuf, why: String) -> ConvertError {
    ConvertError::Refused { path, why: why.into() }
}
