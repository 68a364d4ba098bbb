//! Whole runs of `grainstore export`: what it prints, and that it leaves nothing if it fails or is stopped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata, nearest_bfloat16,
    nearest_float16,
};
use grainstore_writer::{Sample, WriterOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::common::place::{Place, SmallDisk, numbered, until_there, wait};
use crate::common::{Fixture, Run, finish, grainstore};

fn export(fixture: &Fixture, out: &Path, flags: &[&str]) -> Run {
    let mut command = grainstore();
    command.arg("export").arg(&fixture.path).arg(out).args(flags);
    let run = finish(command);
    let filtered = |text: &str| text.replace(&*fixture.folder.path().to_string_lossy(), "[PATH]");
    Run { status: run.status, stdout: filtered(&run.stdout), stderr: filtered(&run.stderr) }
}

#[test]
fn the_result_is_reported_on_one_line() {
    let fixture = Fixture::labelled(100);
    let out = fixture.folder.path().join("out.tar");
    let run = export(&fixture, &out, &["--to", "tar", "--subset", "label in 0..5"]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "[PATH]/out.tar: 50 samples, 1 file, 4.8 kB\n"), "{run:?}");
    assert!(run.stderr.starts_with("exported 4.8 kB in "), "{run:?}");
    let (status, document) =
        fixture.json("export", [fixture.folder.path().join("p").as_os_str(), "--to=parquet".as_ref()]);
    assert_eq!((status, &document["samples"], &document["format"]), (0, &json!(100), &json!("parquet")));
    assert!(out.is_file() && fixture.folder.path().join("p/p-00000-of-00001.parquet").is_file());
}

#[test]
fn a_dataset_comes_back_from_parquet_with_all_its_types() {
    let attributes = [
        ("half", AttributeType::Float16),
        ("brain", AttributeType::Bfloat16),
        ("time", AttributeType::Timestamp),
        ("split", AttributeType::Category),
        ("label", AttributeType::Uint8),
    ];
    let attributes = attributes.map(|(name, kind)| Attribute { name: name.into(), kind }).into();
    let fields = [("data", "bytes"), ("text", "str"), ("vector", "float16[3]"), ("boxes", "float32[,4]")];
    let fields =
        fields.map(|(name, kind)| Field { name: name.into(), kind: FieldType::from_name(kind).unwrap() }).into();
    let user = json!({ "class_names": ["a", "b"], "number": 7 });
    let user = UserMetadata::new(user.as_object().unwrap()).unwrap();
    let metadata = Metadata { schema: Schema::new(attributes, fields).unwrap(), user };
    let sample = |number: u8| Sample {
        attributes: vec![
            (number != 1).then_some(AttributeValue::Float16(nearest_float16(f64::from(number) / 2.0))),
            Some(AttributeValue::Bfloat16(nearest_bfloat16(f64::from(number) / 3.0))),
            Some(AttributeValue::Timestamp(i64::from(number) * 1_000_003)),
            (number != 2).then_some(AttributeValue::Category(["train", "val"][usize::from(number % 2)].into())),
            Some(AttributeValue::Uint(u64::from(number % 2))),
        ],
        fields: vec![Some(0..2), Some(2..4), Some(4..10), (number != 3).then_some(10..10 + u64::from(number) * 16)],
        ..Sample::new(
            format!("k{number}"),
            [b"xyab", [number; 6 + 7 * 16].as_slice()].concat()
                [..10 + if number == 3 { 0 } else { usize::from(number) * 16 }]
                .to_vec(),
        )
    };
    let fixture = Fixture::write(WriterOptions::with_metadata(metadata), (0..7).map(sample));
    let out = fixture.folder.path().join("out.parquet");
    assert_eq!(export(&fixture, &out, &["--to", "parquet"]).status, 0);
    let back = fixture.folder.path().join("back.grain");
    let run = |arguments: &[&Path]| {
        let mut command = grainstore();
        command.args(arguments);
        let run = finish(command);
        assert_eq!(run.status, 0, "{run:?}");
        run.stdout
    };
    run(&["convert".as_ref(), &out, &back, "--order".as_ref(), "source".as_ref()]);
    let rows = |path: &Path| run(&["ls".as_ref(), path, "--json".as_ref()]);
    assert_eq!(rows(&back), rows(&fixture.path));
    let shape = |path: &Path| {
        let document: serde_json::Value =
            serde_json::from_str(&run(&["inspect".as_ref(), path, "--json".as_ref()])).unwrap();
        (document["attributes"].clone(), document["fields"].clone(), document["user"].clone())
    };
    assert_eq!(shape(&back), shape(&fixture.path));
    for field in ["data", "text", "vector", "boxes"] {
        let get = |path: &Path| run(&["get".as_ref(), path, "k5".as_ref(), "--field".as_ref(), field.as_ref()]);
        assert_eq!(get(&back), get(&fixture.path), "{field}");
    }
}

