//! Sorts the hashes of keys: in memory while they fit, otherwise in sorted runs on disk that are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::WriteError;
use crate::column::Spill;

const RECORD_LEN: usize = 16;
/// The smallest read buffer of a run, for any number of runs.
const MIN_BUFFER_LEN: u64 = 4096;

/// The hash of a key and the ordinal of its sample; sorted in this order.
pub(crate) type HashedKey = (u64, u64);

/// Takes hashed keys in any order and returns them sorted.
pub(crate) struct KeySorter {
    pending: Vec<HashedKey>,
    runs: Vec<SortedRun>,
    memory_len: u64,
}

struct SortedRun {
    offset: u64,
    len: u64,
}

impl KeySorter {
    /// Makes a sorter that holds at most about `memory_len` bytes.
    pub(crate) fn new(memory_len: u64) -> Self {
        Self { pending: Vec::new(), runs: Vec::new(), memory_len: memory_len.max(MIN_BUFFER_LEN) }
    }

    pub(crate) fn push(&mut self, key: HashedKey, spill: &mut Spill) -> Result<(), WriteError> {
        self.pending.push(key);
        if (self.pending.len() * RECORD_LEN) as u64 >= self.memory_len {
            self.close_run(spill)?;
        }
        Ok(())
    }

    fn close_run(&mut self, spill: &mut Spill) -> Result<(), WriteError> {
        self.pending.sort_unstable();
        let mut offset = None;
        let mut bytes = Vec::new();
        for part in self.pending.chunks(1 << 16) {
            bytes.clear();
            bytes.extend(part.iter().flat_map(|&(hash, ordinal)| encode(hash, ordinal)));
            let start = spill.append(&bytes)?;
            offset.get_or_insert(start);
        }
        let len = (self.pending.len() * RECORD_LEN) as u64;
        self.runs.extend(offset.map(|offset| SortedRun { offset, len }));
        self.pending.clear();
        Ok(())
    }

    /// Returns all keys in order.
    pub(crate) fn finish(mut self, spill: &mut Spill) -> Result<SortedKeys, WriteError> {
        if self.runs.is_empty() {
            self.pending.sort_unstable();
            return Ok(SortedKeys::InMemory(self.pending.into_iter()));
        }
        if !self.pending.is_empty() {
            self.close_run(spill)?;
        }
        let share = self.memory_len / self.runs.len() as u64;
        let buffer_len = share.clamp(MIN_BUFFER_LEN, 1 << 20) / RECORD_LEN as u64 * RECORD_LEN as u64;
        let mut merge = Merge { runs: Vec::new(), next: BinaryHeap::new() };
        for run in self.runs {
            merge.runs.push(RunReader { run, buffer: Vec::new(), at: 0, buffer_len });
            let number = merge.runs.len() - 1;
            merge.refill(number, spill)?;
        }
        Ok(SortedKeys::Merged(merge))
    }
}

fn encode(hash: u64, ordinal: u64) -> impl Iterator<Item = u8> {
    hash.to_le_bytes().into_iter().chain(ordinal.to_le_bytes())
}

/// Sorted keys, one after the other.
pub(crate) enum SortedKeys {
    InMemory(std::vec::IntoIter<HashedKey>),
    Merged(Merge),
}

impl SortedKeys {
    pub(crate) fn next(&mut self, spill: &Spill) -> Result<Option<HashedKey>, WriteError> {
        match self {
            Self::InMemory(keys) => Ok(keys.next()),
            Self::Merged(merge) => merge.next(spill),
        }
    }
}

pub(crate) struct Merge {
    runs: Vec<RunReader>,
    next: BinaryHeap<Reverse<(HashedKey, usize)>>,
}

struct RunReader {
    run: SortedRun, // the part that is still on disk
    buffer: Vec<u8>,
    at: usize,
    buffer_len: u64,
}

impl Merge {
    fn next(&mut self, spill: &Spill) -> Result<Option<HashedKey>, WriteError> {
        let Some(Reverse((key, number))) = self.next.pop() else { return Ok(None) };
        self.refill(number, spill)?;
        Ok(Some(key))
    }

    /// Puts the next key of a run on the heap.
    fn refill(&mut self, number: usize, spill: &Spill) -> Result<(), WriteError> {
        if let Some(key) = self.runs[number].next(spill)? {
            self.next.push(Reverse((key, number)));
        }
        Ok(())
    }
}

impl RunReader {
    fn next(&mut self, spill: &Spill) -> Result<Option<HashedKey>, WriteError> {
        if self.at == self.buffer.len() {
            let len = self.run.len.min(self.buffer_len);
            self.buffer.resize(grainstore_format::to_usize(len), 0);
            spill.read(&mut self.buffer, self.run.offset)?;
            self.run = SortedRun { offset: self.run.offset + len, len: self.run.len - len };
            self.at = 0;
        }
        let record = self.buffer.get(self.at..self.at + RECORD_LEN).map(|record| {
            let (words, _) = record.as_chunks::<8>();
            (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
        });
        self.at += record.map_or(0, |_| RECORD_LEN);
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskStorage;
    use std::sync::Arc;

    #[test]
    fn runs_on_disk_and_memory_give_the_same_order() {
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<HashedKey> = (0..20_000_u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50, i)).collect();
        let mut model = keys.clone();
        model.sort_unstable();
        for memory_len in [4096, 50_000, 1 << 30] {
            let mut spill = Spill::new(Arc::new(DiskStorage), folder.path().join("spill"));
            let mut sorter = KeySorter::new(memory_len);
            keys.iter().for_each(|&key| sorter.push(key, &mut spill).unwrap());
            let mut sorted = sorter.finish(&mut spill).unwrap();
            let mut found = Vec::new();
            while let Some(key) = sorted.next(&spill).unwrap() {
                found.push(key);
            }
            assert_eq!(found, model, "{memory_len}");
        }
    }
}
