//! Samples whose length does not fit their entry, in an external file of three gigabytes that is one large hole.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_format::{LONG_STORED_LEN, SectionKind as Kind};
use grainstore_store::Dataset;

use crate::common::{
    DatasetModel, DatasetParts, IndexParts, ModelSample, Placed, SegmentParts, assert_reported, verify,
};

const FILE_LEN: u64 = 3 << 30;
const LONG_LEN: u64 = LONG_STORED_LEN + 5;

fn crc_of_zeros(len: u64) -> u32 {
    let hasher_of = |len: usize| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&vec![0; len]);
        hasher
    };
    let (piece, mut all) = (hasher_of(1 << 20), hasher_of((len % (1 << 20)) as usize));
    (0..len >> 20).for_each(|_| all.combine(&piece));
    all.finalize()
}

fn parts(long_crc: u32) -> DatasetParts {
    let mut model = DatasetModel::plain(&[]);
    model.segments = vec![(vec![], true)];
    let placed = |offset: u64, len: u64, crc: u32| {
        let sample = ModelSample { fields: vec![None], ..Default::default() };
        Placed { sample, offset, stored_len: len, raw_len: len, crc }
    };
    let placed = [
        placed(0, 3, crc32fast::hash(b"abc")),
        placed(1000, LONG_LEN, long_crc),
        placed(FILE_LEN - 4096, 4096, crc_of_zeros(4096)),
    ];
    let index = IndexParts::of(&model, &[(&placed, FILE_LEN)]);
    let segment = SegmentParts {
        name: "../hole.tar".into(),
        index_file: "00000.idx".into(),
        data: b"abc".to_vec(),
        index,
        sparse_len: Some(FILE_LEN),
    };
    DatasetParts { segments: vec![segment], merged: None, earlier: vec![] }
}

/// ENT-3, LNG-1, EXT-1, EXT-2
#[test]
fn a_long_sample_is_located_and_verified_without_being_held_in_memory() {
    let built = parts(crc_of_zeros(LONG_LEN)).write();
    let dataset = Dataset::open(&built.path).unwrap();
    let location = dataset.locate(1).unwrap();
    assert_eq!((location.offset, location.stored_len, location.raw_len()), (1000, LONG_LEN, LONG_LEN));
    dataset.load().unwrap();
    assert_eq!(dataset.locate(1).unwrap(), location);
    assert_eq!(dataset.facts().unwrap().long_samples, 1);
    assert_eq!(dataset.fields(1, LONG_LEN).unwrap(), vec![Some(0..LONG_LEN)]);
    dataset.segment_file(0).unwrap();
    let (report, damage) = verify(&built.path).unwrap();
    assert_eq!(damage, vec![]);
    assert!(report.checked_bytes > LONG_LEN);
}

/// LNG-1, ENT-5
#[test]
fn a_damaged_long_sample_is_reported() {
    let mut broken = parts(0);
    let built = broken.write();
    assert_reported(&built.path, "sample 1: at 1000: CRC-32 of stored bytes 1000..");
    for index in [&mut broken.segments[0].index].into_iter().chain(broken.merged.as_mut()) {
        index.section(Kind::Long, 0)[0] = 0;
    }
    let built = broken.write();
    assert_reported(&built.path, "missing in the table of long samples");
    let dataset = Dataset::open(&built.path).unwrap();
    assert!(dataset.locate(1).unwrap_err().to_string().contains("the table of long samples"));
    assert!(dataset.load().is_err());
}
