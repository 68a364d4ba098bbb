//! Exports of some attributes and fields, against exports of datasets that have no others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use grainstore_export::{ExportOptions, ExportSummary, Format};
use grainstore_format::{AttributeType, FieldType, UserMetadata};
use grainstore_writer::Sample;

use crate::common::{Made, options, rich, rich_sample, tree};

const COUNT: u64 = 40;

/// `rich` with its `weight` and `jpg` alone, or also with its label and the names of its numbers.
fn with_these(label: bool, text: bool) -> Made {
    let mut attributes = vec![("label", AttributeType::Int64), ("weight", AttributeType::Float32)];
    let mut fields = vec![("jpg", FieldType::Bytes), ("txt", FieldType::Str)];
    let names = serde_json::json!(["cat", "dog", "emu"]);
    let mut user = UserMetadata::default().with_member("class_names", &names).unwrap();
    if !label {
        attributes.remove(0);
        user = UserMetadata::default();
    }
    if !text {
        fields.pop();
    }
    let sample = |number| {
        let mut sample: Sample = rich_sample(number);
        sample.attributes.pop();
        if !label {
            sample.attributes.remove(0);
        }
        if !text {
            let end = sample.fields.swap_remove(0).unwrap().end;
            sample.payload.truncate(usize::try_from(end).unwrap());
            sample.fields = vec![Some(0..end)];
        }
        sample
    };
    Made::of(options(attributes, fields, user), (0..COUNT).map(sample))
}

fn files(made: &Made, out: &str, options: &ExportOptions) -> (BTreeMap<String, Vec<u8>>, ExportSummary) {
    let summary = made.export_with(out, options).unwrap();
    let path = made.out(out);
    let files =
        if path.is_dir() { tree(&path) } else { BTreeMap::from([(String::new(), std::fs::read(path).unwrap())]) };
    (files, summary)
}

#[test]
fn what_is_left_out_was_never_there() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let choices = [
        (names(&[]), names(&["good"]), (true, true)),
        (names(&["weight", "jpg", "txt"]), names(&[]), (false, true)),
        (names(&["jpg", "weight"]), names(&[]), (false, false)),
        (names(&["label", "weight", "jpg", "txt"]), names(&["txt"]), (true, false)),
    ];
    for (only, exclude, (label, text)) in choices {
        let expected = with_these(label, text);
        for format in [Format::Folder, Format::Tar, Format::TfRecord, Format::Parquet] {
            let out = format!("out.{format}");
            let chosen = ExportOptions { only: only.clone(), exclude: exclude.clone(), ..ExportOptions::to(format) };
            let (found, summary) = files(&rich(COUNT), &out, &chosen);
            let (wanted, of_all) = files(&expected, &out, &ExportOptions::to(format));
            assert_eq!(found, wanted, "{format} of {only:?} without {exclude:?}");
            assert_eq!(
                (summary.samples, summary.payload_bytes, summary.files, summary.notes),
                (of_all.samples, of_all.payload_bytes, of_all.files, of_all.notes),
                "{format} of {only:?} without {exclude:?}"
            );
        }
    }
}

#[test]
fn one_field_of_two_in_lmdb_is_an_example_that_says_so() {
    let chosen = ExportOptions { only: vec!["txt".into()], ..ExportOptions::to(Format::Lmdb) };
    let summary = rich(COUNT).export_with("out.lmdb", &chosen).unwrap();
    assert!(summary.notes.iter().any(|note| note.contains("tf.train.Example")), "{:?}", summary.notes);
    let texts: u64 =
        (0..COUNT).filter(|number| number % 11 != 10).map(|number| format!("caption {number}").len() as u64).sum();
    assert_eq!((summary.samples, summary.payload_bytes), (COUNT, texts));
}

#[test]
fn names_that_are_unknown_or_leave_no_field_are_refused() {
    let refused = |only: &[&str], exclude: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let chosen = ExportOptions { only: names(only), exclude: names(exclude), ..ExportOptions::to(Format::Tar) };
        let made = rich(1);
        let error = made.export_with("out.tar", &chosen).unwrap_err().to_string();
        assert!(made.place.names().is_empty(), "{:?}", made.place.names());
        error
    };
    let unknown = "no attribute or field \"captoin\" (there are: label, weight, good, jpg, txt)";
    assert_eq!(refused(&["jpg", "captoin"], &[]), unknown);
    assert_eq!(refused(&[], &["captoin"]), unknown);
    assert_eq!(refused(&["label"], &[]), "no field is left; the dataset's fields are jpg, txt");
    assert_eq!(refused(&[], &["txt", "jpg"]), "no field is left; the dataset's fields are jpg, txt");
}
