//! Keys read in order, 64 at a time, are the same as those read one by one.

#![allow(clippy::unwrap_used, reason = "a test may stop here")]

use grainstore_format::SectionKind as Kind;
use grainstore_store::{Dataset, OpenOptions};

use crate::common::{Built, DatasetModel};

/// Reads the keys of the groups, in this order.
fn scanned(dataset: &Dataset, groups: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
    let (mut scan, mut keys) = (dataset.key_scan().unwrap().unwrap(), Vec::new());
    for group in groups {
        scan.group(group, |key| keys.push(key.to_vec())).unwrap();
    }
    keys
}

fn one_by_one(dataset: &Dataset) -> Vec<Vec<u8>> {
    (0..dataset.sample_count()).map(|ordinal| dataset.key(ordinal).unwrap().unwrap()).collect()
}

fn keyed(keys: &[String]) -> Built {
    DatasetModel::with_keys(&keys.iter().map(String::as_str).collect::<Vec<_>>()).write()
}

/// KEY-7
#[test]
fn a_scan_returns_the_keys_that_are_read_one_by_one() {
    // The groups in the middle are longer than a part that is read at a time.
    let len = |ordinal: usize| if (100..180).contains(&ordinal) { 40_000 } else { 1 + ordinal % 200 };
    let keys: Vec<String> = (0..300).map(|ordinal| format!("{ordinal:03}{}", "k".repeat(len(ordinal)))).collect();
    let built = keyed(&keys);
    for loaded in [false, true] {
        let dataset = Dataset::open(&built.path).unwrap();
        if loaded {
            one_by_one(&dataset);
        }
        assert!(scanned(&dataset, 0..7).iter().map(Vec::as_slice).eq(keys.iter().map(String::as_bytes)));
        let backwards = scanned(&dataset, [4, 1, 1]);
        assert_eq!(
            (backwards.len(), &backwards[44], &backwards[108]),
            (172, &backwards[108], &keys[64].clone().into())
        );
    }
}

/// KEY-1
#[test]
fn a_dataset_without_keys_has_none_to_scan() {
    let built = DatasetModel::plain(&[vec![1], vec![2]]).write();
    assert!(Dataset::open(&built.path).unwrap().key_scan().unwrap().is_none());
}

/// GEN-1
#[test]
fn keys_of_later_generations_are_not_returned() {
    let mut model = DatasetModel::rich(&[70, 30]);
    model.earlier = vec![1];
    let built = model.write();
    let options = OpenOptions { generation: Some(0), ..OpenOptions::default() };
    let earlier = Dataset::open_with(&built.path, &options).unwrap();
    assert_eq!(scanned(&earlier, 0..3), one_by_one(&earlier));
    assert_eq!(scanned(&earlier, 0..3).len(), 70);
}

/// KEY-7, DIR-6
#[test]
fn damaged_keys_are_an_error() {
    let mut parts = DatasetModel::with_keys(&["a", "b", "c"]).parts();
    let index = parts.merged.as_mut().unwrap_or(&mut parts.segments[0].index);
    // A key with more bytes than the list has.
    index.section(Kind::Keys, 0)[0] = 120;
    let built = parts.write();
    let dataset = Dataset::open(&built.path).unwrap();
    let mut scan = dataset.key_scan().unwrap().unwrap();
    assert!(scan.group(0, |_| {}).is_err());
}
