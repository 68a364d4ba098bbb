//! Attributes as columns, attributes and fields of one sample. No segment data is read. spec.md: ATR-1, ATR-2, FLD-1 to
//! FLD-3.

use std::ops::Range;

use grainstore_format::{AttributeType, AttributeValue, Bitmap, SectionKind, to_usize};

use crate::dataset_cache::CachedAttribute;
use crate::index::Index;
use crate::{Dataset, StoreError};

/// The values of an attribute for all samples.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// The type of the values.
    pub kind: AttributeType,
    /// Bytes per value.
    pub width: u32,
    /// The values, `width` bytes each, little-endian; zeros for samples without a value.
    pub bytes: &'a [u8],
    /// Which samples have the attribute; `None`: all.
    pub validity: Option<Bitmap<'a>>,
    /// The number of samples.
    pub len: u64,
}

impl Column<'_> {
    /// The value of sample `ordinal`; `None` if it has none, or does not exist.
    pub fn get(&self, ordinal: u64) -> Option<AttributeValue> {
        if self.validity.is_some_and(|validity| !validity.get(ordinal)) {
            return None;
        }
        let from = to_usize(ordinal.checked_mul(u64::from(self.width))?);
        self.kind.decode(self.bytes.get(from..)?)
    }
}

impl Dataset {
    /// The column of `attribute`, loaded at the first call.
    ///
    /// # Errors
    /// If there is no such attribute, or its column is damaged.
    pub fn column(&self, attribute: &str) -> Result<Column<'_>, StoreError> {
        let attributes = self.schema().attributes();
        let mut numbered = attributes.iter().enumerate();
        let Some((number, attribute)) = numbered.find(|(_, known)| known.name == attribute) else {
            let known = attributes.iter().map(|attribute| attribute.name.clone()).collect();
            return Err(StoreError::NoSuchAttribute { name: attribute.to_owned(), known });
        };
        let len = self.sample_count();
        let bytes = self.0.index.whole(SectionKind::Attribute, item_of(number))?;
        let bug = || StoreError::bug("a column is shorter than the number of samples");
        let bytes = bytes.get(..to_usize(len * u64::from(attribute.kind.width()))).ok_or_else(bug)?;
        let state = self.attribute_state(number, attribute.kind, bytes)?;
        let validity = match &state.validity {
            Some(bits) => Some(Bitmap::decode(bits, len).map_err(|error| self.0.index.wrong(error))?),
            None => None,
        };
        Ok(Column { kind: attribute.kind, width: attribute.kind.width(), bytes, validity, len })
    }

    /// The attributes of sample `ordinal`, in the order of the schema; `None` for those that it does not have.
    ///
    /// # Errors
    /// If there is no such sample, or a value is damaged.
    pub fn attributes(&self, ordinal: u64) -> Result<Vec<Option<AttributeValue>>, StoreError> {
        self.check_ordinal(ordinal)?;
        let attributes = self.schema().attributes().iter().enumerate();
        attributes.map(|(number, attribute)| self.attribute_value(number, attribute.kind, ordinal)).collect()
    }

    /// The value of attribute `number` of the schema for sample `ordinal` if its column is in memory: nothing is read
    /// or waited for. Otherwise `None`: [`Dataset::attributes`] reads it, and returns any error.
    pub fn cached_attribute(&self, number: usize, ordinal: u64) -> Option<Option<AttributeValue>> {
        let index = &self.0.index;
        let item = item_of(number);
        let kind = self.schema().attributes().get(number)?.kind;
        if ordinal >= self.sample_count() {
            return None;
        }
        if let Some(validity) = index.section(SectionKind::Validity, item) {
            let byte = validity.loaded(ordinal / 8..ordinal / 8 + 1)?.first()?;
            if byte >> (ordinal % 8) & 1 == 0 {
                return Some(None);
            }
        }
        let width = u64::from(kind.width());
        let bytes = index.section(SectionKind::Attribute, item)?.loaded(ordinal * width..(ordinal + 1) * width)?;
        kind.decode(bytes).map(Some)
    }

    fn attribute_value(
        &self,
        number: usize,
        kind: AttributeType,
        ordinal: u64,
    ) -> Result<Option<AttributeValue>, StoreError> {
        let index = &self.0.index;
        let item = item_of(number);
        let width = u64::from(kind.width());
        if !index.bit(SectionKind::Validity, item, ordinal)? {
            return Ok(None);
        }
        let bytes = index.read(SectionKind::Attribute, item, ordinal * width..(ordinal + 1) * width)?;
        let value = kind.decode(&bytes).ok_or_else(|| {
            index.damaged("attribute", format!("sample {ordinal} has a value that is not a {}", kind.name()))
        })?;
        Ok(Some(value))
    }

    /// Whether the fields have columns in the index. If not, the only field is the whole payload.
    pub fn has_field_columns(&self) -> bool {
        has_field_sections(&self.0.index)
    }

    /// The byte ranges of the fields of sample `ordinal` in its raw payload of `payload_len` bytes, in the order of the
    /// schema; `None` for those that it does not have.
    ///
    /// # Errors
    /// If there is no such sample, or a field is not inside the payload.
    pub fn fields(&self, ordinal: u64, payload_len: u64) -> Result<Vec<Option<Range<u64>>>, StoreError> {
        self.check_ordinal(ordinal)?;
        let index = &self.0.index;
        if !has_field_sections(index) {
            return Ok(vec![Some(0..payload_len)]);
        }
        let read = |number: usize| {
            let item = item_of(number);
            if !index.bit(SectionKind::FieldValidity, item, ordinal)? {
                return Ok(None);
            }
            let offset = index.number(SectionKind::FieldOffset, item, ordinal)?;
            let len = index.number(SectionKind::FieldLen, item, ordinal)?;
            let end = offset.checked_add(len).filter(|end| *end <= payload_len);
            let end = end.ok_or_else(|| self.wrong_field(ordinal, number, (offset, len), payload_len))?;
            Ok(Some(offset..end))
        };
        (0..self.schema().fields().len()).map(read).collect()
    }

    fn wrong_field(&self, ordinal: u64, number: usize, field: (u64, u64), payload_len: u64) -> StoreError {
        let name = self.schema().fields().get(number).map_or("", |field| field.name.as_str());
        let name = grainstore_format::escape_bytes(name.as_bytes());
        let (offset, len) = field;
        let what = format!("field \"{name}\" is {len} bytes at {offset}, the payload has {payload_len}");
        self.damaged_sample(ordinal, self.0.table.segment_of(ordinal), 0, what)
    }

    /// Checks a column once, and limits its validity to the opened generation.
    fn attribute_state(
        &self,
        number: usize,
        kind: AttributeType,
        bytes: &[u8],
    ) -> Result<&CachedAttribute, StoreError> {
        let index = &self.0.index;
        let damaged = |what: &str| index.damaged("attribute", format!("number {number} {what}"));
        let cell = self.0.attributes.get(number).ok_or_else(|| damaged("is not in the schema"))?;
        if let Some(state) = cell.get() {
            return Ok(state);
        }
        if kind == AttributeType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(damaged("has a value that is not a bool"));
        }
        let validity = match index.section(SectionKind::Validity, item_of(number)) {
            None => None,
            Some(section) => {
                let bits = section.whole(&index.frame.file)?;
                Bitmap::decode(bits, index.sample_count()).map_err(|error| index.wrong(error))?;
                Some(cut_bits(bits, self.sample_count()))
            }
        };
        Ok(cell.get_or_init(|| CachedAttribute { validity }))
    }
}

