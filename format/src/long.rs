//! The side table of long samples: lengths that do not fit an entry's 31 bits. spec.md: LNG-1.

use crate::error::ensure;
use crate::{FormatError, LONG_STORED_LEN};

const WHAT: &str = "table of long samples";

/// Which samples are long, and how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongTable(Vec<(u64, u64)>);

impl LongTable {
    /// Bytes of a record.
    pub const RECORD_LEN: usize = 16;

    /// Reads the section of an index of `sample_count` samples.
    ///
    /// # Errors
    /// If ordinals do not ascend or do not exist, or a length is not long.
    pub fn decode(bytes: &[u8], sample_count: u64) -> Result<Self, FormatError> {
        let (words, rest) = bytes.as_chunks::<8>();
        ensure(rest.is_empty() && words.len().is_multiple_of(2), WHAT, || {
            format!("{} bytes are not a whole number of records", bytes.len())
        })?;
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut records: Vec<(u64, u64)> = Vec::with_capacity(bytes.len() / Self::RECORD_LEN);
        while let (Some(ordinal), Some(len)) = (words.next(), words.next()) {
            ensure(records.last().is_none_or(|&(before, _)| before < ordinal), WHAT, || {
                format!("ordinal {ordinal} does not ascend")
            })?;
            ensure(ordinal < sample_count, WHAT, || {
                format!("ordinal {ordinal} does not exist among {sample_count} samples")
            })?;
            ensure(len >= LONG_STORED_LEN, WHAT, || format!("sample {ordinal} has {len} bytes, which is not long"))?;
            records.push((ordinal, len));
        }
        Ok(Self(records))
    }

    /// The stored length of a long sample in bytes.
    pub fn stored_len(&self, ordinal: u64) -> Option<u64> {
        let index = self.0.binary_search_by_key(&ordinal, |&(ordinal, _)| ordinal).ok()?;
        self.0.get(index).map(|&(_, len)| len)
    }

    /// The number of long samples.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether no sample is long.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The table of the first `sample_count` samples only (an older generation).
    pub fn truncated(&self, sample_count: u64) -> Self {
        Self(self.0.iter().copied().take_while(|&(ordinal, _)| ordinal < sample_count).collect())
    }

    /// One record's bytes.
    pub fn encode_record(ordinal: u64, stored_len: u64) -> [u8; Self::RECORD_LEN] {
        zerocopy::transmute!([ordinal.to_le_bytes(), stored_len.to_le_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LNG-1
    #[test]
    fn finds_the_length_of_a_long_sample() {
        let bytes = [LongTable::encode_record(3, 1 << 33), LongTable::encode_record(9, LONG_STORED_LEN)].concat();
        let table = LongTable::decode(&bytes, 10).unwrap();
        assert_eq!(
            (table.stored_len(3), table.stored_len(9), table.stored_len(4)),
            (Some(1 << 33), Some(LONG_STORED_LEN), None)
        );
        assert_eq!(table.truncated(9).len(), 1);
        assert!(LongTable::decode(&bytes, 9).is_err(), "ordinal 9 does not exist");
        assert!(LongTable::decode(&bytes[..24], 10).is_err(), "half a record");
        assert!(LongTable::decode(&[LongTable::encode_record(3, 5)].concat(), 10).is_err(), "5 bytes are not long");
        let twice = [LongTable::encode_record(3, 1 << 33), LongTable::encode_record(3, 1 << 33)].concat();
        assert!(LongTable::decode(&twice, 10).is_err());
    }
}
