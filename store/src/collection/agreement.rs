//! What the datasets of a collection must have in common: attributes, fields, whether there are keys, and the meaning
//! of labels.
//! order.md: PLN-8.

use std::path::Path;

use grainstore_format::{Attribute, AttributeType, FormatError, Schema, escape_bytes};

use crate::columns::item_of;
use crate::{Dataset, StoreError};

/// What every member must have.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) schema: Schema,
    pub(super) is_keyed: bool,
    attributes: Vec<String>,
    /// The names of the classes that labels number, if the dataset has them.
    class_names: Option<serde_json::Value>,
}

/// The member of the user's metadata that lists the names of the classes.
const CLASS_NAMES: &str = "class_names";

impl Agreement {
    pub(super) fn of(dataset: &Dataset) -> Result<Self, StoreError> {
        let class_names = class_names(dataset)?;
        let attributes = attributes(dataset)?;
        Ok(Self { schema: dataset.schema().clone(), is_keyed: dataset.is_keyed(), attributes, class_names })
    }

    /// Refuses a dataset that differs from the first one, which is at `first`.
    pub(super) fn check(&self, first: &Path, dataset: &Dataset) -> Result<(), StoreError> {
        let Some(what) = self.difference(dataset)? else { return Ok(()) };
        Err(StoreError::Unlike { first: first.to_owned(), second: dataset.path().to_owned(), what })
    }

    fn difference(&self, dataset: &Dataset) -> Result<Option<String>, StoreError> {
        let first = &self.schema;
        let second = dataset.schema();
        let attributes = attributes(dataset)?;
        if first == second && self.attributes == attributes && self.is_keyed == dataset.is_keyed() {
            return self.difference_of_classes(dataset);
        }
        let keyed = || {
            let (first, second) = if self.is_keyed { ("keys", "none") } else { ("no keys", "some") };
            Some(format!("samples have {first} in the first, {second} in the second"))
        };
        Ok(first_difference("attribute", &self.attributes, &attributes)
            .or_else(|| first_difference("field", &fields(first), &fields(second)))
            .or_else(keyed))
    }

    /// A label must mean the same class in all members.
    fn difference_of_classes(&self, dataset: &Dataset) -> Result<Option<String>, StoreError> {
        let first = self.class_names.as_ref();
        let second = class_names(dataset)?;
        let second = second.as_ref();
        if first == second {
            return Ok(None);
        }
        let names = |value: Option<&serde_json::Value>| -> Vec<String> {
            let names = value.and_then(|value| value.as_array()).into_iter().flatten();
            names.map(class_name).collect()
        };
        Ok(first_difference("class", &names(first), &names(second))
            .or_else(|| Some(format!("{CLASS_NAMES} are not the same in both"))))
    }
}

/// The names of the classes, which must be held to be compared.
fn class_names(dataset: &Dataset) -> Result<Option<serde_json::Value>, StoreError> {
    let format = |source: FormatError| StoreError::Format { path: dataset.path().to_owned(), source };
    dataset.user_metadata().member(CLASS_NAMES).map_err(format)
}

/// A class name between quotes; any other JSON value as it is.
fn class_name(name: &serde_json::Value) -> String {
    match name.as_str() {
        Some(name) => format!("\"{}\"", escape_bytes(name.as_bytes())),
        None => escape_bytes(name.to_string().as_bytes()),
    }
}

/// The first difference between two lists.
fn first_difference(what: &str, first: &[String], second: &[String]) -> Option<String> {
    let item = |list: &[String], index: usize| list.get(index).cloned().unwrap_or_else(|| "missing".into());
    let index = (0..first.len().max(second.len())).find(|&index| first.get(index) != second.get(index))?;
    let first = item(first, index);
    let second = item(second, index);
    Some(format!("{what} {index} is {first} in the first, {second} in the second"))
}

/// Name and type of each attribute, and the width of a type that this version does not know.
fn attributes(dataset: &Dataset) -> Result<Vec<String>, StoreError> {
    let attributes = dataset.schema().attributes().iter().enumerate();
    let one = |(number, attribute): (usize, &Attribute)| match &attribute.kind {
        AttributeType::Opaque(name) => {
            let width = dataset.attribute_width(item_of(number))?;
            Ok(shown(&attribute.name, &format!("{name}, width {width}")))
        }
        kind => Ok(shown(&attribute.name, kind.name())),
    };
    attributes.map(one).collect()
}

fn fields(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| shown(&field.name, &field.kind.name())).collect()
}

/// `"label" (int16)`
fn shown(name: &str, kind: &str) -> String {
    format!("\"{}\" ({kind})", escape_bytes(name.as_bytes()))
}
