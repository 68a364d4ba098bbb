//! Several datasets read as one: they give the same answers as a list of all their samples, and stay closed until they
//! are needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeType, ChunkSize, DatasetFingerprint};
use grainstore_store::{Collection, Dataset, OpenOptions, PayloadError, StoreError, check_and_decode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Built, DatasetModel, ModelSample, SampleContents, seen};

/// Samples in segments of these counts. The first key is in every member, the others are in this one only.
fn member(name: &str, counts: &[u64], chunk_size: u64) -> DatasetModel {
    let mut model = DatasetModel::rich(counts);
    model.geometry.chunk_size = ChunkSize::new(chunk_size).unwrap();
    let samples = model.segments.iter_mut().flat_map(|(samples, _)| samples);
    samples.skip(1).for_each(|sample| sample.key.extend(name.as_bytes()));
    model
}

fn write(models: &[DatasetModel]) -> (Vec<Built>, Vec<PathBuf>) {
    let built: Vec<Built> = models.iter().map(DatasetModel::write).collect();
    let paths = built.iter().map(|built| built.path.clone()).collect();
    (built, paths)
}

fn open(paths: &[PathBuf]) -> Collection {
    Collection::open(paths, &OpenOptions::default()).unwrap()
}

fn read(collection: &Collection, ordinal: u64) -> SampleContents {
    let location = collection.locate(ordinal).unwrap();
    collection.segment_file(location.segment).unwrap();
    let file = std::fs::File::open(collection.segment_path(location.segment)).unwrap();
    let (mut stored, mut payload) = (vec![0; location.stored_len as usize], Vec::new());
    file.read_exact_at(&mut stored, location.offset).unwrap();
    check_and_decode(&location, &stored, &mut payload).unwrap();
    let cut = |range: std::ops::Range<u64>| payload[range.start as usize..range.end as usize].to_vec();
    let fields = collection.fields(ordinal, payload.len() as u64).unwrap();
    SampleContents {
        key: collection.key(ordinal).unwrap(),
        attributes: collection.attributes(ordinal).unwrap(),
        fields: fields.into_iter().map(|range| range.map(cut)).collect(),
    }
}

/// Checks that every answer of a collection is that of a list of samples.
fn check(models: &[DatasetModel], collection: &Collection) {
    let samples: Vec<&ModelSample> = models.iter().flat_map(DatasetModel::samples).collect();
    let count = samples.len() as u64;
    assert_eq!(collection.sample_count(), count);
    for (place, attribute) in collection.schema().attributes().iter().enumerate() {
        let column = collection.column(&attribute.name).unwrap();
        for ordinal in 0..count {
            assert_eq!(column.get(ordinal), collection.attributes(ordinal).unwrap()[place], "sample {ordinal}");
            assert_eq!(collection.cached_attribute(place, ordinal), Some(column.get(ordinal)), "sample {ordinal}");
        }
        assert_eq!((column.get(count), column.parts().len()), (None, collection.member_count()));
    }
    for (ordinal, sample) in (0..).zip(&samples) {
        assert_eq!(read(collection, ordinal), seen(&models[0], sample), "sample {ordinal}");
        let (member, own) = collection.locate_member(ordinal).unwrap();
        assert_eq!(collection.member_ordinals(member).start + own, ordinal);
        assert_eq!(&models[member].samples()[own as usize].key, &sample.key);
    }
    let mut keys: Vec<&[u8]> = samples.iter().map(|sample| sample.key.as_slice()).collect();
    keys.extend([&b"none"[..], b""]);
    let first = |key: &&[u8]| samples.iter().position(|sample| sample.key == *key).map(|place| place as u64);
    let expected: Vec<Option<u64>> = keys.iter().map(first).collect();
    assert_eq!(collection.find_batch(&keys).unwrap(), expected);
    assert_eq!(keys.iter().map(|key| collection.find(key).unwrap()).collect::<Vec<_>>(), expected);
    let backwards: Vec<u64> = (0..count).rev().chain((0..count).step_by(3)).collect();
    let each: Vec<_> = backwards.iter().map(|&ordinal| collection.locate(ordinal).unwrap()).collect();
    let mut all = Vec::new();
    collection.locate_batch(&backwards, &mut all).unwrap();
    assert_eq!(all, each);
    all.clear();
    let too_many: Vec<u64> = (0..=count).collect();
    let error = collection.locate_batch(&too_many, &mut all).unwrap_err();
    assert!(
        matches!(error, StoreError::NoSuchOrdinal { ordinal, sample_count } if (ordinal, sample_count) == (count, count))
    );
    assert_eq!(all.len() as u64, count, "those before the one that failed");
    assert!(collection.locate(count).is_err() && collection.key(u64::MAX).is_err());
}

