//! A state in a file: where an epoch stopped, so that the next command can resume it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use grainstore_format::shown_path;
use grainstore_host::{Durability, open_regular};
use grainstore_reader::EpochState;

use crate::output_file;

/// The file of a state that can be written.
pub(crate) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// The file, and the state in it, if the file exists.
    ///
    /// # Errors
    /// If it cannot be written, or contains something else.
    pub(crate) fn open(path: &Path) -> anyhow::Result<(Self, Option<EpochState>)> {
        let state = match read(path) {
            Err(error) if is_missing(&error) => None,
            state => Some(state?),
        };
        output_file::check(path)?;
        Ok((Self { path: path.to_owned() }, state))
    }

    /// Its path, escaped for printing.
    pub(crate) fn shown(&self) -> String {
        shown_path(&self.path)
    }

    /// Replaces the state atomically; the new one is on the disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, state: &EpochState) -> anyhow::Result<()> {
        output_file::write(&self.path, format!("{state}\n").as_bytes(), Durability::Synced)
    }
}

/// The state in a file.
///
/// # Errors
/// If there is no file, or it contains something else.
pub(crate) fn read(path: &Path) -> anyhow::Result<EpochState> {
    let text = read_text(path).with_context(|| format!("{}: the state cannot be read", shown_path(path)))?;
    text.parse::<EpochState>().with_context(|| shown_path(path))
}

fn read_text(path: &Path) -> io::Result<String> {
    let (file, _) = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(EpochState::LEN_MAX as u64 + 1).read_to_end(&mut bytes)?;
    // Invalid UTF-8 is not a state, and the parser reports it.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
