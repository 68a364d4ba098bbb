//! Opens regular files only, and reads one whole, with an error if its length changes meanwhile.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A folder, pipe, device or socket where a regular file is expected: the cause of an [`io::Error`] of
/// [`open_regular`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRegular;

impl NotRegular {
    /// Whether this is the cause of `error`.
    pub fn caused(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a regular file")
    }
}

impl std::error::Error for NotRegular {}

/// Opens a regular file for reading, and returns it with its length in bytes.
///
/// It never blocks: opening a pipe would wait for a writer, and another process may replace a file by a pipe at any time.
///
/// # Errors
/// If the file cannot be opened; [`NotRegular`] if it is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other(NotRegular));
    }
    Ok((file, metadata.len()))
}

/// Reads all of a file that had `len` bytes when it was opened.
///
/// # Errors
/// If it cannot be read, or its length has changed.
pub fn read_whole(file: File, len: u64) -> io::Result<Vec<u8>> {
    let room = usize::try_from(len).map_err(io::Error::other)?;
    let mut payload = Vec::new();
    payload.try_reserve_exact(room)?;
    // One byte more than there should be shows a file that has grown.
    file.take(len + 1).read_to_end(&mut payload)?;
    let found = payload.len() as u64;
    if found < len {
        return Err(io::Error::other(format!("it shrank while it was read: {len} bytes when opened, {found} read")));
    }
    if found > len {
        return Err(io::Error::other(format!(
            "it grew while it was read: {len} bytes when opened, more than {len} read"
        )));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_is_cut_after_it_was_opened_has_shrunk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, [7; 100]).unwrap();
        let (file, len) = open_regular(&path).unwrap();
        assert_eq!(len, 100);
        File::options().write(true).open(&path).unwrap().set_len(60).unwrap();
        let error = read_whole(file, len).unwrap_err().to_string();
        assert_eq!(error, "it shrank while it was read: 100 bytes when opened, 60 read");
    }

    #[test]
    fn a_file_that_is_extended_after_it_was_opened_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, [7; 100]).unwrap();
        let (file, len) = open_regular(&path).unwrap();
        fs::write(&path, [7; 101]).unwrap();
        let error = read_whole(file, len).unwrap_err().to_string();
        assert_eq!(error, "it grew while it was read: 100 bytes when opened, more than 100 read");
    }

    #[test]
    fn folders_and_pipes_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        symlink(&pipe, folder.path().join("link")).unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("link"), pipe] {
            let error = open_regular(&path).unwrap_err();
            assert!(NotRegular::caused(&error), "{}: {error}", path.display());
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }
}
