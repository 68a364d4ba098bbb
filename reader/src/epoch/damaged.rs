//! Samples of the batch in the making that cannot be read or are damaged.

use crate::ReadError;
use crate::damage::OnDamage;
use crate::engine::Filled;

/// What is wrong with the batch in the making, where an epoch goes on in spite of it.
pub(super) struct Damaged {
    on_damage: OnDamage,
    /// Places in the batch, and what is wrong with each.
    skipped: Vec<(usize, ReadError)>,
    /// Places in the batch whose bytes came by a read of their own.
    kept: Vec<(usize, Filled)>,
}

impl Damaged {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, skipped: Vec::new(), kept: Vec::new() }
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
        if self.skipped.iter().all(|(other, _)| *other != place) {
            self.skipped.push((place, error));
        }
        Ok(())
    }

    /// Keeps the bytes of a sample until they are checked.
    pub(super) fn keep(&mut self, place: usize, filled: Filled) {
        self.kept.push((place, filled));
    }

    pub(super) fn kept(&self, place: usize) -> &[u8] {
        self.kept.iter().find(|(other, _)| *other == place).map_or(&[], |(_, filled)| filled.bytes())
    }

    pub(super) fn forget_kept(&mut self) {
        self.kept.clear();
    }

    /// What the batch, all of which is made, has to do without.
    pub(super) fn take_skipped(&mut self) -> Vec<(usize, ReadError)> {
        std::mem::take(&mut self.skipped)
    }
}
