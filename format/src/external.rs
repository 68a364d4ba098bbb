//! What the manifest records of an external file: its path, and when it was last modified. spec.md: EXT-1, EXT-3.
//! Its fingerprint is in `fingerprint`; nothing is opened here.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::FormatError;
use crate::error::ensure;

/// The longest path of an external segment, in bytes. spec.md: EXT-1.
const MAX_PATH_LEN: usize = 4096;

/// Whether a path stays inside the parent directory of the dataset. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathReach {
    /// It does: at most one `..`, at the front.
    Inside,
    /// It is absolute, or begins with more than one `..`.
    Outside,
}

/// Whether the path of an external segment, relative to the dataset's directory, stays inside its parent.
/// spec.md: EXT-1.
///
/// # Errors
/// If it is not a path that a manifest may contain.
pub fn external_path_reach(path: &str) -> Result<PathReach, FormatError> {
    ensure(path.len() <= MAX_PATH_LEN, "manifest", || {
        format!("an external path has {} bytes, expected {MAX_PATH_LEN} or fewer", path.len())
    })?;
    let (reach, rest) = match path.strip_prefix('/') {
        Some(rest) => (PathReach::Outside, rest),
        None => after_climbing(path),
    };
    let plain = rest.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains('\0'));
    ensure(plain, "manifest", || {
        let shown = crate::escape_bytes(path.as_bytes());
        format!(
            "external path \"{shown}\" has an empty part, a \".\", a \"..\" that is not at its front or a zero byte"
        )
    })?;
    Ok(reach)
}

/// What follows the `..` at the front of a relative path.
fn after_climbing(path: &str) -> (PathReach, &str) {
    match path.strip_prefix("../") {
        Some(rest) if rest.starts_with("../") => (PathReach::Outside, rest.trim_start_matches("../")),
        Some(rest) => (PathReach::Inside, rest),
        None => (PathReach::Inside, path),
    }
}

/// A file's modification time as the manifest stores it: nanoseconds since 1970, or the nearest value that fits 64
/// bits.
/// spec.md: EXT-3.
pub fn modified_ns(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// EXT-1
    #[test]
    fn a_path_leads_outside_where_it_is_absolute_or_climbs_twice() {
        for path in ["x.tar", "a/b.tar", "../x.tar", "../a/b.tar", "..x/y", "..."] {
            assert_eq!(external_path_reach(path), Ok(PathReach::Inside), "{path}");
        }
        for path in ["/x.tar", "/a/b.tar", "../../x.tar", "../../../a/b.tar"] {
            assert_eq!(external_path_reach(path), Ok(PathReach::Outside), "{path}");
        }
    }

    /// EXT-1
    #[test]
    fn empty_and_dot_parts_are_refused_in_every_path() {
        for path in ["", "/", "//x", "..", "../", "../..", "/..", "/../x", "/a/../x", "a//b", "/a//b", "a/", "/a/"] {
            assert!(external_path_reach(path).is_err(), "{path}");
        }
        for path in ["./a", "a/.", "/./a", "../../a/..", "../a/../b", "a\0b", "/a\0b"] {
            assert!(external_path_reach(path).is_err(), "{path}");
        }
        assert!(external_path_reach(&"abcd".repeat(1024)).is_ok());
        assert!(external_path_reach(&"a".repeat(4097)).unwrap_err().to_string().contains("4097 bytes"));
        assert!(external_path_reach("\u{1b}/..").unwrap_err().to_string().contains("external path \"\\"));
    }

    /// EXT-3
    #[test]
    fn times_before_1970_are_negative_and_times_out_of_range_are_clamped() {
        assert_eq!(modified_ns(UNIX_EPOCH + Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(modified_ns(UNIX_EPOCH - Duration::new(3, 7)), -3_000_000_007);
        let far = Duration::from_secs(1 << 40);
        assert_eq!((modified_ns(UNIX_EPOCH + far), modified_ns(UNIX_EPOCH - far)), (i64::MAX, i64::MIN));
    }
}
