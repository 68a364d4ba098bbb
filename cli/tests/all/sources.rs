//! Every kind of source through the command: recognized by its content, named in every way, read as the flags request;
//! flags without meaning are refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;

use crate::common::place::{Place, gzip, numbered, records};

#[test]
fn every_format_is_known_by_its_content_whatever_the_file_is_called() {
    for (fixture, kind, samples, order, row) in [
        ("tar/webdataset.tar", "tar", 3, "shuffled", "d/s000\t"),
        ("tar/webdataset.tar.gz", "tar", 3, "shuffled_window", "d/s000\t"),
        ("tar/gnu_tar.tar.gz", "tar", 15, "shuffled_window", "folder/"),
        ("tfrecord/features.tfrecord", "TFRecord", 4, "shuffled", "\t"),
        ("tfrecord/features.tfrecord.gz", "TFRecord", 4, "shuffled_window", "\t"),
        ("tfrecord/features.tfrecord.zlib", "TFRecord", 4, "shuffled_window", "\t"),
        ("tfrecord/imagenet.tfrecord", "TFRecord", 3, "shuffled", "n0.JPEG\t22\t"),
        ("lmdb/plain.mdb", "LMDB", 30, "shuffled", "key001\t0"),
        ("lmdb/datum.mdb", "LMDB", 3, "shuffled", "00000000\t"),
        ("parquet/all.parquet", "Parquet", 20, "shuffled_window", ""),
        ("parquet/zstd.parquet", "Parquet", 20, "shuffled_window", ""),
        ("parquet/hf.parquet", "Parquet", 3, "shuffled_window", ""),
    ] {
        let place = Place::new();
        place.fixture(fixture, "no.sense");
        let document = place.json("convert no.sense d");
        let found = (&document["source"], &document["samples"], &document["order"]);
        assert_eq!(found, (&kind.into(), &samples.into(), &order.into()), "{fixture}");
        assert_eq!((&document["skipped_samples"], &document["warnings"]), (&[(); 0].into(), &[(); 0].into()));
        place.run_ok("verify d");
        assert!(place.rows("d")[0].starts_with(row), "{fixture}: {:?}", place.rows("d"));
    }
}

#[test]
fn samples_come_out_as_they_went_in() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "a.tar");
    place.run_ok("convert a.tar d");
    assert_eq!(place.run_ok("get d d/s000 --field txt").stdout, "caption é 0");
    for format in ["tar", "tfrecord", "lmdb", "parquet", "folder"] {
        let samples = || numbered(20, 1000).map(|(key, _)| (key.clone(), key.repeat(50).into_bytes()));
        place.export(format, format, samples());
        place.run_ok(&format!("convert {format} {format}.grain"));
        for (key, payload) in samples() {
            let found = place.run(&format!("get {format}.grain {key}"));
            assert_eq!(found.stdout.into_bytes(), payload, "{format}: {:?}", place.rows(&format!("{format}.grain")));
        }
    }
}

#[test]
fn patterns_ranges_and_folders_stand_for_shards() {
    let place = Place::new();
    for number in 0..4 {
        place.fixture("tfrecord/features.tfrecord", &format!("shards/t-{number:02}"));
    }
    place.put("shards/README.md", "read me");
    place.put("shards/_SUCCESS", "");
    for (number, named) in
        ["shards/t-{00..03}", "shards/t-*", "shards/t-0[0-3]", "shards/t-00 shards/t-{01..03}"].into_iter().enumerate()
    {
        assert_eq!(place.json(&format!("convert {named} d{number}"))["samples"], 16, "{named}");
        assert!(place.files("d0") == place.files(&format!("d{number}")), "{named}");
    }
    let run = place.run_ok("convert shards d");
    let warning = "grainstore: files among the shards that are not TFRecord are NOT packed: README.md\n";
    assert!(run.stderr.contains(warning), "{run:?}");
    assert!(place.files("d0") == place.files("d"));
    for (work, files) in [
        ("convert shards counted", 1),
        ("convert shards/t-* none", 0),
        ("append shards d", 1),
        ("adopt shards shards.grain --raw", 1),
    ] {
        let document = place.json(work);
        assert_eq!((&document["left_out_files"], &document["left_out_keys"]), (&files.into(), &0.into()), "{work}");
    }
    // Another file may be data, and is not left out unless the shards are named.
    place.put("shards/labels.csv", "key,label\n");
    let refused = place.error_of("convert shards e");
    let why = "shards: files among the shards are not TFRecord and may be data: labels.csv; to leave them out, ";
    assert!(refused.contains(why), "{refused}");
    assert_eq!(place.json("convert shards/t-* named")["samples"], 16);
    assert_eq!(place.run_ok("convert shards --from tfrecord told").stderr.matches("labels.csv").count(), 1);
    std::fs::remove_file(place.path("shards/labels.csv")).unwrap();
    place.put("shards/t-04", "");
    assert_eq!(place.json("convert shards empty")["samples"], 16);
    place.put("shards/t-04", "cut off");
    let damaged = place.error_of("convert shards e");
    assert!(damaged.contains("shards/t-04: its name is like that of t-00, but it is not TFRecord"), "{damaged}");
    std::fs::remove_file(place.path("shards/t-04")).unwrap();
    let missing = place.error_of("convert shards/t-{00..04} e");
    assert_eq!(missing, "grainstore: shards/t-04: there is no such file; shards/t-{00..04} names it\n");
    assert!(place.error_of("convert u-* e").contains("u-*: there is no such file or folder, and nothing matches it"));
}

