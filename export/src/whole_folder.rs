//! Formats that write one folder themselves, with no shards.

use std::path::Path;

use crate::ExportError;
use crate::job::ExportJob;

/// A format that is one folder and writes it by itself. It has looked at the selection and found nothing amiss.
pub(crate) trait WholeFolder: Sized {
    /// Writes and syncs everything. Returns what the user should know of it.
    fn write(self, job: &ExportJob<'_>, folder: &Path) -> Result<Vec<String>, ExportError>;
}
