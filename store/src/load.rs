//! Loads the whole index and checks all its rules: at once, or in a thread while samples are located piece by piece.
//! spec.md: section 6.2 to 6.4.
//!
//! The thread holds the dataset and no other thread waits for it: it runs to its end even if the dataset is dropped
//! meanwhile. The error that it finds is returned by [`Dataset::check_load`], and by every later load.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use grainstore_format::{ChunkList, Entry, LongTable, SectionKind, to_usize};

use crate::dataset_cache::CheckedEntries;
use crate::entry_rules::{EntryRules, EntrySlice, EntryTotals};
use crate::index::Index;
use crate::threads::share_out;
use crate::{Dataset, StoreError};

/// Entries of fewer bytes than this are loaded by the caller: that takes a few milliseconds.
const BACKGROUND_LEN_MIN: u64 = 8 << 20;
/// Entries that one thread checks at a time: half a megabyte.
const PART_LEN: usize = 32768;
/// Fewer parts than this are checked by the calling thread: starting more threads takes longer.
const SINGLE_THREAD_PARTS: usize = 8;

impl Dataset {
    /// Loads all entries, lengths, chunks and edges, in parallel, and checks all their rules. Afterwards
    /// [`Dataset::locate`] reads nothing from disk. A second call does nothing.
    ///
    /// # Errors
    /// If something cannot be read, or a rule is broken; the first one is reported.
    pub fn load(&self) -> Result<(), StoreError> {
        self.loaded().map(|_| ())
    }

    /// Loads the index if that takes only a few milliseconds; does nothing if the index is large.
    ///
    /// # Errors
    /// As [`Dataset::load`], where it loads or has failed to before.
    pub fn load_if_small(&self) -> Result<(), StoreError> {
        let entries_len = self.0.index.record(SectionKind::Entries, 0).map_or(0, |record| record.len);
        if entries_len < BACKGROUND_LEN_MIN { self.load() } else { self.check_load() }
    }

    /// Starts to load the index in another thread, and returns; a small index is loaded by the caller. A second call
    /// does nothing, except that it returns the error of a load that has failed.
    ///
    /// Meanwhile samples are located piece by piece. The thread uses part of the device's bandwidth: callers that need
    /// a few samples first should read them before.
    ///
    /// # Errors
    /// As [`Dataset::load`], where it loads or has failed to before.
    pub fn load_ahead(&self) -> Result<(), StoreError> {
        self.load_if_small()?;
        if self.is_loaded() {
            return Ok(());
        }
        let here = std::process::id();
        if self.0.loading.started_in.swap(here, Ordering::Relaxed) == here {
            return Ok(());
        }
        let dataset = self.clone();
        let thread = Builder::new().name("grain-index".into()).spawn(move || {
            // `check_load` returns the error.
            let _ = dataset.load();
        });
        // If the system cannot start a thread, this one does the work.
        match thread {
            Ok(_) => Ok(()),
            Err(_) => self.load(),
        }
    }

