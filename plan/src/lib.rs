//! The plan: the order in which an epoch visits the samples, as a pure function.
//!
//! It depends on the dataset's extents and fingerprint, the seed, the epoch, the order, the
//! number of lanes and the group, and on nothing else: not on world size, threads, timing or queue depth. It performs
//! no I/O and reads no clock. Any position is computed without the ones before it.
//!
//! ```text
//! position   0  1  2  3  4  5  6  7  8 ...       Plan::at: which sample is visited at a position
//! ordinal    4  0  7  8  3  1  5  2  6 ...
//!           |--- batch 0 ---|--- batch 1 ---|    Share: which positions a rank's batches have
//!
//! sequential  the stored order
//! full        a permutation of all samples
//! chunked     extents (ranges of samples that are read at once) shuffled on a ring, cut into lanes;
//!             the positions take one sample of each lane in turn
//! ```
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::sync::Arc;
//! use grainstore_plan::{ExtentsBuilder, Order, Plan, PlanSpec};
//!
//! let mut chunks = ExtentsBuilder::new(4096);
//! for sample_count in [3, 2, 4] {
//!     chunks.chunk(sample_count, 100)?;
//! }
//! let extents = Arc::new(chunks.finish());
//! let plan = Plan::new(PlanSpec {
//!     extents,
//!     seed: 7,
//!     epoch: 0,
//!     fingerprint: 1,
//!     order: Order::Chunked,
//!     lanes: 2,
//!     group: NonZeroU32::MIN,
//! })?;
//! let mut ordinals: Vec<u64> = plan.ordinals_from(0).collect();
//! assert_eq!(plan.at(5), ordinals[5]);
//! ordinals.sort_unstable();
//! assert_eq!(ordinals, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
//! # Ok::<(), grainstore_plan::PlanError>(())
//! ```
//!
//! "Why is sample 12 in batch 3?" The positions of batch 3 are [`Share::positions`]; the sample at each is
//! [`Plan::at`].
//!
//! The files, in reading order:
//!
//! | file | contents |
//! | --- | --- |
//! | `lib.rs`, `order.rs` | [`Plan`], and the names of the orders |
//! | `draws.rs` | the keyed draws and the shuffle that everything random comes from |
//! | `extents.rs`, `subset.rs`, `bits.rs` | what is shuffled: the extents of a dataset, or of a subset of it |
//! | `weights.rs` | a subset that is drawn by weights, with replacement |
//! | `permutation.rs` | the full order |
//! | `units.rs`, `ring.rs`, `lanes.rs`, `piece.rs` | the chunked order: units of extents on a ring, cut into lanes and pieces |
//! | `walk.rs`, `ordinals.rs` | pieces in the order of first need; ordinals one after the other |
//! | `stride.rs`, `share.rs` | a rank's positions and batches |
//! | `budget.rs` | the default number of lanes |
//! | `mixing.rs` | how well an order mixes |
//! | `sample_seed.rs` | the seed of what is drawn for a sample, which is no part of an order |
//!
//! order.md: PLN-1 to PLN-11, DRW-1.
#![forbid(unsafe_code)]

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_format::Remedy;
use grainstore_format::memory::{NoMemory, check_room};

mod bits;
mod budget;
mod draws;
mod extents;
mod lanes;
mod mixing;
mod order;
mod ordinals;
mod permutation;
mod piece;
mod ring;
mod sample_seed;
mod share;
mod stride;
mod subset;
mod units;
mod walk;
mod weights;

pub use self::budget::{LaneBudget, default_lanes};
pub use self::extents::{EXTENT_SAMPLES_MAX, Extents, ExtentsBuilder, LONE_SAMPLE_CHUNKS};
pub use self::lanes::Lanes;
pub use self::mixing::{ClassOf, Distinct, Mixing};
pub use self::order::{Order, OrderChoice, ParseOrderError, StoredSize};
pub use self::ordinals::Ordinals;
pub use self::piece::Piece;
pub use self::sample_seed::SampleVisit;
pub use self::share::{ParseTailError, PlannedBatch, PlannedBatches, Positions, Share, ShareSpec, Tail};
pub use self::stride::Stride;
pub use self::subset::{Subset, SubsetError};
pub use self::walk::{LanePieces, PieceSchedule, Visits};
pub use self::weights::{DrawKey, Weights, WeightsError};

