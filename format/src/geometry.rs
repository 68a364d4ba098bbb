//! What all indexes of a dataset share: chunk size, alignment, seed of the hash.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// On multiples of this many bytes.
    Multiple(AlignmentBytes),
    /// Back to back, but a sample that fits in a chunk never crosses a chunk boundary.
    NoEdges,
}

/// A power of two from 1 to 4096, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlignmentBytes(u32);

impl Alignment {
    /// Back to back: on multiples of 1 byte.
    pub const PACKED: Self = Self::Multiple(AlignmentBytes(1));

    /// Multiples of `bytes`.
    ///
    /// # Errors
    /// If `bytes` is not a power of two from 1 to 4096.
    pub fn multiple_of(bytes: u64) -> Result<Self, FormatError> {
        let legal = u32::try_from(bytes).ok().filter(|_| bytes.is_power_of_two() && bytes <= BLOCK_LEN);
        legal.map(|bytes| Self::Multiple(AlignmentBytes(bytes))).ok_or_else(|| unknown_alignment(&bytes.to_string()))
    }

    pub(crate) const fn to_disk(self) -> u32 {
        match self {
            Self::NoEdges => 0,
            Self::Multiple(AlignmentBytes(bytes)) => bytes,
        }
    }

    pub(crate) fn from_disk(value: u32) -> Option<Self> {
        if value == 0 { Some(Self::NoEdges) } else { Self::multiple_of(u64::from(value)).ok() }
    }

    /// The first valid offset at or after `end` for a sample of `stored_len` bytes.
    pub fn place(self, end: u64, stored_len: u64, chunk_size: ChunkSize) -> u64 {
        match self {
            Self::Multiple(AlignmentBytes(bytes)) => round_up(end, u64::from(bytes)),
            Self::NoEdges => {
                let boundary = round_up(end, chunk_size.bytes());
                let fits = (1..=chunk_size.bytes()).contains(&stored_len);
                if fits && end + stored_len > boundary { boundary } else { end }
            }
        }
    }
}

impl AlignmentBytes {
    /// The number of bytes.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Alignment {
    fn default() -> Self {
        Self::PACKED
    }
}

impl std::fmt::Display for Alignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoEdges => f.write_str("no-edges"),
            Self::Multiple(bytes) => write!(f, "{}", bytes.get()),
        }
    }
}

impl std::str::FromStr for Alignment {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        if text == "no-edges" {
            return Ok(Self::NoEdges);
        }
        text.parse().ok().and_then(|bytes| Self::multiple_of(bytes).ok()).ok_or_else(|| unknown_alignment(text))
    }
}

fn unknown_alignment(found: &str) -> FormatError {
    FormatError::Invalid(format!("alignment is \"{found}\", expected a power of two from 1 to 4096, or no-edges"))
}

/// What all indexes of a dataset have in common. spec.md: HDR-2.
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
        assert_eq!(Alignment::multiple_of(64).unwrap().place(5000, 3, size), 5056);
        assert_eq!(Alignment::PACKED.place(5000, 3, size), 5000);
    }

    /// SMP-2
    #[test]
    fn an_alignment_is_a_power_of_two_up_to_a_block_or_no_edges() {
        for exponent in 0..=12 {
            let text = (1 << exponent).to_string();
            let alignment: Alignment = text.parse().unwrap();
            assert_eq!((alignment.to_string(), Alignment::from_disk(alignment.to_disk())), (text, Some(alignment)));
        }
        let no_edges = "no-edges".parse().unwrap();
        assert_eq!((no_edges, Alignment::from_disk(0)), (Alignment::NoEdges, Some(Alignment::NoEdges)));
        for text in ["0", "3", "8192", "4294967296", "-1", "", "edges"] {
            assert!(text.parse::<Alignment>().is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_chunk_sizes_that_are_not_a_power_of_two_or_out_of_range() {
        for bytes in [0, 1, 2048, 4097, 1 << 31] {
            assert!(ChunkSize::new(bytes).is_err(), "{bytes}");
        }
        assert_eq!(ChunkSize::new(1 << 18).unwrap(), ChunkSize::DEFAULT);
    }
}
