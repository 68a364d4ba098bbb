//! Samples are deleted from a dataset by expression, keys and ordinals; what was saved before is refused, not mixed up.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::common::place::{Place, numbered};

/// A dataset `d` of 100 samples in segments of 20, in the order of their keys.
fn place() -> Place {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(100, 300));
    place.run_ok("convert a.tar d --order source --segment-size 10K");
    place
}

fn keys() -> Vec<String> {
    numbered(100, 300).map(|(key, _)| key).collect()
}

#[test]
fn samples_are_deleted_by_expression_keys_and_ordinals() {
    let place = place();
    let count = place.run_ok("ls d").stdout.lines().count();
    assert_eq!(count, 100);
    let dry = place.json("delete d --subset ordinal<5 --dry-run");
    assert_eq!((&dry["deleted"], &dry["deleted_bytes"], &dry["samples"]), (&5.into(), &1500.into(), &95.into()));
    assert_eq!(place.run_ok("ls d").stdout.lines().count(), 100);
    place.put("ordinals", b"98\n3\n3\n");
    let out = place.run_ok("delete d --ordinals ordinals");
    assert_eq!(out.stdout, "d: 2 samples deleted (600 B), 98 left\n");
    assert!(out.stderr.contains("of old files stay until the next `append` or `delete`"), "{}", out.stderr);
    place.put("keys", format!("{}\n{}", keys()[0], keys()[50]).as_bytes());
    let document = place.json("delete d --keys keys --free");
    assert_eq!((&document["deleted"], &document["samples"], &document["freed"]), (&2.into(), &96.into(), &true.into()));
    place.run_ok("verify d");
    for (number, (key, payload)) in numbered(100, 300).enumerate() {
        let got = place.run(&format!("get d {key} -o out{number}"));
        let is_gone = [0, 3, 50, 98].contains(&number);
        assert_eq!(got.status, i32::from(is_gone), "{key}");
        assert!(is_gone || place.read(&format!("out{number}")) == payload, "{key}");
    }
    // As an editor on Windows writes it; where some lines end otherwise, the carriage return is a part of the key.
    place.put("windows", format!("{}\r\n\r\n{}\r\n", keys()[7], keys()[8]).as_bytes());
    assert_eq!(place.json("delete d --keys windows --dry-run")["deleted"], 2);
    place.put("mixed", format!("{}\r\n{}\n", keys()[7], keys()[8]).as_bytes());
    let error = place.error_of("delete d --keys mixed");
    assert!(error.contains("it has no sample of 1 of the 2 keys"), "{error}");
    // Nothing to delete is no failure, and changes nothing.
    let before = place.files("d");
    assert_eq!(place.run_ok("delete d --subset ordinal>=1000").stdout, "d: 0 samples deleted (0 B), 96 left\n");
    assert_eq!(place.files("d"), before);
}

#[test]
fn a_state_of_before_is_refused_and_one_of_an_untouched_generation_resumes() {
    let place = place();
    let epoch = "epoch d --print-ordinals --quiet --batch-size 10 --state state";
    place.run_ok(&format!("{epoch} --limit-seconds 0"));
    place.export("tar", "b.tar", numbered(120, 300).skip(100));
    place.run_ok("append b.tar d");
    place.put("late", b"110\n");
    place.run_ok("delete d --ordinals late");
    let resumed = place.run_ok(epoch).stdout;
    assert!(!resumed.is_empty());
    place.run_ok(&format!("{} --limit-seconds 0", epoch.replace("state state", "state other")));
    place.put("early", b"0\n");
    place.run_ok("delete d --ordinals early");
    let error = place.error_of(&epoch.replace("state state", "state other"));
    assert!(error.contains("other"), "{error}");
    assert!(error.contains("dataset"), "{error}");
}

#[test]
fn what_cannot_be_deleted_is_refused_with_what_helps() {
    let place = place();
    let before = place.files("d");
    place.put("keys", b"nobody\nnor/this\n");
    place.put("ordinals", b"100\n");
    place.put("words", b"one\n");
    for (line, expected) in [
        ("delete d", "--subset <EXPR>|--keys <FILE>|--ordinals <FILE>|--free"),
        ("delete d --dry-run", "--subset <EXPR>|--keys <FILE>|--ordinals <FILE>|--free"),
        ("delete d --keys keys", "it has no sample of 2 of the 2 keys, the first of them is \"nobody\""),
        ("delete d --ordinals ordinals", "it has no sample 100, its ordinals go from 0 to 99"),
        ("delete d --ordinals words", "words: \"one\" is not an ordinal"),
        ("delete d --ordinals none", "none"),
        ("delete d --subset ordinal>=0", "none of its 100 samples would be left"),
        ("delete d --subset weight>3", "weight"),
        ("delete d/00000.seg --subset ordinal==0", "only a dataset's directory can change"),
        ("delete nothing --subset ordinal==0", "nothing"),
    ] {
        let error = place.error_of(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert_eq!(place.files("d"), before);
    place.run_ok("adopt a.tar e");
    let error = place.error_of("delete e --subset ordinal==0");
    assert!(error.contains("\"../a.tar\", which was adopted, is a file that grainstore never writes to"), "{error}");
    assert!(error.contains("`grainstore convert` packs it"), "{error}");
}
