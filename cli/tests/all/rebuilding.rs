//! A dataset whose merged index is lost: the error names the command that rebuilds it, and that command does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use grainstore_store::Dataset;

use crate::common::{Fixture, finish, flip_byte, grainstore};

fn index_of(fixture: &Fixture) -> std::path::PathBuf {
    let mut paths = fs::read_dir(&fixture.path).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "idx")).unwrap()
}

#[test]
fn a_lost_index_is_made_again() {
    let fixture = Fixture::small();
    let index = index_of(&fixture);
    let before = fs::read(&index).unwrap();
    fs::remove_file(&index).unwrap();
    let refused = fixture.run("ls", [""; 0]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("hint: `grainstore rebuild-index`"), "{}", refused.stderr);
    let run = fixture.run("rebuild-index", [""; 0]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "[PATH]/data.grain: index of 5 samples in 2 segments\n"));
    assert_eq!(fs::read(&index).unwrap(), before);
}

#[test]
fn without_a_manifest_the_segments_can_be_packed_anew() {
    let fixture = Fixture::small();
    fs::remove_file(fixture.file("manifest.json")).unwrap();
    let run = fixture.run("rebuild-index", [""; 0]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("data.grain: it has no manifest.json"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: where its segments are still there, `grainstore convert`"), "{}", run.stderr);
    // What the hint promises.
    let packed = fixture.path.with_file_name("packed.grain");
    let mut command = grainstore();
    command.arg("convert").args(["00000.seg", "00001.seg"].map(|name| fixture.file(name))).arg(&packed);
    let run = finish(command);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(Dataset::open(&packed).unwrap().sample_count(), 5);
}

#[test]
fn a_damaged_segment_stops_the_rebuilding_by_name() {
    let fixture = Fixture::small();
    let segment = fixture.file("00001.seg");
    let len = fs::metadata(&segment).unwrap().len();
    flip_byte(&segment, len - 10);
    let run = fixture.run("rebuild-index", [""; 0]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("00001.seg: damaged footer"), "{}", run.stderr);
}
