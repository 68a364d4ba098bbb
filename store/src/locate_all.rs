//! Where many samples lie, for who asks by the million.
//!
//! Once the index is loaded, all rules have been checked: what is left is to look an entry up, and the CPU has several
//! of them on their way from memory at a time.

use grainstore_format::{Entry, SectionKind, StoredLen, to_usize};

use crate::{Dataset, Encoding, Location, StoreError};

impl Dataset {
    /// Appends the locations of samples to `out`, in the order asked: [`Dataset::locate`] of each, at a fraction of the
    /// time once the index is loaded.
    ///
    /// # Errors
    /// As [`Dataset::locate`], for the first that fails; `out` then holds those before it.
    pub fn locate_all(&self, ordinals: &[u64], out: &mut Vec<Location>) -> Result<(), StoreError> {
        out.reserve(ordinals.len());
        let Some(loaded) = self.checked_entries()? else {
            for ordinal in ordinals {
                out.push(self.locate(*ordinal)?);
            }
            return Ok(());
        };
        for &ordinal in ordinals {
            let plain = loaded.get(to_usize(ordinal)).and_then(plain_location);
            out.push(match plain {
                Some(location) if ordinal < self.sample_count() => location,
                _ => self.locate(ordinal)?,
            });
        }
        Ok(())
    }

    /// The entries, where they have been loaded and checked.
    fn checked_entries(&self) -> Result<Option<&[Entry]>, StoreError> {
        if self.0.loaded.get().is_none() {
            return Ok(None);
        }
        Ok(Some(Entry::slice_of(self.0.index.whole(SectionKind::Entries, 0)?)))
    }
}

/// The location in an entry that was checked and says all of it: neither long nor compressed.
fn plain_location(entry: &Entry) -> Option<Location> {
    match entry.stored_len() {
        StoredLen::Here(len) if !entry.is_lz4() => Some(Location {
            segment: entry.segment() as usize,
            offset: entry.offset(),
            stored_len: len.into(),
            crc: entry.crc(),
            encoding: Encoding::Raw,
        }),
        _ => None,
    }
}
