//! Attributes as columns, attributes and fields of one sample. No segment data is read. spec.md: ATR-1 to ATR-3,
//! CAT-1, CAT-2, FLD-1 to FLD-3.

use std::ops::Range;
use std::sync::OnceLock;

use grainstore_format::memory::{NoMemory, reserve};
use grainstore_format::{AttributeType, AttributeValue, Bitmap, Categories, SectionKind, to_usize};

use crate::dataset_cache::CachedAttribute;
use crate::index::Index;
use crate::index::numbers::{little_endian, numbers};
use crate::{Dataset, StoreError};

/// Of attributes of other types than `category`, and of those that no sample has.
static NO_CATEGORIES: Categories = Categories::none();

/// The values of an attribute for all samples.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// The type of the values.
    pub kind: &'a AttributeType,
    /// Bytes per value.
    pub width: u32,
    /// The values, `width` bytes each, little-endian; zeros for samples without a value. For `category` they are codes.
    pub bytes: &'a [u8],
    /// The categories that the codes number; none for other types.
    pub categories: &'a Categories,
    /// Which samples have the attribute; `None`: all.
    pub validity: Option<Bitmap<'a>>,
    /// The number of samples.
    pub len: u64,
}

impl Column<'_> {
    /// The value of sample `ordinal`; `None` if it has none, or does not exist.
    pub fn get(&self, ordinal: u64) -> Option<AttributeValue> {
        self.kind.decode(self.value_bytes(ordinal)?, self.categories)
    }

    /// The code of sample `ordinal` in a column of categories; `None` if it has none, or does not exist.
    pub fn code(&self, ordinal: u64) -> Option<u32> {
        let is_category = *self.kind == AttributeType::Category;
        is_category.then(|| self.value_bytes(ordinal)).flatten().and_then(category_code)
    }

    fn value_bytes(&self, ordinal: u64) -> Option<&[u8]> {
        if self.validity.is_some_and(|validity| !validity.get(ordinal)) {
            return None;
        }
        let width = u64::from(self.width);
        let from = ordinal.checked_mul(width)?;
        self.bytes.get(to_usize(from)..to_usize(from.checked_add(width)?))
    }
}

/// A category's code; `None` if it does not fit 32 bits, which no section allows.
fn category_code(bytes: &[u8]) -> Option<u32> {
    u32::try_from(little_endian(bytes)).ok()
}

