//! Whether a JSON document has a named member twice: what CON-8 and MAN-2 forbid, found by a parser of its own.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What is named in a document, and where.
pub(crate) enum Shape {
    /// Anything; nothing in it is named.
    Any,
    /// An object with these members, and others that are ignored.
    Object(&'static [(&'static str, Shape)]),
    /// A list of values of this shape.
    List(&'static Shape),
}

/// Whether the document has this shape, and no named member twice.
pub(crate) fn named_members_are_unique(bytes: &[u8], shape: &'static Shape) -> bool {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    Unique(shape).deserialize(&mut parser).is_ok()
}

struct Unique(&'static Shape);

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        match self.0 {
            Shape::Any => parser.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            Shape::Object(_) => parser.deserialize_map(self),
            Shape::List(_) => parser.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Shape::List(shape) = self.0 else { return Err(A::Error::custom("a list")) };
        while items.next_element_seed(Unique(shape))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Shape::Object(named) = self.0 else { return Err(A::Error::custom("an object")) };
        let mut seen = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let shape = named.iter().find(|(known, _)| *known == name);
            members.next_value_seed(Unique(shape.map_or(&Shape::Any, |(_, shape)| shape)))?;
            if shape.is_some() && !seen.insert(name) {
                return Err(A::Error::custom("a member twice"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, named_members_are_unique};

    const SHAPE: Shape = Shape::Object(&[("a", Shape::List(&Shape::Object(&[("b", Shape::Any)]))), ("c", Shape::Any)]);

    /// CON-8, MAN-2
    #[test]
    fn a_named_member_that_appears_twice_is_found_where_it_is_named() {
        let unique = |text: &str| named_members_are_unique(text.as_bytes(), &SHAPE);
        assert!(unique(r#"{"a":[{"b":1},{"b":1,"x":{},"x":1}],"c":{"b":1,"b":1},"y":1,"y":2}"#));
        assert!(!unique(r#"{"c":1,"c":1}"#));
        assert!(!unique(r#"{"a":[{"b":1,"b":1}]}"#));
        assert!(!unique(r#"{"a":{}}"#));
    }
}
