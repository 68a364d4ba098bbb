//! Samples with the content of another one are skipped: as many as a simple model says, and the same ones.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::Path;

use grainstore_converters::{
    AdoptOptions, ConvertOptions, NoEvents, OnDuplicate, Order, SameContent, adopt, append, convert,
};
use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_sources::dataset::{DatasetOptions, DatasetSource};
use grainstore_sources::folder::{FolderLabels, FolderOptions, FolderSource};
use grainstore_sources::list::ListSource;
use grainstore_sources::{SourceOptions, open_source};
use grainstore_store::Dataset;
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};
use proptest::prelude::*;

use crate::stored::{Shelf, Stored, files, in_order, stored};

const DEDUPE: fn(ConvertOptions) -> ConvertOptions = |options| ConvertOptions { skip_same_content: true, ..options };

/// A sample of two fields, of which the second one may be missing.
#[derive(Clone, Debug)]
struct Row {
    key: String,
    label: i64,
    fields: [Option<Vec<u8>>; 2],
}

impl Row {
    fn sample(&self) -> Sample {
        let mut payload = Vec::new();
        let mut fields = Vec::new();
        for field in &self.fields {
            fields.push(field.as_ref().map(|bytes| {
                let start = payload.len() as u64;
                payload.extend(bytes);
                start..payload.len() as u64
            }));
        }
        let attributes = vec![Some(AttributeValue::Int(self.label))];
        Sample { key: self.key.clone().into_bytes(), attributes, payload, fields }
    }

    fn stored(&self) -> Stored {
        Stored {
            key: Some(self.key.clone()),
            attributes: vec![Some(AttributeValue::Int(self.label))],
            fields: self.fields.to_vec(),
        }
    }
}

/// Number of the key, label, and the two fields.
type MadeRow = (u8, i64, Vec<u8>, Option<Vec<u8>>);

/// Few different bytes and lengths, so that contents repeat, and bytes that are divided otherwise are equal.
fn row() -> impl Strategy<Value = MadeRow> {
    // Long enough to be compressed.
    let bytes = || "[ab]{0,2}".prop_map(|text| text.bytes().flat_map(|byte| [byte; 30]).collect::<Vec<_>>());
    (0..30_u8, 0..3_i64, bytes(), proptest::option::of(bytes()))
}

/// The rows of a dataset, which has every key once.
fn rows(prefix: &str, made: Vec<MadeRow>) -> Vec<Row> {
    let mut rows = BTreeMap::new();
    for (number, label, first, second) in made {
        let key = format!("{prefix}{number:02}");
        rows.insert(number, Row { key, label, fields: [Some(first), second] });
    }
    rows.into_values().collect()
}

fn dataset(path: &Path, rows: &[Row], compression: Compression) {
    let attributes = vec![Attribute { name: "label".into(), kind: AttributeType::Int64 }];
    let fields = ["image", "text"].map(|name| Field { name: name.into(), kind: FieldType::Bytes }).to_vec();
    let metadata = Metadata { schema: Schema::new(attributes, fields).unwrap(), user: UserMetadata::default() };
    let options = WriterOptions { segment_size: 400, compression, ..WriterOptions::with_metadata(metadata) };
    let mut writer = DatasetWriter::create(path, options).unwrap();
    rows.iter().for_each(|row| writer.write(row.sample()).unwrap());
    writer.finish().unwrap();
}

/// The rows that stay, found in the simplest way: keys first.
fn kept_by_key(all: &[Row], on_duplicate: OnDuplicate) -> Vec<Row> {
    let is_kept = |(number, row): &(usize, &Row)| match on_duplicate {
        OnDuplicate::Error => true,
        OnDuplicate::First => !all[..*number].iter().any(|other| other.key == row.key),
        OnDuplicate::Last => !all[number + 1..].iter().any(|other| other.key == row.key),
    };
    all.iter().enumerate().filter(is_kept).map(|(_, row)| row.clone()).collect()
}

/// And of these one of each content.
fn kept_by_content(all: &[Row]) -> (Vec<Row>, SameContent) {
    let mut kept: Vec<Row> = Vec::new();
    let mut count = SameContent::default();
    for row in all {
        match kept.iter().find(|other| other.fields == row.fields) {
            None => kept.push(row.clone()),
            Some(first) => {
                count.samples += 1;
                count.with_other_attributes += u64::from(first.label != row.label);
            }
        }
    }
    (kept, count)
}

