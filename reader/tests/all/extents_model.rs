//! Extents that are found in the chunk list are equal to those computed from the lengths of all samples: with gaps of
//! any length, samples of no bytes, and samples of about 8 chunks at the first, the last and other offsets.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../../store/tests/all/common/mod.rs"]
mod made;

use std::ops::Range;

use grainstore_format::ChunkSize;
use grainstore_reader::plan::EXTENT_SAMPLES_MAX;
use grainstore_reader::{IoChoice, Reader, ReaderOptions};
use grainstore_store::Dataset;
use made::{Built, DatasetModel, DatasetParts, IndexParts, ModelSample, Placed, SegmentParts};
use proptest::prelude::*;

const CHUNK: u64 = 4096;

/// The bytes between two samples.
#[derive(Clone, Copy, Debug)]
enum Gap {
    Bytes(u64),
    /// Up to the next boundary of chunks.
    ToBoundary,
}

/// A gap, and the length of the sample after it.
type Step = (Gap, u64);

fn placed(steps: &[Step]) -> Vec<Placed> {
    let mut end = 0_u64;
    let place = |&(gap, stored_len): &Step| {
        let offset = match gap {
            Gap::Bytes(len) => end + len,
            Gap::ToBoundary => end.next_multiple_of(CHUNK),
        };
        end = offset + stored_len;
        let sample = ModelSample { fields: vec![None], ..Default::default() };
        Placed { sample, offset, stored_len, raw_len: stored_len, crc: 0 }
    };
    steps.iter().map(place).collect()
}

/// External segments of samples that the test never reads: their files are holes.
fn write(segments: &[Vec<Placed>]) -> Built {
    let model = DatasetModel { segments: vec![(vec![], true)], ..DatasetModel::plain(&[]) };
    let ends: Vec<u64> = segments.iter().map(|placed| placed.last().map_or(0, |p| p.offset + p.stored_len)).collect();
    let part = |(number, placed): (usize, &Vec<Placed>)| SegmentParts {
        name: format!("../{number}.tar"),
        index_file: format!("{number}.idx"),
        data: vec![],
        index: IndexParts::of(&model, &[(placed, ends[number])]),
        sparse_len: Some(ends[number].max(1)),
    };
    let all: Vec<(&[Placed], u64)> = segments.iter().map(Vec::as_slice).zip(ends.iter().copied()).collect();
    let parts = segments.iter().enumerate().map(part).collect();
    let merged = Some(IndexParts::of(&model, &all)).filter(|_| segments.len() > 1);
    DatasetParts { segments: parts, merged, earlier: vec![] }.write()
}

/// PLN-2, from the samples themselves.
fn naive(segments: &[Vec<Placed>]) -> Vec<Range<u64>> {
    let (size, mut extents, mut first) = (ChunkSize::new(CHUNK).unwrap(), Vec::new(), 0);
    for placed in segments {
        for of_chunk in placed.chunk_by(|a, b| size.owner(a.offset, a.stored_len) == size.owner(b.offset, b.stored_len))
        {
            let end = first + of_chunk.len() as u64;
            let is_lone = of_chunk.last().is_some_and(|last| last.stored_len >= 8 * CHUNK);
            let cut = end - u64::from(is_lone);
            extents.extend([first..cut, cut..end].into_iter().filter(|range| !range.is_empty()));
            first = end;
        }
    }
    assert!(extents.iter().all(|extent| extent.end - extent.start <= EXTENT_SAMPLES_MAX));
    extents
}

fn extents(reader: &Reader) -> Vec<Range<u64>> {
    let extents = reader.extents().unwrap();
    (0..extents.count()).map(|extent| extents.samples(extent)).collect()
}

fn check(segments: &[Vec<Placed>]) {
    let built = write(segments);
    let reader =
        Reader::open(&built.path, ReaderOptions { io: IoChoice::Buffered, ..ReaderOptions::default() }).unwrap();
    assert_eq!(extents(&reader), naive(segments));
    // Once the chunk list is loaded, every sample must agree with it; these do.
    let dataset = reader.collection().member(0).unwrap();
    for (ordinal, placed) in (0..).zip(segments.iter().flatten()) {
        let location = dataset.locate(ordinal).unwrap();
        assert_eq!((location.offset, location.stored_len), (placed.offset, placed.stored_len));
    }
    dataset.load().unwrap();
    let loaded = Dataset::open(&built.path).unwrap();
    loaded.load().unwrap();
    assert_eq!(extents(&Reader::new(loaded, ReaderOptions::default()).unwrap()), naive(segments));
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![
        4 => Just(Gap::Bytes(0)),
        2 => Just(Gap::ToBoundary),
        1 => (0..3 * CHUNK).prop_map(Gap::Bytes),
        1 => (6 * CHUNK..9 * CHUNK).prop_map(Gap::Bytes),
    ];
    let len = prop_oneof![
        3 => Just(0),
        3 => 1..CHUNK,
        2 => (0..=9_u64, 0..=2_u64).prop_map(|(chunks, more)| (chunks * CHUNK + more).saturating_sub(1)),
        1 => 6 * CHUNK..10 * CHUNK,
    ];
    prop::collection::vec((gap, len), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// PLN-2, CHK-1, CHK-3
    #[test]
    fn the_chunk_list_gives_the_extents_that_the_lengths_give(segments in prop::collection::vec(steps(), 1..4)) {
        check(&segments.iter().map(|steps| placed(steps)).collect::<Vec<_>>());
    }
}

/// PLN-2: the last chunk that a sample of 8 chunks covers may own samples. It matters at the very start of a file,
/// where one of no bytes is also in the chunk of the long one.
#[test]
fn samples_of_no_bytes_right_behind_8_whole_chunks_do_not_hide_them() {
    let around = |len| placed(&[0, len, 0, 0, 5].map(|len| (Gap::Bytes(0), len)));
    assert_eq!(naive(&[around(8 * CHUNK)]), [0..1, 1..2, 2..4, 4..5]);
    check(&[around(8 * CHUNK)]);
    check(&[around(8 * CHUNK - 1), around(8 * CHUNK + 1), around(8 * CHUNK)]);
}

/// PLN-2: a segment ends with its sample, and the next one's chunks are no part of it.
#[test]
fn a_long_sample_at_the_end_of_a_segment_is_an_extent_of_its_own() {
    for len in [7 * CHUNK, 8 * CHUNK - 1, 8 * CHUNK, 9 * CHUNK] {
        let last = placed(&[(Gap::Bytes(9), 4), (Gap::Bytes(0), len)]);
        check(&[last.clone(), last]);
    }
}

#[test]
fn no_entry_is_read_if_no_sample_can_be_long() {
    let steps: Vec<Step> = (0..30_000).map(|_| (Gap::Bytes(0), 100)).collect();
    let built = write(&[placed(&steps)]);
    let reader = Reader::open(&built.path, ReaderOptions::default()).unwrap();
    let opened = reader.collection().member(0).unwrap().index_bytes_read();
    assert_eq!(reader.extents().unwrap().sample_count(), 30_000);
    let read = reader.collection().member(0).unwrap().index_bytes_read() - opened;
    // 733 chunks, and the lists of checksums.
    assert!(read < 2000, "{read} bytes of the index were read");
}
