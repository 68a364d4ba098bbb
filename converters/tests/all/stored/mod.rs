//! What the tests of adopted and grown datasets share: a folder to work in, and everything that a reader returns
//! for a dataset.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use grainstore_converters::{ConvertError, ConvertOptions, NoEvents, Order, convert};
use grainstore_format::{AttributeValue, ChunkSize, to_usize};
use grainstore_reader::{EpochOptions, Reader, ReaderOptions};
use grainstore_sources::Source;
use grainstore_store::{VerifyOptions, verify};

pub(crate) use crate::shelf::Shelf;

/// A sample as the user sees it; payloads differ where framing is between fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) key: Option<String>,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) fields: Vec<Option<Vec<u8>>>,
}

impl Shelf {
    /// Copies a fixture.
    pub(crate) fn put_fixture(&self, fixture: &str, name: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sources/tests/fixtures").join(fixture);
        self.put(name, fs::read(path).unwrap())
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Small chunks, few threads, in the order of the source.
pub(crate) fn in_order() -> ConvertOptions {
    ConvertOptions {
        order: Order::Source,
        chunk_size: ChunkSize::new(4096).unwrap(),
        jobs: NonZeroUsize::new(2),
        ..ConvertOptions::default()
    }
}

pub(crate) fn pack(source: &dyn Source, dataset: &Path) -> Result<(), ConvertError> {
    convert(source, dataset, &in_order(), &NoEvents).map(|_| ())
}

pub(crate) fn reader(dataset: &Path) -> Reader {
    Reader::open(dataset, ReaderOptions { allow_external: true, ..ReaderOptions::default() }).unwrap()
}

/// All samples in stored order.
pub(crate) fn stored(dataset: &Path) -> Vec<Stored> {
    let reader = reader(dataset);
    (0..reader.collection().sample_count()).map(|ordinal| sample(&reader, ordinal)).collect()
}

pub(crate) fn sample(reader: &Reader, ordinal: u64) -> Stored {
    let sample = reader.get(ordinal).unwrap();
    let cut = |range: &std::ops::Range<u64>| sample.payload[to_usize(range.start)..to_usize(range.end)].to_vec();
    let key = reader.collection().key(ordinal).unwrap();
    Stored {
        key: key.map(|key| String::from_utf8(key).unwrap()),
        attributes: reader.collection().attributes(ordinal).unwrap(),
        fields: sample.fields().iter().map(|field| field.as_ref().map(cut)).collect(),
    }
}

pub(crate) fn keys(dataset: &Path) -> Vec<String> {
    stored(dataset).into_iter().map(|sample| sample.key.unwrap()).collect()
}

/// Every key finds its sample, an epoch has each sample once with its bytes, and `verify` finds nothing.
pub(crate) fn check_all(dataset: &Path) {
    let reader = reader(dataset);
    let count = reader.collection().sample_count();
    for ordinal in 0..count {
        let Some(key) = reader.collection().key(ordinal).unwrap() else { continue };
        assert_eq!(reader.get_by_key(&key).unwrap().unwrap().ordinal, ordinal);
    }
    let mut seen = Vec::new();
    for batch in reader.epoch(&EpochOptions { seed: 5, ..EpochOptions::default() }).unwrap() {
        let batch = batch.unwrap();
        for (&ordinal, payload) in batch.ordinals().iter().zip(batch.payloads()) {
            assert!(reader.get(ordinal).unwrap().payload == payload, "sample {ordinal}");
            seen.push(ordinal);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..count).collect::<Vec<_>>());
    let options = VerifyOptions { allow_external: true, ..VerifyOptions::default() };
    let damages = std::sync::Mutex::new(Vec::new());
    let report = verify(dataset, &options, &|damage| damages.lock().unwrap().push(format!("{damage:?}")), &|_| {});
    assert_eq!((report.unwrap().samples, damages.into_inner().unwrap()), (count, vec![]));
}

/// The bytes of every file of a dataset.
pub(crate) fn files(dataset: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(dataset).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}