use self::permutation::Permutation;

/// All that the order of an epoch depends on.
#[derive(Clone, Debug)]
pub struct PlanSpec {
    /// The extents of the dataset, or of a subset of it.
    pub extents: Arc<Extents>,
    /// The caller's seed.
    pub seed: u64,
    /// The epoch's number.
    pub epoch: u64,
    /// The dataset's fingerprint.
    pub fingerprint: u64,
    /// The order, `auto` resolved.
    pub order: Order,
    /// Number of lanes of the chunked order; the other orders ignore it.
    pub lanes: u64,
    /// Neighbouring extents that the chunked order shuffles as one; the other orders ignore it.
    pub group: NonZeroU32,
}

/// The order of one epoch. A clone copies pointers; many threads can use it.
#[derive(Clone, Debug)]
pub struct Plan {
    extents: Arc<Extents>,
    arrangement: Arrangement,
}

/// How positions are mapped to samples.
#[derive(Clone, Debug)]
enum Arrangement {
    Sequential,
    Full(Permutation),
    Chunked(Arc<Lanes>),
}

/// Why a plan or a share of it cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no sample to visit.
    #[error("dataset has no samples, an epoch needs at least 1")]
    NoSamples,
    /// The subset has no sample.
    #[error("subset has no samples, an epoch needs at least 1")]
    EmptySubset,
    /// Some lane would be empty, or there would be none.
    #[error("number of lanes is {lanes}, expected 1 to {sample_count} (one sample a lane)")]
    LanesOutOfRange {
        /// The number of lanes given.
        lanes: u64,
        /// Samples to visit.
        sample_count: u64,
    },
    /// A subset was made for another number of samples.
    #[error("subset is of {found} samples, the dataset has {expected}")]
    SubsetOfOther {
        /// Samples of the dataset.
        expected: u64,
        /// Samples that the subset was made for.
        found: u64,
    },
    /// There are more or fewer weights than samples.
    #[error("{found} weights, expected {expected}: one for each sample")]
    WeightsOfOther {
        /// Samples to draw from.
        expected: u64,
        /// Number of weights.
        found: u64,
    },
    /// A subset cannot be made.
    #[error(transparent)]
    Subset(#[from] SubsetError),
    /// The extents are those of a subset already.
    #[error("extents are of a subset already, expected those of all samples")]
    SubsetOfSubset,
    /// The world has no rank.
    #[error("world is 0, expected 1 or more")]
    NoRanks,
    /// The rank is not below the world size.
    #[error("rank is {rank}, expected 0 to {last} (world is {world})", last = .world.saturating_sub(1))]
    RankOutOfRange {
        /// The rank given.
        rank: u64,
        /// Number of ranks.
        world: u64,
    },
    /// The start is past the end of the epoch.
    #[error("position is {position}, expected 0 to {len} (the epoch's samples)")]
    PositionOutOfRange {
        /// The position given.
        position: u64,
        /// Positions of the epoch.
        len: u64,
    },
    /// A padded batch would mostly consist of repeated samples.
    #[error(
        "all ranks' batches together have {global_batch_len} samples, expected at most {padded_len_max} where they are padded"
    )]
    PaddingTooLong {
        /// Samples of a batch of all ranks together.
        global_batch_len: u64,
        /// The most samples allowed.
        padded_len_max: u64,
    },
    /// The system has no memory for the plan.
    #[error("plan of an epoch: {0}")]
    NoMemory(#[from] NoMemory),
    /// There are more extents than 32 bits can number.
    #[error("dataset has {count} extents, at most {max} can be planned", max = u32::MAX)]
    TooManyExtents {
        /// Extents so far.
        count: u64,
    },
}

impl PlanError {
    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoRanks => Some(Remedy::UseOneRank),
            Self::RankOutOfRange { .. } => Some(Remedy::UseRankBelowWorld),
            Self::LanesOutOfRange { .. } => Some(Remedy::UseDefaultLanes),
            Self::EmptySubset => Some(Remedy::ListSamples),
            Self::PaddingTooLong { .. } => Some(Remedy::UseTailWithoutPadding),
            _ => None,
        }
    }
}

