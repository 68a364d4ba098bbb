//! Files that are small, or take no space on the disk, do not make the command take much memory, and a lack of memory is
//! an error, never an abort.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use grainstore_format::SectionKind;
use grainstore_writer::{Compression, Sample, WriterOptions};

use crate::common::{Fixture, grainstore};
#[path = "../../../store/tests/all/common/mod.rs"]
mod store_common;
use store_common::{DatasetModel, DatasetParts};

const MIB: u64 = 1 << 20;

/// Runs the command with at most this much private memory.
fn limited(memory_len: u64, words: &[&str], path: &Path) -> Output {
    let command = grainstore();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -c 0 && ulimit -d {} && exec \"$0\" \"$@\"", memory_len >> 10));
    shell.arg(command.get_program()).args(words).arg(path);
    // Memory that the C library keeps for each thread would hide what is measured.
    shell.env("MALLOC_ARENA_MAX", "1").output().unwrap()
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    format!("{:?}: {} {}", output.status, text(&output.stdout), text(&output.stderr))
}

/// A dataset of one sample in a sparse file, whose index has 16 million chunks.
fn many_chunks() -> DatasetParts {
    const CHUNKS: usize = 16 << 20;
    let mut model = DatasetModel::plain(&[vec![7; 9]]);
    model.segments[0].1 = true;
    let mut parts = model.parts();
    let data_end = CHUNKS as u64 * 4096;
    parts.segments[0].sparse_len = Some(data_end);
    let index = &mut parts.segments[0].index;
    index.section(SectionKind::Segments, 0)[8..16].copy_from_slice(&data_end.to_le_bytes());
    index.put(SectionKind::Chunks, 0, 4, vec![0; 4 * CHUNKS]);
    index.put(SectionKind::Edges, 0, 0, vec![0; CHUNKS / 8]);
    parts
}

/// CHK-1, CHK-2
#[test]
fn an_index_takes_about_its_own_length_in_memory() {
    let built = many_chunks().write();
    // The index has 66 MiB, and 40 MiB have to be left.
    for words in [&["verify", "--jobs", "2", "--allow-external"], &["inspect", "--allow-external"][..]] {
        let output = limited(160 * MIB, words, &built.path);
        let status = output.status.code();
        assert!(status == Some(if words[0] == "verify" { 1 } else { 2 }), "{}", shown(&output));
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        assert!(String::from_utf8_lossy(&text).contains("do not own its 1 samples"), "{}", shown(&output));
    }
}

#[test]
fn a_lack_of_memory_is_an_error_and_no_damage() {
    let built = many_chunks().write();
    for words in [&["verify", "--jobs", "2", "--allow-external"], &["inspect", "--allow-external"][..]] {
        for limit in [60, 80, 100] {
            let output = limited(limit * MIB, words, &built.path);
            assert_eq!(output.status.code(), Some(2), "{limit} MiB, {words:?}: {}", shown(&output));
            assert!(String::from_utf8_lossy(&output.stderr).contains("no memory for"), "{}", shown(&output));
        }
    }
}

#[test]
fn no_command_is_aborted_for_lack_of_memory() {
    let built = many_chunks().write();
    for words in [&["epoch"][..], &["plan"], &["plan", "--subset", "ordinal < 5"], &["ls"], &["get", "--ordinal", "0"]]
    {
        for limit in [60, 80, 100, 200] {
            let command = [&words[..1], &["--allow-external"], &words[1..]].concat();
            let output = limited(limit * MIB, &command, &built.path);
            assert!(matches!(output.status.code(), Some(0..=2)), "{limit} MiB, {words:?}: {}", shown(&output));
        }
    }
}

/// A dataset whose metadata is this text.
fn with_metadata(text: String) -> DatasetParts {
    let mut parts = DatasetModel::plain(&[vec![7; 9]]).parts();
    parts.segments[0].index.put(SectionKind::Metadata, 0, 0, text.into_bytes());
    parts
}

/// MET-1, MET-3
#[test]
fn long_metadata_takes_a_few_times_its_length() {
    const LEN: usize = 40 << 20;
    let schema = r#"{"attributes":[],"fields":[{"name":"data","type":"bytes"}]}"#;
    let objects = r#"{"":[]},"#.repeat(LEN / 8);
    let user = with_metadata(format!(r#"{{"schema":{schema},"user":{{"class_names":[{objects}0]}}}}"#));
    let ignored = with_metadata(format!(r#"{{"schema":{schema},"user":{{}},"more":[{objects}0]}}"#));
    let attributes = r#"{"name":"a","type":"int8"},"#.repeat(LEN / 27);
    let schema = with_metadata(format!(r#"{{"schema":{{"attributes":[{attributes}{{}}],"fields":[]}},"user":{{}}}}"#));
    for (parts, is_legal) in [(user, true), (ignored, true), (schema, false)] {
        let built = parts.write();
        for (words, refused) in [(&["inspect"][..], 2), (&["verify", "--jobs", "2"], 1)] {
            let output = limited(450 * MIB, words, &built.path);
            let expected = if is_legal { 0 } else { refused };
            assert_eq!(output.status.code(), Some(expected), "{words:?}: {}", shown(&output));
            // Less is an error, or enough.
            let output = limited(100 * MIB, words, &built.path);
            assert!(matches!(output.status.code(), Some(0..=2)), "{words:?}: {}", shown(&output));
        }
    }
}

/// MAN-2
#[test]
fn an_ignored_member_of_a_manifest_takes_only_its_own_bytes() {
    const MEMBER: &str = r#"{"a":[1e999,"\ud800",-0]},"#;
    let built = DatasetModel::rich(&[20]).write();
    let more = MEMBER.repeat(usize::try_from(64 * MIB).unwrap() / MEMBER.len());
    built.change_manifest(|text| format!("{text},\n  \"more\": [{more}0]"));
    for words in [&["inspect"], &["verify"]] {
        // Its own bytes, and what has to be free before a document of this length is read. Built, it would take 1 GiB.
        let output = limited(5 * 64 * MIB + 120 * MIB, words, &built.path);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", shown(&output));
    }
}

/// Samples of 64 MiB that take a 255th of it on the disk.
fn zeros(count: usize) -> Fixture {
    let options = WriterOptions { compression: Compression::Lz4, keyed: false, ..WriterOptions::default() };
    Fixture::write(options, (0..count).map(|_| Sample::new("", vec![0; 64 << 20])))
}

#[test]
fn batches_that_decode_to_much_more_than_is_stored_are_refused() {
    let fixture = zeros(17);
    // Two threads decode a sample each.
    let output = limited(2 * 64 * MIB + 100 * MIB, &["verify", "--jobs", "2"], &fixture.path);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let run = fixture.run("epoch", ["--seed", "3"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    let stored_len = fixture.json("inspect", [""; 0]).1["stored_bytes"].as_u64().unwrap();
    assert_eq!(
        run.stderr,
        format!(
            "grainstore: batch of 17 samples at position 0: it decodes from {stored_len} bytes to 1140850688, the limit \
             is 1073741824\nhint: take a smaller `--batch-size`\n"
        )
    );
}

#[test]
fn decoded_batches_that_wait_are_bounded() {
    const BATCH_LEN: u64 = 320 * MIB;
    let fixture = zeros(20);
    // One batch waits or is made, and the command has one. The reader has at most 64 MiB for anything else.
    let words = ["epoch", "--batch-size", "5", "--io", "buffered", "--order", "full"];
    let output = limited(2 * BATCH_LEN + 120 * MIB, &words, &fixture.path);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
}
