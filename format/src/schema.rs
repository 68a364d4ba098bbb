//! The schema: names and types of attributes and fields. spec.md: MET-2, ATR-1, FLD-4.

use std::collections::HashSet;

use crate::FormatError;

const MAX_ITEMS: usize = 1024;
const MAX_NAME_LEN: usize = 255;
const MAX_DIMENSIONS: usize = 8;

/// The type of an attribute: a fixed-width scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    Float32,
    Float64,
}

impl AttributeType {
    const ALL: [Self; 11] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float32,
        Self::Float64,
    ];

    /// The name in the schema.
    pub const fn name(self) -> &'static str {
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
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }

    /// Bytes per value.
    pub const fn width(self) -> u32 {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The value in the first `width` bytes; `None` if there are too few bytes, or they are not a value of the type.
    pub fn decode(self, bytes: &[u8]) -> Option<AttributeValue> {
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
            Self::Float32 => AttributeValue::Float32(f32::from_le_bytes(*bytes.first_chunk()?)),
            Self::Float64 => AttributeValue::Float64(f64::from_le_bytes(*bytes.first_chunk()?)),
        };
        Some(value)
    }

    /// The bytes of `value` in this type, the first `width` of the eight; `None` if it is of another type or out of
    /// range.
    pub fn encode(self, value: AttributeValue) -> Option<[u8; 8]> {
        let fits = match (self, value) {
            (Self::Bool, AttributeValue::Bool(_))
            | (Self::Float32, AttributeValue::Float32(_))
            | (Self::Float64, AttributeValue::Float64(_))
            | (Self::Int64, AttributeValue::Int(_))
            | (Self::Uint64, AttributeValue::Uint(_)) => true,
            (Self::Int8, AttributeValue::Int(v)) => i8::try_from(v).is_ok(),
            (Self::Int16, AttributeValue::Int(v)) => i16::try_from(v).is_ok(),
            (Self::Int32, AttributeValue::Int(v)) => i32::try_from(v).is_ok(),
            (Self::Uint8, AttributeValue::Uint(v)) => u8::try_from(v).is_ok(),
            (Self::Uint16, AttributeValue::Uint(v)) => u16::try_from(v).is_ok(),
            (Self::Uint32, AttributeValue::Uint(v)) => u32::try_from(v).is_ok(),
            _ => false,
        };
        // Two's complement: the low bytes of a value that fits are the value in the narrower type.
        let bytes = match value {
            AttributeValue::Bool(v) => u64::from(v).to_le_bytes(),
            AttributeValue::Int(v) => v.to_le_bytes(),
            AttributeValue::Uint(v) => v.to_le_bytes(),
            AttributeValue::Float32(v) => u64::from(v.to_bits()).to_le_bytes(),
            AttributeValue::Float64(v) => v.to_le_bytes(),
        };
        fits.then_some(bytes)
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttributeValue {
    /// Of type `bool`.
    Bool(bool),
    /// Of a signed type.
    Int(i64),
    /// Of an unsigned type.
    Uint(u64),
    /// Of type `float32`.
    Float32(f32),
    /// Of type `float64`.
    Float64(f64),
}

/// An attribute of every sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: AttributeType,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldType {
    /// Any bytes.
    Bytes,
    /// UTF-8.
    Str,
    /// An array of numbers, row-major.
    Array {
        /// The numbers' type, never `bool`.
        element: AttributeType,
        /// Elements in each dimension.
        shape: Vec<u64>,
    },
}

impl FieldType {
    /// The type with this name: `bytes`, `str`, `float32[3,224]`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "bytes" => return Some(Self::Bytes),
            "str" => return Some(Self::Str),
            _ => {}
        }
        let (element, shape) = name.strip_suffix(']')?.split_once('[')?;
        let element = AttributeType::from_name(element).filter(|kind| *kind != AttributeType::Bool)?;
        let shape: Vec<u64> = shape.split(',').map(parse_dimension).collect::<Option<_>>()?;
        let product = || shape.iter().try_fold(1_u64, |product, &dimension| product.checked_mul(dimension));
        let elements = if shape.contains(&0) { 0 } else { product()? };
        let each = shape.iter().all(|&dimension| dimension < 1 << 40);
        let fits = shape.len() <= MAX_DIMENSIONS && each && elements < 1 << 40;
        fits.then_some(Self::Array { element, shape })
    }

    /// The name in the schema.
    pub fn name(&self) -> String {
        match self {
            Self::Bytes => "bytes".into(),
            Self::Str => "str".into(),
            Self::Array { element, shape } => {
                let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
                format!("{}[{}]", element.name(), shape.join(","))
            }
        }
    }
}

