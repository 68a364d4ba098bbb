//! The user metadata of several datasets as one, and what that changes in the numbers of their samples.

use std::path::Path;

use grainstore_format::{Metadata, Schema, UserMetadata, escape_bytes, shown_path};
use grainstore_store::Dataset;
use serde_json::{Map, Value};

use super::shape::Shape;
use crate::numbering::{NUMBERED, Numbering, merge_names, names_in};
use crate::{Remark, SourceError};

/// The user metadata of all datasets together.
pub(super) struct MergedUser {
    pub(super) user: UserMetadata,
    /// For each dataset, how its numbers change.
    pub(super) numberings: Vec<Vec<Numbering>>,
    pub(super) warnings: Vec<Remark>,
}

impl MergedUser {
    /// The members of the first dataset, then those that only later ones have. Lists of names are merged; of another
    /// member that differs the first one's value stays, with a warning.
    ///
    /// # Errors
    /// Where some samples are numbered by names and others are not, or metadata cannot be held.
    pub(super) fn of(datasets: &[Dataset], shapes: &[Shape]) -> Result<Self, SourceError> {
        let user = datasets.first().map(|dataset| dataset.user_metadata().clone()).unwrap_or_default();
        let mut merged = Self { user, numberings: vec![Vec::new()], warnings: Vec::new() };
        for (dataset, shape) in datasets.iter().zip(shapes).skip(1) {
            merged.add(dataset, shape, &datasets[0]).map_err(|why| SourceError::refused(dataset.path(), why))?;
        }
        if let (Some(first), Some(shape)) = (datasets.first(), shapes.first()) {
            let refused = |error: grainstore_format::FormatError| SourceError::refused(first.path(), error.to_string());
            for (name, list) in NUMBERED {
                // The names of numbers that are not taken say nothing, and must not name others that are added.
                if first.schema().attribute(name).is_some_and(|place| !shape.attributes.contains(&place)) {
                    merged.user = merged.user.without_member(list).map_err(refused)?;
                }
            }
        }
        Ok(merged)
    }

    fn add(&mut self, dataset: &Dataset, shape: &Shape, first: &Dataset) -> Result<(), String> {
        if self.user == *dataset.user_metadata() {
            self.numberings.push(Vec::new());
            return Ok(());
        }
        let text = |error: grainstore_format::FormatError| error.to_string();
        let mut numberings = Vec::new();
        for (name, list) in NUMBERED {
            let place = dataset.schema().attribute(name);
            let Some(attribute) = shape.attributes.iter().position(|&taken| Some(taken) == place) else { continue };
            let all = names_in(&metadata_of(&self.user, dataset.schema()), list)?;
            let own = names_in(&metadata_of(dataset.user_metadata(), dataset.schema()), list)?;
            let (Some(mut all), Some(own)) = (all.clone(), own.clone()) else {
                if all.is_some() != own.is_some() {
                    let first = shown_path(first.path());
                    return Err(format!(
                        "the numbers of \"{name}\" have names ({list} of the user metadata) in only one of {first} and \
                         this, so it is unknown which numbers are the same"
                    ));
                }
                continue;
            };
            let numbers = merge_names(&mut all, own);
            self.user = self.user.with_member(list, &Value::Array(all)).map_err(text)?;
            numberings.push(Numbering { name, attribute, numbers });
        }
        self.add_members(dataset, first.path())?;
        self.numberings.push(numberings);
        Ok(())
    }

    fn add_members(&mut self, dataset: &Dataset, first: &Path) -> Result<(), String> {
        let text = |error: grainstore_format::FormatError| error.to_string();
        let members: Map<String, Value> =
            serde_json::from_str(dataset.user_metadata().text()).map_err(|error| error.to_string())?;
        for (name, value) in members {
            match self.user.member(&name).map_err(text)? {
                None => self.user = self.user.with_member(&name, &value).map_err(text)?,
                Some(_) if NUMBERED.iter().any(|(_, list)| *list == name) => {}
                Some(known) if known == value => {}
                Some(_) => self.warnings.push(
                    format!(
                        "the user metadata differ in \"{}\": that of {} is kept, not that of {}",
                        escape_bytes(name.as_bytes()),
                        shown_path(first),
                        shown_path(dataset.path())
                    )
                    .into(),
                ),
            }
        }
        Ok(())
    }
}

fn metadata_of(user: &UserMetadata, schema: &Schema) -> Metadata {
    Metadata { schema: schema.clone(), user: user.clone() }
}
