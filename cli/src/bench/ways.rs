//! The ways of reading a dataset: a table with one entry each, and the code that measures them.
//!
//! To measure one more way, add an entry to [`WAYS`]; a way that calls the reader differently needs a new [`Call`].

use std::num::NonZeroUsize;
use std::time::Duration;

use grainstore_reader::engine::IoMode;
use grainstore_reader::plan::Order;
use grainstore_reader::{EngineChoice, IoChoice, ReadError, Reader, ReaderOptions, engine};
use grainstore_store::Dataset;
use serde::Serialize;

use super::limits::Limit;
use super::work::ReadWork;
use super::{epochs, gets};
use crate::cold::make_file_cold;

/// Bytes of payload that a warm way reads repeatedly: larger than processor caches, smaller than the memory of a
/// machine.
pub(super) const WARM_LEN: u64 = 256 << 20;

/// A way of reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// Its name for people.
    pub(crate) label: &'static str,
    /// Direct, through the page cache, or mapped.
    pub(crate) io: IoChoice,
    /// The state of the page cache at the start.
    pub(crate) cache: Cache,
    /// Which call of the reader is measured.
    pub(crate) call: Call,
}

/// What the page cache contains of the dataset when a way starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cache {
    /// Nothing.
    Cold,
    /// All data that the way reads.
    Warm,
}

/// Which call of the reader is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Epochs in this order.
    Epoch(Order),
    /// Batches of random samples.
    Batches,
    /// Random samples, one after the other.
    Singles,
}

/// All ways, in the order in which they are measured and shown.
pub(crate) const WAYS: [Way; 12] = [
    Way {
        name: "epoch_chunked_direct",
        label: "epoch chunked, direct",
        io: IoChoice::Direct,
        cache: Cache::Cold,
        call: Call::Epoch(Order::Chunked),
    },
    Way {
        name: "epoch_chunked_buffered_cold",
        label: "epoch chunked, buffered, cold",
        io: IoChoice::Buffered,
        cache: Cache::Cold,
        call: Call::Epoch(Order::Chunked),
    },
    Way {
        name: "epoch_chunked_buffered_warm",
        label: "epoch chunked, buffered, warm",
        io: IoChoice::Buffered,
        cache: Cache::Warm,
        call: Call::Epoch(Order::Chunked),
    },
    Way {
        name: "epoch_chunked_mapped_warm",
        label: "epoch chunked, mapped, warm",
        io: IoChoice::Mapped,
        cache: Cache::Warm,
        call: Call::Epoch(Order::Chunked),
    },
    Way {
        name: "epoch_full_direct",
        label: "epoch full, direct",
        io: IoChoice::Direct,
        cache: Cache::Cold,
        call: Call::Epoch(Order::Full),
    },
    Way {
        name: "epoch_full_buffered_warm",
        label: "epoch full, buffered, warm",
        io: IoChoice::Buffered,
        cache: Cache::Warm,
        call: Call::Epoch(Order::Full),
    },
    Way {
        name: "epoch_sequential_direct",
        label: "epoch sequential, direct",
        io: IoChoice::Direct,
        cache: Cache::Cold,
        call: Call::Epoch(Order::Sequential),
    },
    Way {
        name: "get_batch_direct",
        label: "get_batch, direct",
        io: IoChoice::Direct,
        cache: Cache::Cold,
        call: Call::Batches,
    },
    Way {
        name: "get_batch_buffered_warm",
        label: "get_batch, buffered, warm",
        io: IoChoice::Buffered,
        cache: Cache::Warm,
        call: Call::Batches,
    },
    Way { name: "get_direct", label: "get, direct", io: IoChoice::Direct, cache: Cache::Cold, call: Call::Singles },
    Way {
        name: "get_buffered_warm",
        label: "get, buffered, warm",
        io: IoChoice::Buffered,
        cache: Cache::Warm,
        call: Call::Singles,
    },
    Way {
        name: "get_mapped_warm",
        label: "get, mapped, warm",
        io: IoChoice::Mapped,
        cache: Cache::Warm,
        call: Call::Singles,
    },
];

impl Way {
    /// The limit that it is compared with; `None` if no device is read.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match (self.cache, self.call) {
            (Cache::Warm, _) => None,
            (Cache::Cold, Call::Epoch(Order::Chunked | Order::Sequential)) => Some(Limit::Extents),
            (Cache::Cold, Call::Epoch(Order::Full) | Call::Batches) => Some(Limit::Samples),
            (Cache::Cold, Call::Singles) => Some(Limit::OneSample),
        }
    }

    /// How many times the time limit can be used up: once more if the cache is warmed first.
    pub(crate) fn turns(&self) -> u32 {
        match self.cache {
            Cache::Cold => 1,
            Cache::Warm => 2,
        }
    }
}

/// The settings that all ways share.
pub(crate) struct Bench {
    /// The dataset, with its index loaded.
    pub(crate) dataset: Dataset,
    /// How long a way is measured.
    pub(crate) limit: Duration,
    /// Samples per batch.
    pub(crate) batch_size: NonZeroUsize,
    /// Seed of orders and random samples.
    pub(crate) seed: u64,
    /// The engine that reads.
    pub(crate) engine: EngineChoice,
}

/// The result of measuring a way.
pub(crate) struct Outcome {
    pub(crate) work: ReadWork,
    /// How files were finally read.
    pub(crate) io: IoMode,
    /// How long single calls took.
    pub(crate) latency: Option<Latency>,
    /// Notices of the reader.
    pub(crate) notices: Vec<String>,
}

/// How long single calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// Half of the calls took at most this time, in microseconds.
    pub(crate) p50_us: f64,
    /// 99 of 100 calls took at most this time, in microseconds.
    pub(crate) p99_us: f64,
}

/// Whether a way failed because files cannot be mapped here: the other ways may still work.
pub(crate) fn is_unmappable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::CannotOpen { source: engine::FileError::Map { .. } }))
}

impl Bench {
    /// Measures a way.
    ///
    /// # Errors
    /// If something cannot be read or is damaged, or the user wants to stop.
    pub(crate) fn run(&self, way: &Way) -> anyhow::Result<Outcome> {
        let options = ReaderOptions { io: way.io, engine: self.engine, ..ReaderOptions::default() };
        let reader = Reader::new(self.dataset.clone(), options)?;
        reader.load()?;
        reader.extents()?;
        self.make_cold();
        let (work, latency) = match way.call {
            Call::Epoch(order) => (epochs::measure(self, &reader, order, way.cache)?, None),
            Call::Batches => (gets::measure_batches(self, &reader, way.cache)?, None),
            Call::Singles => gets::measure_singles(self, &reader, way.cache).map(|(work, took)| (work, Some(took)))?,
        };
        Ok(Outcome { work, io: reader.io().mode, latency, notices: reader.notices() })
    }

    /// Removes the files that contain samples from the page cache.
    pub(super) fn make_cold(&self) {
        self.dataset.segments().iter().for_each(|segment| make_file_cold(segment.path()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_ways_have_the_same_name() {
        let of = |name: fn(&Way) -> &'static str| WAYS.iter().map(name).collect::<HashSet<_>>().len();
        assert_eq!((of(|way| way.name), of(|way| way.label)), (WAYS.len(), WAYS.len()));
    }

    #[test]
    fn only_warm_ways_have_no_limit() {
        assert!(WAYS.iter().all(|way| way.limit().is_none() == (way.cache == Cache::Warm)));
    }
}