#[test]
fn standard_input_is_a_tar_compressed_or_not_or_records() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "a.tar");
    let tar = place.read("a.tar");
    for (number, bytes) in [tar.clone(), gzip(&tar)].into_iter().enumerate() {
        let run = place.run_with_stdin(&format!("convert - d{number} --json"), &bytes);
        let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&document["source"], &document["samples"]), (&"tar stream".into(), &3.into()), "{run:?}");
    }
    assert!(place.files("d0") == place.files("d1"));
    let run = place.run_with_stdin("convert --from stream - s --json", &records(numbered(7, 10)));
    assert!(run.stdout.contains("\"source\": \"stream of records\",\n  \"samples\": 7,"), "{run:?}");

    for (line, bytes, message) in [
        ("convert - x", &b"no tar"[..], "-: no tar archive with files: at byte 0: "),
        ("convert - x", b"", "-: no tar archive with files: at byte 0: the file is empty"),
        (
            "convert --from tfrecord - x",
            b"",
            "-: TFRecord cannot be read from a stream, only tar and records\nhint: --from stream reads",
        ),
        ("convert a.tar - x", b"", "-: standard input is a source by itself"),
        ("convert --from stream a.tar x", b"", "a.tar: a stream is read from standard input: name `-`"),
        (
            "adopt - x",
            &tar,
            "-: it cannot be adopted: a stream has no file to refer to\nhint: `grainstore convert` packs it",
        ),
    ] {
        let run = place.run_with_stdin(line, bytes);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{line}");
        assert!(run.stderr.contains(message), "{line}: {run:?}");
    }
}

#[test]
fn a_table_gives_files_labels_and_several_folders_are_splits() {
    let place = Place::new();
    for name in ["photos/a.jpg", "photos/b.jpg", "train/cat/1.jpg", "val/cat/2.jpg"] {
        place.put(name, name);
    }
    place.put("labels.csv", "path,label,caption\nb.jpg,4,second\na.jpg,3,first\n");
    let document = place.json("convert photos d --labels labels.csv");
    assert_eq!((&document["attributes"], &document["fields"][1]), (&["label"].into(), &"caption".into()));
    assert_eq!(place.rows("d"), ["a.jpg\t17\t3", "b.jpg\t18\t4"]);
    place.run_ok("convert train val roots");
    assert_eq!(place.rows("roots"), ["train/cat/1.jpg\t15\t0\t0", "val/cat/2.jpg\t13\t0\t1"]);
    let refused = place.error_of("convert photos e --labels nothing.csv");
    assert!(refused.contains("nothing.csv"), "{refused}");
}

#[test]
fn maps_raw_records_databases_and_values_are_taken_as_the_flags_say() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "a.tar");
    place.fixture("tfrecord/features.tfrecord", "f");
    place.fixture("lmdb/named.mdb", "named");
    place.fixture("lmdb/datum.mdb", "datum");
    let mapped = place.json("convert a.tar --map picture=jpg,label=cls mapped");
    assert_eq!((&mapped["fields"], &mapped["attributes"]), (&["picture"].into(), &["label"].into()));
    let raw = place.json("convert f --raw raw");
    assert_eq!((&raw["payload_bytes"], &raw["attributes"]), (&668.into(), &[(); 0].into()));
    assert_eq!(place.json("convert named --database train train")["samples"], 2);
    assert_eq!(place.json("convert datum --values raw values")["fields"], serde_json::json!(["data"]));
    assert_eq!(place.json("convert datum --values datum datums")["fields"], serde_json::json!(["image"]));
    for (line, message) in [
        ("convert a.tar --map picture=jpgg x", "that are mapped: it holds no such file (there are: cls, "),
        ("convert named x", "holds no values itself, only named databases (train, val)\nhint: --database chooses one"),
        ("convert named --database test x", "named: has no named database \"test\""),
    ] {
        let refused = place.error_of(line);
        assert!(refused.contains(message), "{line}: {refused}");
    }
}

