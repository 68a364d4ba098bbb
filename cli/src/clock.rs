//! Seconds as users write them, and the processor time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of the process.
pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The clock starts with the process, so neither number is negative.
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Parses a number of seconds: `10`, `0.5`. Fits clap's `value_parser`.
///
/// # Errors
/// A sentence for the user if it is not such a number.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected seconds such as 10 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_with_a_fraction_and_never_negative() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "-1", "nan", "inf", "10s"] {
            assert_eq!(parse_seconds(text).unwrap_err(), "expected seconds such as 10 or 0.5", "{text}");
        }
    }

    #[test]
    fn the_processor_time_only_grows() {
        let before = process_cpu();
        assert!(before > Duration::ZERO && process_cpu() >= before);
    }
}
