//! A damaged dataset, or something else: `verify` lists what is wrong, the other commands refuse with one sentence.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::common::{Fixture, flip_byte};

#[test]
fn a_whole_dataset_is_ok() {
    let run = Fixture::small().run("verify", [""; 0]);
    assert_eq!(run.status, 0);
    let size = run.stderr.strip_prefix("checked ").and_then(|rest| rest.split_once(" in ")).map_or("", |split| split.0);
    assert!(size.ends_with(" kB"), "{}", run.stderr);
    assert_eq!(run.stdout, format!("[PATH]/data.grain: 5 samples, 2 segments, {size}: ok\n"));
    assert_eq!(run.stderr, format!("checked {size} in [TIME] s, [RATE], 0 damaged\n"));
}

#[test]
fn quiet_leaves_only_data() {
    let run = Fixture::small().run("verify", ["--quiet", "--jobs", "1"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn a_whole_dataset_is_ok_in_json_too() {
    let (status, document) = Fixture::small().json("verify", [""; 0]);
    assert_eq!(status, 0);
    for (key, value) in [
        ("ok", json!(true)),
        ("samples", json!(5)),
        ("segments", json!(2)),
        ("damaged", json!(0)),
        ("damages", json!([])),
    ] {
        assert_eq!(document[key], value, "{key}");
    }
    assert!(document["checked_bytes"].as_u64().is_some_and(|bytes| bytes > 10_000));
    assert!(document["elapsed_s"].is_f64());
}

#[test]
fn a_flipped_byte_is_named_by_segment_ordinal_key_and_offset() {
    let (fixture, offset) = damaged();
    let run = fixture.run("verify", [""; 0]);
    assert_eq!(run.status, 1);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stdout);
    let start = format!("00000.seg: sample 2 (key \"cat/2.jpg\"): at {offset}: CRC-32 of stored bytes {offset}..");
    assert!(lines[0].starts_with(&start), "{}", lines[0]);
    assert!(lines[1].ends_with(": 1 damaged"), "{}", lines[1]);
}

#[test]
fn a_flipped_byte_is_named_in_json() {
    let (fixture, offset) = damaged();
    let (status, document) = fixture.json("verify", [""; 0]);
    assert_eq!((status, &document["ok"], &document["damaged"]), (1, &json!(false), &json!(1)));
    let damage = &document["damages"][0];
    assert_eq!(damage["segment"], json!("00000.seg"));
    assert_eq!((&damage["ordinal"], &damage["key"]), (&json!(2), &json!("cat/2.jpg")));
    assert_eq!(damage["offset"], json!(offset));
    assert!(damage["what"].as_str().unwrap().starts_with("CRC-32 of stored bytes"), "{damage}");
}

#[test]
fn get_of_a_damaged_sample_writes_nothing() {
    let (fixture, offset) = damaged();
    let run = fixture.run("get", ["cat/2.jpg", "--field", "image"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    let start = format!(
        "grainstore: [PATH]/data.grain/00000.seg: sample 2 (key \"cat/2.jpg\"): CRC-32 of stored bytes {offset}.."
    );
    assert!(run.stderr.starts_with(&start), "{}", run.stderr);
    assert!(run.stderr.ends_with("\nhint: `grainstore verify` lists everything that is damaged\n"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 2);
    assert_eq!(fixture.run_unfiltered("get", ["cat/1.jpg", "--field", "image"]).status, 0);
}

#[test]
fn an_epoch_with_a_damaged_sample_fails_and_names_it() {
    let (fixture, _) = damaged();
    let run = fixture.run("epoch", ["--batch-size", "1", "--order", "sequential"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("00000.seg: sample 2 (key \"cat/2.jpg\"): CRC-32"), "{}", run.stderr);
}

#[test]
fn a_missing_segment_is_damage_to_verify_and_an_error_to_get() {
    let fixture = Fixture::small();
    fs::remove_file(fixture.file("00001.seg")).unwrap();
    let run = fixture.run("verify", [""; 0]);
    assert_eq!(run.status, 1);
    assert!(run.stdout.starts_with("00001.seg: "), "{}", run.stdout);
    let run = fixture.run("get", ["--ordinal", "4", "--field", "image"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("00001.seg: no such file or directory"), "{}", run.stderr);
}

#[test]
fn every_command_reports_a_missing_path_in_one_sentence() {
    for_each_command(
        |fixture| fixture.path = fixture.folder.path().join("missing.grain"),
        |stderr| {
            assert_eq!(stderr, "grainstore: [PATH]/missing.grain: no such file or directory\n");
        },
    );
}

#[test]
fn every_command_refuses_a_directory_that_is_no_dataset() {
    for_each_command(
        |fixture| fixture.path = fixture.folder.path().to_owned(),
        |stderr| {
            assert!(stderr.starts_with("grainstore: [PATH]: not a dataset: "), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        },
    );
}

#[test]
fn every_command_refuses_a_file_that_is_no_segment() {
    let make = |fixture: &mut Fixture| {
        fixture.path = fixture.folder.path().join("notes.txt");
        fs::write(&fixture.path, "x".repeat(10_000)).unwrap();
    };
    for_each_command(make, |stderr| {
        assert!(stderr.starts_with("grainstore: [PATH]/notes.txt: not a "), "{stderr}");
    });
}

#[test]
fn every_command_refuses_a_dataset_of_a_newer_version_with_a_hint() {
    let make = |fixture: &mut Fixture| make_newer(&fixture.file("manifest.json"));
    for_each_command(make, |stderr| {
        assert_eq!(
            stderr,
            "grainstore: [PATH]/data.grain/manifest.json: written by a newer grainstore: \
             format version 99 is unknown to this version (0)\nhint: upgrade grainstore\n"
        );
    });
}

/// The small dataset with a byte of sample 2 flipped, and where that sample starts.
fn damaged() -> (Fixture, u64) {
    let fixture = Fixture::small();
    let dataset = grainstore_store::Dataset::open(&fixture.path).unwrap();
    let location = dataset.locate(2).unwrap();
    flip_byte(dataset.segments()[location.segment].path(), location.offset + 7);
    (fixture, location.offset)
}

fn for_each_command(make: impl Fn(&mut Fixture), check: impl Fn(&str)) {
    for command in [&["inspect"][..], &["ls"], &["get", "--ordinal", "0"], &["verify"], &["epoch"], &["bench"]] {
        let mut fixture = Fixture::small();
        make(&mut fixture);
        let run = fixture.run(command[0], &command[1..]);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{command:?}");
        check(&run.stderr);
    }
}

/// Raises the version of a manifest, and keeps its checksum right.
fn make_newer(manifest: &Path) {
    let text = fs::read_to_string(manifest).unwrap().replacen("\"version\": 0", "\"version\": 99", 1);
    let body = &text[..text.find(",\n  \"crc32\"").unwrap()];
    fs::write(manifest, format!("{body},\n  \"crc32\": \"{:08x}\"\n}}\n", crc32(body.as_bytes()))).unwrap();
}

/// CRC-32, a bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