#[test]
fn every_refusal_has_a_hint_and_leaves_nothing() {
    let fixture = Fixture::write(WriterOptions::default(), [Sample::new("../up", b"1".to_vec())]);
    let out = fixture.folder.path().join("out");
    let run = export(&fixture, &out, &["--to", "folder"]);
    assert_eq!(
        (run.status, run.stderr.lines().next()),
        (2, Some("grainstore: sample 0 (key \"../up\"): its part \"..\" leads out of the target"))
    );
    assert!(run.stderr.contains("\nhint: `--to tfrecord` and `--to parquet` hold any key"), "{run:?}");
    let run = export(&fixture, &out.with_extension("tar"), &["--to", "parquet"]);
    assert!(run.stderr.contains("out.tar: its name ends in .tar, but the format is parquet\nhint: "), "{run:?}");
    assert!(!out.exists());
    fs::create_dir(&out).unwrap();
    let run = export(&fixture, &out, &["--to", "parquet"]);
    assert_eq!(
        (run.status, run.stderr.as_str()),
        (
            2,
            "grainstore: [PATH]/out: already exists, and an export never replaces anything\nhint: choose another OUT\n"
        )
    );
    assert_eq!(fs::read_dir(fixture.folder.path()).unwrap().count(), 2, "the dataset and OUT");
}

#[test]
fn a_full_disk_is_reported_and_everything_written_is_removed() {
    let samples = (0..40_u8).map(|number| Sample::new([b'A' + number], vec![number; 100_000]));
    let fixture = Fixture::write(WriterOptions::default(), samples);
    let Some(disk) = SmallDisk::mount(fixture.folder.path().join("disk")) else { return };
    for format in ["folder", "tar", "tfrecord", "lmdb", "parquet"] {
        let run = export(&fixture, &fixture.folder.path().join("disk/out"), &["--to", format]);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{format}: {run:?}");
        assert!(run.stderr.contains("\nhint: the disk is full: free space or choose an OUT"), "{format}: {run:?}");
        assert!(disk.is_empty(), "{format}");
    }
}

/// An export of 20,000 files that has begun and is far from done.
fn begun(place: &Place) -> Child {
    place.dataset("d", numbered(20_000, 10));
    let mut child = place.spawn("export d out --to folder", Stdio::null());
    until_there(&place.path("out.partial"), &mut child);
    child
}

#[test]
fn ctrl_c_leaves_nothing() {
    let place = Place::new();
    let child = begun(&place);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = wait(child);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (130, "", "grainstore: interrupted\n"));
    assert_eq!(place.names(), ["d"]);
}

#[test]
fn a_killed_export_leaves_its_partial_only_which_the_next_one_names() {
    let place = Place::new();
    let mut child = begun(&place);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(place.names(), ["d", "out.partial"]);
    let refused = place.error_of("export d out --to tar");
    assert!(refused.contains("out.partial: already exists: if a killed export left it"), "{refused}");
    assert_eq!(place.names(), ["d", "out.partial"]);
}

#[test]
fn an_older_generation_and_a_part_without_what_was_taken_down_can_be_exported() {
    let place = Place::new();
    for (class, number) in [("cat", 1), ("dog", 2)] {
        place.put(&format!("one/{class}/{number}.jpg"), class);
        place.put(&format!("two/{class}/{}.jpg", number + 2), class);
    }
    place.run_ok("convert one d");
    place.run_ok("append two d");
    let exported = |flags: &str| {
        place.run_ok(&format!("export d out --to folder {flags}"));
        let names: Vec<_> = place.files("out").into_keys().map(|path| path.to_str().unwrap().to_owned()).collect();
        fs::remove_dir_all(place.path("out")).unwrap();
        names
    };
    assert_eq!(exported("--generation 0"), ["cat/1.jpg", "dog/2.jpg"]);
    assert_eq!(exported("--subset label!=0"), ["attributes.jsonl", "dog/2.jpg", "dog/4.jpg"]);
    assert_eq!(exported(""), ["cat/1.jpg", "cat/3.jpg", "dog/2.jpg", "dog/4.jpg"]);
    assert!(place.error_of("export d out --to tar --generation 2").contains("generation"));
    let nothing = place.error_of("export d out --to tar --subset label==7");
    assert!(nothing.contains("no sample is in the subset label == 7; nothing was written\nhint: "), "{nothing}");
    let packed = place.error_of("export d out.tar.gz --to tar");
    assert!(packed.contains("out.tar.gz: its name ends in .gz, but the output is not compressed"), "{packed}");
    assert_eq!(place.names(), ["d", "one", "two"]);
}

#[test]
fn a_folder_whose_labels_are_in_a_table_is_packed_with_them_or_not_at_all() {
    let place = Place::new();
    place.put("one/cat/1.jpg", "c");
    place.put("one/dog/2.jpg", "d");
    place.run_ok("convert one d");
    place.run_ok("export d out --to folder --subset label!=0");
    let error = place.error_of("convert out e");
    assert!(error.contains("out/attributes.jsonl: it is a table about the other files in its folder"), "{error}");
    assert!(error.contains("\nhint: --labels out/attributes.jsonl reads it, --no-labels leaves it out"), "{error}");
    place.run_ok("convert out e --labels out/attributes.jsonl");
    assert_eq!(place.run_ok("ls e --columns key,label").stdout, "dog/2.jpg\t1\n");
}

#[test]
fn the_name_of_the_output_says_the_format() {
    let place = Place::new();
    place.dataset("d", numbered(5, 10));
    for format in ["tar", "tfrecord", "parquet", "lmdb"] {
        assert_eq!(place.json(&format!("export d out.{format}"))["format"], format);
    }
    let error = place.error_of("export d out");
    let expected = "grainstore: out: its name does not say which format to write\nhint: --to names it: folder, tar, tfrecord, lmdb or parquet\n";
    assert_eq!(error, expected);
}
