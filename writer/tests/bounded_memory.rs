//! Memory is bounded by an option, not by the number of samples or the length of their keys. One test, in a process of
//! its own: the peak is the process's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

/// The most memory that this process has held, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn many_samples_long_keys_and_many_attributes_stay_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, options: WriterOptions, samples: &mut dyn Iterator<Item = Sample>| {
        let options = WriterOptions { memory_len: 16 << 20, ..options };
        let mut writer = DatasetWriter::create(folder.path().join(name), options).unwrap();
        samples.for_each(|sample| writer.write(sample).unwrap());
        writer.finish().unwrap();
        peak()
    };
    let start = peak();
    let tiny =
        write("tiny", WriterOptions::default(), &mut (0..1_500_000).map(|i| Sample::new(format!("{i}"), vec![1; 8])));
    let key = |i: u32| [format!("{i:06}").into_bytes(), vec![b'k'; 60_000]].concat();
    let keys = write("keys", WriterOptions::default(), &mut (0..3000).map(|i| Sample::new(key(i), vec![])));
    let attributes = (0..1024).map(|i| Attribute { name: format!("a{i}"), kind: AttributeType::Int64 }).collect();
    let schema = Schema::new(attributes, vec![Field { name: "x".into(), kind: FieldType::Bytes }]).unwrap();
    let options = WriterOptions::with_metadata(Metadata { schema, user: UserMetadata::default() });
    let wide =
        |i: i64| Sample { attributes: vec![Some(AttributeValue::Int(i)); 1024], ..Sample::new(format!("{i}"), vec![]) };
    let wide = write("wide", options, &mut (0..10_000).map(wide));
    eprintln!("peak: {start} at the start, {tiny} tiny, {keys} keys, {wide} attributes");
    assert!(wide - start <= 64 << 20, "{wide} bytes at the peak, {start} before");
}
