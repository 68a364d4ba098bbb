//! Checks whether the names of folders hold all that the attributes do: class `k` of `class_names` is the first part of
//! the keys whose label is `k`. If so, packing the folder again restores the labels without a list of attributes.

use grainstore_format::{AttributeValue, escape_bytes, shown_names};
use grainstore_reader::ReadError;

use crate::ExportError;
use crate::index_pass::Indexed;
use crate::job::ExportJob;

/// Checks the labels of all selected samples against the names of their folders.
pub(crate) struct LabelsByFolder {
    class_names: Vec<String>,
    is_seen: Vec<bool>,
    holds: bool,
}

impl LabelsByFolder {
    pub(crate) fn new(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let schema = job.schema();
        let class_names = names(job, "label")?.unwrap_or_default(); // without names, no label has a folder
        let is_only_label = matches!(schema.attributes(), [only] if only.name == "label");
        // Folders are numbered by their names.
        let is_sorted = class_names.is_sorted_by(|one, next| one < next);
        let holds = is_only_label && is_sorted && schema.fields().len() == 1;
        Ok(Self { is_seen: vec![false; class_names.len()], class_names, holds })
    }

    pub(crate) fn look(&mut self, sample: &Indexed) {
        self.holds &= self.class_of(sample).is_some();
    }

    fn class_of(&mut self, sample: &Indexed) -> Option<()> {
        let class = match sample.attributes.first()? {
            Some(AttributeValue::Int(label)) => usize::try_from(*label).ok()?,
            Some(AttributeValue::Uint(label)) => usize::try_from(*label).ok()?,
            _ => return None,
        };
        let mut parts = sample.key.as_deref()?.split(|&byte| byte == b'/');
        let (Some(folder), Some(_), None) = (parts.next(), parts.next(), parts.next()) else { return None };
        *self.is_seen.get_mut(class)? = true;
        (self.class_names.get(class)? == &name_of(folder)).then_some(())
    }

    /// Whether they all agree. A class without a sample would have no folder, and all classes after it other numbers.
    pub(crate) fn holds(&self) -> bool {
        self.holds && self.is_seen.iter().all(|is_seen| *is_seen)
    }
}

/// The names of an attribute's numbers, if the dataset has them in its metadata: other values name nothing.
///
/// # Errors
/// If they are there and cannot be held.
pub(crate) fn names(job: &ExportJob<'_>, attribute: &str) -> Result<Option<Vec<String>>, ExportError> {
    let names = job.collection().names(attribute).map_err(ReadError::Store)?;
    Ok(names.and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect()))
}

/// A note on the names of numbers, for formats that have no place for them; `None` where there are none.
///
/// # Errors
/// As [`names`].
pub(crate) fn names_left_out(job: &ExportJob<'_>) -> Result<Option<String>, ExportError> {
    let mut named = Vec::new();
    for attribute in job.schema().attributes() {
        // Also names that are no texts: they are left out, too.
        if job.collection().names(&attribute.name).map_err(ReadError::Store)?.is_some() {
            named.push(attribute.name.clone());
        }
    }
    Ok((!named.is_empty()).then(|| {
        format!("the names of these attributes' numbers are left out: {} (Parquet holds them)", shown_names(&named))
    }))
}

/// A folder's name as it appears in `class_names`.
fn name_of(folder: &[u8]) -> String {
    std::str::from_utf8(folder).map_or_else(|_| escape_bytes(folder), str::to_owned)
}
