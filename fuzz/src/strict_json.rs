//! Whether a JSON document has a member twice: what CON-8 forbids, found by a parser of its own.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Whether no object has a member twice; inside a member of the name `free`, anything goes.
pub(crate) fn members_are_unique(bytes: &[u8], free: Option<&str>) -> bool {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    Unique { free }.deserialize(&mut parser).is_ok()
}

#[derive(Clone, Copy)]
struct Unique<'a> {
    free: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if self.free == Some(&name) {
                members.next_value::<IgnoredAny>()?;
            } else {
                members.next_value_seed(self)?;
            }
            if !seen.insert(name) {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::members_are_unique;

    /// CON-8
    #[test]
    fn a_member_that_stands_twice_is_found_at_any_depth() {
        assert!(members_are_unique(br#"{"a":{"b":1},"b":[1,{"b":null}]}"#, None));
        assert!(!members_are_unique(br#"{"a":1,"a":1}"#, None));
        assert!(!members_are_unique(br#"{"a":[{"b":1,"b":1}]}"#, None));
        assert!(members_are_unique(br#"{"user":{"b":1,"b":1}}"#, Some("user")));
        assert!(!members_are_unique(br#"{"user":1,"user":1}"#, Some("user")));
    }
}
