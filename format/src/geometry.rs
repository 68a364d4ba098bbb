//! What all files of a dataset share: chunk size, alignment, seed of the hash.

use crate::FormatError;

/// The length of a block in bytes. Headers, sections and directories start at multiples of it.
pub const BLOCK_LEN: u64 = 4096;

/// A length or index as a `usize`. Hosts have 64 bits, so nothing is lost.
#[expect(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]
pub const fn to_usize(value: u64) -> usize {
    value as usize
}

/// The smallest multiple of `multiple` that is at least `value`. spec.md: CON-5.
///
/// `value` is a length or offset below 2^63; `multiple` is not 0.
pub const fn round_up(value: u64, multiple: u64) -> u64 {
    value.div_ceil(multiple).saturating_mul(multiple)
}

/// The size of a chunk, a power of two from 4 KiB to 1 GiB. spec.md: HDR-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkSize {
    log2: u8,
}

impl ChunkSize {
    /// 256 KiB.
    pub const DEFAULT: Self = Self { log2: 18 };

    /// A chunk size of `bytes`.
    ///
    /// # Errors
    /// If `bytes` is not a power of two from 4 KiB to 1 GiB.
    pub fn new(bytes: u64) -> Result<Self, FormatError> {
        let log2 = u8::try_from(bytes.trailing_zeros()).ok().filter(|_| bytes.is_power_of_two());
        log2.and_then(Self::from_log2).ok_or_else(|| {
            FormatError::Invalid(format!("chunk size {bytes} is not a power of two from 4096 (4K) to 1073741824 (1G)"))
        })
    }

    pub(crate) fn from_log2(log2: u8) -> Option<Self> {
        (12..=30).contains(&log2).then_some(Self { log2 })
    }

    pub(crate) const fn log2(self) -> u8 {
        self.log2
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.log2
    }

    /// The chunk that owns a sample: the one that it starts in, or of an empty sample the one of the byte before it.
    /// spec.md: CHK-1.
    pub const fn owner(self, offset: u64, stored_len: u64) -> u64 {
        let owned_byte = if stored_len == 0 { offset.saturating_sub(1) } else { offset };
        owned_byte >> self.log2
    }

    /// Whether a sample ends past the end of `chunk`. spec.md: CHK-3.
    pub const fn crosses_out_of(self, chunk: u64, offset: u64, stored_len: u64) -> bool {
        offset + stored_len > (chunk + 1) << self.log2
    }
}

/// The number of chunks of a segment whose last sample ends at `data_end`. spec.md: SEG-3.
pub const fn chunk_count(data_end: u64, chunk_size: ChunkSize) -> u64 {
    let count = data_end.div_ceil(chunk_size.bytes());
    if count == 0 { 1 } else { count }
}

/// Where a writer may start a sample. spec.md: SMP-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alignment {
    /// Back to back.
    #[default]
    Packed,
    /// On multiples of 8 bytes.
    Bytes8,
    /// On multiples of 64 bytes.
    Bytes64,
    /// On multiples of 4096 bytes.
    Bytes4096,
    /// Back to back, but a sample that fits in a chunk never crosses a chunk boundary.
    NoEdges,
}

impl Alignment {
    pub(crate) const fn to_disk(self) -> u32 {
        match self {
            Self::NoEdges => 0,
            Self::Packed => 1,
            Self::Bytes8 => 8,
            Self::Bytes64 => 64,
            Self::Bytes4096 => 4096,
        }
    }

    pub(crate) const fn from_disk(value: u32) -> Option<Self> {
        match value {
            0 => Some(Self::NoEdges),
            1 => Some(Self::Packed),
            8 => Some(Self::Bytes8),
            64 => Some(Self::Bytes64),
            4096 => Some(Self::Bytes4096),
            _ => None,
        }
    }

    /// The first valid offset at or after `end` for a sample of `stored_len` bytes.
    pub fn place(self, end: u64, stored_len: u64, chunk_size: ChunkSize) -> u64 {
        if self == Self::NoEdges {
            let boundary = round_up(end, chunk_size.bytes());
            let fits = (1..=chunk_size.bytes()).contains(&stored_len);
            return if fits && end + stored_len > boundary { boundary } else { end };
        }
        round_up(end, u64::from(self.to_disk()))
    }
}

impl std::fmt::Display for Alignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoEdges => f.write_str("no-edges"),
            other => write!(f, "{}", other.to_disk()),
        }
    }
}

impl std::str::FromStr for Alignment {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text {
            "no-edges" => Some(Self::NoEdges),
            "0" => None,
            digits => digits.parse().ok().and_then(Self::from_disk),
        }
        .ok_or_else(|| FormatError::Invalid(format!("alignment is \"{text}\", expected 1, 8, 64, 4096 or no-edges")))
    }
}

/// What all files of a dataset have in common. spec.md: HDR-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The size of a chunk.
    pub chunk_size: ChunkSize,
    /// Where samples may start.
    pub alignment: Alignment,
    /// The seed of the keys' hash.
    pub hash_seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CON-5
    #[test]
    fn rounds_up_to_the_next_multiple() {
        assert_eq!((round_up(0, 4096), round_up(1, 4096), round_up(4096, 4096)), (0, 4096, 4096));
    }

    /// CHK-1
    #[test]
    fn an_empty_sample_belongs_to_the_chunk_of_the_byte_before_it() {
        let size = ChunkSize::new(4096).unwrap();
        assert_eq!((size.owner(8192, 0), size.owner(8192, 1), size.owner(0, 0)), (1, 2, 0));
    }

    /// CHK-3
    #[test]
    fn a_sample_that_ends_at_the_boundary_is_not_an_edge_sample() {
        let size = ChunkSize::new(4096).unwrap();
        assert!(!size.crosses_out_of(1, 5000, 8192 - 5000));
        assert!(size.crosses_out_of(1, 5000, 8193 - 5000));
    }

    /// SEG-3
    #[test]
    fn a_segment_has_at_least_one_chunk() {
        let size = ChunkSize::new(4096).unwrap();
        assert_eq!((chunk_count(0, size), chunk_count(4096, size), chunk_count(4097, size)), (1, 1, 2));
    }

    /// SMP-2
    #[test]
    fn no_edges_moves_only_samples_that_fit_a_chunk() {
        let size = ChunkSize::new(4096).unwrap();
        let rule = Alignment::NoEdges;
        assert_eq!(rule.place(5000, 4000, size), 8192);
        assert_eq!(rule.place(5000, 3192, size), 5000);
        assert_eq!(rule.place(5000, 4096, size), 8192);
        assert_eq!(rule.place(8192, 4096, size), 8192);
        assert_eq!(rule.place(5000, 4097, size), 5000);
        assert_eq!(rule.place(5000, 0, size), 5000);
        assert_eq!(Alignment::Bytes64.place(5000, 3, size), 5056);
    }

    #[test]
    fn refuses_chunk_sizes_that_are_not_a_power_of_two_or_out_of_range() {
        for bytes in [0, 1, 2048, 4097, 1 << 31] {
            assert!(ChunkSize::new(bytes).is_err(), "{bytes}");
        }
        assert_eq!(ChunkSize::new(1 << 18).unwrap(), ChunkSize::DEFAULT);
    }
}
