//! The index loaded whole, and all its rules checked: at once, or in a thread of its own while samples are located
//! piece by piece. spec.md: section 6.2 to 6.4.
//!
//! The thread holds the dataset and nobody waits for it: it goes on to its end where the dataset is dropped meanwhile.
//! What it finds wrong is told by [`Dataset::check_load`], and by every later load.

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

/// Entries of fewer bytes than this are loaded at once: that takes a few milliseconds.
const AHEAD_LEN_MIN: u64 = 8 << 20;
/// Entries that one thread checks at a time: half a megabyte.
const PART_LEN: usize = 32768;
/// Fewer parts than this are checked by the calling thread: starting others takes longer.
const PARTS_ALONE: usize = 8;

impl Dataset {
    /// Loads entries, lengths, chunks and edges whole, in parallel, and checks all their rules. Afterwards
    /// [`Dataset::locate`] touches no disk. A second call does nothing.
    ///
    /// # Errors
    /// Where something cannot be read, or the first rule that is broken.
    pub fn load(&self) -> Result<(), StoreError> {
        self.loaded().map(|_| ())
    }

    /// Loads where that takes only a few milliseconds, as a first batch does; where the index is large, does nothing.
    ///
    /// # Errors
    /// As [`Dataset::load`], where it loads or has failed to before.
    pub fn load_if_small(&self) -> Result<(), StoreError> {
        let entries_len = self.0.index.record(SectionKind::Entries, 0).map_or(0, |record| record.len);
        if entries_len < AHEAD_LEN_MIN { self.load() } else { self.check_load() }
    }

    /// Begins to load in another thread, and returns; loads where that takes only a few milliseconds. A second call does
    /// nothing, but for telling that the load has failed.
    ///
    /// Meanwhile samples are located piece by piece. A thread that loads takes its share of the device: who wants a few
    /// samples first asks for them before.
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
            // Told by `check_load`.
            let _ = dataset.load();
        });
        // Where the system gives no more threads, this one does the work.
        thread.map_or_else(|_| self.load(), |_| Ok(()))
    }

    /// The error of a load that has failed; all is well where none was begun, and while one is under way.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn check_load(&self) -> Result<(), StoreError> {
        // Errors cannot be kept and told twice, so it is tried again.
        if self.0.loading.has_failed.load(Ordering::Acquire) { self.load() } else { Ok(()) }
    }

    /// The chunk list of the opened generation; read and checked by itself, if need be: whether the entries agree with
    /// it is known once they are located or loaded.
    ///
    /// # Errors
    /// Where it cannot be read, or disagrees with the segments.
    pub fn chunks(&self) -> Result<&ChunkList, StoreError> {
        if let Some(chunks) = self.0.chunks.get() {
            return Ok(chunks);
        }
        let chunks = read_chunks(&self.0.index)?;
        let chunks = if self.is_newest() { chunks } else { chunks.truncated(self.0.table.chunk_count()) };
        Ok(self.0.chunks.get_or_init(|| chunks))
    }

    /// The chunk list of the opened generation, where it is in memory.
    pub(crate) fn known_chunks(&self) -> Option<&ChunkList> {
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

    /// All of the index is checked, a later generation's samples too: sums and counts cover it whole.
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
            let part = EntrySlice {
                first: from as u64,
                entries: entries.get(from..to).unwrap_or_default(),
                before: from.checked_sub(1).and_then(|before| entries.get(before)).copied(),
                raw_len: raw_len.map(|raw_len| raw_len.get(4 * from..4 * to).unwrap_or_default()),
            };
            let mut first_wrong = None;
            let totals = rules.check(&part, &mut |ordinal, what| {
                first_wrong.get_or_insert_with(|| (ordinal, what.to_string()));
            });
            first_wrong.map_or(Ok(totals), |(ordinal, what)| {
                let segment = rules.table.segment_of(ordinal);
                let offset = entries.get(to_usize(ordinal)).map_or(0, Entry::offset);
                Err(self.damaged_sample(ordinal, segment, offset, what))
            })
        };
        let parts = range.len().div_ceil(PART_LEN);
        let sum = Mutex::new(EntryTotals::default());
        let add = |part| {
            let totals = check(part)?;
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            *sum = sum.plus(totals);
            Ok(())
        };
        if parts < PARTS_ALONE {
            (0..parts).try_for_each(add)?
        } else {
            share_out(0..parts, add)?
        }
        Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
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
pub(crate) fn check_totals(index: &Index, long: &LongTable, totals: EntryTotals) -> Result<(), StoreError> {
    let counts = index.frame.directory.counts();
    let wrong = |what, detail| Err(index.damaged(what, detail));
    if totals.long != long.len() {
        let detail = format!("{} samples, {} entries are long", long.len(), totals.long);
        return wrong("table of long samples", detail);
    }
    if (totals.lz4 > 0) != index.record(SectionKind::RawLen, 0).is_some() {
        return wrong("directory", format!("{} samples are LZ4, section raw_len says otherwise", totals.lz4));
    }
    if (totals.stored_bytes, totals.payload_bytes) != (counts.stored_bytes, counts.payload_bytes) {
        let found = format!("{} stored and {} raw", totals.stored_bytes, totals.payload_bytes);
        let detail =
            format!("samples have {found} bytes, it says {} and {}", counts.stored_bytes, counts.payload_bytes);
        return wrong("directory", detail);
    }
    Ok(())
}
