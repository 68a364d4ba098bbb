//! A dataset that grows: generations follow each other, and an epoch that was started with an older one resumes with it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::common::ordinals;
use crate::common::place::{Place, numbered};

/// A dataset `d` of 100 samples, and tars `b.tar` and `c.tar` of 50 others each.
fn place() -> Place {
    let place = Place::new();
    for (name, first, count) in [("a.tar", 0, 100), ("b.tar", 100, 50), ("c.tar", 150, 50)] {
        place.export("tar", name, numbered(200, 300).skip(first).take(count));
    }
    place.run_ok("convert a.tar d");
    place
}

#[test]
fn added_samples_follow_the_existing_ones_as_a_generation() {
    let place = place();
    let before = place.run_ok("ls d").stdout;
    assert_eq!(place.run_ok("append b.tar d").stdout, "d: 50 samples added, 1 segment, 15.0 kB\n");
    assert_eq!(place.json("append c.tar d")["samples"], 50);
    assert!(place.run_ok("ls d").stdout.starts_with(&before));
    let document: Value = serde_json::from_str(&place.run_ok("inspect d --json").stdout).unwrap();
    assert_eq!((&document["samples"], &document["segments"]), (&200.into(), &3.into()));
    assert!(place.run_ok("inspect d").stdout.contains("  generations  3"), "{document}");
    place.run_ok("verify d");
    for (key, payload) in numbered(200, 300) {
        place.run_ok(&format!("get d {key} -o out"));
        assert_eq!(place.read("out"), payload, "{key}");
        fs::remove_file(place.path("out")).unwrap();
    }
}

#[test]
fn a_state_of_the_older_generation_resumes_in_it() {
    let place = place();
    let epoch = "epoch d --print-ordinals --quiet --batch-size 10 --state state";
    let first = ordinals(&place.run_ok(&format!("{epoch} --limit-seconds 0")).stdout);
    place.run_ok("append b.tar d");
    let rest = ordinals(&place.run_ok(epoch).stdout);
    assert!(!first.is_empty() && first.len() < 100, "{} came before", first.len());
    let all: BTreeSet<u64> = first.iter().chain(&rest).copied().collect();
    assert_eq!((first.len() + rest.len(), all), (100, (0..100).collect()));
    assert_eq!(ordinals(&place.run_ok("epoch d --print-ordinals --quiet").stdout).len(), 150);
}

#[test]
fn whatever_fails_leaves_the_dataset_as_it_was() {
    let place = place();
    let before = place.files("d");
    place.fixture("tfrecord/features.tfrecord", "keyless");
    place.fixture("tar/webdataset.tar", "other.tar");
    place.put("short.tar", &place.read("b.tar")[..20_000]);
    for (source, message) in [
        ("a.tar", "duplicate key \"s000"),
        ("a.tar", "\nhint: --on-duplicate first skips samples whose key is taken\n"),
        ("b.tar --on-duplicate last", "samples are never replaced: the first one of a key can be kept, not the last"),
        ("keyless", "d: its samples have keys, the new samples have none"),
        ("other.tar", "d: "),
        ("short.tar", "\nhint: --skip-bad continues without what cannot be read, and lists it\n"),
        ("nothing.tar", "nothing.tar: there is no such file or folder"),
    ] {
        let refused = place.error_of(&format!("append {source} d"));
        assert!(refused.contains(message), "{source}: {refused}");
        assert!(place.files("d") == before, "{source}");
    }
    assert!(place.error_of("append b.tar none").contains("none: nothing can be added to it: it does not exist"));
    assert_eq!(place.names(), ["a.tar", "b.tar", "c.tar", "d", "keyless", "other.tar", "short.tar"]);
}

#[test]
fn new_classes_are_numbered_behind_the_old_ones() {
    let place = Place::new();
    for name in ["one/bee/1.jpg", "one/cat/1.jpg", "two/ant/2.jpg", "two/cat/2.jpg"] {
        place.put(name, name);
    }
    place.run_ok("convert one d");
    place.run_ok("append two d");
    assert_eq!(place.rows("d"), ["ant/2.jpg\t13\t2", "bee/1.jpg\t13\t0", "cat/1.jpg\t13\t1", "cat/2.jpg\t13\t1"]);
}

#[test]
fn a_day_without_data_is_nothing_to_add() {
    let place = place();
    let before = place.files("d");
    fs::create_dir(place.path("day")).unwrap();
    for source in ["day", "day/*.tar"] {
        let run = place.run_ok(&format!("append {source} d"));
        assert_eq!(run.stdout, "d: nothing to add\n", "{source}");
        assert!(run.stderr.starts_with(source), "{}", run.stderr);
    }
    let document = place.json("append day d");
    assert_eq!((&document["samples"], &document["segments"]), (&0.into(), &0.into()));
    let again = place.run_ok("append a.tar d --on-duplicate first");
    assert_eq!(again.stdout, "d: nothing to add\n");
    assert_eq!(place.files("d"), before);
    assert!(place.error_of("append nosuch d").contains("no such file"));
    assert!(place.error_of("append day nosuch").contains("nosuch"));
}

#[test]
fn a_difference_of_schemas_is_shown_whole() {
    let place = place();
    place.put("list.csv", "key,path,offset,length,x,y\na,a.tar,0,9,1,0.5\n");
    let error = place.error_of("append list.csv d --from list");
    for part in ["attribute \"x\" (int64)", "attribute \"y\" (float64)"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn contents_that_are_stored_already_are_not_added() {
    let place = Place::new();
    for (name, content) in
        [("old/cat/1", "x"), ("new/cat/2", "x"), ("new/dog/3", "x"), ("new/dog/4", "y"), ("new/dog/5", "y")]
    {
        place.put(name, content);
    }
    place.run_ok("convert old d");
    let document = place.json("append new d --dedupe --order source");
    let counts = ["samples", "content_duplicates", "content_duplicates_with_other_attributes"];
    assert_eq!(counts.map(|name| document[name].as_u64().unwrap()), [1, 3, 1]);
    assert_eq!(place.rows("d"), ["cat/1\t1\t0", "dog/4\t1\t1"]);
    let again = place.run_ok("append new d --dedupe");
    assert_eq!(again.stdout, "d: nothing to add\n");
    assert!(
        again.stderr.contains("new: there is nothing to pack: every sample has content that is stored already"),
        "{again:?}"
    );
}

#[test]
fn whole_numbers_of_a_table_get_the_type_that_the_dataset_has() {
    let place = Place::new();
    let days = [("a", 1, "1.5"), ("b", 2, "-1152921504606846976"), ("c", 3, "9007199254740993"), ("e", 4, "text")];
    for (day, number, score) in days {
        place.put(&format!("{day}/{number}.bin"), day);
        place.put(&format!("{day}.csv"), format!("key,score\n{number}.bin,{score}\n"));
    }
    place.run_ok("convert a d --attributes a.csv");
    place.run_ok("append b d --attributes b.csv");
    assert_eq!(place.run_ok("ls d --columns key,score").stdout, "1.bin\t1.5\n2.bin\t-1152921504606847000\n");
    let error = place.error_of("append c d --attributes c.csv");
    assert!(
        error.contains("3.bin") && error.contains("its score is 9007199254740993, which float64 cannot hold"),
        "{error}"
    );
    assert!(place.error_of("append e d --attributes e.csv").contains("score"));
}
