//! Datasets as sources: what they hold survives, and what is chosen, renamed or left out is all that changes.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::cell::Cell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_converters::{
    ConvertError, ConvertOptions, ConvertSummary, Events, NoEvents, OnDuplicate, OnKept, Order, Progress, append,
    convert,
};
use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Remedy, Schema, UserMetadata,
};
use grainstore_sources::dataset::{DatasetOptions, DatasetSource};
use grainstore_sources::{SourceError, SourceOptions, WHOLE_LEN_MAX, open_source};
use grainstore_writer::{AppendOptions, Compression, DatasetWriter, Removal, Sample, StreamedSample, WriterOptions};
use serde_json::json;

use crate::stored::{Shelf, Stored, files, in_order, keys, stored};

type Attributes = [(&'static str, AttributeType)];

const KINDS: &Attributes = &[
    ("label", AttributeType::Int64),
    ("score", AttributeType::Float32),
    ("good", AttributeType::Bool),
    ("city", AttributeType::Category),
];

fn schema(attributes: &Attributes, fields: &[&str]) -> Schema {
    let attributes =
        attributes.iter().map(|(name, kind)| Attribute { name: (*name).into(), kind: kind.clone() }).collect();
    let fields = fields.iter().map(|name| Field { name: (*name).into(), kind: FieldType::Bytes }).collect();
    Schema::new(attributes, fields).unwrap()
}

fn options(schema: Schema, user: serde_json::Value) -> WriterOptions {
    let user = UserMetadata::new(user.as_object().unwrap()).unwrap();
    WriterOptions { segment_size: 6000, ..WriterOptions::with_metadata(Metadata { schema, user }) }
}

/// A sample with all kinds of attributes and two fields, of which the second one may be missing.
fn sample(prefix: &str, number: u8) -> Sample {
    let first = vec![number; 40];
    let second = vec![!number; usize::from(number % 7)];
    let has_second = !number.is_multiple_of(3);
    let payload = if has_second { [first, second.clone()].concat() } else { first };
    Sample {
        key: format!("{prefix}{number:03}").into_bytes(),
        attributes: vec![
            Some(AttributeValue::Int(i64::from(number % 2))),
            (!number.is_multiple_of(5)).then(|| AttributeValue::Float32(f32::from(number) / 3.0)),
            Some(AttributeValue::Bool(number.is_multiple_of(4))),
            (!number.is_multiple_of(6)).then(|| AttributeValue::Category(format!("city {}", number % 3).into())),
        ],
        fields: vec![Some(0..40), has_second.then(|| 40..40 + second.len() as u64)],
        payload,
    }
}

/// A dataset of several segments.
fn dataset(shelf: &Shelf, prefix: &str, count: u8, classes: &[&str]) -> PathBuf {
    let path = shelf.path(&format!("{prefix}.grain"));
    let user = json!({"class_names": classes, "source": "made", "nested": {"a": [1, 2]}});
    let mut writer = DatasetWriter::create(&path, options(schema(KINDS, &["image", "text"]), user)).unwrap();
    (0..count).for_each(|number| writer.write(sample(prefix, number)).unwrap());
    assert!(count < 100 || writer.finish().unwrap().segments > 1);
    path
}

fn open(paths: &[&Path], options: &DatasetOptions) -> Result<DatasetSource, SourceError> {
    DatasetSource::open(&paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>(), options)
}

fn repack(paths: &[&Path], options: &DatasetOptions, made: &Path) -> Result<ConvertSummary, ConvertError> {
    convert(&open(paths, options)?, made, &in_order(), &NoEvents)
}

fn metadata(path: &Path) -> (Schema, serde_json::Value) {
    let dataset = grainstore_store::Dataset::open(path).unwrap();
    (dataset.schema().clone(), serde_json::from_str(dataset.user_metadata().text()).unwrap())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// FPR-3
#[test]
fn a_source_whose_last_segment_gave_its_name_to_another_is_refused() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 200, &["cat", "dog"]);
    let source = open(&[&old], &DatasetOptions::default()).unwrap();
    let before = grainstore_store::Dataset::open(&old).unwrap();
    let last = before.segments().last().unwrap();
    let gone: Vec<u64> = last.ordinals().collect();
    Removal::begin(&old).unwrap().remove(&gone, false, &mut |_| ControlFlow::Continue(())).unwrap();
    let mut writer = DatasetWriter::append(&old, AppendOptions::default()).unwrap();
    for number in gone {
        let mut other = sample("a", u8::try_from(number).unwrap());
        other.payload.iter_mut().for_each(|byte| *byte = !*byte);
        writer.write(other).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(std::fs::metadata(last.path()).unwrap().len(), last.file_len());
    let error = convert(&source, &shelf.path("made"), &in_order(), &NoEvents).unwrap_err();
    let file = last.path().display().to_string();
    assert!(error.to_string().contains(&format!("{file}: changed since the dataset was opened")), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::OpenAgain));
}

#[test]
fn a_dataset_packed_anew_holds_what_it_held() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 200, &["cat", "dog"]);
    let source = open_source(std::slice::from_ref(&old), &SourceOptions::default()).unwrap();
    assert_eq!(source.description().kind, "dataset");
    let lz4 = ConvertOptions { compression: Compression::Lz4, ..in_order() };
    for (name, options) in [("same", in_order()), ("packed", lz4)] {
        let made = shelf.path(name);
        assert_eq!(convert(source.as_ref(), &made, &options, &NoEvents).unwrap().written.samples, 200);
        assert_eq!(stored(&made), stored(&old));
        assert_eq!(metadata(&made), metadata(&old));
        // And from there, which has one segment and may be compressed.
        let again = shelf.path(&format!("{name} again"));
        repack(&[&made], &DatasetOptions::default(), &again).unwrap();
        assert_eq!(stored(&again), stored(&old));
    }
    let shuffled = shelf.path("shuffled");
    convert(
        source.as_ref(),
        &shuffled,
        &ConvertOptions { order: Order::Shuffled { seed: 3 }, ..in_order() },
        &NoEvents,
    )
    .unwrap();
    let by_key = |path: &Path| {
        let mut samples = stored(path);
        samples.sort_by(|one, other| one.key.cmp(&other.key));
        samples
    };
    assert_ne!(keys(&shuffled), keys(&old));
    assert_eq!(by_key(&shuffled), by_key(&old));
    let segment = std::fs::read_dir(&shuffled).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap();
    let lone = open_source(&[segment], &SourceOptions::default()).unwrap();
    assert_eq!(lone.description().parts[0].sample_count, Some(200));
}

