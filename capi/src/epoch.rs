//! An epoch: options, batches, state.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_format::to_usize;
use grainstore_reader::{EpochState, Expression, OnDamage, ReadError};

use crate::batch::Batch;
use crate::border::{Buffer, Options, Out, Text};
use crate::dataset::{Dataset, choice, flag, needed, put_text};
use crate::status::{Failure, Status, guarded, guarded_value};

/// `grainstore_epoch`
#[derive(Debug)]
pub struct Epoch {
    epoch: Mutex<grainstore_reader::Epoch>,
    batch_count: u64,
}

impl Epoch {
    fn lock(&self) -> MutexGuard<'_, grainstore_reader::Epoch> {
        // A panic in the reader has ended its epoch.
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `grainstore_epoch_options`
#[repr(C)]
#[derive(Debug)]
pub struct EpochOptions {
    /// `sizeof` of the program's structure.
    pub size: u64,
    /// The seed of the shuffle.
    pub seed: u64,
    /// The epoch's number.
    pub epoch: u64,
    /// Samples of a batch.
    pub batch_size: u64,
    /// Which rank this is.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
    /// Bytes of the window.
    pub window_bytes: u64,
    /// Lanes of the chunked order.
    pub lanes: u64,
    /// Extents that are shuffled as one.
    pub group: u64,
    /// Whether the next epoch follows.
    pub followed: u64,
    /// auto, full, chunked or sequential.
    pub order: Text,
    /// drop, short or pad.
    pub tail: Text,
    /// An expression.
    pub subset: Text,
    /// Where to resume.
    pub state: Text,
    /// fail or skip.
    pub on_damage: Text,
}

impl EpochOptions {
    fn reader_options(&self, dataset: &Dataset) -> Result<grainstore_reader::EpochOptions, Failure> {
        let default = grainstore_reader::EpochOptions::default();
        let subset = match self.subset.get("subset")? {
            Some(text) => {
                let expression: Expression = text.parse()?;
                Some(Arc::new(expression.select_from(dataset.reader.collection())?))
            }
            None => None,
        };
        let on_damage = match self.on_damage.get("on_damage")? {
            None | Some("fail") => OnDamage::Fail,
            Some("skip") => OnDamage::Skip,
            Some(other) => return Err(Failure::argument(format!("on_damage is {other:?}, expected fail or skip"))),
        };
        let group = u32::try_from(self.group)
            .map_err(|_| Failure::argument(format!("group is {}, expected at most {}", self.group, u32::MAX)))?;
        Ok(grainstore_reader::EpochOptions {
            order: choice(self.order.get("order")?, default.order)?,
            seed: self.seed,
            epoch: self.epoch,
            window_len: NonZeroU64::new(self.window_bytes).map_or(default.window_len, NonZeroU64::get),
            lanes: NonZeroU64::new(self.lanes).map(NonZeroU64::get),
            group: NonZeroU32::new(group),
            batch_size: NonZeroUsize::new(to_usize(self.batch_size)).unwrap_or(default.batch_size),
            rank: self.rank,
            world: self.world.max(1),
            tail: choice(self.tail.get("tail")?, default.tail)?,
            subset,
            weights: None,
            resume: self.state.get("state")?.map(str::parse::<EpochState>).transpose()?,
            on_damage,
            followed: flag(self.followed, "followed")?,
        })
    }
}

/// `grainstore_epoch_begin`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_epoch_begin(
    dataset: Option<&Dataset>,
    options: Options<EpochOptions>,
    epoch: Out<Option<Box<Epoch>>>,
) -> Status {
    guarded(|| {
        let place = epoch.prepared(None, "epoch")?;
        let dataset = needed(dataset, "dataset")?;
        let options = options.get("options")?.reader_options(dataset)?;
        let epoch = dataset.reader.epoch(&options)?;
        let batch_count = epoch.len();
        place.put(Some(Box::new(Epoch { epoch: Mutex::new(epoch), batch_count })));
        Ok(Status::OK)
    })
}

/// `grainstore_epoch_batch_count`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_epoch_batch_count(epoch: Option<&Epoch>) -> u64 {
    guarded_value(0, || epoch.map_or(0, |epoch| epoch.batch_count))
}

/// `grainstore_epoch_next`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_epoch_next(epoch: Option<&Epoch>, batch: Out<Option<Box<Batch>>>) -> Status {
    guarded(|| {
        let place = batch.prepared(None, "batch")?;
        let next: Option<Result<_, ReadError>> = needed(epoch, "epoch")?.lock().next_batch();
        Ok(match next.transpose()? {
            Some(batch) => {
                place.put(Some(Box::new(Batch { batch })));
                Status::OK
            }
            None => Status::END,
        })
    })
}

/// `grainstore_epoch_state`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_epoch_state(
    epoch: Option<&Epoch>,
    text: Buffer<u8>,
    capacity: usize,
    len: Out<usize>,
) -> Status {
    guarded(|| {
        let len = len.prepared(0, "len")?;
        let state = needed(epoch, "epoch")?.lock().state().to_string();
        len.put(state.len());
        put_text(&state, text, capacity)
    })
}

/// `grainstore_epoch_free`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_epoch_free(epoch: Option<Box<Epoch>>) {
    guarded_value((), || drop(epoch));
}
