//! Samples of the batch under construction that cannot be read or are damaged.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::engine::Filled;
use crate::on_damage::OnDamage;

/// What is wrong with samples of the batch under construction, where the epoch continues without them.
pub(super) struct DamagedSamples {
    on_damage: OnDamage,
    /// By index in the batch.
    skipped: BTreeMap<usize, ReadError>,
    /// By index in the batch: the bytes of samples that were read by themselves.
    kept: BTreeMap<usize, Filled>,
}

impl DamagedSamples {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, skipped: BTreeMap::new(), kept: BTreeMap::new() }
    }

    /// Whether the epoch continues without samples that are damaged.
    pub(super) fn is_skipped(&self) -> bool {
        self.on_damage == OnDamage::Skip
    }

    /// Notes what is wrong with a sample of the batch, once. Returns the error where the epoch ends with it, or
    /// where the sample is not the cause.
    pub(super) fn note(&mut self, index: usize, error: ReadError) -> Result<(), ReadError> {
        let is_of_sample = matches!(
            error,
            ReadError::Unreadable { .. } | ReadError::Store(grainstore_store::StoreError::Sample { .. })
        );
        if !self.is_skipped() || !is_of_sample {
            return Err(error);
        }
        self.skipped.entry(index).or_insert(error);
        Ok(())
    }

    /// Keeps the bytes of a sample until they are checked.
    pub(super) fn keep(&mut self, index: usize, filled: Filled) {
        self.kept.insert(index, filled);
    }

    /// The bytes that were kept of a sample; none of one that is skipped.
    pub(super) fn kept(&self, index: usize) -> &[u8] {
        self.kept.get(&index).map_or(&[], Filled::bytes)
    }

    pub(super) fn forget_kept(&mut self) {
        self.kept.clear();
    }

    /// The samples that are missing from the batch, once all of its samples have been visited.
    pub(super) fn take_skipped(&mut self) -> BTreeMap<usize, ReadError> {
        std::mem::take(&mut self.skipped)
    }
}
