//! The options of an epoch.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use crate::on_damage::OnDamage;
use crate::plan::{OrderChoice, Subset, Tail, Weights};
use crate::state::EpochState;

/// The options of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochOptions {
    /// The order of the samples.
    pub order: OrderChoice,
    /// The seed of the shuffle.
    pub seed: u64,
    /// The epoch's number: another one gives another order.
    pub epoch: u64,
    /// In the chunked order, bytes of memory for the extents that samples are drawn from, one chunk at least; more
    /// mixes better. It decides the default number of lanes, and so the order. In the other orders it only bounds how
    /// far the reads go ahead.
    pub window_len: u64,
    /// Lanes of the chunked order; `None`: as many as the window holds extents for.
    pub lanes: Option<u64>,
    /// Neighbouring extents (usually chunks) that the chunked order shuffles as one: a lane visits them one after the
    /// other. Another number gives another order. `None`: that of the state, or 1.
    pub group: Option<NonZeroU32>,
    /// Samples of a batch of one rank.
    pub batch_size: NonZeroUsize,
    /// Which of the `world` ranks this is, from 0. The ranks share each epoch: batch k of all of them together is the
    /// same samples for every world whose `world x batch_size` is the same.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
    /// What happens at the end, where the samples do not fill a batch of every rank.
    pub tail: Tail,
    /// Which samples the epoch visits, and how often; `None`: all, once.
    pub subset: Option<Arc<Subset>>,
    /// Draws the visits of each epoch by weights, with replacement: from all samples, or from the subset; `None`: each
    /// is visited as often as it is there.
    pub weights: Option<Arc<Weights>>,
    /// Where to resume an epoch: a state of the same dataset, subset, weights, order, seed and epoch. With order `auto`,
    /// and where lanes or group are `None`, those of the state are used.
    pub resume: Option<EpochState>,
    /// What happens where a sample is damaged.
    pub on_damage: OnDamage,
    /// Whether another epoch follows: the next number, all else equal. Then its first batches are made before this
    /// one ends, and wait for the call of [`Reader::epoch`](crate::Reader::epoch) that requests it. Set it for all
    /// epochs except the last, and take batches until there is none: only then they are passed on. The reader holds
    /// them until that call (one with other options discards them) or until it is dropped.
    pub followed: bool,
}

impl EpochOptions {
    /// 256 MiB.
    pub const DEFAULT_WINDOW_LEN: u64 = 256 << 20;
    /// 256 samples.
    pub const DEFAULT_BATCH_SIZE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
}

impl Default for EpochOptions {
    /// Epoch 0 of seed 0 in the order that suits the dataset, a window of 256 MiB, batches of 256, one rank, all
    /// samples.
    fn default() -> Self {
        Self {
            order: OrderChoice::Auto,
            seed: 0,
            epoch: 0,
            window_len: Self::DEFAULT_WINDOW_LEN,
            lanes: None,
            group: None,
            batch_size: Self::DEFAULT_BATCH_SIZE,
            rank: 0,
            world: 1,
            tail: Tail::default(),
            subset: None,
            weights: None,
            resume: None,
            on_damage: OnDamage::default(),
            followed: false,
        }
    }
}

impl EpochOptions {
    /// The epoch that follows.
    pub(super) fn next(&self) -> Self {
        Self { epoch: self.epoch.wrapping_add(1), resume: None, ..self.clone() }
    }
}
