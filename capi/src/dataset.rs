//! A dataset: opening it, what is in it, samples and keys.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use grainstore_format::to_usize;
use grainstore_reader::{Reader, ReaderOptions};
use serde_json::{Value, json};

use crate::batch::Batch;
use crate::border::{Buffer, Items, Numbers, Options, Out, Text};
use crate::sample::Sample;
use crate::status::{Failure, Status, guarded, guarded_value};

/// `grainstore_dataset`
#[derive(Debug)]
pub struct Dataset {
    pub(crate) reader: Reader,
}

/// `grainstore_open_options`
#[repr(C)]
#[derive(Debug)]
pub struct OpenOptions {
    /// `sizeof` of the program's structure.
    pub size: u64,
    /// auto, direct, buffered or mapped.
    pub io: Text,
    /// auto, uring or pread.
    pub engine: Text,
    /// Number of reading threads.
    pub threads: u64,
    /// Bytes in flight.
    pub queue_bytes: u64,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// The generation, counted from 1.
    pub generation: u64,
    /// Whether files outside the parent directory may be read.
    pub allow_external: u64,
    /// How long a read may take.
    pub timeout_ms: u64,
}

impl OpenOptions {
    fn reader_options(&self) -> Result<ReaderOptions, Failure> {
        let default = ReaderOptions::default();
        let or = |number: u64, default: u64| NonZeroU64::new(number).map_or(default, NonZeroU64::get);
        Ok(ReaderOptions {
            io: choice(self.io.get("io")?, default.io)?,
            engine: choice(self.engine.get("engine")?, default.engine)?,
            threads: to_usize(or(self.threads, default.threads as u64)),
            queue_len: or(self.queue_bytes, default.queue_len),
            cache_bytes: self.cache_bytes,
            generation: self.generation.checked_sub(1).map(to_usize),
            allow_external: flag(self.allow_external, "allow_external")?,
            timeout: NonZeroU64::new(self.timeout_ms).map_or(default.timeout, |ms| Duration::from_millis(ms.get())),
            ..default
        })
    }
}

/// A choice by name; `default` for NULL.
pub(crate) fn choice<T>(name: Option<&str>, default: T) -> Result<T, Failure>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    name.map_or(Ok(default), |name| name.parse().map_err(|error: T::Err| Failure::argument(error.to_string())))
}

pub(crate) fn flag(number: u64, name: &str) -> Result<bool, Failure> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::argument(format!("{name} is {number}, expected 0 or 1"))),
    }
}

pub(crate) fn needed<'a, T>(handle: Option<&'a T>, name: &str) -> Result<&'a T, Failure> {
    handle.ok_or_else(|| Failure::null(name))
}

/// `grainstore_open`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_open(
    path: Text,
    options: Options<OpenOptions>,
    dataset: Out<Option<Box<Dataset>>>,
) -> Status {
    guarded(|| {
        let place = dataset.prepared(None, "dataset")?;
        let path = path.bytes().ok_or_else(|| Failure::null("path"))?;
        let options = options.get("options")?.reader_options()?;
        let reader = Reader::open(Path::new(OsStr::from_bytes(path)), options)?;
        place.put(Some(Box::new(Dataset { reader })));
        Ok(Status::OK)
    })
}

/// `grainstore_close`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_close(dataset: Option<Box<Dataset>>) {
    guarded_value((), || drop(dataset));
}

/// `grainstore_count`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_count(dataset: Option<&Dataset>) -> u64 {
    guarded_value(0, || dataset.map_or(0, |dataset| dataset.reader.collection().sample_count()))
}