fn by_key(mut samples: Vec<Stored>) -> Vec<Stored> {
    samples.sort_by(|one, other| one.key.cmp(&other.key));
    samples
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn one_of_each_content_stays_after_one_of_each_key(
        one in proptest::collection::vec(row(), 1..40), other in proptest::collection::vec(row(), 1..40),
        which in 0..3_usize, limit in proptest::option::of(1..30_usize), seed in any::<u64>(),
    ) {
        let on_duplicate = [OnDuplicate::Error, OnDuplicate::First, OnDuplicate::Last][which];
        let shelf = Shelf::new();
        let paths = ["one", "other"].map(|name| shelf.path(name));
        let parts = [rows("a", one), rows(if on_duplicate == OnDuplicate::Error { "b" } else { "a" }, other)];
        paths.iter().zip(&parts).for_each(|(path, rows)| dataset(path, rows, Compression::None));
        let source = DatasetSource::open(&paths, &DatasetOptions::default()).unwrap();
        let all = parts.concat();
        let distinct = kept_by_key(&all, on_duplicate);
        let (kept, count) = kept_by_content(&distinct);

        let options = DEDUPE(ConvertOptions { on_duplicate, limit: limit.map(|limit| limit as u64), ..in_order() });
        let made = shelf.path("made");
        let summary = convert(&source, &made, &options, &NoEvents).unwrap();
        prop_assert_eq!(summary.duplicate_count, (all.len() - distinct.len()) as u64);
        prop_assert_eq!(summary.same_content, count);
        let limited = kept.iter().take(limit.unwrap_or(usize::MAX));
        prop_assert_eq!(stored(&made), limited.map(Row::stored).collect::<Vec<_>>());

        let shuffled = ConvertOptions { order: Order::Shuffled { seed }, limit: None, ..options };
        for jobs in [1, 5] {
            let options = ConvertOptions { jobs: NonZeroUsize::new(jobs), ..shuffled.clone() };
            prop_assert_eq!(convert(&source, &shelf.path(&format!("{jobs}")), &options, &NoEvents).unwrap().same_content, count);
        }
        prop_assert_eq!(by_key(stored(&shelf.path("1"))), by_key(kept.iter().map(Row::stored).collect()));
        prop_assert!(files(&shelf.path("1")).into_values().eq(files(&shelf.path("5")).into_values()));
    }

    #[test]
    fn contents_that_a_dataset_holds_are_not_added(
        base in proptest::collection::vec(row(), 1..30), added in proptest::collection::vec(row(), 1..40),
        first in any::<bool>(), packed in any::<bool>(),
    ) {
        let shelf = Shelf::new();
        let (path, other) = (shelf.path("d"), shelf.path("other"));
        let (base, added) = (rows("a", base), rows(if first { "a" } else { "b" }, added));
        dataset(&path, &base, if packed { Compression::Lz4 } else { Compression::None });
        dataset(&other, &added, Compression::None);
        let source = DatasetSource::open(&[other], &DatasetOptions::default()).unwrap();
        let distinct: Vec<Row> = added.iter().filter(|row| !base.iter().any(|old| old.key == row.key)).cloned().collect();
        let (new, stored_before): (Vec<Row>, Vec<Row>) =
            distinct.iter().cloned().partition(|row| !base.iter().any(|old| old.fields == row.fields));
        let is_relabelled = |row: &&Row| base.iter().find(|old| old.fields == row.fields).unwrap().label != row.label;
        let (kept, mut count) = kept_by_content(&new);
        count.samples += stored_before.len() as u64;
        count.with_other_attributes += stored_before.iter().filter(is_relabelled).count() as u64;

        let on_duplicate = if first { OnDuplicate::First } else { OnDuplicate::Error };
        let options = DEDUPE(ConvertOptions { on_duplicate, ..in_order() });
        match append(&source, &path, &options, &NoEvents) {
            Ok(summary) => prop_assert_eq!(summary.same_content, count),
            Err(error) => prop_assert!(error.is_nothing_to_add() && kept.is_empty()),
        }
        prop_assert_eq!(stored(&path), base.iter().chain(&kept).map(Row::stored).collect::<Vec<_>>());
    }

    #[test]
    fn files_and_rows_without_keys_are_compared_too(contents in proptest::collection::vec("[ab]{0,3}", 1..50)) {
        let shelf = Shelf::new();
        let mut kept: Vec<&String> = Vec::new();
        let mut firsts = HashMap::new();
        let mut list = "path,offset,length,label\n".to_owned();
        let mut bytes = String::new();
        for (number, content) in contents.iter().enumerate() {
            shelf.put(&format!("folder/{number:03}"), content);
            list += &format!("bytes,{},{},{number}\n", bytes.len(), content.len());
            bytes += content;
            firsts.entry(content).or_insert_with(|| {
                kept.push(content);
                number
            });
        }
        shelf.put("bytes", bytes);
        let list = ListSource::open(&[shelf.put("list.csv", list)]).unwrap();
        let unlabelled = FolderOptions { folder_labels: FolderLabels::Ignored, ..FolderOptions::default() };
        let folder = FolderSource::open(&shelf.path("folder"), &unlabelled).unwrap();
        let skipped = (contents.len() - kept.len()) as u64;
        let payloads: Vec<_> = kept.iter().map(|content| vec![Some(content.as_bytes().to_vec())]).collect();

        let summary = convert(&folder, &shelf.path("a"), &DEDUPE(in_order()), &NoEvents).unwrap();
        prop_assert_eq!(summary.same_content, SameContent { samples: skipped, with_other_attributes: 0 });
        let stored_samples = stored(&shelf.path("a"));
        prop_assert_eq!(stored_samples.iter().map(|sample| sample.fields.clone()).collect::<Vec<_>>(), payloads.clone());
        let keys = kept.iter().map(|content| Some(format!("{:03}", firsts[content])));
        prop_assert!(stored_samples.into_iter().map(|sample| sample.key).eq(keys));

        // Every label is another one.
        let summary = convert(&list, &shelf.path("b"), &DEDUPE(in_order()), &NoEvents).unwrap();
        prop_assert_eq!(summary.same_content, SameContent { samples: skipped, with_other_attributes: skipped });
        prop_assert_eq!(stored(&shelf.path("b")).into_iter().map(|sample| sample.fields).collect::<Vec<_>>(), payloads);
    }
}

