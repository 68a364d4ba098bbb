//! A batch in the making: where in its block every payload goes, and which of them the device puts there itself.
//!
//! ```text
//! block: | payloads to be copied, back to back | slot | slot | ... |
//! ```
//!
//! A slot is whole blocks of memory for one sample that is read by itself. It is lent to the read as a buffer and comes
//! back filled; when all are back, they join to the block again.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location};

use crate::ReadError;
use crate::batch::{Batch, Block};
use crate::check::Check;
use crate::damage::SkippedSample;
use crate::engine::{BLOCK_LEN, Buffer, BufferPool, Filled};
use crate::plan::Positions;
use crate::run::Run;

/// Raw samples from this many bytes on are not copied where they are read by themselves.
pub(crate) const IN_PLACE_LEN_MIN: u64 = 64 << 10;

/// A sample of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) ordinal: u64,
    pub(crate) location: Location,
}

/// A batch in the making.
pub(crate) struct Draft {
    /// Shared with who fills the batch.
    samples: Arc<Vec<Due>>,
    /// Where each payload lies in the block; for a slot, only once it is filled.
    views: Vec<Range<usize>>,
    packed: Buffer,
    /// By sample.
    slots: Vec<Slot>,
    /// What the memory is longer than was asked for.
    rest: Buffer,
    len: usize,
    pool: Arc<BufferPool>,
}

struct Slot {
    sample: usize,
    /// In the block.
    start: usize,
    len: usize,
    state: SlotState,
}

enum SlotState {
    Free(Buffer),
    Lent,
    Filled(Filled),
}

/// Whether the device may put a sample where its batch wants it: it has to be raw, and at least so long.
pub(crate) fn is_in_place(location: &Location, len_min: u64) -> bool {
    location.encoding == Encoding::Raw && location.stored_len >= len_min
}

impl Draft {
    /// Lays out a batch. Samples that are `in_place` get a slot; it is asked once for each, in order.
    pub(crate) fn new(
        samples: Vec<Due>,
        mut in_place: impl FnMut(usize, &Due) -> bool,
        pool: Arc<BufferPool>,
    ) -> Result<Self, ReadError> {
        let in_place: Vec<bool> = samples.iter().enumerate().map(|(sample, due)| in_place(sample, due)).collect();
        let (mut packed_len, mut slots_len) = (0_u64, 0_u64);
        for (due, in_place) in samples.iter().zip(&in_place) {
            let (sum, len) =
                if *in_place { (&mut slots_len, slot_len(due)) } else { (&mut packed_len, due.location.raw_len()) };
            *sum = sum.saturating_add(len);
        }
        // Raw lengths are bounded by stored ones, and those by the files' lengths.
        let len = packed_len.saturating_add(BLOCK_LEN as u64).saturating_add(slots_len);
        let mut packed = pool.try_take(to_usize(len)).ok_or(ReadError::NoMemory { len })?;
        let rest = packed.split_off(to_usize(packed_len));
        let views = Vec::with_capacity(samples.len());
        let len = to_usize(packed_len);
        let mut draft = Self { samples: Arc::default(), views, packed, slots: vec![], rest, len, pool };
        let mut packed_end = 0;
        for ((sample, due), in_place) in samples.iter().enumerate().zip(in_place) {
            if in_place {
                draft.add_slot(sample, to_usize(slot_len(due)));
                draft.views.push(0..0);
            } else {
                let start = packed_end;
                packed_end += to_usize(due.location.raw_len());
                draft.views.push(start..packed_end);
            }
        }
        draft.samples = Arc::new(samples);
        Ok(draft)
    }

    /// The samples, in the batch's order.
    pub(crate) fn samples(&self) -> &Arc<Vec<Due>> {
        &self.samples
    }

    /// A buffer of the block's memory, for engines that want to know of it; `None` where it is so large that no other
    /// batch gets it afterwards: an engine would only hold on to it.
    pub(crate) fn memory(&self) -> Option<&Buffer> {
        self.pool.keeps(self.len).then_some(&self.packed)
    }

    /// Whether the sample goes straight into the block.
    pub(crate) fn has_slot(&self, sample: usize) -> bool {
        self.slots.binary_search_by_key(&sample, |slot| slot.sample).is_ok()
    }

