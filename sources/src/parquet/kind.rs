//! What a leaf column becomes.

use grainstore_format::AttributeType;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::schema::types::ColumnDescriptor;

/// What a leaf column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Number(AttributeType),
    Bytes,
    Text,
}

impl ColumnKind {
    /// # Errors
    /// The name of the type, where it cannot be stored.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let logical = column.logical_type_ref();
        let converted = column.converted_type();
        if column.max_rep_level() > 0 {
            return Err("a list");
        }
        if matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL {
            return Err("a decimal number");
        }
        match column.physical_type() {
            Type::BOOLEAN => Ok(Self::Number(AttributeType::Bool)),
            Type::INT32 | Type::INT64 => Ok(Self::Number(integer(column))),
            Type::FLOAT => Ok(Self::Number(AttributeType::Float32)),
            Type::DOUBLE => Ok(Self::Number(AttributeType::Float64)),
            Type::INT96 => Err("a timestamp of 96 bits"),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => match logical {
                Some(LogicalType::Float16) => Err("a number of 16 bits"),
                Some(LogicalType::String | LogicalType::Json | LogicalType::Enum) => Ok(Self::Text),
                _ if matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM) => {
                    Ok(Self::Text)
                }
                _ => Ok(Self::Bytes),
            },
        }
    }

    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Number(kind) => kind.name(),
            Self::Bytes => "bytes",
            Self::Text => "str",
        }
    }
}

/// The unit of a date or a time; `None` for other columns. The dataset stores the integer without its unit.
pub(super) fn time_unit(column: &ColumnDescriptor) -> Option<String> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some("days".into()),
        (Some(LogicalType::Timestamp(kind)), _) => Some(format!("{:?}", kind.unit).to_lowercase()),
        (Some(LogicalType::Time(kind)), _) => Some(format!("{:?}", kind.unit).to_lowercase()),
        (None, ConvertedType::TIME_MILLIS | ConvertedType::TIMESTAMP_MILLIS) => Some("millis".into()),
        (None, ConvertedType::TIME_MICROS | ConvertedType::TIMESTAMP_MICROS) => Some("micros".into()),
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
