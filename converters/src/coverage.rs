//! Which rows of a table of attributes met a sample.

use std::path::Path;

use grainstore_format::{escape_bytes, shown_path};
use grainstore_sources::attributes::AttributeTable;
use grainstore_store::{Dataset, OpenOptions};

use crate::ConvertError;

/// How a table of attributes and the samples that were packed with it match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Samples that have no row: the values of the table are missing there.
    pub samples_without_row: u64,
    /// Rows that have no sample.
    pub rows_without_sample: u64,
    /// The key of a sample and of a row, if no row met a sample: a sign of keys in another form.
    pub unlike: Option<(Vec<u8>, Vec<u8>)>,
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
        let own = if met == 0 && added > 0 { opened.key(first)? } else { None };
        let unlike = own.zip(table.keys().next().map(<[u8]>::to_vec));
        Ok(Self { samples_without_row: added.saturating_sub(met), rows_without_sample, unlike })
    }

    /// A sentence for the user; `None` where everything matches.
    pub fn note(&self, table: &AttributeTable) -> Option<String> {
        let Self { samples_without_row, rows_without_sample, unlike } = self;
        let path = shown_path(table.path());
        if let Some((sample, row)) = unlike {
            return Some(format!(
                "{path}: none of its rows has the key of a sample, so all values are missing: a sample's key is \"{}\", a \
                 row's is \"{}\"",
                escape_bytes(sample),
                escape_bytes(row)
            ));
        }
        (*samples_without_row > 0 || *rows_without_sample > 0).then(|| {
            format!(
                "{path}: samples without a row, whose values are missing: {samples_without_row}; rows without a sample: \
                 {rows_without_sample}"
            )
        })
    }
}
