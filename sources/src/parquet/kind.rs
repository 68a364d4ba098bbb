//! What a leaf column becomes.

use grainstore_format::{AttributeType, FieldType};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

/// What a leaf column becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Number(AttributeType),
    /// A time in UTC, in units of so many nanoseconds: a timestamp.
    Time {
        unit_ns: i64,
    },
    Bytes,
    Text,
    /// Texts that are declared to be categories.
    Category,
    /// Bytes that are declared to be an array.
    Array(FieldType),
    List(ListKind),
}

/// Lists of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListKind {
    pub(super) element: AttributeType,
    /// The definition level of a list that has elements.
    pub(super) listed_level: i16,
}

impl ColumnKind {
    /// # Errors
    /// The name of the type, where it cannot be stored.
    pub(super) fn of(column: &ColumnDescriptor, listed_level: i16) -> Result<Self, &'static str> {
        let element = Self::of_cell(column)?;
        match column.max_rep_level() {
            0 => Ok(element),
            1 => match element {
                Self::Number(AttributeType::Bool) => Err("a list of booleans"),
                Self::Number(AttributeType::Int64) if is_bytes(column) => Err("a list of decimal numbers"),
                Self::Number(element) => Ok(Self::List(ListKind { element, listed_level })),
                Self::Time { .. } => Err("a list of times"),
                Self::Bytes | Self::Text => Err("a list of texts or bytes"),
                Self::List(_) | Self::Category | Self::Array(_) => Err("a list of lists"),
            },
            _ => Err("a list of lists"),
        }
    }

    /// What a cell becomes, or an element where cells are lists.
    fn of_cell(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let logical = column.logical_type_ref();
        let converted = column.converted_type();
        if matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL {
            // 18 digits fit into 64 bits.
            return match (column.type_scale(), column.type_precision()) {
                (0, ..=18) if column.physical_type() == Type::INT32 => Ok(Self::Number(AttributeType::Int32)),
                (0, ..=18) => Ok(Self::Number(AttributeType::Int64)),
                (0, _) => Err("a decimal number of more than 18 digits, which no type holds exactly"),
                _ => Err("a decimal number with digits after the point, which no type holds exactly"),
            };
        }
        if matches!(logical, Some(LogicalType::Unknown)) {
            return Err("of type null");
        }
        match column.physical_type() {
            Type::BOOLEAN => Ok(Self::Number(AttributeType::Bool)),
            Type::INT32 | Type::INT64 => Ok(match utc_unit_ns(column) {
                Some(unit_ns) => Self::Time { unit_ns },
                None => Self::Number(integer(column)),
            }),
            Type::FLOAT => Ok(Self::Number(AttributeType::Float32)),
            Type::DOUBLE => Ok(Self::Number(AttributeType::Float64)),
            Type::INT96 => Err("a timestamp of 96 bits"),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => match logical {
                Some(LogicalType::Float16) => Ok(Self::Number(AttributeType::Float16)),
                Some(LogicalType::String | LogicalType::Json | LogicalType::Enum) => Ok(Self::Text),
                _ if matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM) => {
                    Ok(Self::Text)
                }
                _ => Ok(Self::Bytes),
            },
        }
    }

    /// For messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Number(kind) => kind.name(),
            Self::Time { .. } => AttributeType::Timestamp.name(),
            Self::Bytes => "bytes",
            Self::Text => "str",
            Self::Category => AttributeType::Category.name(),
            Self::Array(_) => "an array in bytes",
            Self::List(list) => list.element.name(),
        }
    }
}

fn is_bytes(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY)
}

/// Nanoseconds in the unit of a column of times in UTC; `None` for other columns. The converted types are in UTC.
fn utc_unit_ns(column: &ColumnDescriptor) -> Option<i64> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(kind)), _) if kind.is_adjusted_to_u_t_c => Some(match kind.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1000,
            TimeUnit::NANOS => 1,
        }),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(1000),
        _ => None,
    }
}

/// The unit of a date, or of a time that is not in UTC; `None` for other columns. The dataset stores the integer
/// without its unit.
pub(super) fn time_unit(column: &ColumnDescriptor) -> Option<String> {
    if utc_unit_ns(column).is_some() {
        return None;
    }
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some("days".into()),
        (Some(LogicalType::Timestamp(kind)), _) => Some(format!("{:?}", kind.unit).to_lowercase()),
        (Some(LogicalType::Time(kind)), _) => Some(format!("{:?}", kind.unit).to_lowercase()),
        (None, ConvertedType::TIME_MILLIS) => Some("millis".into()),
        (None, ConvertedType::TIME_MICROS) => Some("micros".into()),
        _ => None,
    }
}

fn integer(column: &ColumnDescriptor) -> AttributeType {
    let is_long = column.physical_type() == Type::INT64;
    let (bits, is_signed) = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(kind)), _) => (kind.bit_width, kind.is_signed),
        (_, ConvertedType::INT_8) => (8, true),
        (_, ConvertedType::INT_16) => (16, true),
        (_, ConvertedType::UINT_8) => (8, false),
        (_, ConvertedType::UINT_16) => (16, false),
        (_, ConvertedType::UINT_32 | ConvertedType::UINT_64) => (64, false),
        _ => (64, true),
    };
    match (bits, is_signed, is_long) {
        (8, true, false) => AttributeType::Int8,
        (16, true, false) => AttributeType::Int16,
        (_, true, false) => AttributeType::Int32,
        (_, true, true) => AttributeType::Int64,
        (8, false, false) => AttributeType::Uint8,
        (16, false, false) => AttributeType::Uint16,
        (_, false, false) => AttributeType::Uint32,
        (_, false, true) => AttributeType::Uint64,
    }
}