    /// Lends the slot of a sample to a read; `None` where the sample has none, or it is lent already.
    pub(crate) fn lend_slot(&mut self, sample: usize) -> Option<Buffer> {
        let slot = self.slot_mut(sample)?;
        match mem::replace(&mut slot.state, SlotState::Lent) {
            SlotState::Free(buffer) => Some(buffer),
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
        slot.state = SlotState::Filled(filled);
        if let Some(view) = self.views.get_mut(sample) {
            *view = start + wanted.start..start + wanted.end;
        }
    }

    /// What has to be done for the samples of `group`: those in slots are checked, the others are checked and go to
    /// their place. `stored` is asked for the stored bytes of each, in order; those of a slot are not looked at.
    pub(crate) fn checks<'a>(
        &'a mut self,
        group: Range<usize>,
        mut stored: impl FnMut(&Due) -> &'a [u8],
    ) -> Vec<Check<'a>> {
        let Self { samples, views, packed, slots, .. } = self;
        let slots: &'a [Slot] = slots;
        let (mut free, mut free_start) = (packed.as_mut_slice(), 0);
        let mut checks = Vec::with_capacity(group.len());
        for index in group {
            let due = &samples[index];
            let (bytes, slot) = (stored(due), slots.binary_search_by_key(&index, |slot| slot.sample).ok());
            checks.push(match slot {
                Some(place) => Check { location: &due.location, stored: slots[place].bytes(), raw: None },
                None => {
                    let view = &views[index];
                    let (raw, rest) = free.split_at_mut(view.start - free_start).1.split_at_mut(view.len());
                    (free, free_start) = (rest, view.end);
                    Check { location: &due.location, stored: bytes, raw: Some(raw) }
                }
            });
        }
        checks
    }

    /// The batch, all of whose samples are in their places. They stand at `positions` of an epoch of `epoch_len`; those at the places of `skipped` are left out.
    pub(crate) fn finish(
        self,
        dataset: &Collection,
        positions: Positions,
        epoch_len: u64,
        mut skipped: BTreeMap<usize, ReadError>,
    ) -> Batch {
        let ordinals: Vec<u64> = self.samples.iter().map(|due| due.ordinal).collect();
        let (block, views) = self.into_block();
        let positions: Vec<u64> = positions.collect();
        if skipped.is_empty() {
            return Batch::of_epoch(dataset, block, (ordinals, positions, views), epoch_len, Arc::default());
        }
        let (mut kept, mut lacking) = ((Vec::new(), Vec::new(), Vec::new()), Vec::new());
        for (place, ((ordinal, position), view)) in ordinals.into_iter().zip(positions).zip(views).enumerate() {
            match skipped.remove(&place) {
                Some(error) => lacking.push(SkippedSample { ordinal, position, error: Arc::new(error) }),
                None => {
                    kept.0.push(ordinal);
                    kept.1.push(position);
                    kept.2.push(view);
                }
            }
        }
        Batch::of_epoch(dataset, block, kept, epoch_len, lacking.into())
    }

    /// A batch of `ordinals`, each of which is one of the samples; these ascend.
    pub(crate) fn finish_as(self, dataset: &Collection, ordinals: Vec<u64>) -> Batch {
        let places = ordinals.iter().map(|ordinal| self.samples.partition_point(|due| due.ordinal < *ordinal));
        let places: Vec<usize> = places.collect();
        let (block, views) = self.into_block();
        let views = places.into_iter().map(|place| views[place].clone()).collect();
        Batch {
            dataset: dataset.clone(),
            block,
            ordinals,
            views,
            positions: Vec::new(),
            padded_count: 0,
            skipped: Arc::default(),
        }
    }

    fn into_block(self) -> (Arc<Block>, Vec<Range<usize>>) {
        let Self { views, packed, slots, rest, len, pool, .. } = self;
        let parts = slots.into_iter().map(|slot| slot.state.into_buffer()).chain([rest]);
        // All of them were cut from one buffer, in this order.
        let block = parts.fold(packed, |head, part| head.join(part).unwrap_or_else(|(head, _)| head));
        (Arc::new(Block::new(block, len, pool)), views)
    }

    fn add_slot(&mut self, sample: usize, len: usize) {
        // The packed part ends with its last block, and slots are whole blocks.
        let start = self.slots.last().map_or(self.packed.capacity(), |slot| slot.start + slot.len);
        let next = self.rest.split_off(len);
        let buffer = mem::replace(&mut self.rest, next);
        self.slots.push(Slot { sample, start, len, state: SlotState::Free(buffer) });
        self.len = start + len;
    }

    fn slot_mut(&mut self, sample: usize) -> Option<&mut Slot> {
        let place = self.slots.binary_search_by_key(&sample, |slot| slot.sample).ok()?;
        self.slots.get_mut(place)
    }
}

