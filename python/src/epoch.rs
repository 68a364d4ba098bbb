//! An epoch: batches in the order of its plan.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use grainstore_host::ForkLock;
use grainstore_reader::{EpochOptions, EpochPlan, EpochState, OnDamage};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::parsed;
use crate::batch::{Batch, BatchParts};
use crate::error::Raised;
use crate::fork::{lock, release};
use crate::logging;
use crate::opened::Opened;
use crate::schema::Names;
use crate::selection::Selection;

/// How long to wait before Python may check whether the user wants to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// The arguments of `Dataset._epoch`.
pub(crate) struct EpochArguments<'a> {
    pub(crate) order: &'a str,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) batch_size: usize,
    pub(crate) rank: u64,
    pub(crate) world_size: u64,
    pub(crate) tail: &'a str,
    pub(crate) window_bytes: Option<u64>,
    pub(crate) lanes: Option<u64>,
    pub(crate) group: Option<u64>,
    pub(crate) on_damage: &'a str,
    pub(crate) state: Option<&'a str>,
    pub(crate) followed: bool,
    pub(crate) names: &'a Arc<Names>,
    pub(crate) weights: Option<Arc<grainstore_reader::Weights>>,
}

impl EpochArguments<'_> {
    fn options(&self, opened: &Opened, selection: &Selection) -> Result<EpochOptions, Raised> {
        let batch_size =
            NonZeroUsize::new(self.batch_size).ok_or_else(|| Raised::option("batch_size is 0, expected 1 or more"))?;
        let on_damage = match self.on_damage {
            "raise" => OnDamage::Fail,
            "skip" => OnDamage::Skip,
            other => return Err(Raised::option(format!("on_damage is {other:?}, expected raise or skip"))),
        };
        let group = self.group.map(group_of).transpose()?;
        let resume = self.state.map(str::parse::<EpochState>).transpose()?;
        Ok(EpochOptions {
            order: parsed(self.order)?,
            seed: self.seed,
            epoch: self.epoch,
            window_len: self.window_bytes.unwrap_or(EpochOptions::DEFAULT_WINDOW_LEN),
            lanes: self.lanes,
            group,
            batch_size,
            rank: self.rank,
            world: self.world_size,
            tail: parsed(self.tail)?,
            subset: selection.for_epoch(opened.reader.collection().sample_count())?,
            weights: self.weights.clone(),
            resume,
            on_damage,
            followed: self.followed,
        })
    }

    /// The plan of an epoch, which reads no data and has no batches.
    pub(crate) fn plan(&self, opened: Arc<Opened>, selection: &Selection) -> Result<Epoch, Raised> {
        let plan = opened.reader.plan(&self.options(&opened, selection)?)?;
        Ok(Epoch { parts: BatchParts::of(&opened, self.names), plan, epoch: ForkLock::new(None) })
    }

    pub(crate) fn begin(&self, opened: Arc<Opened>, selection: &Selection) -> Result<Epoch, Raised> {
        let epoch = opened.reader.epoch(&self.options(&opened, selection)?)?;
        let plan = epoch.epoch_plan().clone();
        Ok(Epoch { parts: BatchParts::of(&opened, self.names), plan, epoch: ForkLock::new(Some(epoch)) })
    }
}

fn group_of(number: u64) -> Result<NonZeroU32, Raised> {
    let group = u32::try_from(number).ok().and_then(NonZeroU32::new);
    group.ok_or_else(|| Raised::option(format!("group is {number}, expected 1 to {}", u32::MAX)))
}

/// A running epoch: an iterator of batches, whose samples are read ahead by its own thread.
#[pyclass(frozen, module = "grainstore._core")]
pub(crate) struct Epoch {
    parts: BatchParts,
    plan: EpochPlan,
    /// `None` once the epoch was closed.
    epoch: ForkLock<Option<grainstore_reader::Epoch>>,
}

/// The result of a wait.
enum Waited {
    Batch(grainstore_reader::Batch),
    End,
    NotYet,
}

impl Epoch {
    fn wait(&self) -> Result<Waited, Raised> {
        let mut place = lock(&self.epoch)?;
        let Some(epoch) = place.as_mut() else { return Ok(Waited::End) };
        if !epoch.is_ready_within(PATIENCE) {
            return Ok(Waited::NotYet);
        }
        match epoch.next_batch().transpose()? {
            Some(batch) => Ok(Waited::Batch(batch)),
            None => Ok(Waited::End),
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch.get_mut().take() {
            release(epoch);
        }
    }
}

#[pymethods]
impl Epoch {
    /// The total number of batches.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.plan.share().batch_count())?)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        loop {
            // Before the wait, as an exception from a handler would lose a batch after it.
            logging::deliver(py)?;
            match py.detach(|| self.wait()) {
                Ok(Waited::Batch(batch)) => return Ok(Some(Batch::of(batch, self.parts.clone()))),
                Ok(Waited::NotYet) => py.check_signals()?,
                Ok(Waited::End) => return logging::delivered::<_, PyErr>(py, Ok(None)),
                Err(error) => return logging::delivered(py, Err(error)),
            }
        }
    }

    /// The state after this number of batches, as one line of JSON.
    fn state_after(&self, batch_count: u64) -> String {
        self.plan.state_after(batch_count).to_string()
    }

    /// The order, with "auto" resolved.
    #[getter]
    fn order(&self) -> String {
        self.plan.order().to_string()
    }

    /// A message that a user should see once, or None.
    #[getter]
    fn notice(&self) -> Option<String> {
        self.plan.notice()
    }

    /// Statistics so far: reading, waiting, verifying and copying.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| -> Result<_, Raised> {
            // A closed epoch, or a plan, has read nothing.
            Ok(lock(&self.epoch)?.as_ref().map(grainstore_reader::Epoch::stats).unwrap_or_default())
        })?;
        let dict = PyDict::new(py);
        dict.set_item("samples", stats.samples)?;
        dict.set_item("skipped_samples", stats.skipped_samples)?;
        dict.set_item("cached_samples", stats.cached_samples)?;
        dict.set_item("payload_bytes", stats.payload_bytes)?;
        dict.set_item("stored_bytes", stats.stored_bytes)?;
        dict.set_item("read_bytes", stats.read_bytes)?;
        dict.set_item("request_count", stats.request_count)?;
        dict.set_item("wait_s", stats.wait.as_secs_f64())?;
        dict.set_item("verify_s", stats.stages.verify.as_secs_f64())?;
        dict.set_item("copy_s", stats.stages.copy.as_secs_f64())?;
        dict.set_item("held_bytes_max", stats.held_bytes_max)?;
        dict.set_item("engine", stats.engine)?;
        dict.set_item("io", stats.io.name())?;
        Ok(dict)
    }

    /// Stop reading ahead.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| -> Result<_, Raised> {
            let epoch = lock(&self.epoch)?.take();
            drop(epoch);
            Ok(())
        });
        logging::delivered(py, closed)
    }
}
