//! The default number of lanes: how many extents fit the memory window. order.md: PLN-7.

/// Numbers of lanes to choose from, largest first. Of the form 3 x 2^k, so that many world sizes divide them.
const LANE_COUNTS: [u64; 11] = [768, 384, 192, 96, 48, 24, 12, 6, 3, 2, 1];

/// What the default number of lanes depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneBudget {
    /// Memory for the extents being visited, in bytes.
    pub window_len: u64,
    /// Chunk size of the dataset, in bytes.
    pub chunk_size: u64,
    /// Stored lengths of all samples together, in bytes.
    pub stored_bytes: u64,
    /// Extents of the dataset.
    pub extent_count: u32,
    /// Units of the ring with a sample that is visited: see [`Extents::unit_count`](crate::Extents::unit_count).
    pub unit_count: u32,
}

/// The default number of lanes: as many as the window holds extents, and at most half of the units
/// visited. Never 0, and never more than there are samples, unless there are no samples.
#[must_use]
pub fn default_lanes(budget: LaneBudget) -> u64 {
    let extent_count = u64::from(budget.extent_count);
    // The mean is above the chunk size if samples are longer than a chunk.
    let mean_extent_len = budget.stored_bytes.div_ceil(extent_count.max(1));
    let window_extents = budget.window_len / budget.chunk_size.max(mean_extent_len).max(1);
    let lane_count_max = window_extents.min(u64::from(budget.unit_count) / 2).max(1);
    LANE_COUNTS.into_iter().find(|&lane_count| lane_count <= lane_count_max).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn lanes(window_len: u64, chunk_size: u64, stored_bytes: u64, extent_count: u32) -> u64 {
        default_lanes(LaneBudget { window_len, chunk_size, stored_bytes, extent_count, unit_count: extent_count })
    }

    /// PLN-7
    #[test]
    fn default_fits_the_window() {
        for (window_len, expected) in [
            (256 * MIB, 768),
            (192 * MIB, 768),
            (192 * MIB - 1, 384),
            (64 * MIB, 192),
            (3 * MIB, 12),
            (MIB, 3),
            (512 * KIB, 2),
            (256 * KIB, 1),
            (0, 1),
            (u64::MAX, 768),
        ] {
            assert_eq!(lanes(window_len, 256 * KIB, 100_000 * 256 * KIB, 100_000), expected, "window of {window_len}");
        }
    }

    /// PLN-7
    #[test]
    fn default_is_at_most_half_the_extents() {
        for (extent_count, expected) in [
            (0, 1),
            (1, 1),
            (3, 1),
            (4, 2),
            (6, 3),
            (11, 3),
            (12, 6),
            (191, 48),
            (192, 96),
            (1535, 384),
            (1536, 768),
            (u32::MAX, 768),
        ] {
            assert_eq!(lanes(256 * MIB, 256 * KIB, 0, extent_count), expected, "{extent_count} extents");
        }
    }

    /// PLN-7
    #[test]
    fn extents_longer_than_a_chunk_count_with_their_mean_length() {
        let extent_count = 10_000;
        let stored = |mean: u64| mean * u64::from(extent_count);
        assert_eq!(lanes(256 * MIB, 256 * KIB, stored(256 * KIB), extent_count), 768);
        assert_eq!(lanes(256 * MIB, 256 * KIB, stored(MIB), extent_count), 192);
        // The mean is rounded up: 256 MiB holds 96 extents of 2,796,202 bytes, not of 2,796,203.
        assert_eq!(lanes(256 * MIB, 256 * KIB, stored(2_796_202), extent_count), 96);
        assert_eq!(lanes(256 * MIB, 256 * KIB, stored(2_796_202) + 1, extent_count), 48);
    }

    /// PLN-9
    #[test]
    fn a_subset_has_at_most_half_as_many_lanes_as_units_with_a_sample_of_it() {
        let budget = LaneBudget {
            window_len: 256 * MIB,
            chunk_size: 256 * KIB,
            stored_bytes: 10_000 * 256 * KIB,
            extent_count: 10_000,
            unit_count: 24,
        };
        assert_eq!(default_lanes(budget), 12);
    }

    #[test]
    fn default_survives_a_chunk_size_and_an_extent_count_of_zero() {
        assert_eq!(lanes(256 * MIB, 0, 0, 0), 1);
        assert_eq!(lanes(0, 0, u64::MAX, u32::MAX), 1);
    }
}