impl Plan {
    /// Computes the order of an epoch: for the chunked order one shuffle of the units of extents, for the
    /// others nothing.
    ///
    /// # Errors
    /// [`PlanError::NoSamples`] or [`PlanError::EmptySubset`]; for the chunked order [`PlanError::LanesOutOfRange`], and
    /// [`PlanError::NoMemory`] if there is none for its ring.
    pub fn new(spec: PlanSpec) -> Result<Self, PlanError> {
        let sample_count = spec.extents.sample_count();
        if sample_count == 0 {
            return Err(if spec.extents.subset().is_some() { PlanError::EmptySubset } else { PlanError::NoSamples });
        }
        if spec.order == Order::Chunked {
            check_room(u64::from(spec.extents.count()).saturating_mul(RING_EXTENT_LEN_MAX))?;
        }
        let epoch_key = draws::key(&[spec.seed, spec.epoch, spec.fingerprint]);
        let arrangement = match spec.order {
            Order::Sequential => Arrangement::Sequential,
            Order::Full => Arrangement::Full(Permutation::new(epoch_key, sample_count)),
            Order::Chunked if (1..=sample_count).contains(&spec.lanes) => {
                let extents = Arc::clone(&spec.extents);
                Arrangement::Chunked(Arc::new(Lanes::new(extents, epoch_key, spec.lanes, spec.group)))
            }
            Order::Chunked => {
                return Err(PlanError::LanesOutOfRange { lanes: spec.lanes, sample_count });
            }
        };
        Ok(Self { extents: spec.extents, arrangement })
    }

    /// Number of positions: the number of samples of the dataset, or of visits of the subset.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a plan is never empty")]
    pub fn len(&self) -> u64 {
        self.extents.sample_count()
    }

    /// The ordinal at a position, without the ones before it.
    ///
    /// The chunked order takes up to one draw for each sample of the piece that holds the position,
    /// so [`ordinals_from`](Self::ordinals_from) is faster for many positions.
    ///
    /// # Panics
    /// If `position` is not below [`len`](Self::len).
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.len(), "position {position} of an epoch of {}", self.len());
        self.extents.ordinal(self.index_at(position))
    }

    /// How often the epoch's subset has the sample at a position before its visit there, in the order of indices: 0
    /// without repeats. With the ordinal, it names the visit. order.md: PLN-9.
    ///
    /// # Panics
    /// If `position` is not below [`len`](Self::len).
    #[must_use]
    pub fn repeat_at(&self, position: u64) -> u64 {
        assert!(position < self.len(), "position {position} of an epoch of {}", self.len());
        if self.extents.has_repeats() { self.extents.repeat(self.index_at(position)) } else { 0 }
    }

    /// The index of the sample at a position below the length.
    #[must_use]
    pub fn index_at(&self, position: u64) -> u64 {
        match &self.arrangement {
            Arrangement::Sequential => position,
            Arrangement::Full(permutation) => permutation.at(position),
            Arrangement::Chunked(lanes) => lanes.at(position),
        }
    }

    /// The ordinals at `position`, `position + 1`, ... to the end of the epoch; none if `position` is
    /// past the end.
    ///
    /// Takes about 200 bytes for each lane, and 2 bytes for each sample of its current piece.
    #[must_use]
    pub fn ordinals_from(&self, position: u64) -> Ordinals {
        Ordinals::new(self.clone(), Stride::all(position, self.len()))
    }

    /// The ordinals at the given positions.
    pub fn ordinals_of(&self, positions: Stride) -> Ordinals {
        Ordinals::new(self.clone(), positions)
    }

    /// The kind of order.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.arrangement {
            Arrangement::Sequential => Order::Sequential,
            Arrangement::Full(_) => Order::Full,
            Arrangement::Chunked(_) => Order::Chunked,
        }
    }

    /// The lanes of the chunked order, which give its pieces; `None` for the other orders.
    #[must_use]
    pub fn lanes(&self) -> Option<&Arc<Lanes>> {
        match &self.arrangement {
            Arrangement::Chunked(lanes) => Some(lanes),
            Arrangement::Sequential | Arrangement::Full(_) => None,
        }
    }

    /// The extents of the dataset, or of a subset of it.
    #[must_use]
    pub fn extents(&self) -> &Arc<Extents> {
        &self.extents
    }
}

/// Bytes that an extent takes at most in the ring.
const RING_EXTENT_LEN_MAX: u64 = 16;

/// A number that indexes or counts something held in memory.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits on every host that grainstore compiles for")]
const fn in_memory(value: u64) -> usize {
    value as usize
}
