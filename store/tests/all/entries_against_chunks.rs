//! Samples located one by one while the index is not loaded: once the chunk list is known, an entry must agree with it,
//! so that one read of a chunk's samples is never longer than the chunk and the sample that crosses its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_format::SectionKind as Kind;
use grainstore_store::{Dataset, Location, StoreError};
use proptest::prelude::*;

use crate::common::{Built, DatasetModel, DatasetParts};

/// Samples of 5, 0, 5000, 300 and 700 bytes, repeated, in chunks of 4096.
fn parts() -> DatasetParts {
    DatasetModel::rich(&[20]).parts()
}

/// What is wrong with sample `ordinal`, without and with the chunk list.
fn wrong(built: &Built, ordinal: u64) -> (Option<String>, Option<String>) {
    let message = |result: Result<Location, StoreError>| result.err().map(|error| error.to_string());
    let dataset = Dataset::open(&built.path).unwrap();
    let without = message(dataset.locate(ordinal));
    dataset.chunks().unwrap();
    (without, message(dataset.locate(ordinal)))
}

#[track_caller]
fn assert_wrong(parts: &DatasetParts, ordinal: u64, what: &str) {
    let (without, with) = wrong(&parts.write(), ordinal);
    assert_eq!(without, None, "by itself it is right");
    let with = with.unwrap_or_default();
    assert!(with.contains(what), "{with}");
}

/// CHK-1
#[test]
fn a_sample_that_its_chunk_does_not_own_is_refused() {
    let mut parts = parts();
    let index = &mut parts.segments[0].index;
    let counts = index.section(Kind::Chunks, 0);
    let at = (0..counts.len() - 1).find(|&at| counts[at] > 1 && counts[at + 1] > 0).unwrap();
    let last: u8 = counts[..=at].iter().sum();
    counts[at] -= 1;
    counts[at + 1] += 1;
    assert_wrong(&parts, u64::from(last) - 1, "it belongs to chunk ");
}

/// CHK-3
#[test]
fn an_edge_bit_that_disagrees_with_its_sample_is_refused() {
    let mut parts = parts();
    let index = &mut parts.segments[0].index;
    let counts = index.section(Kind::Chunks, 0).clone();
    let last_of = |chunk: usize| counts[..=chunk].iter().map(|&count| u64::from(count)).sum::<u64>() - 1;
    let edges = index.section(Kind::Edges, 0);
    let is_set = |edges: &[u8], at: usize| edges[at / 8] >> (at % 8) & 1 == 1;
    let set = (0..counts.len()).find(|&at| is_set(edges, at)).unwrap();
    let clear = (0..counts.len()).find(|&at| counts[at] > 0 && !is_set(edges, at)).unwrap();
    edges[set / 8] ^= 1 << (set % 8);
    edges[clear / 8] ^= 1 << (clear % 8);
    assert_wrong(&parts, last_of(set), "it does cross the end of chunk");
    assert_wrong(&parts, last_of(clear), "it does not cross the end of chunk");
}

/// CHK-3, ENT-4
#[test]
fn a_sample_that_reaches_over_the_start_of_others_is_refused() {
    let mut parts = parts();
    // Sample 2 has 5000 bytes, and is made longer so that it ends where sample 12 does.
    parts.segments[0].index.change_entry(2, |entry| entry.stored_len = 16_000);
    assert_wrong(&parts, 2, "which own samples after it");
    assert_wrong(&parts, 3, "the previous sample ends at");
}

fn is_lone(dataset: &Dataset, location: &Location) -> bool {
    location.stored_len >= 8 * dataset.geometry().chunk_size.bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// ENT-4, CHK-1, CHK-3
    #[test]
    fn no_read_of_a_chunk_is_longer_than_the_chunk_and_what_crosses(
        changes in prop::collection::vec((0..3_usize, 0..400_usize, any::<u8>()), 1..6),
    ) {
        let mut parts = parts();
        let index = &mut parts.segments[0].index;
        for (section, place, value) in changes {
            let bytes = index.section([Kind::Entries, Kind::Chunks, Kind::Edges][section], 0);
            let at = place % bytes.len();
            bytes[at] = value;
        }
        index.edge_count = index.section(Kind::Edges, 0).iter().map(|byte| u64::from(byte.count_ones())).sum();
        let built = parts.write();
        let dataset = Dataset::open(&built.path).unwrap();
        let Ok(chunks) = dataset.chunks() else { return Ok(()) };
        let chunk_size = dataset.geometry().chunk_size.bytes();
        for chunk in (0..chunks.len()).filter(|&chunk| !chunks.samples(chunk).is_empty()) {
            let samples = chunks.samples(chunk);
            let (Ok(first), Ok(last)) = (dataset.locate(samples.start), dataset.locate(samples.end - 1)) else { continue };
            let len = (last.offset + last.stored_len).saturating_sub(first.offset);
            prop_assert!(is_lone(&dataset, &last) || len < 9 * chunk_size, "chunk {chunk}: {len} bytes");
            // A long sample owns all chunks that it covers.
            prop_assert!(!is_lone(&dataset, &last) || chunks.samples(chunk + 7).start == samples.end);
        }
    }
}
