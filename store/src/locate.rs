//! Where samples are stored: one at a time, or many. spec.md: section 6.2 to 6.4.

use grainstore_format::{Entry, SectionKind, StoredLen, to_usize};

use crate::entry_rules::{min_offset, raw_len_fits};
use crate::{Dataset, Encoding, Location, PayloadError, StoreError};

impl Dataset {
    /// Where sample `ordinal` is stored. Until [`Dataset::load`] is called, this reads the index in pieces, and checks
    /// what can be checked of one sample; once the chunk list is in memory, that it agrees with the list.
    ///
    /// # Errors
    /// If there is no such sample, or its entry breaks a rule of the format.
    pub fn locate(&self, ordinal: u64) -> Result<Location, StoreError> {
        self.check_ordinal(ordinal)?;
        let location = self.check_location(ordinal, &self.entry(ordinal)?)?;
        match self.cached_chunks() {
            Some(chunks) if !self.is_loaded() => self.check_chunk(chunks, ordinal, &location)?,
            _ => {}
        }
        Ok(location)
    }

    /// [`Dataset::locate`] without reading or waiting: `None` unless the entries are in memory and the sample's entry
    /// is enough. [`Dataset::locate`] then reads, and returns any error.
    pub fn cached_location(&self, ordinal: u64) -> Option<Location> {
        let from = ordinal.checked_mul(Entry::LEN as u64).filter(|_| ordinal < self.sample_count())?;
        let entries = self.0.index.section(SectionKind::Entries, 0)?;
        let entry = Entry::slice_of(entries.loaded(from..from + Entry::LEN as u64)?).first()?;
        if entry.stored_len() == StoredLen::Long || entry.is_lz4() {
            return None;
        }
        self.check_location(ordinal, entry).ok()
    }

    /// Appends the locations of samples to `out`, in the order given: [`Dataset::locate`] of each, but several times
    /// faster once the index is loaded.
    ///
    /// A loaded index has been checked: what is left is to read an entry, and the processor fetches several at a time.
    ///
    /// # Errors
    /// As [`Dataset::locate`], for the first that fails; `out` then holds those before it.
    pub fn locate_batch(&self, ordinals: &[u64], out: &mut Vec<Location>) -> Result<(), StoreError> {
        out.reserve(ordinals.len());
        let Some(loaded) = self.checked_entries()? else {
            for ordinal in ordinals {
                out.push(self.locate(*ordinal)?);
            }
            return Ok(());
        };
        for &ordinal in ordinals {
            let plain = loaded.get(to_usize(ordinal)).and_then(plain_location);
            let location = match plain {
                Some(location) if ordinal < self.sample_count() => location,
                _ => self.locate(ordinal)?,
            };
            out.push(location);
        }
        Ok(())
    }

    /// The entries, if they have been loaded and checked.
    fn checked_entries(&self) -> Result<Option<&[Entry]>, StoreError> {
        if self.0.loaded.get().is_none() {
            return Ok(None);
        }
        Ok(Some(Entry::slice_of(self.0.index.whole(SectionKind::Entries, 0)?)))
    }

    pub(crate) fn entry(&self, ordinal: u64) -> Result<Entry, StoreError> {
        let index = &self.0.index;
        let from = ordinal * Entry::LEN as u64;
        let bytes = index.read(SectionKind::Entries, 0, from..from + Entry::LEN as u64)?;
        let entry = Entry::slice_of(&bytes).first().copied();
        entry.ok_or_else(|| index.damaged("index", format!("sample {ordinal} has no entry")))
    }

    /// The rules that can be checked of one entry by itself. spec.md: ENT-1 to ENT-3, ENT-6, SEG-2, LNG-1, RAW-2.
    #[inline]
    fn check_location(&self, ordinal: u64, entry: &Entry) -> Result<Location, StoreError> {
        let index = &self.0.index;
        let segment = entry.segment() as usize;
        let offset = entry.offset();
        // Starting from the entry's segment, no search is needed.
        if !self.0.table.ordinals(segment).contains(&ordinal) {
            let expected = self.0.table.segment_of(ordinal);
            let what = format!("its entry has segment {segment}, it is in segment {expected}");
            return Err(self.damaged_sample(ordinal, expected, offset, what));
        }
        let wrong = |what: String| Err(self.damaged_sample(ordinal, segment, offset, what));
        let stored_len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long if entry.is_lz4() => return wrong("it is both long and LZ4".into()),
            StoredLen::Long => match index.long()?.stored_len(ordinal) {
                Some(len) => len,
                None => return wrong("it is long, but missing in the table of long samples".into()),
            },
        };
        let least = min_offset(self.0.external.get(segment).copied().unwrap_or(false));
        let data_end = self.0.table.records().get(segment).map_or(0, |record| record.data_end);
        // An end past 2^64 would wrap around and look valid.
        let end = offset.checked_add(stored_len).filter(|end| *end <= data_end);
        if offset < least || end.is_none() {
            return wrong(format!(
                "{stored_len} bytes at {offset} are not inside the segment's data {least}..{data_end}"
            ));
        }
        let encoding = if entry.is_lz4() {
            let raw_len = self.raw_len(ordinal)?;
            if !raw_len_fits(stored_len, raw_len) {
                return wrong(format!("{stored_len} bytes of LZ4 cannot hold {raw_len} raw bytes"));
            }
            Encoding::Lz4 { raw_len }
        } else {
            Encoding::Raw
        };
        Ok(Location { segment, offset, stored_len, crc: entry.crc(), encoding })
    }

    fn raw_len(&self, ordinal: u64) -> Result<u64, StoreError> {
        let index = &self.0.index;
        if index.record(SectionKind::RawLen, 0).is_none() {
            return Err(
                index.damaged("index", format!("sample {ordinal} is LZ4, but there is no section of raw lengths"))
            );
        }
        index.number(SectionKind::RawLen, 0, ordinal)
    }

    /// Sum of the stored lengths of all samples of the opened generation, in bytes.
    ///
    /// # Errors
    /// As [`Dataset::load`], which an older generation needs.
    pub fn stored_bytes(&self) -> Result<u64, StoreError> {
        if self.is_newest() {
            return Ok(self.0.index.frame.directory.counts().stored_bytes);
        }
        Ok(self.loaded()?.totals.stored_bytes)
    }

    /// Sum of the raw lengths of all samples of the opened generation, in bytes.
    ///
    /// # Errors
    /// As [`Dataset::load`], which an older generation needs.
    pub fn payload_bytes(&self) -> Result<u64, StoreError> {
        if self.is_newest() {
            return Ok(self.0.index.frame.directory.counts().payload_bytes);
        }
        Ok(self.loaded()?.totals.payload_bytes)
    }

    /// The error for a sample whose stored bytes disagree with the index.
    pub fn payload_error(&self, ordinal: u64, location: &Location, error: &PayloadError) -> StoreError {
        self.damaged_sample(ordinal, location.segment, location.offset, error.to_string())
    }

    /// The error of a damaged sample, with its segment's path and its key.
    pub fn damaged_sample(&self, ordinal: u64, segment: usize, offset: u64, what: String) -> StoreError {
        let path = self.0.segments.get(segment).map_or_else(|| self.0.path.clone(), |s| s.path().to_owned());
        // A key that cannot be read must not hide what is wrong with the sample.
        let key = self.key(ordinal).ok().flatten();
        StoreError::Sample { path, segment, ordinal, key, offset, what }
    }
}

/// The location in a checked entry; `None` if the sample is long or compressed.
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