#[test]
fn samples_and_names_are_chosen_renamed_and_left_out() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let made = shelf.path("made");
    let options = DatasetOptions {
        map: "picture=image".parse().unwrap(),
        exclude: names(&["score", "text"]),
        subset: Some("label == 1 and ordinal < 50".parse().unwrap()),
        ..DatasetOptions::default()
    };
    assert_eq!(repack(&[&old], &options, &made).unwrap().written.samples, 25);
    let (schema, user) = metadata(&made);
    assert_eq!(
        schema.attributes().iter().map(|item| item.name.as_str()).collect::<Vec<_>>(),
        ["label", "good", "city"]
    );
    assert_eq!(schema.fields().iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["picture"]);
    assert_eq!(user, metadata(&old).1);
    let expected: Vec<Stored> = stored(&old)
        .into_iter()
        .filter(|sample| sample.attributes[0] == Some(AttributeValue::Int(1)) && sample.key.as_deref() < Some("a050"))
        .map(|sample| {
            let [label, _, good, city] = sample.attributes.try_into().unwrap();
            let fields = sample.fields.into_iter().take(1).collect();
            Stored { attributes: vec![label, good, city], fields, ..sample }
        })
        .collect();
    assert_eq!(stored(&made), expected);
    let only = DatasetOptions { only: names(&["text", "image", "city"]), ..DatasetOptions::default() };
    let other = shelf.path("other");
    repack(&[&old], &only, &other).unwrap();
    assert_eq!(metadata(&other).0.attributes().len(), 1);
    assert_eq!(stored(&other)[5].fields, stored(&old)[5].fields);
}

