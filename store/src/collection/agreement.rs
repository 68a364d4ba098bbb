//! What datasets must have in common to be read as one: attributes, fields, whether there are keys, and what labels mean.
//! spec.md: PLN-8.

use std::path::Path;

use grainstore_format::{Schema, escape_bytes};

use crate::{Dataset, StoreError};

/// What every member has to have.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) schema: Schema,
    pub(super) is_keyed: bool,
    /// What the labels stand for, where that is written down.
    class_names: Option<serde_json::Value>,
}

/// Under this name the user's metadata lists the classes that labels number.
const CLASS_NAMES: &str = "class_names";

impl Agreement {
    pub(super) fn of(dataset: &Dataset) -> Self {
        let class_names = dataset.user_metadata().get(CLASS_NAMES).cloned();
        Self { schema: dataset.schema().clone(), is_keyed: dataset.is_keyed(), class_names }
    }

    /// Refuses a dataset that differs from the first one, which is at `first`.
    pub(super) fn check(&self, first: &Path, dataset: &Dataset) -> Result<(), StoreError> {
        let Some(what) = self.difference(dataset) else { return Ok(()) };
        Err(StoreError::Unlike { first: first.to_owned(), second: dataset.path().to_owned(), what })
    }

    fn difference(&self, dataset: &Dataset) -> Option<String> {
        let (first, second) = (&self.schema, dataset.schema());
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

    /// A label that stands for one class here and for another there would be mistaken for one class.
    fn difference_of_classes(&self, dataset: &Dataset) -> Option<String> {
        let (first, second) = (self.class_names.as_ref(), dataset.user_metadata().get(CLASS_NAMES));
        if first == second {
            return None;
        }
        let names = |value: Option<&serde_json::Value>| -> Vec<String> {
            let names = value.and_then(|value| value.as_array()).into_iter().flatten();
            names.map(|name| format!("\"{}\"", escape_bytes(name.as_str().unwrap_or_default().as_bytes()))).collect()
        };
        first_difference("class", &names(first), &names(second))
            .or_else(|| Some(format!("{CLASS_NAMES} are not the same in both")))
    }
}

/// The first place where two lists are not the same.
fn first_difference(what: &str, first: &[String], second: &[String]) -> Option<String> {
    let item = |list: &[String], place: usize| list.get(place).cloned().unwrap_or_else(|| "missing".into());
    let place = (0..first.len().max(second.len())).find(|&place| first.get(place) != second.get(place))?;
    let (first, second) = (item(first, place), item(second, place));
    Some(format!("{what} {place} is {first} in the first, {second} in the second"))
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
