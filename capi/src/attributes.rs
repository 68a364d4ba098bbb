//! Attributes of samples, as numbers. Categories are numbers of texts.

use grainstore_format::{AttributeType, AttributeValue};
use grainstore_store::Collection;

use crate::border::{Buffer, Numbers, Out, Text};
use crate::dataset::{Dataset, needed, put_text};
use crate::status::{Failure, Status, guarded};

/// The values of the samples, and whether each has one.
struct Gathered<T> {
    values: Vec<T>,
    present: Vec<u8>,
}

impl<T: Default> Gathered<T> {
    fn of(ordinals: &[u64], value_of: impl Fn(u64) -> Result<Option<T>, Failure>) -> Result<Self, Failure> {
        let mut gathered = Self { values: Vec::new(), present: Vec::new() };
        for &ordinal in ordinals {
            let value = value_of(ordinal)?;
            gathered.present.push(u8::from(value.is_some()));
            gathered.values.push(value.unwrap_or_default());
        }
        Ok(gathered)
    }

    /// The values of an attribute of numbers; `number` gives `None` where a value does not fit.
    fn numbers(
        collection: &Collection,
        name: &str,
        ordinals: &[u64],
        number: impl Fn(&AttributeValue) -> Option<T>,
    ) -> Result<Self, Failure> {
        let column = collection.column(name)?;
        Self::of(ordinals, |ordinal| {
            collection.locate_member(ordinal)?;
            let Some(value) = column.get(ordinal) else { return Ok(None) };
            number(&value).map(Some).ok_or_else(|| {
                Failure::argument(format!("attribute \"{name}\" of sample {ordinal} is {value:?}, which does not fit"))
            })
        })
    }
}

/// The codes of an attribute of categories.
fn codes(collection: &Collection, name: &str, ordinals: &[u64]) -> Result<Gathered<i64>, Failure> {
    let column = collection.column(name)?;
    let merged = collection.merged_categories(name)?;
    Gathered::of(ordinals, |ordinal| {
        let (member, in_member) = collection.locate_member(ordinal)?;
        let code = column.parts().get(member).and_then(|(_, part)| part.code(in_member));
        let Some(code) = code else { return Ok(None) };
        let code = merged.codes.get(member).and_then(|codes| codes.get(usize::try_from(code).ok()?));
        code.map(|&code| Some(i64::from(code))).ok_or_else(|| {
            Failure::new(Status::DAMAGED, format!("attribute \"{name}\" of sample {ordinal} is no category"))
        })
    })
}

fn is_of_categories(collection: &Collection, name: &str) -> bool {
    let attributes = collection.schema().attributes();
    attributes.iter().any(|one| one.name == name && one.kind == AttributeType::Category)
}

impl<T: Copy> Gathered<T> {
    fn put(&self, values: Buffer<T>, present: Buffer<u8>, name: &str, ordinals: &[u64]) -> Result<Status, Failure> {
        if present.is_null() {
            let missing = self.present.iter().zip(ordinals).find(|(present, _)| **present == 0);
            if let Some((_, ordinal)) = missing {
                let text =
                    format!("sample {ordinal} has no \"{name}\"; pass an array for present to learn which have it");
                return Err(Failure::new(Status::NO_VALUE, text));
            }
        } else {
            present.put(&self.present, self.present.len())?;
        }
        values.put(&self.values, self.values.len())?;
        Ok(Status::OK)
    }
}

/// `grainstore_integers`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_integers(
    dataset: Option<&Dataset>,
    attribute: Text,
    ordinals: Numbers,
    count: usize,
    values: Buffer<i64>,
    present: Buffer<u8>,
) -> Status {
    guarded(|| {
        let collection = needed(dataset, "dataset")?.reader.collection();
        let (name, ordinals) = (attribute.needed("attribute")?, ordinals.slice(count, "ordinals")?);
        let number = |value: &AttributeValue| match value {
            AttributeValue::Bool(value) => Some(i64::from(*value)),
            AttributeValue::Int(value) | AttributeValue::Timestamp(value) => Some(*value),
            AttributeValue::Uint(value) => i64::try_from(*value).ok(),
            _ => None,
        };
        let gathered = if is_of_categories(collection, name) {
            codes(collection, name, ordinals)?
        } else {
            Gathered::numbers(collection, name, ordinals, number)?
        };
        gathered.put(values, present, name, ordinals)
    })
}

/// `grainstore_doubles`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_doubles(
    dataset: Option<&Dataset>,
    attribute: Text,
    ordinals: Numbers,
    count: usize,
    values: Buffer<f64>,
    present: Buffer<u8>,
) -> Status {
    guarded(|| {
        let collection = needed(dataset, "dataset")?.reader.collection();
        let (name, ordinals) = (attribute.needed("attribute")?, ordinals.slice(count, "ordinals")?);
        let number = |value: &AttributeValue| match value {
            AttributeValue::Float16(value) => Some(value.to_f64()),
            AttributeValue::Bfloat16(value) => Some(value.to_f64()),
            AttributeValue::Float32(value) => Some(f64::from(*value)),
            AttributeValue::Float64(value) => Some(*value),
            _ => None,
        };
        Gathered::numbers(collection, name, ordinals, number)?.put(values, present, name, ordinals)
    })
}

/// `grainstore_category`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_category(
    dataset: Option<&Dataset>,
    attribute: Text,
    code: u32,
    text: Buffer<u8>,
    capacity: usize,
    len: Out<usize>,
) -> Status {
    guarded(|| {
        let len = len.prepared(0, "len")?;
        let categories = needed(dataset, "dataset")?.reader.collection().categories(attribute.needed("attribute")?)?;
        let name = categories.get(code).ok_or_else(|| {
            Failure::new(Status::NO_VALUE, format!("no category {code}: there are {}", categories.len()))
        })?;
        len.put(name.len());
        put_text(name, text, capacity)
    })
}
