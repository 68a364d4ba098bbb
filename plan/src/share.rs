//! A rank's share of an epoch: which positions its batches have.
//!
//! Batch k of all ranks together is one *global batch*: `world x batch_size` consecutive positions. Its samples
//! depend only on that product: 24 ranks with batches of 10 see in step k what one rank with batches of 240 sees.
//!
//! ```text
//! positions    start |0 1 2 3 4 5|6 7 8 9 ...     world 3, batch size 2
//! chunked, full      |0 1 2 0 1 2|0 1 2 0 ...     rank r takes the positions p = r mod world
//! sequential         |0 0 1 1 2 2|0 0 1 1 ...     rank r takes the r-th contiguous part of each global batch
//! ```
//! order.md: RNK-1 to RNK-3.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use super::ordinals::Ordinals;
use super::stride::{Stride, common_divisor};
use super::{Order, Plan, PlanError, in_memory};

/// Most samples of a padded batch, unless the epoch has more.
const PADDED_LEN_MAX: u64 = 1 << 24;

/// What happens at the end of an epoch whose samples do not fill the last global batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tail {
    /// The samples left over are not visited.
    Drop,
    /// The last batches have fewer samples, some perhaps none.
    #[default]
    Short,
    /// The last batches are filled with samples from the epoch's start, which are marked as repeated.
    Pad,
}

/// An unknown name of a tail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tail is {found:?}, expected drop, short or pad")]
pub struct ParseTailError {
    found: String,
}

/// The arguments of [`Share::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSpec {
    /// The rank, from 0.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
    /// Samples of a batch of one rank.
    pub batch_size: NonZeroUsize,
    /// Position at which the first global batch begins.
    pub start: u64,
    /// What happens to samples that do not fill a global batch.
    pub tail: Tail,
}

/// The share of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    spec: ShareSpec,
    global_batch_len: u64,
    /// Positions of the epoch.
    len: u64,
    order: Order,
    /// Number of lanes of the chunked order, else 1.
    lane_count: u64,
    batch_count: u64,
}

/// Positions `first`, `first + step`, ... of a batch, `count` of them.
///
/// A position that is not below the epoch's length n is padding: position n + i repeats position i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// The first position, if there is one.
    pub first: u64,
    /// Distance from one position to the next.
    pub step: u64,
    /// Number of positions.
    pub count: u64,
}

/// A batch of a rank: its samples and their positions in the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBatch {
    /// The positions of its samples.
    pub positions: Positions,
    /// The ordinals of its samples.
    pub ordinals: Vec<u64>,
}

/// The batches of a share, one after the other: see [`Share::steps`].
#[derive(Clone, Debug)]
pub struct PlannedBatches {
    plan: Plan,
    share: Share,
    next_batch: u64,
    /// Of the orders whose ranks take every n-th position.
    ordinals: Ordinals,
}

impl Share {
    /// The share of the plan that `spec` specifies.
    ///
    /// # Errors
    /// If the rank or the start is out of range, or a padded batch would be too long.
    pub fn new(plan: &Plan, spec: ShareSpec) -> Result<Self, PlanError> {
        let ShareSpec { rank, world, start, tail, .. } = spec;
        let len = plan.len();
        let batch_size = spec.batch_size.get() as u64;
        if world == 0 {
            return Err(PlanError::NoRanks);
        }
        if rank >= world {
            return Err(PlanError::RankOutOfRange { rank, world });
        }
        if start > len {
            return Err(PlanError::PositionOutOfRange { position: start, len });
        }
        let global_batch_len = world.saturating_mul(batch_size);
        let padded_len_max = len.max(PADDED_LEN_MAX);
        if tail == Tail::Pad && global_batch_len > padded_len_max {
            return Err(PlanError::PaddingTooLong { global_batch_len, padded_len_max });
        }
        let batch_count = match tail {
            Tail::Drop => (len - start) / global_batch_len,
            Tail::Short | Tail::Pad => (len - start).div_ceil(global_batch_len),
        };
        let lane_count = plan.lanes().map_or(1, |lanes| lanes.lane_count());
        Ok(Self { spec, global_batch_len, len, order: plan.order(), lane_count, batch_count })
    }

    /// The arguments that it was made from.
    #[must_use]
    pub fn spec(&self) -> &ShareSpec {
        &self.spec
    }

    /// Batches from the start to the end of the epoch: the same for every rank.
    #[must_use]
    pub fn batch_count(&self) -> u64 {
        self.batch_count
    }

    /// The position in the epoch after `batch_count` batches of every rank.
    #[must_use]
    pub fn position_after(&self, batch_count: u64) -> u64 {
        self.begin_of(batch_count.min(self.batch_count)).min(self.len)
    }

    /// The positions of a batch; none if there is no such batch.
    #[must_use]
    pub fn positions(&self, batch: u64) -> Positions {
        let begin = self.begin_of(batch);
        let end = self.end_of(batch);
        match self.order {
            Order::Sequential => self.contiguous(begin, end),
            Order::Full | Order::Chunked => self.interleaved(begin, end),
        }
    }

