//! Whole runs of `grainstore demo`: it measures, and it leaves a disk as it found it.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Run, finish, grainstore};

fn demo(folder: &Path, flags: &[&str]) -> Run {
    let mut command = grainstore();
    command.arg("demo").args(flags).arg("--dir").arg(folder);
    finish(command)
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_small_demo_ends_with_a_table_and_takes_everything_away() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path(), &["--samples", "200", "--rounds", "2"]);
    assert_eq!(run.status, 0, "{run:?}");
    for (name, samples) in [("small", 200), ("large", 20)] {
        let table = &run.stdout[run.stdout.find(&format!("{name}: {samples} of ")).unwrap()..];
        let table = &table[..table.find("\n\n").unwrap()];
        let rows = [
            "pack the files",
            "verify the dataset",
            "epoch 1, ",
            "epoch 2, another order",
            "the same files, 16 threads",
            &format!("{samples} random samples, one by one"),
        ];
        for row in rows {
            assert_eq!(table.matches(row).count(), 1, "{row}: {table}");
        }
        assert_eq!(table.matches("the same files, one by one").count(), 2, "{table}");
        assert!(run.stdout.contains(&format!("\n{name}: an epoch is ")), "{}", run.stdout);
    }
    assert!(run.stdout.contains("MB/s") && run.stdout.contains("\ncold: "), "{}", run.stdout);
    assert_eq!(count(folder.path()), 0);
}

#[test]
fn json_has_every_rate_and_a_kept_demo_stays_and_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path(), &["--samples", "30", "--rounds", "2", "--keep", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    crate::json_page::assert_listed("demo", &document);
    let folders = document["folders"].as_array().unwrap();
    assert_eq!(folders.len(), 2);
    for (report, name, samples) in [(&folders[0], "small", 30), (&folders[1], "large", 3)] {
        assert_eq!(
            (&report["name"], &report["samples"], &report["rounds"]),
            (&name.into(), &samples.into(), &2.into())
        );
        for step in ["convert", "verify", "epoch", "files_one_by_one", "files_16_threads"] {
            assert_eq!(report[step]["samples"], samples, "{step}");
            assert_eq!(report[step]["payload_bytes"], report["payload_bytes"], "{step}");
        }
        let epochs = report["epochs"].as_array().unwrap();
        assert_eq!(epochs.len(), 2);
        let single = [&report["random_samples"], &report["random_files"]];
        assert_eq!(single[0]["payload_bytes"], single[1]["payload_bytes"]);
        let steps = ["convert", "verify", "epoch", "files_one_by_one", "files_16_threads"].map(|step| &report[step]);
        for rate in steps.into_iter().chain(single).chain(epochs) {
            for key in ["elapsed_s", "samples_per_s", "mb_per_s"] {
                assert!(rate[key].as_f64().unwrap() > 0.0, "{rate} {key}");
                assert!(document["units"][key].is_string(), "{key}");
            }
        }
        for key in ["times_one_by_one", "times_16_threads", "times_random"] {
            assert!(report[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
    assert!(document["file_system"]["kind"].is_string() && document["cold"].is_string());

    let kept = folder.path().join("grainstore-demo");
    assert_eq!(document["kept"], kept.to_str().unwrap());
    assert_eq!((count(&kept.join("small")), count(&kept.join("large"))), (30, 3));
    let mut verify = grainstore();
    verify.arg("verify").arg(kept.join("small.grain"));
    assert_eq!(finish(verify).status, 0);
}

#[test]
fn a_folder_of_ones_own_is_packed_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine");
    fs::create_dir(&mine).unwrap();
    for number in 0..50 {
        fs::write(mine.join(format!("{number:02}")), format!("contents of {number}")).unwrap();
    }
    let flags = [mine.to_str().unwrap(), "--samples", "20", "--rounds", "1", "--json"];
    let run = demo(folder.path(), &flags);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["folders"].as_array().unwrap().len(), 1);
    let report = &document["folders"][0];
    assert_eq!((&report["name"], &report["samples"]), (&"files".into(), &20.into()));
    assert_eq!(report["source"], mine.to_str().unwrap());
    assert_eq!((count(folder.path()), count(&mine)), (1, 50));
    assert_eq!(fs::read(mine.join("07")).unwrap(), b"contents of 7");
}

#[test]
fn working_inside_the_folder_that_is_packed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("1"), "x").unwrap();
    let run = demo(folder.path(), &[folder.path().to_str().unwrap()]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("hint: --dir names a folder outside DIR"), "{run:?}");
    assert_eq!(count(folder.path()), 1);
}

#[test]
fn too_little_space_is_reported_with_what_is_needed_and_what_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path(), &["--samples", "1000000000000"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("the demo needs ") && run.stderr.contains(" are free\nhint: --samples"), "{run:?}");
    let run = demo(&folder.path().join("nothing"), &[]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("cannot make ") && run.stderr.contains("hint: --dir"), "{run:?}");
    assert_eq!(count(folder.path()), 0);
}

/// Interrupts a demo as soon as `begun` is true of its folder.
fn interrupted_when(flags: &[&str], begun: impl Fn(&Path) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = grainstore();
    command.arg("demo").args(flags).arg("--dir").arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while !begun(&folder.path().join("grainstore-demo")) {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(output.stdout.is_empty());
    assert_eq!(count(folder.path()), 0);
}

#[test]
fn an_interrupt_while_files_are_made_leaves_nothing() {
    interrupted_when(&["--samples", "20000"], |work| count(&work.join("small/class_0000")) > 2);
}

#[test]
fn an_interrupt_while_epochs_are_read_leaves_nothing() {
    let flags = ["--samples", "100", "--rounds", "100000"];
    interrupted_when(&flags, |work| work.join("small.grain/manifest.json").exists());
}
