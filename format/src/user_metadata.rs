//! The user's own metadata: any JSON object, kept as text and parsed only when it is asked for. spec.md: MET-3.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::FormatError;
use crate::memory::{NoMemory, check_room};

const WHAT: &str = "metadata";
const MAX_LEVELS: usize = 100; // spec.md: MET-3

/// A member that may take more bytes than this when it is parsed is not parsed.
const VALUE_LEN_MAX: u64 = 1 << 30;

/// The text of a JSON object, such as `{"class_names":["cat","dog"]}`.
///
/// Numbers that no type holds and deep nesting are legal; only a member that is asked for has to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMetadata {
    text: Arc<String>,
}

impl UserMetadata {
    /// The metadata that a writer stores: compact JSON, members sorted by name.
    ///
    /// # Errors
    /// If a value is nested so deep that the object has more than 100 levels.
    pub fn new(members: &Map<String, Value>) -> Result<Self, FormatError> {
        members.values().try_for_each(check_levels)?;
        let text = serde_json::to_string(members).map_err(|error| FormatError::Invalid(error.to_string()))?;
        Ok(Self { text: Arc::new(text) })
    }

    /// The text of a value that was read.
    ///
    /// # Errors
    /// If it is not an object, or there is no memory.
    pub(crate) fn from_raw(value: &RawValue) -> Result<Self, FormatError> {
        let read = value.get();
        if !read.starts_with('{') {
            return Err(FormatError::damaged(WHAT, "its member \"user\" is not an object"));
        }
        let no_memory = |_| FormatError::NoMemory { what: WHAT, source: NoMemory { len: read.len() as u64 } };
        let mut text = String::new();
        text.try_reserve_exact(read.len()).map_err(no_memory)?;
        text.push_str(read);
        Ok(Self { text: Arc::new(text) })
    }

    /// The JSON text, an object.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of a member; `None` if there is no such member.
    ///
    /// # Errors
    /// If its numbers, its depth or all of it cannot be held, or there is no memory.
    pub fn member(&self, name: &str) -> Result<Option<Value>, FormatError> {
        let unheld = |why: String| FormatError::UnheldMember { name: name.to_owned(), why };
        let members = &mut serde_json::Deserializer::from_str(&self.text);
        let value = LastMember { name }.deserialize(members).map_err(|error| unheld(error.to_string()))?;
        let Some(value) = value else { return Ok(None) };
        let len = value_len_max(value.get());
        if len > VALUE_LEN_MAX {
            return Err(unheld(format!("it may take {len} bytes of memory, the limit is {VALUE_LEN_MAX}")));
        }
        check_room(len).map_err(FormatError::no_memory(WHAT))?;
        serde_json::from_str(value.get()).map(Some).map_err(|error| unheld(error.to_string()))
    }

    /// Which of these members there are. It parses no value.
    ///
    /// # Errors
    /// If the text cannot be parsed.
    pub fn present<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<&'n str>, FormatError> {
        let members = self.members().map_err(|error| FormatError::Invalid(error.to_string()))?;
        let members: HashSet<_> = members.into_iter().map(|(name, _)| text_of(name)).collect();
        Ok(names.into_iter().filter(|name| members.contains(*name)).collect())
    }

    /// The metadata with this member set to `value`; all other members keep their text, names included.
    ///
    /// # Errors
    /// If the value is nested too deep, as in [`UserMetadata::new`].
    pub fn with_member(&self, name: &str, value: &Value) -> Result<Self, FormatError> {
        let not_json = |error: serde_json::Error| FormatError::Invalid(error.to_string());
        check_levels(value)?;
        let value = serde_json::value::to_raw_value(value).map_err(not_json)?;
        let mut members = self.members().map_err(not_json)?;
        members.retain(|(found, _)| text_of(found) != name);
        let position = members.iter().position(|(found, _)| *text_of(found) > *name).unwrap_or(members.len());
        let name = serde_json::value::to_raw_value(name).map_err(not_json)?;
        members.insert(position, (&name, &value));
        Ok(Self::of_members(&members))
    }

    /// The metadata without this member; all others keep their text, names included.
    ///
    /// # Errors
    /// If the text cannot be parsed.
    pub fn without_member(&self, name: &str) -> Result<Self, FormatError> {
        let mut members = self.members().map_err(|error| FormatError::Invalid(error.to_string()))?;
        members.retain(|(found, _)| text_of(found) != name);
        Ok(Self::of_members(&members))
    }

    fn of_members(members: &[(&RawValue, &RawValue)]) -> Self {
        let mut text = String::from("{");
        for (position, (name, value)) in members.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            text.push_str(&format!("{separator}{}:{}", name.get(), value.get()));
        }
        text.push('}');
        Self { text: Arc::new(text) }
    }

    fn members(&self) -> serde_json::Result<Vec<(&RawValue, &RawValue)>> {
        serde_json::from_str::<Members<'_>>(&self.text).map(|members| members.0)
    }
}

impl Default for UserMetadata {
    /// No members.
    fn default() -> Self {
        Self { text: Arc::new("{}".to_owned()) }
    }
}

