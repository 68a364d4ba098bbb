//! Keys with equal hashes, and the reads of a lookup in a large index.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_format::{KeyGeometry, SectionKind as Kind, hash48};
use grainstore_store::{Dataset, IndexMemory, OpenOptions};
use proptest::prelude::*;

use crate::common::{self, Built, DatasetModel, SEED};

/// Two keys with the same 48 hash bits under seed 7, found by trying sixty million keys.
const TWINS: [&str; 2] = ["k18586413", "k37635570"];

/// KEY-6, KEY-4
#[test]
fn keys_with_equal_hashes_each_find_their_own_sample() {
    assert_eq!(hash48(TWINS[0].as_bytes(), SEED), hash48(TWINS[1].as_bytes(), SEED));
    let built = DatasetModel::with_keys(&["a", TWINS[1], "b", TWINS[0]]).write();
    let dataset = Dataset::open(&built.path).unwrap();
    let find = |key: &str| dataset.find(key.as_bytes()).unwrap();
    assert_eq!((find(TWINS[0]), find(TWINS[1])), (Some(3), Some(1)));
    assert_eq!(find("absent, in the same bucket"), None);
    assert_eq!(common::verify(&built.path).unwrap().1, vec![], "colliding keys are no damage");
}

/// KEY-6
#[test]
fn a_key_with_the_hash_of_another_is_still_absent() {
    let built = DatasetModel::with_keys(&["a", TWINS[1], "b"]).write();
    let dataset = Dataset::open(&built.path).unwrap();
    assert_eq!(dataset.find(TWINS[0].as_bytes()).unwrap(), None);
    assert_eq!(dataset.find(b"").unwrap(), None);
    assert_eq!(dataset.find(&[0; 70_000]).unwrap(), None);
}

/// KEY-6
#[test]
fn a_batch_of_keys_with_equal_hashes_finds_each_sample_and_no_absent_twin() {
    let both = Dataset::open(&DatasetModel::with_keys(&["a", TWINS[1], "b", TWINS[0]]).write().path).unwrap();
    assert_eq!(both.find_batch(&[TWINS[0], "a", TWINS[1], TWINS[0]]).unwrap(), [Some(3), Some(0), Some(1), Some(3)]);
    let one = Dataset::open(&DatasetModel::with_keys(&["a", TWINS[1], "b"]).write().path).unwrap();
    assert_eq!(one.find_batch(&[TWINS[0], TWINS[1]]).unwrap(), [None, Some(1)]);
}

#[test]
fn a_batch_in_a_dataset_without_keys_finds_nothing() {
    let built = DatasetModel::plain(&[b"x".to_vec()]).write();
    let dataset = Dataset::open(&built.path).unwrap();
    assert_eq!(dataset.find_batch(&["x", ""]).unwrap(), [None, None]);
}

/// The same samples in segments of `len`, each of them a generation.
fn in_generations(mut model: DatasetModel, len: usize) -> Built {
    let samples = model.segments.remove(0).0;
    model.segments = samples.chunks(len).map(|samples| (samples.to_vec(), false)).collect();
    model.earlier = (1..model.segments.len() as u32).collect();
    model.write()
}

/// KEY-5, DIR-6: two million samples; only the pieces that the answer needs are read.
#[test]
fn one_lookup_in_a_large_index_reads_less_than_a_mebibyte() {
    let count = 2_000_000_u64;
    let mut model = DatasetModel::plain(&[b"x".to_vec()]);
    let mut parts = model.parts();
    let index = &mut parts.segments[0].index;
    index.sample_count = count;
    index.stored_bytes = 1;
    index.payload_bytes = 1;
    // A sample of one byte, then samples of no bytes: they all end where the data ends.
    let entry = index.section(Kind::Entries, 0).clone();
    let word0 = 4097_u64.to_le_bytes();
    let empty = [word0, 0_u64.to_le_bytes()].concat().repeat(count as usize - 1);
    *index.section(Kind::Entries, 0) = [entry, empty].concat();
    index.section(Kind::Segments, 0)[..8].copy_from_slice(&count.to_le_bytes());
    let width = [0_u32.to_le_bytes(), (count as u32).to_le_bytes()].concat();
    index.put(Kind::Chunks, 0, 4, width);
    let key = |ordinal: u64| format!("directory/{ordinal:012}.jpg");
    put_keys(index, count, &key);
    model.keyed = true;
    let built = parts.write();

    let dataset = Dataset::open(&built.path).unwrap();
    let opened = dataset.index_bytes_read();
    assert!(opened < 128 << 10, "opening read {opened} bytes");
    assert_eq!(dataset.find(key(1_234_567).as_bytes()).unwrap(), Some(1_234_567));
    assert_eq!(dataset.key(1_234_567).unwrap().unwrap(), key(1_234_567).as_bytes());
    assert_eq!(dataset.locate(1_234_567).unwrap().offset, 4097);
    let read = dataset.index_bytes_read() - opened;
    assert!(read < 1 << 20, "one lookup read {read} bytes");

    // Further lookups are answered from memory: no section is read much more than once.
    let step = 9973;
    for ordinal in (0..count).step_by(step) {
        assert_eq!(dataset.find(key(ordinal).as_bytes()).unwrap(), Some(ordinal));
    }
    let size = std::fs::metadata(built.path.join("00000.seg")).unwrap().len();
    let read = dataset.index_bytes_read();
    assert!(read < size + size / 4, "{read} bytes were read of {size}");
    dataset.load().unwrap();
    assert_eq!(dataset.stored_bytes().unwrap(), 1);
}

