//! A sample as a `tf.train.Example`, the message that TensorFlow's records hold: features by name, each a list of
//! bytes, of 64-bit integers or of 32-bit floats. Array fields of int64 or float32 become lists of numbers, other
//! fields become bytes. The payload is written without a copy, except arrays of integers, which are encoded as varints.
//!
//! ```text
//! Example { 1: Features { 1 (map): { 1: name, 2: Feature { 1: BytesList | 2: FloatList | 3: Int64List { 1: values } }
//! } } }
//! ```

use std::io::{self, Write};
use std::ops::Range;

use grainstore_format::{AttributeType, AttributeValue, FieldType, Schema, escape_bytes};
use prost::encoding::{encode_varint, encoded_len_varint};

use crate::ExportError;
use crate::error::io_bug;
use crate::fetch::Facts;
use crate::index_pass::Indexed;
use crate::payload::Payload;

/// The longest payload: a message has less than 2 GiB, names and attributes included.
pub(crate) const PAYLOAD_LEN_MAX: u64 = (1 << 31) - (1 << 21);

/// The key's feature.
pub(crate) const KEY: &str = "key";

/// A feature's only value.
enum FeatureValue<'a> {
    Bytes(&'a [u8]),
    /// A byte range of the payload.
    Field(&'a Range<u64>),
    Int(i64),
    Float(f32),
    /// A byte range of the payload that is already encoded as a list has it.
    Floats(&'a Range<u64>),
    /// Varints, as a list has them.
    Ints(Vec<u8>),
}

/// An example to be written.
pub(crate) struct Example<'a> {
    features: Vec<(&'a str, FeatureValue<'a>)>,
}

/// Fails if an attribute has a value that no feature can hold, or the payload is too long.
pub(crate) fn check(schema: &Schema, sample: &Indexed) -> Result<(), ExportError> {
    sample.check_len(PAYLOAD_LEN_MAX, "a tf.train.Example")?;
    for (attribute, value) in schema.attributes().iter().zip(&sample.attributes) {
        if let Some(value) = value {
            let name = escape_bytes(attribute.name.as_bytes());
            feature_of(value).map_err(|why| sample.refused(format!("its \"{name}\" is {why}")))?;
        }
    }
    Ok(())
}

fn feature_of(value: &AttributeValue) -> Result<FeatureValue<'_>, String> {
    Ok(match value {
        AttributeValue::Bool(value) => FeatureValue::Int((*value).into()),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => FeatureValue::Int(*value),
        AttributeValue::Uint(value) => {
            let fits = i64::try_from(*value).map_err(|_| format!("{value}, a feature holds {} at most", i64::MAX));
            FeatureValue::Int(fits?)
        }
        AttributeValue::Float16(value) => FeatureValue::Float(value.to_f32()),
        AttributeValue::Bfloat16(value) => FeatureValue::Float(value.to_f32()),
        AttributeValue::Float32(value) => FeatureValue::Float(*value),
        AttributeValue::Float64(value) => {
            #[expect(clippy::cast_possible_truncation, reason = "the next line checks that it is exact")]
            let short = *value as f32;
            if f64::from(short).to_bits() != value.to_bits() && !value.is_nan() {
                return Err(format!("{value:?}, a feature holds 32-bit floats, and none is exactly this"));
            }
            FeatureValue::Float(short)
        }
        AttributeValue::Category(text) => FeatureValue::Bytes(text.as_bytes()),
        AttributeValue::Opaque(bytes) => FeatureValue::Bytes(bytes),
    })
}

