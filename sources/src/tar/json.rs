//! `.json` members of an archive: scalars become attributes.
//!
//! A name of the JSON objects becomes an attribute where every document of the first samples has an integer, a float, a
//! boolean, null or nothing under it, or a text out of few: a category. If documents hold anything else, such as
//! captions, the whole document is stored too, as a field.

use std::collections::{BTreeMap, BTreeSet};

use grainstore_format::{Attribute, AttributeType, AttributeValue, Categories, Remedy};
use serde_json::{Map, Value};

use crate::Remark;

/// Longer documents are not parsed.
pub(super) const LEN_MAX: u64 = 1 << 20;
/// With more names than this, the names are taken for data, and there are no attributes.
const NAMES_MAX: usize = 256;
/// With more texts than this under a name, they are no categories.
const TEXTS_MAX: usize = 256;
/// Texts under a name of which each comes this often, on average, are categories.
const TEXT_REPEATS_MIN: usize = 4;
/// Larger integers cannot all be stored exactly in a 64-bit float.
const EXACT_MAX: u64 = 1 << 53;

/// What the documents of the first samples have in common.
#[derive(Debug, Default)]
pub(super) struct JsonDocuments {
    members: BTreeMap<String, JsonKind>,
    has_other: bool,
}

/// The type of the values under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JsonKind {
    Null,
    Scalar(AttributeType),
    /// The texts, and how many documents have one.
    Texts(BTreeSet<String>, usize),
    Other,
}

impl JsonDocuments {
    /// Adds a document; `None` is one that is too long.
    pub(super) fn add(&mut self, content: Option<&[u8]>) {
        let object = content.and_then(|content| serde_json::from_slice::<Map<String, Value>>(content).ok());
        match object.filter(|_| !self.has_other) {
            Some(object) => {
                for (name, value) in object {
                    self.add_member(name, &value);
                }
            }
            None => self.has_other = true,
        }
        if self.has_other || self.members.len() > NAMES_MAX {
            self.members.clear();
            self.has_other = true;
        }
    }

    fn add_member(&mut self, name: String, value: &Value) {
        let found = if is_name(&name) { JsonKind::of(value) } else { JsonKind::Other };
        self.members.entry(name).and_modify(|kind| *kind = kind.clone().and(found.clone())).or_insert(found);
    }

    /// The attributes, and whether they hold everything in the documents. `is_free`: whether a name is still unused.
    pub(super) fn attributes(&self, is_free: impl Fn(&str) -> bool) -> (Vec<Attribute>, bool) {
        let attribute = |(name, kind): (&String, &JsonKind)| {
            let kind = kind.attribute_type().filter(|_| is_free(name))?;
            Some(Attribute { name: name.clone(), kind })
        };
        let attributes: Vec<_> = self.members.iter().filter_map(attribute).collect();
        let is_all = !self.has_other && !attributes.is_empty() && attributes.len() == self.members.len();
        (attributes, is_all)
    }
}

impl JsonKind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Scalar(AttributeType::Bool),
            Value::Number(number) if number.is_i64() => Self::Scalar(AttributeType::Int64),
            Value::Number(number) if number.is_f64() => Self::Scalar(AttributeType::Float64),
            Value::String(text) if text.len() <= Categories::MAX_NAME_LEN => {
                Self::Texts(BTreeSet::from([text.clone()]), 1)
            }
            _ => Self::Other,
        }
    }

    /// The type of the attribute, if it is one.
    fn attribute_type(&self) -> Option<AttributeType> {
        match self {
            Self::Scalar(kind) => Some(kind.clone()),
            Self::Texts(texts, count) if texts.len() * TEXT_REPEATS_MIN <= *count => Some(AttributeType::Category),
            Self::Texts(..) | Self::Null | Self::Other => None,
        }
    }

    fn and(self, other: Self) -> Self {
        use AttributeType::{Float64, Int64};
        match (self, other) {
            (one, Self::Null) | (Self::Null, one) => one,
            (Self::Scalar(Int64), Self::Scalar(Float64)) | (Self::Scalar(Float64), Self::Scalar(Int64)) => {
                Self::Scalar(Float64)
            }
            (Self::Texts(mut texts, count), Self::Texts(mut others, other_count))
                if texts.len() + others.len() <= TEXTS_MAX + 1 =>
            {
                texts.append(&mut others);
                Self::Texts(texts, count + other_count)
            }
            (Self::Scalar(one), Self::Scalar(other)) if one == other => Self::Scalar(one),
            _ => Self::Other,
        }
    }
}

