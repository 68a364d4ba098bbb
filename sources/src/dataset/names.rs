//! The user metadata of several datasets as one, and what that changes in the numbers of their samples.

use std::path::Path;

use grainstore_format::{CLASS_NAMES, Schema, UserMetadata, escape_bytes, shown_path};
use grainstore_store::Dataset;
use serde_json::{Map, Value};

use super::shape::Shape;
use crate::numbering::{Numbering, merge_names, names_in, numbered, taken_names};
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
            let from: Vec<Option<usize>> = shape.attributes.iter().copied().map(Some).collect();
            let taken = taken_names(dataset.user_metadata(), dataset.schema(), (schema, &from));
            let (user, left_out) = taken.map_err(refused)?;
            match &mut merged {
                None => merged = Some(Self { user, numberings: vec![Vec::new()], warnings: Vec::new() }),
                Some(merged) => merged.add(&user, dataset.path(), schema, datasets[0].path()).map_err(refused)?,
            }
            let place = shown_path(dataset.path());
            let left_out = left_out.into_iter().map(|what| Remark::from(format!("{place}: {what}")));
            merged.iter_mut().for_each(|merged| merged.warnings.extend(left_out.clone()));
        }
        merged.ok_or_else(|| SourceError::refused(Path::new(""), "no dataset was named"))
    }

    fn add(&mut self, user: &UserMetadata, path: &Path, schema: &Schema, first: &Path) -> Result<(), String> {
        let (mut numberings, mut merged) = (Vec::new(), Vec::new());
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
                let kind = schema.attributes()[*attribute].kind.clone();
                let unknown = |why: String| {
                    format!(
                        "the names of the numbers of \"{name}\" ({list} of the user metadata) are not those of {}, and it is \
                         unknown which numbers are the same: {why}",
                        shown_path(first)
                    )
                };
                let numbers = merge_names(&mut all, own).map_err(unknown)?;
                merged.push(list.clone());
                self.user = self.user.with_member(list, &Value::Array(all)).map_err(|error| error.to_string())?;
                numberings.push(Numbering { name: (*name).to_owned(), attribute: *attribute, numbers, kind });
            }
            self.add_members(user, path, (&named, &merged), first)?;
        }
        self.numberings.push(numberings);
        Ok(())
    }

    /// Adds all members but the lists of names, which are merged already.
    fn add_members(
        &mut self,
        user: &UserMetadata,
        path: &Path,
        (named, merged): (&[(usize, &str, String)], &[String]),
        first: &Path,
    ) -> Result<(), String> {
        let text = |error: grainstore_format::FormatError| error.to_string();
        let members: Map<String, Value> = serde_json::from_str(user.text()).map_err(|error| error.to_string())?;
        for (name, value) in members {
            match self.user.member(&name).map_err(text)? {
                None => self.user = self.user.with_member(&name, &value).map_err(text)?,
                Some(_) if merged.contains(&name) => {}
                Some(known) if known == value => {}
                Some(_) if named.iter().any(|(_, _, list)| *list == name) => {
                    return Err(format!(
                        "its {name} are not those of {}, and they are no lists, so it is unknown which numbers are the same: \
                         number k is called by item k of a list",
                        shown_path(first)
                    ));
                }
                Some(_) if name == CLASS_NAMES && !named.is_empty() => {
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
