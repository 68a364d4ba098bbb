//! Timestamps as text.

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A timestamp as date and time in UTC, with as many decimals as it needs: `2026-11-22T23:30:00.5Z`.
pub(crate) fn shown_time(ns: i64) -> String {
    let seconds = ns.div_euclid(SECOND_NS);
    let (year, month, day) = date(seconds.div_euclid(DAY_S));
    let second = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let decimals = match ns.rem_euclid(SECOND_NS) {
        0 => String::new(),
        rest => format!(".{rest:09}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{decimals}Z")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(day: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year; 400 years have 146,097 days.
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day = day.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::shown_time;

    #[test]
    fn a_timestamp_is_a_date_and_time_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (-2_203_977_600, "1900-02-28T00:00:00Z"),
            (-2_203_891_200, "1900-03-01T00:00:00Z"),
            (1_732_233_600, "2024-11-22T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(shown_time(seconds * 1_000_000_000), expected);
        }
        assert_eq!(shown_time(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(shown_time(1_500_000_000), "1970-01-01T00:00:01.5Z");
        assert_eq!(shown_time(i64::MIN), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(shown_time(i64::MAX), "2262-04-11T23:47:16.854775807Z");
    }
}
