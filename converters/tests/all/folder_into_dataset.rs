//! Every file of a folder is in the dataset, under its path, with its class and in the requested order, and the bytes
//! on disk do not depend on the number of threads.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use grainstore_converters::{ConvertOptions, Order, hash_seed};
use grainstore_format::{AttributeValue, escape_bytes};
use grainstore_store::Dataset;
use grainstore_writer::Compression;
use proptest::prelude::*;

use crate::common::{BY_PATH, FolderCase, How, Tree, files, keys, payload, samples, small};

fn shuffled(seed: u64) -> How {
    How { order: Order::Shuffled { seed }, ..BY_PATH }
}

fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[a-c]{1,2}(-[0-9])?".prop_map(String::into_bytes),
        1 => Just(b"\xff\xfe".to_vec()),
        1 => Just("é \n".as_bytes().to_vec()),
    ]
}

/// Files at one to three levels, or all at `class/file`.
fn trees() -> impl Strategy<Value = Tree> {
    let contents = || {
        prop_oneof![
            Just(Vec::new()),
            proptest::collection::vec(any::<u8>(), 0..200),
            (any::<u8>(), prop_oneof![Just(4096_usize), 4000..9000_usize, 30_000..80_000_usize])
                .prop_map(|(byte, len)| vec![byte; len]),
        ]
    };
    let tree = |depths| {
        let path = proptest::collection::vec(names(), depths).prop_map(|parts| parts.join(&b'/'));
        proptest::collection::btree_map(path, contents(), 1..40).prop_map(without_conflicts)
    };
    prop_oneof![tree(1..4), tree(2..3)]
}

/// A file cannot be a folder too.
fn without_conflicts(tree: Tree) -> Tree {
    let is_folder = |path: &[u8]| tree.keys().any(|other| other.starts_with(&[path, b"/"].concat()));
    tree.iter().filter(|(path, _)| !is_folder(path)).map(|(path, file)| (path.clone(), file.clone())).collect()
}

/// The naive reading of the rule: the class of each file, if all files are at `class/file`.
fn classes(tree: &Tree) -> Option<(Vec<Vec<u8>>, Vec<i64>)> {
    let split: Option<Vec<&[u8]>> = tree
        .keys()
        .map(|path| {
            let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
            (parts.len() == 2).then(|| parts[0])
        })
        .collect();
    let of_files = split?;
    let names: Vec<Vec<u8>> = of_files.iter().map(|name| name.to_vec()).collect::<BTreeSet<_>>().into_iter().collect();
    let labels = of_files.iter().map(|name| names.iter().position(|other| other == name).unwrap() as i64).collect();
    Some((names, labels))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_file_comes_back_under_its_path_with_its_class(tree in trees(), seed in any::<u64>(), lz4 in any::<bool>()) {
        let place = FolderCase::of(&tree);
        let compression = if lz4 { Compression::Lz4 } else { Compression::None };
        let options = ConvertOptions { seed, compression, ..small() };
        place.pack_with("a.grain", &shuffled(seed), &options).unwrap();

        let dataset = Dataset::open(place.path("a.grain")).unwrap();
        prop_assert_eq!(dataset.sample_count(), tree.len() as u64);
        prop_assert_eq!(dataset.geometry().hash_seed, hash_seed(seed));
        let expected = classes(&tree);
        let attributes: Vec<&str> = dataset.schema().attributes().iter().map(|a| a.name.as_str()).collect();
        prop_assert_eq!(attributes, if expected.is_some() { vec!["label"] } else { vec![] });
        for (number, (path, contents)) in tree.iter().enumerate() {
            let ordinal = dataset.find(path).unwrap().unwrap();
            prop_assert_eq!(&payload(&dataset, ordinal), contents);
            let label = expected.iter().map(|(_, labels)| Some(AttributeValue::Int(labels[number])));
            prop_assert_eq!(dataset.attributes(ordinal).unwrap(), label.collect::<Vec<_>>());
        }
        let names = expected.map(|(names, _)| {
            let text = |name: &Vec<u8>| String::from_utf8(name.clone()).unwrap_or_else(|_| escape_bytes(name));
            serde_json::Value::from(names.iter().map(text).collect::<Vec<_>>())
        });
        prop_assert_eq!(dataset.user_metadata().member("class_names"), Ok(names));
    }

    #[test]
    fn source_order_is_the_order_of_paths_and_the_bytes_do_not_depend_on_threads(tree in trees(), seed in any::<u64>()) {
        let place = FolderCase::of(&tree);
        place.pack("by-path.grain", &BY_PATH).unwrap();
        let expected: Vec<_> = tree.clone().into_iter().collect();
        prop_assert_eq!(samples(&place.path("by-path.grain")), expected);

        for jobs in [1, 2, 8] {
            let jobs = NonZeroUsize::new(jobs);
            let (folder, options) = (How { jobs, ..shuffled(seed) }, ConvertOptions { jobs, ..small() });
            place.pack_with(&format!("{}.grain", jobs.unwrap()), &folder, &options).unwrap();
        }
        let first = files(&place.path("1.grain"));
        prop_assert!(first == files(&place.path("2.grain")));
        prop_assert!(first == files(&place.path("8.grain")));
    }
}

