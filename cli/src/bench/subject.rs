//! The dataset under test, and what is measured of it and of its device.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use grainstore_format::{shown_path, to_usize};
use grainstore_reader::engine::{Engine, EngineError, PreadEngine, UringEngine, UringOptions, UringOwner};
use grainstore_reader::{EngineChoice, EpochOptions, Reader, ReaderOptions};
use grainstore_store::Dataset;

use super::area::Area;
use super::device::{DeviceWork, Load, measure, measure_alone};
use super::limits::{Limit, MeanLens};
use super::report::{BenchReport, Bracket, DeviceRow, ShareUnit, WayRow};
use super::ways::{Bench, Outcome, WAYS, Way};
use crate::errors::bug;
use crate::filesystem::FileSystem;

/// Maximum payload bytes of a batch: batches of long samples have fewer samples.
const BATCH_LEN_MAX: u64 = 256 << 20;

/// The settings of the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchOptions {
    /// How long each row is measured.
    pub(crate) limit: Duration,
    /// Seed of orders and offsets.
    pub(crate) seed: u64,
    /// The engine that reads the device and the dataset.
    pub(crate) engine: EngineChoice,
}

/// When the device is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// Before the ways are measured.
    Before,
    /// After the ways are measured.
    After,
}

/// A dataset that can be measured: its index is loaded, its files exist.
pub(crate) struct Subject {
    pub(crate) bench: Bench,
    area: Area,
    lens: MeanLens,
}

/// All measurements: the device in the order of [`Limit::ALL`], and the ways that this file system supports.
pub(crate) struct Measured {
    pub(crate) brackets: Vec<Bracket>,
    pub(crate) outcomes: Vec<(Way, Outcome)>,
    pub(crate) elapsed: Duration,
}

impl Subject {
    /// Loads a dataset's index and checks that its files exist.
    ///
    /// # Errors
    /// If it is damaged or lacks a file.
    pub(crate) fn open(dataset: Dataset, options: BenchOptions) -> anyhow::Result<Self> {
        let samples = dataset.sample_count();
        dataset.load()?;
        let extent_count = Reader::new(dataset.clone(), ReaderOptions::default())?.extents()?.count();
        (0..dataset.segments().len()).try_for_each(|segment| dataset.segment_file(segment))?;
        let stored_bytes = dataset.stored_bytes()?;
        let lens = MeanLens {
            extent_len: stored_bytes.div_ceil(u64::from(extent_count).max(1)),
            sample_len: stored_bytes.div_ceil(samples.max(1)),
        };
        let files: Vec<&Path> = dataset.segments().iter().map(|segment| segment.path()).collect();
        let area = Area::open(&files)?;
        let batch_size = batch_size(samples, dataset.payload_bytes()?);
        let BenchOptions { limit, seed, engine } = options;
        let bench = Bench { dataset, limit, batch_size, seed, engine };
        Ok(Self { bench, area, lens })
    }

    /// Upper bound of the total time, without the steps that have no time limit.
    pub(crate) fn estimate(&self) -> Duration {
        let ways = WAYS.iter().map(|way| way.turns()).fold(0, u32::saturating_add);
        let device = Limit::ALL.iter().map(|_| 2).fold(0, u32::saturating_add);
        self.bench.limit.saturating_mul(ways.saturating_add(device))
    }

    /// The file system that the dataset is on; for several segments, that of the first.
    pub(crate) fn file_system(&self) -> FileSystem {
        let dataset = &self.bench.dataset;
        FileSystem::of(dataset.segments().first().map_or(dataset.path(), |segment| segment.path()))
    }

    /// Measures a limit of the device.
    ///
    /// # Errors
    /// If the requested engine is not available, a file cannot be read, or the user wants to stop.
    pub(crate) fn measure_device(&self, limit: Limit, turn: Turn) -> anyhow::Result<DeviceWork> {
        let load = self.load(limit, turn);
        let time = self.bench.limit;
        if limit == Limit::OneSample {
            return measure_alone(&self.area, load, time);
        }
        let mut engine = start_engine(self.bench.engine, load)?;
        measure(&mut *engine, &self.area, load, time)
    }

