//! Reads the cells of one column of a row group in order.

use std::sync::Arc;

use grainstore_format::{AttributeType, AttributeValue, Categories, nearest_bfloat16};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::guard::{Guarded, entry_len_min};
use super::kind::ColumnKind;
use super::lists;
use super::pages::{FileAt, PagesAt, contained};

/// Numbers that are decoded at a time.
const NUMBERS_AT_ONCE: usize = 1024;

/// Bytes are decoded one at a time: some encodings let one long value stand for many in the file.
const BYTES_AT_ONCE: usize = 1;

/// A cell.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float32(f32),
    Float64(f64),
    Bytes(ByteArray),
    /// A list whose element with this number is null.
    NullInList(usize),
}

/// The cells of a column, in order.
pub(super) trait Cells {
    /// The next cell. Called once for each row.
    ///
    /// # Errors
    /// Where it cannot be decoded; then the cells after it cannot be decoded either.
    fn next(&mut self) -> Result<Cell, String>;
}

/// Opens a leaf column of a row group.
///
/// # Errors
/// Where the decoder cannot be made.
pub(super) fn open(
    file: FileAt,
    group: &RowGroupMetaData,
    leaf: usize,
    kind: &ColumnKind,
) -> Result<Box<dyn Cells>, String> {
    let rows = usize::try_from(group.num_rows()).map_err(|error| error.to_string())?;
    let chunk = group.columns().get(leaf).ok_or("the row group has too few columns")?;
    let column = chunk.column_descr_ptr();
    let max_level = column.max_def_level();
    let reader = contained(|| {
        let pages = SerializedPageReader::new(Arc::new(PagesAt(file)), chunk, rows, None)?;
        let has_lists = column.max_rep_level() > 0;
        let pages = Guarded { pages, max_level, has_lists, entry_len_min: entry_len_min(&column) };
        Ok(get_column_reader(column.clone(), Box::new(pages)))
    })?;
    if let ColumnKind::List(list) = kind {
        return lists::open(reader, list.listed_level, max_level, &list.element);
    }
    Ok(match reader {
        ColumnReader::BoolColumnReader(reader) => numbers(reader, max_level, Cell::Bool),
        ColumnReader::Int32ColumnReader(reader) => numbers(reader, max_level, |value| Cell::Int(value.into())),
        ColumnReader::Int64ColumnReader(reader) => numbers(reader, max_level, Cell::Int),
        ColumnReader::FloatColumnReader(reader) => numbers(reader, max_level, Cell::Float32),
        ColumnReader::DoubleColumnReader(reader) => numbers(reader, max_level, Cell::Float64),
        ColumnReader::ByteArrayColumnReader(reader) => bytes(reader, max_level, Cell::Bytes),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            bytes(reader, max_level, |value: FixedLenByteArray| Cell::Bytes(value.into()))
        }
        ColumnReader::Int96ColumnReader(_) => return Err("timestamps of 96 bits are not read".into()),
    })
}

impl Cell {
    /// The value of an attribute.
    ///
    /// # Errors
    /// Where it is out of the type's range.
    pub(super) fn value(&self, kind: &AttributeType) -> Result<Option<AttributeValue>, String> {
        let value = match (self, kind) {
            (Self::Null, _) => return Ok(None),
            (Self::Bool(value), _) => AttributeValue::Bool(*value),
            (Self::Float32(value), AttributeType::Bfloat16) => {
                let narrow = nearest_bfloat16(f64::from(*value));
                if !value.is_nan() && narrow.to_f32().to_bits() != value.to_bits() {
                    return Err(format!("{value} is no bfloat16, which the file declares"));
                }
                AttributeValue::Bfloat16(narrow)
            }
            (Self::Float32(value), _) => AttributeValue::Float32(*value),
            (Self::Float64(value), _) => AttributeValue::Float64(*value),
            (Self::Int(value), AttributeType::Uint64) => AttributeValue::Uint(value.cast_unsigned()),
            // Parquet stores the number in 32 signed bits; all of them are value here.
            (Self::Int(value), AttributeType::Uint32) => AttributeValue::Uint(value.cast_unsigned() & 0xffff_ffff),
            (Self::Int(value), AttributeType::Uint8 | AttributeType::Uint16) => match u64::try_from(*value) {
                Ok(value) => AttributeValue::Uint(value),
                Err(_) => return Err(format!("{value} does not fit into {}", kind.name())),
            },
            (Self::Int(value), _) => AttributeValue::Int(*value),
            (Self::Bytes(bytes), AttributeType::Float16) => {
                let value = kind.decode(bytes.data(), &Categories::none());
                value.ok_or_else(|| format!("{} bytes are not of type {}", bytes.len(), kind.name()))?
            }
            (Self::Bytes(bytes), AttributeType::Int64) => AttributeValue::Int(whole_number(bytes.data())?),
            (Self::NullInList(_), _) => return Err(format!("a list is not of type {}", kind.name())),
            (Self::Bytes(_), _) => return Err(format!("bytes are not of type {}", kind.name())),
        };
        if kind.accepts(&value) {
            return Ok(Some(value));
        }
        Err(format!("{value} does not fit into {}", kind.name()))
    }

