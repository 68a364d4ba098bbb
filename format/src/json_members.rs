//! Members of a JSON object that this version does not use. No name may appear twice, at any depth. spec.md: CON-8.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The names of the members of a JSON object; empty for other JSON values.
#[derive(Default)]
pub(crate) struct JsonMembers(BTreeSet<String>);

impl JsonMembers {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for JsonMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJsonValue)
    }
}

struct AnyJsonValue;

impl<'de> Visitor<'de> for AnyJsonValue {
    type Value = JsonMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_unit<E: Error>(self) -> Result<JsonMembers, E> {
        Ok(JsonMembers::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonMembers, A::Error> {
        while items.next_element::<JsonMembers>()?.is_some() {}
        Ok(JsonMembers::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonMembers, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, _)) = members.next_entry::<String, JsonMembers>()? {
            if let Some(twice) = names.replace(name) {
                let twice = crate::escape_bytes(twice.as_bytes());
                return Err(A::Error::custom(format!("member \"{twice}\" appears twice")));
            }
        }
        Ok(JsonMembers(names))
    }
}

#[cfg(test)]
mod tests {
    use super::JsonMembers;

    /// CON-8
    #[test]
    fn refuses_a_member_that_appears_twice_at_any_depth() {
        let names = |text: &str| {
            let members: Result<JsonMembers, _> = serde_json::from_str(text);
            members.map(|members| members.names().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(names(r#"{"b":[null,true,1,-1,0.5,"x"],"a":{"b":1}}"#).unwrap(), ["a", "b"]);
        assert!(names(r#"{"a":1,"a":1}"#).unwrap_err().to_string().contains("\"a\" appears twice"));
        assert!(names(r#"{"a":[{"b":1,"b":1}]}"#).is_err());
    }
}
