//! Types of fields. spec.md: FLD-4.

use std::sync::Arc;

use crate::AttributeType;
use crate::attribute::is_type_name;

const MAX_DIMENSIONS: usize = 8;

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldType {
    /// Any bytes.
    Bytes,
    /// UTF-8.
    Str,
    /// An array of numbers, row-major.
    Array {
        /// The numbers' type, never `bool`, `timestamp`, `category` or opaque.
        element: AttributeType,
        /// Elements in each dimension.
        shape: Shape,
    },
    /// A type that this version does not know, by its name: any bytes.
    Opaque(Arc<str>),
}

/// The dimensions of an array; the first may be open: as many as the field's length gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    is_open: bool,
    fixed: Vec<u64>,
}

impl Shape {
    /// A shape whose dimensions are all fixed.
    pub fn fixed(dimensions: Vec<u64>) -> Self {
        Self { is_open: false, fixed: dimensions }
    }

    /// A shape with an open dimension before those of `rest`.
    pub fn open(rest: Vec<u64>) -> Self {
        Self { is_open: true, fixed: rest }
    }

    /// Whether the first dimension is open.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The fixed dimensions: all, or those after the open one.
    pub fn fixed_dimensions(&self) -> &[u64] {
        &self.fixed
    }

    /// The dimensions of an array of so many elements; `None` if it cannot have as many.
    fn of_elements(&self, elements: u64) -> Option<Vec<u64>> {
        let product = product(&self.fixed)?;
        if !self.is_open {
            return (elements == product).then(|| self.fixed.clone());
        }
        let whole = product > 0 && elements.is_multiple_of(product);
        whole.then(|| std::iter::once(elements / product).chain(self.fixed.iter().copied()).collect())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',').peekable();
        let is_open = parts.next_if_eq(&"").is_some();
        let fixed: Vec<u64> = parts.map(parse_dimension).collect::<Option<_>>()?;
        let elements = product(&fixed)?;
        let each = fixed.iter().all(|&dimension| dimension < 1 << 40);
        let divides = !is_open || elements > 0;
        let fits = fixed.len() + usize::from(is_open) <= MAX_DIMENSIONS && each && elements < 1 << 40 && divides;
        fits.then_some(Self { is_open, fixed })
    }

    fn text(&self) -> String {
        let open = self.is_open.then(String::new);
        open.into_iter().chain(self.fixed.iter().map(u64::to_string)).collect::<Vec<_>>().join(",")
    }
}

impl FieldType {
    /// The known type with this name: `bytes`, `str`, `float32[3,224]`, `float32[]`, `float32[,4]`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "bytes" => return Some(Self::Bytes),
            "str" => return Some(Self::Str),
            _ => {}
        }
        let (element, shape) = name.strip_suffix(']')?.split_once('[')?;
        let element = AttributeType::from_name(element).filter(AttributeType::is_element)?;
        Some(Self::Array { element, shape: Shape::parse(shape)? })
    }

    /// The type with this name in a schema: opaque if it is unknown; `None` if it cannot be the name of a type.
    pub(crate) fn from_schema(name: &str) -> Option<Self> {
        Self::from_name(name).or_else(|| is_type_name(name).then(|| Self::Opaque(name.into())))
    }

    /// The name in the schema.
    pub fn name(&self) -> String {
        match self {
            Self::Bytes => "bytes".into(),
            Self::Str => "str".into(),
            Self::Array { element, shape } => format!("{}[{}]", element.name(), shape.text()),
            Self::Opaque(name) => name.as_ref().into(),
        }
    }

    /// The dimensions of an array of `len` bytes; `None` if the type is no array, or its arrays cannot have this
    /// length.
    pub fn dimensions_of(&self, len: u64) -> Option<Vec<u64>> {
        let Self::Array { element, shape } = self else { return None };
        let width = u64::from(element.width()?);
        if len.is_multiple_of(width) { shape.of_elements(len / width) } else { None }
    }

    /// Whether a field of this type can have this length.
    pub fn allows_len(&self, len: u64) -> bool {
        !matches!(self, Self::Array { .. }) || self.dimensions_of(len).is_some()
    }
}

/// How many elements the dimensions have; `None` if it is 2^64 or more.
fn product(dimensions: &[u64]) -> Option<u64> {
    if dimensions.contains(&0) {
        return Some(0); // the others may be too large to multiply
    }
    dimensions.iter().try_fold(1_u64, |product, &dimension| product.checked_mul(dimension))
}

fn parse_dimension(text: &str) -> Option<u64> {
    let canonical =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FLD-4, ATR-3
    #[test]
    fn field_types_have_one_spelling_and_others_are_opaque() {
        for name in [
            "bytes",
            "str",
            "float32[768]",
            "uint8[3,224,224]",
            "int64[0]",
            "int8[4294967296,4294967296,0]",
            "float16[]",
            "bfloat16[,4]",
            "int8[,1,1,1,1,1,1,1]",
        ] {
            assert_eq!(FieldType::from_name(name).unwrap().name(), name);
        }
        for name in [
            "Bytes",
            "float32",
            "float32[1,]",
            "float32[,]",
            "float32[,,2]",
            "float32[,0]",
            "float32[1,,2]",
            "float32[01]",
            "float32[ 1]",
            "bool[2]",
            "timestamp[2]",
            "category[2]",
            "float32[-1]",
            "float32[1",
            "int8[1,1,1,1,1,1,1,1,1]",
            "int8[,1,1,1,1,1,1,1,1]",
            "int8[4294967296,4294967296]",
            "int8[0,1099511627776]",
        ] {
            assert_eq!(FieldType::from_name(name), None, "{name}");
            assert_eq!(FieldType::from_schema(name), Some(FieldType::Opaque(name.into())), "{name}");
        }
        assert_eq!(FieldType::from_schema(""), None);
        assert_eq!(FieldType::from_schema("a\tb"), None);
    }

    /// FLD-4
    #[test]
    fn an_open_dimension_is_what_the_length_gives() {
        let dimensions = |name: &str, len| FieldType::from_name(name).unwrap().dimensions_of(len);
        assert_eq!(dimensions("float32[]", 12), Some(vec![3]));
        assert_eq!(dimensions("float32[]", 0), Some(vec![0]));
        assert_eq!(dimensions("float32[]", 13), None);
        assert_eq!(dimensions("float16[,3,2]", 24), Some(vec![2, 3, 2]));
        assert_eq!(dimensions("float16[,3,2]", 26), None);
        assert_eq!(dimensions("uint8[2,3]", 6), Some(vec![2, 3]));
        assert_eq!(dimensions("uint8[2,3]", 12), None);
        assert_eq!(dimensions("int8[0,7]", 0), Some(vec![0, 7]));
        let empty = "int8[4294967296,4294967296,0]";
        assert_eq!(dimensions(empty, 0), Some(vec![1 << 32, 1 << 32, 0]));
        assert_eq!(dimensions(empty, 1), None);
        assert_eq!(dimensions("bytes", 6), None);
        assert!(FieldType::Bytes.allows_len(7) && !FieldType::from_name("int16[]").unwrap().allows_len(7));
    }
}
