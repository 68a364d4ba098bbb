//! `grainstore plan`: which samples the batches of an epoch will have, and how mixed they are, from the index alone.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use anyhow::anyhow;
use grainstore_format::escape_bytes;
use grainstore_reader::plan::PlannedBatch;
use grainstore_reader::{EngineChoice, EpochPlan, IoChoice, Reader, ReaderOptions};
use grainstore_store::Collection;

use super::ls::key_members;
use crate::epoch::datasets::{DatasetArgs, samples_of};
use crate::epoch::order_options::OrderOptions;
use crate::epoch::state_file;
use crate::errors::bug;
use crate::external::External;
use crate::hints::WithHint;
use crate::plan::document::{PlanDocument, StepDocument};
use crate::plan::mixing::MixingDocument;
use crate::printer::Printer;
use crate::sizes::counted;
use crate::{Exit, interrupt};

/// Print which samples each batch of each rank has, and how mixed the batches are, without reading data
///
/// Prints the ordinals of the rank's batches in the order in which `epoch` reads them, one per line: those of all
/// batches, or of one with --step. This needs --rank if --world is more than 1. The order depends only on the datasets
/// and on these flags, so this shows for any run, past or future, which samples it saw and when.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    datasets: DatasetArgs,
    #[command(flatten)]
    order: OrderOptions,
    /// Start from the state in FILE; steps are counted from there
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print the samples of the rank's batch number N only, counted from 0
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Print each sample's key too, after a tab; control characters and bytes that are not UTF-8 are escaped
    #[arg(long)]
    keys: bool,
    /// Measure how mixed the batches of all ranks are; without --step, print no ordinals
    ///
    /// Counts distinct 256ths of the stored order and distinct classes, over one batch and over sixteen, next to the
    /// expected values of a full shuffle.
    #[arg(long)]
    mixing: bool,
    /// Attribute whose values are the classes (default: `label`)
    #[arg(long, value_name = "NAME", requires = "mixing")]
    class_attribute: Option<String>,
    /// Print one JSON document instead: the plan and, with --step, that batch's positions, ordinals and --keys
    #[arg(long)]
    pub(super) json: bool,
}

