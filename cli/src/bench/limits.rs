//! The limits that ways of reading are compared with: what the device does at the size and depth of their reads.

use grainstore_format::to_usize;
use grainstore_reader::engine::BLOCK_LEN;
use serde::Serialize;

use super::device::Load;

const BLOCK: u64 = BLOCK_LEN as u64;
/// Longer reads are no faster, and a buffer for each read in flight must fit memory.
const REQUEST_LEN_MAX: u64 = 8 << 20;
/// Bytes in flight that keep a device busy, and that the reader aims for if its reads are long.
const IN_FLIGHT_LEN: u64 = 8 << 20;
/// The same for samples that are read one by one, which are longer in some datasets than in others.
const SAMPLES_IN_FLIGHT_LEN_MAX: u64 = 64 << 20;
/// Shorter reads than this are limited by their number, so more of them are kept in flight.
const SHORT_LEN: u64 = 16 << 10;

/// One limit of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// Reads as long as the extents of the dataset.
    Extents,
    /// Reads as long as the samples of the dataset.
    Samples,
    /// Like `Samples`, one at a time.
    OneSample,
}

impl Limit {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 3] = [Self::Extents, Self::Samples, Self::OneSample];

    /// Its name in the table.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Extents => 'A',
            Self::Samples => 'B',
            Self::OneSample => 'C',
        }
    }

    /// Size and depth of its reads.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Extents => "extents",
            Self::Samples => "samples",
            Self::OneSample => "one sample",
        }
    }
}

/// Mean sizes of the units in which a dataset is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeanLens {
    pub(crate) extent_len: u64,
    pub(crate) sample_len: u64,
}

impl MeanLens {
    /// Bytes of a mean read, a multiple of the block size, at least one block.
    pub(crate) fn unit_len(self, limit: Limit) -> u64 {
        let len = match limit {
            Limit::Extents => self.extent_len,
            Limit::Samples | Limit::OneSample => self.sample_len,
        };
        len.max(1).checked_next_multiple_of(BLOCK).unwrap_or(len) // past 2^64, where `load` cuts it anyway
    }

    /// The load to measure for a limit.
    pub(crate) fn load(self, limit: Limit, seed: u64) -> Load {
        let request_len = self.unit_len(limit).min(REQUEST_LEN_MAX);
        let depth = match limit {
            // Rounded to the nearest: extents of a little more than 256 KiB are read 32 at a time too.
            Limit::Extents => ((IN_FLIGHT_LEN + request_len / 2) / request_len).clamp(1, 256),
            Limit::Samples if request_len < SHORT_LEN => 256,
            Limit::Samples => (SAMPLES_IN_FLIGHT_LEN_MAX / request_len).clamp(1, 32),
            Limit::OneSample => 1,
        };
        Load { request_len, depth: to_usize(depth), seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_whole_blocks_at_the_depth_that_suits_their_length() {
        let loads = |extent_len, sample_len| {
            let lens = MeanLens { extent_len, sample_len };
            Limit::ALL.map(|limit| lens.load(limit, 0)).map(|load| (load.request_len, load.depth))
        };
        assert_eq!(loads(261_900, 110_000), [(262_144, 32), (110_592, 32), (110_592, 1)]);
        assert_eq!(loads(266_000, 1)[0], (266_240, 32));
        assert_eq!(loads(262_144, 3073), [(262_144, 32), (4096, 256), (4096, 1)]);
        assert_eq!(loads(1 << 40, 16 << 20), [(8 << 20, 1), (8 << 20, 8), (8 << 20, 1)]);
        assert_eq!(loads(0, 0), [(4096, 256), (4096, 256), (4096, 1)]);
        assert_eq!(loads(u64::MAX, u64::MAX)[1], (8 << 20, 8));
    }
}
