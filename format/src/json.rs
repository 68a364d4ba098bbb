//! JSON documents as the format uses them: UTF-8, structures that are objects, members that are ignored without being
//! built. spec.md: CON-8, MAN-2, MET-1.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::FormatError;
use crate::memory::check_room;

/// Documents from this many bytes on are refused if there is no memory for what they may hold.
const LONG_LEN: u64 = 1 << 20;
/// How many times its own length a document takes at most while it is read: lists that grow, and texts with escapes.
const GROWTH_MAX: u64 = 4;

/// A structure that must be a JSON object. Without it, an array of the members' values would be read as well.
pub(crate) struct Object<T>(pub(crate) T);

/// Reads a document that is one object. Unknown members cost no memory, whatever they hold.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &'static str, bytes: &'a [u8]) -> Result<T, FormatError> {
    // The JSON library cannot report a lack of memory.
    if bytes.len() as u64 >= LONG_LEN {
        check_room((bytes.len() as u64).saturating_mul(GROWTH_MAX)).map_err(FormatError::no_memory(what))?;
    }
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

/// Reads a list of at most `COUNT_MAX` elements: a longer one is not built.
pub(crate) fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const COUNT_MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor::<T, COUNT_MAX>(PhantomData))
}

struct ListVisitor<T, const COUNT_MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const COUNT_MAX: usize> Visitor<'de> for ListVisitor<T, COUNT_MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {COUNT_MAX} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Vec<T>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = source.next_element()? {
            if elements.len() == COUNT_MAX {
                return Err(A::Error::invalid_length(COUNT_MAX + 1, &self));
            }
            elements.push(element);
        }
        Ok(elements)
    }
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
