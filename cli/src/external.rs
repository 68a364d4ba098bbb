//! Whether files outside a dataset's parent directory are read, if an adopted dataset refers to them.

use std::path::Path;

use grainstore_reader::ReaderOptions;
use grainstore_store::{Dataset, OpenOptions, StoreError};

/// The environment variable with the same effect as the flag if it is 1.
const VARIABLE: &str = "GRAINSTORE_ALLOW_EXTERNAL";

/// The permission of the user, for all commands.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct External {
    /// Read (adopt: take) files outside the folder that contains an adopted dataset; GRAINSTORE_ALLOW_EXTERNAL=1 in the
    /// environment does the same
    #[arg(long, global = true, display_order = 890)]
    allow_external: bool,
}

impl External {
    /// Whether such files are read.
    pub(crate) fn is_allowed(self) -> bool {
        self.allow_external || std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
    }

    /// Opens a dataset for reading its index.
    ///
    /// # Errors
    /// If it cannot be opened, or refers to a file that may not be read.
    pub(crate) fn open(self, path: &Path) -> Result<Dataset, StoreError> {
        Dataset::open_with(path, &OpenOptions { allow_external: self.is_allowed(), ..OpenOptions::default() })
    }

    /// Options for a reader, otherwise the default ones.
    pub(crate) fn reader_options(self) -> ReaderOptions {
        ReaderOptions { allow_external: self.is_allowed(), ..ReaderOptions::default() }
    }
}