impl Dataset {
    /// The column of `attribute`, loaded at the first call.
    ///
    /// # Errors
    /// If there is no such attribute, or its column is damaged.
    pub fn column(&self, attribute: &str) -> Result<Column<'_>, StoreError> {
        let (number, kind) = self.attribute_named(attribute)?;
        let len = self.sample_count();
        let item = item_of(number);
        let width = self.attribute_width(item)?;
        let bytes = self.0.index.whole(SectionKind::Attribute, item)?;
        let bug = || StoreError::bug("a column is shorter than the number of samples");
        let bytes = bytes.get(..to_usize(len * u64::from(width))).ok_or_else(bug)?;
        let categories = self.attribute_categories(number, kind)?;
        let state = self.attribute_state(number)?;
        let validity = match &state.validity {
            Some(bits) => Some(Bitmap::decode(bits, len).map_err(|error| self.0.index.wrong(error))?),
            None => None,
        };
        let column = Column { kind, width, bytes, categories, validity, len };
        if state.is_checked.get().is_none() {
            self.check_values(number, &column)?;
            state.is_checked.get_or_init(|| ());
        }
        Ok(column)
    }

    /// The categories of `attribute`, in the order of their codes; loaded at the first call. An older generation also
    /// has those that later samples brought.
    ///
    /// # Errors
    /// If there is no such attribute, it is of another type, or its categories are damaged.
    pub fn categories(&self, attribute: &str) -> Result<&Categories, StoreError> {
        let (number, kind) = self.attribute_named(attribute)?;
        if *kind != AttributeType::Category {
            return Err(StoreError::NotCategory { name: attribute.to_owned(), kind: kind.name().to_owned() });
        }
        self.attribute_categories(number, kind)
    }

    fn attribute_named(&self, name: &str) -> Result<(usize, &AttributeType), StoreError> {
        let attributes = self.schema().attributes();
        let known = || attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let found = attributes.iter().enumerate().find(|(_, known)| known.name == name);
        let found = found.map(|(number, attribute)| (number, &attribute.kind));
        found.ok_or_else(|| StoreError::NoSuchAttribute { name: name.to_owned(), known: known() })
    }

    /// Bytes per value. spec.md: ATR-1, ATR-3, CAT-1.
    pub(crate) fn attribute_width(&self, item: u16) -> Result<u32, StoreError> {
        let record = self.0.index.record(SectionKind::Attribute, item);
        record.map(|record| record.width).ok_or_else(|| StoreError::bug("an attribute of the schema has no section"))
    }

    fn attribute_categories(&self, number: usize, kind: &AttributeType) -> Result<&Categories, StoreError> {
        let index = &self.0.index;
        let section = index.section(SectionKind::Categories, item_of(number));
        let (AttributeType::Category, Some(section)) = (kind, section) else { return Ok(&NO_CATEGORIES) };
        let cell = self.0.categories.get(number).ok_or_else(|| StoreError::bug("an attribute has no categories"))?;
        if let Some(categories) = cell.get() {
            return Ok(categories);
        }
        let bytes = section.read_uncached(&index.frame.file, 0..section.record().len)?;
        let categories = Categories::decode(&bytes).map_err(|error| index.wrong(error))?;
        Ok(cell.get_or_init(|| categories))
    }

    /// The attributes of sample `ordinal`, in the order of the schema; `None` for those that it does not have.
    ///
    /// # Errors
    /// If there is no such sample, or a value is damaged.
    pub fn attributes(&self, ordinal: u64) -> Result<Vec<Option<AttributeValue>>, StoreError> {
        self.check_ordinal(ordinal)?;
        let attributes = self.schema().attributes().iter().enumerate();
        attributes.map(|(number, attribute)| self.attribute_value(number, &attribute.kind, ordinal)).collect()
    }

    /// The value of attribute `number` of the schema for sample `ordinal` if its column is in memory: nothing is read
    /// or waited for. Otherwise `None`: [`Dataset::attributes`] reads it, and returns any error.
    pub fn cached_attribute(&self, number: usize, ordinal: u64) -> Option<Option<AttributeValue>> {
        let index = &self.0.index;
        let item = item_of(number);
        let kind = &self.schema().attributes().get(number)?.kind;
        if ordinal >= self.sample_count() {
            return None;
        }
        if let Some(validity) = index.section(SectionKind::Validity, item) {
            let byte = validity.loaded(ordinal / 8..ordinal / 8 + 1)?.first()?;
            if byte >> (ordinal % 8) & 1 == 0 {
                return Some(None);
            }
        }
        let section = index.section(SectionKind::Attribute, item)?;
        let width = u64::from(section.record().width);
        let bytes = section.loaded(ordinal * width..(ordinal + 1) * width)?;
        let categories = match kind {
            AttributeType::Category => self.0.categories.get(number)?.get()?,
            _ => &NO_CATEGORIES,
        };
        kind.decode(bytes, categories).map(Some)
    }

    fn attribute_value(
        &self,
        number: usize,
        kind: &AttributeType,
        ordinal: u64,
    ) -> Result<Option<AttributeValue>, StoreError> {
        let index = &self.0.index;
        let item = item_of(number);
        let width = u64::from(self.attribute_width(item)?);
        if !index.bit(SectionKind::Validity, item, ordinal)? {
            return Ok(None);
        }
        let bytes = index.read(SectionKind::Attribute, item, ordinal * width..(ordinal + 1) * width)?;
        let value = kind.decode(&bytes, self.attribute_categories(number, kind)?).ok_or_else(|| {
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

    /// The validity of a column, checked once and limited to the opened generation.
    fn attribute_state(&self, number: usize) -> Result<&CachedAttribute, StoreError> {
        let index = &self.0.index;
        let cell = self.0.attributes.get(number).ok_or_else(|| StoreError::bug("an attribute is not in the schema"))?;
        if let Some(state) = cell.get() {
            return Ok(state);
        }
        let validity = match index.section(SectionKind::Validity, item_of(number)) {
            None => None,
            Some(section) => {
                let bits = section.whole(&index.frame.file)?;
                Bitmap::decode(bits, index.sample_count()).map_err(|error| index.wrong(error))?;
                let cut = cut_bits(bits, self.sample_count());
                Some(cut.map_err(|error| StoreError::no_memory(index.path(), error))?)
            }
        };
        Ok(cell.get_or_init(|| CachedAttribute { validity, is_checked: OnceLock::new() }))
    }

    /// Checks that all values of a column are of its type. spec.md: ATR-1, CAT-2.
    fn check_values(&self, number: usize, column: &Column<'_>) -> Result<(), StoreError> {
        let index = &self.0.index;
        let wrong = |what: &str| index.damaged("attribute", format!("number {number} {what}"));
        match column.kind {
            AttributeType::Bool if column.bytes.iter().any(|&byte| byte > 1) => {
                Err(wrong("has a value that is not a bool"))
            }
            AttributeType::Category => {
                let mut ordinals = (0..).zip(numbers(column.bytes, column.width));
                let count = column.categories.len() as u64;
                let has = |ordinal| column.validity.is_none_or(|validity| validity.get(ordinal));
                match ordinals.find(|&(ordinal, code)| code >= count && has(ordinal)) {
                    Some((ordinal, code)) => {
                        Err(wrong(&format!("has code {code} for sample {ordinal}, it has {count} categories")))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
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
fn cut_bits(bits: &[u8], len: u64) -> Result<Vec<u8>, NoMemory> {
    let bits = bits.get(..to_usize(len.div_ceil(8))).unwrap_or(bits);
    let mut cut = Vec::new();
    reserve(&mut cut, bits.len() as u64)?;
    cut.extend_from_slice(bits);
    if let (Some(last), used @ 1..) = (cut.last_mut(), len % 8) {
        *last &= (1 << used) - 1;
    }
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::cut_bits;

    /// GEN-1, CON-6
    #[test]
    fn a_shortened_bitmap_has_no_later_bits() {
        assert_eq!(cut_bits(&[0xFF, 0xFF], 16).unwrap(), [0xFF, 0xFF]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 11).unwrap(), [0xFF, 0b111]);
        assert_eq!(cut_bits(&[0xFF, 0xFF], 8).unwrap(), [0xFF]);
        assert_eq!(cut_bits(&[0xFF], 3).unwrap(), [0b111]);
    }
}
