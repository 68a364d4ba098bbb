//! Checks that a reader returns what was written: the contents of some samples before a measurement, lengths during it.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_reader::{Batch, Reader};

use crate::{Fixture, Random};

/// Compares some samples, one by one and as a batch, with the fixture.
///
/// # Panics
/// If one of them differs, or cannot be read.
pub fn check_contents(reader: &Reader, fixture: &Fixture) {
    let mut random = Random::new(5);
    let ordinals: Vec<u64> = (0..64).map(|_| random.below(fixture.samples)).collect();
    let batch = reader.get_batch(&ordinals).unwrap();
    assert_eq!(batch.len(), ordinals.len());
    for (&ordinal, payload) in ordinals.iter().zip(batch.payloads()) {
        let expected = fixture.payload(ordinal);
        assert!(payload == expected, "sample {ordinal} of a batch has other bytes");
        assert!(reader.get(ordinal).unwrap().payload == expected, "sample {ordinal} has other bytes");
    }
}

/// The payload bytes of a batch, after a check of every length.
///
/// # Panics
/// If a sample has another length than in the fixture.
#[must_use]
pub fn check_batch(batch: &Batch, fixture: &Fixture) -> u64 {
    let mut bytes = 0;
    for (payload, &ordinal) in batch.payloads().zip(batch.ordinals()) {
        assert_eq!(payload.len() as u64, fixture.payload_len(ordinal), "length of sample {ordinal}");
        bytes += payload.len() as u64;
    }
    bytes
}
