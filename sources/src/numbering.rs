//! Numbers of an attribute that are indexes of names: `label` and `class_names`, `split` and `split_names`, and so on.
//!
//! ```text
//! first     class_names = [cat, dog]         label 0, 1
//! second    class_names = [ant, dog]         label 0, 1  ->  2, 1
//! together  class_names = [cat, dog, ant]
//! ```
//! -1, which some datasets use for no label, is left unchanged. Integers of all widths are changed, and truth values.

use std::collections::HashMap;

use grainstore_format::{Attribute, AttributeType, AttributeValue, Schema, UserMetadata};
use serde_json::Value;

/// The attributes whose values can be indexes of names: the place of each, its name, and the member with the names.
#[must_use]
pub fn numbered(schema: &Schema) -> Vec<(usize, &str, String)> {
    use AttributeType::{Bfloat16, Float16, Float32, Float64, Opaque, Timestamp};
    let can_have_names = |attribute: &Attribute| {
        !matches!(attribute.kind, Float16 | Bfloat16 | Float32 | Float64 | Timestamp | Opaque(_))
    };
    let mut numbered = Vec::new();
    for (place, attribute) in schema.attributes().iter().enumerate().filter(|(_, attribute)| can_have_names(attribute))
    {
        if let Some(list) = schema.names_member(&attribute.name) {
            numbered.push((place, attribute.name.as_str(), list));
        }
    }
    numbered
}

/// How the numbers of an attribute are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// The attribute's name.
    pub name: String,
    /// Its index among the attributes.
    pub attribute: usize,
    /// For each old number, the new one.
    pub numbers: Vec<i64>,
}

/// The names that user metadata hold under `list`; `None` where it is no list.
///
/// # Errors
/// Where they cannot be held.
pub fn names_in(user: &UserMetadata, list: &str) -> Result<Option<Vec<Value>>, String> {
    match user.member(list).map_err(|error| error.to_string())? {
        Some(Value::Array(names)) => Ok(Some(names)),
        _ => Ok(None),
    }
}

/// Adds new names to `all`; returns the index of each name of `new` in it.
pub fn merge_names(all: &mut Vec<Value>, new: Vec<Value>) -> Vec<i64> {
    let mut numbers: HashMap<Value, i64> = HashMap::new();
    let mut next = 0;
    for name in all.iter() {
        numbers.entry(name.clone()).or_insert(next);
        next += 1;
    }
    let number_of = |name: Value| {
        *numbers.entry(name).or_insert_with_key(|name| {
            all.push(name.clone());
            next += 1;
            next - 1
        })
    };
    new.into_iter().map(number_of).collect()
}

impl Numbering {
    /// Changes the number among a sample's attributes.
    ///
    /// # Errors
    /// A number that has no name, or one that its type does not hold.
    pub fn apply(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String> {
        let Some(Some(value)) = attributes.get_mut(self.attribute) else { return Ok(()) };
        let number = match value {
            AttributeValue::Int(-1) => return Ok(()),
            // A category has its name.
            AttributeValue::Category(_) => return Ok(()),
            AttributeValue::Int(number) => usize::try_from(*number).ok(),
            AttributeValue::Uint(number) => usize::try_from(*number).ok(),
            AttributeValue::Bool(number) => Some(usize::from(*number)),
            _ if self.changes_nothing() => return Ok(()),
            other => return Err(format!("its {} is {other}, and names have integers", self.name)),
        };
        let new = number.and_then(|number| self.numbers.get(number)).copied();
        let new =
            new.ok_or_else(|| format!("its {} is {}, and there are {} names", self.name, value, self.numbers.len()))?;
        *value = match value {
            AttributeValue::Uint(_) => AttributeValue::Uint(new.unsigned_abs()),
            AttributeValue::Bool(_) if new > 1 => {
                return Err(format!("its {} becomes {new}, which a bool does not hold", self.name));
            }
            AttributeValue::Bool(_) => AttributeValue::Bool(new == 1),
            _ => AttributeValue::Int(new),
        };
        Ok(())
    }

    fn changes_nothing(&self) -> bool {
        (0..).zip(&self.numbers).all(|(old, &new)| old == new)
    }
}
