//! Taking one sample out: `get`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::common::{Fixture, Run, WILD_KEY, small_samples};

#[test]
fn a_sample_is_found_by_key_and_by_ordinal() {
    let fixture = Fixture::small();
    let payload = String::from_utf8(small_samples()[1].payload.clone()).unwrap();
    let (image, caption) = payload.split_at(1024);
    for rest in [&["cat/1.jpg"][..], &["--ordinal", "1"]] {
        for (field, expected) in [("image", image), ("caption", caption)] {
            let run = fixture.run_unfiltered("get", rest.iter().copied().chain(["--field", field]));
            assert_eq!((run.status, run.stderr.as_str()), (0, ""));
            assert_eq!(run.stdout, expected);
        }
    }
}

#[test]
fn a_key_is_bytes_and_need_not_be_text() {
    let key = OsStr::from_bytes(WILD_KEY);
    let run = Fixture::small().run_unfiltered("get", [key, OsStr::new("--field"), OsStr::new("image")]);
    assert_eq!((run.status, run.stdout.len()), (0, 4096));
}

#[test]
fn a_key_that_begins_with_a_dash_follows_two_dashes() {
    let samples = [grainstore_writer::Sample::new("-o", b"dashed".to_vec())];
    let run = Fixture::write(grainstore_writer::WriterOptions::default(), samples).run_unfiltered("get", ["--", "-o"]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "dashed"));
}

#[test]
fn one_field_is_taken_out_of_the_payload() {
    let run = Fixture::small().run_unfiltered("get", ["cat/2.jpg", "--field", "caption"]);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "caption 2", ""));
}

#[test]
fn an_absent_key_is_the_answer_no_and_leaves_stdout_empty() {
    let run = Fixture::small().run("get", ["cat/\n9.jpg"]);
    assert_fails(&run, 1, "grainstore: [PATH]/data.grain: no such key: \"cat/\\n9.jpg\"\n");
}

#[test]
fn a_field_that_the_sample_lacks_is_the_answer_no() {
    let run = Fixture::small().run("get", ["--ordinal", "4", "--field", "caption"]);
    assert_fails(&run, 1, "grainstore: sample 4 has no \"caption\"\n");
}

#[test]
fn an_unknown_field_is_answered_with_the_known_ones() {
    let run = Fixture::small().run("get", ["--ordinal", "0", "--field", "text"]);
    assert_fails(&run, 2, "grainstore: no field \"text\" (there are: image, caption)\n");
}

#[test]
fn an_ordinal_out_of_range_is_answered_with_the_range() {
    let run = Fixture::small().run("get", ["--ordinal", "5"]);
    let expected = "grainstore: no sample 5: the dataset has 5, numbered from 0\nhint: ordinals go from 0 to 4\n";
    assert_fails(&run, 2, expected);
}

#[test]
fn a_dataset_without_keys_is_asked_by_ordinal() {
    let run = Fixture::keyless(3).run("get", ["a"]);
    let expected = "grainstore: [PATH]/data.grain: its samples have no keys\n\
                    hint: --ordinal takes a sample by its number\n";
    assert_fails(&run, 2, expected);
}

#[test]
fn a_key_and_an_ordinal_together_are_refused() {
    let run = Fixture::small().run("get", ["cat/1.jpg", "--ordinal", "1"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}

#[test]
fn output_replaces_a_file_and_leaves_no_other() {
    let fixture = Fixture::small();
    let directory = fixture.folder.path().join("out");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("caption");
    fs::write(&file, "what was there before, and longer").unwrap();
    let run = fixture.run("get", ["--ordinal", "3", "--field", "caption", "-o", file.to_str().unwrap()]);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), "caption 3");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn output_through_a_link_keeps_the_link() {
    let fixture = Fixture::small();
    let (file, link) = (fixture.folder.path().join("file"), fixture.folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let run = fixture.run("get", ["--ordinal", "3", "--field", "caption", "--output", link.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "caption 3");
}

#[test]
fn output_into_a_device_does_not_replace_the_device() {
    let run = Fixture::small().run("get", ["--ordinal", "3", "--field", "image", "-o", "/dev/null"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn output_into_a_missing_directory_is_refused() {
    let fixture = Fixture::small();
    let file = fixture.folder.path().join("missing/file");
    let run = fixture.run("get", ["--ordinal", "0", "--field", "image", "-o", file.to_str().unwrap()]);
    let expected = "grainstore: [PATH]/missing/file: cannot be written: No such file or directory (os error 2)\n";
    assert_fails(&run, 2, expected);
}

#[test]
fn output_onto_a_directory_is_refused_and_leaves_nothing() {
    let fixture = Fixture::small();
    let run = fixture.run("get", ["--ordinal", "0", "--field", "image", "-o", fixture.folder.path().to_str().unwrap()]);
    assert_fails(&run, 2, "grainstore: [PATH]: cannot be written: is a directory\n");
    assert_eq!(fs::read_dir(fixture.folder.path()).unwrap().count(), 1);
}

fn assert_fails(run: &Run, status: i32, stderr: &str) {
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (status, "", stderr));
}

#[test]
fn fields_are_never_written_joined() {
    let run = Fixture::small().run("get", ["cat/1.jpg"]);
    let expected = "grainstore: [PATH]/data.grain: its samples have 2 fields: image, caption\n\
                    hint: --field NAME writes one of them\n";
    assert_fails(&run, 2, expected);
}

#[test]
fn the_only_field_needs_no_name() {
    let run = Fixture::labelled(3).run_unfiltered("get", ["key2"]);
    assert_eq!((run.status, run.stdout), (0, "x".repeat(82)));
}
