//! The side table of long samples: lengths that do not fit an entry's 31 bits. spec.md: LNG-1.

use crate::error::ensure;
use crate::{FormatError, LONG_STORED_LEN};

const WHAT: &str = "table of long samples";

/// Which samples are long, and how long: the checked section as it is in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongTable(Vec<u8>);

impl LongTable {
    /// Bytes of a record.
    pub const RECORD_LEN: usize = 16;

    /// Takes the bytes of the section of an index of `sample_count` samples.
    ///
    /// # Errors
    /// If ordinals do not ascend or do not exist, or a length is not long.
    pub fn decode(bytes: Vec<u8>, sample_count: u64) -> Result<Self, FormatError> {
        ensure(bytes.len().is_multiple_of(Self::RECORD_LEN), WHAT, || {
            format!("{} bytes are not a whole number of records", bytes.len())
        })?;
        let table = Self(bytes);
        let mut before = None;
        for (ordinal, len) in table.records().iter().map(split) {
            ensure(before.is_none_or(|before| before < ordinal), WHAT, || {
                format!("ordinal {ordinal} does not ascend")
            })?;
            ensure(ordinal < sample_count, WHAT, || {
                format!("ordinal {ordinal} does not exist among {sample_count} samples")
            })?;
            ensure(len >= LONG_STORED_LEN, WHAT, || format!("sample {ordinal} has {len} bytes, which is not long"))?;
            before = Some(ordinal);
        }
        Ok(table)
    }

    /// The stored length of a long sample in bytes.
    pub fn stored_len(&self, ordinal: u64) -> Option<u64> {
        let index = self.records().binary_search_by_key(&ordinal, |record| split(record).0).ok()?;
        self.records().get(index).map(|record| split(record).1)
    }

    /// The number of long samples.
    pub fn len(&self) -> u64 {
        self.records().len() as u64
    }

    /// Whether no sample is long.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The table of the first `sample_count` samples only (an older generation).
    #[must_use]
    pub fn truncated(mut self, sample_count: u64) -> Self {
        let count = self.records().partition_point(|record| split(record).0 < sample_count);
        self.0.truncate(count * Self::RECORD_LEN);
        self
    }

    fn records(&self) -> &[[u8; Self::RECORD_LEN]] {
        self.0.as_chunks().0
    }

    /// One record's bytes.
    pub fn encode_record(ordinal: u64, stored_len: u64) -> [u8; Self::RECORD_LEN] {
        zerocopy::transmute!([ordinal.to_le_bytes(), stored_len.to_le_bytes()])
    }
}

/// The ordinal and the stored length of a record.
fn split(record: &[u8; LongTable::RECORD_LEN]) -> (u64, u64) {
    let [ordinal, len]: [[u8; 8]; 2] = zerocopy::transmute!(*record);
    (u64::from_le_bytes(ordinal), u64::from_le_bytes(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LNG-1
    #[test]
    fn finds_the_length_of_a_long_sample() {
        let bytes = [LongTable::encode_record(3, 1 << 33), LongTable::encode_record(9, LONG_STORED_LEN)].concat();
        let table = LongTable::decode(bytes.clone(), 10).unwrap();
        assert_eq!(
            (table.stored_len(3), table.stored_len(9), table.stored_len(4)),
            (Some(1 << 33), Some(LONG_STORED_LEN), None)
        );
        assert_eq!(table.truncated(9).len(), 1);
        assert!(LongTable::decode(bytes.clone(), 9).is_err(), "ordinal 9 does not exist");
        assert!(LongTable::decode(bytes[..24].to_vec(), 10).is_err(), "half a record");
        assert!(LongTable::decode(LongTable::encode_record(3, 5).to_vec(), 10).is_err(), "5 bytes are not long");
        let twice = [LongTable::encode_record(3, 1 << 33), LongTable::encode_record(3, 1 << 33)].concat();
        assert!(LongTable::decode(twice, 10).is_err());
    }
}
