//! A table whose rows become attributes of the samples with the same keys.
//!
//! ```text
//! key,split,score
//! cat/1.jpg,train,0.5     sample "cat/1.jpg": split = "train", score = 0.5
//! cat/2.jpg,val,          sample "cat/2.jpg": split = "val", score is missing
//! ```
//!
//! The table is CSV, TSV, JSON Lines or Parquet, and is held in memory: about as many bytes as a CSV file has, and a
//! dozen more a row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, CLASS_NAMES, Metadata, Remedy, Schema, escape_bytes, shown_path,
};
use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

use crate::numbering::taken_names;
use crate::table::{Column, ColumnUse, Table, Wanted};
use crate::{Bad, Blocks, Description, Layout, Remark, SampleReader, Source, SourceError, with_changed_attributes};

/// A table of attributes by key.
#[derive(Debug)]
pub struct AttributeTable {
    path: PathBuf,
    table: Table,
}

impl AttributeTable {
    /// Reads a whole file; `key` is the name of the column with the keys.
    ///
    /// # Errors
    /// Where it cannot be read or understood, has no such column or no row, or two rows have one key.
    pub fn read(path: &Path, key: &str) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Path { path: path.to_owned(), source };
        let (mut file, _) = grainstore_host::open_regular(path).map_err(failed)?;
        let head = crate::compressed::head_of(&mut file).map_err(failed)?;
        let table = if crate::parquet::recognises(&head) {
            crate::parquet::read_table(path, key)?
        } else {
            let wanted = Wanted { path_names: &[key], or_first: false, plain: &[], are_keys: true };
            Table::read(&[path.to_owned()], wanted)?
        };
        table.check_distinct()?;
        Ok(Self { path: path.to_owned(), table })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The keys of its rows, sorted.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.table.len()).map(|row| self.table.path(row))
    }

    fn taken(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.table.columns().iter().enumerate().filter(|(_, column)| column.values != ColumnUse::Nothing)
    }

    /// The values of a key, or as many missing ones.
    fn values(&self, key: &[u8]) -> Vec<Option<AttributeValue>> {
        match self.table.find(key) {
            Some(row) => {
                let mut all = self.table.values(row);
                self.taken().map(|(number, _)| all[number].take()).collect()
            }
            None => vec![None; self.taken().count()],
        }
    }
}

/// The source with the attributes of the table; itself where there is none.
///
/// # Errors
/// As [`Attributed::new`].
pub fn with_attributes(
    source: Box<dyn Source>,
    table: Option<&Arc<AttributeTable>>,
) -> Result<Box<dyn Source>, SourceError> {
    Ok(match table {
        Some(table) => Box::new(Attributed::new(source, Arc::clone(table))?),
        None => source,
    })
}

/// A source whose samples have the attributes of a table besides their own.
pub struct Attributed {
    source: Box<dyn Source>,
    table: Arc<AttributeTable>,
    description: Description,
}

impl Attributed {
    /// Adds the columns of a table. A sample without a row has missing values.
    ///
    /// # Errors
    /// Where the samples have no keys, or a column has the name of an attribute or field of theirs.
    pub fn new(source: Box<dyn Source>, table: Arc<AttributeTable>) -> Result<Self, SourceError> {
        let mut description = source.description().clone();
        let refused = |why: Remark| SourceError::refused(&table.path, why);
        if !description.is_keyed {
            return Err(refused("its rows are found by the keys of samples, and these samples have none".into()));
        }
        let schema = &description.metadata.schema;
        let mut attributes = schema.attributes().to_vec();
        let mut classes = None;
        for (_, Column { name, values }) in table.taken() {
            if schema.attribute(name).is_some() || schema.field(name).is_some() {
                let why = format!(
                    "column \"{}\" has the name of what the samples of {} have already",
                    escape_bytes(name.as_bytes()),
                    shown_path(description.first_path())
                );
                return Err(refused(Remark::new(why, Remedy::ExcludeNames)));
            }
            let kind = match values {
                ColumnUse::Attribute(kind) => kind.clone(),
                ColumnUse::Text => AttributeType::Category,
                ColumnUse::Classes(names) => {
                    classes = Some(names.iter().map(|name| Value::from(&**name)).collect::<Value>());
                    AttributeType::Int64
                }
                ColumnUse::Plain | ColumnUse::Nothing => continue,
            };
            attributes.push(Attribute { name: name.clone(), kind });
        }
        let empty = table.table.columns().iter().filter(|column| column.values == ColumnUse::Nothing);
        description.notes.extend(empty.map(|column| {
            let name = escape_bytes(column.name.as_bytes());
            format!("column \"{name}\" of {} is empty and was ignored", shown_path(&table.path)).into()
        }));
        description.notes.extend(table.table.notes().map(Remark::from));
        let fields = schema.fields().to_vec();
        let made = Schema::new(attributes, fields)?;
        let from: Vec<Option<usize>> = (0..schema.attributes().len()).map(Some).collect();
        // A label takes class_names from a `class`.
        let taken = taken_names(&description.metadata.user, schema, (&made, &from));
        let (mut user, left_out) = taken.map_err(|why| refused(why.into()))?;
        if let Some(classes) = classes {
            if user.member(CLASS_NAMES)?.is_some_and(|own| own != classes) {
                let path = shown_path(description.first_path());
                let why = format!(
                    "its column of classes needs {CLASS_NAMES} of the user metadata, which those of {path} have already"
                );
                return Err(refused(Remark::new(why, Remedy::ExcludeNames)));
            }
            user = user.with_member(CLASS_NAMES, &classes)?;
        }
        description.warnings.extend(left_out.into_iter().map(Remark::from));
        description.metadata = Metadata { schema: made, user };
        Ok(Self { source, table, description })
    }
}

impl Source for Attributed {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        let path = &self.description.parts[part].path;
        Ok(with_changed_attributes(samples, path, |key, attributes| {
            attributes.extend(self.table.values(key));
            Ok(())
        }))
    }

    /// With the content of the table: another one makes another dataset.
    fn stamp(&self) -> u64 {
        xxh64(&self.table.table.hash().to_le_bytes(), self.source.stamp())
    }
}
