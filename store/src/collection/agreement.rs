//! What the datasets of a collection must have in common: attributes, fields, whether there are keys, and the names of
//! numbers.
//! order.md: PLN-8.

use std::collections::BTreeMap;
use std::path::Path;

use grainstore_format::{Attribute, AttributeType, CLASS_NAMES, Schema, UserMetadata, escape_bytes};
use serde_json::Value;

use crate::columns::item_of;
use crate::{Dataset, StoreError};

/// What every member must have.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) schema: Schema,
    pub(super) is_keyed: bool,
    attributes: Vec<String>,
    /// The first dataset's, from which its names of numbers are.
    pub(super) user: UserMetadata,
    names: BTreeMap<String, Value>,
}

impl Agreement {
    pub(super) fn of(dataset: &Dataset) -> Result<Self, StoreError> {
        Ok(Self {
            schema: dataset.schema().clone(),
            is_keyed: dataset.is_keyed(),
            attributes: attributes(dataset)?,
            names: dataset.all_names()?,
            user: dataset.user_metadata().clone(),
        })
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
            return self.difference_of_names(dataset);
        }
        let keyed = || {
            let (first, second) = if self.is_keyed { ("keys", "none") } else { ("no keys", "some") };
            Some(format!("samples have {first} in the first, {second} in the second"))
        };
        Ok(first_difference("attribute", &self.attributes, &attributes)
            .or_else(|| first_difference("field", &fields(first), &fields(second)))
            .or_else(keyed))
    }

    /// A number must mean the same in all members.
    fn difference_of_names(&self, dataset: &Dataset) -> Result<Option<String>, StoreError> {
        if self.user == *dataset.user_metadata() {
            return Ok(None);
        }
        let first = &self.names;
        let second = dataset.all_names()?;
        let Some(member) = first.keys().chain(second.keys()).find(|member| first.get(*member) != second.get(*member))
        else {
            return Ok(None);
        };
        let what = if member == CLASS_NAMES { "class".to_owned() } else { format!("{member}: name") };
        let names = |names: &BTreeMap<String, Value>| -> Vec<String> {
            names.get(member).and_then(Value::as_array).into_iter().flatten().map(shown_name).collect()
        };
        let shown = escape_bytes(member.as_bytes());
        Ok(first_difference(&escape_bytes(what.as_bytes()), &names(first), &names(&second))
            .or_else(|| Some(format!("{shown} are not the same in both"))))
    }
}

/// A name between quotes; any other JSON value as it is.
fn shown_name(name: &Value) -> String {
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
