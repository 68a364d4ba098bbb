//! Section METADATA: the schema and the user's own metadata, as JSON. spec.md: MET-1, MET-3.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::{Object, at_most, parse};
use crate::schema::MAX_ITEMS;
use crate::{Attribute, AttributeType, Directory, Field, FieldType, FormatError, Schema, SectionKind, UserMetadata};

const WHAT: &str = "metadata";

#[derive(Deserialize)]
struct RawMetadata<'a> {
    schema: Object<RawSchema>,
    #[serde(borrow)]
    user: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct RawSchema {
    #[serde(deserialize_with = "at_most::<_, _, MAX_ITEMS>")]
    attributes: Vec<Object<RawItem>>,
    #[serde(deserialize_with = "at_most::<_, _, MAX_ITEMS>")]
    fields: Vec<Object<RawItem>>,
}

#[derive(Serialize, Deserialize)]
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
    pub user: UserMetadata,
}

impl Metadata {
    /// The longest section in bytes (64 MiB); a longer one is refused unread. spec.md: DIR-5.
    pub const MAX_LEN: u64 = 64 << 20;

    /// Reads the section.
    ///
    /// # Errors
    /// If it is not JSON, a member is missing or twice there, or the schema is invalid.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let raw: RawMetadata<'_> = parse(WHAT, bytes)?;
        let Object(schema) = raw.schema;
        let attributes = schema.attributes.into_iter().map(|Object(item)| {
            let kind = AttributeType::from_schema(&item.r#type).ok_or_else(|| no_type(&item))?;
            Ok(Attribute { name: item.name, kind })
        });
        let fields = schema.fields.into_iter().map(|Object(item)| {
            let kind = FieldType::from_schema(&item.r#type).ok_or_else(|| no_type(&item))?;
            Ok(Field { name: item.name, kind })
        });
        let schema =
            Schema::new(attributes.collect::<Result<_, FormatError>>()?, fields.collect::<Result<_, FormatError>>()?)
                .map_err(|error| FormatError::damaged(WHAT, error.to_string()))?;
        Ok(Self { schema, user: UserMetadata::from_raw(raw.user)? })
    }

    /// The section's bytes: compact JSON, the user's text as it is.
    ///
    /// # Errors
    /// If it is longer than [`Metadata::MAX_LEN`], or the schema has types that this version does not know. spec.md:
    /// ATR-3.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        self.schema.check_writable()?;
        let item = |name: &str, kind: String| Object(RawItem { name: name.to_owned(), r#type: kind });
        let schema = RawSchema {
            attributes: self.schema.attributes().iter().map(|a| item(&a.name, a.kind.name().to_owned())).collect(),
            fields: self.schema.fields().iter().map(|f| item(&f.name, f.kind.name())).collect(),
        };
        let schema = serde_json::to_string(&schema).map_err(|error| FormatError::Invalid(error.to_string()))?;
        let bytes = format!(r#"{{"schema":{schema},"user":{}}}"#, self.user.text()).into_bytes();
        if bytes.len() as u64 > Self::MAX_LEN {
            let found = bytes.len() as u64;
            return Err(FormatError::Limit { what: "length of the metadata", found, limit: Self::MAX_LEN });
        }
        Ok(bytes)
    }

    /// Checks that the directory has the sections that the schema requires, and no others. spec.md: ATR-1, CAT-1,
    /// FLD-1, FLD-2.
    ///
    /// # Errors
    /// If a column is missing, unexpected, or of another width.
    pub fn check_sections(&self, directory: &Directory) -> Result<(), FormatError> {
        let wrong = |label: String| {
            FormatError::damaged("directory", format!("section {label} does not agree with the schema"))
        };
        for (item, attribute) in (0_u16..).zip(self.schema.attributes()) {
            let section = directory.section(SectionKind::Attribute, item);
            if section.is_none_or(|section| !attribute.kind.allows_width(section.width)) {
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
                SectionKind::Categories => {
                    self.schema.attributes().get(item).is_none_or(|a| a.kind != AttributeType::Category)
                }
                _ => false,
            }
        });
        match unexpected {
            Some(section) => Err(wrong(section.label())),
            None => Ok(()),
        }
    }
}

fn no_type(item: &RawItem) -> FormatError {
    let shown = |text: &str| crate::escape_bytes(text.as_bytes());
    FormatError::damaged(WHAT, format!("\"{}\" has the type \"{}\"", shown(&item.name), shown(&item.r#type)))
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

    /// MET-1, MET-2, MET-3, FLD-4
    #[test]
    fn unknown_members_are_ignored_and_types_and_text_are_checked() {
        let with = |attributes: &str, fields: &str, more: &str| {
            Metadata::decode(
                format!(r#"{{"schema":{{"attributes":[{attributes}],"fields":[{fields}]}},"user":{{}}{more}}}"#)
                    .as_bytes(),
            )
        };
        const SCHEMA: &str = r#"{"attributes":[],"fields":[{"name":"x","type":"bytes"}]}"#;
        let field = r#"{"name":"x","type":"bytes"}"#;
        assert!(with("", field, "").is_ok());
        let deep = format!(r#","more":{}{}"#, "[".repeat(100_000), "]".repeat(100_000));
        for more in [r#","more":1"#, r#","more":{"a":-0,"a":1e999},"more":null"#, &deep] {
            assert_eq!(with("", field, more), with("", field, ""));
        }
        assert_eq!(with("", r#"{"more":[],"name":"x","type":"bytes"}"#, ""), with("", field, ""));
        for twice in [r#","user":{}"#, r#","schema":{"attributes":[],"fields":[{"name":"x","type":"bytes"}]}"#] {
            assert!(with("", field, twice).is_err(), "{twice}");
        }
        assert!(with("", r#"{"name":"x","name":"x","type":"bytes"}"#, "").is_err());
        assert!(with("", r#"["x","bytes"]"#, "").is_err());
        assert!(with("", "", "").is_err());
        assert!(with(r#"{"name":"a","type":""}"#, field, "").is_err());
        assert!(with("", r#"{"name":"x","type":"a\u0000b"}"#, "").is_err());
        let many = vec![field; 1025].join(",");
        let error = with("", &many, "").unwrap_err().to_string();
        assert!(error.contains("invalid length 1025, expected a list of at most 1024 elements"), "{error}");
        assert!(with("", field, "").is_ok_and(|metadata| metadata.user == UserMetadata::default()));
        let user = |text: &str| Metadata::decode(format!(r#"{{"user":{text},"schema":{SCHEMA}}}"#).as_bytes());
        assert_eq!(user(r#"{"a": 1e999}"#).unwrap().user.text(), r#"{"a": 1e999}"#);
        for text in ["1", "null", "[]", r#""{}""#, "{", "{\u{feff}}"] {
            assert!(user(text).is_err(), "{text}");
        }
        assert!(Metadata::decode(&b"[".repeat(100_000)).is_err(), "deep nesting is refused, not followed");
        assert!(Metadata::decode(b"\xff").is_err());
    }
}
