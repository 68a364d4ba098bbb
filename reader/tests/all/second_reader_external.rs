//! The Python reader reads external files as the reader does: it returns the same samples, refuses the same paths
//! without permission, and reports a file that was touched in the same way.
//!
//! spec.md: EXT-1 to EXT-3.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grainstore_store::{Dataset, VerifyOptions, verify};
use tempfile::TempDir;

use crate::adopted::adopt;
use crate::second::{Answer, Packed, Python, Question, Recipe, listing};

fn adopted(packed: &Packed, counts: &[usize], name_of: impl Fn(&Path, usize) -> String) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let native = Dataset::open(packed.path()).unwrap();
    let path = adopt(folder.path(), &packed.samples, &native, counts, |number| name_of(folder.path(), number));
    (folder, path)
}

fn beside(_: &Path, number: usize) -> String {
    format!("../{number}.bin")
}

/// The manifest with some text replaced, and its checksum updated.
fn change_manifest(dataset: &Path, from: &str, to: &str) {
    let path = dataset.join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    let body = text[..text.len() - 26].replacen(from, to, 1);
    let crc = crc32fast::hash(body.as_bytes());
    std::fs::write(path, format!("{body},\n  \"crc32\": \"{crc:08x}\"\n}}\n")).unwrap();
}

fn refused(answer: &Answer, what: &str) {
    assert_eq!((answer.status, answer.stdout.len()), (2, 0), "{}", answer.stderr);
    assert!(answer.stderr.contains(what) && answer.stderr.lines().count() == 1, "{}", answer.stderr);
}

/// EXT-1, EXT-2, FIL-3
#[test]
fn the_second_reader_lists_gets_and_verifies_them() {
    let mut python = Python::start();
    let rich = Recipe::rich("rich", 90);
    for recipe in [Recipe::plain("edges", 4096, vec![0, 1, 4095, 4096, 4097, 40_960, 0, 32_768]), rich] {
        let packed = recipe.pack();
        let n = packed.samples.len();
        for counts in [vec![n], vec![n / 2, 0, n - n / 2]] {
            let (_folder, path) = adopted(&packed, &counts, beside);
            let listed = python.ask(&Question::new("ls", &path)).success();
            assert!(listed == listing(&packed, &packed.samples), "{} in {counts:?}", recipe.name);
            let last = python.ask(&Question::new("get", &path).option("--ordinal", n - 1)).success();
            assert!(last == packed.samples[n - 1].payload);
            assert_eq!(python.ask(&Question::new("verify", &path)).lines(), [""; 0]);
        }
    }
}

/// EXT-1, EXT-4
#[test]
fn both_readers_refuse_the_same_paths_without_permission_and_some_with_it() {
    let packed = Recipe::plain("small", 4096, vec![10; 6]).pack();
    let mut python = Python::start();
    let (folder, path) = adopted(&packed, &[6], |folder, _| folder.join("0.bin").to_str().unwrap().to_owned());
    let name = folder.path().join("0.bin").to_str().unwrap().to_owned();
    let depth = path.canonicalize().unwrap().components().count() - 1;
    let climbing = "../".repeat(depth) + name.trim_start_matches('/');
    let mut before = name;
    for now in [before.clone(), climbing] {
        change_manifest(&path, &before, &now);
        before = now;
        for command in ["ls", "verify", "plan"] {
            refused(&python.ask(&Question::new(command, &path)), "outside its parent directory (EXT-4).");
            let allowed = python.ask(&Question::new(command, &path).word("--allow-external"));
            assert_eq!((allowed.status, allowed.stderr.as_str()), (0, ""));
        }
        assert!(Dataset::open(&path).unwrap_err().to_string().ends_with("outside the dataset's parent directory"));
    }
    for now in ["", ".", "..", "/", "//a", "a//b", "../a/../b", "/../a", "../..", "/a/", "a\\u0000b", "..//a"] {
        change_manifest(&path, &format!("\"path\": \"{before}\""), &format!("\"path\": \"{now}\""));
        before = now.to_owned();
        let question = Question::new("ls", &path).word("--allow-external");
        refused(&python.ask(&question), "is not a path that it may name");
        assert!(Dataset::open(&path).unwrap_err().to_string().contains("external path"), "{now}");
    }
}

/// EXT-4
#[test]
fn both_readers_follow_a_link_only_as_far_as_they_may() {
    let packed = Recipe::plain("linked", 4096, vec![10; 6]).pack();
    let mut python = Python::start();
    let (folder, path) = adopted(&packed, &[6], beside);
    let elsewhere = tempfile::tempdir().unwrap();
    let (data, moved) = (folder.path().join("0.bin"), elsewhere.path().join("0.bin"));
    std::fs::rename(&data, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &data).unwrap();
    for command in ["ls", "verify"] {
        refused(&python.ask(&Question::new(command, &path)), "outside its parent directory (EXT-4).");
        let allowed = python.ask(&Question::new(command, &path).word("--allow-external"));
        assert_eq!((allowed.status, allowed.stderr.as_str()), (0, ""));
    }
    assert!(Dataset::open(&path).unwrap().segment_file(0).is_err());
    assert!(verify(&path, &VerifyOptions::default(), &|_| (), &|_| ()).is_err());
}

/// EXT-3
#[test]
fn both_readers_read_a_file_that_was_touched_and_report_it_once() {
    let packed = Recipe::plain("touched", 4096, vec![10; 6]).pack();
    let mut python = Python::start();
    let (folder, path) = adopted(&packed, &[3, 3], beside);
    for number in 0..2 {
        let data = std::fs::File::options().write(true).open(folder.path().join(format!("{number}.bin"))).unwrap();
        data.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let answer = python.ask(&Question::new("ls", &path));
    assert_eq!((answer.status, answer.stdout == listing(&packed, &packed.samples)), (0, true));
    assert!(answer.stderr.ends_with("was modified since the dataset was made (EXT-3).\n"), "{}", answer.stderr);
    assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    assert_eq!(python.ask(&Question::new("verify", &path)).status, 0);
    // A manifest without a time differs from one with a time long ago.
    change_manifest(&path, "\"modified_ns\": ", "\"modified\": ");
    refused(&python.ask(&Question::new("ls", &path)), "not the members of its kind");
}
