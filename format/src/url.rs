//! Paths that are URLs. Nothing here reads from a network: a path that does not exist and looks like a URL is reported
//! as what it is, rather than as a missing file.

use std::path::{Path, PathBuf};

use crate::{Remedy, shown_path};

/// A path that is a URL, such as `s3://bucket/a.grain`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: URLs are not supported yet, only paths of this system", shown_path(.path))]
pub struct UrlPath {
    /// The path as it was given.
    pub path: PathBuf,
}

impl UrlPath {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Remedy {
        Remedy::CopyOrMount
    }

    /// Refuses a path that is a URL. A file or folder may have such a name, so this is for paths that do not exist.
    ///
    /// # Errors
    /// If the path begins with a scheme and `://`, or with one that is known to be of a remote store and `:/`, which is
    /// what remains of a URL once a library has normalised it as a path.
    pub fn refuse(path: impl AsRef<Path>) -> Result<(), Self> {
        let path = path.as_ref();
        if is_url(path.as_os_str().as_encoded_bytes()) { Err(Self { path: path.to_owned() }) } else { Ok(()) }
    }
}

/// Schemes that are recognised with a single slash, too.
const REMOTE: [&[u8]; 12] =
    [b"s3", b"s3a", b"gs", b"gcs", b"az", b"abfs", b"abfss", b"hdfs", b"hf", b"http", b"https", b"file"];

fn is_url(path: &[u8]) -> bool {
    let Some(colon) = path.iter().position(|&byte| byte == b':') else { return false };
    let (scheme, rest) = path.split_at(colon);
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let begins = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    let is_scheme = scheme.len() > 1 && begins && scheme.iter().all(legal);
    let is_remote = || REMOTE.iter().any(|remote| scheme.eq_ignore_ascii_case(remote));
    is_scheme && (rest.starts_with(b"://") || rest.starts_with(b":/") && is_remote())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_with_two_slashes_is_a_url_and_known_ones_with_one() {
        for url in ["s3://bucket/a.grain", "gs://b", "az://c/d", "https://host/a.tar", "x+y.z-1://q", "S3:/bucket"] {
            assert!(UrlPath::refuse(url).is_err(), "{url}");
        }
        for path in ["a.grain", "/a:b", "c:/x", "a/s3://x", "://x", "s3:", "data:/x", "9p://x", "", "ä://x"] {
            assert_eq!(UrlPath::refuse(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn the_message_names_the_url() {
        let error = UrlPath::refuse("s3://bucket/a.grain").unwrap_err();
        assert_eq!(error.to_string(), "s3://bucket/a.grain: URLs are not supported yet, only paths of this system");
    }
}
