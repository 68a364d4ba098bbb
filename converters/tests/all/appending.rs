//! Adding to a dataset: new samples come after those that were there, and a failure leaves the dataset unchanged.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::cell::Cell;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use grainstore_converters::{
    ConvertError, ConvertOptions, ConvertSummary, Events, NoEvents, OnBad, OnDuplicate, Progress, append,
};
use grainstore_format::AttributeValue::{self, Int};
use grainstore_reader::{EpochOptions, EpochState, Reader, ReaderOptions};
use grainstore_sources::Source;
use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_sources::list::ListSource;
use grainstore_sources::stream::{StreamFormat, StreamSource};
use grainstore_sources::tar::TarOptions;
use grainstore_store::Dataset;
use grainstore_writer::WriteError;

use crate::stored::{Shelf, Stored, check_all, files, in_order, keys, pack, stored};

const FIRST: ConvertOptionsOf = |options| ConvertOptions { on_duplicate: OnDuplicate::First, ..options };
const SKIPPING: ConvertOptionsOf = |options| ConvertOptions { on_bad: OnBad::Skip, ..options };

type ConvertOptionsOf = fn(ConvertOptions) -> ConvertOptions;

/// A shelf with `x.grain`, packed from a source.
fn grown_from(make: impl Fn(&Shelf) -> Box<dyn Source>) -> (Shelf, PathBuf) {
    let shelf = Shelf::new();
    let dataset = shelf.path("x.grain");
    pack(make(&shelf).as_ref(), &dataset).unwrap();
    (shelf, dataset)
}

fn add(source: &dyn Source, dataset: &Path) -> Result<ConvertSummary, ConvertError> {
    append(source, dataset, &in_order(), &NoEvents)
}

/// The error for samples that are not added; the dataset is unchanged.
fn refusal(source: &dyn Source, dataset: &Path, options: &ConvertOptions) -> String {
    let before = files(dataset);
    let error = append(source, dataset, options, &NoEvents).unwrap_err();
    assert!(files(dataset) == before);
    error.to_string()
}

/// `name`, a folder with these files.
fn folder(shelf: &Shelf, name: &str, paths: &[&str]) -> FolderSource {
    paths.iter().for_each(|path| drop(shelf.put(&format!("{name}/{path}"), format!("bytes of {path}"))));
    FolderSource::open(&shelf.path(name), &FolderOptions::default()).unwrap()
}

/// A list of samples of one byte, with these columns after the offset: `key,label` and `a,1`.
fn list(shelf: &Shelf, columns: &str, rows: &[&str]) -> ListSource {
    shelf.put("bytes", (0..=255).collect::<Vec<u8>>());
    let row = |(offset, row): (usize, &&str)| format!("bytes,1,{offset},{row}\n");
    let rows: String = rows.iter().enumerate().map(row).collect();
    ListSource::open(&[shelf.put("list.csv", format!("path,length,offset,{columns}\n{rows}"))]).unwrap()
}

fn labels(samples: &[Stored]) -> Vec<(&str, Option<AttributeValue>)> {
    samples.iter().map(|sample| (sample.key.as_deref().unwrap(), sample.attributes[0].clone())).collect()
}

fn user(dataset: &Path, name: &str) -> serde_json::Value {
    Dataset::open(dataset).unwrap().user_metadata().member(name).unwrap().unwrap()
}

#[test]
fn new_classes_come_after_the_old_ones_and_labels_are_renumbered() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(folder(shelf, "1", &["cat/1", "dog/1", "dog/2"])));
    let before = stored(&dataset);
    let summary = add(&folder(&shelf, "2", &["ant/1", "cat/2", "yak/1"]), &dataset).unwrap();
    assert_eq!((summary.written.samples, summary.duplicate_count), (3, 0));
    assert_eq!(user(&dataset, "class_names"), serde_json::json!(["cat", "dog", "ant", "yak"]));
    let after = stored(&dataset);
    assert!(after[..3] == before);
    assert_eq!(labels(&after[3..]), [("ant/1", Some(Int(2))), ("cat/2", Some(Int(0))), ("yak/1", Some(Int(3)))]);
    assert_eq!(after[4].fields, [Some(b"bytes of cat/2".to_vec())]);
    add(&folder(&shelf, "3", &["yak/2"]), &dataset).unwrap();
    assert_eq!(labels(&stored(&dataset)[6..]), [("yak/2", Some(Int(3)))]);
    assert_eq!(user(&dataset, "class_names"), serde_json::json!(["cat", "dog", "ant", "yak"]));
    check_all(&dataset);
}

