//! How the columns of a table are used.

use std::collections::BTreeSet;

use grainstore_format::{AttributeType, AttributeValue};

use super::cell::ColumnType;
use super::rows::TableRows;

/// The largest number of classes in a text column named `label`; with more it is text like any other column.
const CLASS_COUNT_MAX: usize = 65_536;

/// A column of the table.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) values: ColumnUse,
}

/// The column whose texts are names of classes.
pub(super) const LABEL: &str = "label";

/// How a column is used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ColumnUse {
    /// An attribute.
    Attribute(AttributeType),
    /// The attribute `label`: the number of a class. Names are sorted.
    Classes(Vec<Box<str>>),
    /// A field of text.
    Text,
    /// Used by the reader of the table; see [`Wanted::plain`](super::Wanted::plain).
    Plain,
    /// Ignored: all of its cells are empty.
    Nothing,
}

impl Column {
    pub(super) fn is_attribute(&self) -> bool {
        matches!(self.values, ColumnUse::Attribute(_) | ColumnUse::Classes(_))
    }
}

impl ColumnUse {
    pub(super) fn of(rows: &TableRows, column: usize, name: &str, kind: Option<ColumnType>) -> Self {
        match kind {
            None => Self::Nothing,
            Some(ColumnType::Truth) => Self::Attribute(AttributeType::Bool),
            Some(ColumnType::Whole) => Self::Attribute(AttributeType::Int64),
            Some(ColumnType::Unsigned) => Self::Attribute(AttributeType::Uint64),
            Some(ColumnType::Number) => Self::Attribute(AttributeType::Float64),
            Some(ColumnType::Text) if name == LABEL => classes(rows, column).map_or(Self::Text, Self::Classes),
            Some(ColumnType::Text) => Self::Text,
        }
    }

    pub(super) fn value(&self, text: &str) -> Option<AttributeValue> {
        match self {
            Self::Attribute(kind) => attribute_value(kind, text),
            Self::Classes(names) => {
                let class = names.binary_search_by(|name| (**name).cmp(text)).ok()?;
                Some(AttributeValue::Int(i64::try_from(class).ok()?))
            }
            Self::Text | Self::Plain | Self::Nothing => None,
        }
    }
}

/// The value that a text is. Texts that were written from values give these values again.
fn attribute_value(kind: &AttributeType, text: &str) -> Option<AttributeValue> {
    use AttributeType as Type;
    Some(match kind {
        Type::Bool => AttributeValue::Bool(text.eq_ignore_ascii_case("true")),
        Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => AttributeValue::Int(text.parse().ok()?),
        Type::Uint8 | Type::Uint16 | Type::Uint32 | Type::Uint64 => AttributeValue::Uint(text.parse().ok()?),
        Type::Float16 => AttributeValue::Float16(half::f16::from_f32(text.parse().ok()?)),
        Type::Bfloat16 => AttributeValue::Bfloat16(half::bf16::from_f32(text.parse().ok()?)),
        Type::Float32 => AttributeValue::Float32(text.parse().ok()?),
        Type::Float64 => AttributeValue::Float64(text.parse().ok()?),
        Type::Timestamp => AttributeValue::Timestamp(text.parse().ok()?),
        Type::Category => AttributeValue::Category(text.into()),
        Type::Opaque(_) => return None,
    })
}

/// The distinct texts of a column; `None` where there are too many for classes.
fn classes(rows: &TableRows, column: usize) -> Option<Vec<Box<str>>> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for row in 0..rows.len() {
        let cell = rows.cells(row).find(|cell| cell.column == column);
        names.extend(cell.map(|cell| rows.text(&cell)));
        if names.len() > CLASS_COUNT_MAX {
            return None;
        }
    }
    Some(names.into_iter().map(Box::from).collect())
}
