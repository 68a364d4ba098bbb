//! Where samples lie: one at a time, or all of them loaded and checked. spec.md: section 6.2 to 6.4.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use grainstore_format::{ChunkList, Entry, LongTable, SectionKind, StoredLen, to_usize};

use crate::entries::{EntryRules, Part, Tally, min_offset, raw_len_fits};
use crate::index::Index;
use crate::threads::share_out;
use crate::{Dataset, PayloadError, StoreError};

/// Entries that one thread checks at a time: half a megabyte.
const PART_LEN: usize = 32768;
/// Fewer parts than this are checked by the calling thread: starting others takes longer.
const PARTS_ALONE: usize = 8;

/// Where the stored bytes of a sample are, and what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The segment's number.
    pub segment: usize,
    /// From the start of the segment's file, in bytes.
    pub offset: u64,
    /// Bytes as stored.
    pub stored_len: u64,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// How the payload is stored.
    pub encoding: Encoding,
}

/// How a payload is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Raw,
    /// As one LZ4 block.
    Lz4 {
        /// Bytes of the payload, at most 64 MiB.
        raw_len: u64,
    },
}

impl Location {
    /// Bytes of the payload once decoded.
    pub fn raw_len(&self) -> u64 {
        match self.encoding {
            Encoding::Raw => self.stored_len,
            Encoding::Lz4 { raw_len } => raw_len,
        }
    }
}

/// What `load` has read and checked, besides the entries, which stay in their section.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Of the opened generation.
    chunks: ChunkList,
    /// Of the opened generation.
    pub(crate) tally: Tally,
}

impl Dataset {
    /// Where sample `ordinal` lies. Until [`Dataset::load`] was called, this reads the index piece by piece.
    ///
    /// # Errors
    /// Where there is no such sample, or its entry breaks a rule of the format.
    pub fn locate(&self, ordinal: u64) -> Result<Location, StoreError> {
        self.check_ordinal(ordinal)?;
        let index = &self.0.index;
        let from = ordinal * Entry::LEN as u64;
        let bytes = index.read(SectionKind::Entries, 0, from..from + Entry::LEN as u64)?;
        let entry = Entry::slice_of(&bytes).first().copied();
        let entry = entry.ok_or_else(|| index.damaged("index", format!("sample {ordinal} has no entry")))?;
        self.check_location(ordinal, &entry)
    }

    /// The rules that can be checked of one entry by itself. spec.md: ENT-1 to ENT-3, ENT-6, SEG-2, LNG-1, RAW-2.
    #[inline]
    fn check_location(&self, ordinal: u64, entry: &Entry) -> Result<Location, StoreError> {
        let index = &self.0.index;
        let (segment, offset) = (entry.segment() as usize, entry.offset());
        // Asked this way round, nothing has to be searched for.
        if !self.0.table.ordinals(segment).contains(&ordinal) {
            let expected = self.0.table.segment_of(ordinal);
            let what = format!("entry says segment {segment}, it is in segment {expected}");
            return Err(self.damaged_sample(ordinal, expected, offset, what));
        }
        let wrong = |what: String| Err(self.damaged_sample(ordinal, segment, offset, what));
        let stored_len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long if entry.is_lz4() => return wrong("it is long and LZ4, which cannot be".into()),
            StoredLen::Long => match index.long()?.stored_len(ordinal) {
                Some(len) => len,
                None => return wrong("it is long, and the table of long samples does not know it".into()),
            },
        };
        let least = min_offset(self.0.external.get(segment).copied().unwrap_or(false));
        let data_end = self.0.table.records().get(segment).map_or(0, |record| record.data_end);
        // An end past 2^64 would wrap round and look harmless.
        let end = offset.checked_add(stored_len).filter(|end| *end <= data_end);
        if offset < least || end.is_none() {
            return wrong(format!(
                "{stored_len} bytes at {offset} are not inside the segment's data {least}..{data_end}"
            ));
        }
        let encoding = if entry.is_lz4() {
            let raw_len = self.raw_len(ordinal)?;
            if !raw_len_fits(stored_len, raw_len) {
                return wrong(format!("{stored_len} bytes of LZ4 cannot have {raw_len} raw bytes"));
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
            return Err(index.damaged("index", format!("sample {ordinal} is LZ4, and there are no raw lengths")));
        }
        index.number(SectionKind::RawLen, 0, ordinal)
    }

    /// Loads entries, lengths, chunks and edges whole, in parallel, and checks all their rules. Afterwards
    /// [`Dataset::locate`] touches no disk. A second call does nothing.
    ///
    /// # Errors
    /// Where something cannot be read, or the first rule that is broken.
    pub fn load(&self) -> Result<(), StoreError> {
        self.loaded().map(|_| ())
    }

