//! The bound on what one batch decodes to.
//!
//! LZ4 makes up to 255 bytes of one, so that a small file could make a batch of any length. The bound depends on the
//! index alone: it is checked before anything is read, with the same result on every machine.

use grainstore_format::memory::check_room;

use crate::ReadError;
use crate::batch_builder::LocatedSample;

/// A batch may decode to this many bytes, whatever its stored length.
const PAYLOAD_LEN_MAX: u64 = 1 << 30;

/// A longer batch may decode to this many times its stored length: samples that compress better are rare.
const RATIO_MAX: u64 = 16;

/// Batches from this many samples on are refused if there is no memory for their lists.
const LONG_COUNT: u64 = 1 << 16;

/// Bytes that the lists of a batch take for each sample, at most.
const LISTS_LEN_MAX: u64 = 256;

/// Checks that there is memory for the lists of a batch of so many samples, besides the samples.
pub(crate) fn check_lists(sample_count: u64) -> Result<(), ReadError> {
    if sample_count >= LONG_COUNT {
        check_room(sample_count.saturating_mul(LISTS_LEN_MAX))?;
    }
    Ok(())
}

/// Bytes of the samples of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchLen {
    stored_len: u64,
    payload_len: u64,
    /// Payload bytes of samples that are decoded: their memory is not that of a file of the same length.
    pub(crate) decoded_len: u64,
}

impl BatchLen {
    /// Adds a sample.
    #[inline]
    pub(crate) fn add(&mut self, sample: &LocatedSample) {
        let (stored_len, raw_len) = (sample.location.stored_len, sample.location.raw_len());
        self.stored_len = self.stored_len.saturating_add(stored_len);
        self.payload_len = self.payload_len.saturating_add(raw_len);
        if raw_len != stored_len {
            self.decoded_len = self.decoded_len.saturating_add(raw_len);
        }
    }

    /// Refuses a batch that decodes to too many bytes.
    pub(crate) fn check(&self, sample_count: usize) -> Result<(), ReadError> {
        let Self { stored_len, payload_len, .. } = *self;
        let payload_len_max = PAYLOAD_LEN_MAX.max(stored_len.saturating_mul(RATIO_MAX));
        if payload_len <= payload_len_max {
            return Ok(());
        }
        let sample_count = sample_count as u64;
        Err(ReadError::LargeBatch { sample_count, position: None, stored_len, payload_len, payload_len_max })
    }
}

#[cfg(test)]
mod tests {
    use grainstore_store::{Encoding, Location};

    use super::*;

    fn len_of(samples: &[(u64, Option<u64>)]) -> BatchLen {
        let mut len = BatchLen::default();
        for &(stored_len, raw_len) in samples {
            let encoding = raw_len.map_or(Encoding::Raw, |raw_len| Encoding::Lz4 { raw_len });
            let location = Location { segment: 0, offset: 4096, stored_len, crc: 0, encoding };
            len.add(&LocatedSample { ordinal: 0, location });
        }
        len
    }

    #[test]
    fn a_batch_may_decode_to_a_gibibyte_or_16_times_its_stored_length() {
        const MIB: u64 = 1 << 20;
        let small = (MIB, Some(64 * MIB));
        assert!(len_of(&[small; 16]).check(16).is_ok());
        let error = len_of(&[small; 17]).check(17).unwrap_err();
        assert_eq!(
            error.to_string(),
            "batch of 17 samples: it decodes from 17825792 bytes to 1140850688, the limit is 1073741824"
        );
        let large = (4 * MIB, Some(64 * MIB));
        assert!(len_of(&[large; 100]).check(100).is_ok());
        assert!(len_of(&[[large; 99].as_slice(), &[(4 * MIB - 1, Some(64 * MIB))]].concat()).check(100).is_err());
        // What is not decoded is never too long.
        assert!(len_of(&[(u64::MAX, None); 2]).check(2).is_ok());
    }

    #[test]
    fn only_compressed_samples_count_as_decoded() {
        assert_eq!(len_of(&[(10, None), (20, Some(100)), (30, Some(300))]).decoded_len, 400);
    }
}
