//! Section METADATA: the schema and the user's own metadata, as JSON. spec.md: MET-1.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Attribute, AttributeType, Directory, Field, FieldType, FormatError, Schema, SectionKind};

const WHAT: &str = "metadata";
const MAX_LEVELS: usize = 100; // spec.md: CON-8

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetadata {
    schema: RawSchema,
    user: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSchema {
    attributes: Vec<RawItem>,
    fields: Vec<RawItem>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawItem {
    name: String,
    r#type: String,
}

/// Schema and user metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Names and types of attributes and fields.
    pub schema: Schema,
    /// Anything, such as `class_names`.
    pub user: Map<String, Value>,
}

impl Metadata {
    /// Reads the section.
    ///
    /// # Errors
    /// If it is not JSON, has unexpected members, or the schema is invalid.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let raw: RawMetadata =
            serde_json::from_slice(bytes).map_err(|error| FormatError::damaged(WHAT, error.to_string()))?;
        let attributes = raw.schema.attributes.into_iter().map(|item| {
            let kind = AttributeType::from_name(&item.r#type).ok_or_else(|| unknown_type(&item))?;
            Ok(Attribute { name: item.name, kind })
        });
        let fields = raw.schema.fields.into_iter().map(|item| {
            let kind = FieldType::from_name(&item.r#type).ok_or_else(|| unknown_type(&item))?;
            Ok(Field { name: item.name, kind })
        });
        let schema =
            Schema::new(attributes.collect::<Result<_, FormatError>>()?, fields.collect::<Result<_, FormatError>>()?)
                .map_err(|error| FormatError::damaged(WHAT, error.to_string()))?;
        Ok(Self { schema, user: raw.user })
    }

    /// The section's bytes: compact JSON, the user's members sorted.
    ///
    /// # Errors
    /// If the user's metadata is nested deeper than 100 levels. spec.md: CON-8.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        if self.user.values().any(|value| is_deeper_than(value, MAX_LEVELS - 2)) {
            let text = format!("user metadata is nested deeper than {MAX_LEVELS} levels, which readers may refuse");
            return Err(FormatError::Invalid(text));
        }
        let item = |name: &str, kind: String| RawItem { name: name.to_owned(), r#type: kind };
        let raw = RawMetadata {
            schema: RawSchema {
                attributes: self.schema.attributes().iter().map(|a| item(&a.name, a.kind.name().to_owned())).collect(),
                fields: self.schema.fields().iter().map(|f| item(&f.name, f.kind.name())).collect(),
            },
            user: self.user.clone(),
        };
        serde_json::to_vec(&raw).map_err(|error| FormatError::Invalid(error.to_string()))
    }

    /// Checks that the directory has the sections that the schema requires, and no others. spec.md: ATR-1, FLD-1,
    /// FLD-2.
    ///
    /// # Errors
    /// If a column is missing, unexpected, or of another width.
    pub fn check_sections(&self, directory: &Directory) -> Result<(), FormatError> {
        let wrong = |label: String| {
            FormatError::damaged("directory", format!("section {label} does not agree with the schema"))
        };
        for (item, attribute) in (0_u16..).zip(self.schema.attributes()) {
            let section = directory.section(SectionKind::Attribute, item);
            if section.is_none_or(|section| section.width != attribute.kind.width()) {
                return Err(wrong(format!("attribute[{item}]")));
            }
        }
        let field_width = directory.section(SectionKind::FieldOffset, 0).map(|section| section.width);
        if field_width.is_none() && self.schema.fields().len() > 1 {
            return Err(wrong("field_offset[0]".into()));
        }
        for (item, _) in (0_u16..).zip(self.schema.fields()) {
            for kind in [SectionKind::FieldOffset, SectionKind::FieldLen] {
                if directory.section(kind, item).map(|section| section.width) != field_width {
                    return Err(wrong(format!("{}[{item}]", kind.name())));
                }
            }
        }
        let unexpected = directory.sections().iter().find(|section| {
            let item = usize::from(section.item);
            match section.kind {
                SectionKind::Attribute | SectionKind::Validity => item >= self.schema.attributes().len(),
                SectionKind::FieldOffset | SectionKind::FieldLen => item >= self.schema.fields().len(),
                SectionKind::FieldValidity => item >= self.schema.fields().len() || field_width.is_none(),
                _ => false,
            }
        });
        match unexpected {
            Some(section) => Err(wrong(section.label())),
            None => Ok(()),
        }
    }
}

/// Whether `value` has more than `levels` levels of arrays and objects.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| levels == 0 || is_deeper_than(inner, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(deeper),
        Value::Object(members) => levels == 0 || members.values().any(deeper),
        _ => false,
    }
}

fn unknown_type(item: &RawItem) -> FormatError {
    let shown = |text: &str| crate::escape_bytes(text.as_bytes());
    FormatError::damaged(WHAT, format!("\"{}\" has the unknown type \"{}\"", shown(&item.name), shown(&item.r#type)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MET-1
    #[test]
    fn writes_the_example_of_the_specification() {
        let text = r#"{"schema":{"attributes":[{"name":"label","type":"int64"}],"fields":[{"name":"image","type":"bytes"}]},"user":{"class_names":["cat","dog"]}}"#;
        let metadata = Metadata::decode(text.as_bytes()).unwrap();
        assert_eq!(metadata.schema.attribute("label"), Some(0));
        assert_eq!(metadata.encode().unwrap(), text.as_bytes());
    }

    /// CON-8
    #[test]
    fn refuses_to_write_what_is_nested_too_deep_to_be_read() {
        let nested = |levels: usize| (0..levels).fold(Value::from(1), |value, _| Value::Array(vec![value]));
        let with = |value| {
            let schema = Schema::new(vec![], vec![Field { name: "x".into(), kind: FieldType::Bytes }]).unwrap();
            Metadata { schema, user: Map::from_iter([("deep".to_owned(), value)]) }
        };
        let legal = with(nested(98)).encode().unwrap();
        assert!(Metadata::decode(&legal).is_ok());
        assert!(with(nested(99)).encode().is_err());
    }

    /// MET-1, MET-2, FLD-4
    #[test]
    fn refuses_other_members_types_and_text() {
        let with = |attributes: &str, fields: &str, more: &str| {
            Metadata::decode(
                format!(r#"{{"schema":{{"attributes":[{attributes}],"fields":[{fields}]}},"user":{{}}{more}}}"#)
                    .as_bytes(),
            )
        };
        let field = r#"{"name":"x","type":"bytes"}"#;
        assert!(with("", field, "").is_ok());
        assert!(with("", field, r#","more":1"#).is_err());
        assert!(with("", "", "").is_err());
        assert!(with(r#"{"name":"a","type":"int7"}"#, field, "").is_err());
        assert!(with("", r#"{"name":"x","type":"float32[]"}"#, "").is_err());
        assert!(with("", field, "").is_ok_and(|m| m.user.is_empty()));
        assert!(Metadata::decode(&b"[".repeat(100_000)).is_err(), "deep nesting is refused, not followed");
        assert!(Metadata::decode(b"\xff").is_err());
    }
}
