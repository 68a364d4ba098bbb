//! A sample that was read alone.

use crate::border::{Bytes, Out, Text};
use crate::dataset::needed;
use crate::status::{Status, guarded, guarded_value};

/// `grainstore_sample`
#[derive(Debug)]
pub struct Sample {
    pub(crate) sample: grainstore_reader::Sample,
}

/// `grainstore_sample_ordinal`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_sample_ordinal(sample: Option<&Sample>) -> u64 {
    guarded_value(0, || sample.map_or(0, |sample| sample.sample.ordinal))
}

/// `grainstore_sample_payload`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_sample_payload(sample: Option<&Sample>) -> Bytes {
    guarded_value(Bytes::NONE, || Bytes::of(sample.map(|sample| &sample.sample.payload[..])))
}

/// `grainstore_sample_field`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_sample_field(sample: Option<&Sample>, name: Text, bytes: Out<Bytes>) -> Status {
    guarded(|| {
        let place = bytes.prepared(Bytes::NONE, "bytes")?;
        let sample = needed(sample, "sample")?;
        place.put(Bytes::of(sample.sample.field(name.needed("name")?)?));
        Ok(Status::OK)
    })
}

/// `grainstore_sample_free`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_sample_free(sample: Option<Box<Sample>>) {
    guarded_value((), || drop(sample));
}
