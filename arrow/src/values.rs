//! The values of one attribute for some rows of a member, as Arrow stores them.
//!
//! | attribute | Arrow | copied |
//! | --- | --- | --- |
//! | integers, float16, float32, float64 | the same | no |
//! | timestamp | timestamp[ns] without a time zone | no |
//! | bool | bits | yes: the index has bytes |
//! | bfloat16, which Arrow lacks | float32, exactly | yes |
//! | category | dictionary of text | texts only; also codes where members have different ones |
//! | unknown to this version | fixed-size binary | no |
//!
//! "No" is for ranges of rows. Chosen rows are gathered.

use std::ops::Range;
use std::sync::Arc;

use grainstore_format::memory::{NoMemory, reserve, zeroed};
use grainstore_format::{AttributeType, Bitmap, Categories, to_usize};
use grainstore_store::{Column, Dataset};

use crate::buffer::Buffer;
use crate::columns::ColumnError;
use crate::interface::{Array, Field};

/// The rows of a member that a batch has, by their ordinals in it.
#[derive(Debug, Clone)]
pub(crate) enum MemberRows {
    Range(Range<u64>),
    List(Vec<u64>),
}

impl MemberRows {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end - range.start,
            Self::List(list) => list.len() as u64,
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::Range(range) => Box::new(range.clone()),
            Self::List(list) => Box::new(list.iter().copied()),
        }
    }
}

/// How the values of an attribute are converted, the same for every member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// They are in the index as Arrow stores them, in this many bytes each.
    Same(u32),
    /// To bits.
    Bits,
    /// From 16 to 32 bits.
    Widened,
    /// Codes of this many bytes, of texts that are listed apart.
    Codes(u32),
}

/// The type of a column.
pub(crate) fn field_of(name: &str, kind: &AttributeType, conversion: &Conversion, is_nullable: bool) -> Field {
    let format = match (kind, conversion) {
        (_, Conversion::Bits) => "b",
        (_, Conversion::Widened) => "f",
        (_, Conversion::Codes(1)) => "C",
        (_, Conversion::Codes(2)) => "S",
        (_, Conversion::Codes(_)) => "I",
        (AttributeType::Int8, _) => "c",
        (AttributeType::Int16, _) => "s",
        (AttributeType::Int32, _) => "i",
        (AttributeType::Int64, _) => "l",
        (AttributeType::Uint8, _) => "C",
        (AttributeType::Uint16, _) => "S",
        (AttributeType::Uint32, _) => "I",
        (AttributeType::Uint64, _) => "L",
        (AttributeType::Float16, _) => "e",
        (AttributeType::Float32, _) => "f",
        (AttributeType::Float64, _) => "g",
        (AttributeType::Timestamp, _) => "tsn:",
        (_, Conversion::Same(width)) => {
            let format = format!("w:{width}");
            return Field { name: name.to_owned(), format, is_nullable, ..Field::default() };
        }
    };
    let texts = || Box::new(Field { format: "U".to_owned(), ..Field::default() });
    let dictionary = matches!(conversion, Conversion::Codes(_)).then(texts);
    Field { name: name.to_owned(), format: format.to_owned(), is_nullable, dictionary, ..Field::default() }
}

/// The texts that codes stand for.
pub(crate) fn texts(categories: &Categories) -> Result<Array, NoMemory> {
    let mut texts = Texts::default();
    for category in categories.iter() {
        texts.push(category.as_bytes())?;
    }
    texts.array()
}

/// Texts or bytes, end to end.
#[derive(Default)]
pub(crate) struct Texts {
    ends: Vec<u8>,
    bytes: Vec<u8>,
    len: i64,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<(), NoMemory> {
        let len = text.len() as u64;
        self.bytes.try_reserve(text.len()).map_err(|_| NoMemory { len })?;
        self.ends.try_reserve(8).map_err(|_| NoMemory { len: 8 })?;
        self.ends.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text);
        self.len += 1;
        Ok(())
    }

    pub(crate) fn array(mut self) -> Result<Array, NoMemory> {
        self.ends.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        let buffers = vec![None, Some(Buffer::owned(self.ends)?), Some(Buffer::owned(self.bytes)?)];
        Ok(Array { len: self.len, buffers, ..Array::default() })
    }
}