#[test]
fn flags_that_mean_nothing_for_the_source_are_refused() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "a.tar");
    place.put("photos/1.jpg", "x");
    for (line, message) in [
        (
            "convert a.tar --raw x",
            "a.tar: it is tar, and only TFRecord records can be kept whole\nhint: leave out --raw\n",
        ),
        (
            "convert a.tar --categories split x",
            "a.tar: it is tar, and only Parquet's texts become categories by name\nhint: leave out --categories\n",
        ),
        (
            "convert a.tar --database b x",
            "a.tar: it is tar, and only LMDB has named databases\nhint: leave out --database\n",
        ),
        (
            "convert a.tar --values raw x",
            "a.tar: it is tar, and only LMDB has kinds of values\nhint: leave out --values\n",
        ),
        (
            "convert photos --map a=b x",
            "photos: it is a folder of files, and the files of a folder have no names to map\nhint: leave out --map\n",
        ),
        ("convert a.tar --from parquet x", "a.tar: not a Parquet file"),
        ("convert a.tar --from folder x", "a.tar: not a folder\nhint: SRC is a folder of plain files\n"),
        ("convert a.tar", "two paths are needed, what to take and the dataset: SRC... DST\n"),
    ] {
        let refused = place.error_of(line);
        assert!(refused.contains(message), "{line}: {refused}");
    }
    assert_eq!(place.names(), ["a.tar", "photos"]);
}

#[test]
fn data_of_two_kinds_are_refused_by_both_names_and_a_dataset_is_a_source() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "mixed/a");
    place.fixture("parquet/all.parquet", "mixed/b");
    let message = "mixed/b: it is Parquet, but mixed/a is tar: name data of one kind\nhint: --from names the format\n";
    for line in ["convert mixed/a mixed/b x", "convert mixed x"] {
        assert_eq!(place.error_of(line), format!("grainstore: {message}"), "{line}");
    }
    assert_eq!(place.json("convert mixed x --from tar")["samples"], 3);
    assert_eq!(place.json("convert x y")["source"], "dataset");
    assert_eq!(place.json("convert x y z --on-duplicate first")["duplicates"], 3);
    assert_eq!(place.json("convert x part --subset ordinal<2")["samples"], 2);
}

#[test]
fn a_damaged_dataset_is_not_packed_as_a_folder_of_files() {
    let place = Place::new();
    place.dataset("d", numbered(20, 100));
    fs::remove_file(place.path("d/00000.seg")).unwrap();
    let error = place.error_of("convert d e");
    assert!(error.contains("d/00000.seg"), "{error}");
}

#[test]
fn a_table_adds_attributes_to_samples_by_key_and_names_choose_what_is_packed() {
    let place = Place::new();
    place.fixture("tar/webdataset.tar", "a.tar");
    place.put("t.csv", "name,split,grade\nd/s000,val,0.5\nd/s001,train,2\nd/s009,val,1\n");
    let document = place.json("convert a.tar d --exclude txt --attributes t.csv --attributes-key name");
    let attributes = document["attributes"].as_array().unwrap();
    assert_eq!(attributes[attributes.len() - 2..], ["split", "grade"]);
    assert!(!document["fields"].as_array().unwrap().contains(&"txt".into()), "{document}");
    let notes = document["notes"].as_array().unwrap();
    let note = "t.csv: samples without a row, whose values are missing: 1; rows without a sample: 1";
    assert_eq!(notes.last().unwrap(), note);
    place.run_ok("verify d");
    assert!(place.rows("d").iter().any(|row| row.starts_with("d/s000\t") && row.contains("\tval\t0.5")));
    // A dataset gets new values for old ones.
    place.put("u.csv", "key,grade\nd/s000,7\n");
    let why = place.error_of("convert d e --attributes u.csv");
    assert!(why.contains("u.csv: column \"grade\" has the name of what the samples of "), "{why}");
    assert!(why.contains("hint: --exclude NAME leaves out what differs"), "{why}");
    place.run_ok("convert d e --exclude grade --attributes u.csv");
    assert!(place.rows("e").iter().any(|row| row.starts_with("d/s000\t") && row.contains("\tval\t7")));
    // `append` takes a table too, and counts only what it added.
    place.put("new/s1.jpg", "picture");
    place.put("more/s2.jpg", "picture");
    place.put("n.csv", "key,grade\ns1.jpg,1\ns2.jpg,2\n");
    place.run_ok("convert new f --no-labels --attributes n.csv");
    let document = place.json("append more f --no-labels --attributes n.csv");
    let note = "n.csv: samples without a row, whose values are missing: 0; rows without a sample: 1";
    assert_eq!(document["notes"].as_array().unwrap().last().unwrap(), note);
}