/// Whether the fields have columns. If not, the only field is the whole payload. spec.md: FLD-1.
pub(crate) fn has_field_sections(index: &Index) -> bool {
    index.record(SectionKind::FieldOffset, 0).is_some()
}

/// The item of the sections of an attribute or field.
#[expect(clippy::cast_possible_truncation, reason = "a schema has at most 1024 attributes and 1024 fields")]
pub(crate) fn item_of(number: usize) -> u16 {
    debug_assert!(u16::try_from(number).is_ok(), "the number of an attribute or field");
    number as u16
}

/// The first `len` bits. The other bits of the last byte, which belong to a later generation, become zero.
fn cut_bits(bits: &[u8], len: u64) -> Vec<u8> {
    let mut cut: Vec<u8> = bits.iter().copied().take(to_usize(len.div_ceil(8))).collect();
    if let (Some(last), used @ 1..) = (cut.last_mut(), len % 8) {
        *last &= (1 << used) - 1;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::cut_bits;

    /// GEN-1, CON-6
    #[test]
    fn a_shortened_bitmap_has_no_later_bits() {
        assert_eq!(cut_bits(&[0xFF, 0xFF], 16), [0xFF, 0xFF]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 11), [0xFF, 0b111]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 8), [0xFF]);
        assert_eq!(cut_bits(&[0xFF], 3), [0b111]);
    }
}
