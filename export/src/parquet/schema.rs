//! The columns of a Parquet file, how they are stored, and its metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::{ColumnPath, Type, TypePtr};
use grainstore_format::{Attribute, AttributeType, Field, FieldType, Schema, UserMetadata};
use serde_json::{Map, Value, json};

use crate::job::ExportJob;

/// The names of numbers, by attribute.
pub(super) type Names = BTreeMap<String, Vec<String>>;

/// The keys' column.
pub(super) const KEY: &str = "key";

/// What all files of an export have in common.
pub(super) struct FileSchema {
    pub(super) root: TypePtr,
    pub(super) properties: Arc<WriterProperties>,
    pub(super) schema: Schema,
    pub(super) is_keyed: bool,
}

impl FileSchema {
    /// `names`: those of numbers, by attribute. `is_utf8`: whether all keys are UTF-8.
    pub(super) fn of(job: &ExportJob<'_>, names: &Names, user: &UserMetadata, is_utf8: bool) -> Result<Self> {
        let schema = job.schema().clone();
        let is_keyed = job.collection().is_keyed();
        let mut columns = Vec::new();
        if is_keyed {
            columns.push(bytes_column(KEY, is_utf8, Repetition::REQUIRED)?);
        }
        for attribute in schema.attributes() {
            columns.push(attribute_column(attribute)?);
        }
        for field in schema.fields() {
            columns.push(bytes_column(&field.name, field.kind == FieldType::Str, Repetition::OPTIONAL)?);
        }
        let root = Arc::new(Type::group_type_builder("schema").with_fields(columns).build()?);
        let properties = Arc::new(properties(job, (&schema, user), names, is_utf8));
        Ok(Self { root, properties, schema, is_keyed })
    }
}

fn bytes_column(name: &str, is_text: bool, repetition: Repetition) -> Result<TypePtr> {
    let builder = Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition);
    builder.with_logical_type(is_text.then_some(LogicalType::String)).build().map(Arc::new)
}

fn attribute_column(attribute: &Attribute) -> Result<TypePtr> {
    let integer = |bit_width, is_signed| Some(LogicalType::integer(bit_width, is_signed));
    let (physical, logical) = match &attribute.kind {
        AttributeType::Bool => (Physical::BOOLEAN, None),
        AttributeType::Int8 => (Physical::INT32, integer(8, true)),
        AttributeType::Int16 => (Physical::INT32, integer(16, true)),
        AttributeType::Int32 => (Physical::INT32, integer(32, true)),
        AttributeType::Int64 => (Physical::INT64, integer(64, true)),
        AttributeType::Uint8 => (Physical::INT32, integer(8, false)),
        AttributeType::Uint16 => (Physical::INT32, integer(16, false)),
        AttributeType::Uint32 => (Physical::INT32, integer(32, false)),
        AttributeType::Uint64 => (Physical::INT64, integer(64, false)),
        AttributeType::Float16 => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)),
        // Parquet has no such type; these hold all its values.
        AttributeType::Bfloat16 | AttributeType::Float32 => (Physical::FLOAT, None),
        AttributeType::Float64 => (Physical::DOUBLE, None),
        AttributeType::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        AttributeType::Category => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        AttributeType::Opaque(_) => (Physical::BYTE_ARRAY, None),
    };
    let builder = Type::primitive_type_builder(&attribute.name, physical).with_repetition(Repetition::OPTIONAL);
    let builder = if physical == Physical::FIXED_LEN_BYTE_ARRAY { builder.with_length(2) } else { builder };
    builder.with_logical_type(logical).build().map(Arc::new)
}

fn properties(
    job: &ExportJob<'_>,
    (schema, user): (&Schema, &UserMetadata),
    names: &Names,
    is_utf8: bool,
) -> WriterProperties {
    let metadata = vec![KeyValue::new("grainstore".to_owned(), ours(schema, user))];
    let theirs = huggingface(job, schema, names, is_utf8)
        .map(|value| KeyValue::new("huggingface".to_owned(), value.to_string()));
    let mut builder = WriterProperties::builder()
        .set_created_by("grainstore".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata.into_iter().chain(theirs).collect()));
    for field in schema.fields() {
        let path = ColumnPath::new(vec![field.name.clone()]);
        // The smallest and the largest picture do not help to find one.
        builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        builder = builder.set_column_dictionary_enabled(path.clone(), false);
        if field.kind != FieldType::Str {
            builder = builder.set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    builder.build()
}

/// The schema and the dataset's metadata as JSON.
fn ours(schema: &Schema, user: &UserMetadata) -> String {
    let attributes = schema.attributes().iter().map(|one| json!({ "name": one.name, "type": one.kind.name() }));
    let fields = schema.fields().iter().map(|one| json!({ "name": one.name, "type": one.kind.name() }));
    // The text of the metadata as it is: it may hold numbers that no `Value` holds.
    format!(
        r#"{{"attributes":{},"fields":{},"user":{}}}"#,
        Value::from_iter(attributes),
        Value::from_iter(fields),
        user.text()
    )
}

/// The types of all columns, if numbers of some attribute have names.
fn huggingface(job: &ExportJob<'_>, schema: &Schema, names: &Names, is_utf8: bool) -> Option<Value> {
    if names.is_empty() {
        return None;
    }
    let key = |is_text| value_type(if is_text { "string" } else { "binary" });
    let mut features = Map::new();
    if job.collection().is_keyed() {
        features.insert(KEY.to_owned(), key(is_utf8));
    }
    for attribute in schema.attributes() {
        let feature = match &attribute.kind {
            _ if names.contains_key(&attribute.name) => {
                json!({ "_type": "ClassLabel", "names": names.get(&attribute.name) })
            }
            AttributeType::Category => key(true),
            AttributeType::Opaque(_) => key(false),
            AttributeType::Timestamp => value_type("timestamp[ns, tz=UTC]"),
            AttributeType::Bfloat16 => value_type(AttributeType::Float32.name()),
            kind => value_type(kind.name()),
        };
        features.insert(attribute.name.clone(), feature);
    }
    for Field { name, kind } in schema.fields() {
        features.insert(name.clone(), key(*kind == FieldType::Str));
    }
    Some(json!({ "info": { "features": features } }))
}

fn value_type(name: &str) -> Value {
    json!({ "dtype": name, "_type": "Value" })
}
