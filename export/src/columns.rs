//! Which attributes and fields of the dataset are written.

use std::ops::Range;

use grainstore_format::{Attribute, AttributeValue, Field, Schema, UserMetadata, escape_bytes, shown_names};
use grainstore_store::{Collection, StoreError};
use serde_json::Value;

use crate::{ExportError, ExportOptions};

/// The attributes and fields that are written, and where the dataset has them.
pub(crate) struct Columns {
    schema: Schema,
    attributes: Vec<usize>,
    fields: Vec<usize>,
    /// Whether only a part of them is written.
    is_part: bool,
}

impl Columns {
    /// Those that the options ask for, in the dataset's order.
    ///
    /// # Errors
    /// If a name is unknown, or no field is left.
    pub(crate) fn of(collection: &Collection, options: &ExportOptions) -> Result<Self, ExportError> {
        let own = collection.schema();
        let refused = |why: String| ExportError::BadColumns { why };
        let fields: Vec<String> = own.fields().iter().map(|field| field.name.clone()).collect();
        let names: Vec<String> =
            own.attributes().iter().map(|one| one.name.clone()).chain(fields.iter().cloned()).collect();
        let mut asked = options.only.iter().chain(&options.exclude);
        if let Some(unknown) = asked.find(|name| !names.contains(name)) {
            let shown = escape_bytes(unknown.as_bytes());
            return Err(refused(format!("no attribute or field \"{shown}\" (there are: {})", shown_names(&names))));
        }
        let stays =
            |name: &String| (options.only.is_empty() || options.only.contains(name)) && !options.exclude.contains(name);
        let (attributes, kept_attributes) = kept(own.attributes(), |one: &Attribute| stays(&one.name));
        let (fields_at, kept_fields) = kept(own.fields(), |one: &Field| stays(&one.name));
        if kept_fields.is_empty() {
            return Err(refused(format!("no field is left; the dataset's fields are {}", shown_names(&fields))));
        }
        let is_part = kept_attributes.len() + kept_fields.len() < names.len();
        let schema = Schema::new(kept_attributes, kept_fields).map_err(|error| refused(error.to_string()))?;
        Ok(Self { schema, attributes, fields: fields_at, is_part })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The sample's values.
    pub(crate) fn attributes(
        &self,
        collection: &Collection,
        ordinal: u64,
    ) -> Result<Vec<Option<AttributeValue>>, StoreError> {
        let all = collection.attributes(ordinal)?;
        Ok(if self.is_part { chosen(all, &self.attributes) } else { all })
    }

    /// The byte ranges of the sample's fields in its payload.
    pub(crate) fn fields(
        &self,
        collection: &Collection,
        ordinal: u64,
        payload_len: u64,
    ) -> Result<Vec<Option<Range<u64>>>, StoreError> {
        let all = collection.fields(ordinal, payload_len)?;
        Ok(if self.is_part { chosen(all, &self.fields) } else { all })
    }

    /// The dataset's own metadata without the names of numbers that are not written.
    pub(crate) fn user_metadata(&self, collection: &Collection) -> Result<UserMetadata, ExportError> {
        let own = collection.schema();
        let mut user = collection.user_metadata().clone();
        let refused = |error: grainstore_format::FormatError| ExportError::BadColumns { why: error.to_string() };
        for attribute in own.attributes().iter().filter(|one| self.schema.attribute(&one.name).is_none()) {
            let list = own.names_member(&attribute.name).filter(|_| attribute.kind.is_integer());
            let Some(list) = list else { continue };
            // Only lists are names; anything else may be the user's own.
            if let Some(Value::Array(_)) = user.member(&list).map_err(refused)? {
                user = user.without_member(&list).map_err(refused)?;
            }
        }
        Ok(user)
    }
}

/// The items that stay, and their places.
fn kept<T: Clone>(items: &[T], stays: impl Fn(&T) -> bool) -> (Vec<usize>, Vec<T>) {
    items.iter().enumerate().filter(|(_, item)| stays(item)).map(|(place, item)| (place, item.clone())).unzip()
}

fn chosen<T>(mut all: Vec<Option<T>>, places: &[usize]) -> Vec<Option<T>> {
    places.iter().map(|&place| all.get_mut(place).and_then(Option::take)).collect()
}