#[test]
fn names_and_conditions_that_do_not_suit_are_refused() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let refused = |options: DatasetOptions| open(&[&old], &options).unwrap_err().to_string();
    let unknown = refused(DatasetOptions { exclude: names(&["scor"]), ..DatasetOptions::default() });
    assert!(unknown.contains("no attribute or field \"scor\" (there are: city, good, image"), "{unknown}");
    let nothing = refused(DatasetOptions { only: names(&["score"]), ..DatasetOptions::default() });
    assert!(nothing.contains("no field is left"), "{nothing}");
    let twice = refused(DatasetOptions { map: "text=image".parse().unwrap(), ..DatasetOptions::default() });
    assert!(twice.contains("text"), "{twice}");
    let key = refused(DatasetOptions { map: "key=city".parse().unwrap(), ..DatasetOptions::default() });
    assert!(key.contains("keep the keys"), "{key}");
    let none = refused(DatasetOptions { subset: Some("label > 7".parse().unwrap()), ..DatasetOptions::default() });
    assert!(none.ends_with("there is no sample that meets label > 7"), "{none}");
    assert!(
        refused(DatasetOptions { subset: Some("size > 7".parse().unwrap()), ..DatasetOptions::default() })
            .contains("size")
    );
}

#[test]
fn datasets_are_merged_and_their_classes_renumbered() {
    let shelf = Shelf::new();
    let one = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let other = dataset(&shelf, "b", 100, &["dog", "emu"]);
    let made = shelf.path("made");
    assert_eq!(repack(&[&one, &other], &DatasetOptions::default(), &made).unwrap().written.samples, 200);
    assert_eq!(metadata(&made).1["class_names"], json!(["cat", "dog", "emu"]));
    assert_eq!(metadata(&made).1["nested"], json!({"a": [1, 2]}));
    let (first, second): (Vec<_>, Vec<_>) =
        stored(&made).into_iter().partition(|sample| sample.key.as_deref() < Some("b"));
    assert_eq!(first, stored(&one));
    let renumbered = |mut sample: Stored| {
        let Some(AttributeValue::Int(label)) = &mut sample.attributes[0] else { panic!("no label") };
        *label += 1;
        sample
    };
    assert_eq!(second, stored(&other).into_iter().map(renumbered).collect::<Vec<_>>());
}

/// `class_names` are of `label`, and `NAME_names` of any other attribute.
#[test]
fn names_go_with_their_attribute_whatever_it_is_called() {
    let shelf = Shelf::new();
    let renamed = |path: &Path, map: &str, name: &str| {
        let options = DatasetOptions { map: map.parse().unwrap(), ..DatasetOptions::default() };
        let made = shelf.path(name);
        repack(&[path], &options, &made).unwrap();
        made
    };
    let one = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let other = dataset(&shelf, "b", 100, &["dog", "emu"]);
    let one_renamed = renamed(&one, "target=label", "one");
    let other_renamed = renamed(&other, "target=label", "other");
    assert_eq!(metadata(&one_renamed).1["target_names"], json!(["cat", "dog"]));
    assert_eq!(metadata(&one_renamed).1.get("class_names"), None);

    let both = shelf.path("both");
    repack(&[&one, &other], &DatasetOptions::default(), &both).unwrap();
    let merged = shelf.path("merged");
    repack(&[&one_renamed, &other_renamed], &DatasetOptions::default(), &merged).unwrap();
    assert_eq!(metadata(&merged).1["target_names"], json!(["cat", "dog", "emu"]));
    assert_eq!(stored(&merged), stored(&both));
    append(&open(&[&other_renamed], &DatasetOptions::default()).unwrap(), &one_renamed, &in_order(), &NoEvents)
        .unwrap();
    assert_eq!((metadata(&one_renamed).1, stored(&one_renamed)), (metadata(&merged).1, stored(&both)));
    let back = renamed(&merged, "label=target", "back");
    assert_eq!((metadata(&back), stored(&back)), (metadata(&both), stored(&both)));

    // `class` could have `class_names`, too.
    let beside = renamed(&one, "class=good", "beside");
    assert_eq!(metadata(&beside).1["class_names"], json!(["cat", "dog"]));
    let other_beside = renamed(&other, "class=good", "other beside");
    let merged = shelf.path("merged beside");
    repack(&[&beside, &other_beside], &DatasetOptions::default(), &merged).unwrap();
    assert_eq!(stored(&merged), stored(&both), "`good` is no number of a class");

    let swapped = renamed(&one, "old=label,label=good", "swapped");
    assert_eq!(metadata(&swapped).1["old_names"], json!(["cat", "dog"]));
    assert_eq!(metadata(&swapped).1.get("class_names"), None, "they are not the names of what is label now");
}

