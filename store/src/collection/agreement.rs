//! What the datasets of a collection must have in common: attributes, fields, whether there are keys, and the meaning
//! of labels.
//! order.md: PLN-8.

use std::path::Path;

use grainstore_format::{Schema, escape_bytes};

use crate::{Dataset, StoreError};

/// What every member must have.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) schema: Schema,
    pub(super) is_keyed: bool,
    /// The names of the classes that labels number, if the dataset has them.
    class_names: Option<serde_json::Value>,
}

/// The member of the user's metadata that lists the names of the classes.
const CLASS_NAMES: &str = "class_names";

impl Agreement {
    pub(super) fn of(dataset: &Dataset) -> Self {
        let class_names = dataset.user_metadata().member(CLASS_NAMES);
        Self { schema: dataset.schema().clone(), is_keyed: dataset.is_keyed(), class_names }
    }

    /// Refuses a dataset that differs from the first one, which is at `first`.
    pub(super) fn check(&self, first: &Path, dataset: &Dataset) -> Result<(), StoreError> {
        let Some(what) = self.difference(dataset) else { return Ok(()) };
        Err(StoreError::Unlike { first: first.to_owned(), second: dataset.path().to_owned(), what })
    }

    fn difference(&self, dataset: &Dataset) -> Option<String> {
        let first = &self.schema;
        let second = dataset.schema();
        if first == second && self.is_keyed == dataset.is_keyed() {
            return self.difference_of_classes(dataset);
        }
        let keyed = || {
            let (first, second) = if self.is_keyed { ("keys", "none") } else { ("no keys", "some") };
            Some(format!("samples have {first} in the first, {second} in the second"))
        };
        first_difference("attribute", &attributes(first), &attributes(second))
            .or_else(|| first_difference("field", &fields(first), &fields(second)))
            .or_else(keyed)
    }

    /// A label must mean the same class in all members.
    fn difference_of_classes(&self, dataset: &Dataset) -> Option<String> {
        let first = self.class_names.as_ref();
        let second = dataset.user_metadata().member(CLASS_NAMES);
        let second = second.as_ref();
        if first == second {
            return None;
        }
        let names = |value: Option<&serde_json::Value>| -> Vec<String> {
            let names = value.and_then(|value| value.as_array()).into_iter().flatten();
            names.map(class_name).collect()
        };
        first_difference("class", &names(first), &names(second))
            .or_else(|| Some(format!("{CLASS_NAMES} are not the same in both")))
    }
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

fn attributes(schema: &Schema) -> Vec<String> {
    schema.attributes().iter().map(|attribute| shown(&attribute.name, attribute.kind.name())).collect()
}

fn fields(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| shown(&field.name, &field.kind.name())).collect()
}

/// `"label" (int16)`
fn shown(name: &str, kind: &str) -> String {
    format!("\"{}\" ({kind})", escape_bytes(name.as_bytes()))
}
