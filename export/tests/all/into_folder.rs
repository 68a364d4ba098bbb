//! Exports to a folder: the files are those that the dataset was made of, and names that are no files are refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;

use grainstore_export::{ExportOptions, Format};
use grainstore_format::{AttributeType, AttributeValue, FieldType, UserMetadata};
use grainstore_writer::Sample;
use serde_json::{Value, json};

use crate::common::{Made, image, options, rich, tree};

#[test]
fn every_key_is_a_file_with_the_payload() {
    let made = Made::keyed(&[(b"a/b/1.jpg", b"one"), (b"a/2.jpg", b""), ("ü \u{1}".as_bytes(), b"three")]);
    let summary = made.export("out", Format::Folder).unwrap();
    assert_eq!((summary.samples, summary.files, summary.payload_bytes, summary.notes.len()), (3, 3, 8, 0));
    let expected = [("a/2.jpg", &b""[..]), ("a/b/1.jpg", b"one"), ("ü \u{1}", b"three")];
    let expected = expected.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    assert_eq!(tree(&made.out("out")), expected.collect());
    assert_eq!(made.place.names(), ["out"]);
}

#[test]
fn fields_are_files_and_attributes_a_list_in_the_order_of_the_dataset() {
    let made = rich(100);
    let four = ExportOptions { jobs: 4.try_into().ok(), ..ExportOptions::to(Format::Folder) };
    made.export_with("out", &four).unwrap();
    let files = tree(&made.out("out"));
    for number in 0..100_u64 {
        assert_eq!(files[&format!("part/{number:05}.jpg")], image(number));
        assert_eq!(files.contains_key(&format!("part/{number:05}.txt")), number % 11 != 10);
    }
    let list = String::from_utf8(files["attributes.jsonl"].clone()).unwrap();
    let lines: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 100);
    assert_eq!(lines[4], json!({ "path": "part/00004", "label": null, "weight": f64::from(0.4_f32), "good": true }));
    assert_eq!(
        list.lines().nth(1),
        Some(r#"{"path":"part/00001","label":1,"weight":0.10000000149011612,"good":false}"#)
    );
}

fn classes(labels: &[(&str, i64)], names: &Value) -> Made {
    let user = UserMetadata::default().with_member("class_names", &json!(names)).unwrap();
    let sample = |(key, label): &(&str, i64)| Sample {
        attributes: vec![Some(AttributeValue::Int(*label))],
        ..Sample::new(*key, key.as_bytes().to_vec())
    };
    let options = options(vec![("label", AttributeType::Int64)], vec![("image", FieldType::Bytes)], user);
    Made::of(options, labels.iter().map(sample))
}

#[test]
fn folders_that_say_the_labels_need_no_list() {
    let names = json!(["cat", "dog"]);
    let needs_list = |labels: &[(&str, i64)], names: &Value| {
        let made = classes(labels, names);
        made.export("out", Format::Folder).unwrap();
        made.out("out/attributes.jsonl").exists()
    };
    assert!(!needs_list(&[("dog/1", 1), ("cat/1", 0)], &names));
    assert!(needs_list(&[("dog/1", 0), ("cat/1", 1)], &names), "another class");
    assert!(needs_list(&[("dog/1", 1)], &names), "cat would be missing, and dog the first class");
    assert!(needs_list(&[("dog/1", 0), ("cat/1", 1)], &json!(["dog", "cat"])), "not in the order of names");
    assert!(needs_list(&[("dog/x/1", 1), ("cat/1", 0)], &names), "not at CLASS/FILE");
    assert!(needs_list(&[("dog/1", 1), ("cat/1", 0), ("cat/2", 7)], &names), "no such class");
}

#[test]
fn names_of_numbers_without_a_place_are_noted() {
    let names = json!(["cat", "dog"]);
    let notes = |labels: &[(&str, i64)], format: Format| {
        let notes = classes(labels, &names).export("out", format).unwrap().notes;
        notes.into_iter().filter(|note| note.contains("names of these attributes' numbers")).collect::<Vec<_>>()
    };
    let left_out = "the names of these attributes' numbers are left out: label (Parquet holds them)";
    let (in_folders, elsewhere) = ([("dog/1", 1), ("cat/1", 0)], [("1", 1), ("2", 0)]);
    for format in [Format::Folder, Format::Tar, Format::TfRecord, Format::Lmdb] {
        assert_eq!(notes(&elsewhere, format), [left_out], "{format}");
    }
    assert_eq!(notes(&in_folders, Format::Folder), [""; 0]);
    assert_eq!(notes(&elsewhere, Format::Parquet), [""; 0]);
}

#[test]
fn without_keys_files_are_called_by_their_ordinals_in_the_dataset() {
    let made = Made::keyless(&[b"zero", b"one", b"two"], "data");
    made.export_some("out", Format::Folder, &[0, 2]).unwrap();
    let files = tree(&made.out("out"));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["000000000.bin", "000000002.bin"]);
    assert_eq!(files["000000002.bin"], b"two");
}

