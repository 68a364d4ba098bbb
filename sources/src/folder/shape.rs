//! The schema of a dataset that is made of folders: attributes, fields and user metadata.

use std::collections::BTreeSet;

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata, escape_bytes,
    shown_path,
};
use serde_json::{Map, Value};

use super::labels::Labels;
use super::listing::{Classes, Listing};
use super::roots::Roots;
use super::source::FolderLabels;
use crate::SourceError;
use crate::table::{Column, ColumnUse};

/// Extensions of picture files, in lower case.
const IMAGE_EXTENSIONS: [&[u8]; 10] =
    [b"jpg", b"jpeg", b"png", b"gif", b"bmp", b"webp", b"tif", b"tiff", b"ppm", b"pgm"];

/// The schema of folders, and where the values of attributes and texts come from.
///
/// ```text
/// attributes   label (the folder's class) | split (which folder) | the table's numbers
/// fields       the file | the table's texts
/// ```
///
/// A column of the table replaces an attribute of the folders that has the same name.
#[derive(Debug)]
pub(super) struct FolderShape {
    metadata: Metadata,
    classes: Option<UnitedClasses>,
    has_split: bool,
    labels: Option<Labels>,
    notes: Vec<String>,
}

impl FolderShape {
    /// # Errors
    /// Where rows and files do not match one to one, or a name is not valid in a schema.
    pub(super) fn of(roots: &Roots, labels: Option<Labels>, folder_labels: FolderLabels) -> Result<Self, SourceError> {
        if let Some(labels) = &labels {
            labels.check(roots.sorted_keys())?;
        }
        let columns = labels.as_ref().map_or(&[][..], Labels::columns);
        let is_column = |name: &str| columns.iter().any(|column| column.name == name);
        let classes = match folder_labels {
            FolderLabels::Found => UnitedClasses::of(roots.listings()),
            FolderLabels::Ignored => None,
        };
        let field = field_name(roots);
        let mut notes: Vec<String> = labels.iter().flat_map(Labels::notes).collect();
        if let (true, Some(_), Some(labels)) = (is_column("label"), &classes, &labels) {
            notes.push(format!("labels come from {}, not from the folders' names", shown_path(labels.file())));
        }
        let classes = classes.filter(|_| !is_column("label"));
        let split_names = roots.names().filter(|_| !is_column("split"));
        let mut attributes = Vec::new();
        let mut user = Map::new();
        if let Some(classes) = &classes {
            attributes.push(int64("label"));
            user.insert("class_names".into(), classes.names.iter().map(|name| name_value(name)).collect());
        }
        let has_split = split_names.is_some();
        if let Some(names) = split_names {
            attributes.push(int64("split"));
            user.insert("split_names".into(), names.map(name_value).collect());
        }
        let mut fields = vec![Field { name: field.into(), kind: FieldType::Bytes }];
        add_columns(columns, &mut attributes, &mut fields, &mut user, &mut notes);
        let metadata = Metadata { schema: Schema::new(attributes, fields)?, user: UserMetadata::new(&user)? };
        Ok(Self { metadata, classes, has_split, labels, notes })
    }

    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Number of classes, where every file is at `class/file`.
    pub(super) fn class_count(&self) -> Option<usize> {
        self.classes.as_ref().map(|classes| classes.names.len())
    }

    /// The attributes of a file; `rank` is its index in the order of keys.
    pub(super) fn attributes(&self, root: usize, file: usize, rank: usize) -> Vec<Option<AttributeValue>> {
        let class = self.classes.as_ref().map(|classes| classes.class_of(root, file));
        let split = self.has_split.then_some(root);
        let derived = class.into_iter().chain(split).map(|number| i64::try_from(number).ok().map(AttributeValue::Int));
        derived.chain(self.labels.iter().flat_map(|labels| labels.attributes(rank))).collect()
    }

