//! Attributes as columns, attributes and fields of one sample. No data is touched. spec.md: ATR-1, ATR-2, FLD-1 to FLD-3.

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
    /// Bytes a value.
    pub width: u32,
    /// The values, `width` bytes each, little-endian; zeros for samples that have none.
    pub bytes: &'a [u8],
    /// Which samples have the attribute; none: all.
    pub validity: Option<Bitmap<'a>>,
    /// Samples.
    pub len: u64,
}

impl Column<'_> {
    /// The value of sample `ordinal`; none where it has none, or there is no such sample.
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
    /// Where there is no such attribute, or its column is damaged.
    pub fn column(&self, attribute: &str) -> Result<Column<'_>, StoreError> {
        let attributes = self.schema().attributes();
        let place = self.schema().attribute(attribute).and_then(|place| Some((place, attributes.get(place)?)));
        let (place, attribute) = place.ok_or_else(|| StoreError::NoSuchAttribute {
            name: attribute.to_owned(),
            known: attributes.iter().map(|attribute| attribute.name.clone()).collect(),
        })?;
        let len = self.sample_count();
        let bytes = self.0.index.whole(SectionKind::Attribute, item_of(place))?;
        let bytes = bytes.get(..to_usize(len * u64::from(attribute.kind.width()))).unwrap_or_default();
        let state = self.attribute_state(place, attribute.kind, bytes)?;
        let validity = match &state.validity {
            Some(bits) => Some(Bitmap::decode(bits, len).map_err(|error| self.0.index.wrong(error))?),
            None => None,
        };
        Ok(Column { kind: attribute.kind, width: attribute.kind.width(), bytes, validity, len })
    }

    /// The attributes of sample `ordinal`, in the order of the schema; none where it has none.
    ///
    /// # Errors
    /// Where there is no such sample, or a value is damaged.
    pub fn attributes(&self, ordinal: u64) -> Result<Vec<Option<AttributeValue>>, StoreError> {
        self.check_ordinal(ordinal)?;
        let attributes = self.schema().attributes().iter().enumerate();
        attributes.map(|(place, attribute)| self.attribute_value(place, attribute.kind, ordinal)).collect()
    }

    /// The value of attribute `place` of the schema for sample `ordinal`, where it can be told without reading and
    /// without waiting: its column is in memory. Else none: [`Dataset::attributes`] reads it, and says what is wrong.
    pub fn cached_attribute(&self, place: usize, ordinal: u64) -> Option<Option<AttributeValue>> {
        let (index, item) = (&self.0.index, item_of(place));
        let kind = self.schema().attributes().get(place)?.kind;
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
        place: usize,
        kind: AttributeType,
        ordinal: u64,
    ) -> Result<Option<AttributeValue>, StoreError> {
        let (index, item, width) = (&self.0.index, item_of(place), u64::from(kind.width()));
        if !index.bit(SectionKind::Validity, item, ordinal)? {
            return Ok(None);
        }
        let bytes = index.read(SectionKind::Attribute, item, ordinal * width..(ordinal + 1) * width)?;
        let value = kind.decode(&bytes).ok_or_else(|| {
            index.damaged("attribute", format!("sample {ordinal} has a value that is no {}", kind.name()))
        })?;
        Ok(Some(value))
    }

    /// Whether the fields have columns in the index. Else there is one, and it is the whole payload.
    pub fn has_field_columns(&self) -> bool {
        has_field_sections(&self.0.index)
    }

    /// Where the fields of sample `ordinal` lie in its raw payload of `payload_len` bytes, in the order of the
    /// schema; none where it has none.
    ///
    /// # Errors
    /// Where there is no such sample, or a field does not lie inside the payload.
    pub fn fields(&self, ordinal: u64, payload_len: u64) -> Result<Vec<Option<Range<u64>>>, StoreError> {
        self.check_ordinal(ordinal)?;
        let index = &self.0.index;
        if !has_field_sections(index) {
            return Ok(vec![Some(0..payload_len)]);
        }
        let read = |place: usize| {
            let item = item_of(place);
            if !index.bit(SectionKind::FieldValidity, item, ordinal)? {
                return Ok(None);
            }
            let offset = index.number(SectionKind::FieldOffset, item, ordinal)?;
            let len = index.number(SectionKind::FieldLen, item, ordinal)?;
            let end = offset.checked_add(len).filter(|end| *end <= payload_len);
            let end = end.ok_or_else(|| self.wrong_field(ordinal, place, (offset, len), payload_len))?;
            Ok(Some(offset..end))
        };
        (0..self.schema().fields().len()).map(read).collect()
    }

    fn wrong_field(&self, ordinal: u64, place: usize, field: (u64, u64), payload_len: u64) -> StoreError {
        let name = self.schema().fields().get(place).map_or("", |field| field.name.as_str());
        let name = grainstore_format::escape_bytes(name.as_bytes());
        let (offset, len) = field;
        let what = format!("field \"{name}\" is {len} bytes at {offset}, the payload has {payload_len}");
        self.damaged_sample(ordinal, self.0.table.segment_of(ordinal), 0, what)
    }

    /// Checks a column once, and cuts its validity to the opened generation.
    fn attribute_state(&self, place: usize, kind: AttributeType, bytes: &[u8]) -> Result<&CachedAttribute, StoreError> {
        let index = &self.0.index;
        let damaged = |what: &str| index.damaged("attribute", format!("number {place} {what}"));
        let cell = self.0.attributes.get(place).ok_or_else(|| damaged("is not in the schema"))?;
        if let Some(state) = cell.get() {
            return Ok(state);
        }
        if kind == AttributeType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(damaged("has a value that is no bool"));
        }
        let validity = match index.section(SectionKind::Validity, item_of(place)) {
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

/// Whether the fields have columns, or the only field is the whole payload. spec.md: FLD-1.
pub(crate) fn has_field_sections(index: &Index) -> bool {
    index.record(SectionKind::FieldOffset, 0).is_some()
}

/// The section's number of an attribute or field: a schema has at most 1024.
pub(crate) fn item_of(place: usize) -> u16 {
    u16::try_from(place).unwrap_or(u16::MAX)
}

/// The first `len` bits. The last byte's others become zero: they are a later generation's.
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
    fn cutting_a_bitmap_clears_what_is_behind() {
        assert_eq!(cut_bits(&[0xFF, 0xFF], 16), [0xFF, 0xFF]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 11), [0xFF, 0b111]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 8), [0xFF]);
        assert_eq!(cut_bits(&[0xFF], 3), [0b111]);
    }
}
