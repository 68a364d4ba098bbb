//! The baseline of most benchmarks: the same reads by `fio`, with plain buffers and with huge pages.
//!
//! On virtual disks huge pages in the buffers can double what the device delivers. The targets are set against plain
//! `fio`; where huge pages are reserved, the ratio to `fio` with them is reported beside it.

use std::path::PathBuf;

use grainstore_store::Dataset;

use crate::fio::{Fio, FioRun, Job, Memory, Target};
use crate::{Rounds, Spread, say};

/// What the device did a moment ago.
#[derive(Debug, Clone, Copy)]
pub struct Ceiling {
    /// With `fio`'s own buffers. `None` where `fio` could not run.
    pub plain: Option<FioRun>,
    /// With buffers in huge pages. `None` where there are none.
    pub huge: Option<FioRun>,
}

/// A job of `fio` on the samples of a dataset.
#[derive(Debug)]
pub struct FioBaseline {
    job: Job,
    file: PathBuf,
    data_len: u64,
    plain: Option<&'static Fio>,
    huge: Option<&'static Fio>,
}

/// A number divided by what `fio` reached.
#[derive(Debug)]
pub struct AgainstFio {
    pub(crate) plain: Option<Spread>,
    pub(crate) huge: Option<Spread>,
}

impl FioBaseline {
    /// The job, on the dataset's only file of samples.
    #[must_use]
    pub fn new(job: Job, dataset: &Dataset) -> Self {
        let file = dataset.segments().first().map(|segment| segment.path().to_owned()).unwrap_or_default();
        let data_len = dataset.segment_table().records().first().map_or(0, |record| record.data_end);
        let plain = Fio::installed();
        Self { job, file, data_len, plain, huge: plain.filter(|fio| fio.has_huge_pages) }
    }

    /// Runs it. Where it fails this says so, and does not try again.
    pub fn measure(&mut self) -> Ceiling {
        let target = Target { file: &self.file, len: self.data_len };
        let run = |fio: &mut Option<&'static Fio>, memory| {
            let result = (*fio)?.run(&self.job, target, memory);
            result.inspect_err(|error| say(&format!("{memory:?} buffers: {error}"))).inspect_err(|_| *fio = None).ok()
        };
        Ceiling { plain: run(&mut self.plain, Memory::Plain), huge: run(&mut self.huge, Memory::Huge) }
    }
}

impl<T> Rounds<Ceiling, T> {
    /// A number of the measured thing, round by round divided by that of `fio` before and after.
    pub fn against_fio(&self, number: impl Fn(&T) -> f64, device: impl Fn(&FioRun) -> f64) -> AgainstFio {
        AgainstFio {
            plain: self.ratio(&number, |ceiling| ceiling.plain.as_ref().map(&device)),
            huge: self.ratio(&number, |ceiling| ceiling.huge.as_ref().map(&device)),
        }
    }
}
