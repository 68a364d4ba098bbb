//! The names of numbers after a function of the samples: `convert(..., transform=f)`.
//!
//! A function that does not touch `label` keeps `class_names`, so the source's names stay. Names of what it does not make
//! are left out. A number without a name makes a bad sample; that numbers were changed under the source's names is noticed
//! and reported, as their names may be wrong now.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use grainstore_format::{Attribute, AttributeValue, Metadata, Schema, UserMetadata};
use grainstore_sources::numbering::{names_in, numbered, taken_names};

/// The attributes of the results whose numbers have names.
pub(crate) struct KeptNames(Vec<Named>);

struct Named {
    /// The attribute, its index among those of the results, and among those of the source.
    name: String,
    made: usize,
    given: Option<usize>,
    /// The member of the user metadata with the names, and how many there are.
    list: String,
    name_count: usize,
    /// Whether the function changed a number whose name is still that of the source.
    was_changed: AtomicBool,
    is_of_source: bool,
}

impl KeptNames {
    /// `own` are the names that the user gave with the function; without them, those of the source stay.
    pub(crate) fn of(given: &Metadata, made: Schema, own: Option<UserMetadata>) -> Result<(Self, Metadata), String> {
        let is_of_source = own.is_none();
        let user = match own {
            Some(own) => own,
            None => {
                let places = |attribute: &Attribute| given.schema.attribute(&attribute.name);
                let from: Vec<Option<usize>> = made.attributes().iter().map(places).collect();
                taken_names(&given.user, &given.schema, (&made, &from))?.0
            }
        };
        let mut named = Vec::new();
        for (place, name, list) in numbered(&made) {
            if let Some(names) = names_in(&user, &list)? {
                let given = given.schema.attributes().iter().position(|attribute| attribute.name == name);
                let name_count = names.len();
                let was_changed = AtomicBool::new(false);
                named.push(Named {
                    name: name.to_owned(),
                    made: place,
                    given,
                    list,
                    name_count,
                    was_changed,
                    is_of_source,
                });
            }
        }
        Ok((Self(named), Metadata { schema: made, user }))
    }

    /// The numbers of a sample before the function.
    pub(crate) fn before(&self, attributes: &[Option<AttributeValue>]) -> Vec<Option<i128>> {
        let of_one = |named: &Named| number_in(attributes, named.given?);
        self.0.iter().map(of_one).collect()
    }

    /// Checks the numbers of a result, where -1 is no label.
    pub(crate) fn check(&self, before: &[Option<i128>], attributes: &[Option<AttributeValue>]) -> Result<(), String> {
        for (named, before) in self.0.iter().zip(before) {
            let Some(number) = number_in(attributes, named.made).filter(|&number| number != -1) else { continue };
            if usize::try_from(number).map_or(true, |number| number >= named.name_count) {
                let Named { name, list, name_count, .. } = named;
                return Err(format!(
                    "{name} {number}, and there are {name_count} names (\"{list}\" of the metadata): give the names of the \
                     numbers that it makes, metadata={{\"{list}\": [...]}}"
                ));
            }
            if named.is_of_source && *before != Some(number) {
                named.was_changed.store(true, Relaxed);
            }
        }
        Ok(())
    }

    /// Warnings of numbers that may have the wrong names.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter(|named| named.was_changed.load(Relaxed)).map(|Named { name, list, .. }| {
            format!(
                "the transform changed numbers of \"{name}\", and their names (\"{list}\" of the metadata) are those of the \
                 source: if the numbers mean other classes now, give their names, metadata={{\"{list}\": [...]}}"
            )
        })
    }
}

fn number_in(attributes: &[Option<AttributeValue>], place: usize) -> Option<i128> {
    match attributes.get(place)?.as_ref()? {
        AttributeValue::Int(number) => Some((*number).into()),
        AttributeValue::Uint(number) => Some((*number).into()),
        _ => None,
    }
}