#[test]
fn names_of_an_unknown_attribute_and_numbers_without_names_are_refused() {
    let shelf = Shelf::new();
    let make = |name: &str, attribute: &'static str, user: serde_json::Value| {
        let path = shelf.path(name);
        let mut writer =
            DatasetWriter::create(&path, options(schema(&[(attribute, AttributeType::Int8)], &["image"]), user))
                .unwrap();
        let attributes = vec![Some(AttributeValue::Int(1))];
        let sample = Sample { key: name.as_bytes().to_vec(), attributes, payload: vec![1], fields: vec![Some(0..1)] };
        writer.write(sample).unwrap();
        writer.finish().unwrap();
        path
    };
    let one = make("one", "target", json!({"class_names": ["cat", "dog"]}));
    let other = make("other", "target", json!({"class_names": ["dog", "cat"]}));
    let error = open(&[&one, &other], &DatasetOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no attribute is \"label\""), "{error}");
    let single = |path: &Path| open(&[path], &DatasetOptions::default()).unwrap();
    let error = append(&single(&other), &one, &in_order(), &NoEvents).unwrap_err().to_string();
    assert!(error.contains("no attribute is \"label\""), "{error}");
    let named = make("named", "label", json!({"class_names": ["cat", "dog"]}));
    let unnamed = make("unnamed", "label", json!({}));
    let error = append(&single(&unnamed), &named, &in_order(), &NoEvents).unwrap_err().to_string();
    assert!(error.contains("the new samples' numbers of \"label\" have no names"), "{error}");
    assert_eq!(stored(&named).len(), 1);
}

#[test]
fn datasets_that_disagree_are_refused_with_the_difference() {
    let shelf = Shelf::new();
    let one = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let other = shelf.path("other.grain");
    let attributes: &Attributes = &[("label", AttributeType::Int32), ("good", AttributeType::Bool)];
    let writing = options(schema(attributes, &["image", "sound"]), json!({}));
    let mut writer = DatasetWriter::create(&other, writing).unwrap();
    let attributes = vec![Some(AttributeValue::Int(0)), None];
    writer.write(Sample { key: b"x".to_vec(), attributes, payload: vec![1], fields: vec![Some(0..1), None] }).unwrap();
    writer.finish().unwrap();
    let error = open(&[&one, &other], &DatasetOptions::default()).unwrap_err().to_string();
    for part in [
        "its attribute \"label\" is int32, that of ",
        "it has no attribute \"score\" (float32)",
        "it has no field \"text\" (bytes)",
        "it has the field \"sound\" (bytes)",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let agreed = DatasetOptions { only: names(&["good", "image"]), ..DatasetOptions::default() };
    assert_eq!(repack(&[&one, &other], &agreed, &shelf.path("made")).unwrap().written.samples, 101);
}

#[test]
fn keys_that_two_datasets_have_are_handled_as_asked() {
    let shelf = Shelf::new();
    let one = dataset(&shelf, "a", 100, &["cat"]);
    let source = open(&[&one, &one], &DatasetOptions::default()).unwrap();
    let error = convert(&source, &shelf.path("made"), &in_order(), &NoEvents).unwrap_err();
    assert!(error.to_string().contains("duplicate key \"a0"), "{error}");
    let first = ConvertOptions { on_duplicate: OnDuplicate::First, ..in_order() };
    let summary = convert(&source, &shelf.path("first"), &first, &NoEvents).unwrap();
    assert_eq!((summary.written.samples, summary.duplicate_count), (100, 100));
}

#[test]
fn a_dataset_is_appended_to_another_one() {
    let shelf = Shelf::new();
    let one = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let other = dataset(&shelf, "b", 100, &["dog", "emu"]);
    let odd = DatasetOptions { subset: Some("label == 1".parse().unwrap()), ..DatasetOptions::default() };
    append(&open(&[&other], &odd).unwrap(), &one, &in_order(), &NoEvents).unwrap();
    let samples = stored(&one);
    assert_eq!(samples.len(), 150);
    assert_eq!(samples[149].attributes[0], Some(AttributeValue::Int(2)));
    assert_eq!(metadata(&one).1["class_names"], json!(["cat", "dog", "emu"]));
}

/// Stops after some samples.
struct Stopping(Cell<u64>);

impl Events for Stopping {
    fn on_progress(&self, _: Progress) {
        self.0.set(self.0.get().saturating_sub(1));
    }

    fn cancelled(&self) -> bool {
        self.0.get() == 0
    }
}

#[test]
fn an_interrupted_repacking_resumes_with_the_same_bytes() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 250, &["cat", "dog"]);
    let options = DatasetOptions { subset: Some("ordinal >= 10".parse().unwrap()), ..DatasetOptions::default() };
    let shuffled = ConvertOptions {
        order: Order::Shuffled { seed: 1 },
        segment_size: 5000,
        on_kept: OnKept::Resume,
        ..in_order()
    };
    let whole = shelf.path("whole");
    convert(&open(&[&old], &options).unwrap(), &whole, &shuffled, &NoEvents).unwrap();
    let resumed = shelf.path("resumed");
    let mut stops = 0;
    let summary = loop {
        let stopping = Stopping(Cell::new(if stops == 0 { 180 } else { u64::MAX }));
        match convert(&open(&[&old], &options).unwrap(), &resumed, &shuffled, &stopping) {
            Ok(summary) => break summary,
            Err(error) => assert!(matches!(error, ConvertError::Interrupted), "{error}"),
        }
        stops += 1;
    };
    assert_eq!(stops, 1);
    assert_eq!(summary.written.samples, 240);
    let by_name = |path: &Path| -> Vec<(OsString, Vec<u8>)> {
        files(path).into_iter().map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes)).collect()
    };
    assert!(by_name(&resumed) == by_name(&whole));
}