    /// The batch that has a position of this share, and the index in the batch.
    #[must_use]
    pub fn batch_of(&self, position: u64) -> (u64, u64) {
        let batch = position.saturating_sub(self.spec.start) / self.global_batch_len;
        let Positions { first, step, .. } = self.positions(batch);
        (batch, position.saturating_sub(first) / step)
    }

    /// The most ranks that visit samples of one piece of the chunked order: 1 if the world divides the lanes, because
    /// then every rank has lanes of its own. (An extent at the border of two lanes is two pieces, for any number of ranks.)
    #[must_use]
    pub fn ranks_per_piece_max(&self) -> u64 {
        match self.order {
            Order::Chunked => self.spec.world / common_divisor(self.spec.world, self.lane_count),
            Order::Full | Order::Sequential => 1,
        }
    }

    /// Number of lanes that this rank visits.
    #[must_use]
    pub fn visited_lane_count(&self) -> u64 {
        self.lane_count / common_divisor(self.spec.world, self.lane_count)
    }

    /// The batches from number `batch` on.
    #[must_use]
    pub fn steps(&self, plan: &Plan, batch: u64) -> PlannedBatches {
        let ordinals = Ordinals::new(plan.clone(), self.stride_from(batch));
        PlannedBatches { plan: plan.clone(), share: self.clone(), next_batch: batch, ordinals }
    }

    /// The positions of all batches, without padding, of an order whose ranks take every n-th position.
    pub fn stride(&self) -> Stride {
        self.stride_from(0)
    }

    /// The positions that are padding; only the last batch has any.
    pub fn padding(&self) -> impl Iterator<Item = u64> + use<> {
        let len = self.len;
        self.positions(self.batch_count.saturating_sub(1)).filter(move |position| *position >= len)
    }

    fn stride_from(&self, batch: u64) -> Stride {
        let end = self.begin_of(self.batch_count).min(self.len);
        Stride { end, ..self.residue_from(self.begin_of(batch)) }
    }

    fn begin_of(&self, batch: u64) -> u64 {
        self.spec.start.saturating_add(batch.saturating_mul(self.global_batch_len))
    }

    fn end_of(&self, batch: u64) -> u64 {
        let end = self.begin_of(batch.saturating_add(1));
        match self.spec.tail {
            _ if batch >= self.batch_count => self.begin_of(batch),
            Tail::Pad => end,
            Tail::Drop | Tail::Short => end.min(self.len),
        }
    }

    /// This rank's positions from `begin` on.
    fn residue_from(&self, begin: u64) -> Stride {
        let ShareSpec { rank, world, .. } = self.spec;
        let past = begin % world;
        let skipped = if rank >= past { rank - past } else { world - past + rank };
        Stride { first: begin.saturating_add(skipped), step: world, end: u64::MAX }
    }

    fn interleaved(&self, begin: u64, end: u64) -> Positions {
        let stride = Stride { end, ..self.residue_from(begin) };
        Positions { first: stride.first, step: stride.step, count: stride.len() }
    }

    fn contiguous(&self, begin: u64, end: u64) -> Positions {
        let ShareSpec { rank, world, .. } = self.spec;
        let each = (end - begin) / world;
        let over = (end - begin) % world;
        let first = begin + rank * each + rank.min(over);
        Positions { first, step: 1, count: each + u64::from(rank < over) }
    }
}

impl Iterator for Positions {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        let position = self.first;
        self.first = self.first.saturating_add(self.step);
        Some(position)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (in_memory(self.count), Some(in_memory(self.count)))
    }
}

impl ExactSizeIterator for Positions {}

impl Iterator for PlannedBatches {
    type Item = PlannedBatch;

    fn next(&mut self) -> Option<PlannedBatch> {
        if self.next_batch >= self.share.batch_count {
            return None;
        }
        let positions = self.share.positions(self.next_batch);
        self.next_batch += 1;
        let len = self.plan.len();
        let inside = positions.take_while(|position| *position < len);
        let mut ordinals = Vec::with_capacity(in_memory(positions.count));
        match self.plan.order() {
            // Positions are indices, one after the other.
            Order::Sequential => {
                let count = inside.count() as u64;
                ordinals.extend(self.plan.extents().ordinals(positions.first..positions.first + count));
            }
            Order::Full | Order::Chunked => ordinals.extend(self.ordinals.by_ref().take(inside.count())),
        }
        ordinals.extend(positions.skip(ordinals.len()).map(|position| self.plan.at(position % len)));
        Some(PlannedBatch { positions, ordinals })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = in_memory(self.share.batch_count.saturating_sub(self.next_batch));
        (left, Some(left))
    }
}

impl ExactSizeIterator for PlannedBatches {}

impl fmt::Display for Tail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Drop => "drop",
            Self::Short => "short",
            Self::Pad => "pad",
        })
    }
}

impl FromStr for Tail {
    type Err = ParseTailError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "drop" => Ok(Self::Drop),
            "short" => Ok(Self::Short),
            "pad" => Ok(Self::Pad),
            _ => Err(ParseTailError { found: name.to_owned() }),
        }
    }
}
