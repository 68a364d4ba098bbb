//! A batch under construction: where in its memory every payload goes, and which of them the device puts there itself.
//!
//! ```text
//! memory: | payloads to be copied, back to back | slot | slot | ... |
//! ```
//!
//! A slot is whole blocks of memory for one sample that is read by itself. It is lent to the read as a buffer and comes
//! back filled; when all are back, they are joined again.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError};

use crate::ReadError;
use crate::batch::{Batch, BatchMemory, SampleLists};
use crate::batch_len::BatchLen;
use crate::byte_range::ByteRange;
use crate::check::{self, Check, CheckTimes};
use crate::engine::{BLOCK_LEN, Buffer, BufferPool, Filled};
use crate::on_damage::SkippedSample;
use crate::open_files::OpenFiles;
use crate::plan::Positions;

/// Raw samples of at least this many bytes are not copied if they are read alone.
pub(crate) const IN_PLACE_LEN_MIN: u64 = 64 << 10;

/// A sample and where its stored bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocatedSample {
    pub(crate) ordinal: u64,
    pub(crate) location: Location,
}

/// Where in an epoch the samples of a batch are.
pub(crate) struct EpochPlaces {
    pub(crate) positions: Positions,
    /// Positions of the epoch.
    pub(crate) epoch_len: u64,
    /// By sample; empty where the epoch has no repeats.
    pub(crate) repeats: Vec<u64>,
}

/// A batch under construction.
pub(crate) struct BatchBuilder {
    /// Shared with the code that fills the batch.
    samples: Arc<Vec<LocatedSample>>,
    /// Where each payload is in the memory; for a slot, only once it is filled.
    views: Vec<Range<usize>>,
    packed: Buffer,
    /// By sample.
    slots: Vec<PayloadSlot>,
    /// The memory past what the batch needs.
    rest: Buffer,
    len: usize,
    /// Raw bytes of the samples that are decoded.
    decoded_len: u64,
    pool: Arc<BufferPool>,
}

struct PayloadSlot {
    sample: usize,
    /// In the memory.
    start: usize,
    len: usize,
    state: PayloadSlotState,
}

enum PayloadSlotState {
    Free(Buffer),
    Lent,
    Filled(Filled),
}

/// Whether the device may put a sample straight into its batch: it has to be raw, and `len_min` bytes long at least.
pub(crate) fn is_in_place(location: &Location, len_min: u64) -> bool {
    location.encoding == Encoding::Raw && location.stored_len >= len_min
}

impl BatchBuilder {
    /// Lays out a batch, if it does not decode to too many bytes. Samples that are `in_place` get a slot; it is called once for each, in order.
    pub(crate) fn new(
        samples: Vec<LocatedSample>,
        pool: Arc<BufferPool>,
        mut in_place: impl FnMut(usize, &LocatedSample) -> bool,
    ) -> Result<Self, ReadError> {
        let mut batch_len = BatchLen::default();
        samples.iter().for_each(|sample| batch_len.add(sample));
        batch_len.check(samples.len())?;
        let in_place: Vec<bool> = samples.iter().enumerate().map(|(index, sample)| in_place(index, sample)).collect();
        let mut packed_len = 0_u64;
        let mut slots_len = 0_u64;
        for (sample, in_place) in samples.iter().zip(&in_place) {
            if *in_place {
                slots_len = slots_len.saturating_add(slot_len(sample));
            } else {
                packed_len = packed_len.saturating_add(sample.location.raw_len());
            }
        }
        // Raw lengths are bounded by stored ones, and those by the files' lengths.
        let len = packed_len.saturating_add(BLOCK_LEN as u64).saturating_add(slots_len);
        let mut packed = pool.try_take(to_usize(len)).ok_or(ReadError::NoMemory { len })?;
        let rest = packed.split_off(to_usize(packed_len));
        let views = Vec::with_capacity(samples.len());
        let len = to_usize(packed_len);
        let decoded_len = batch_len.decoded_len;
        let mut builder = Self { samples: Arc::default(), views, packed, slots: vec![], rest, len, decoded_len, pool };
        let mut packed_end = 0;
        for ((index, sample), in_place) in samples.iter().enumerate().zip(in_place) {
            if in_place {
                builder.add_slot(index, to_usize(slot_len(sample)));
                builder.views.push(0..0);
            } else {
                let start = packed_end;
                packed_end += to_usize(sample.location.raw_len());
                builder.views.push(start..packed_end);
            }
        }
        builder.samples = Arc::new(samples);
        Ok(builder)
    }