impl PlanArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If a dataset cannot be opened, or the options do not give an epoch or a batch.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        self.check()?;
        let state = self.state.as_deref().map(state_file::read).transpose()?;
        let reader = self.datasets.open(index_only(external), state.as_ref(), printer)?;
        let plan = reader.plan(&self.order.options(&reader, state)?)?;
        if let Some(notice) = plan.notice() {
            printer.warn(notice);
        }
        let collection = reader.collection();
        if self.keys && !collection.is_keyed() {
            return Err(anyhow!("{}: the samples have no keys", self.datasets.shown())).hint("leave out `--keys`");
        }
        if self.keys && self.step.is_none() {
            reader.load()?;
        }
        let step = self.step.map(|number| step(&plan, number)).transpose()?;
        let mixing = self.mixing.then(|| self.measure(collection, &plan)).transpose()?;
        if self.json {
            printer.json(&self.document(&reader, &plan, step, mixing)?)?;
            return Ok(Exit::Done);
        }
        printer.note(self.document(&reader, &plan, None, None)?.sentence());
        let exit = match (&step, &mixing) {
            (Some(step), _) => self.print(collection, [step.clone()], printer)?,
            (None, None) => self.print(collection, plan.steps(0), printer)?,
            (None, Some(_)) => Exit::Done,
        };
        mixing.iter().flat_map(MixingDocument::lines).try_for_each(|line| printer.line(line))?;
        Ok(exit)
    }

    /// Checks that the flags fit together.
    fn check(&self) -> anyhow::Result<()> {
        if self.json && self.keys && self.step.is_none() {
            return Err(anyhow!("--keys with --json is for one batch, and --step is missing"))
                .hint("without `--json`, `--keys` prints those of all batches");
        }
        let is_whole = self.json || self.mixing;
        if is_whole && self.step.is_none() { Ok(()) } else { self.order.check_rank() }
    }

    /// Prints the samples of some batches, one per line.
    fn print(
        &self,
        collection: &Collection,
        steps: impl IntoIterator<Item = PlannedBatch>,
        printer: &Printer,
    ) -> anyhow::Result<Exit> {
        for step in steps {
            if interrupt::requested() {
                return Ok(Exit::Interrupted);
            }
            for ordinal in step.ordinals {
                if self.keys {
                    let key = collection.key(ordinal)?.ok_or_else(no_key)?;
                    printer.line(format_args!("{ordinal}\t{}", escape_bytes(&key)))?;
                } else {
                    printer.line(ordinal)?;
                }
            }
        }
        Ok(Exit::Done)
    }

    fn measure(&self, collection: &Collection, plan: &EpochPlan) -> anyhow::Result<MixingDocument> {
        let batch_size = NonZeroU64::try_from(self.order.batch_size)?;
        let global_batch_size =
            NonZeroU64::new(self.order.world).map_or(batch_size, |world| world.saturating_mul(batch_size));
        MixingDocument::measure(collection, plan.plan(), global_batch_size, self.class_attribute.as_deref())
    }

    fn document(
        &self,
        reader: &Reader,
        plan: &EpochPlan,
        step: Option<PlannedBatch>,
        mixing: Option<MixingDocument>,
    ) -> anyhow::Result<PlanDocument> {
        let collection = reader.collection();
        let share = plan.share();
        let step = step.map(|step| self.step_document(collection, step)).transpose()?;
        Ok(PlanDocument {
            paths: self.datasets.paths(),
            fingerprint: collection.fingerprint().to_string(),
            dataset_samples: collection.sample_count(),
            subset: self.order.subset_document(plan.plan()),
            order: plan.order().to_string(),
            lanes: plan.lanes(),
            group: plan.group().map(NonZeroU32::get),
            window_bytes: self.order.window,
            seed: self.order.seed,
            epoch: self.order.epoch,
            world: self.order.world,
            rank: self.order.rank(),
            batch_size: self.order.batch_size.get(),
            tail: self.order.tail.to_string(),
            samples: plan.plan().len(),
            start_position: share.spec().start,
            rank_samples: samples_of(share),
            batches: share.batch_count(),
            ranks_per_piece_max: share.ranks_per_piece_max(),
            step,
            mixing,
        })
    }

    fn step_document(&self, collection: &Collection, step: PlannedBatch) -> anyhow::Result<StepDocument> {
        let number = self.step.ok_or_else(|| bug("a step was planned that no flag asked for"))?;
        let key = |ordinal: &u64| collection.key(*ordinal)?.map(key_members).ok_or_else(no_key);
        let keys = self.keys.then(|| step.ordinals.iter().map(key).collect::<Result<_, _>>()).transpose()?;
        Ok(StepDocument { number, positions: step.positions.collect(), ordinals: step.ordinals, keys })
    }
}

/// A sample without a key; `run` has checked that the datasets have keys.
fn no_key() -> anyhow::Error {
    bug("a sample of a dataset with keys has none")
}

/// Options of a reader that reads no data.
fn index_only(external: External) -> ReaderOptions {
    ReaderOptions { io: IoChoice::Buffered, engine: EngineChoice::Pread, ..external.reader_options() }
}

fn step(plan: &EpochPlan, number: u64) -> anyhow::Result<PlannedBatch> {
    let batch_count = plan.share().batch_count();
    let hint = match batch_count.checked_sub(1) {
        Some(last) => format!("steps go from 0 to {last}"),
        None => "without `--state`, steps are counted from the epoch's start".to_owned(),
    };
    let error = || anyhow!("no step {number}: the rank has {}", counted(batch_count, "batch"));
    plan.steps(number).next().ok_or_else(error).hint(hint)
}
