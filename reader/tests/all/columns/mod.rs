//! Datasets of columns and keys with empty payloads.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "what the tests share is public, and may fail")]

use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_store::Dataset;
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

/// A dataset, and its folder.
pub struct Columns {
    pub dataset: Dataset,
    _folder: TempDir,
}

/// One sample: its key, and a value for each attribute.
pub type Row = (Vec<u8>, Vec<Option<AttributeValue>>);

/// A dataset of these attributes, `label` with the names of classes if there are any; it has keys if the first row has
/// one.
pub fn columns(attributes: &[(&str, AttributeType)], classes: &[&str], rows: &[Row]) -> Columns {
    let user = UserMetadata::default();
    let user = if classes.is_empty() { user } else { with_names(user, "class_names", classes) };
    columns_with(attributes, user, rows)
}

/// The metadata with names of numbers.
pub fn with_names(user: UserMetadata, member: &str, names: &[&str]) -> UserMetadata {
    user.with_member(member, &names.to_vec().into()).unwrap()
}

/// The same with any metadata.
pub fn columns_with(attributes: &[(&str, AttributeType)], user: UserMetadata, rows: &[Row]) -> Columns {
    let folder = tempfile::tempdir().unwrap();
    let attribute = |(name, kind): &(&str, AttributeType)| Attribute { name: (*name).to_owned(), kind: kind.clone() };
    let fields = vec![Field { name: "data".into(), kind: FieldType::Bytes }];
    let schema = Schema::new(attributes.iter().map(attribute).collect(), fields).unwrap();
    let keyed = rows.first().is_some_and(|row| !row.0.is_empty());
    let options = WriterOptions { keyed, ..WriterOptions::with_metadata(Metadata { schema, user }) };
    let path = folder.path().join("columns.grain");
    let mut writer = DatasetWriter::create(&path, options).unwrap();
    for (key, attributes) in rows {
        let sample = Sample { key: key.clone(), attributes: attributes.clone(), ..Sample::default() };
        writer.write(sample).unwrap();
    }
    writer.finish().unwrap();
    Columns { dataset: Dataset::open(&path).unwrap(), _folder: folder }
}
