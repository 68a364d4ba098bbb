//! Exports to TFRecord: framing and checksums are checked by hand, examples are decoded by prost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use grainstore_export::{ExportOptions, Format};
use grainstore_format::{AttributeType, AttributeValue, FieldType, UserMetadata};
use grainstore_writer::Sample;
use prost::Message;

use crate::common::{Made, image, options, rich};

#[derive(Clone, PartialEq, Message)]
struct Example {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
}

#[derive(Clone, PartialEq, Message)]
struct Features {
    #[prost(map = "string, message", tag = "1")]
    by_name: HashMap<String, Feature>,
}

#[derive(Clone, PartialEq, Message)]
struct Feature {
    #[prost(message, optional, tag = "1")]
    bytes: Option<Bytes>,
    #[prost(message, optional, tag = "2")]
    floats: Option<Floats>,
    #[prost(message, optional, tag = "3")]
    ints: Option<Ints>,
}

#[derive(Clone, PartialEq, Message)]
struct Bytes {
    #[prost(bytes = "vec", repeated, tag = "1")]
    value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Floats {
    #[prost(float, repeated, tag = "1")]
    value: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Ints {
    #[prost(int64, repeated, tag = "1")]
    value: Vec<i64>,
}

fn records(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap();
    let (mut rest, mut records) = (file.as_slice(), Vec::new());
    let sum = |bytes: &[u8]| crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    while !rest.is_empty() {
        let (head, behind) = rest.split_at(12);
        assert_eq!(sum(&head[..8]), head[8..]);
        let len = usize::try_from(u64::from_le_bytes(head[..8].try_into().unwrap())).unwrap();
        let (record, behind) = behind.split_at(len);
        assert_eq!(sum(record), behind[..4]);
        records.push(record.to_vec());
        rest = &behind[4..];
    }
    records
}

fn features(record: &[u8]) -> HashMap<String, Feature> {
    Example::decode(record).unwrap().features.unwrap().by_name
}

#[test]
fn every_sample_is_an_example_of_its_key_attributes_and_fields() {
    let made = rich(50);
    let summary = made.export("out.tfrecord", Format::TfRecord).unwrap();
    let bools = "a tf.train.Example has no bools: they are int64 features of 0 or 1";
    let names = "the names of these attributes' numbers are left out: label (Parquet holds them)";
    assert_eq!(summary.notes, [bools, names]);
    let records = records(&made.out("out.tfrecord"));
    assert_eq!(records.len(), 50);
    for (number, record) in (0..).zip(&records) {
        let found = features(record);
        let bytes = |name: &str| found.get(name).map(|feature| feature.bytes.clone().unwrap().value);
        let int = |name: &str| found.get(name).map(|feature| feature.ints.clone().unwrap().value);
        let float = |name: &str| found.get(name).map(|feature| feature.floats.clone().unwrap().value);
        assert_eq!(bytes("key"), Some(vec![format!("part/{number:05}").into_bytes()]));
        assert_eq!(bytes("jpg"), Some(vec![image(number)]));
        assert_eq!(bytes("txt"), (number % 11 != 10).then(|| vec![format!("caption {number}").into_bytes()]));
        assert_eq!(int("label"), (number % 5 != 4).then(|| vec![(number % 3).cast_signed()]));
        assert_eq!(int("good"), Some(vec![i64::from(number.is_multiple_of(2))]));
        assert_eq!(float("weight"), (number % 7 != 6).then(|| vec![number as f32 / 10.0]));
    }
}

#[test]
fn records_that_were_imported_as_they_were_are_written_as_they_were() {
    let payloads = [&b"not an example"[..], b"", &[9; 5000]];
    let made = Made::keyless(&payloads, "record");
    made.export("out.tfrecord", Format::TfRecord).unwrap();
    assert_eq!(records(&made.out("out.tfrecord")), payloads);
    let made = Made::keyless(&payloads, "data");
    made.export("out.tfrecord", Format::TfRecord).unwrap();
    let wrapped = records(&made.out("out.tfrecord"));
    assert_eq!(features(&wrapped[0])["data"].bytes.clone().unwrap().value, [payloads[0]]);
}

fn with_value(kind: AttributeType, value: AttributeValue) -> Made {
    let options = options(vec![("n", kind)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    Made::of(options, [Sample { attributes: vec![Some(value)], ..Sample::new("k", b"1".to_vec()) }])
}

#[test]
fn values_that_no_feature_holds_exactly_are_refused_and_others_kept() {
    let refused = |kind, value| with_value(kind, value).refusal("out.tfrecord", Format::TfRecord);
    assert_eq!(
        refused(AttributeType::Uint64, AttributeValue::Uint(1 << 63)),
        "sample 0 (key \"k\"): its \"n\" is 9223372036854775808, a feature holds 9223372036854775807 at most"
    );
    assert_eq!(
        refused(AttributeType::Float64, AttributeValue::Float64(0.1)),
        "sample 0 (key \"k\"): its \"n\" is 0.1, a feature holds 32-bit floats, and none is exactly this"
    );
    let made = with_value(AttributeType::Float64, AttributeValue::Float64(-0.25));
    made.export("out.tfrecord", Format::TfRecord).unwrap();
    let record = &records(&made.out("out.tfrecord"))[0];
    assert_eq!(features(record)["n"].floats.clone().unwrap().value, [-0.25]);
    let made = with_value(AttributeType::Int8, AttributeValue::Int(-128));
    made.export("out.tfrecord", Format::TfRecord).unwrap();
    assert_eq!(features(&records(&made.out("out.tfrecord"))[0])["n"].ints.clone().unwrap().value, [-128]);
}

#[test]
fn shards_hold_all_samples_in_order() {
    let made = rich(120);
    let options = ExportOptions { jobs: 3.try_into().ok(), shard_len: 20_000, ..ExportOptions::to(Format::TfRecord) };
    made.export_with("out", &options).unwrap();
    let mut paths: Vec<_> = fs::read_dir(made.out("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let keys: Vec<Vec<u8>> = paths
        .iter()
        .flat_map(|path| records(path))
        .map(|record| features(&record)["key"].bytes.clone().unwrap().value.remove(0))
        .collect();
    assert!(paths.len() > 3);
    assert_eq!(keys, (0..120).map(|number| format!("part/{number:05}").into_bytes()).collect::<Vec<_>>());
}
