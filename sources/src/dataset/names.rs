//! The user metadata of several datasets as one, and what that changes in the numbers of their samples.

use std::path::Path;

use grainstore_format::{CLASS_NAMES, Schema, UserMetadata, escape_bytes, names_member, shown_path};
use grainstore_store::Dataset;
use serde_json::{Map, Value};

use super::shape::Shape;
use crate::numbering::{Numbering, merge_names, names_in, numbered};
use crate::{Remark, SourceError};

/// The user metadata of all datasets together.
pub(super) struct MergedUser {
    pub(super) user: UserMetadata,
    /// For each dataset, how its numbers change.
    pub(super) numberings: Vec<Vec<Numbering>>,
    pub(super) warnings: Vec<Remark>,
}

impl MergedUser {
    /// The members of the first dataset, then those that only later ones have. Lists of names go with their attributes,
    /// under the name that these get, and are merged; of another member that differs the first one's value stays, with a
    /// warning.
    ///
    /// # Errors
    /// Where some samples are numbered by names and others are not, where it is unknown whose names differ, or where
    /// metadata cannot be held.
    pub(super) fn of(datasets: &[Dataset], shapes: &[Shape], schema: &Schema) -> Result<Self, SourceError> {
        let mut merged: Option<Self> = None;
        for (dataset, shape) in datasets.iter().zip(shapes) {
            let refused = |why: String| SourceError::refused(dataset.path(), why);
            let user = taken_user(dataset, shape, schema).map_err(refused)?;
            match &mut merged {
                None => merged = Some(Self { user, numberings: vec![Vec::new()], warnings: Vec::new() }),
                Some(merged) => merged.add(&user, dataset.path(), schema, datasets[0].path()).map_err(refused)?,
            }
        }
        merged.ok_or_else(|| SourceError::refused(Path::new(""), "no dataset was named"))
    }

    fn add(&mut self, user: &UserMetadata, path: &Path, schema: &Schema, first: &Path) -> Result<(), String> {
        let mut numberings = Vec::new();
        let named = numbered(schema);
        if self.user != *user {
            for (attribute, name, list) in &named {
                let (mut all, own) = match (names_in(&self.user, list)?, names_in(user, list)?) {
                    (Some(all), Some(own)) => (all, own),
                    (None, None) => continue,
                    _ => {
                        return Err(format!(
                            "the numbers of \"{name}\" have names ({list} of the user metadata) in only one of {} and \
                             this, so it is unknown which numbers are the same",
                            shown_path(first)
                        ));
                    }
                };
                let numbers = merge_names(&mut all, own);
                self.user = self.user.with_member(list, &Value::Array(all)).map_err(|error| error.to_string())?;
                numberings.push(Numbering { name: (*name).to_owned(), attribute: *attribute, numbers });
            }
            let lists: Vec<String> = named.into_iter().map(|(_, _, list)| list).collect();
            self.add_members(user, path, &lists, first)?;
        }
        self.numberings.push(numberings);
        Ok(())
    }

    /// Adds all members but the lists of names.
    fn add_members(&mut self, user: &UserMetadata, path: &Path, lists: &[String], first: &Path) -> Result<(), String> {
        let text = |error: grainstore_format::FormatError| error.to_string();
        let members: Map<String, Value> = serde_json::from_str(user.text()).map_err(|error| error.to_string())?;
        for (name, value) in members {
            match self.user.member(&name).map_err(text)? {
                None => self.user = self.user.with_member(&name, &value).map_err(text)?,
                Some(_) if lists.contains(&name) => {}
                Some(known) if known == value => {}
                Some(_) if name == CLASS_NAMES && !lists.is_empty() => {
                    return Err(format!(
                        "its {CLASS_NAMES} are not those of {}, and it is unknown whose numbers have them, as no attribute \
                         is \"label\": give the attribute this name",
                        shown_path(first)
                    ));
                }
                Some(_) => self.warnings.push(
                    format!(
                        "the user metadata differ in \"{}\": that of {} is kept, not that of {}",
                        escape_bytes(name.as_bytes()),
                        shown_path(first),
                        shown_path(path)
                    )
                    .into(),
                ),
            }
        }
        Ok(())
    }
}

/// The user metadata of a dataset for what is taken of it: the lists of names have the names that their attributes get,
/// and those of attributes that are not taken are left out.
fn taken_user(dataset: &Dataset, shape: &Shape, schema: &Schema) -> Result<UserMetadata, String> {
    let text = |error: grainstore_format::FormatError| error.to_string();
    let mut user = dataset.user_metadata().clone();
    let mut lists = Vec::new();
    for (place, own, list) in numbered(dataset.schema()) {
        let taken = shape.attributes.iter().position(|&taken| taken == place);
        let name = taken.and_then(|taken| schema.attributes().get(taken)).map(|taken| taken.name.as_str());
        if name == Some(own) {
            continue;
        }
        // Only lists are names; anything else may be the user's own.
        if let Some(names) = names_in(&user, &list)? {
            user = user.without_member(&list).map_err(text)?;
            lists.extend(name.map(|name| (names_member(name), Value::Array(names))));
        }
    }
    for (list, names) in lists {
        user = user.with_member(&list, &names).map_err(text)?;
    }
    Ok(user)
}