fn parse_dimension(text: &str) -> Option<u64> {
    let canonical =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// A field of every payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
}

/// The attributes and fields of a dataset, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    attributes: Vec<Attribute>,
    fields: Vec<Field>,
}

impl Schema {
    /// A schema of these attributes and fields.
    ///
    /// # Errors
    /// If there are too many, there is no field, or a name is not allowed or used twice.
    pub fn new(attributes: Vec<Attribute>, fields: Vec<Field>) -> Result<Self, FormatError> {
        let invalid = |text: String| Err(FormatError::Invalid(text));
        if attributes.len() > MAX_ITEMS {
            return invalid(format!("schema has {} attributes, the limit is {MAX_ITEMS}", attributes.len()));
        }
        if !(1..=MAX_ITEMS).contains(&fields.len()) {
            return invalid(format!("schema has {} fields, it needs 1 to {MAX_ITEMS}", fields.len()));
        }
        let mut seen = HashSet::new();
        for name in attributes.iter().map(|a| &a.name).chain(fields.iter().map(|f| &f.name)) {
            let shown = crate::escape_bytes(name.as_bytes());
            if !(1..=MAX_NAME_LEN).contains(&name.len()) || name.chars().any(char::is_control) {
                return invalid(format!(
                    "name \"{shown}\" is not 1 to {MAX_NAME_LEN} bytes without control characters"
                ));
            }
            if !seen.insert(name) {
                return invalid(format!("name \"{shown}\" is used twice in the schema"));
            }
        }
        Ok(Self { attributes, fields })
    }

    /// The attributes, in order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The fields, in order; at least one.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The index of the attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }

    /// The index of the field with this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (AttributeType::Float32, AttributeValue::Float32(-0.5)),
            (AttributeType::Float64, AttributeValue::Float64(1e300)),
        ];
        for (kind, value) in values {
            let bytes = kind.encode(value).unwrap();
            assert_eq!(kind.decode(&bytes[..kind.width() as usize]), Some(value));
            assert_eq!(AttributeType::from_name(kind.name()), Some(kind));
        }
        assert_eq!(AttributeType::Int8.encode(AttributeValue::Int(128)), None);
        assert_eq!(AttributeType::Uint8.encode(AttributeValue::Int(1)), None);
        assert_eq!(AttributeType::Bool.decode(&[2]), None);
        assert_eq!(AttributeType::Int32.decode(&[1, 2, 3]), None);
    }

    /// FLD-4
    #[test]
    fn field_types_have_one_spelling() {
        for name in ["bytes", "str", "float32[768]", "uint8[3,224,224]", "int64[0]", "int8[4294967296,4294967296,0]"] {
            assert_eq!(FieldType::from_name(name).unwrap().name(), name);
        }
        for name in [
            "",
            "Bytes",
            "float32",
            "float32[]",
            "float32[1,]",
            "float32[01]",
            "float32[ 1]",
            "bool[2]",
            "float32[-1]",
            "float32[1",
            "int8[1,1,1,1,1,1,1,1,1]",
            "int8[4294967296,4294967296]",
            "int8[0,1099511627776]",
        ] {
            assert_eq!(FieldType::from_name(name), None, "{name}");
        }
    }

    /// MET-2
    #[test]
    fn refuses_invalid_schemas() {
        let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
        let label = Attribute { name: "label".into(), kind: AttributeType::Int64 };
        assert!(Schema::new(vec![label.clone()], vec![field("image")]).is_ok());
        assert!(Schema::new(vec![label.clone()], vec![field("label")]).is_err());
        assert!(Schema::new(vec![label], vec![]).is_err());
        assert!(Schema::new(vec![], vec![field("")]).is_err());
        assert!(Schema::new(vec![], vec![field("a\nb")]).is_err());
        assert!(Schema::new(vec![], vec![field(&"x".repeat(256))]).is_err());
        assert!(Schema::new(vec![], (0..1025).map(|i| field(&i.to_string())).collect()).is_err());
    }
}
