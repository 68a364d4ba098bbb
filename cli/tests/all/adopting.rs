//! Files that stay where they are: a dataset of them does what a packed one does, as long as they stay as they are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::time::SystemTime;

use crate::common::place::{Place, gzip, numbered};

/// A tar and a TFRecord file of 50 samples.
fn shards() -> Place {
    let place = Place::new();
    for format in ["tar", "tfrecord"] {
        place.export(format, &format!("x.{format}"), numbered(50, 700));
    }
    place
}

const EPOCH: &str = "epoch --print-ordinals --quiet";

#[test]
fn an_adopted_file_answers_as_the_packed_one() {
    let place = shards();
    for file in ["x.tar", "x.tfrecord"] {
        let (adopted, packed) = (format!("{file}.a"), format!("{file}.p"));
        let run = place.run_ok(&format!("adopt {file} {adopted}"));
        assert_eq!(run.stdout, format!("{adopted}: 50 samples in 1 file that stay where they are, 35.0 kB\n"));
        place.run_ok(&format!("convert {file} {packed} --order source"));
        // Each dataset has other random orders: there the samples are compared, elsewhere their order too.
        for (question, is_ordered) in [("ls", true), ("plan --order sequential", true), ("plan", false), (EPOCH, false)]
        {
            let (command, flags) = question.split_once(' ').unwrap_or((question, ""));
            let ask = |dataset: &str| {
                let text = place.run_ok(&format!("{command} {dataset} {flags}")).stdout.replace(dataset, "D");
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                if !is_ordered {
                    lines.sort();
                }
                lines
            };
            assert_eq!(ask(&adopted), ask(&packed), "{file}: {question}");
        }
        place.run_ok(&format!("verify {adopted}"));
        for (key, payload) in numbered(50, 700) {
            place.run_ok(&format!("get {adopted} {key} -o out"));
            assert_eq!(place.read("out"), payload, "{file}: {key}");
            fs::remove_file(place.path("out")).unwrap();
        }
        assert!(place.run_ok(&format!("inspect {adopted}")).stdout.contains("1, 1 of them external"));
    }
}

#[test]
fn files_and_dataset_move_together() {
    let place = Place::new();
    fs::create_dir_all(place.path("here/below")).unwrap();
    place.export("tar", "here/below/x.tar", numbered(5, 10));
    place.run_ok("adopt here/below/x.tar here/d");
    fs::rename(place.path("here"), place.path("there")).unwrap();
    place.run_ok("verify there/d");
    assert_eq!(place.rows("there/d").len(), 5);
}

#[test]
fn a_touched_file_is_reported_once_and_a_truncated_one_refused_by_name() {
    let place = shards();
    place.run_ok("adopt x.tar d");
    let file = File::options().write(true).open(place.path("x.tar")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for line in ["verify d", "epoch d", "get d s00001 -o out"] {
        let count = place.run_ok(line).stderr.matches("x.tar: modified since the dataset was made").count();
        assert_eq!(count, 1, "{line}");
    }
    file.set_len(3000).unwrap();
    for line in ["epoch d", "get d s00001"] {
        let refused = place.error_of(line);
        assert!(refused.contains("d/../x.tar: it has 3000 bytes, the manifest has "), "{line}: {refused}");
    }
    assert_eq!(place.run("verify d").status, 1);
}

#[test]
fn a_file_elsewhere_needs_leave_from_a_flag_or_the_environment() {
    let place = shards();
    fs::create_dir(place.path("below")).unwrap();
    let refused = place.error_of("adopt x.tar below/d");
    assert!(refused.starts_with("grainstore: x.tar: it is outside "), "{refused}");
    assert!(refused.ends_with(
        "\nhint: put the dataset beside its files, or let it refer to files elsewhere with --allow-external\n"
    ));
    assert!(!place.path("below/d").exists() && !place.path("below/d.partial").exists());
    place.run_ok("adopt x.tar below/d --allow-external");
    assert!(place.error_of("get below/d s00001").contains("hint: `--allow-external`"));
    place.run_ok("verify below/d --allow-external");
    let mut command = place.command("adopt x.tfrecord below/e");
    assert!(command.env("GRAINSTORE_ALLOW_EXTERNAL", "1").output().unwrap().status.success());
}

#[test]
fn what_does_not_lie_in_one_piece_is_refused_with_the_way_out() {
    let place = shards();
    place.put("x.tar.gz", gzip(&place.read("x.tar")));
    place.fixture("parquet/all.parquet", "x.parquet");
    place.put("photos/1.jpg", "x");
    for (source, message) in [
        ("x.tar.gz", "is gzip-compressed; decompressed, it can be adopted\nhint: `grainstore convert` packs it"),
        ("x.parquet", "Parquet pages are encoded\nhint: `grainstore convert` packs it"),
        ("photos", "every file would be a segment of its own\nhint: `grainstore convert` packs it"),
    ] {
        let refused = place.error_of(&format!("adopt {source} d"));
        assert!(refused.contains(message), "{source}: {refused}");
    }
    assert_eq!(place.names(), ["photos", "x.parquet", "x.tar", "x.tar.gz", "x.tfrecord"]);
}

#[test]
fn a_key_in_two_files_is_refused_without_a_flag_that_adopt_does_not_have() {
    let place = shards();
    fs::copy(place.path("x.tar"), place.path("y.tar")).unwrap();
    let refused = place.error_of("adopt x.tar y.tar d");
    assert!(refused.contains("duplicate key \"s000"), "{refused}");
    assert!(
        refused.ends_with("\nhint: `convert` packs such data: --on-duplicate decides which sample of a key is kept\n")
    );
    assert!(!place.path("d").exists() && !place.path("d.partial").exists());
}
