//! Samples of the batch in the making that cannot be read or are damaged.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::damage::OnDamage;
use crate::engine::Filled;

/// What is wrong with the batch in the making, where an epoch goes on in spite of it.
pub(super) struct Damaged {
    on_damage: OnDamage,
    /// Places in the batch, and what is wrong with each.
    skipped: BTreeMap<usize, ReadError>,
    /// Places in the batch whose bytes came by a read of their own.
    kept: BTreeMap<usize, Filled>,
}

impl Damaged {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, skipped: BTreeMap::new(), kept: BTreeMap::new() }
    }

    /// Whether the epoch goes on without samples that are damaged.
    pub(super) fn is_skipped(&self) -> bool {
        self.on_damage == OnDamage::Skip
    }

    /// Notes what is wrong with the sample at a place of the batch, once; an error where the epoch is to end with it, or
    /// where it is no fault of the sample.
    pub(super) fn note(&mut self, place: usize, error: ReadError) -> Result<(), ReadError> {
        let is_of_sample = matches!(
            error,
            ReadError::Unreadable { .. } | ReadError::Store(grainstore_store::StoreError::Sample { .. })
        );
        if !self.is_skipped() || !is_of_sample {
            return Err(error);
        }
        self.skipped.entry(place).or_insert(error);
        Ok(())
    }

    /// Keeps the bytes of a sample until they are checked.
    pub(super) fn keep(&mut self, place: usize, filled: Filled) {
        self.kept.insert(place, filled);
    }

    pub(super) fn kept(&self, place: usize) -> &[u8] {
        self.kept.get(&place).map_or(&[], Filled::bytes)
    }

    pub(super) fn forget_kept(&mut self) {
        self.kept.clear();
    }

    /// What the batch, all of which is made, has to do without.
    pub(super) fn take_skipped(&mut self) -> BTreeMap<usize, ReadError> {
        std::mem::take(&mut self.skipped)
    }
}