fn put_keys(index: &mut common::IndexParts, count: u64, key: &dyn Fn(u64) -> String) {
    let geometry = KeyGeometry::new(count);
    let (mut keys, mut groups, mut slots) = (Vec::new(), Vec::new(), Vec::new());
    for ordinal in 0..count {
        if ordinal % 64 == 0 {
            groups.extend((keys.len() as u64).to_le_bytes());
        }
        let key = key(ordinal);
        let hash = hash48(key.as_bytes(), SEED);
        slots.push((geometry.bucket(hash), geometry.slot(hash, ordinal)));
        grainstore_format::push_key(&mut keys, key.as_bytes()).unwrap();
    }
    groups.extend((keys.len() as u64).to_le_bytes());
    slots.sort_unstable();
    let mut starts = vec![0_u32; geometry.bucket_count() as usize + 1];
    slots.iter().for_each(|slot| starts[slot.0 as usize + 1] += 1);
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    index.put(Kind::Keys, 0, 0, keys);
    index.put(Kind::KeyGroups, 0, 8, groups);
    index.put(Kind::Slots, 0, 7, slots.iter().flat_map(|slot| KeyGeometry::encode_slot(slot.1)).collect());
    index.put(Kind::Buckets, 0, 4, starts.iter().flat_map(|start| start.to_le_bytes()).collect());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// KEY-2, KEY-3, KEY-4, KEY-5, KEY-6, KEY-7
    #[test]
    fn every_key_is_found_and_no_other(keys in prop::collection::btree_set("[a-z]{1,6}", 1..300), absent in "[A-Z]{1,6}") {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let built = DatasetModel::with_keys(&keys).write();
        let dataset = Dataset::open(&built.path).unwrap();
        for (ordinal, key) in (0..).zip(&keys) {
            prop_assert_eq!(dataset.find(key.as_bytes()).unwrap(), Some(ordinal));
            prop_assert_eq!(dataset.key(ordinal).unwrap().unwrap(), key.as_bytes());
        }
        prop_assert_eq!(dataset.find(absent.as_bytes()).unwrap(), None);
        prop_assert_eq!(common::verify(&built.path).unwrap().1, vec![]);
    }

    /// KEY-2, KEY-6, KEY-7, GEN-1
    #[test]
    fn a_batch_finds_what_single_lookups_find(
        keys in prop::collection::btree_set(prop_oneof![9 => "[a-z]{1,6}", 1 => "[a-z]{100,300}"], 1..200),
        asked in prop::collection::vec((any::<prop::sample::Index>(), 0..8), 0..300),
        segment_len in 1_usize..300,
    ) {
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        keys.extend(TWINS);
        let built = in_generations(DatasetModel::with_keys(&keys), segment_len);
        let asked: Vec<Vec<u8>> = asked.iter().map(|(which, how)| match *how {
            0 => vec![],
            1 => vec![b'x'; 70_000],
            2 => which.get(&keys).to_uppercase().into_bytes(),
            _ => which.get(&keys).as_bytes().to_vec(),
        }).collect();
        for generation in 0..keys.len().div_ceil(segment_len) {
            for index_memory in [IndexMemory::Owned, IndexMemory::Mapped] {
                let options = OpenOptions { generation: Some(generation), index_memory, ..OpenOptions::default() };
                let dataset = Dataset::open_with(&built.path, &options).unwrap();
                // First while the index is read piece by piece, then from memory.
                let found = dataset.find_batch(&asked).unwrap();
                let singly: Vec<_> = asked.iter().map(|key| dataset.find(key).unwrap()).collect();
                prop_assert_eq!(&found, &singly);
                prop_assert_eq!(dataset.find_batch(&asked).unwrap(), singly);
            }
        }
    }
}