impl Serialize for UserMetadata {
    /// The text, without whitespace between tokens. Only for JSON.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(compact(&self.text)).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// JSON without whitespace outside strings.
fn compact(json: &str) -> String {
    let mut is_string = false;
    let mut is_escaped = false;
    json.chars()
        .filter(|&character| {
            let is_kept = is_string || !character.is_ascii_whitespace();
            if character == '"' && !is_escaped {
                is_string = !is_string;
            }
            is_escaped = is_string && character == '\\' && !is_escaped;
            is_kept
        })
        .collect()
}

/// The members of an object, in order, names and values as text.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(|members| Self(members.0))
    }
}

struct MembersVisitor;

/// Finds the last member of a name. No other is built.
struct LastMember<'n> {
    name: &'n str,
}

impl<'de> DeserializeSeed<'de> for LastMember<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LastMember<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Self::Value, A::Error> {
        let mut last = None;
        while let Some((name, value)) = source.next_entry::<&RawValue, &RawValue>()? {
            if text_of(name) == self.name {
                last = Some(value);
            }
        }
        Ok(last)
    }
}

/// The most bytes that a parsed value takes: 32 for each of its values, and more than 600 for an object of one member.
fn value_len_max(json: &str) -> u64 {
    let of_byte = |byte: u8| match byte {
        b',' | b'[' | b':' => 64,
        b'{' => 700,
        _ => 1,
    };
    json.bytes().map(of_byte).sum()
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = source.next_entry::<&RawValue, &RawValue>()? {
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

/// The text of a name. It may hold half a surrogate pair, which is no text: it is then compared as it is written.
fn text_of(name: &RawValue) -> Cow<'_, str> {
    serde_json::from_str::<String>(name.get()).map_or(Cow::Borrowed(name.get()), Cow::Owned)
}

fn check_levels(value: &Value) -> Result<(), FormatError> {
    // The object is the first level.
    if is_deeper_than(value, MAX_LEVELS - 1) {
        let text = format!("user metadata is nested deeper than {MAX_LEVELS} levels, which readers may refuse");
        return Err(FormatError::Invalid(text));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> UserMetadata {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        UserMetadata::from_raw(raw).unwrap()
    }

    /// MET-3
    #[test]
    fn a_member_that_cannot_be_held_hides_no_other_and_keeps_its_text() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let long = "9".repeat(5000);
        let text = format!(r#"{{"big":1e999,"long":{long},"deep":{deep},"a\ud800":1,"names":["x"]}}"#);
        let user = read(&text);
        assert_eq!(user.text(), text);
        assert_eq!(user.member("names"), Ok(Some(json!(["x"]))));
        for name in ["a", "absent"] {
            assert_eq!(user.member(name), Ok(None), "{name}");
        }
        for name in ["big", "long", "deep"] {
            let error = user.member(name).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("member \"{name}\" of the user's metadata cannot be held: ")),
                "{error}"
            );
        }
        assert_eq!(serde_json::to_string(&user).unwrap(), text);
    }

    /// MET-3
    #[test]
    fn a_member_that_would_take_much_more_memory_than_its_text_is_not_parsed() {
        let objects = format!(r#"[{}{{"":0}}]"#, r#"{"":0},"#.repeat(2 << 20));
        let user = read(&format!(r#"{{"large":{objects},"names":["x"]}}"#));
        assert!(matches!(user.member("large"), Err(FormatError::UnheldMember { .. })));
        assert_eq!(user.member("names"), Ok(Some(json!(["x"]))));
        assert_eq!(read(r#"{"na\u006des":7}"#).member("names"), Ok(Some(json!(7))));
    }

    /// MET-3
    #[test]
    fn a_member_is_set_and_the_others_keep_their_text() {
        let user = read(r#"{ "a": 1e999, "c" : 1 }"#).with_member("b", &json!([2])).unwrap();
        assert_eq!(user.text(), r#"{"a":1e999,"b":[2],"c":1}"#);
        let spaced = read("{ \"a b\\\" c\": \r\n[ 1, \"\\\\\" , 2 ] }");
        assert_eq!(serde_json::to_string(&spaced).unwrap(), r#"{"a b\" c":[1,"\\",2]}"#);
        assert_eq!(user.with_member("c", &json!("x")).unwrap().text(), r#"{"a":1e999,"b":[2],"c":"x"}"#);
        assert_eq!(UserMetadata::default().with_member("z", &json!(null)).unwrap().text(), r#"{"z":null}"#);
        assert_eq!(read(r#"{"a":1,"a":2}"#).member("a"), Ok(Some(json!(2))));
        let half = read(r#"{"a\ud800":1,"na\u006des":7,"z":1}"#).with_member("z", &json!(2)).unwrap();
        assert_eq!(half.text(), r#"{"a\ud800":1,"na\u006des":7,"z":2}"#);
    }

    /// MET-3
    #[test]
    fn refuses_to_write_what_is_nested_too_deep_for_some_readers() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| Value::Array(vec![value]));
        let with = |value| UserMetadata::new(&Map::from_iter([("deep".to_owned(), value)]));
        assert!(with(nested(99)).is_ok());
        assert!(with(nested(100)).is_err());
        assert!(UserMetadata::default().with_member("deep", &nested(100)).is_err());
    }
}
