//! Whether files outside a dataset's parent directory are read, where a dataset that was adopted names them.

use std::path::Path;

use grainstore_reader::ReaderOptions;
use grainstore_store::{Dataset, OpenOptions, StoreError};

/// Says the same as the flag where it is 1.
const VARIABLE: &str = "GRAINSTORE_ALLOW_EXTERNAL";

/// What the user allows, for all commands.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct External {
    /// Read (adopt: take) files outside the folder that an adopted dataset lies in; GRAINSTORE_ALLOW_EXTERNAL=1 in
    /// the environment says the same
    #[arg(long, global = true, display_order = 890)]
    allow_external: bool,
}

impl External {
    /// Whether they are read.
    pub(crate) fn is_allowed(self) -> bool {
        self.allow_external || std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
    }

    /// Opens a dataset for its index.
    ///
    /// # Errors
    /// Where it cannot be opened, or names a file that may not be read.
    pub(crate) fn open(self, path: &Path) -> Result<Dataset, StoreError> {
        Dataset::open_with(path, &OpenOptions { allow_external: self.is_allowed(), ..OpenOptions::default() })
    }

    /// Options for a reader, the default ones otherwise.
    pub(crate) fn reader_options(self) -> ReaderOptions {
        ReaderOptions { allow_external: self.is_allowed(), ..ReaderOptions::default() }
    }
}
