//! The schema: names and types of attributes and fields. spec.md: MET-2, ATR-3.

use std::collections::HashSet;

use crate::{AttributeType, FieldType, FormatError};

pub(crate) const MAX_ITEMS: usize = 1024;
const MAX_NAME_LEN: usize = 255;

/// An attribute of every sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: AttributeType,
}

/// A field of every payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
}

/// The attributes and fields of a dataset, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    attributes: Vec<Attribute>,
    fields: Vec<Field>,
}

impl Schema {
    /// A schema of these attributes and fields.
    ///
    /// # Errors
    /// If there are too many, there is no field, a name is not allowed or used twice, or a type has no name of its own.
    pub fn new(attributes: Vec<Attribute>, fields: Vec<Field>) -> Result<Self, FormatError> {
        let invalid = |text: String| Err(FormatError::Invalid(text));
        if attributes.len() > MAX_ITEMS {
            return invalid(format!("schema has {} attributes, the limit is {MAX_ITEMS}", attributes.len()));
        }
        if !(1..=MAX_ITEMS).contains(&fields.len()) {
            return invalid(format!("schema has {} fields, it needs 1 to {MAX_ITEMS}", fields.len()));
        }
        let mut seen = HashSet::new();
        for name in attributes.iter().map(|a| &a.name).chain(fields.iter().map(|f| &f.name)) {
            let shown = crate::escape_bytes(name.as_bytes());
            if !(1..=MAX_NAME_LEN).contains(&name.len()) || name.chars().any(char::is_control) {
                return invalid(format!(
                    "name \"{shown}\" is not 1 to {MAX_NAME_LEN} bytes without control characters"
                ));
            }
            if !seen.insert(name) {
                return invalid(format!("name \"{shown}\" is used twice in the schema"));
            }
        }
        let unnamed_attribute =
            attributes.iter().find(|a| AttributeType::from_schema(a.kind.name()).as_ref() != Some(&a.kind));
        let unnamed_field = fields.iter().find(|f| FieldType::from_schema(&f.kind.name()).as_ref() != Some(&f.kind));
        if let Some(name) = unnamed_attribute.map(|a| &a.name).or(unnamed_field.map(|f| &f.name)) {
            return invalid(format!(
                "\"{}\" has a type that the format cannot name",
                crate::escape_bytes(name.as_bytes())
            ));
        }
        Ok(Self { attributes, fields })
    }

    /// Refuses a schema with types that this version does not know: it cannot be written. spec.md: ATR-3.
    ///
    /// # Errors
    /// If there is one.
    pub fn check_writable(&self) -> Result<(), FormatError> {
        let attributes = self.attributes.iter().filter_map(|a| match &a.kind {
            AttributeType::Opaque(kind) => Some((&a.name, kind)),
            _ => None,
        });
        let fields = self.fields.iter().filter_map(|f| match &f.kind {
            FieldType::Opaque(kind) => Some((&f.name, kind)),
            _ => None,
        });
        match attributes.chain(fields).next() {
            None => Ok(()),
            Some((name, kind)) => {
                let shown = |text: &str| crate::escape_bytes(text.as_bytes());
                Err(FormatError::UnknownType { name: shown(name), kind: shown(kind) })
            }
        }
    }

    /// The attributes, in order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The fields, in order; at least one.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The index of the attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }

    /// The index of the field with this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    /// MET-2
    #[test]
    fn refuses_invalid_schemas() {
        let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
        let label = Attribute { name: "label".into(), kind: AttributeType::Int64 };
        assert!(Schema::new(vec![label.clone()], vec![field("image")]).is_ok());
        assert!(Schema::new(vec![label.clone()], vec![field("label")]).is_err());
        assert!(Schema::new(vec![label], vec![]).is_err());
        assert!(Schema::new(vec![], vec![field("")]).is_err());
        assert!(Schema::new(vec![], vec![field("a\nb")]).is_err());
        assert!(Schema::new(vec![], vec![field(&"x".repeat(256))]).is_err());
        let bools = FieldType::Array { element: AttributeType::Bool, shape: Shape::fixed(vec![2]) };
        assert!(Schema::new(vec![], vec![Field { name: "x".into(), kind: bools }]).is_err());
        assert!(Schema::new(vec![], vec![Field { name: "x".into(), kind: FieldType::Opaque("str".into()) }]).is_err());
        assert!(Schema::new(vec![], (0..1025).map(|i| field(&i.to_string())).collect()).is_err());
    }

    /// ATR-3
    #[test]
    fn a_schema_with_unknown_types_cannot_be_written() {
        let field = |kind| vec![Field { name: "x".into(), kind }];
        let attribute = |kind| vec![Attribute { name: "a".into(), kind }];
        let known = Schema::new(attribute(AttributeType::Category), field(FieldType::Bytes)).unwrap();
        assert!(known.check_writable().is_ok());
        let newer = [
            Schema::new(attribute(AttributeType::Opaque("int7".into())), field(FieldType::Bytes)).unwrap(),
            Schema::new(vec![], field(FieldType::Opaque("jpeg".into()))).unwrap(),
        ];
        for schema in newer {
            let error = schema.check_writable().unwrap_err();
            assert!(error.to_string().contains("a newer grainstore"), "{error}");
            assert_eq!(error.remedy(), Some(crate::Remedy::Upgrade));
        }
    }
}
