//! The baseline of most benchmarks: the same reads by `fio`, with plain buffers and with huge pages.
//!
//! On virtual disks, buffers in huge pages can double the rate of the device. The targets refer to plain `fio`; if huge
//! pages are reserved, the ratio to `fio` with huge pages is reported too.

use std::path::PathBuf;

use grainstore_store::Dataset;

use crate::fio::{Fio, FioRun, Job, Memory, Target};
use crate::{Rounds, Spread, say};

/// The rates of the device a moment ago.
#[derive(Debug, Clone, Copy)]
pub struct Ceiling {
    /// With `fio`'s own buffers. `None` if `fio` could not run.
    pub plain: Option<FioRun>,
    /// With buffers in huge pages. `None` if there are none.
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

    /// Runs `fio`. If it fails, this prints the error and does not try again.
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
