//! Files of other formats, made in memory. The tests of the converters use this file too.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::io::Write;

use grainstore_sources::tfrecord::example::{Example, Feature};
use grainstore_sources::tfrecord::framing::frame;
use prost::Message;

/// A tar archive of these members.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The bytes of a TFRecord file of these records.
pub(crate) fn framed(records: &[&[u8]]) -> Vec<u8> {
    let one = |record: &&[u8]| {
        let framed = frame(record);
        [&framed.header[..], record, &framed.footer].concat()
    };
    records.iter().flat_map(one).collect()
}

pub(crate) fn example(features: &[(&str, Feature)]) -> Vec<u8> {
    Example::of(features.iter().map(|(name, feature)| ((*name).to_owned(), feature.clone()))).encode_to_vec()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