    /// The chunk list of the opened generation; loads it if need be.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn chunks(&self) -> Result<&ChunkList, StoreError> {
        Ok(&self.loaded()?.chunks)
    }

    /// Sum of the stored lengths of all samples of the opened generation, in bytes.
    ///
    /// # Errors
    /// As [`Dataset::load`], which an older generation needs.
    pub fn stored_bytes(&self) -> Result<u64, StoreError> {
        if self.is_newest() {
            return Ok(self.0.index.frame.directory.counts().stored_bytes);
        }
        Ok(self.loaded()?.tally.stored_bytes)
    }

    /// Sum of the raw lengths of all samples of the opened generation, in bytes.
    ///
    /// # Errors
    /// As [`Dataset::load`], which an older generation needs.
    pub fn payload_bytes(&self) -> Result<u64, StoreError> {
        if self.is_newest() {
            return Ok(self.0.index.frame.directory.counts().payload_bytes);
        }
        Ok(self.loaded()?.tally.payload_bytes)
    }

    pub(crate) fn loaded(&self) -> Result<&Loaded, StoreError> {
        if let Some(loaded) = self.0.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load_and_check()?;
        Ok(self.0.loaded.get_or_init(|| loaded))
    }

    /// All of the index is checked, a later generation's samples too: sums and counts cover it whole.
    fn load_and_check(&self) -> Result<Loaded, StoreError> {
        let index = &self.0.index;
        let chunks = read_chunks(index)?;
        let rules = EntryRules {
            table: &index.table,
            external: &self.0.external,
            chunks: &chunks,
            long: index.long()?,
            chunk_size: self.geometry().chunk_size,
        };
        let entries = Entry::slice_of(index.whole(SectionKind::Entries, 0)?);
        let raw_len = match index.section(SectionKind::RawLen, 0) {
            Some(section) => Some(section.whole(&index.frame.file)?),
            None => None,
        };
        let cut = to_usize(self.sample_count()).min(entries.len());
        let older = self.check_parts(&rules, entries, raw_len, 0..cut)?;
        let newer = self.check_parts(&rules, entries, raw_len, cut..entries.len())?;
        check_tally(index, rules.long, older.plus(newer))?;
        let chunk_count = self.0.table.chunk_count();
        let chunks = if self.is_newest() { chunks } else { chunks.truncated(chunk_count) };
        Ok(Loaded { chunks, tally: older })
    }

    fn check_parts(
        &self,
        rules: &EntryRules<'_>,
        entries: &[Entry],
        raw_len: Option<&[u8]>,
        range: Range<usize>,
    ) -> Result<Tally, StoreError> {
        let check = |part: usize| {
            let from = range.start + part * PART_LEN;
            let to = (from + PART_LEN).min(range.end);
            let part = Part {
                first: from as u64,
                entries: entries.get(from..to).unwrap_or_default(),
                before: from.checked_sub(1).and_then(|before| entries.get(before)).copied(),
                raw_len: raw_len.map(|raw_len| raw_len.get(4 * from..4 * to).unwrap_or_default()),
            };
            let mut first_wrong = None;
            let tally = rules.check(&part, &mut |ordinal, what| {
                first_wrong.get_or_insert_with(|| (ordinal, what.to_string()));
            });
            first_wrong.map_or(Ok(tally), |(ordinal, what)| {
                let segment = rules.table.segment_of(ordinal);
                let offset = entries.get(to_usize(ordinal)).map_or(0, Entry::offset);
                Err(self.damaged_sample(ordinal, segment, offset, what))
            })
        };
        let parts = range.len().div_ceil(PART_LEN);
        let sum = Mutex::new(Tally::default());
        let add = |part| {
            let tally = check(part)?;
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum = sum.plus(tally);
            Ok(())
        };
        if parts < PARTS_ALONE {
            (0..parts).try_for_each(add)?
        } else {
            share_out(0..parts, add)?
        }
        Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error for a sample whose stored bytes do not hold what the index says.
    pub fn payload_error(&self, ordinal: u64, location: &Location, error: &PayloadError) -> StoreError {
        self.damaged_sample(ordinal, location.segment, location.offset, error.to_string())
    }

    /// An error that names a sample by all that is known of it.
    pub fn damaged_sample(&self, ordinal: u64, segment: usize, offset: u64, what: String) -> StoreError {
        let path = self.0.segments.get(segment).map_or_else(|| self.0.path.clone(), |s| s.path().to_owned());
        // A key that cannot be read must not hide what is wrong with the sample.
        let key = self.key(ordinal).ok().flatten();
        StoreError::Sample { path, segment, ordinal, key, offset, what }
    }
}

/// Reads sections CHUNKS and EDGES of an index. spec.md: CHK-1 to CHK-3.
pub(crate) fn read_chunks(index: &Index) -> Result<ChunkList, StoreError> {
    let all = |kind| {
        let len = index.record(kind, 0).map_or(0, |record| record.len);
        index.peek(kind, 0, 0..len)
    };
    let (counts, edges) = (all(SectionKind::Chunks)?, all(SectionKind::Edges)?);
    ChunkList::decode(&counts, edges, &index.table, &index.frame.directory).map_err(|error| index.wrong(error))
}

/// The samples add up to what the directory says. spec.md: section 5, LNG-1, RAW-1.
pub(crate) fn check_tally(index: &Index, long: &LongTable, tally: Tally) -> Result<(), StoreError> {
    let counts = index.frame.directory.counts();
    let wrong = |what, detail| Err(index.damaged(what, detail));
    if tally.long != long.len() {
        let detail = format!("{} samples, {} entries are long", long.len(), tally.long);
        return wrong("table of long samples", detail);
    }
    if (tally.lz4 > 0) != index.record(SectionKind::RawLen, 0).is_some() {
        return wrong("directory", format!("{} samples are LZ4, section raw_len says otherwise", tally.lz4));
    }
    if (tally.stored_bytes, tally.payload_bytes) != (counts.stored_bytes, counts.payload_bytes) {
        let found = format!("{} stored and {} raw", tally.stored_bytes, tally.payload_bytes);
        let detail =
            format!("samples have {found} bytes, it says {} and {}", counts.stored_bytes, counts.payload_bytes);
        return wrong("directory", detail);
    }
    Ok(())
}
