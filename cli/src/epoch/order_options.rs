//! Which epoch, and which share of it: the flags that `epoch` and `plan` share.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use anyhow::bail;
use grainstore_reader::plan::{OrderChoice, Plan, Tail};
use grainstore_reader::{EpochOptions, EpochState, Expression, Reader};
use serde::Serialize;

use crate::sizes::{counted, parse_size, shown_exact};

/// Flags that decide which samples every batch has.
#[derive(clap::Args)]
pub(crate) struct OrderOptions {
    /// Order of the samples: full, chunked, sequential or auto
    ///
    /// full is a uniform shuffle that reads every sample by itself; chunked is a nearly uniform one that reads each
    /// chunk once; sequential is by ordinal. auto is full if the samples have 64 KiB or more on average, otherwise
    /// chunked.
    #[arg(long, default_value_t, value_name = "ORDER")]
    order: OrderChoice,
    /// Seed of the shuffle
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// Number of the epoch: each has its own order
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) epoch: u64,
    /// Memory that samples are drawn from in the chunked order; more mixes better and changes the order
    ///
    /// It is the total of all ranks: if their number divides the lanes, each rank holds its part.
    #[arg(long, default_value = "256M", value_parser = parse_size, value_name = "SIZE")]
    pub(crate) window: u64,
    /// Lanes of the chunked order: chunks that samples are drawn from at a time (default: as the window allows)
    ///
    /// If --world divides their number, every rank reads its own lanes; otherwise ranks read the same chunks, and a
    /// warning says how many ranks read a chunk. Another number gives another order.
    #[arg(long, value_name = "N")]
    lanes: Option<u64>,
    /// Neighbouring chunks that the chunked order shuffles as one: a lane reads them one after the other (default: 1)
    ///
    /// Larger groups suit storage that is best read in ranges of megabytes, and mix less: --mixing of `grainstore plan`
    /// measures it. Another number gives another order.
    #[arg(long, value_name = "N", value_parser = parse_group)]
    group: Option<NonZeroU32>,
    /// Samples per batch, of this rank
    #[arg(long, default_value_t = EpochOptions::DEFAULT_BATCH_SIZE, value_parser = parse_batch_size, value_name = "N")]
    pub(crate) batch_size: NonZeroUsize,
    /// Number of ranks that share the epoch
    ///
    /// Batch k of all ranks together has the same samples for any --world, as long as --world times --batch-size is the
    /// same.
    #[arg(long, default_value_t = 1, value_name = "W")]
    pub(crate) world: u64,
    /// Which of the ranks this is, from 0; required if there are several
    #[arg(long, value_name = "R")]
    rank: Option<u64>,
    /// What happens to the last samples, if they do not fill a batch of every rank: drop, pad or short
    ///
    /// drop leaves them out; short has shorter last batches, some perhaps empty; pad fills them with samples from the
    /// epoch's start. Every rank always has the same number of batches.
    #[arg(long, default_value_t, value_name = "TAIL")]
    pub(crate) tail: Tail,
    /// Visit only the samples that match EXPR, such as "label in 'cat', 'dog' and width >= 64"
    ///
    /// Strings, such as the names of classes, are in single quotes, so use double quotes for the shell. EXPR compares
    /// attributes, ordinal, key and key_hash (a number from 0 to 1 that depends on the key alone: 'key_hash < 0.9' is
    /// for training, 'key_hash >= 0.9' for validation) by ==, !=, <, <=, >, >=, in, not in, starts with, is present and
    /// is missing, joined by and, or, not and parentheses; 'ordinal in 0..1000, 2500' is 0 to 999, as ranges exclude
    /// their end, and 2500. Only the index is read.
    #[arg(long, value_name = "EXPR")]
    subset: Option<Expression>,
}

impl OrderOptions {
    /// The epoch options for the reader; they resume from the state, if there is one.
    ///
    /// # Errors
    /// If the subset cannot be chosen.
    pub(crate) fn options(&self, reader: &Reader, resume: Option<EpochState>) -> anyhow::Result<EpochOptions> {
        let subset = self.subset.as_ref().map(|expression| expression.select_from(reader.collection())).transpose()?;
        Ok(EpochOptions {
            order: self.order,
            seed: self.seed,
            epoch: self.epoch,
            window_len: self.window,
            lanes: self.lanes,
            group: self.group,
            batch_size: self.batch_size,
            rank: self.rank(),
            world: self.world,
            tail: self.tail,
            subset: subset.map(Arc::new),
            resume,
            ..EpochOptions::default()
        })
    }

    /// Which of the ranks this is; the first if not specified.
    pub(crate) fn rank(&self) -> u64 {
        self.rank.unwrap_or(0)
    }

    /// Checks that the rank is specified if there are several: two that read the same share would spoil a training
    /// unnoticed.
    ///
    /// # Errors
    /// If it is not specified.
    pub(crate) fn check_rank(&self) -> anyhow::Result<()> {
        if self.rank.is_none() && self.world > 1 {
            bail!("--world is {}: specify which of them this is with --rank 0 to {}", self.world, self.world - 1);
        }
        Ok(())
    }

    /// The subset of a plan that was made with these options.
    pub(crate) fn subset_document(&self, plan: &Plan) -> Option<SubsetDocument> {
        let (expression, subset) = self.subset.as_ref().zip(plan.extents().subset())?;
        let hash = format!("{:016x}", subset.hash());
        Some(SubsetDocument { expression: expression.to_string(), hash, samples: subset.len() })
    }
}

/// The samples that an epoch visits, if it does not visit all.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SubsetDocument {
    /// The expression in its normalized form.
    pub(crate) expression: String,
    /// Fingerprint of the chosen samples, 16 hexadecimal digits, as in a state.
    pub(crate) hash: String,
    pub(crate) samples: u64,
}

/// The lanes of the chunked order as part of a sentence; nothing for the other orders.
pub(crate) fn shown_lanes(lanes: Option<u64>, group: Option<u32>, window_len: u64) -> String {
    let Some(lanes) = lanes else { return String::new() };
    let lanes = format!(", {} in a window of {}", counted(lanes, "lane"), shown_exact(window_len));
    match group {
        Some(group @ 2..) => format!("{lanes}, groups of {group}"),
        _ => lanes,
    }
}

fn parse_group(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "expected a number of chunks, 1 to 4294967295".to_owned())
}

fn parse_batch_size(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number of samples, 1 or more".to_owned())
}