/// An attribute of a member.
pub(crate) struct MemberColumn<'a> {
    pub(crate) dataset: &'a Arc<Dataset>,
    pub(crate) name: &'a str,
    pub(crate) conversion: &'a Conversion,
    /// For categories, the code in the whole collection of each code of the member; `None` where they are the same.
    pub(crate) codes: Option<&'a [u32]>,
}

impl MemberColumn<'_> {
    /// The values of some rows.
    pub(crate) fn array(&self, rows: &MemberRows) -> Result<Array, ColumnError> {
        let column = self.dataset.column(self.name)?;
        let len = rows.len().cast_signed();
        let is_same = match self.conversion {
            Conversion::Same(_) => true,
            Conversion::Codes(width) => self.codes.is_none() && *width == column.width,
            Conversion::Bits | Conversion::Widened => false,
        };
        if let (true, MemberRows::Range(range)) = (is_same, rows) {
            let values = self.lent(|column| Some(column.bytes))?;
            let validity = match column.validity {
                Some(_) => self.lent(|column| column.validity.map(|bits| bits.bytes()))?,
                None => None,
            };
            return Ok(Array {
                len,
                offset: range.start.cast_signed(),
                buffers: vec![validity, values],
                ..Array::default()
            });
        }
        let validity = match column.validity {
            Some(bits) => Some(Buffer::owned(bits_of(rows, |row| bits.get(row))?)?),
            None => None,
        };
        let values = self.gathered(&column, rows)?;
        Ok(Array { len, buffers: vec![validity, Some(Buffer::owned(values)?)], ..Array::default() })
    }

    /// A part of the column, in the loaded or mapped index: the dataset keeps it.
    fn lent(&self, part: impl for<'a> FnOnce(Column<'a>) -> Option<&'a [u8]>) -> Result<Option<Buffer>, ColumnError> {
        let lost = ColumnError::Bug("a column has lost its validity");
        Buffer::lent(Arc::clone(self.dataset), |dataset| part(dataset.column(self.name)?).ok_or(lost)).map(Some)
    }

    fn gathered(&self, column: &Column<'_>, rows: &MemberRows) -> Result<Vec<u8>, ColumnError> {
        let width = to_usize(u64::from(column.width));
        let value = |row: u64| {
            let start = to_usize(row) * width;
            column.bytes.get(start..start + width).unwrap_or_default()
        };
        let mut values = Vec::new();
        match self.conversion {
            Conversion::Bits => return Ok(bits_of(rows, |row| value(row).first().is_some_and(|&byte| byte != 0))?),
            Conversion::Same(_) => {
                reserve(&mut values, rows.len().saturating_mul(u64::from(column.width)))?;
                rows.iter().for_each(|row| values.extend_from_slice(value(row)));
            }
            Conversion::Widened => {
                reserve(&mut values, rows.len().saturating_mul(4))?;
                // A bfloat16 is the upper half of a float32.
                rows.iter().for_each(|row| {
                    values.extend_from_slice(&[0, 0]);
                    values.extend_from_slice(value(row));
                });
            }
            Conversion::Codes(wanted) => {
                reserve(&mut values, rows.len().saturating_mul(u64::from(*wanted)))?;
                for row in rows.iter() {
                    let own = column.code(row).unwrap_or(0);
                    let code = match self.codes {
                        Some(codes) => codes.get(to_usize(u64::from(own))).copied().unwrap_or(0),
                        None => own,
                    };
                    values.extend(code.to_le_bytes().into_iter().take(to_usize(u64::from(*wanted))));
                }
            }
        }
        Ok(values)
    }
}

/// A bit for each row, the first the least significant.
fn bits_of(rows: &MemberRows, bit: impl Fn(u64) -> bool) -> Result<Vec<u8>, NoMemory> {
    let mut bits = zeroed(rows.len().div_ceil(8))?;
    for (place, row) in rows.iter().enumerate() {
        if bit(row)
            && let Some(byte) = bits.get_mut(place / 8)
        {
            *byte |= 1 << (place % 8);
        }
    }
    Ok(bits)
}

/// Whether some sample of a member lacks the attribute.
pub(crate) fn has_missing(validity: Option<Bitmap<'_>>) -> bool {
    validity.is_some_and(|bits| bits.count_ones() < bits.len())
}