fn hundred_files() -> FolderCase {
    FolderCase::of(&(0..100).map(|number| (format!("{number:03}").into_bytes(), vec![number; 10])).collect())
}

#[test]
fn a_shuffled_order_is_a_function_of_the_seed() {
    let place = hundred_files();
    for (name, seed) in [("a", 1), ("again", 1), ("other", 2)] {
        place.pack(name, &shuffled(seed)).unwrap();
    }
    let sorted: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let (a, other) = (keys(&place.path("a")), keys(&place.path("other")));
    assert_eq!(a, keys(&place.path("again")));
    assert!(a != other && a != sorted);
    assert_eq!(a.into_iter().collect::<BTreeSet<_>>(), sorted.into_iter().collect());
}

#[test]
fn a_limit_takes_the_first_files_of_the_order() {
    let place = hundred_files();
    place.pack("all", &shuffled(5)).unwrap();
    place.pack("seven", &How { limit: Some(7), ..shuffled(5) }).unwrap();
    place.pack("three", &How { limit: Some(3), ..BY_PATH }).unwrap();
    place.pack("more", &How { limit: Some(1 << 40), ..BY_PATH }).unwrap();
    assert_eq!(keys(&place.path("seven")), keys(&place.path("all"))[..7]);
    assert_eq!(keys(&place.path("three")), ["000", "001", "002"]);
    assert_eq!(keys(&place.path("more")).len(), 100);
}

#[test]
fn labels_do_not_depend_on_the_limit() {
    let place = FolderCase::with(&[("ant/1", "a"), ("bee/1", "b"), ("cow/1", "c")]);
    place.pack("one", &How { limit: Some(1), order: Order::Shuffled { seed: 0 }, ..BY_PATH }).unwrap();
    let dataset = Dataset::open(place.path("one")).unwrap();
    assert_eq!(dataset.user_metadata().member("class_names"), Ok(Some(serde_json::json!(["ant", "bee", "cow"]))));
    let class = ["ant/1", "bee/1", "cow/1"].iter().position(|key| key.as_bytes() == samples(&place.path("one"))[0].0);
    assert_eq!(dataset.attributes(0).unwrap(), [Some(AttributeValue::Int(class.unwrap() as i64))]);
}

#[test]
fn the_field_is_called_image_only_where_all_files_are_pictures() {
    for (files, field) in [
        ([("a/1.jpg", ""), ("b/2.PNG", "")], "image"),
        ([("a/1.jpg", ""), ("b/2.txt", "")], "data"),
        ([("1.jpg", ""), ("2.jpg", "")], "image"),
        ([("1.jpg", ""), ("2.json", "")], "data"),
    ] {
        let place = FolderCase::with(&files);
        place.pack("x.grain", &BY_PATH).unwrap();
        let dataset = Dataset::open(place.path("x.grain")).unwrap();
        assert_eq!(dataset.schema().fields()[0].name, field, "{files:?}");
    }
}
