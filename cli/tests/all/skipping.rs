//! Unreadable samples and duplicate keys: refused with name and location, or skipped on request and listed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::json;

use crate::common::place::{Place, numbered, records};

/// Checks the refusal, the skipping as text and as JSON, and the remaining samples.
fn check_skipped(place: &Place, source: &str, samples: u64, skipped: &[(&str, &str)]) {
    let (path, why) = skipped[0];
    let refused = place.error_of(&format!("convert {source} d"));
    let expected =
        format!("grainstore: {path}: {why}\nhint: --skip-bad continues without what cannot be read, and lists it\n");
    assert_eq!(refused, expected);
    assert!(!place.path("d").exists() && !place.path("d.partial").exists());
    let run = place.run_ok(&format!("convert {source} d --skip-bad"));
    assert!(run.stdout.ends_with(&format!(", {} skipped\n", skipped.len())), "{run:?}");
    for (path, why) in skipped {
        assert!(run.stderr.contains(&format!("grainstore: skipped {path}: {why}\n")), "{run:?}");
    }
    let document = place.json(&format!("convert {source} e --skip-bad --jobs 1"));
    let listed: Vec<_> = skipped.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
    assert_eq!((&document["samples"], &document["skipped"]), (&samples.into(), &skipped.len().into()));
    assert_eq!(document["skipped_samples"], json!(listed));
    assert!(place.files("d") == place.files("e"));
}

#[test]
fn a_truncated_tar_is_reported_with_the_byte() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "whole");
    place.put("a.tar", &place.read("whole")[..3000]);
    check_skipped(
        &place,
        "a.tar",
        1,
        &[("a.tar", "at byte 3072: the archive ends at byte 3000, inside the member before")],
    );
}

#[test]
fn corrupt_and_truncated_records_are_reported_by_their_numbers() {
    let place = Place::new();
    place.fixture("tfrecord/features.tfrecord", "whole");
    let mut bytes = place.read("whole");
    bytes[200] = b'X';
    place.put("f", &bytes[..700]);
    check_skipped(
        &place,
        "f",
        2,
        &[
            ("f", "record 1 at byte 158: the masked CRC-32C of the data is e1986b39, the record has 41fd9182"),
            (
                "f",
                "at byte 532: its length is 184 and 4 bytes more, 156 bytes are left: truncated, or not a TFRecord file",
            ),
        ],
    );
}

#[test]
fn where_nothing_can_be_read_there_is_no_dataset() {
    let place = Place::new();
    place.put("photos/1", "x");
    std::fs::remove_file(place.path("photos/1")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("photos/1")).unwrap();
    let message = place.error_of("convert photos d --skip-bad");
    assert!(message.contains("photos"), "{message}");
    assert_eq!(place.names(), ["photos"]);
}

#[test]
fn keys_that_are_there_twice_are_refused_or_the_first_or_the_last_is_kept() {
    let place = Place::new();
    for (name, content) in [("a.tar", "first"), ("b.tar", "last!")] {
        place.export("tar", name, numbered(3, 1).map(|(key, _)| (key, content.into())));
    }
    let refused = place.error_of("convert a.tar b.tar d --order source");
    let hint = "\nhint: --on-duplicate first keeps the first sample of a key, last the last one, whatever the others hold; where \
                a column or feature is the key, --exclude NAME packs all samples without keys\n";
    assert!(refused.starts_with("grainstore: duplicate key \"s0000") && refused.ends_with(hint), "{refused}");
    for kept in ["first", "last"] {
        let run = place.run_ok(&format!("convert a.tar b.tar {kept} --on-duplicate {kept}"));
        assert!(run.stderr.contains("grainstore: skipped because another sample has the same key: 3\n"), "{run:?}");
        assert_eq!(place.rows(kept), ["s00000\t5", "s00001\t5", "s00002\t5"]);
        assert_eq!(place.run_ok(&format!("get {kept} s00001")).stdout.trim_end_matches('!'), kept);
    }
    assert_eq!(place.json("convert a.tar b.tar d --on-duplicate first")["duplicates"], 3);
    let stream = place.run_with_stdin("convert --from stream - s --on-duplicate first", &records(numbered(3, 1)));
    assert!(stream.stderr.contains("-: a stream is read once, and finding duplicate keys"), "{stream:?}");
}

#[test]
fn contents_that_are_there_twice_are_packed_once() {
    let place = Place::new();
    for (name, content) in [("cat/1", "x"), ("cat/2", "x"), ("cat/3", "y"), ("dog/4", "x"), ("dog/5", "z")] {
        place.put(&format!("photos/{name}"), content);
    }
    let run = place.run_ok("convert photos d --dedupe");
    assert!(run.stderr.contains("grainstore: skipped as duplicates by content: 2\n"), "{run:?}");
    let of_these = "grainstore: of these with other attributes than the sample that stays: 1\n";
    assert!(run.stderr.contains(of_these), "{run:?}");
    let mut rows = place.rows("d");
    rows.sort();
    assert_eq!(rows, ["cat/1\t1\t0", "cat/3\t1\t0", "dog/5\t1\t1"]);
    let document = place.json("convert photos e --dedupe --jobs 1");
    let counts = ["samples", "duplicates", "content_duplicates", "content_duplicates_with_other_attributes"];
    assert_eq!(counts.map(|name| document[name].as_u64().unwrap()), [3, 0, 2, 1]);
    assert!(place.files("d") == place.files("e"));
    assert_eq!(place.json("convert photos f")["content_duplicates"], 0);
    let stream = place.run_with_stdin("convert --from stream - s --dedupe", &records(numbered(3, 1)));
    let message = "-: a stream is read once, and finding duplicate content before packing needs two readings";
    assert!(stream.stderr.contains(message), "{stream:?}");
}
