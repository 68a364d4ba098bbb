//! Which rows of a table of attributes met a sample.

use std::path::Path;

use grainstore_format::shown_path;
use grainstore_sources::attributes::AttributeTable;
use grainstore_store::{Dataset, OpenOptions};

use crate::ConvertError;

/// How a table of attributes and the samples that were packed with it match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Samples that have no row: the values of the table are missing there.
    pub samples_without_row: u64,
    /// Rows that have no sample.
    pub rows_without_sample: u64,
}

impl Coverage {
    /// Looks the keys of the table up among the last `added` samples of a dataset. It asks the dataset and not the
    /// conversion: so what an interrupted conversion had packed before counts too.
    ///
    /// # Errors
    /// If the dataset cannot be read.
    pub fn of(table: &AttributeTable, dataset: &Path, added: u64) -> Result<Self, ConvertError> {
        // Only its index is read.
        let opened = Dataset::open_with(dataset, &OpenOptions { allow_external: true, ..OpenOptions::default() })?;
        let first = opened.sample_count().saturating_sub(added);
        let mut met = 0;
        for key in table.keys() {
            met += u64::from(opened.find(key)?.is_some_and(|ordinal| ordinal >= first));
        }
        let rows_without_sample = (table.keys().len() as u64).saturating_sub(met);
        Ok(Self { samples_without_row: added.saturating_sub(met), rows_without_sample })
    }

    /// A sentence for the user; `None` where everything matches.
    pub fn note(&self, table: &AttributeTable) -> Option<String> {
        let Self { samples_without_row, rows_without_sample } = self;
        (*self != Self { samples_without_row: 0, rows_without_sample: 0 }).then(|| {
            format!(
                "{}: samples without a row, whose values are missing: {samples_without_row}; rows without a sample: \
                 {rows_without_sample}",
                shown_path(table.path())
            )
        })
    }
}
