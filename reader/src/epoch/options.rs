//! What an epoch is to be.

use std::num::NonZeroUsize;

use crate::plan::OrderChoice;

/// What an epoch is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochOptions {
    /// The order of the samples.
    pub order: OrderChoice,
    /// The seed of the shuffle.
    pub seed: u64,
    /// The epoch's number: another one gives another order.
    pub epoch: u64,
    /// In the chunked order, bytes of memory for the extents that samples are drawn from, one extent at least; more
    /// mixes better. It decides the default number of lanes, and so the order. In the other orders it only bounds how
    /// far is read ahead.
    pub window_len: u64,
    /// Lanes of the chunked order; `None`: as many as the window holds extents for.
    pub lanes: Option<u64>,
    /// Samples of a batch; the last one may have fewer.
    pub batch_size: NonZeroUsize,
    /// Whether another epoch follows: the next number, all else equal. Then its first batches are made before this
    /// one ends, and wait for the call of [`Reader::epoch`](crate::Reader::epoch) that asks for it. Set it for all
    /// epochs but the last, and take batches until there is none: only then they are handed on. The reader holds them
    /// until that call (one with other options throws them away) or until it is dropped.
    pub followed: bool,
}

impl EpochOptions {
    /// 256 MiB.
    pub const DEFAULT_WINDOW_LEN: u64 = 256 << 20;
    /// 256 samples.
    pub const DEFAULT_BATCH_SIZE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
}

impl Default for EpochOptions {
    /// Epoch 0 of seed 0 in the order that suits the dataset, a window of 256 MiB, batches of 256.
    fn default() -> Self {
        Self {
            order: OrderChoice::Auto,
            seed: 0,
            epoch: 0,
            window_len: Self::DEFAULT_WINDOW_LEN,
            lanes: None,
            batch_size: Self::DEFAULT_BATCH_SIZE,
            followed: false,
        }
    }
}

impl EpochOptions {
    /// The epoch that follows.
    pub(super) fn next(&self) -> Self {
        Self { epoch: self.epoch.wrapping_add(1), ..self.clone() }
    }
}