/// `grainstore_describe`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_describe(
    dataset: Option<&Dataset>,
    text: Buffer<u8>,
    capacity: usize,
    len: Out<usize>,
) -> Status {
    guarded(|| {
        let len = len.prepared(0, "len")?;
        let collection = needed(dataset, "dataset")?.reader.collection();
        let schema = collection.schema();
        let named = |name: &str, kind: String| json!({"name": name, "type": kind});
        let fields: Vec<Value> = schema.fields().iter().map(|one| named(&one.name, one.kind.name())).collect();
        let attributes: Vec<Value> =
            schema.attributes().iter().map(|one| named(&one.name, one.kind.name().to_owned())).collect();
        let metadata: Value = serde_json::from_str(collection.user_metadata().text())
            .map_err(|error| Failure::new(Status::DAMAGED, format!("the metadata is not JSON: {error}")))?;
        let described = json!({
            "samples": collection.sample_count(),
            "keyed": collection.is_keyed(),
            "fingerprint": collection.fingerprint().to_string(),
            "fields": fields,
            "attributes": attributes,
            "metadata": metadata,
        });
        let described = described.to_string();
        len.put(described.len());
        put_text(&described, text, capacity)
    })
}

/// Stores text and the zero byte that ends it.
pub(crate) fn put_text(text: &str, buffer: Buffer<u8>, capacity: usize) -> Result<Status, Failure> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    buffer.put(&bytes, capacity)?;
    Ok(Status::OK)
}

/// `grainstore_key`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_key(
    dataset: Option<&Dataset>,
    ordinal: u64,
    key: Buffer<u8>,
    capacity: usize,
    len: Out<usize>,
) -> Status {
    guarded(|| {
        let len = len.prepared(0, "len")?;
        let found = needed(dataset, "dataset")?.reader.collection().key(ordinal)?;
        let found = found.ok_or_else(|| Failure::new(Status::NO_VALUE, "the samples of this dataset have no keys"))?;
        len.put(found.len());
        key.put(&found, capacity)?;
        Ok(Status::OK)
    })
}

/// `grainstore_find`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_find(
    dataset: Option<&Dataset>,
    key: Items<u8>,
    key_len: usize,
    ordinal: Out<u64>,
) -> Status {
    guarded(|| {
        let place = ordinal.prepared(0, "ordinal")?;
        let dataset = needed(dataset, "dataset")?;
        place.put(found(dataset, key.slice(key_len, "key")?)?);
        Ok(Status::OK)
    })
}

fn found(dataset: &Dataset, key: &[u8]) -> Result<u64, Failure> {
    dataset.reader.collection().find(key)?.ok_or_else(|| {
        let shown = grainstore_format::escape_bytes(key);
        Failure::new(Status::NO_SAMPLE, format!("no sample has the key \"{shown}\""))
    })
}

/// `grainstore_get`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_get(dataset: Option<&Dataset>, ordinal: u64, sample: Out<Option<Box<Sample>>>) -> Status {
    guarded(|| {
        let place = sample.prepared(None, "sample")?;
        let sample = needed(dataset, "dataset")?.reader.get(ordinal)?;
        place.put(Some(Box::new(Sample { sample })));
        Ok(Status::OK)
    })
}

/// `grainstore_get_by_key`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_get_by_key(
    dataset: Option<&Dataset>,
    key: Items<u8>,
    key_len: usize,
    sample: Out<Option<Box<Sample>>>,
) -> Status {
    guarded(|| {
        let place = sample.prepared(None, "sample")?;
        let dataset = needed(dataset, "dataset")?;
        let ordinal = found(dataset, key.slice(key_len, "key")?)?;
        place.put(Some(Box::new(Sample { sample: dataset.reader.get(ordinal)? })));
        Ok(Status::OK)
    })
}

/// `grainstore_get_batch`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_get_batch(
    dataset: Option<&Dataset>,
    ordinals: Numbers,
    count: usize,
    batch: Out<Option<Box<Batch>>>,
) -> Status {
    guarded(|| {
        let place = batch.prepared(None, "batch")?;
        let dataset = needed(dataset, "dataset")?;
        let batch = dataset.reader.get_batch(ordinals.slice(count, "ordinals")?)?;
        place.put(Some(Box::new(Batch { batch })));
        Ok(Status::OK)
    })
}