/// The numbers of folders have names as classes have.
#[test]
fn splits_are_renumbered_as_classes_are() {
    let both = |shelf: &Shelf, names: [&str; 2], file: &str| {
        for name in names {
            shelf.put(&format!("{file}/{name}/{file}"), name);
        }
        let roots = names.map(|name| shelf.path(&format!("{file}/{name}")));
        FolderSource::open_all(&roots, &FolderOptions::default()).unwrap()
    };
    let (shelf, dataset) = grown_from(|shelf| Box::new(both(shelf, ["train", "val"], "a")));
    add(&both(&shelf, ["test", "train"], "b"), &dataset).unwrap();
    assert_eq!(user(&dataset, "split_names"), serde_json::json!(["train", "val", "test"]));
    let after = stored(&dataset);
    let expected = [("train/a", 0), ("val/a", 1), ("test/b", 2), ("train/b", 0)];
    assert_eq!(labels(&after), expected.map(|(key, split)| (key, Some(Int(split)))));
}

#[test]
fn numbers_without_names_are_those_of_the_dataset_and_others_are_bad() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(list(shelf, "key,label", &["a,cat", "b,dog"])));
    let numbered = list(&shelf, "key,label", &["c,1", "d,2", "e,-1", "f,", "g,0", "h,-2"]);
    let why = refusal(&numbered, &dataset, &in_order());
    assert!(why.contains("\"d\": its label is 2, and there are 2 names"), "{why}");
    let summary = append(&numbered, &dataset, &SKIPPING(in_order()), &NoEvents).unwrap();
    assert_eq!((summary.written.samples, summary.skipped.len()), (4, 2));
    assert!(summary.skipped[1].why.text.contains("\"h\": its label is -2"), "{:?}", summary.skipped);
    let expected = [("c", Some(Int(1))), ("e", Some(Int(-1))), ("f", None), ("g", Some(Int(0)))];
    assert_eq!(labels(&stored(&dataset)[2..]), expected);
    assert_eq!(user(&dataset, "class_names"), serde_json::json!(["cat", "dog"]));
}

#[test]
fn names_for_numbers_that_have_none_are_refused() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(list(shelf, "key,label", &["a,0", "b,1"])));
    let why = refusal(&list(&shelf, "key,label", &["c,cat"]), &dataset, &in_order());
    assert!(why.contains("its numbers of \"label\" have no names (class_names of the user metadata)"), "{why}");
    add(&list(&shelf, "key,label", &["c,700"]), &dataset).unwrap();
    assert_eq!(labels(&stored(&dataset)[2..]), [("c", Some(Int(700)))]);
}

#[test]
fn another_schema_is_refused_and_both_are_named() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(folder(shelf, "1", &["a", "b"])));
    let why = refusal(&folder(&shelf, "2", &["cat/1"]), &dataset, &in_order());
    let expected = "another schema: the new samples have attribute \"label\" (int64), it does not";
    assert!(why.ends_with(expected), "{why}");
    let why = refusal(&list(&shelf, "key,x", &["a,1"]), &dataset, &in_order());
    assert!(why.contains("attribute \"x\" (int64)"), "{why}");
}

#[test]
fn samples_with_keys_and_samples_without_are_not_mixed() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(list(shelf, "key,x", &["a,1"])));
    let why = refusal(&list(&shelf, "x", &["1"]), &dataset, &in_order());
    assert!(why.ends_with("its samples have keys, the new samples have none"), "{why}");
    let (shelf, dataset) = grown_from(|shelf| Box::new(list(shelf, "x", &["1"])));
    let why = refusal(&list(&shelf, "key,x", &["a,1"]), &dataset, &in_order());
    assert!(why.ends_with("the new samples have keys, its samples have none"), "{why}");
    add(&list(&shelf, "x", &["1", "1"]), &dataset).unwrap();
    assert_eq!(stored(&dataset).len(), 3);
}

#[test]
fn a_key_that_exists_already_is_an_error_or_skipped() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(list(shelf, "key,x", &["a,1", "b,2", "c,3"])));
    let new = list(&shelf, "key,x", &["d,4", "b,5", "e,6", "e,7"]);
    let before = files(&dataset);
    let error = add(&new, &dataset).unwrap_err();
    assert!(matches!(&error, ConvertError::Write(WriteError::DuplicateKey { .. })), "{error}");
    assert!(files(&dataset) == before);
    let last = ConvertOptions { on_duplicate: OnDuplicate::Last, ..in_order() };
    assert!(refusal(&new, &dataset, &last).contains("samples are never replaced"));
    let summary = append(&new, &dataset, &FIRST(in_order()), &NoEvents).unwrap();
    assert_eq!((summary.written.samples, summary.duplicate_count), (2, 2));
    assert_eq!(keys(&dataset), ["a", "b", "c", "d", "e"]);
    assert_eq!(stored(&dataset)[1].attributes, [Some(Int(2))]);
    assert_eq!(stored(&dataset)[4].attributes, [Some(Int(6))]);
    check_all(&dataset);
    let why = refusal(&list(&shelf, "key,x", &["a,1", "e,6"]), &dataset, &FIRST(in_order()));
    assert!(why.ends_with("every sample has a key that is taken already"), "{why}");
}

