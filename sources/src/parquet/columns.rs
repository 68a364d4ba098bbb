//! Which columns of a file are read, and what they become: the key, attributes or fields.

use grainstore_format::{
    Attribute, AttributeType, Field, FieldType, Metadata, Remedy, Schema, UserMetadata, escape_bytes, shown_path,
};
use serde_json::{Map, Value};

use super::file::ParquetFile;
use super::kind::{ColumnKind, time_unit};
use crate::{Mapping, Remark, SourceError};

/// Columns that are named in a message.
const NAMES_SHOWN: usize = 20;

/// The columns that are read, by their dotted names, and what they become. The same for all files.
#[derive(Debug)]
pub(super) struct ColumnMapping {
    pub(super) columns: Vec<Column>,
    /// For each attribute of the schema, the column that it comes from.
    pub(super) attributes: Vec<(usize, ColumnKind)>,
    /// For each field of the schema, likewise.
    pub(super) fields: Vec<(usize, FieldType)>,
    pub(super) key: Option<usize>,
    pub(super) metadata: Metadata,
    pub(super) notes: Vec<Remark>,
}

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
}

/// A leaf column of the first file.
struct Leaf {
    name: String,
    kind: Result<ColumnKind, &'static str>,
    unit: Option<String>,
}

/// Chooses columns and what they become.
struct MappingBuilder<'a> {
    file: &'a ParquetFile,
    leaves: Vec<Leaf>,
    /// (name in the dataset, leaf)
    targets: Vec<(String, usize)>,
    key: Option<usize>,
    notes: Vec<Remark>,
}

impl ColumnMapping {
    /// Chooses columns of the first file. `can_be_key` reads the first cells of a leaf column.
    ///
    /// # Errors
    /// Where a column is missing or cannot be stored, or there is no field.
    pub(super) fn new(
        file: &ParquetFile,
        mapping: &Mapping,
        can_be_key: impl Fn(usize) -> bool,
    ) -> Result<Self, SourceError> {
        let leaf = |column| Leaf {
            name: parquet::schema::types::ColumnDescriptor::path(column).string(),
            kind: ColumnKind::of(column),
            unit: time_unit(column),
        };
        let leaves = file.leaves().map(leaf).collect();
        let mut builder = MappingBuilder { file, leaves, targets: Vec::new(), key: None, notes: Vec::new() };
        match mapping.key() {
            Some(name) => builder.key = Some(builder.find(name)?),
            None if mapping.is_empty() => builder.choose_key(can_be_key),
            None => {}
        }
        if mapping.targets().is_empty() {
            builder.take_all();
        } else {
            for (target, name) in mapping.targets() {
                let leaf = builder.find(name)?;
                builder.targets.push((target.clone(), leaf));
            }
        }
        builder.finish()
    }

    /// The leaf columns of another file that are read, in the order of `columns`.
    ///
    /// # Errors
    /// Where one is missing or of another type, or where all columns are read and the file has more.
    pub(super) fn leaves_of(
        &self,
        file: &ParquetFile,
        first: &ParquetFile,
        takes_all: bool,
    ) -> Result<Vec<usize>, SourceError> {
        let refused = |name: &str, why: String| {
            let first = shown_path(&first.path);
            let why = format!("column {} {why} {first}", quoted(name));
            Err(SourceError::Refused { path: file.path.clone(), why: why.into() })
        };
        let names: Vec<String> = file.leaves().map(|column| column.path().string()).collect();
        let mut leaves = Vec::with_capacity(self.columns.len());
        for Column { name, kind } in &self.columns {
            let found = names.iter().position(|other| other == name);
            let Some((leaf, column)) = found.and_then(|leaf| Some((leaf, file.leaves().nth(leaf)?))) else {
                return refused(name, "is not there, as it is in".into());
            };
            match ColumnKind::of(column) {
                Ok(found) if found == *kind => leaves.push(leaf),
                found => {
                    let found = found.as_ref().map_or_else(|what| *what, ColumnKind::name);
                    return refused(name, format!("is {found}; it is {} in", kind.name()));
                }
            }
        }
        match (0..names.len()).find(|leaf| takes_all && !leaves.contains(leaf)) {
            Some(more) => refused(&names[more], "is not in".into()),
            None => Ok(leaves),
        }
    }
}

