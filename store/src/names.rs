//! The names of an attribute's numbers, which the user metadata list. order.md: SUB-8.

use std::collections::BTreeMap;

use grainstore_format::{Attribute, CLASS_NAMES, FormatError};
use serde_json::Value;

use crate::{Collection, Dataset, StoreError};

impl Dataset {
    /// The names of an integer attribute's numbers: the number `k` is called `names[k]`. `None` where they have none, and
    /// for an attribute of another type.
    ///
    /// # Errors
    /// If the list cannot be held.
    pub fn names(&self, attribute: &str) -> Result<Option<Vec<Value>>, StoreError> {
        let is_named = |one: &&Attribute| one.name == attribute && one.kind.is_integer();
        let named = self.schema().attributes().iter().find(is_named);
        let Some(member) = named.and_then(|one| self.schema().names_member(&one.name)) else { return Ok(None) };
        let names = self.user_metadata().member(&member);
        match names.map_err(|source| StoreError::format(self.path(), source))? {
            Some(Value::Array(names)) => Ok(Some(names)),
            _ => Ok(None),
        }
    }

    /// All lists of names by their members of the user metadata, and `class_names` whatever they are.
    pub(crate) fn all_names(&self) -> Result<BTreeMap<String, Value>, StoreError> {
        let failed = |source: FormatError| StoreError::format(self.path(), source);
        let integers = self.schema().attributes().iter().filter(|attribute| attribute.kind.is_integer());
        let members: Vec<String> = integers.filter_map(|one| self.schema().names_member(&one.name)).collect();
        let members = members.iter().map(String::as_str).filter(|member| *member != CLASS_NAMES).chain([CLASS_NAMES]);
        let user = self.user_metadata();
        let mut names = BTreeMap::new();
        for member in user.present(members).map_err(failed)? {
            match user.member(member).map_err(failed)? {
                Some(value) if member == CLASS_NAMES || value.is_array() => {
                    drop(names.insert(member.to_owned(), value))
                }
                _ => {} // the user's own
            }
        }
        Ok(names)
    }
}

impl Collection {
    /// [`Dataset::names`], the same in all members.
    ///
    /// # Errors
    /// As [`Dataset::names`] and [`Collection::member`].
    pub fn names(&self, attribute: &str) -> Result<Option<Vec<Value>>, StoreError> {
        self.member(0)?.names(attribute)
    }
}
