//! Numbers of an attribute that are indexes of names: `label` and `class_names`, `split` and `split_names`, and so on.
//!
//! ```text
//! first     class_names = [cat, dog]         label 0, 1
//! second    class_names = [ant, dog]         label 0, 1  ->  2, 1
//! together  class_names = [cat, dog, ant]
//! ```
//! -1, which some datasets use for no label, is left unchanged. Integers of all widths are changed, and a label that is a truth value.

use std::collections::HashMap;

use grainstore_format::{Attribute, AttributeType, AttributeValue, CLASS_NAMES, Schema, UserMetadata, escape_bytes};
use serde_json::Value;

/// The attributes whose values can be indexes of names: the place of each, its name, and the member with the names.
#[must_use]
pub fn numbered(schema: &Schema) -> Vec<(usize, &str, String)> {
    let is_label = |one: &Attribute| one.kind == AttributeType::Bool && one.name == "label";
    let has_names = |one: &Attribute| one.kind.is_integer() || is_label(one);
    let named = schema.attributes().iter().enumerate().filter(|(_, attribute)| has_names(attribute));
    named.filter_map(|(place, one)| Some((place, one.name.as_str(), schema.names_member(&one.name)?))).collect()
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
    /// The type that the new numbers must fit.
    pub kind: AttributeType,
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
///
/// # Errors
/// Where it is unknown which numbers are the same: a name is there twice, or is no text, and neither list is the
/// beginning of the other.
pub fn merge_names(all: &mut Vec<Value>, new: Vec<Value>) -> Result<Vec<i64>, String> {
    let shared = all.len().min(new.len());
    if all[..shared] == new[..shared] {
        let numbers = (0..).take(new.len()).collect();
        all.extend(new.into_iter().skip(shared));
        return Ok(numbers);
    }
    let own = texts_by_number(all)?;
    texts_by_number(&new)?;
    let mut numbers: HashMap<String, i64> = own;
    let mut merged = Vec::with_capacity(new.len());
    for name in new {
        let next = all.len() as i64;
        let text = name.as_str().unwrap_or_default().to_owned();
        merged.push(*numbers.entry(text).or_insert(next));
        if merged.last() == Some(&next) {
            all.push(name);
        }
    }
    Ok(merged)
}

/// The numbers of names that are all different texts.
fn texts_by_number(names: &[Value]) -> Result<HashMap<String, i64>, String> {
    let mut numbers = HashMap::new();
    for (number, name) in (0..).zip(names) {
        let Some(text) = name.as_str() else { return Err(format!("the name of {number} is {name}, not a text")) };
        if let Some(other) = numbers.insert(text.to_owned(), number) {
            return Err(format!("{other} and {number} are both called \"{}\"", escape_bytes(text.as_bytes())));
        }
    }
    Ok(numbers)
}

/// The user metadata `user` of samples with the attributes `own`, for samples with those of `made`: lists of names go
/// with their attributes, under the name that these get there, and those of attributes that are not taken are left out.
/// `from` says of each attribute of `made` which of `own` it is. Also what was left out though its attribute was taken.
///
/// # Errors
/// Where an attribute with a new name would get names that are not its own, or names cannot be held.
pub fn taken_names(
    user: &UserMetadata,
    own: &Schema,
    (made, from): (&Schema, &[Option<usize>]),
) -> Result<(UserMetadata, Vec<String>), String> {
    let text = |error: grainstore_format::FormatError| error.to_string();
    let shown = |name: &str| escape_bytes(name.as_bytes());
    let (mut rest, mut moved, mut left_out) = (user.clone(), Vec::new(), Vec::new());
    let all_made = numbered(made);
    let becomes = |place: usize| from.iter().position(|from| *from == Some(place));
    for (place, name, list) in numbered(own) {
        let target = becomes(place).map(|at| (at, all_made.iter().find(|(made, ..)| *made == at)));
        if matches!(target, Some((_, Some((_, _, to)))) if *to == list) {
            continue;
        }
        // Only lists are names; anything else may be the user's own.
        let Some(names) = names_in(&rest, &list)? else { continue };
        rest = rest.without_member(&list).map_err(text)?;
        match target {
            Some((_, Some((_, _, to)))) => moved.push((to, names)),
            Some((_, None)) => left_out.push(format!(
                "the names of \"{}\" ({}) are left out: beside a label, {CLASS_NAMES} are the label's",
                shown(name),
                shown(&list)
            )),
            None => {}
        }
    }
    for (at, name, list) in &all_made {
        let old = from.get(*at).copied().flatten().and_then(|place| own.attributes().get(place));
        let is_renamed = old.is_some_and(|old| old.name != *name);
        let gets_names = moved.iter().any(|(to, _)| *to == list);
        let is_taken =
            if gets_names { rest.member(list).map_err(text)?.is_some() } else { names_in(&rest, list)?.is_some() };
        if is_renamed && is_taken {
            return Err(format!(
                "\"{}\" would have the names in {} of the user metadata, which are not its own: give the attribute another \
                 name",
                shown(name),
                shown(list)
            ));
        }
    }
    for (list, names) in moved {
        rest = rest.with_member(list, &Value::Array(names)).map_err(text)?;
    }
    Ok((rest, left_out))
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
            AttributeValue::Int(number) => usize::try_from(*number).ok(),
            AttributeValue::Uint(number) => usize::try_from(*number).ok(),
            AttributeValue::Bool(number) => Some(usize::from(*number)),
            other => return Err(format!("its {} is {other}, and names have integers", self.name)),
        };
        let new = number.and_then(|number| self.numbers.get(number)).copied();
        let new =
            new.ok_or_else(|| format!("its {} is {}, and there are {} names", self.name, value, self.numbers.len()))?;
        let held = match value {
            AttributeValue::Bool(_) => (new <= 1).then_some(AttributeValue::Bool(new == 1)),
            _ => self.kind.whole(new.into()),
        };
        let kind = self.kind.name();
        *value = held.ok_or_else(|| format!("its {} becomes {new}, which {kind} cannot hold", self.name))?;
        Ok(())
    }
}