    /// Returns the error of a load that has failed; no error if none was started, or while one runs.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn check_load(&self) -> Result<(), StoreError> {
        // An error cannot be stored and returned twice, so the load is repeated.
        if self.0.loading.has_failed.load(Ordering::Acquire) { self.load() } else { Ok(()) }
    }

    /// The chunk list of the opened generation, read at the first call. Whether the entries agree with it is checked
    /// when they are located or loaded.
    ///
    /// # Errors
    /// If it cannot be read, or disagrees with the segments.
    pub fn chunks(&self) -> Result<&ChunkList, StoreError> {
        if let Some(chunks) = self.0.chunks.get() {
            return Ok(chunks);
        }
        let chunks = read_chunks(&self.0.index)?;
        let chunks = if self.is_newest() { chunks } else { chunks.truncated(self.0.table.chunk_count()) };
        Ok(self.0.chunks.get_or_init(|| chunks))
    }

    /// The chunk list of the opened generation, if it is in memory.
    pub(crate) fn cached_chunks(&self) -> Option<&ChunkList> {
        self.0.chunks.get()
    }

    /// Whether the index is in memory, loaded and checked.
    pub fn is_loaded(&self) -> bool {
        self.0.loaded.get().is_some()
    }

    pub(crate) fn loaded(&self) -> Result<&CheckedEntries, StoreError> {
        if let Some(loaded) = self.0.loaded.get() {
            return Ok(loaded);
        }
        let _alone = self.0.loading.alone();
        if let Some(loaded) = self.0.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load_and_check();
        self.0.loading.has_failed.store(loaded.is_err(), Ordering::Release);
        let loaded = loaded?;
        Ok(self.0.loaded.get_or_init(|| loaded))
    }

    /// Checks the whole index, including samples of later generations: sums and counts cover all of it.
    fn load_and_check(&self) -> Result<CheckedEntries, StoreError> {
        let index = &self.0.index;
        let of_all;
        let chunks = match self.chunks()? {
            chunks if self.is_newest() => chunks,
            _ => {
                of_all = read_chunks(index)?;
                &of_all
            }
        };
        let rules = EntryRules {
            table: &index.table,
            external: &self.0.external,
            chunks,
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
        check_totals(index, rules.long, older.plus(newer))?;
        Ok(CheckedEntries { totals: older })
    }

    fn check_parts(
        &self,
        rules: &EntryRules<'_>,
        entries: &[Entry],
        raw_len: Option<&[u8]>,
        range: Range<usize>,
    ) -> Result<EntryTotals, StoreError> {
        let check = |part: usize| {
            let from = range.start + part * PART_LEN;
            let to = (from + PART_LEN).min(range.end);
            let slice = entry_slice(entries, raw_len, from..to)?;
            let mut first_wrong = None;
            let totals = rules.check(slice, &mut |ordinal, what| {
                first_wrong.get_or_insert_with(|| (ordinal, what.to_string()));
            });
            let Some((ordinal, what)) = first_wrong else { return Ok(totals) };
            let segment = rules.table.segment_of(ordinal);
            let offset = entries.get(to_usize(ordinal)).map_or(0, Entry::offset);
            Err(self.damaged_sample(ordinal, segment, offset, what))
        };
        let parts = range.len().div_ceil(PART_LEN);
        let sum = Mutex::new(EntryTotals::default());
        let add = |part| {
            let totals = check(part)?;
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum = sum.plus(totals);
            Ok(())
        };
        if parts < SINGLE_THREAD_PARTS {
            (0..parts).try_for_each(add)?
        } else {
            share_out(0..parts, add)?
        }
        Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The samples of `range`, with their raw lengths if the index has them.
fn entry_slice<'a>(
    entries: &'a [Entry],
    raw_len: Option<&'a [u8]>,
    range: Range<usize>,
) -> Result<EntrySlice<'a>, StoreError> {
    // The directory was checked: both sections have an element for each sample.
    let bug = || StoreError::bug("section entries or raw_len is shorter than the number of samples");
    let before = range.start.checked_sub(1).and_then(|before| entries.get(before)).copied();
    let raw_len = match raw_len {
        Some(bytes) => Some(bytes.get(4 * range.start..4 * range.end).ok_or_else(bug)?),
        None => None,
    };
    let first = range.start as u64;
    EntrySlice::new(first, entries.get(range).ok_or_else(bug)?, before, raw_len).ok_or_else(bug)
}

/// Reads sections CHUNKS and EDGES of an index. spec.md: CHK-1 to CHK-3.
pub(crate) fn read_chunks(index: &Index) -> Result<ChunkList, StoreError> {
    let all = |kind| {
        let len = index.record(kind, 0).map_or(0, |record| record.len);
        index.read_uncached(kind, 0, 0..len)
    };
    let counts = all(SectionKind::Chunks)?;
    let edges = all(SectionKind::Edges)?;
    ChunkList::decode(counts, edges, &index.table, &index.frame.directory).map_err(|error| index.wrong(error))
}

/// Checks that the samples add up to the totals of the directory. spec.md: section 5, LNG-1, RAW-1.
pub(crate) fn check_totals(index: &Index, long: &LongTable, totals: EntryTotals) -> Result<(), StoreError> {
    let counts = index.frame.directory.counts();
    let wrong = |what, detail| Err(index.damaged(what, detail));
    if totals.long_count != long.len() {
        let detail = format!("{} records, but {} entries are long", long.len(), totals.long_count);
        return wrong("table of long samples", detail);
    }
    if (totals.lz4_count > 0) != index.record(SectionKind::RawLen, 0).is_some() {
        return wrong(
            "directory",
            format!("{} samples are LZ4, the presence of section raw_len disagrees", totals.lz4_count),
        );
    }
    if (totals.stored_bytes, totals.payload_bytes) != (counts.stored_bytes, counts.payload_bytes) {
        let found = format!("{} stored and {} raw", totals.stored_bytes, totals.payload_bytes);
        let detail = format!("samples have {found} bytes, it has {} and {}", counts.stored_bytes, counts.payload_bytes);
        return wrong("directory", detail);
    }
    Ok(())
}