    /// The samples, in the batch's order.
    pub(crate) fn samples(&self) -> &Arc<Vec<LocatedSample>> {
        &self.samples
    }

    /// Raw bytes of the samples that are decoded.
    pub(crate) fn decoded_len(&self) -> u64 {
        self.decoded_len
    }

    /// A buffer of the memory, for engines to register; `None` where it is so large that no other batch gets it
    /// afterwards: an engine would only keep it from being freed.
    pub(crate) fn memory(&self) -> Option<&Buffer> {
        self.pool.keeps(self.len).then_some(&self.packed)
    }

    /// Whether the sample has a slot.
    pub(crate) fn has_slot(&self, sample: usize) -> bool {
        self.slots.binary_search_by_key(&sample, |slot| slot.sample).is_ok()
    }

    /// Lends the slot of a sample to a read; `None` where the sample has none, or it is lent already.
    pub(crate) fn lend_slot(&mut self, sample: usize) -> Option<Buffer> {
        let slot = self.slot_mut(sample)?;
        match mem::replace(&mut slot.state, PayloadSlotState::Lent) {
            PayloadSlotState::Free(buffer) => Some(buffer),
            other => {
                slot.state = other;
                None
            }
        }
    }

    /// Fills a slot that was not lent with the sample's bytes.
    pub(crate) fn copy_to_slot(&mut self, sample: usize, stored: &[u8]) {
        let Some(mut slot) = self.lend_slot(sample) else { return };
        let len = stored.len().min(slot.capacity());
        slot.as_mut_slice()[..len].copy_from_slice(&stored[..len]);
        self.fill_slot(sample, Filled::new(slot, 0..len));
    }

    /// Takes a slot back, with the sample in it.
    pub(crate) fn fill_slot(&mut self, sample: usize, filled: Filled) {
        let wanted = filled.wanted();
        let Some(slot) = self.slot_mut(sample) else { return };
        let start = slot.start;
        slot.state = PayloadSlotState::Filled(filled);
        if let Some(view) = self.views.get_mut(sample) {
            *view = start + wanted.start..start + wanted.end;
        }
    }

