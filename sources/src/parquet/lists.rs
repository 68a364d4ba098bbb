//! Reads the cells of a column whose cells are lists of numbers: each is the little-endian bytes of its numbers.
//!
//! A list is a repeated value, with or without groups around it. The levels that are decoded with the values say where
//! each list begins, and whether it is empty or null.

use grainstore_format::AttributeType;
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::schema::types::{ColumnDescriptor, Type};

use super::cells::{Cell, Cells};
use super::pages::contained;

/// Where in a column's path its lists are.
pub(super) struct ListPath {
    /// The path without the groups that only make up a list.
    pub(super) name: String,
    /// The definition level of a list that has elements.
    pub(super) listed_level: i16,
}

impl ListPath {
    /// The path of a leaf column below the root of its schema.
    pub(super) fn of(column: &ColumnDescriptor, root: &Type) -> Self {
        let parts = column.path().parts();
        let mut path = Self { name: String::new(), listed_level: 0 };
        let mut names: Vec<&str> = Vec::new();
        let mut level = 0;
        let mut node = root;
        // The parts of the path that a list adds after its own.
        let mut unnamed = 0_usize;
        for part in parts {
            let Some(child) = fields(node).iter().find(|field| field.name() == part) else { break };
            let info = child.get_basic_info();
            let repetition = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
            if repetition == Repetition::REPEATED && path.listed_level == 0 {
                path.listed_level = level + 1;
            }
            level += i16::from(repetition != Repetition::REQUIRED);
            if unnamed > 0 {
                unnamed -= 1;
            } else {
                names.push(part);
                unnamed = parts_of_list(child);
            }
            node = child;
        }
        path.name = names.join(".");
        path
    }
}

/// How many parts of a path belong to a list and name nothing: two in the form with three levels, one in the older one.
fn parts_of_list(node: &Type) -> usize {
    let info = node.get_basic_info();
    let is_list = info.logical_type_ref() == Some(&LogicalType::List) || info.converted_type() == ConvertedType::LIST;
    let [repeated] = fields(node) else { return 0 };
    if !is_list {
        return 0;
    }
    let is_element = repeated.name() == "array" || repeated.name() == format!("{}_tuple", node.name());
    if fields(repeated).len() == 1 && !is_element { 2 } else { 1 }
}

fn fields(node: &Type) -> &[parquet::schema::types::TypePtr] {
    if node.is_group() { node.get_fields() } else { &[] }
}

/// Opens a column of lists. `listed_level` is the definition level of a list that has elements, `max_level` that of an
/// element that is not null.
///
/// # Errors
/// Where its elements are not numbers.
pub(super) fn open(
    reader: ColumnReader,
    listed_level: i16,
    max_level: i16,
    element: &AttributeType,
) -> Result<Box<dyn Cells>, String> {
    let width = element.width().ok_or("a list of elements without a width")? as usize;
    let levels = Levels { listed: listed_level, present: max_level };
    Ok(match reader {
        ColumnReader::Int32ColumnReader(reader) => {
            lists(reader, levels, width, |number, take| take(&number.to_le_bytes()))
        }
        ColumnReader::Int64ColumnReader(reader) => {
            lists(reader, levels, width, |number, take| take(&number.to_le_bytes()))
        }
        ColumnReader::FloatColumnReader(reader) => {
            lists(reader, levels, width, |number, take| take(&number.to_le_bytes()))
        }
        ColumnReader::DoubleColumnReader(reader) => {
            lists(reader, levels, width, |number, take| take(&number.to_le_bytes()))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            lists(reader, levels, width, |number, take| take(number.data()))
        }
        _ => return Err("a list of what is no number".into()),
    })
}

/// The definition levels of a list that has elements, and of an element that is there.
#[derive(Clone, Copy)]
struct Levels {
    listed: i16,
    present: i16,
}

/// Calls the function with the little-endian bytes of a number.
type Push<T> = fn(&T, &mut dyn FnMut(&[u8]));

struct Lists<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Levels,
    /// Bytes of an element; of a number with more, the lower ones.
    width: usize,
    push: Push<T::T>,
}

fn lists<T: DataType>(reader: ColumnReaderImpl<T>, levels: Levels, width: usize, push: Push<T::T>) -> Box<dyn Cells> {
    Box::new(Lists { reader, levels, width, push })
}

impl<T: DataType> Cells for Lists<T> {
    /// One list at a time, since one can be long.
    fn next(&mut self) -> Result<Cell, String> {
        let (mut definitions, mut repetitions, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        let (records, _, _) =
            contained(|| self.reader.read_records(1, Some(&mut definitions), Some(&mut repetitions), &mut numbers))?;
        let first = *definitions.first().filter(|_| records == 1).ok_or("it ends too early")?;
        if first < self.levels.listed {
            let is_empty = first + 1 == self.levels.listed;
            return Ok(if is_empty { Cell::Bytes(ByteArray::from(Vec::new())) } else { Cell::Null });
        }
        if let Some(at) = definitions.iter().position(|&level| level < self.levels.present) {
            return Ok(Cell::NullInList(at));
        }
        let mut bytes = Vec::with_capacity(numbers.len().saturating_mul(self.width));
        let mut is_whole = true;
        for number in &numbers {
            (self.push)(number, &mut |number| match number.get(..self.width) {
                Some(number) => bytes.extend_from_slice(number),
                None => is_whole = false,
            });
        }
        if is_whole { Ok(Cell::Bytes(bytes.into())) } else { Err("an element has too few bytes".into()) }
    }
}
