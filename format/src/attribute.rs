//! Types and values of attributes. spec.md: ATR-1, ATR-3, CAT-2.

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};

use crate::{Categories, escape_bytes};

/// The type of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum AttributeType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    /// Nanoseconds since 1970-01-01 00:00 UTC, without leap seconds.
    Timestamp,
    /// One of few texts; the index holds numbers of them.
    Category,
    /// A type that this version does not know, by its name: its values are bytes.
    Opaque(Arc<str>),
}

impl AttributeType {
    const NAMED: [Self; 15] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float16,
        Self::Bfloat16,
        Self::Float32,
        Self::Float64,
        Self::Timestamp,
        Self::Category,
    ];

    /// The name in the schema.
    pub fn name(&self) -> &str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Timestamp => "timestamp",
            Self::Category => "category",
            Self::Opaque(name) => name,
        }
    }

    /// Bytes per value; `None` if the directory has it: for `category` and opaque types.
    pub const fn width(&self) -> Option<u32> {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => Some(1),
            Self::Int16 | Self::Uint16 | Self::Float16 | Self::Bfloat16 => Some(2),
            Self::Int32 | Self::Uint32 | Self::Float32 => Some(4),
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::Timestamp => Some(8),
            Self::Category | Self::Opaque(_) => None,
        }
    }

    /// Whether a section ATTRIBUTE of this type may have this width.
    pub(crate) fn allows_width(&self, width: u32) -> bool {
        match self {
            Self::Category => matches!(width, 1 | 2 | 4),
            Self::Opaque(_) => matches!(width, 1 | 2 | 4 | 8 | 16),
            known => known.width() == Some(width),
        }
    }

    /// The known type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|kind| kind.name() == name)
    }

    /// The type with this name in a schema: opaque if it is unknown; `None` if it cannot be the name of a type.
    pub(crate) fn from_schema(name: &str) -> Option<Self> {
        Self::from_name(name).or_else(|| is_type_name(name).then(|| Self::Opaque(name.into())))
    }

    /// Whether fields can be arrays of it.
    pub(crate) fn is_element(&self) -> bool {
        !matches!(self, Self::Bool | Self::Timestamp | Self::Category | Self::Opaque(_))
    }

    /// The value in `bytes`, which are those of one value; `None` if they are not a value of the type. `categories`
    /// are those of the attribute.
    pub fn decode(&self, bytes: &[u8], categories: &Categories) -> Option<AttributeValue> {
        if self.width().is_some_and(|width| bytes.len() != width as usize) {
            return None;
        }
        let value = match self {
            Self::Bool => match bytes.first()? {
                0 => AttributeValue::Bool(false),
                1 => AttributeValue::Bool(true),
                _ => return None,
            },
            Self::Int8 => AttributeValue::Int(i64::from(i8::from_le_bytes(*bytes.first_chunk()?))),
            Self::Int16 => AttributeValue::Int(i64::from(i16::from_le_bytes(*bytes.first_chunk()?))),
            Self::Int32 => AttributeValue::Int(i64::from(i32::from_le_bytes(*bytes.first_chunk()?))),
            Self::Int64 => AttributeValue::Int(i64::from_le_bytes(*bytes.first_chunk()?)),
            Self::Uint8 => AttributeValue::Uint(u64::from(*bytes.first()?)),
            Self::Uint16 => AttributeValue::Uint(u64::from(u16::from_le_bytes(*bytes.first_chunk()?))),
            Self::Uint32 => AttributeValue::Uint(u64::from(u32::from_le_bytes(*bytes.first_chunk()?))),
            Self::Uint64 => AttributeValue::Uint(u64::from_le_bytes(*bytes.first_chunk()?)),
            Self::Float16 => AttributeValue::Float16(f16::from_le_bytes(*bytes.first_chunk()?)),
            Self::Bfloat16 => AttributeValue::Bfloat16(bf16::from_le_bytes(*bytes.first_chunk()?)),
            Self::Float32 => AttributeValue::Float32(f32::from_le_bytes(*bytes.first_chunk()?)),
            Self::Float64 => AttributeValue::Float64(f64::from_le_bytes(*bytes.first_chunk()?)),
            Self::Timestamp => AttributeValue::Timestamp(i64::from_le_bytes(*bytes.first_chunk()?)),
            Self::Category => AttributeValue::Category(categories.get(code(bytes)?)?.into()),
            Self::Opaque(_) => AttributeValue::Opaque(bytes.into()),
        };
        Some(value)
    }

    /// The bytes of `value` in this type, the first `width` of the eight; `None` if it is of another type or out of
    /// range, or the type has no width of its own.
    pub fn encode(&self, value: &AttributeValue) -> Option<[u8; 8]> {
        let fits = match (self, value) {
            (Self::Bool, AttributeValue::Bool(_))
            | (Self::Float16, AttributeValue::Float16(_))
            | (Self::Bfloat16, AttributeValue::Bfloat16(_))
            | (Self::Float32, AttributeValue::Float32(_))
            | (Self::Float64, AttributeValue::Float64(_))
            | (Self::Timestamp, AttributeValue::Timestamp(_))
            | (Self::Int64, AttributeValue::Int(_))
            | (Self::Uint64, AttributeValue::Uint(_)) => true,
            (Self::Int8, AttributeValue::Int(v)) => i8::try_from(*v).is_ok(),
            (Self::Int16, AttributeValue::Int(v)) => i16::try_from(*v).is_ok(),
            (Self::Int32, AttributeValue::Int(v)) => i32::try_from(*v).is_ok(),
            (Self::Uint8, AttributeValue::Uint(v)) => u8::try_from(*v).is_ok(),
            (Self::Uint16, AttributeValue::Uint(v)) => u16::try_from(*v).is_ok(),
            (Self::Uint32, AttributeValue::Uint(v)) => u32::try_from(*v).is_ok(),
            _ => false,
        };
        if !fits {
            return None;
        }
        // Two's complement: the low bytes of a value that fits are the value in the narrower type.
        match value {
            AttributeValue::Bool(v) => Some(u64::from(*v).to_le_bytes()),
            AttributeValue::Int(v) | AttributeValue::Timestamp(v) => Some(v.to_le_bytes()),
            AttributeValue::Uint(v) => Some(v.to_le_bytes()),
            AttributeValue::Float16(v) => Some(u64::from(v.to_bits()).to_le_bytes()),
            AttributeValue::Bfloat16(v) => Some(u64::from(v.to_bits()).to_le_bytes()),
            AttributeValue::Float32(v) => Some(u64::from(v.to_bits()).to_le_bytes()),
            AttributeValue::Float64(v) => Some(v.to_le_bytes()),
            AttributeValue::Category(_) | AttributeValue::Opaque(_) => None,
        }
    }

    /// Whether a writer can store `value` in an attribute of this type.
    pub fn accepts(&self, value: &AttributeValue) -> bool {
        match (self, value) {
            (Self::Category, AttributeValue::Category(name)) => name.len() <= Categories::MAX_NAME_LEN,
            _ => self.encode(value).is_some(),
        }
    }

    /// The value of this type that equals a whole number; `None` where there is none.
    #[must_use]
    pub fn whole(&self, number: i128) -> Option<AttributeValue> {
        let int = |min: i64, max: i64| i64::try_from(number).ok().filter(|number| (min..=max).contains(number));
        let uint = |max: u64| u64::try_from(number).ok().filter(|number| *number <= max);
        let text = number.to_string();
        Some(match self {
            Self::Int8 => AttributeValue::Int(int(i8::MIN.into(), i8::MAX.into())?),
            Self::Int16 => AttributeValue::Int(int(i16::MIN.into(), i16::MAX.into())?),
            Self::Int32 => AttributeValue::Int(int(i32::MIN.into(), i32::MAX.into())?),
            Self::Int64 => AttributeValue::Int(int(i64::MIN, i64::MAX)?),
            Self::Uint8 => AttributeValue::Uint(uint(u8::MAX.into())?),
            Self::Uint16 => AttributeValue::Uint(uint(u16::MAX.into())?),
            Self::Uint32 => AttributeValue::Uint(uint(u32::MAX.into())?),
            Self::Uint64 => AttributeValue::Uint(uint(u64::MAX)?),
            Self::Float64 => {
                let float: f64 = text.parse().ok()?;
                AttributeValue::Float64(Some(float).filter(|float| format!("{float:.0}") == text)?)
            }
            Self::Float32 => {
                let float: f32 = text.parse().ok()?;
                AttributeValue::Float32(Some(float).filter(|float| format!("{float:.0}") == text)?)
            }
            _ => return None,
        })
    }
}