impl MappingBuilder<'_> {
    /// The leaf of this name; the bytes of a picture by the name of its struct.
    fn find(&self, name: &str) -> Result<usize, SourceError> {
        let leaf = |name: &str| self.leaves.iter().position(|leaf| leaf.name == name);
        let picture = || self.picture(leaf(&format!("{name}.bytes"))?);
        let Some(found) = leaf(name).or_else(|| picture().map(|(bytes, _)| bytes)) else {
            let names: Vec<String> = self.leaves.iter().take(NAMES_SHOWN).map(|leaf| quoted(&leaf.name)).collect();
            let more = if self.leaves.len() > NAMES_SHOWN { ", ..." } else { "" };
            let why = format!("no column {}; it has {}{more}", quoted(name), names.join(", "));
            return Err(self.refused(why));
        };
        Ok(found)
    }

    /// Bytes and path of a picture as Hugging Face stores it: a struct of these two and nothing else.
    fn picture(&self, bytes: usize) -> Option<(usize, usize)> {
        let name = self.leaves.get(bytes)?.name.strip_suffix(".bytes")?;
        let inside = format!("{name}.");
        let members: Vec<usize> =
            (0..self.leaves.len()).filter(|&leaf| self.leaves[leaf].name.starts_with(&inside)).collect();
        let path = *members.iter().find(|&&leaf| self.leaves[leaf].name[inside.len()..] == *"path")?;
        let kinds = (&self.leaves[bytes].kind, &self.leaves[path].kind);
        (members.len() == 2 && kinds == (&Ok(ColumnKind::Bytes), &Ok(ColumnKind::Text))).then_some((bytes, path))
    }

    fn choose_key(&mut self, can_be_key: impl Fn(usize) -> bool) {
        let is_bytes = |leaf: usize| matches!(self.leaves[leaf].kind, Ok(ColumnKind::Bytes | ColumnKind::Text));
        let named = |leaf: &usize| matches!(self.leaves[*leaf].name.as_str(), "key" | "__key__");
        let pictures: Vec<usize> =
            (0..self.leaves.len()).filter_map(|leaf| self.picture(leaf).map(|(_, path)| path)).collect();
        let only_picture = if let [path] = pictures[..] { Some(path) } else { None };
        let candidate = (0..self.leaves.len()).find(named).or(only_picture);
        self.key = candidate.filter(|&leaf| is_bytes(leaf) && can_be_key(leaf));
        if let Some(leaf) = self.key {
            let name = quoted(&self.leaves[leaf].name);
            self.notes.push(Remark::new(format!("column {name} is the key"), Remedy::MapOtherKey));
        }
    }

    fn take_all(&mut self) {
        for leaf in (0..self.leaves.len()).filter(|leaf| Some(*leaf) != self.key) {
            let name = &self.leaves[leaf].name;
            let target = match name.strip_suffix(".bytes") {
                Some(picture) if self.picture(leaf).is_some() => picture,
                _ => name,
            };
            self.targets.push((target.to_owned(), leaf));
        }
    }

    fn finish(mut self) -> Result<ColumnMapping, SourceError> {
        let mut columns: Vec<Column> = Vec::new();
        let mut column_of = |builder: &Self, leaf: usize| -> Result<usize, SourceError> {
            let Leaf { name, kind, .. } = &builder.leaves[leaf];
            let kind = kind.clone().map_err(|what| builder.not_taken(name, what))?;
            Ok(columns.iter().position(|column| column.name == *name).unwrap_or_else(|| {
                columns.push(Column { name: name.clone(), kind });
                columns.len() - 1
            }))
        };
        let key = self.key.map(|leaf| column_of(&self, leaf)).transpose()?;
        let numbers = self.targets.iter().map(|(_, leaf)| column_of(&self, *leaf)).collect::<Result<Vec<_>, _>>()?;
        let mut attributes = Vec::new();
        let mut fields = Vec::new();
        let mut attribute_columns = Vec::new();
        let mut field_columns = Vec::new();
        let mut add_field = |name: String, column: usize, kind: FieldType| {
            fields.push(Field { name, kind: kind.clone() });
            field_columns.push((column, kind));
        };
        for ((target, leaf), column) in self.targets.iter().zip(numbers) {
            let name = target.clone();
            let column_kind = &columns[column].kind;
            match column_kind {
                ColumnKind::Number(kind) => {
                    attributes.push(Attribute { name, kind: kind.clone() });
                    attribute_columns.push((column, column_kind.clone()));
                }
                ColumnKind::Time { .. } => {
                    attributes.push(Attribute { name, kind: AttributeType::Timestamp });
                    attribute_columns.push((column, column_kind.clone()));
                }
                ColumnKind::Bytes => add_field(name, column, FieldType::Bytes),
                ColumnKind::Text => add_field(name, column, FieldType::Str),
            }
            if let Some(unit) = &self.leaves[*leaf].unit {
                let note = format!("{} is a date or a time, kept as its integer: {unit}", quoted(target));
                self.notes.push(note.into());
            }
        }
        if let Some(Column { name, kind }) = key.map(|column| &columns[column])
            && !can_be_key(kind)
        {
            return Err(self.refused(format!("column {} is {}, which cannot be a key", quoted(name), kind.name())));
        }
        if fields.is_empty() {
            return Err(self.refused("no column of bytes or text among those taken; a dataset needs a field"));
        }
        let user = UserMetadata::new(&self.class_names())?;
        let metadata = Metadata { schema: Schema::new(attributes, fields)?, user };
        let attributes = attribute_columns;
        let fields = field_columns;
        Ok(ColumnMapping { columns, attributes, fields, key, metadata, notes: self.notes })
    }

    /// The class names in the file, as user metadata: `class_names` for `label` or for the only such column, else
    /// `NAME_names`, such as `coarse_label_names`.
    fn class_names(&self) -> Map<String, Value> {
        let Some(features) = self.file.features() else { return Map::new() };
        let names = |leaf: usize| {
            let feature = features.get(&self.leaves[leaf].name)?;
            (feature.get("_type")? == "ClassLabel").then(|| feature.get("names").cloned())?
        };
        let labels: Vec<(&String, Value)> =
            self.targets.iter().filter_map(|(target, leaf)| Some((target, names(*leaf)?))).collect();
        let only = labels.len() == 1;
        let name = |target: &str| {
            if only || target == "label" { "class_names".to_owned() } else { format!("{target}_names") }
        };
        labels.into_iter().map(|(target, names)| (name(target), names)).collect()
    }

    fn not_taken(&self, name: &str, what: &str) -> SourceError {
        let why = format!("column {} is {what}, which a dataset cannot hold", quoted(name));
        self.refused(Remark::new(why, Remedy::MapColumns))
    }

    fn refused(&self, why: impl Into<Remark>) -> SourceError {
        SourceError::refused(&self.file.path, why)
    }
}

fn can_be_key(kind: &ColumnKind) -> bool {
    use AttributeType::{Bool, Float16, Float32, Float64};
    !matches!(kind, ColumnKind::Time { .. } | ColumnKind::Number(Bool | Float16 | Float32 | Float64))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", escape_bytes(name.as_bytes()))
}