#[test]
fn names_that_are_no_files_below_the_folder_are_refused_before_anything_is_written() {
    let long = [b"a/".as_slice(), &[b'x'; 256]].concat();
    let deep = b"d/".repeat(2048);
    let deep = [deep.as_slice(), b"f"].concat();
    for (key, why) in [
        (&b"../evil"[..], "its part \"..\" leads out of the target"),
        (b"a/../../evil", "its part \"..\" leads out of the target"),
        (b"a/..", "its part \"..\" leads out of the target"),
        (b"/etc/passwd", "as a path it begins at the root, not below the target"),
        (b"a//b", "it has an empty part, which is not a file name"),
        (b"a/", "it has an empty part, which is not a file name"),
        (b"./a", "its part \".\" is not a file name"),
        (b".", "its part \".\" is not a file name"),
        (b"a\0b", "it has a zero byte, which ends a name"),
        (&long, "a part has 256 bytes, names of files have 255 at most"),
        (&deep, "as a path it has 4097 bytes, paths have 4095 at most"),
    ] {
        let made = Made::keyed(&[(b"fine", b"1"), (key, b"2")]);
        let error = made.refusal("out", Format::Folder);
        assert_eq!(error, format!("sample 1 (key \"{}\"): {why}", grainstore_format::escape_bytes(key)));
        // A takedown of the sample lets the others out.
        made.export_some("out", Format::Folder, &[0]).unwrap();
        assert!(!made.place.folder.path().join("../evil").exists());
    }
}

#[test]
fn a_key_that_is_a_file_and_a_folder_is_refused() {
    let expected = "sample 1 (key \"a/b/c\"): its folder \"a\" is the file of sample 2 (key \"a\")";
    let made = Made::keyed(&[(b"x", b""), (b"a/b/c", b""), (b"a", b"")]);
    assert_eq!(made.refusal("out", Format::Folder), expected);
    made.export_some("out", Format::Folder, &[0, 1]).unwrap();
}

#[test]
fn two_samples_with_the_same_file_are_refused() {
    let options = options(vec![], vec![("x", FieldType::Bytes), ("b.x", FieldType::Bytes)], UserMetadata::default());
    let sample = |key: &str| Sample { fields: vec![Some(0..1), Some(1..2)], ..Sample::new(key, b"12".to_vec()) };
    let made = Made::of(options, ["k", "k.b"].map(sample));
    let expected = "sample 0 (key \"k\"): its file \"k.b.x\" is also that of sample 1 (key \"k.b\")";
    assert_eq!(made.refusal("out", Format::Folder), expected);
}

#[test]
fn the_name_of_the_list_is_taken_only_where_there_is_one() {
    let key = &b"attributes.jsonl"[..];
    Made::keyed(&[(key, b"mine")]).export("out", Format::Folder).unwrap();
    let options = options(vec![("n", AttributeType::Uint8)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    let sample = Sample { attributes: vec![None], ..Sample::new(key, b"".to_vec()) };
    let error = Made::of(options, [sample]).refusal("out", Format::Folder);
    assert!(error.ends_with("the attributes of all samples are stored in the file attributes.jsonl"), "{error}");
}

#[test]
fn numbers_that_json_does_not_have_are_refused() {
    let options =
        options(vec![("n", AttributeType::Float64)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    let sample = Sample { attributes: vec![Some(AttributeValue::Float64(f64::NAN))], ..Sample::new("a", b"".to_vec()) };
    let made = Made::of(options, [sample]);
    let expected = "sample 0 (key \"a\"): its \"n\" is NaN, JSON has finite numbers only";
    assert_eq!(made.refusal("out", Format::Folder), expected);
}

#[test]
fn a_key_that_is_not_utf8_is_a_file_of_its_bytes_and_escaped_in_the_list() {
    use std::os::unix::ffi::OsStrExt;
    let options =
        options(vec![("n", AttributeType::Uint64)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    let sample =
        Sample { attributes: vec![Some(AttributeValue::Uint(u64::MAX))], ..Sample::new(*b"\xff", b"bytes".to_vec()) };
    let made = Made::of(options, [sample]);
    let summary = made.export("out", Format::Folder).unwrap();
    let path = made.out("out").join(std::ffi::OsStr::from_bytes(b"\xff"));
    assert_eq!(fs::read(path).unwrap(), b"bytes");
    let list = fs::read_to_string(made.out("out/attributes.jsonl")).unwrap();
    assert_eq!(list, "{\"path\":\"\\\\xff\",\"n\":18446744073709551615}\n");
    assert_eq!(summary.notes.len(), 1, "{:?}", summary.notes);
}
