//! What a dataset made of a folder looks like: its attributes, fields and user metadata.

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, FormatError, Metadata, Schema, escape_bytes,
};
use serde_json::{Map, Value};

use super::listing::{Classes, Listing};

/// Extensions of picture files, in lower case.
const IMAGE_EXTENSIONS: [&[u8]; 10] =
    [b"jpg", b"jpeg", b"png", b"gif", b"bmp", b"webp", b"tif", b"tiff", b"ppm", b"pgm"];

/// The schema of a folder, and where the values of its attributes come from.
#[derive(Debug)]
pub(super) struct Shape {
    metadata: Metadata,
    classes: Option<Classes>,
}

impl Shape {
    pub(super) fn of(listing: &Listing) -> Result<Self, FormatError> {
        let Some(classes) = listing.classes() else {
            return Ok(Self { metadata: metadata(vec![], "data", Map::new())?, classes: None });
        };
        let images = (0..listing.len()).all(|file| is_image(listing.relative_path(file)));
        let label = Attribute { name: "label".into(), kind: AttributeType::Int64 };
        let user = Map::from_iter([("class_names".into(), classes.names().map(class_name).collect())]);
        let metadata = metadata(vec![label], if images { "image" } else { "data" }, user)?;
        Ok(Self { metadata, classes: Some(classes) })
    }

    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Number of classes, where the folder has the shape of ImageNet.
    pub(super) fn class_count(&self) -> Option<usize> {
        self.classes.as_ref().map(Classes::len)
    }

    /// The attributes of a file of the listing.
    pub(super) fn attributes(&self, file: usize) -> Vec<Option<AttributeValue>> {
        let label = |classes: &Classes| Some(AttributeValue::Int(classes.class_of(file).into()));
        self.classes.iter().map(label).collect()
    }
}

fn metadata(attributes: Vec<Attribute>, field: &str, user: Map<String, Value>) -> Result<Metadata, FormatError> {
    let fields = vec![Field { name: field.into(), kind: FieldType::Bytes }];
    Ok(Metadata { schema: Schema::new(attributes, fields)?, user })
}

/// JSON holds UTF-8 only: bytes that are none are escaped.
fn class_name(name: &[u8]) -> Value {
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => escape_bytes(name).into(),
    }
}

/// Whether a name ends in `.jpg` or the like; `jpg` and `.jpg` alone are no pictures.
fn is_image(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0) else { return false };
    IMAGE_EXTENSIONS.iter().any(|extension| extension.eq_ignore_ascii_case(&name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_extension_in_any_case() {
        for name in ["a/b.jpg", "n01/n01_1.JPEG", "x/.hidden.png", "x/a.b.TiFf", "x/é.webp"] {
            assert!(is_image(name.as_bytes()), "{name}");
        }
        for name in ["a/jpg", "a/.jpg", "a.jpg/b", "a/b.jpg.txt", "a/b.jpgx", "a/b.", "a/b"] {
            assert!(!is_image(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_of_classes_are_kept_where_they_are_utf8_and_escaped_where_not() {
        assert_eq!(class_name("chat \"noir\"".as_bytes()), "chat \"noir\"");
        assert_eq!(class_name(b"a\xff"), "a\\xff");
    }
}
