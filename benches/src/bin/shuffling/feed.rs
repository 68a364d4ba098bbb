//! Batches of one epoch in one of the orders, read from the dataset.

use std::num::NonZeroUsize;

use grainstore_benches::Random;
use grainstore_format::{AttributeValue, to_usize};
use grainstore_reader::plan::{Order as EpochOrder, OrderChoice};
use grainstore_reader::{Epoch, EpochOptions, Reader};

use crate::Outcome;
use crate::data::{FEATURES, Points};
use crate::settings::Order;

/// Points of a batch.
pub(crate) const BATCH_SIZE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// One epoch to be read.
pub(crate) struct Feed<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) order: Order,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
}

/// Collects points into batches, through a shuffle buffer that may have size 0.
struct Mixer {
    capacity: usize,
    held: Points,
    batch: Points,
    random: Random,
}

impl Feed<'_> {
    /// Calls back with batch after batch; an incomplete last batch is dropped.
    pub(crate) fn each_batch(&self, take: &mut dyn FnMut(&Points)) -> Outcome<()> {
        let labels = self.reader.collection().column("label")?;
        let mut mixer = Mixer::new(self.order, self.seed ^ self.epoch << 32);
        for batch in self.start()? {
            let batch = batch?;
            for (payload, &ordinal) in batch.payloads().zip(batch.ordinals()) {
                let Some(AttributeValue::Uint(label)) = labels.get(ordinal) else { return Err("no label".into()) };
                mixer.push(&decoded(payload), to_usize(label), take);
            }
        }
        mixer.finish(take);
        Ok(())
    }

    fn start(&self) -> Outcome<Epoch> {
        let options =
            EpochOptions { seed: self.seed, epoch: self.epoch, batch_size: BATCH_SIZE, ..EpochOptions::default() };
        let fixed = OrderChoice::Fixed;
        let options = match self.order {
            Order::Full => EpochOptions { order: fixed(EpochOrder::Full), ..options },
            Order::Buffer { .. } | Order::Sequential => {
                EpochOptions { order: fixed(EpochOrder::Sequential), ..options }
            }
            Order::Chunked { lanes } => {
                let window_len = lanes * self.reader.collection().chunk_size().bytes();
                EpochOptions { order: fixed(EpochOrder::Chunked), window_len, ..options }
            }
        };
        let epoch = self.reader.epoch(&options)?;
        match (self.order, epoch.lanes()) {
            (Order::Chunked { lanes }, Some(found)) if found != lanes => {
                Err(format!("{found} lanes, not {lanes}").into())
            }
            _ => Ok(epoch),
        }
    }
}

impl Mixer {
    fn new(order: Order, seed: u64) -> Self {
        let capacity = if let Order::Buffer { samples } = order { samples } else { 0 };
        Self { capacity, held: Points::default(), batch: Points::default(), random: Random::new(seed) }
    }

    /// Adds a point; a full buffer moves one of its points to the batch in exchange.
    fn push(&mut self, features: &[f32], label: usize, take: &mut dyn FnMut(&Points)) {
        if self.capacity == 0 {
            self.batch.push(features.iter().copied(), label);
        } else if self.held.labels.len() < self.capacity {
            self.held.push(features.iter().copied(), label);
        } else {
            let slot = to_usize(self.random.below(self.capacity as u64));
            let old = &mut self.held.features[slot * FEATURES..][..FEATURES];
            self.batch.push(old.iter().copied(), self.held.labels[slot]);
            old.copy_from_slice(features);
            self.held.labels[slot] = label;
        }
        self.hand_over(take);
    }

    /// Moves the remaining points of the buffer to batches, in random order.
    fn finish(mut self, take: &mut dyn FnMut(&Points)) {
        let held = std::mem::take(&mut self.held);
        for slot in self.random.shuffled(held.labels.len() as u64).into_iter().map(to_usize) {
            self.batch.push(held.features[slot * FEATURES..][..FEATURES].iter().copied(), held.labels[slot]);
            self.hand_over(take);
        }
    }

    fn hand_over(&mut self, take: &mut dyn FnMut(&Points)) {
        if self.batch.labels.len() == BATCH_SIZE.get() {
            take(&self.batch);
            self.batch.clear();
        }
    }
}

fn decoded(payload: &[u8]) -> Vec<f32> {
    payload.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_gives_every_point_once_and_none_before_its_turn() {
        let mut mixer = Mixer::new(Order::Buffer { samples: 100 }, 3);
        let mut labels = Vec::new();
        let mut take = |batch: &Points| labels.extend_from_slice(&batch.labels);
        (0..640).for_each(|label| mixer.push(&[label as f32; FEATURES], label, &mut take));
        mixer.finish(&mut take);
        assert!(labels.iter().enumerate().all(|(place, &label)| label <= place + 100));
        assert!(labels.iter().zip(&labels[1..]).any(|(a, b)| a > b));
        labels.sort_unstable();
        assert!(labels.into_iter().eq(0..640));
    }
}
