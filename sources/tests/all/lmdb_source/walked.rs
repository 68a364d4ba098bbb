//! Trees of many pages against a plain list.

use std::collections::BTreeMap;
use std::fs;

use grainstore_sources::lmdb::LmdbOptions;
use grainstore_sources::{Layout, Source, SourceSample};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::pages::Pages;
use super::{LmdbFolder, all, check_blocks, check_in_place, keys_and_payloads, mapped, raw};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn file(page_len: usize, model: &Model) -> Vec<u8> {
    let entries: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Pages::of(page_len, &entries)
}

fn model() -> impl Strategy<Value = Model> {
    let value = prop_oneof![8 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 40..3000)];
    btree_map(vec(any::<u8>(), 1..60), value, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_of_any_page_size_gives_its_keys_and_values_in_order(model in model(), size in 0_u32..4) {
        let place = LmdbFolder::with(&file(512 << size, &model));
        let source = place.open(&raw()).unwrap();
        prop_assert_eq!(keys_and_payloads(&source), model.into_iter().collect::<Vec<_>>());
        check_blocks(&source);
        check_in_place(&place, &source);
    }
}

#[test]
fn a_large_tree_has_parts_and_every_key_is_found_by_search() {
    let mut model = Model::new();
    for i in 0..20_000 {
        model.insert(format!("a-{i:05}").into_bytes(), format!("{i}").into_bytes());
        model.insert(format!("b-{i:05}").into_bytes(), vec![7; i % 5]);
    }
    let place = LmdbFolder::with(&file(512, &model));
    let source = place.open(&raw()).unwrap();
    assert_eq!(source.description().parts.len(), 64);
    let per_part: Vec<usize> =
        (0..64).map(|part| super::read(&source, (part, 0), Layout::Packed, usize::MAX).len()).collect();
    assert_eq!(per_part.iter().sum::<usize>(), 40_000);
    assert!(per_part.iter().all(|count| (400..900).contains(count)), "{per_part:?}");
    assert!(keys_and_payloads(&source).into_iter().eq(model));
    check_blocks(&source);
    let joined = place.open(&mapped("a=a-*,b=b-*")).unwrap();
    let samples = all(&joined);
    assert_eq!(samples.len(), 20_000);
    assert!(
        samples.iter().enumerate().all(|(i, one)| one.payload == [format!("{i}").as_bytes(), &vec![7; i % 5]].concat())
    );
}

#[test]
fn a_value_of_more_than_64_mib_is_streamed() {
    const LEN: usize = (64 << 20) + 1;
    let pair = |key: &[u8], value: Vec<u8>| (key.to_vec(), value);
    let long: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    let entries = [pair(b"a", vec![1; 9]), pair(b"b", long), pair(b"c", vec![2; 9])];
    let place = LmdbFolder::with(&Pages::of(4096, &entries));
    let source = place.open(&raw()).unwrap();
    assert!(keys_and_payloads(&source).into_iter().eq(entries));
    let mut samples = source.open(0, 0, Layout::InPlace).unwrap();
    samples.next().unwrap();
    let Some(SourceSample::Long { sample, offset }) = samples.next().unwrap() else { panic!("it is long") };
    assert_eq!((sample.len, fs::read(place.file()).unwrap()[offset as usize + 250]), (LEN as u64, 250));
    assert_eq!(super::next(samples.as_mut()).unwrap().unwrap().key, b"c");
}

#[test]
fn an_empty_database_has_no_samples() {
    let place = LmdbFolder::with(&Pages::of(4096, &[]));
    let source = place.open(&LmdbOptions::default()).unwrap();
    assert_eq!((source.description().parts.len(), all(&source).len()), (1, 0));
    check_blocks(&source);
}
