//! The plan of an epoch, as a document for programs and as a sentence for people.

use serde::Serialize;
use serde_json::{Map, Value};

use super::mixing::MixingDocument;
use crate::epoch::datasets::shown;
use crate::epoch::order_options::{SubsetDocument, shown_lanes};
use crate::sizes::counted;

/// Everything that decides which samples each batch has, with `auto` and defaults resolved.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlanDocument {
    pub(crate) paths: Vec<String>,
    /// Fingerprint of the datasets in the opened generation, 16 hexadecimal digits.
    pub(crate) fingerprint: String,
    pub(crate) dataset_samples: u64,
    pub(crate) subset: Option<SubsetDocument>,
    pub(crate) order: String,
    /// Only in the chunked order.
    pub(crate) lanes: Option<u64>,
    /// Extents that are shuffled as one; only in the chunked order.
    pub(crate) group: Option<u32>,
    pub(crate) window_bytes: u64,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) world: u64,
    pub(crate) rank: u64,
    pub(crate) batch_size: usize,
    /// `drop`, `pad` or `short`.
    pub(crate) tail: String,
    /// Number of samples in the epoch, of all ranks.
    pub(crate) samples: u64,
    /// The position at which the first batch starts: that of the state.
    pub(crate) start_position: u64,
    /// Number of samples of the rank, from there on.
    pub(crate) rank_samples: u64,
    /// Number of batches of every rank, from there on.
    pub(crate) batches: u64,
    /// Maximum number of ranks that visit samples of the same piece; 1 if every rank has its own lanes.
    #[serde(rename = "piece_readers_max")]
    pub(crate) ranks_per_piece_max: u64,
    pub(crate) step: Option<StepDocument>,
    pub(crate) mixing: Option<MixingDocument>,
}

/// A batch of the rank.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepDocument {
    /// Counted from 0, starting with the first batch.
    pub(crate) number: u64,
    /// Positions of the samples in the epoch; one that is not below the number of samples repeats an early one.
    pub(crate) positions: Vec<u64>,
    pub(crate) ordinals: Vec<u64>,
    /// `key`, or `key_hex` for a key that is not UTF-8; with --keys.
    pub(crate) keys: Option<Vec<Map<String, Value>>>,
}

impl PlanDocument {
    /// One line for a person.
    pub(crate) fn sentence(&self) -> String {
        let lanes = shown_lanes(self.lanes, self.group, self.window_bytes);
        let subset = match &self.subset {
            Some(subset) => format!(" ({} of {} samples)", subset.samples, self.dataset_samples),
            None => String::new(),
        };
        let samples = counted(self.rank_samples, "sample");
        let batches = counted(self.batches, "batch");
        let from =
            if self.start_position > 0 { format!(" from position {} on", self.start_position) } else { String::new() };
        format!(
            "{}{subset}: {}, seed {}, epoch {}{lanes}; rank {} of {}{from}: {samples} in {batches} of {}, tail {}",
            shown(&self.paths),
            self.order,
            self.seed,
            self.epoch,
            self.rank,
            self.world,
            self.batch_size,
            self.tail
        )
    }
}