fn sum(datasets: &[Dataset], number: impl Fn(&Dataset) -> u64) -> u64 {
    datasets.iter().map(number).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// PLN-8
    #[test]
    fn datasets_end_to_end_answer_as_the_list_of_all_samples(
        shapes in vec((vec(1_u64..9, 1..4), 12_u32..15), 1..5),
        load in any::<bool>(),
    ) {
        let models: Vec<DatasetModel> = (0..).zip(&shapes).map(|(number, (counts, log2))| {
            member(&format!(" of {number}"), counts, 1 << log2)
        }).collect();
        let (_built, paths) = write(&models);
        let datasets: Vec<Dataset> = paths.iter().map(|path| Dataset::open(path).unwrap()).collect();
        for collection in [open(&paths), Collection::of(datasets.clone()).unwrap()] {
            if load {
                collection.load().unwrap();
            }
            check(&models, &collection);
            let mut chain = DatasetFingerprint::new();
            datasets.iter().for_each(|dataset| chain.push(dataset.fingerprint(), dataset.sample_count()));
            let fingerprint = if datasets.len() == 1 { datasets[0].fingerprint() } else { chain.get() };
            prop_assert_eq!(collection.fingerprint(), fingerprint);
            prop_assert_eq!(collection.chunk_size().bytes(), shapes.iter().map(|(_, log2)| 1 << log2).max().unwrap());
            let stored_bytes = sum(&datasets, |dataset| dataset.stored_bytes().unwrap());
            prop_assert_eq!(collection.stored_bytes().unwrap(), stored_bytes);
            let payload_bytes = sum(&datasets, |dataset| dataset.payload_bytes().unwrap());
            prop_assert_eq!(collection.payload_bytes().unwrap(), payload_bytes);
            let segments: Vec<_> = datasets.iter().flat_map(|dataset| dataset.segments()).collect();
            prop_assert_eq!(collection.segment_count(), segments.len());
            prop_assert_eq!(collection.segment_bytes(), segments.iter().map(|segment| segment.file_len()).sum::<u64>());
            prop_assert!(collection.paths().eq(&paths));
        }
    }
}

/// PLN-8
#[test]
fn a_dataset_may_be_given_twice() {
    let model = member("", &[3, 2], 4096);
    let (_built, paths) = write(std::slice::from_ref(&model));
    let twice = open(&[paths[0].clone(), paths[0].clone()]);
    check(&[model.clone(), model], &twice);
    assert_ne!(twice.fingerprint(), open(&paths).fingerprint());
}

/// Files below these paths that this process has open.
fn open_files(path: &Path) -> HashSet<PathBuf> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(path)).collect()
}

