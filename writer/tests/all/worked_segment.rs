//! The worked segment of spec.md: its hexadecimal dump is what the writer writes, and reads back as the text describes it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::fmt::Write;
use std::path::Path;

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_store::Dataset;
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

use crate::common::payload;

/// The block of spec.md between "```hexdump" and "```".
fn dump_in_specification() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, block) = text.split_once("```hexdump\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// As `hexdump -C` prints it.
fn dump(bytes: &[u8]) -> String {
    let (mut text, mut before, mut folded) = (String::new(), None, false);
    for (number, line) in bytes.chunks(16).enumerate() {
        if before == Some(line) {
            if !folded {
                text.push_str("*\n");
            }
            folded = true;
            continue;
        }
        (before, folded) = (Some(line), false);
        write!(text, "{:08x} ", number * 16).unwrap();
        for (place, byte) in line.iter().enumerate() {
            write!(text, "{}{byte:02x}", if place == 8 { "  " } else { " " }).unwrap();
        }
        let shown: String = line.iter().map(|&b| if (0x20..0x7f).contains(&b) { b as char } else { '.' }).collect();
        writeln!(text, "  |{shown}|").unwrap();
    }
    writeln!(text, "{:08x}", bytes.len()).unwrap();
    text
}

/// The bytes of a dump, `*` expanded.
fn undump(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut repeat = false;
    for line in text.lines() {
        if line == "*" {
            repeat = true;
            continue;
        }
        let offset = usize::from_str_radix(&line[..8], 16).unwrap();
        while repeat && bytes.len() < offset {
            bytes.extend_from_within(bytes.len() - 16..);
        }
        repeat = false;
        assert_eq!(bytes.len(), offset, "{line}");
        let hex = line[8..].split('|').next().unwrap();
        bytes.extend(hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

fn samples() -> Vec<Sample> {
    let sample = |key: &str, label: Option<i64>, payload: Vec<u8>| Sample {
        attributes: vec![label.map(AttributeValue::Int)],
        ..Sample::new(key, payload)
    };
    vec![sample("a", Some(5), b"hello".to_vec()), sample("bc", None, vec![]), sample("d", Some(-1), vec![b'x'; 4100])]
}

#[test]
fn the_dump_in_the_specification_is_what_the_writer_writes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("worked");
    let schema = Schema::new(
        vec![Attribute { name: "label".into(), kind: AttributeType::Int64 }],
        vec![Field { name: "data".into(), kind: FieldType::Bytes }],
    )
    .unwrap();
    let options = WriterOptions {
        geometry: Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment: Alignment::PACKED, hash_seed: 7 },
        ..WriterOptions::with_metadata(Metadata { schema, user: UserMetadata::default() })
    };
    let mut writer = DatasetWriter::create(&target, options).unwrap();
    writer.write_batch(samples()).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read(target.join("00000.seg")).unwrap();
    assert!(dump(&written) == dump_in_specification(), "spec.md should say:\n{}", dump(&written));
}

/// CON-1, CON-9, CON-10, ATR-2, CHK-2, FPR-2
#[test]
fn the_dump_in_the_specification_reads_as_its_text_describes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worked.seg");
    std::fs::write(&path, undump(&dump_in_specification())).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    dataset.load().unwrap();
    assert_eq!(dataset.sample_count(), 3);
    assert_eq!(dataset.geometry().hash_seed, 7);
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec.md")).unwrap();
    assert!(text.trim_end().ends_with(&format!("`{}`.", dataset.fingerprint())), "{}", dataset.fingerprint());
    for (ordinal, sample) in (0..).zip(samples()) {
        assert_eq!(dataset.key(ordinal).unwrap(), Some(sample.key.clone()));
        assert_eq!(dataset.find(&sample.key).unwrap(), Some(ordinal));
        assert_eq!(dataset.attributes(ordinal).unwrap(), sample.attributes);
        assert_eq!(payload(&dataset, ordinal), sample.payload);
    }
    assert_eq!(dataset.chunks().unwrap().edge_samples().collect::<Vec<_>>(), [2]);
}
