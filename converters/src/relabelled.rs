//! A source whose labels are renumbered to match the dataset that it is added to.
//!
//! ```text
//! dataset   class_names = [cat, dog]         label 0, 1
//! source    class_names = [ant, dog]         label 0, 1  ->  2, 1
//! result    class_names = [cat, dog, ant]
//! ```
//! The numbers of a source without class names are taken for those of the dataset, but for a source of datasets, which
//! could have names. A number without a name makes a bad sample. -1, which some datasets use for no label, is left
//! unchanged. `split` and `split_names` are handled the same way, and any other attribute with `NAME_names`.

use grainstore_format::{AttributeValue, CLASS_NAMES, Metadata};
use grainstore_sources::numbering::{Numbering, merge_names, names_in, numbered};
use grainstore_sources::{Format, Source};
use serde_json::Value;

use crate::changed::{ChangeAttributes, Changed};

impl ChangeAttributes for Numbering {
    fn change(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String> {
        self.apply(attributes)
    }
}

/// Compares the names of both. The dataset's names come first, new ones after them.
///
/// # Errors
/// Where the source has names for an attribute that has none in the dataset, or names cannot be held.
pub(crate) fn relabelled<'a>(source: &'a dyn Source, dataset: &Metadata) -> Result<Changed<'a, Numbering>, String> {
    let mut metadata = Metadata { schema: source.description().metadata.schema.clone(), user: dataset.user.clone() };
    let mut numberings = Vec::new();
    let schema = metadata.schema.clone();
    for (place, name, list) in numbered(&schema) {
        // What it becomes there: types are fitted afterwards.
        let in_dataset = dataset.schema.attribute(name).map(|place| &dataset.schema.attributes()[place].kind);
        let kind = in_dataset.unwrap_or(&schema.attributes()[place].kind).clone();
        let own = names_in(&source.description().metadata.user, &list)?;
        let numbers = match (names_in(&dataset.user, &list)?, own) {
            (Some(_), None) if source.description().kind == Format::Dataset.name() => {
                let why = "its own have, so it is unknown which numbers are the same";
                return Err(format!(
                    "the new samples' numbers of \"{name}\" have no names ({list} of the user metadata), {why}"
                ));
            }
            (Some(mut all), new) => {
                let numbers = match new {
                        Some(new) => merge_names(&mut all, new).map_err(|why| {
                            format!(
                                "the names of the new samples' \"{name}\" ({list} of the user metadata) are not its own, and \
                                 it is unknown which numbers are the same: {why}"
                            )
                        })?,
                        None => (0..).take(all.len()).collect(),
                    };
                metadata.user =
                    metadata.user.with_member(&list, &Value::Array(all)).map_err(|error| error.to_string())?;
                numbers
            }
            (None, Some(_)) if dataset.schema.attribute(name).is_some() => {
                let why = "those of the new samples have, so it is unknown which numbers are the same";
                return Err(format!("its numbers of \"{name}\" have no names ({list} of the user metadata), {why}"));
            }
            // Either another schema, which the writer reports, or numbers without names in both.
            (None, _) => continue,
        };
        numberings.push(Numbering { name: name.to_owned(), attribute: place, numbers, kind });
    }
    let members = [&dataset.user, &source.description().metadata.user];
    let [theirs, new] = members.map(|user| names_in(user, CLASS_NAMES));
    let (theirs, new) = (theirs?, new?);
    let numbered = numbered(&schema);
    // Where nothing is numbered, they name nothing.
    let is_unknown = !numbered.is_empty() && !numbered.iter().any(|(_, _, list)| list == CLASS_NAMES);
    if is_unknown && theirs.is_some() && new.is_some() && theirs != new {
        return Err(format!(
            "its {CLASS_NAMES} are not those of the new samples, and it is unknown whose numbers have them, as no \
                 attribute is \"label\""
        ));
    }
    Ok(Changed::new(source, metadata, numberings))
}