impl Slot {
    /// The sample's bytes; none before it is filled.
    fn bytes(&self) -> &[u8] {
        match &self.state {
            SlotState::Filled(filled) => filled.bytes(),
            SlotState::Free(_) | SlotState::Lent => &[],
        }
    }
}

impl SlotState {
    fn into_buffer(self) -> Buffer {
        match self {
            Self::Free(buffer) => buffer,
            Self::Filled(filled) => filled.into_buffer(),
            Self::Lent => Buffer::with_capacity(0),
        }
    }
}

/// Bytes of whole blocks that a direct read of the sample needs; a buffered one needs no more.
fn slot_len(due: &Due) -> u64 {
    Run::of_sample(&due.location).blocks_len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(ordinal: u64, offset: u64, stored_len: u64) -> Due {
        Due { ordinal, location: Location { segment: 0, offset, stored_len, crc: 0, encoding: Encoding::Raw } }
    }

    fn long(_: usize, due: &Due) -> bool {
        is_in_place(&due.location, 8000)
    }

    fn pool() -> Arc<BufferPool> {
        Arc::new(BufferPool::new(1 << 20))
    }

    #[test]
    fn short_samples_are_packed_and_long_ones_get_whole_blocks() {
        let samples = vec![due(0, 0, 10), due(1, 5000, 9000), due(2, 100_000, 7), due(3, 4096, 8192)];
        let mut draft = Draft::new(samples, long, pool()).unwrap();
        assert_eq!(draft.len, 4096 + 3 * 4096 + 2 * 4096);
        assert_eq!((draft.views[0].clone(), draft.views[2].clone()), (0..10, 10..17));
        assert!(draft.lend_slot(0).is_none());
        let lent = draft.lend_slot(1).unwrap();
        assert_eq!(lent.capacity(), 3 * 4096);
        assert!(draft.lend_slot(1).is_none(), "it is lent");
        draft.fill_slot(1, Filled::new(lent, 904..9904));
        assert_eq!(draft.views[1], 4096 + 904..4096 + 9904);
    }

    #[test]
    fn the_block_is_whole_again_and_goes_back_to_the_pool() {
        let pool = pool();
        let mut draft = Draft::new(vec![due(0, 0, 10), due(1, 0, 9000)], long, Arc::clone(&pool)).unwrap();
        let mut lent = draft.lend_slot(1).unwrap();
        lent.as_mut_slice()[..9000].fill(3);
        draft.fill_slot(1, Filled::new(lent, 0..9000));
        let checks = draft.checks(0..2, |_| b"0123456789");
        checks
            .into_iter()
            .flat_map(|check| Some((check.raw?, check.stored)))
            .for_each(|(raw, stored)| raw.copy_from_slice(stored));
        let (block, views) = draft.into_block();
        assert_eq!(&block.bytes()[views[0].clone()], b"0123456789");
        assert!(block.bytes()[views[1].clone()].iter().all(|&byte| byte == 3));
        drop(block);
        assert_eq!(pool.retained_len(), 32 << 10, "20 KB of blocks in the class that holds them");
    }

    #[test]
    fn more_than_the_memory_that_there_is_is_an_error() {
        let error = Draft::new(vec![due(0, 0, 1 << 62)], long, pool()).map(|_| ()).unwrap_err();
        assert!(matches!(error, ReadError::NoMemory { .. }), "{error}");
    }
}
