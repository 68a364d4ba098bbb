//! The schema of a dataset that is made of lists, and the columns with the byte ranges.

use std::path::Path;

use grainstore_format::{Attribute, AttributeType, Field, FieldType, Metadata, Remedy, Schema, UserMetadata};
use serde_json::{Map, Value};

use crate::table::{Column, ColumnUse, Table, Wanted, quoted};
use crate::{Chosen, Remark, SourceError};

pub(super) const WANTED: Wanted<'static> =
    Wanted { path_names: &["path"], or_first: false, plain: &["offset", "length", "key"], are_keys: false };

/// Indexes of the columns with the byte range and the key of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListColumns {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) key: Option<usize>,
}

impl ListColumns {
    pub(super) fn of(table: &Table, list: &Path, chosen: &Chosen) -> Result<Self, SourceError> {
        let number = |name: &str| table.columns().iter().position(|column| column.name == name);
        let needed = |name: &str| {
            let why = || format!("no column is called {name}; a list has path, offset and length");
            number(name).ok_or_else(|| refused(list, why()))
        };
        Ok(Self {
            offset: needed("offset")?,
            length: needed("length")?,
            key: number("key").filter(|_| !chosen.excludes_key("key")),
        })
    }
}

/// The schema and the user metadata, and notes for the user about the columns.
pub(super) fn metadata(table: &Table, list: &Path) -> Result<(Metadata, Vec<Remark>), SourceError> {
    let mut attributes = Vec::new();
    let mut user = Map::new();
    let mut notes = Vec::new();
    for Column { name, values } in table.columns() {
        let shown = quoted(name.as_bytes());
        let mut add = |kind| attributes.push(Attribute { name: name.clone(), kind });
        match values {
            ColumnUse::Attribute(kind) => add(kind.clone()),
            ColumnUse::Classes(names) => {
                add(AttributeType::Int64);
                user.insert("class_names".into(), names.iter().map(|name| Value::from(&**name)).collect());
            }
            ColumnUse::Text => {
                let why = "is text; text would be a field, and the one field of a listed sample is its bytes";
                let why = Remark::new(format!("column {shown} {why}"), Remedy::ExcludeColumn(name.clone()));
                return Err(SourceError::refused(list, why));
            }
            ColumnUse::Plain => {}
            ColumnUse::Nothing => notes.push(format!("column {shown} of the list is empty and was ignored").into()),
        }
    }
    let data = Field { name: "data".into(), kind: FieldType::Bytes };
    Ok((Metadata { schema: Schema::new(attributes, vec![data])?, user: UserMetadata::new(&user)? }, notes))
}

fn refused(list: &Path, why: String) -> SourceError {
    SourceError::Refused { path: list.to_owned(), why: why.into() }
}