/// The attributes' values in a document.
///
/// # Errors
/// Where the document is not an object, or has a value of another type; where the document itself is not stored
/// (`is_kept`), also where it has a name that is not an attribute.
pub(super) fn values(
    content: &[u8],
    attributes: &[Attribute],
    is_kept: bool,
) -> Result<Vec<Option<AttributeValue>>, Remark> {
    let object: Map<String, Value> =
        serde_json::from_slice(content).map_err(|error| format!("its .json is not an object: {error}"))?;
    let is_unknown = |name: &&String| !attributes.iter().any(|attribute| attribute.name == **name);
    if let Some(name) = object.keys().find(is_unknown).filter(|_| !is_kept) {
        let why = format!("its .json has a member {}, unlike the first samples", quoted(name));
        return Err(Remark::new(why, Remedy::MapDocuments));
    }
    let value = |attribute: &Attribute| match object.get(&attribute.name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => fitting(value, &attribute.kind).map(Some).ok_or_else(|| {
            let name = quoted(&attribute.name);
            let kind = attribute.kind.name();
            let why = format!("its .json has a {} as {name}, where the first samples have {kind}", described(value));
            Remark::new(why, Remedy::MapDocuments)
        }),
    };
    attributes.iter().map(value).collect()
}

fn fitting(value: &Value, kind: &AttributeType) -> Option<AttributeValue> {
    match (value, kind) {
        (Value::Bool(value), AttributeType::Bool) => Some(AttributeValue::Bool(*value)),
        (Value::Number(number), AttributeType::Int64) => number.as_i64().map(AttributeValue::Int),
        (Value::Number(number), AttributeType::Float64) => {
            let is_exact =
                number.is_f64() || number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= EXACT_MAX);
            number.as_f64().filter(|_| is_exact).map(AttributeValue::Float64)
        }
        (Value::String(text), AttributeType::Category) if text.len() <= Categories::MAX_NAME_LEN => {
            Some(AttributeValue::Category(text.as_str().into()))
        }
        _ => None,
    }
}

fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Whether a schema accepts the name.
fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn quoted(name: &str) -> String {
    let shown: String = name.chars().take(256).collect();
    format!("\"{}\"", grainstore_format::escape_bytes(shown.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(documents: &[&str]) -> (Vec<(String, String)>, bool) {
        let mut json = JsonDocuments::default();
        documents.iter().for_each(|text| json.add(Some(text.as_bytes())));
        let (attributes, is_all) = json.attributes(|name| name != "taken");
        (attributes.into_iter().map(|a| (a.name, a.kind.name().to_owned())).collect(), is_all)
    }

    #[test]
    fn scalars_are_attributes_and_all_else_keeps_the_document() {
        let names =
            |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
        let (found, is_all) = of(&[r#"{"w": 1, "ok": true, "s": 1}"#, r#"{"s": 0.5, "w": null}"#]);
        assert_eq!((found, is_all), (names(&[("ok", "bool"), ("s", "float64"), ("w", "int64")]), true));
        let (found, is_all) = of(&[r#"{"w": 1, "text": "a", "deep": {"x": 1}, "mixed": 1}"#, r#"{"mixed": true}"#]);
        assert_eq!((found, is_all), (names(&[("w", "int64")]), false));
        for documents in [&["[1]"][..], &["{}"], &[r#"{"a": null}"#], &[r#"{"taken": 1}"#], &[r#"{"a":1}"#, "x"]] {
            assert_eq!(of(documents), (vec![], false), "{documents:?}");
        }
        let split =
            |number: usize| format!(r#"{{"split": "{}", "caption": "{number}"}}"#, ["train", "val"][number % 2]);
        let documents: Vec<String> = (0..8).map(split).collect();
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        assert_eq!(of(&documents), (names(&[("split", "category")]), false), "captions are no categories");
        assert_eq!(of(&documents[..7]), (vec![], false), "seven texts, and two of them different");
        assert_eq!(of(&[r#"{"big": 18446744073709551615, "a": 1}"#]), (names(&[("a", "int64")]), false));
    }

    #[test]
    fn values_that_do_not_fit_are_refused_and_nothing_is_lost() {
        let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
        let schema = [attribute("f", AttributeType::Float64), attribute("i", AttributeType::Int64)];
        let found = values(br#"{"f": 3, "i": -1}"#, &schema, false).unwrap();
        assert_eq!(found, [Some(AttributeValue::Float64(3.0)), Some(AttributeValue::Int(-1))]);
        assert_eq!(values(b"{}", &schema, false).unwrap(), [None, None]);
        let text = [attribute("t", AttributeType::Category)];
        assert_eq!(values(br#"{"t": "new"}"#, &text, false).unwrap(), [Some(AttributeValue::Category("new".into()))]);
        assert!(values(br#"{"t": 1}"#, &text, false).is_err());
        assert_eq!(values(br#"{"x": "y"}"#, &schema, true).unwrap(), [None, None]);
        for bad in [&br#"{"x": 1}"#[..], br#"{"i": 1.5}"#, br#"{"i": "1"}"#, br#"{"f": 9007199254740993}"#, b"[]", b"{"]
        {
            assert!(values(bad, &schema, false).is_err());
        }
    }
}