#[test]
fn a_member_is_opened_when_it_is_first_needed() {
    let models = [member("a", &[4], 4096), member("b", &[3, 3], 4096), member("c", &[5], 4096)];
    let (built, paths) = write(&models);
    let collection = open(&paths);
    let open_members = || -> Vec<bool> { paths.iter().map(|path| !open_files(path).is_empty()).collect() };
    let facts = (collection.stored_bytes().unwrap(), collection.locate_member(5).unwrap(), collection.segment_count());
    assert_eq!((facts.1, facts.2), ((1, 1), 4));
    assert_eq!(open_members(), [false; 3], "all of that was known");
    let away: Vec<PathBuf> = [0, 2].iter().map(|&member: &usize| built[member].root.path().join("away")).collect();
    for (away, member) in away.iter().zip([0, 2]) {
        std::fs::rename(&paths[member], away).unwrap();
    }
    assert_eq!(read(&collection, 5), seen(&models[1], models[1].samples()[1]));
    assert_eq!(open_members(), [false, true, false]);
    let error = collection.locate(0).unwrap_err().to_string();
    assert_eq!(error, format!("{}: no such file or directory", paths[0].display()));
    assert!(collection.segment_path(0) == paths[0] && collection.segment_path(9) == paths[0]);
    for (away, member) in away.iter().zip([0, 2]) {
        std::fs::rename(away, &paths[member]).unwrap();
    }
    check(&models, &collection);
    assert_eq!(open_members(), [true; 3]);
}

/// Replaces a dataset by another one.
fn replace(path: &Path, model: &DatasetModel) {
    let built = model.write();
    std::fs::remove_dir_all(path).unwrap();
    std::fs::rename(&built.path, path).unwrap();
}

/// PLN-8
#[test]
fn a_member_that_was_replaced_before_it_was_needed_is_refused_by_name() {
    let models = [member("a", &[4], 4096), member("b", &[3], 4096)];
    let (_built, paths) = write(&models);
    let (collection, in_use) = (open(&paths), open(&paths));
    in_use.locate(4).unwrap();
    let was = Dataset::open(&paths[1]).unwrap().fingerprint();
    replace(&paths[1], &member("c", &[3], 4096));
    let found = Dataset::open(&paths[1]).unwrap().fingerprint();
    let expected = format!(
        "{}: changed since the dataset was opened: its fingerprint is {found}, it was {was}",
        paths[1].display()
    );
    assert_eq!(collection.locate(4).unwrap_err().to_string(), expected);
    assert_eq!(collection.find(b"key/2b").unwrap_err().to_string(), expected);
    assert_eq!(collection.member(1).unwrap_err().to_string(), expected);
    assert_eq!(collection.segment_file(1).unwrap_err().to_string(), expected);
    collection.locate(3).unwrap();
    in_use.locate(6).unwrap();
}

/// GEN-1, PLN-8
#[test]
fn a_member_that_grew_is_read_as_it_was_and_one_that_shrank_is_refused() {
    let (first, old) = (member("a", &[4], 4096), member("b", &[3], 4096));
    let grown = DatasetModel { earlier: vec![1], ..member("b", &[3, 2], 4096) };
    let (_built, paths) = write(&[first.clone(), old.clone()]);
    let before = open(&paths);
    replace(&paths[1], &grown);
    let after = open(&paths);
    check(&[first.clone(), old.clone()], &before);
    assert_eq!(after.sample_count(), 9);
    replace(&paths[1], &old);
    let error = after.load().unwrap_err().to_string();
    let name = paths[1].display();
    assert_eq!(error, format!("{name}: changed since the dataset was opened: it has fewer generations"));
}

/// GEN-1
#[test]
fn sums_of_an_older_generation_are_those_of_its_samples() {
    let grown = |name| DatasetModel { earlier: vec![1], ..member(name, &[3, 2], 4096) };
    let (_built, paths) = write(&[grown("a"), grown("b")]);
    let oldest = OpenOptions { generation: Some(0), ..OpenOptions::default() };
    let collection = Collection::open(&paths, &oldest).unwrap();
    check(&[member("a", &[3], 4096), member("b", &[3], 4096)], &collection);
    let datasets: Vec<Dataset> = paths.iter().map(|path| Dataset::open_with(path, &oldest).unwrap()).collect();
    let stored_bytes = sum(&datasets, |dataset| dataset.stored_bytes().unwrap());
    assert_eq!(collection.stored_bytes().unwrap(), stored_bytes);
}