    /// The checks of the samples of `group`: those in slots are verified, the others are verified and copied or
    /// decoded. `stored` returns the stored bytes of each by its index; for samples in slots they are not used.
    pub(crate) fn checks<'a>(
        &'a mut self,
        group: Range<usize>,
        mut stored: impl FnMut(usize, &LocatedSample) -> &'a [u8],
    ) -> Vec<Check<'a>> {
        let Self { samples, views, packed, slots, .. } = self;
        let slots: &'a [PayloadSlot] = slots;
        let mut free = packed.as_mut_slice();
        let mut free_start = 0;
        let mut checks = Vec::with_capacity(group.len());
        for index in group {
            let sample = &samples[index];
            let bytes = stored(index, sample);
            let slot = slots.binary_search_by_key(&index, |slot| slot.sample);
            checks.push(match slot {
                Ok(slot) => Check { location: &sample.location, stored: slots[slot].bytes(), raw: None },
                Err(_) => {
                    let view = &views[index];
                    let (raw, rest) = free.split_at_mut(view.start - free_start).1.split_at_mut(view.len());
                    free = rest;
                    free_start = view.end;
                    Check { location: &sample.location, stored: bytes, raw: Some(raw) }
                }
            });
        }
        checks
    }

    /// Checks a sample that was refused again, by other stored bytes.
    pub(crate) fn check_again(&mut self, sample: usize, stored: &[u8]) -> Result<(), PayloadError> {
        let mut checks = self.checks(sample..sample + 1, |_, _| stored);
        check::run(&mut checks, &mut CheckTimes::default()).pop().map_or(Ok(()), |(_, wrong)| Err(wrong))
    }

    /// The batch, all of whose samples have arrived, except those at the indices of `skipped`.
    pub(crate) fn finish(
        self,
        dataset: &Collection,
        places: EpochPlaces,
        mut skipped: BTreeMap<usize, ReadError>,
    ) -> Batch {
        let EpochPlaces { positions, epoch_len, mut repeats } = places;
        let ordinals: Vec<u64> = self.samples.iter().map(|sample| sample.ordinal).collect();
        let (memory, views) = self.into_memory();
        let positions: Vec<u64> = positions.collect();
        if skipped.is_empty() {
            let lists = SampleLists { ordinals, positions, views, repeats };
            return Batch::of_epoch(dataset, memory, lists, epoch_len, Arc::default());
        }
        let mut index = 0;
        repeats.retain(|_| {
            index += 1;
            !skipped.contains_key(&(index - 1))
        });
        let mut kept = SampleLists { repeats, ..SampleLists::default() };
        let mut missing = Vec::new();
        for (index, ((ordinal, position), view)) in ordinals.into_iter().zip(positions).zip(views).enumerate() {
            match skipped.remove(&index) {
                Some(error) => missing.push(SkippedSample { ordinal, position, error: Arc::new(error) }),
                None => {
                    kept.ordinals.push(ordinal);
                    kept.positions.push(position);
                    kept.views.push(view);
                }
            }
        }
        Batch::of_epoch(dataset, memory, kept, epoch_len, missing.into())
    }

    /// A batch of `ordinals`, each of which is one of the samples; these ascend.
    pub(crate) fn finish_as(self, dataset: &Collection, ordinals: Vec<u64>) -> Batch {
        let indices = ordinals.iter().map(|ordinal| self.samples.partition_point(|sample| sample.ordinal < *ordinal));
        let indices: Vec<usize> = indices.collect();
        let (memory, views) = self.into_memory();
        let views = indices.into_iter().map(|index| views[index].clone()).collect();
        Batch {
            dataset: dataset.clone(),
            memory,
            ordinals,
            views,
            positions: Vec::new(),
            repeats: Vec::new(),
            padded_count: 0,
            skipped: Arc::default(),
        }
    }

    fn into_memory(self) -> (Arc<BatchMemory>, Vec<Range<usize>>) {
        let Self { views, packed, slots, rest, len, pool, .. } = self;
        let mut buffer = packed;
        for slot in slots {
            buffer = rejoined(buffer, slot.state.into_buffer());
        }
        let buffer = rejoined(buffer, rest);
        (Arc::new(BatchMemory::new(buffer, len, pool)), views)
    }

    fn add_slot(&mut self, sample: usize, len: usize) {
        // The packed part ends with its last block, and slots are whole blocks.
        let start = self.slots.last().map_or(self.packed.capacity(), |slot| slot.start + slot.len);
        let next = self.rest.split_off(len);
        let buffer = mem::replace(&mut self.rest, next);
        self.slots.push(PayloadSlot { sample, start, len, state: PayloadSlotState::Free(buffer) });
        self.len = start + len;
    }

    fn slot_mut(&mut self, sample: usize) -> Option<&mut PayloadSlot> {
        let index = self.slots.binary_search_by_key(&sample, |slot| slot.sample).ok()?;
        self.slots.get_mut(index)
    }
}

impl PayloadSlot {
    /// The sample's bytes; none before it is filled.
    fn bytes(&self) -> &[u8] {
        match &self.state {
            PayloadSlotState::Filled(filled) => filled.bytes(),
            PayloadSlotState::Free(_) | PayloadSlotState::Lent => &[],
        }
    }
}

impl PayloadSlotState {
    fn into_buffer(self) -> Buffer {
        match self {
            Self::Free(buffer) => buffer,
            Self::Filled(filled) => filled.into_buffer(),
            Self::Lent => Buffer::with_capacity(0),
        }
    }
}