/// Whether a schema may have a type of this name. spec.md: ATR-3.
pub(crate) fn is_type_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The little-endian number in 1 to 4 bytes.
fn code(bytes: &[u8]) -> Option<u32> {
    let fits = (1..=4).contains(&bytes.len());
    fits.then(|| bytes.iter().rev().fold(0, |code, &byte| code << 8 | u32::from(byte)))
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// Of type `bool`.
    Bool(bool),
    /// Of a signed type.
    Int(i64),
    /// Of an unsigned type.
    Uint(u64),
    /// Of type `float16`.
    Float16(f16),
    /// Of type `bfloat16`.
    Bfloat16(bf16),
    /// Of type `float32`.
    Float32(f32),
    /// Of type `float64`.
    Float64(f64),
    /// Of type `timestamp`: nanoseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// Of type `category`: the text.
    Category(Arc<str>),
    /// Of a type that this version does not know: its bytes.
    Opaque(Arc<[u8]>),
}

/// For messages. Texts are quoted, with control characters escaped; the bytes of an unknown type are hexadecimal.
impl fmt::Display for AttributeValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(out),
            Self::Int(value) => value.fmt(out),
            Self::Uint(value) => value.fmt(out),
            Self::Float16(value) => value.fmt(out),
            Self::Bfloat16(value) => value.fmt(out),
            Self::Float32(value) => value.fmt(out),
            Self::Float64(value) => value.fmt(out),
            Self::Timestamp(ns) => write!(out, "{ns} ns since 1970"),
            Self::Category(text) => write!(out, "\"{}\"", escape_bytes(text.as_bytes())),
            Self::Opaque(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_without_the_names_of_our_types() {
        let shown = [
            (AttributeValue::Bool(true), "true"),
            (AttributeValue::Int(-1), "-1"),
            (AttributeValue::Float16(f16::NAN), "NaN"),
            (AttributeValue::Bfloat16(bf16::INFINITY), "inf"),
            (AttributeValue::Float32(0.1), "0.1"),
            (AttributeValue::Timestamp(7), "7 ns since 1970"),
            (AttributeValue::Category("a\n".into()), "\"a\\n\""),
            (AttributeValue::Opaque([0, 0xab].into()), "00ab"),
        ];
        for (value, text) in shown {
            assert_eq!(value.to_string(), text);
        }
    }

    /// ATR-1
    #[test]
    fn values_of_every_type_round_trip_and_others_are_refused() {
        let values = [
            (AttributeType::Bool, AttributeValue::Bool(true)),
            (AttributeType::Int8, AttributeValue::Int(-128)),
            (AttributeType::Int16, AttributeValue::Int(-5)),
            (AttributeType::Int32, AttributeValue::Int(i64::from(i32::MIN))),
            (AttributeType::Int64, AttributeValue::Int(i64::MIN)),
            (AttributeType::Uint8, AttributeValue::Uint(255)),
            (AttributeType::Uint16, AttributeValue::Uint(65535)),
            (AttributeType::Uint32, AttributeValue::Uint(1 << 31)),
            (AttributeType::Uint64, AttributeValue::Uint(u64::MAX)),
            (AttributeType::Float16, AttributeValue::Float16(f16::MIN_POSITIVE_SUBNORMAL)),
            (AttributeType::Bfloat16, AttributeValue::Bfloat16(bf16::MAX)),
            (AttributeType::Float32, AttributeValue::Float32(-0.5)),
            (AttributeType::Float64, AttributeValue::Float64(1e300)),
            (AttributeType::Timestamp, AttributeValue::Timestamp(-1)),
        ];
        let none = Categories::default();
        for (kind, value) in values {
            let bytes = kind.encode(&value).unwrap();
            assert_eq!(kind.decode(&bytes[..kind.width().unwrap() as usize], &none), Some(value));
            assert_eq!(AttributeType::from_name(kind.name()), Some(kind));
        }
        assert_eq!(AttributeType::Float16.encode(&AttributeValue::Float16(f16::ONE)).unwrap()[..2], [0, 0x3C]);
        assert_eq!(AttributeType::Bfloat16.encode(&AttributeValue::Bfloat16(bf16::ONE)).unwrap()[..2], [0x80, 0x3F]);
        assert_eq!(AttributeType::Int8.encode(&AttributeValue::Int(128)), None);
        assert_eq!(AttributeType::Uint8.encode(&AttributeValue::Int(1)), None);
        assert_eq!(AttributeType::Int64.encode(&AttributeValue::Timestamp(1)), None);
        assert_eq!(AttributeType::Bool.decode(&[2], &none), None);
        assert_eq!(AttributeType::Int32.decode(&[1, 2, 3], &none), None);
    }

    /// CAT-2
    #[test]
    fn a_category_is_its_text_and_codes_without_one_are_refused() {
        let categories = Categories::new(["cat", "", "dog"]).unwrap();
        let decode = |bytes: &[u8]| AttributeType::Category.decode(bytes, &categories);
        assert_eq!(decode(&[0]), Some(AttributeValue::Category("cat".into())));
        assert_eq!(decode(&[1, 0]), Some(AttributeValue::Category("".into())));
        assert_eq!(decode(&[2, 0, 0, 0]), Some(AttributeValue::Category("dog".into())));
        assert_eq!((decode(&[3]), decode(&[2, 0, 0, 1]), decode(&[])), (None, None, None));
        assert_eq!(AttributeType::Category.decode(&[0], &Categories::default()), None);
        assert!(AttributeType::Category.accepts(&AttributeValue::Category("x".repeat(65535).into())));
        assert!(!AttributeType::Category.accepts(&AttributeValue::Category("x".repeat(65536).into())));
    }

    /// ATR-3
    #[test]
    fn an_unknown_type_is_opaque_and_takes_no_values() {
        let opaque = AttributeType::from_schema("decimal128(9)").unwrap();
        assert_eq!((opaque.name(), opaque.width()), ("decimal128(9)", None));
        let value = opaque.decode(&[1; 16], &Categories::default()).unwrap();
        assert_eq!(value, AttributeValue::Opaque(vec![1; 16].into()));
        assert!(!opaque.accepts(&value));
        assert_eq!(AttributeType::from_name("decimal128(9)"), None);
        for name in ["", "a\nb", &"x".repeat(256)] {
            assert_eq!(AttributeType::from_schema(name), None, "{name}");
        }
        assert!([1, 2, 4, 8, 16].iter().all(|&width| opaque.allows_width(width)));
        assert!(![0, 3, 32].iter().any(|&width| opaque.allows_width(width)));
    }
}
