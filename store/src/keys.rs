//! From key to ordinal and back. spec.md: KEY-1 to KEY-7.

use grainstore_format::{KeyGeometry, KeyGroups, MAX_KEY_LEN, SLOT_LEN, SectionKind, hash48};

use crate::index::Index;
use crate::{Dataset, StoreError};

/// Keys of a group and their lengths, at most.
pub(crate) const MAX_GROUP_LEN: u64 = KeyGroups::GROUP_LEN * (MAX_KEY_LEN as u64 + 3);

impl Dataset {
    /// The ordinal of the sample with this key; none where no sample of the opened generation has it, or none has
    /// a key at all.
    ///
    /// # Errors
    /// Where the index cannot be read, or what was read of it breaks a rule of the format.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        if !self.is_keyed() || !(1..=MAX_KEY_LEN).contains(&key.len()) {
            return Ok(None);
        }
        let index = &self.0.index;
        // Later generations' keys are in the buckets too: the geometry is that of the whole index.
        let sample_count = index.sample_count();
        let geometry = KeyGeometry::new(sample_count);
        let hash = hash48(key, self.geometry().hash_seed);
        let bucket = geometry.bucket(hash);
        let (from, to) = bucket_at(index, bucket)?;
        let slots = index.read(SectionKind::Slots, 0, from * SLOT_LEN as u64..to * SLOT_LEN as u64)?;
        let mut before = None;
        for slot in slots.as_chunks::<SLOT_LEN>().0.iter().map(KeyGeometry::decode_slot) {
            let ordinal = geometry.ordinal(slot);
            if before >= Some(slot) || ordinal >= sample_count {
                return Err(index.damaged("slots", format!("bucket {bucket} has a slot that no writer writes")));
            }
            before = Some(slot);
            if geometry.hash48(bucket, slot) == hash && read_key(index, ordinal)? == key {
                return Ok(Some(ordinal).filter(|&ordinal| ordinal < self.sample_count()));
            }
        }
        Ok(None)
    }

    /// The key of sample `ordinal`; none in a dataset without keys.
    ///
    /// # Errors
    /// Where there is no such sample, or its key cannot be read.
    pub fn key(&self, ordinal: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_ordinal(ordinal)?;
        if !self.is_keyed() {
            return Ok(None);
        }
        read_key(&self.0.index, ordinal).map(Some)
    }
}

/// The slots of a bucket. spec.md: KEY-5.
fn bucket_at(index: &Index, bucket: u64) -> Result<(u64, u64), StoreError> {
    let from = index.number(SectionKind::Buckets, 0, bucket)?;
    let to = index.number(SectionKind::Buckets, 0, bucket + 1)?;
    if from > to || to > index.sample_count() {
        return Err(index.damaged("buckets", format!("bucket {bucket} has the slots {from}..{to}")));
    }
    Ok((from, to))
}

/// Reads one key out of its group. spec.md: KEY-7.
pub(crate) fn read_key(index: &Index, ordinal: u64) -> Result<Vec<u8>, StoreError> {
    let group = ordinal / KeyGroups::GROUP_LEN;
    let from = index.number(SectionKind::KeyGroups, 0, group)?;
    let to = index.number(SectionKind::KeyGroups, 0, group + 1)?;
    // A longer group would be read for nothing.
    if from > to || to - from > MAX_GROUP_LEN {
        return Err(index.damaged("key groups", format!("group {group} has the bytes {from}..{to}")));
    }
    let bytes = index.read(SectionKind::Keys, 0, from..to)?;
    let key = KeyGroups::key_in_group(&bytes, ordinal % KeyGroups::GROUP_LEN).map_err(|error| index.wrong(error))?;
    Ok(key.to_vec())
}
