//! Several samples that were read together.

use std::ptr;

use crate::border::{Bytes, Out, Text};
use crate::dataset::needed;
use crate::status::{Failure, Status, guarded, guarded_value};

/// `grainstore_batch`
#[derive(Debug)]
pub struct Batch {
    pub(crate) batch: grainstore_reader::Batch,
}

impl Batch {
    fn check(&self, index: usize) -> Result<(), Failure> {
        let len = self.batch.len();
        let outside = || Failure::new(Status::NO_SAMPLE, format!("no sample {index} in a batch of {len}"));
        (index < len).then_some(()).ok_or_else(outside)
    }
}

/// `grainstore_batch_len`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_len(batch: Option<&Batch>) -> usize {
    guarded_value(0, || batch.map_or(0, |batch| batch.batch.len()))
}

/// `grainstore_batch_ordinals`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_ordinals(batch: Option<&Batch>) -> *const u64 {
    guarded_value(ptr::null(), || batch.map_or(ptr::null(), |batch| batch.batch.ordinals().as_ptr()))
}

/// `grainstore_batch_padded_count`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_padded_count(batch: Option<&Batch>) -> usize {
    guarded_value(0, || batch.map_or(0, |batch| batch.batch.padded_count()))
}

/// `grainstore_batch_skipped_count`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_skipped_count(batch: Option<&Batch>) -> usize {
    guarded_value(0, || batch.map_or(0, |batch| batch.batch.skipped().len()))
}

/// `grainstore_batch_payload`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_payload(batch: Option<&Batch>, index: usize, bytes: Out<Bytes>) -> Status {
    guarded(|| {
        let place = bytes.prepared(Bytes::NONE, "bytes")?;
        let batch = needed(batch, "batch")?;
        batch.check(index)?;
        place.put(Bytes::of(Some(batch.batch.payload(index))));
        Ok(Status::OK)
    })
}

/// `grainstore_batch_field`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_field(batch: Option<&Batch>, index: usize, name: Text, bytes: Out<Bytes>) -> Status {
    guarded(|| {
        let place = bytes.prepared(Bytes::NONE, "bytes")?;
        let batch = needed(batch, "batch")?;
        batch.check(index)?;
        place.put(Bytes::of(batch.batch.field_named(index, name.needed("name")?)?));
        Ok(Status::OK)
    })
}

/// `grainstore_batch_free`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_batch_free(batch: Option<Box<Batch>>) {
    guarded_value((), || drop(batch));
}
