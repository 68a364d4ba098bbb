//! Which columns of a file are read, and what they become: the key, attributes or fields.

use grainstore_format::{
    Attribute, AttributeType, Field, FieldType, Metadata, Remedy, Schema, Shape, UserMetadata, escape_bytes,
    shown_names, shown_path,
};
use parquet::schema::types::ColumnDescriptor;
use serde_json::{Map, Value};

use super::declared::DeclaredTypes;
use super::features::{ClassNames, class_names};
use super::file::ParquetFile;
use super::kind::{ColumnKind, time_unit};
use super::lists::ListPath;
use super::source::ParquetOptions;
use crate::numbering::taken_names;
use crate::{Chosen, Remark, SourceError};

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
    /// What the first file declares, for the others, too.
    declared: DeclaredTypes,
}

/// A column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
}

/// What the first rows say of a leaf column.
pub(super) trait FirstRows {
    /// Whether they can be keys.
    fn can_be_key(&self, leaf: usize, kind: &ColumnKind) -> bool;

    /// The length of the lists in the column of this name, if all have one.
    fn list_len(&self, name: &str, kind: &ColumnKind) -> Option<u64>;
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
    /// Whether the user wants some texts as categories.
    has_categories: bool,
    notes: Vec<Remark>,
    declared: DeclaredTypes,
}