    /// The texts that follow a file in its payload, one for each field except the first.
    pub(super) fn texts(&self, rank: usize) -> Vec<Option<&str>> {
        self.labels.as_ref().map_or_else(Vec::new, |labels| labels.texts(rank))
    }
}

/// The classes of all folders, numbered by name from 0 on.
#[derive(Debug)]
struct UnitedClasses {
    names: Vec<Box<[u8]>>,
    /// For each folder, its own classes and the number of each among all classes.
    of_roots: Vec<(Classes, Vec<usize>)>,
}

impl UnitedClasses {
    /// `None` where some file is not at `class/file`.
    fn of(listings: &[Listing]) -> Option<Self> {
        let classes: Vec<Classes> = listings.iter().map(Listing::classes).collect::<Option<_>>()?;
        let names: BTreeSet<&[u8]> = classes.iter().flat_map(Classes::names).collect();
        let names: Vec<Box<[u8]>> = names.into_iter().map(Box::from).collect();
        let number = |name: &[u8]| names.partition_point(|other| **other < *name);
        let numbers = |classes: &Classes| classes.names().map(number).collect();
        let of_roots = classes
            .into_iter()
            .map(|classes| {
                let numbers = numbers(&classes);
                (classes, numbers)
            })
            .collect();
        Some(Self { names, of_roots })
    }

    fn class_of(&self, root: usize, file: usize) -> usize {
        let (classes, numbers) = &self.of_roots[root];
        numbers[grainstore_format::to_usize(classes.class_of(file).into())]
    }
}

fn add_columns(
    columns: &[Column],
    attributes: &mut Vec<Attribute>,
    fields: &mut Vec<Field>,
    user: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) {
    for Column { name, values } in columns {
        match values {
            ColumnUse::Attribute(kind) => attributes.push(Attribute { name: name.clone(), kind: kind.clone() }),
            ColumnUse::Classes(names) => {
                attributes.push(int64(name));
                user.insert("class_names".into(), names.iter().map(|name| Value::from(&**name)).collect());
            }
            ColumnUse::Text => fields.push(Field { name: name.clone(), kind: FieldType::Str }),
            ColumnUse::Plain => {}
            ColumnUse::Nothing => {
                notes.push(format!(
                    "column \"{}\" of the labels is empty and was ignored",
                    escape_bytes(name.as_bytes())
                ));
            }
        }
    }
}

fn int64(name: &str) -> Attribute {
    Attribute { name: name.into(), kind: AttributeType::Int64 }
}

/// The name of the field: `image` where all files are pictures, else `data`.
fn field_name(roots: &Roots) -> &'static str {
    let is_images = |listing: &Listing| (0..listing.len()).all(|file| is_image(listing.relative_path(file)));
    if roots.listings().iter().all(is_images) { "image" } else { "data" }
}

/// JSON holds UTF-8 only: other bytes are escaped.
fn name_value(name: &[u8]) -> Value {
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => escape_bytes(name).into(),
    }
}

/// Whether a name ends in `.jpg` or the like; `jpg` and `.jpg` alone are not pictures.
fn is_image(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0) else { return false };
    IMAGE_EXTENSIONS.iter().any(|extension| extension.eq_ignore_ascii_case(&name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_recognised_by_their_extension_in_any_case() {
        for name in ["a/b.jpg", "n01/n01_1.JPEG", "x/.hidden.png", "x/a.b.TiFf", "x/é.webp"] {
            assert!(is_image(name.as_bytes()), "{name}");
        }
        for name in ["a/jpg", "a/.jpg", "a.jpg/b", "a/b.jpg.txt", "a/b.jpgx", "a/b.", "a/b"] {
            assert!(!is_image(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn class_names_are_stored_as_utf8_and_escaped_where_they_are_not() {
        assert_eq!(name_value("chat \"noir\"".as_bytes()), "chat \"noir\"");
        assert_eq!(name_value(b"a\xff"), "a\\xff");
    }
}