    /// The value of an attribute of categories.
    ///
    /// # Errors
    /// Where it is no text, or too long.
    pub(super) fn category(&self) -> Result<Option<AttributeValue>, String> {
        let bytes = match self {
            Self::Null => return Ok(None),
            Self::Bytes(bytes) => bytes.data(),
            _ => return Err("a category that is not text".into()),
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| format!("text that is not UTF-8 at its byte {}", error.valid_up_to()))?;
        if text.len() > Categories::MAX_NAME_LEN {
            return Err(format!("a category of {} bytes; they have {} at most", text.len(), Categories::MAX_NAME_LEN));
        }
        Ok(Some(AttributeValue::Category(text.into())))
    }

    /// The value of an attribute of times in units of so many nanoseconds.
    ///
    /// # Errors
    /// Where it is no number, or out of the range of a timestamp.
    pub(super) fn time(&self, unit_ns: i64) -> Result<Option<AttributeValue>, String> {
        match self {
            Self::Null => Ok(None),
            Self::Int(value) => match value.checked_mul(unit_ns) {
                Some(ns) => Ok(Some(AttributeValue::Timestamp(ns))),
                None => Err(format!("{value} units of {unit_ns} ns do not fit into a timestamp")),
            },
            _ => Err("a time that is not an integer".into()),
        }
    }
}

/// A decimal number without digits after the point: big-endian, of any length, in two's complement.
fn whole_number(bytes: &[u8]) -> Result<i64, String> {
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let sign = if is_negative { 0xff } else { 0 };
    let (more, last) = bytes.split_at(bytes.len().saturating_sub(8));
    let mut number = [sign; 8];
    number[8 - last.len()..].copy_from_slice(last);
    number.reverse();
    let number = i64::from_le_bytes(number);
    if more.iter().all(|&byte| byte == sign) && (number < 0) == is_negative {
        return Ok(number);
    }
    Err(format!("a decimal number of {} bytes does not fit into int64", bytes.len()))
}

/// A column of one physical type.
struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The level of a cell that is not null.
    max_level: i16,
    at_once: usize,
    /// Decoded levels that were not returned yet; empty where no cell can be null.
    levels: std::vec::IntoIter<i16>,
    values: std::vec::IntoIter<T::T>,
    cell: fn(T::T) -> Cell,
}

fn numbers<T: DataType>(reader: ColumnReaderImpl<T>, max_level: i16, cell: fn(T::T) -> Cell) -> Box<dyn Cells> {
    typed(reader, max_level, NUMBERS_AT_ONCE, cell)
}

fn bytes<T: DataType>(reader: ColumnReaderImpl<T>, max_level: i16, cell: fn(T::T) -> Cell) -> Box<dyn Cells> {
    typed(reader, max_level, BYTES_AT_ONCE, cell)
}

fn typed<T: DataType>(
    reader: ColumnReaderImpl<T>,
    max_level: i16,
    at_once: usize,
    cell: fn(T::T) -> Cell,
) -> Box<dyn Cells> {
    Box::new(Typed { reader, max_level, at_once, levels: Vec::new().into_iter(), values: Vec::new().into_iter(), cell })
}

impl<T: DataType> Cells for Typed<T> {
    fn next(&mut self) -> Result<Cell, String> {
        let has_levels = self.max_level > 0;
        if if has_levels { self.levels.len() == 0 } else { self.values.len() == 0 } {
            self.fill()?;
        }
        if has_levels && self.levels.next().ok_or("it ends too early")? < self.max_level {
            return Ok(Cell::Null);
        }
        Ok((self.cell)(self.values.next().ok_or("it ends too early")?))
    }
}

impl<T: DataType> Typed<T> {
    fn fill(&mut self) -> Result<(), String> {
        let mut levels = Vec::new();
        let mut values = Vec::new();
        contained(|| {
            let levels = (self.max_level > 0).then_some(&mut levels);
            self.reader.read_records(self.at_once, levels, None, &mut values)
        })?;
        self.levels = levels.into_iter();
        self.values = values.into_iter();
        Ok(())
    }
}