impl<'a> Example<'a> {
    /// The sample's attributes and fields by name, and its key if `with_key`. Missing values are skipped.
    pub(crate) fn of(
        schema: &'a Schema,
        facts: &'a Facts,
        payload: &mut Payload<'_>,
        with_key: bool,
    ) -> io::Result<Self> {
        let key = facts.key.as_deref().filter(|_| with_key).map(|key| (KEY, FeatureValue::Bytes(key)));
        let mut features: Vec<_> = key.into_iter().collect();
        for (attribute, value) in schema.attributes().iter().zip(&facts.attributes) {
            if let Some(value) = value {
                let feature = feature_of(value).map_err(|_| io_bug("no feature holds a value that was checked"))?;
                features.push((attribute.name.as_str(), feature));
            }
        }
        for (field, range) in schema.fields().iter().zip(&facts.fields) {
            if let Some(range) = range {
                features.push((field.name.as_str(), FeatureValue::of_field(&field.kind, range, payload)?));
            }
        }
        Ok(Self { features })
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> u64 {
        wrapped_len(self.features_len())
    }

    /// Writes the message.
    pub(crate) fn write(&self, payload: &mut Payload<'_>, out: &mut dyn Write) -> io::Result<()> {
        write_head(out, 1, self.features_len())?;
        for (name, value) in &self.features {
            let name_len = name.len() as u64;
            let list_len = value.list_len();
            let feature_len = wrapped_len(list_len);
            write_head(out, 1, wrapped_len(name_len) + wrapped_len(feature_len))?;
            write_head(out, 1, name_len)?;
            out.write_all(name.as_bytes())?;
            write_head(out, 2, feature_len)?;
            write_head(out, value.list_field(), list_len)?;
            value.write(payload, out)?;
        }
        Ok(())
    }

    fn features_len(&self) -> u64 {
        let entry = |(name, value): &(&str, FeatureValue<'_>)| {
            wrapped_len(wrapped_len(name.len() as u64) + wrapped_len(wrapped_len(value.list_len())))
        };
        self.features.iter().map(entry).sum()
    }
}

impl<'a> FeatureValue<'a> {
    fn of_field(kind: &FieldType, range: &'a Range<u64>, payload: &mut Payload<'_>) -> io::Result<Self> {
        match kind {
            FieldType::Array { element: AttributeType::Float32, .. } => Ok(Self::Floats(range)),
            FieldType::Array { element: AttributeType::Int64, .. } => varints(range, payload).map(Self::Ints),
            _ => Ok(Self::Field(range)),
        }
    }

    /// The field number of the list in a `Feature`.
    fn list_field(&self) -> u64 {
        match self {
            Self::Bytes(_) | Self::Field(_) => 1,
            Self::Float(_) | Self::Floats(_) => 2,
            Self::Int(_) | Self::Ints(_) => 3,
        }
    }

    /// Bytes of the list. Numbers are packed, so every list is a tag, a length and its content.
    fn list_len(&self) -> u64 {
        wrapped_len(self.value_len())
    }

    fn value_len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Field(range) | Self::Floats(range) => range.end.saturating_sub(range.start),
            Self::Ints(varints) => varints.len() as u64,
            Self::Float(_) => 4,
            Self::Int(value) => encoded_len_varint(value.cast_unsigned()) as u64,
        }
    }

    fn write(&self, payload: &mut Payload<'_>, out: &mut dyn Write) -> io::Result<()> {
        write_head(out, 1, self.value_len())?;
        match self {
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::Ints(varints) => out.write_all(varints),
            Self::Field(range) | Self::Floats(range) => payload.copy(range, out),
            Self::Float(value) => out.write_all(&value.to_le_bytes()),
            Self::Int(value) => write_varint(out, value.cast_unsigned()),
        }
    }
}

/// Integers of a payload, encoded as a packed list.
fn varints(range: &Range<u64>, payload: &mut Payload<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut varints = Vec::new();
    payload.copy(range, &mut bytes)?;
    let (values, _) = bytes.as_chunks::<8>();
    values.iter().for_each(|value| encode_varint(u64::from_le_bytes(*value), &mut varints));
    Ok(varints)
}

/// Bytes of a field of this length with its tag, which is one byte, and its length.
fn wrapped_len(len: u64) -> u64 {
    1 + encoded_len_varint(len) as u64 + len
}

/// Writes the tag and the length of a field of `len` bytes.
fn write_head(out: &mut dyn Write, field: u64, len: u64) -> io::Result<()> {
    const LENGTH_DELIMITED: u64 = 2;
    write_varint(out, field << 3 | LENGTH_DELIMITED)?;
    write_varint(out, len)
}

fn write_varint(out: &mut dyn Write, value: u64) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(10);
    encode_varint(value, &mut bytes);
    out.write_all(&bytes)
}
