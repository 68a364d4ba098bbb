//! JSON documents as the format uses them: UTF-8, structures that are objects, members that are ignored without being
//! built. spec.md: CON-8, MAN-2, MET-1.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::FormatError;

/// A structure that must be a JSON object. Without it, an array of the members' values would be read as well.
pub(crate) struct Object<T>(pub(crate) T);

/// Reads a document that is one object. Unknown members cost no memory, whatever they hold.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &'static str, bytes: &'a [u8]) -> Result<T, FormatError> {
    // Checked first: strings that are ignored would not be checked.
    let text = std::str::from_utf8(bytes).map_err(|error| FormatError::damaged(what, error.to_string()))?;
    let object: Object<T> =
        serde_json::from_str(text).map_err(|error| FormatError::damaged(what, error.to_string()))?;
    Ok(object.0)
}

/// Reads an optional member, which must not be `null` where it is present.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}
