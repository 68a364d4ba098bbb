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

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::{CLASS_NAMES, Metadata};
use grainstore_sources::numbering::{Numbering, merge_names, names_in, numbered};
use grainstore_sources::{
    Bad, Blocks, Description, Format, Layout, Reach, RecordLocation, SampleReader, Source, SourceSample,
};
use grainstore_writer::StreamedSample;
use serde_json::Value;

pub(crate) struct Relabelled<'a> {
    source: &'a dyn Source,
    /// The description of the source, with the metadata of the result.
    description: Description,
    numberings: Vec<Numbering>,
}

impl<'a> Relabelled<'a> {
    /// Compares the names of both. The dataset's names come first, new ones after them.
    ///
    /// # Errors
    /// Where the source has names for an attribute that has none in the dataset, or names cannot be held.
    pub(crate) fn new(source: &'a dyn Source, dataset: &Metadata) -> Result<Self, String> {
        let mut metadata =
            Metadata { schema: source.description().metadata.schema.clone(), user: dataset.user.clone() };
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
                    return Err(format!(
                        "its numbers of \"{name}\" have no names ({list} of the user metadata), {why}"
                    ));
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
        let description = Description { metadata, ..source.description().clone() };
        Ok(Self { source, description, numberings })
    }
}

impl Source for Relabelled<'_> {
    fn description(&self) -> &Description {
        &self.description
    }
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }
    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        if self.numberings.is_empty() {
            return Ok(samples);
        }
        let path = &self.description.parts[part].path;
        Ok(Box::new(RelabelledSamples { samples, path, numberings: &self.numberings }))
    }
    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}

struct RelabelledSamples<'a> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    numberings: &'a [Numbering],
}

impl RelabelledSamples<'_> {
    fn bad(&self, key: &[u8], why: String) -> Bad {
        let path = self.samples.file().unwrap_or_else(|| self.path.to_owned());
        Bad::new(&path, RecordLocation::of_key(key), why, Reach::Sample)
    }
}

impl SampleReader for RelabelledSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut item = self.samples.next()?;
        let (key, attributes) = match &mut item {
            Some(SourceSample::Whole { sample, .. }) => (&sample.key, &mut sample.attributes),
            Some(SourceSample::Long { sample: StreamedSample { key, attributes, .. }, .. }) => (&*key, attributes),
            Some(SourceSample::LeftOut) | None => return Ok(item),
        };
        let applied = self.numberings.iter().try_for_each(|numbering| numbering.apply(attributes));
        applied.map_err(|why| self.bad(key, why))?;
        Ok(item)
    }
    fn ahead_len(&mut self) -> Option<u64> {
        self.samples.ahead_len()
    }
    fn file(&self) -> Option<PathBuf> {
        self.samples.file()
    }
    fn payload(&mut self) -> &mut dyn Read {
        self.samples.payload()
    }
}