    /// Combines all measurements into the report.
    ///
    /// # Errors
    /// If the sizes of the dataset cannot be read.
    pub(crate) fn report(&self, measured: &Measured) -> anyhow::Result<BenchReport> {
        let bench = &self.bench;
        let Measured { brackets, outcomes, elapsed } = measured;
        let load = |limit| self.load(limit, Turn::Before);
        let rows = |(limit, bracket): (Limit, &Bracket)| bracket.row(limit, load(limit), self.area.mode());
        let device: Vec<DeviceRow> = Limit::ALL.into_iter().zip(brackets).map(rows).collect();
        let first = &brackets.first().ok_or_else(|| bug("no limit of the device was measured"))?.before;
        Ok(BenchReport {
            path: shown_path(bench.dataset.path()),
            file_system: self.file_system(),
            samples: bench.dataset.sample_count(),
            payload_bytes: bench.dataset.payload_bytes()?,
            stored_bytes: bench.dataset.stored_bytes()?,
            mean_extent_bytes: self.lens.extent_len,
            mean_sample_bytes: self.lens.sample_len,
            batch_size: bench.batch_size.get(),
            seed: bench.seed,
            limit_s: bench.limit.as_secs_f64(),
            elapsed_s: elapsed.as_secs_f64(),
            engine: first.engine,
            huge_page_share: first.memory.0,
            direct: self.is_direct(),
            ways: outcomes.iter().map(|(way, outcome)| self.way_row(way, outcome, &device)).collect(),
            device,
        })
    }

    /// Every measurement reads at its own offsets: what was read before may be cached below the file system.
    fn load(&self, limit: Limit, turn: Turn) -> Load {
        let number = Limit::ALL.len() as u64 * turn as u64 + limit as u64;
        self.lens.load(limit, self.bench.seed.wrapping_mul(2 * Limit::ALL.len() as u64).wrapping_add(number))
    }

    fn way_row(&self, way: &Way, outcome: &Outcome, device: &[DeviceRow]) -> WayRow {
        let limit = way.limit().filter(|_| self.is_direct());
        let row = limit.and_then(|limit| device.iter().find(|row| row.limit == limit));
        let unit = row.map(|device| ShareUnit { device, sample_len: self.sample_read_len(device.limit) });
        WayRow::of(way, outcome, unit)
    }

    /// Bytes that count for one sample if every sample is a read of its own.
    fn sample_read_len(&self, limit: Limit) -> Option<u64> {
        (limit != Limit::Extents).then(|| self.lens.unit_len(limit))
    }

    fn is_direct(&self) -> bool {
        self.area.refused().is_none()
    }
}

/// The engine that the reader would choose, with room for the whole load. The reader reports why it is not io_uring.
fn start_engine(choice: EngineChoice, load: Load) -> Result<Box<dyn Engine>, EngineError> {
    let in_flight_len_max = load.request_len.saturating_mul(load.depth as u64);
    let owner = UringOwner::OneThread;
    let uring = || UringEngine::new(UringOptions { in_flight_len_max, owner, ..UringOptions::default() });
    match choice {
        EngineChoice::Uring => Ok(Box::new(uring()?)),
        EngineChoice::Pread => start_pread(load.depth),
        EngineChoice::Auto => match uring() {
            Ok(engine) => Ok(Box::new(engine)),
            Err(EngineError::Refused { .. }) => start_pread(load.depth),
            Err(error) => Err(error),
        },
    }
}

/// One thread per read in flight.
fn start_pread(depth: usize) -> Result<Box<dyn Engine>, EngineError> {
    let threads = NonZeroUsize::new(depth).unwrap_or(NonZeroUsize::MIN); // `MeanLens::load` gives 1 or more
    Ok(Box::new(PreadEngine::new(threads)?))
}

/// The default number of samples per batch, or fewer if the dataset is smaller or they need too much memory.
fn batch_size(samples: u64, payload_bytes: u64) -> NonZeroUsize {
    let mean_len = payload_bytes.div_ceil(samples.max(1)).max(1);
    let count = to_usize(samples.min(BATCH_LEN_MAX / mean_len));
    NonZeroUsize::new(count).map_or(NonZeroUsize::MIN, |count| count.min(EpochOptions::DEFAULT_BATCH_SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_not_larger_than_the_dataset_or_than_memory_allows() {
        assert_eq!(batch_size(1_000_000, 3_073_000_000).get(), 256);
        assert_eq!(batch_size(5, 500).get(), 5);
        assert_eq!(batch_size(1000, 1000 * (100 << 20)).get(), 2);
        assert_eq!(batch_size(10, 10 << 30).get(), 1);
        assert_eq!(batch_size(0, 0).get(), 1);
    }
}