#[test]
fn samples_that_are_too_long_for_memory_are_streamed_and_checked() {
    let shelf = Shelf::new();
    let path = shelf.path("long.grain");
    let writing = WriterOptions { segment_size: 1 << 30, ..options(schema(&[], &["head", "body"]), json!({})) };
    let mut writer = DatasetWriter::create(&path, writing).unwrap();
    let len = WHOLE_LEN_MAX + 4099;
    let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let fields = vec![Some(0..10), Some(10..len)];
    let long = StreamedSample { key: b"long".to_vec(), attributes: Vec::new(), fields, len };
    writer.write_stream(&long, &mut bytes.as_slice()).unwrap();
    writer.finish().unwrap();
    let whole = shelf.path("whole");
    repack(&[&path], &DatasetOptions::default(), &whole).unwrap();
    assert!(stored(&whole) == stored(&path));
    let tail = shelf.path("tail");
    repack(&[&path], &DatasetOptions { only: names(&["body"]), ..DatasetOptions::default() }, &tail).unwrap();
    assert!(stored(&tail)[0].fields[0].as_deref() == Some(&bytes[10..]));

    let segment = path.join("00000.seg");
    let file = std::fs::OpenOptions::new().write(true).open(segment).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"damage", 1 << 20).unwrap();
    for (name, only) in [("x", &[][..]), ("y", &["body"])] {
        let options = DatasetOptions { only: names(only), ..DatasetOptions::default() };
        let error = repack(&[&path], &options, &shelf.path(name)).unwrap_err();
        assert!(error.to_string().contains("CRC-32"), "{error}");
    }
}

#[test]
fn a_damaged_sample_is_not_packed() {
    let shelf = Shelf::new();
    let old = dataset(&shelf, "a", 100, &["cat", "dog"]);
    let file = std::fs::OpenOptions::new().write(true).open(old.join("00000.seg")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"damage", 4100).unwrap();
    let error = repack(&[&old], &DatasetOptions::default(), &shelf.path("made")).unwrap_err();
    assert!(error.to_string().contains("00000.seg: record 0 at byte 4096: CRC-32"), "{error}");
    let skipping = ConvertOptions { on_bad: grainstore_converters::OnBad::Skip, ..in_order() };
    let source = open(&[&old], &DatasetOptions::default()).unwrap();
    let summary = convert(&source, &shelf.path("made"), &skipping, &NoEvents).unwrap();
    assert_eq!((summary.written.samples, summary.skipped.len()), (99, 1));
}