impl ColumnMapping {
    /// Chooses columns of the first file.
    ///
    /// # Errors
    /// Where a column is missing or cannot be stored, or there is no field.
    pub(super) fn new(
        file: &ParquetFile,
        options: &ParquetOptions,
        first_rows: &impl FirstRows,
    ) -> Result<Self, SourceError> {
        let mapping = &options.map;
        let declared = file.declared();
        let leaf = |(path, column): (ListPath, &ColumnDescriptor)| Leaf {
            kind: ColumnKind::of(column, path.listed_level).map(|kind| declared.kind(&path.name, kind)),
            unit: time_unit(column),
            name: path.name,
        };
        let leaves = file.named_leaves().map(leaf).collect();
        let (targets, key, has_categories, notes) = (Vec::new(), None, false, Vec::new());
        let mut builder = MappingBuilder { file, leaves, targets, key, has_categories, notes, declared };
        match mapping.key() {
            Some(name) => builder.key = Some(builder.find(name)?),
            None if mapping.is_empty() => builder.choose_key(first_rows),
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
        builder.choose(&options.chosen)?;
        options.categories.iter().try_for_each(|name| builder.take_category(name))?;
        builder.finish(first_rows)
    }

    /// The leaf columns of another file that are read, in the order of `columns`.
    ///
    /// # Errors
    /// Where one is missing or of another type, or where all columns are read and the file has more.
    pub(super) fn leaves_of(
        &self,
        file: &ParquetFile,
        first: &ParquetFile,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<Vec<usize>, SourceError> {
        let refused = |name: &str, why: String| {
            let first = shown_path(&first.path);
            let why = format!("column {} {why} {first}", quoted(name));
            Err(SourceError::Refused { path: file.path.clone(), why: why.into() })
        };
        let kind = |(path, column): (ListPath, &ColumnDescriptor)| {
            let kind = ColumnKind::of(column, path.listed_level).map(|kind| self.declared.kind(&path.name, kind));
            (path.name, kind)
        };
        let (names, found): (Vec<String>, Vec<_>) = file.named_leaves().map(kind).unzip();
        let mut leaves = Vec::with_capacity(self.columns.len());
        for Column { name, kind } in &self.columns {
            let Some(leaf) = names.iter().position(|other| other == name) else {
                return refused(name, "is not there, as it is in".into());
            };
            match &found[leaf] {
                Ok(found) if found == kind => leaves.push(leaf),
                found => {
                    let found = found.as_ref().map_or_else(|what| *what, ColumnKind::name);
                    return refused(name, format!("is {found}; it is {} in", kind.name()));
                }
            }
        }
        match (0..names.len()).find(|leaf| is_taken(&names[*leaf]) && !leaves.contains(leaf)) {
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

    /// Makes a category of a column of text.
    fn take_category(&mut self, name: &str) -> Result<(), SourceError> {
        let is_text = |leaf: usize| matches!(self.leaves[leaf].kind, Ok(ColumnKind::Text | ColumnKind::Category));
        let named = |(target, leaf): &&(String, usize)| target == name || self.leaves[*leaf].name == name;
        let Some(leaf) = self.targets.iter().find(named).map(|(_, leaf)| *leaf) else {
            let texts = self.targets.iter().filter(|(_, leaf)| is_text(*leaf)).map(|(target, _)| target.clone());
            let texts = shown_names(&texts.collect::<Vec<_>>());
            return Err(self.refused(format!("no column {} is taken; its columns of text are: {texts}", quoted(name))));
        };
        if !is_text(leaf) {
            let kind = self.leaves[leaf].kind.as_ref().map_or_else(|what| *what, ColumnKind::name);
            let why = format!("column {} is {kind}, and only texts become categories", quoted(name));
            return Err(self.refused(why));
        }
        self.has_categories = true;
        self.leaves[leaf].kind = Ok(ColumnKind::Category);
        self.declared.take_category(&self.leaves[leaf].name);
        Ok(())
    }

    /// Leaves out what the user wants left out; the name of a struct stands for its members. The key stays unless it is
    /// named itself.
    fn choose(&mut self, chosen: &Chosen) -> Result<(), SourceError> {
        let names = self.leaves.iter().flat_map(|leaf| parents(&leaf.name));
        let names = names.chain(self.targets.iter().map(|(target, _)| target.as_str()));
        chosen.check("column", names).map_err(|why| self.refused(why))?;
        self.targets.retain(|(target, leaf)| is_chosen(chosen, target, &self.leaves[*leaf].name));
        if self.key.is_some_and(|leaf| chosen.excludes_key(&self.leaves[leaf].name)) {
            self.key = None;
            self.notes.clear();
        }
        Ok(())
    }

    fn choose_key(&mut self, first_rows: &impl FirstRows) {
        let is_bytes = |leaf: usize| matches!(self.leaves[leaf].kind, Ok(ColumnKind::Bytes | ColumnKind::Text));
        let named = |leaf: &usize| matches!(self.leaves[*leaf].name.as_str(), "key" | "__key__");
        let pictures: Vec<usize> =
            (0..self.leaves.len()).filter_map(|leaf| self.picture(leaf).map(|(_, path)| path)).collect();
        let only_picture = if let [path] = pictures[..] { Some(path) } else { None };
        let candidate = (0..self.leaves.len()).find(named).or(only_picture);
        let holds_keys =
            |leaf: usize| self.leaves[leaf].kind.as_ref().is_ok_and(|kind| first_rows.can_be_key(leaf, kind));
        self.key = candidate.filter(|&leaf| is_bytes(leaf) && holds_keys(leaf));
        if let Some(leaf) = self.key {
            let name = quoted(&self.leaves[leaf].name);
            self.notes.push(Remark::new(format!("column {name} is the key"), Remedy::MapOtherKey));
        } else if let Some(leaf) = (0..self.leaves.len()).find(named) {
            let name = quoted(&self.leaves[leaf].name);
            let why = format!(
                "column {name} is not the key, as it is no text, is missing in a row, or repeats: there are no keys"
            );
            self.notes.push(Remark::new(why, Remedy::MapOtherKey));
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

    fn finish(mut self, first_rows: &impl FirstRows) -> Result<ColumnMapping, SourceError> {
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
        // A dataset has a field: what the file keeps as categories are texts where nothing else could be one.
        let is_field = |column: &usize| {
            !matches!(columns[*column].kind, ColumnKind::Number(_) | ColumnKind::Time { .. } | ColumnKind::Category)
        };
        let has_fields = numbers.iter().any(is_field) || self.has_categories;
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
                ColumnKind::Category if has_fields => {
                    attributes.push(Attribute { name, kind: AttributeType::Category });
                    attribute_columns.push((column, column_kind.clone()));
                }
                ColumnKind::Bytes => add_field(name, column, FieldType::Bytes),
                ColumnKind::Array(kind) => add_field(name, column, kind.clone()),
                ColumnKind::Text | ColumnKind::Category => add_field(name, column, FieldType::Str),
                ColumnKind::List(list) => {
                    let len = first_rows.list_len(&columns[column].name, column_kind);
                    let shape = len.map_or(Shape::open(Vec::new()), |len| Shape::fixed(vec![len]));
                    add_field(name, column, FieldType::Array { element: list.element.clone(), shape });
                }
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
            let besides = if self.has_categories { " besides the categories" } else { "" };
            let why = format!("no column of bytes, text or lists among those taken{besides}; a dataset needs a field");
            return Err(self.refused(why));
        }
        let schema = Schema::new(attributes, fields)?;
        let user = match self.declared.exported.take() {
            Some((own, user)) => self.taken_user(&own, &user, &schema)?,
            None => UserMetadata::new(&self.class_names(&schema))?,
        };
        let metadata = Metadata { schema, user };
        let attributes = attribute_columns;
        let fields = field_columns;
        Ok(ColumnMapping { columns, attributes, fields, key, metadata, notes: self.notes, declared: self.declared })
    }

    /// The user metadata of the dataset that was exported, whose lists of names go with their columns.
    fn taken_user(
        &mut self,
        own: &Schema,
        user: &Map<String, Value>,
        schema: &Schema,
    ) -> Result<UserMetadata, SourceError> {
        let from: Vec<Option<usize>> = schema
            .attributes()
            .iter()
            .map(|attribute| {
                let (_, leaf) = self.targets.iter().find(|(target, _)| *target == attribute.name)?;
                own.attribute(&self.leaves[*leaf].name)
            })
            .collect();
        let taken = taken_names(&UserMetadata::new(user)?, own, (schema, &from));
        let (user, left_out) = taken.map_err(|why| self.refused(why))?;
        self.notes.extend(left_out.into_iter().map(Remark::from));
        Ok(user)
    }

    /// The class names in the file, as user metadata: `class_names` for `label`, else `NAME_names`, such as
    /// `coarse_label_names`.
    fn class_names(&mut self, schema: &Schema) -> Map<String, Value> {
        let Some(Value::Object(features)) = self.file.features() else { return Map::new() };
        let mut lists = Map::new();
        for (target, leaf) in &self.targets {
            let why = match (class_names(&features, &self.leaves[*leaf].name), schema.names_member(target)) {
                (ClassNames::None, _) => continue,
                (ClassNames::Of(names), Some(list)) => {
                    lists.insert(list, names.clone());
                    continue;
                }
                (ClassNames::Of(_), None) => "beside a label, class_names are the label's",
                (ClassNames::InLists, _) => "its numbers are in lists, and only those of attributes have names",
            };
            self.notes.push(format!("the names of {} are left out: {why}", quoted(target)).into());
        }
        lists
    }

    fn not_taken(&self, name: &str, what: &str) -> SourceError {
        let why = format!("column {} is {what}, which a dataset cannot hold", quoted(name));
        self.refused(Remark::new(why, Remedy::MapColumns))
    }

    fn refused(&self, why: impl Into<Remark>) -> SourceError {
        SourceError::refused(&self.file.path, why)
    }
}

/// Whether a column is taken; `target` is its name in the dataset.
pub(super) fn is_chosen(chosen: &Chosen, target: &str, name: &str) -> bool {
    let is_in = |list: &[String]| list.iter().any(|one| one == target || parents(name).any(|parent| parent == one));
    (chosen.only.is_empty() || is_in(&chosen.only)) && !is_in(&chosen.exclude)
}

/// A dotted name, and the names of the structs that it is in.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(dot, _)| &name[..dot]).chain([name])
}

fn can_be_key(kind: &ColumnKind) -> bool {
    use AttributeType::{Bfloat16, Bool, Float16, Float32, Float64};
    !matches!(
        kind,
        ColumnKind::Time { .. }
            | ColumnKind::List(_)
            | ColumnKind::Array(_)
            | ColumnKind::Number(Bool | Float16 | Bfloat16 | Float32 | Float64)
    )
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", escape_bytes(name.as_bytes()))
}