/// The second sample has the content of the last one, and gives way to the third for its key.
#[test]
fn a_sample_skipped_for_its_key_makes_no_other_a_duplicate() {
    let shelf = Shelf::new();
    let row = |key: &str, text: &str| Row { key: key.into(), label: 0, fields: [Some(text.into()), None] };
    dataset(&shelf.path("one"), &[row("a", "x"), row("b", "y")], Compression::None);
    dataset(&shelf.path("other"), &[row("b", "z"), row("c", "y")], Compression::None);
    let paths = ["one", "other"].map(|name| shelf.path(name));
    let source = DatasetSource::open(&paths, &DatasetOptions::default()).unwrap();
    let options = DEDUPE(ConvertOptions { on_duplicate: OnDuplicate::Last, ..in_order() });
    let summary = convert(&source, &shelf.path("made"), &options, &NoEvents).unwrap();
    assert_eq!((summary.duplicate_count, summary.same_content.samples), (1, 0));
    assert_eq!(stored(&shelf.path("made")), [row("a", "x"), row("b", "z"), row("c", "y")].map(|row| row.stored()));
}

/// What an adopted file has between fields is no content.
#[test]
fn contents_of_adopted_files_are_not_added() {
    let shelf = Shelf::new();
    let tar = shelf.put_fixture("tar/webdataset.tar", "a.tar");
    let source = open_source(&[tar], &SourceOptions::default()).unwrap();
    let path = shelf.path("d");
    adopt(source.as_ref(), &path, &AdoptOptions::default(), &NoEvents).unwrap();
    let error = append(source.as_ref(), &path, &DEDUPE(in_order()), &NoEvents).unwrap_err();
    assert!(error.is_nothing_to_add(), "{error}");
    assert!(error.to_string().ends_with("every sample has content that is stored already"), "{error}");
}

#[test]
fn a_damaged_sample_is_no_match() {
    let shelf = Shelf::new();
    let row = |key: &str, text: &str| Row { key: key.into(), label: 0, fields: [Some(text.into()), None] };
    let path = shelf.path("d");
    dataset(&path, &[row("a", "one"), row("b", "two")], Compression::None);
    dataset(&shelf.path("other"), &[row("c", "one"), row("d", "two")], Compression::None);
    let opened = Dataset::open(&path).unwrap();
    let segment = opened.segments()[0].path().to_owned();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[usize::try_from(opened.locate(0).unwrap().offset).unwrap()] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let source = DatasetSource::open(&[shelf.path("other")], &DatasetOptions::default()).unwrap();
    let summary = append(&source, &path, &DEDUPE(in_order()), &NoEvents).unwrap();
    assert_eq!((summary.written.samples, summary.same_content.samples), (1, 1));
    assert_eq!(Dataset::open(&path).unwrap().key(2).unwrap().unwrap(), b"c");
}
