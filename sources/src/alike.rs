//! Which files in a folder of shards are damaged shards, and which are something else, such as a README.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::shown_path;

use crate::SourceError;
use crate::recognise::Format;

/// Refuses a file whose name is like that of a shard: it may be one that is damaged, and is not left out. Other files
/// are no shards. An empty TFRecord file is a shard without records.
///
/// Returns the shards, empty ones too, and the others, each in order.
pub(crate) fn split_shards(
    files: Vec<(PathBuf, bool)>,
    format: Format,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), SourceError> {
    let Some(first) = files.iter().find(|(_, is_shard)| *is_shard).map(|(file, _)| file.clone()) else {
        return Ok((Vec::new(), files.into_iter().map(|(file, _)| file).collect()));
    };
    let alike: Vec<Alike> = files.iter().filter(|(_, is_shard)| *is_shard).map(|(file, _)| Alike::of(file)).collect();
    let (mut shards, mut others) = (Vec::new(), Vec::new());
    for (file, is_shard) in files {
        if is_shard {
            shards.push(file);
        } else if !alike.contains(&Alike::of(&file)) {
            others.push(file);
        } else if format == Format::TfRecord && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            shards.push(file);
        } else {
            let why = format!(
                "its name is like that of {}, but it is not {}: it may be cut off; to leave it out, move it away or name the shards",
                shown_path(first.file_name().map_or(first.as_path(), Path::new)),
                format.name()
            );
            return Err(SourceError::refused(&file, why));
        }
    }
    Ok((shards, others))
}

/// What the names of the shards of one dataset have in common: the extension, or all but the digits.
#[derive(PartialEq, Eq)]
enum Alike {
    Extension(Vec<u8>),
    Pattern(Vec<u8>),
}

impl Alike {
    fn of(path: &Path) -> Self {
        let is_word = |extension: &&OsStr| {
            extension.as_bytes().iter().any(u8::is_ascii_alphabetic) && !extension.as_bytes().contains(&b'-')
        };
        if let Some(extension) = path.extension().filter(is_word) {
            let is_compressed = ["gz", "zst", "bz2", "xz", "lz4"].iter().any(|one| extension.eq_ignore_ascii_case(one));
            let inner = path.file_stem().filter(|_| is_compressed).and_then(|stem| Path::new(stem).extension());
            let both = [inner.unwrap_or_default().as_bytes(), extension.as_bytes()].join(&b'.');
            return Self::Extension(both.to_ascii_lowercase());
        }
        let name = path.file_name().unwrap_or_default().as_bytes();
        let mut pattern: Vec<u8> = name.iter().map(|&byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
        pattern.dedup_by(|a, b| *a == b'0' && *b == b'0');
        Self::Pattern(pattern)
    }
}