/// PLN-8
#[test]
fn datasets_that_differ_are_refused_with_both_names_and_the_first_difference() {
    let like = member("a", &[2], 4096);
    let changed = |change: &dyn Fn(&mut DatasetModel)| {
        let mut model = like.clone();
        change(&mut model);
        model
    };
    let unlike: [(DatasetModel, &str); 6] = [
        (
            changed(&|model| model.attributes[0].1 = AttributeType::Int32),
            "attribute 0 is \"label\" (int64) in the first, \"label\" (int32) in the second",
        ),
        (
            changed(&|model| model.attributes[1].0 = "fl\u{e4}g"),
            "attribute 1 is \"flag\" (bool) in the first, \"fl\u{e4}g\" (bool) in the second",
        ),
        (
            changed(&|model| {
                model.attributes.pop();
                let samples = model.segments.iter_mut().flat_map(|(samples, _)| samples);
                samples.for_each(|sample| sample.attributes.truncate(3));
            }),
            "attribute 3 is \"split\" (category) in the first, missing in the second",
        ),
        (
            changed(&|model| {
                model.attributes.push(("more", AttributeType::Bool));
                let samples = model.segments.iter_mut().flat_map(|(samples, _)| samples);
                samples.for_each(|sample| sample.attributes.push(None));
            }),
            "attribute 4 is missing in the first, \"more\" (bool) in the second",
        ),
        (
            changed(&|model| model.fields.swap(0, 1)),
            "field 0 is \"image\" (bytes) in the first, \"caption\" (bytes) in the second",
        ),
        (changed(&|model| model.keyed = false), "samples have keys in the first, none in the second"),
    ];
    for (model, what) in unlike {
        let (_built, paths) = write(&[like.clone(), like.clone(), model]);
        let error = Collection::open(&paths, &OpenOptions::default()).unwrap_err().to_string();
        let expected = format!("{} and {} cannot be read as one: {what}", paths[0].display(), paths[2].display());
        assert_eq!(error, expected);
        let datasets = paths.iter().map(|path| Dataset::open(path).unwrap()).collect();
        assert_eq!(Collection::of(datasets).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_empty_collection_a_missing_dataset_and_unknown_numbers_are_errors() {
    let none = Collection::open(&[] as &[&Path], &OpenOptions::default()).unwrap_err().to_string();
    assert_eq!(none, "no dataset to read, expected 1 or more");
    assert_eq!(Collection::of(vec![]).unwrap_err().to_string(), none);
    let (built, mut paths) = write(&[member("a", &[2], 4096), member("b", &[3], 4096)]);
    let both = open(&paths);
    assert_eq!(both.locate(5).unwrap_err().to_string(), "no sample 5: the dataset has 5, numbered from 0");
    assert_eq!(both.member(2).unwrap_err().to_string(), "no dataset 2: there are 2, numbered from 0");
    assert!(both.member_ordinals(2).is_empty());
    let error = both.segment_file(2).unwrap_err().to_string();
    assert!(error.ends_with("no segment 2: the datasets from this one on have 2"), "{error}");
    let one = open(&paths[..1]);
    assert_eq!(one.member(1).unwrap_err().to_string(), "no dataset 1: there are 1, numbered from 0");
    assert!(one.member_ordinals(1).is_empty() && one.locate_member(2).is_err());
    paths.push(built[0].root.path().join("none.grain"));
    let error = Collection::open(&paths, &OpenOptions::default()).unwrap_err().to_string();
    assert_eq!(error, format!("{}: no such file or directory", paths[2].display()));
}

#[test]
fn a_damaged_sample_is_reported_with_the_file_and_ordinal_of_its_member() {
    let (_built, paths) = write(&[member("a", &[4], 4096), member("b", &[3, 3], 4096)]);
    let collection = open(&paths);
    let location = collection.locate(8).unwrap();
    assert_eq!(location.segment, 2);
    let error = collection.payload_error(8, &location, &PayloadError::Length { found: 1, expected: 2 });
    let expected =
        format!("{}/00001.seg: sample 4 (key \"key/4b\"): 1 stored bytes, the entry has 2", paths[1].display());
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, StoreError::Sample { segment: 1, ordinal: 4, .. }));
}
