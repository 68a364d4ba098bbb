//! Exports to tar: read back with the `tar` crate, member by member.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use grainstore_export::{ExportOptions, Format};
use grainstore_format::{AttributeType, AttributeValue, FieldType, UserMetadata};
use grainstore_writer::Sample;

use crate::common::{Made, image, options, rich, tree};

fn members(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut archive = tar::Archive::new(File::open(path).unwrap());
    let member = |entry: std::io::Result<tar::Entry<'_, File>>| {
        let mut entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.mtime().unwrap(), header.mode().unwrap(), header.uid().unwrap()), (0, 0o644, 0));
        let (name, mut bytes) = (entry.path_bytes().into_owned(), Vec::new());
        entry.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    };
    archive.entries().unwrap().map(member).collect()
}

fn named(members: &[(&str, &[u8])]) -> Vec<(Vec<u8>, Vec<u8>)> {
    members.iter().map(|(name, bytes)| (name.as_bytes().to_vec(), bytes.to_vec())).collect()
}

#[test]
fn a_key_with_an_extension_is_the_member_and_one_without_gets_the_fields_name() {
    let long = "d/".repeat(100) + "long.jpg";
    let latin: &[u8] = &[b"\xe9".repeat(120).as_slice(), b".jpg"].concat();
    let made = Made::keyed(&[(b"a/1.jpg", b"one"), (b"a.b/2", &[7; 512]), (long.as_bytes(), b""), (latin, b"x")]);
    made.export("out.tar", Format::Tar).unwrap();
    let mut expected = named(&[("a/1.jpg", b"one"), ("a.b/2.data", &[7; 512]), (&long, b"")]);
    expected.push((latin.to_vec(), b"x".to_vec()));
    assert_eq!(members(&made.out("out.tar")), expected);
    assert_eq!(made.place.names(), ["out.tar"]);
}

#[test]
fn fields_label_and_other_attributes_are_members_of_a_sample() {
    let made = rich(8);
    made.export("out.tar", Format::Tar).unwrap();
    let all = members(&made.out("out.tar"));
    let of = |number: u64| {
        let prefix = format!("part/{number:05}.");
        let names = all.iter().filter_map(|(name, bytes)| {
            let name = std::str::from_utf8(name).unwrap().strip_prefix(&prefix)?;
            Some((name.to_owned(), bytes.clone()))
        });
        names.collect::<Vec<_>>()
    };
    let json = br#"{"weight":0.10000000149011612,"good":false}"#;
    let expected = named(&[("jpg", &image(1)), ("txt", b"caption 1"), ("cls", b"1"), ("json", json)]);
    let expected: Vec<_> =
        expected.into_iter().map(|(name, bytes)| (String::from_utf8(name).unwrap(), bytes)).collect();
    assert_eq!(of(1), expected);
    assert_eq!(of(4).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["jpg", "txt", "json"], "no label");
    assert_eq!(of(6).last().unwrap().1, br#"{"good":true}"#, "a missing weight is skipped");
}

#[test]
fn shards_are_cut_by_payload_and_are_the_same_for_any_number_of_threads() {
    let made = rich(300);
    let mut trees = Vec::new();
    for jobs in [1, 2, 5] {
        let options = ExportOptions { jobs: jobs.try_into().ok(), shard_len: 50_000, ..ExportOptions::to(Format::Tar) };
        let summary = made.export_with("shards", &options).unwrap();
        let files = tree(&made.out("shards"));
        assert_eq!((summary.samples, summary.files), (300, files.len() as u64));
        fs::remove_dir_all(made.out("shards")).unwrap();
        trees.push(files);
    }
    assert!(trees[0].len() > 5 && trees.iter().all(|other| *other == trees[0]));
    let names: Vec<&String> = trees[0].keys().collect();
    assert_eq!(*names[1], format!("shards-00001-of-{:05}.tar", names.len()));
}

/// Samples of two fields and a label.
fn pairs(keys: &[&str]) -> Made {
    let fields = vec![("image", FieldType::Bytes), ("caption", FieldType::Bytes)];
    let sample = |(number, key): (usize, &&str)| Sample {
        fields: vec![Some(0..1), Some(1..2)],
        attributes: vec![Some(AttributeValue::Int(i64::try_from(number).unwrap()))],
        ..Sample::new(key.as_bytes(), b"xy".to_vec())
    };
    let options = options(vec![("label", AttributeType::Int8)], fields, UserMetadata::default());
    Made::of(options, keys.iter().enumerate().map(sample))
}

#[test]
fn keys_of_samples_of_several_fields_end_at_the_dot_where_readers_begin_the_fields_name() {
    let made = pairs(&["d.x/a.jpg", "b", "d.x/c.old.jpg"]);
    let notes = made.export("out.tar", Format::Tar).unwrap().notes;
    let member = |name: &str, bytes: &[u8]| (name.as_bytes().to_vec(), bytes.to_vec());
    let expected = [("d.x/a", b"0"), ("b", b"1"), ("d.x/c", b"2")].map(|(stem, label)| {
        let named = |suffix: &str| format!("{stem}.{suffix}");
        [member(&named("image"), b"x"), member(&named("caption"), b"y"), member(&named("cls"), label)]
    });
    assert_eq!(members(&made.out("out.tar")), expected.concat());
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("what follows is left out: 2 in all, the first is sample 0"), "{notes:?}");
}

