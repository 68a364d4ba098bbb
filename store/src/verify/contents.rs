//! Checks what a field holds, by the caller's rule: the bytes can be those that were written and still be of no use.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::{escape_bytes, to_usize};

use super::columns::{FieldRange, field_ranges};
use crate::StoreError;
use crate::index::Index;

/// The longest value that is held in memory for the check.
const LEN_MAX: u64 = 256 << 20;

/// A rule for the bytes of a field.
#[derive(Clone)]
pub struct FieldCheck {
    /// The field's name.
    pub field: String,
    /// Says what is wrong with the field's bytes. Called from several threads, for samples whose stored bytes are those
    /// that were written.
    pub check: Arc<FieldRule>,
}

/// The rule of a [`FieldCheck`]: the error follows "field NAME: " in the damage.
pub type FieldRule = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

impl fmt::Debug for FieldCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldCheck").field("field", &self.field).finish_non_exhaustive()
    }
}

impl FieldCheck {
    /// Where the field of each sample is in its payload; `None` if the index has no such field.
    pub(super) fn ranges(&self, index: &Index, ordinals: Range<u64>) -> Result<Option<Vec<FieldRange>>, StoreError> {
        let number = index.metadata.schema.fields().iter().position(|field| field.name == self.field);
        number.map(|number| field_ranges(index, number, ordinals)).transpose()
    }

    /// Checks the field in a whole payload.
    pub(super) fn check_payload(&self, range: FieldRange, payload: &[u8]) -> Result<(), String> {
        self.check_present(range)?;
        let end = range.offset.saturating_add(range.len);
        // A field outside of its payload is reported by the check of the columns.
        payload.get(to_usize(range.offset)..to_usize(end)).map_or(Ok(()), |bytes| self.check_bytes(bytes))
    }

    /// Checks whether the field can be checked: whether there is one, and whether it is short enough.
    pub(super) fn check_present(&self, range: FieldRange) -> Result<(), String> {
        if !range.valid {
            return Err(self.of_field("the sample has none"));
        }
        if range.len > LEN_MAX {
            return Err(self.of_field(&format!("{} bytes, at most {LEN_MAX} are checked", range.len)));
        }
        Ok(())
    }

    /// Checks the field's bytes.
    pub(super) fn check_bytes(&self, bytes: &[u8]) -> Result<(), String> {
        (self.check)(bytes).map_err(|what| self.of_field(&what))
    }

    fn of_field(&self, what: &str) -> String {
        format!("field \"{}\": {what}", escape_bytes(self.field.as_bytes()))
    }
}