/// What is wrong with a sample of a batch whose check failed. Nothing, if a mapped page could not be read and the bytes
/// that are read with a system call are right.
pub(crate) fn judge(
    builder: &mut BatchBuilder,
    sample: usize,
    wrong: &PayloadError,
    (dataset, files): (&Collection, &OpenFiles),
) -> Result<(), ReadError> {
    let LocatedSample { ordinal, location } = builder.samples()[sample];
    match files.reread(&location) {
        None => Err(ReadError::damaged(dataset, ordinal, &location, wrong)),
        Some(Err(error)) => Err(ReadError::unreadable(dataset, ordinal, error)),
        Some(Ok(stored)) => builder
            .check_again(sample, &stored)
            .map_err(|wrong| ReadError::damaged(dataset, ordinal, &location, &wrong)),
    }
}

/// Two buffers that were cut from one, in this order, as one again.
pub(crate) fn rejoined(head: Buffer, tail: Buffer) -> Buffer {
    let joined = head.join(tail);
    debug_assert!(joined.is_ok(), "the buffers touch");
    joined.unwrap_or_else(|(head, _)| head)
}

/// Bytes of whole blocks that a direct read of the sample needs; a buffered one needs no more.
fn slot_len(sample: &LocatedSample) -> u64 {
    ByteRange::of_sample(&sample.location).blocks_len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ordinal: u64, offset: u64, stored_len: u64) -> LocatedSample {
        LocatedSample {
            ordinal,
            location: Location { segment: 0, offset, stored_len, crc: 0, encoding: Encoding::Raw },
        }
    }

    fn long(_: usize, sample: &LocatedSample) -> bool {
        is_in_place(&sample.location, 8000)
    }

    fn pool() -> Arc<BufferPool> {
        Arc::new(BufferPool::new(1 << 20))
    }

    #[test]
    fn short_samples_are_packed_and_long_ones_get_whole_blocks() {
        let samples = vec![sample(0, 0, 10), sample(1, 5000, 9000), sample(2, 100_000, 7), sample(3, 4096, 8192)];
        let mut builder = BatchBuilder::new(samples, pool(), long).unwrap();
        assert_eq!(builder.len, 4096 + 3 * 4096 + 2 * 4096);
        assert_eq!((builder.views[0].clone(), builder.views[2].clone()), (0..10, 10..17));
        assert!(builder.lend_slot(0).is_none());
        let lent = builder.lend_slot(1).unwrap();
        assert_eq!(lent.capacity(), 3 * 4096);
        assert!(builder.lend_slot(1).is_none(), "it is lent");
        builder.fill_slot(1, Filled::new(lent, 904..9904));
        assert_eq!(builder.views[1], 4096 + 904..4096 + 9904);
    }

    #[test]
    fn the_memory_is_whole_again_and_goes_back_to_the_pool() {
        let pool = pool();
        let mut builder =
            BatchBuilder::new(vec![sample(0, 0, 10), sample(1, 0, 9000)], Arc::clone(&pool), long).unwrap();
        let mut lent = builder.lend_slot(1).unwrap();
        lent.as_mut_slice()[..9000].fill(3);
        builder.fill_slot(1, Filled::new(lent, 0..9000));
        let checks = builder.checks(0..2, |_, _| b"0123456789");
        for check in checks {
            if let Some(raw) = check.raw {
                raw.copy_from_slice(check.stored);
            }
        }
        let (memory, views) = builder.into_memory();
        assert_eq!(&memory.bytes()[views[0].clone()], b"0123456789");
        assert!(memory.bytes()[views[1].clone()].iter().all(|&byte| byte == 3));
        drop(memory);
        assert_eq!(pool.retained_len(), 32 << 10, "20 KB of blocks in the class that holds them");
    }

    #[test]
    fn a_batch_longer_than_memory_is_an_error() {
        let error = BatchBuilder::new(vec![sample(0, 0, 1 << 62)], pool(), long).map(|_| ()).unwrap_err();
        assert!(matches!(error, ReadError::NoMemory { .. }), "{error}");
    }
}
