//! Sizes as users write them (`256K`, powers of 1024) and as output shows them (`146.2 GB`, powers of 1000); counts as
//! output shows them.

use std::num::NonZeroUsize;

/// What a suffix multiplies by, as a power of two.
const SUFFIXES: [(&str, u32); 12] = [
    ("", 0),
    ("B", 0),
    ("K", 10),
    ("KIB", 10),
    ("M", 20),
    ("MIB", 20),
    ("G", 30),
    ("GIB", 30),
    ("T", 40),
    ("TIB", 40),
    ("P", 50),
    ("PIB", 50),
];

/// Parses a size in bytes: `4096`, `256K`, `1MiB`, `4G`; suffixes in either case. Fits clap's `value_parser`.
///
/// # Errors
/// A sentence for the user if it is not a size, or is 2^64 bytes or more.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = text.split_at(digits_len);
    let suffix = suffix.trim_start().to_ascii_uppercase();
    let shift = SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, shift)| *shift);
    let (Some(shift), false) = (shift, digits.is_empty()) else {
        return Err("expected a size such as 4096, 256K, 1MiB or 4G (K, M, G, T, P are powers of 1024)".to_owned());
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.ok_or_else(|| "larger than 2^64 bytes".to_owned())
}

/// A number of bytes for people: `999 B`, `1.0 kB`, `146.2 GB`.
pub(crate) fn shown_size(bytes: u64) -> String {
    let mut unit = 1_u64;
    for name in ["B", "kB", "MB", "GB", "TB", "PB"] {
        // Rounded to a tenth; a value that rounds to 1000.0 is shown in the next unit.
        let tenths = (u128::from(bytes) * 10 + u128::from(unit / 2)) / u128::from(unit);
        if tenths < 10_000 {
            return if unit == 1 { format!("{bytes} B") } else { format!("{}.{} {name}", tenths / 10, tenths % 10) };
        }
        unit *= 1000;
    }
    format!("{} PB", bytes / 1_000_000_000_000_000)
}

/// A rate for people: `2.4 GB/s`; 0 if no time has passed.
pub(crate) fn per_second(bytes: u64, elapsed: std::time::Duration) -> String {
    let nanoseconds = elapsed.as_nanos().max(1);
    let rate = u128::from(bytes) * 1_000_000_000 / nanoseconds;
    format!("{}/s", shown_size(u64::try_from(rate).unwrap_or(u64::MAX)))
}

/// A power of two, or any other number of bytes, as [`parse_size`] reads it: `256K`, `1000`.
pub(crate) fn shown_exact(bytes: u64) -> String {
    let units = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let unit = units.iter().find(|(_, shift)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(name, shift)| format!("{}{name}", bytes >> shift))
}

/// `1 sample`, `2 samples`, `2 batches`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let ending = match count {
        1 => "",
        _ if thing.ends_with('s') || thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {thing}{ending}")
}

/// Parses a number of threads: 1 to 1024. More would only wait for each other.
///
/// # Errors
/// If it is not such a number.
pub(crate) fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs = text.parse().ok().filter(|jobs: &NonZeroUsize| jobs.get() <= 1024);
    jobs.ok_or_else(|| "the number of threads is 1 to 1024".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("12B", 12),
            ("256K", 262_144),
            ("1MiB", 1 << 20),
            ("4g", 4 << 30),
            ("2 TiB", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "1.5M", "4KB", "4 x", "0x10", "1K1"] {
            assert!(parse_size(text).unwrap_err().starts_with("expected a size such as"), "{text}");
        }
        for text in ["18446744073709551616", "16384P"] {
            assert_eq!(parse_size(text).unwrap_err(), "larger than 2^64 bytes", "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_powers_of_1000_with_one_decimal() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (146_204_000_000, "146.2 GB"),
            (u64::MAX, "18446 PB"),
        ] {
            assert_eq!(shown_size(bytes), text);
        }
    }

    #[test]
    fn a_rate_is_bytes_over_time_and_never_divides_by_zero() {
        let seconds = std::time::Duration::from_secs;
        assert_eq!(per_second(146_200_000_000, seconds(61)), "2.4 GB/s");
        assert_eq!(per_second(0, seconds(0)), "0 B/s");
        assert_eq!(per_second(u64::MAX, seconds(0)), "18446 PB/s");
    }

    proptest! {
        #[test]
        fn an_exact_size_is_read_back(base in 0_u64..5000, shift in 0_u32..50) {
            let bytes = base << shift;
            prop_assert_eq!(parse_size(&shown_exact(bytes)), Ok(bytes));
        }
    }
}