#[test]
fn samples_whose_members_would_have_the_same_names_are_refused() {
    for (keys, why) in [
        (
            ["frame.1", "b", "frame.2"],
            "sample 2 (key \"frame.2\"): names in an archive end at the first dot, so its files and those of sample 0 would both be \"frame\"",
        ),
        (["a.jpg", "b", "a"], "sample 0 (key \"a.jpg\"): its file \"a.image\" is also that of sample 2 (key \"a\")"),
    ] {
        assert_eq!(pairs(&keys).refusal("out.tar", Format::Tar), why);
    }
    let sample =
        |key: &str| Sample { attributes: vec![Some(AttributeValue::Int(1))], ..Sample::new(key, b"1".to_vec()) };
    for (keys, why) in [
        (
            ["a.jpg", "b.jpg", "a.png"],
            "sample 2 (key \"a.png\"): names in an archive end at the first dot, so its files and those of sample 0 would both be \"a\"",
        ),
        (
            ["a.jpg", "b.jpg", "a"],
            "sample 0 (key \"a.jpg\"): names in an archive end at the first dot, so its files and those of sample 2 would both be \"a\"",
        ),
    ] {
        let options =
            options(vec![("label", AttributeType::Int8)], vec![("data", FieldType::Bytes)], UserMetadata::default());
        let made = Made::of(options, keys.map(sample));
        assert_eq!(made.refusal("out.tar", Format::Tar), why);
        // Without the other one nothing is in the way.
        made.export_some("part.tar", Format::Tar, &[0, 1]).unwrap();
    }
}

#[test]
fn a_second_dot_in_the_key_of_a_labelled_file_is_noted() {
    let sample =
        |key: &str| Sample { attributes: vec![Some(AttributeValue::Int(1))], ..Sample::new(key, b"1".to_vec()) };
    let options =
        options(vec![("label", AttributeType::Int8)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    let made = Made::of(options, ["x.y/a.jpg", "b.old.jpg"].map(sample));
    let notes = made.export("out.tar", Format::Tar).unwrap().notes;
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("other dots too: 1 in all, the first is sample 1"), "{notes:?}");
    let names: Vec<_> = members(&made.out("out.tar")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [&b"x.y/a.jpg"[..], b"x.y/a.cls", b"b.old.jpg", b"b.cls"]);
}

#[test]
fn samples_that_webdataset_would_merge_or_not_see_are_reported() {
    let made = Made::keyed(&[(b"a.b.jpg", b"1"), (b"a.c.jpg", b"2"), (b"x/.hidden", b"3"), (b"a.jpg", b"4")]);
    let notes = made.export("out.tar", Format::Tar).unwrap().notes;
    assert_eq!(notes.len(), 2);
    assert!(notes[0].ends_with("with the same name for one: 1 in all, the first is sample 1"), "{notes:?}");
    assert!(notes[1].ends_with("begins with a dot: 1 in all, the first is sample 2"), "{notes:?}");
}

#[test]
fn members_that_would_leave_a_folder_or_meet_are_refused() {
    for (keys, why) in [
        ([&b"ok"[..], b"../x.jpg"], "sample 1 (key \"../x.jpg\"): its part \"..\" leads out of the target"),
        ([b"k", b"k.data"], "sample 0 (key \"k\"): its file \"k.data\" is also that of sample 1 (key \"k.data\")"),
    ] {
        let made = Made::keyed(&keys.map(|key| (key, &b"1"[..])));
        assert_eq!(made.refusal("out.tar", Format::Tar), why);
    }
    let options =
        options(vec![("label", AttributeType::Int8)], vec![("data", FieldType::Bytes)], UserMetadata::default());
    let sample =
        |key: &str| Sample { attributes: vec![Some(AttributeValue::Int(1))], ..Sample::new(key, b"1".to_vec()) };
    let made = Made::of(options, ["a.jpg", "a.cls"].map(sample));
    let error = made.refusal("out.tar", Format::Tar);
    assert_eq!(error, "sample 0 (key \"a.jpg\"): its file \"a.cls\" is also that of sample 1 (key \"a.cls\")");
}

#[test]
fn a_member_that_another_ones_key_has_as_a_folder_is_refused() {
    let fields = vec![("jpg", FieldType::Bytes), ("txt", FieldType::Bytes)];
    let sample = |key: &str| Sample { fields: vec![Some(0..1), Some(1..2)], ..Sample::new(key, b"xy".to_vec()) };
    for (keys, number, other) in [(["a/b.c", "a/b.jpg/z"], 1, 0), (["a/b.jpg/z", "a/b.c"], 0, 1)] {
        let made = Made::of(options(vec![], fields.clone(), UserMetadata::default()), keys.map(sample));
        let expected = format!(
            "sample {number} (key \"a/b.jpg/z\"): its folder \"a/b.jpg\" is the file of sample {other} (key \"a/b.c\")"
        );
        assert_eq!(made.refusal("out.tar", Format::Tar), expected);
        made.export_some("part.tar", Format::Tar, &[number]).unwrap();
    }
    let error = pairs(&["b", "b.cls/z", "c"]).refusal("out.tar", Format::Tar);
    assert_eq!(error, "sample 1 (key \"b.cls/z\"): its folder \"b.cls\" is the file of sample 0 (key \"b\")");
    pairs(&["a/b.c", "a/b.jpg/z"]).export("out.tar", Format::Tar).unwrap();
}