#[test]
fn readers_and_states_from_before_continue() {
    let paths: Vec<String> = (0..90).map(|n| format!("{n:03}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (shelf, dataset) = grown_from(|shelf| Box::new(folder(shelf, "1", &paths)));
    let old = Reader::open(&dataset, ReaderOptions::default()).unwrap();
    let options = EpochOptions { seed: 3, batch_size: 8.try_into().unwrap(), ..EpochOptions::default() };
    let ordinals = |epoch: grainstore_reader::Epoch| -> Vec<u64> {
        epoch.flat_map(|batch| batch.unwrap().ordinals().to_vec()).collect()
    };
    let mut begun = old.epoch(&options).unwrap();
    let mut first: Vec<u64> = (0..3).flat_map(|_| begun.next_batch().unwrap().unwrap().ordinals().to_vec()).collect();
    let state: EpochState = begun.state().to_string().parse().unwrap();
    for (number, name) in ["new-a", "new-b", "new-c"].into_iter().enumerate() {
        add(&folder(&shelf, name, &[name]), &dataset).unwrap();
        let opened = Dataset::open(&dataset).unwrap();
        assert_eq!(opened.generation_of(opened.fingerprint()), Some(number + 1));
        assert_eq!(opened.generation_of(state.fingerprint()), Some(0));
        assert_eq!(opened.sample_count(), 91 + number as u64);
    }
    assert_eq!(old.collection().sample_count(), 90);
    assert_eq!(old.get(89).unwrap().payload, b"bytes of 089");
    let rest = ordinals(begun);
    let generation = Dataset::open(&dataset).unwrap().generation_of(state.fingerprint());
    let again = Reader::open(&dataset, ReaderOptions { generation, ..ReaderOptions::default() }).unwrap();
    assert_eq!(ordinals(again.epoch(&EpochOptions { resume: Some(state), ..options }).unwrap()), rest);
    first.extend(rest);
    first.sort_unstable();
    assert_eq!(first, (0..90).collect::<Vec<_>>());
    check_all(&dataset);
}

fn stream(records: &[(&str, &str)]) -> StreamSource {
    let record = |(key, payload): &(&str, &str)| {
        let key_len = u32::try_from(key.len()).unwrap().to_le_bytes();
        [&key_len[..], key.as_bytes(), &(payload.len() as u64).to_le_bytes(), payload.as_bytes()].concat()
    };
    let bytes: Vec<u8> = records.iter().flat_map(record).collect();
    StreamSource::open(Box::new(Cursor::new(bytes)), StreamFormat::Records, &TarOptions::default()).unwrap()
}

#[test]
fn a_stream_is_added_in_one_reading() {
    let (_shelf, dataset) = grown_from(|_| Box::new(stream(&[("a", "one"), ("b", "two")])));
    add(&stream(&[("c", "three"), ("d", "four")]), &dataset).unwrap();
    assert_eq!(keys(&dataset), ["a", "b", "c", "d"]);
    let why = refusal(&stream(&[("e", "x"), ("b", "y")]), &dataset, &in_order());
    assert!(why.contains("duplicate key \"b\""), "{why}");
    let why = refusal(&stream(&[("e", "x")]), &dataset, &FIRST(in_order()));
    assert!(why.contains("a stream is read once"), "{why}");
    check_all(&dataset);
}

/// Stops at the first sample.
struct Stops(Cell<bool>);

impl Events for Stops {
    fn on_progress(&self, _progress: Progress) {
        self.0.set(true);
    }
    fn cancelled(&self) -> bool {
        self.0.get()
    }
}

#[test]
fn an_interrupted_addition_leaves_the_dataset_as_it_was_and_free() {
    let (shelf, dataset) = grown_from(|shelf| Box::new(folder(shelf, "1", &["a", "b"])));
    let before = files(&dataset);
    let new = folder(&shelf, "2", &["c", "d", "e"]);
    let error = append(&new, &dataset, &in_order(), &Stops(Cell::new(false))).unwrap_err();
    assert!(matches!(error, ConvertError::Interrupted), "{error}");
    assert!(files(&dataset) == before);
    add(&new, &dataset).unwrap();
    assert_eq!(keys(&dataset), ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_path_that_is_not_a_dataset_or_is_in_the_source_is_refused() {
    let shelf = Shelf::new();
    let new = folder(&shelf, "1", &["a"]);
    assert!(add(&new, &shelf.path("nothing")).is_err());
    assert!(add(&new, &shelf.path("1/a")).is_err());
    pack(&new, &shelf.path("x.grain")).unwrap();
    let around = FolderSource::open(&shelf.path(""), &FolderOptions::default()).unwrap();
    let error = add(&around, &shelf.path("x.grain")).unwrap_err();
    assert!(matches!(error, ConvertError::DestinationInsideSource { .. }), "{error}");
}
