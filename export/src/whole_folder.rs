//! Formats that write one folder, without shards.

use std::path::Path;

use crate::ExportError;
use crate::job::ExportJob;

/// A format that writes one folder, without shards. Its `plan` has checked the selection.
pub(crate) trait WholeFolder: Sized {
    /// Writes and syncs everything. Returns notes for the user.
    fn write(self, job: &ExportJob<'_>, folder: &Path) -> Result<Vec<String>, ExportError>;
}
