//! Datasets as a source: each segment is a part, each block a run of its samples.

use std::ops::Range;
use std::path::PathBuf;

use grainstore_format::{Metadata, shown_path};
use grainstore_reader::{Expression, SelectError, Subset};
use grainstore_store::{Dataset, OpenOptions, StoreError};
use xxhash_rust::xxh64::Xxh64;

use super::names::MergedUser;
use super::samples::DatasetSamples;
use super::shape::{Shape, shapes};
use crate::numbering::Numbering;
use crate::{
    Bad, BlockBuilder, Blocks, Description, Layout, Mapping, Reach, RecordLocation, Remark, SampleReader, Source,
    SourceError, SourcePart, WHOLE_LEN_MAX,
};

/// How datasets are read.
#[derive(Clone, Debug, Default)]
pub struct DatasetOptions {
    /// New names of attributes and fields: `NEW=OLD`. What is not named keeps its name.
    pub map: Mapping,
    /// The attributes and fields to take, by their names in the dataset; all where it is empty.
    pub only: Vec<String>,
    /// The attributes and fields to leave out.
    pub exclude: Vec<String>,
    /// Takes only samples that meet it.
    pub subset: Option<Expression>,
    /// Whether an adopted dataset may read files outside its parent directory.
    pub allow_external: bool,
}

/// Datasets, directories or lone segments, one after the other.
#[derive(Debug)]
pub struct DatasetSource {
    members: Vec<Member>,
    /// For each part, its dataset and its ordinals in it.
    parts: Vec<(usize, Range<u64>)>,
    description: Description,
}

/// One of the datasets.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) dataset: Dataset,
    pub(super) shape: Shape,
    pub(super) numberings: Vec<Numbering>,
    /// The samples that are taken; `None`: all.
    subset: Option<Subset>,
}

impl DatasetSource {
    /// Opens datasets, and finds the samples to take. No payload is read.
    ///
    /// # Errors
    /// Where one cannot be opened, two differ, a name is unknown, or the condition does not suit them or leaves nothing.
    pub fn open(paths: &[PathBuf], options: &DatasetOptions) -> Result<Self, SourceError> {
        let open_options = OpenOptions { allow_external: options.allow_external, ..OpenOptions::default() };
        let datasets: Vec<Dataset> = paths
            .iter()
            .map(|path| Dataset::open_with(path, &open_options))
            .collect::<Result<_, _>>()
            .map_err(of_store)?;
        Self::of(datasets, options)
    }

    /// Reads datasets that are open already.
    ///
    /// # Errors
    /// As [`DatasetSource::open`].
    pub fn of(datasets: Vec<Dataset>, options: &DatasetOptions) -> Result<Self, SourceError> {
        Self::with_subsets(datasets, options, |dataset| {
            options.subset.as_ref().map(|subset| selected(dataset, subset)).transpose()
        })
    }

    /// Reads some samples of a dataset that is open already.
    ///
    /// # Errors
    /// Where there is none, or as [`DatasetSource::open`].
    pub fn chosen(dataset: Dataset, subset: Subset) -> Result<Self, SourceError> {
        let mut subset = Some(subset);
        Self::with_subsets(vec![dataset], &DatasetOptions::default(), |_| Ok(subset.take()))
    }

    fn with_subsets(
        datasets: Vec<Dataset>,
        options: &DatasetOptions,
        mut subset_of: impl FnMut(&Dataset) -> Result<Option<Subset>, SourceError>,
    ) -> Result<Self, SourceError> {
        let (schema, shapes) = shapes(&datasets, options)?;
        let is_keyed = datasets[0].is_keyed();
        if let Some(other) = datasets.iter().find(|dataset| dataset.is_keyed() != is_keyed) {
            let (has, has_not) = if is_keyed { (&datasets[0], other) } else { (other, &datasets[0]) };
            let why = format!("the samples of {} have keys, those of this have none", shown_path(has.path()));
            return Err(SourceError::refused(has_not.path(), why));
        }
        check_subset(&datasets, options.subset.as_ref())?;
        let merged = MergedUser::of(&datasets, &shapes, &schema)?;
        let origins = datasets.iter().map(|dataset| dataset.path().to_owned()).collect();
        let mut members = Vec::with_capacity(datasets.len());
        for ((dataset, shape), numberings) in datasets.into_iter().zip(shapes).zip(merged.numberings) {
            let subset = subset_of(&dataset)?;
            members.push(Member { dataset, shape, numberings, subset });
        }
        let mut parts = Vec::new();
        let mut described = Vec::new();
        for (number, member) in members.iter().enumerate() {
            for segment in member.dataset.segments() {
                let sample_count = member.count(segment.ordinals());
                if sample_count > 0 {
                    parts.push((number, segment.ordinals()));
                    let path = segment.path().to_owned();
                    described.push(SourcePart { path, len: segment.file_len(), sample_count: Some(sample_count) });
                }
            }
        }
        if parts.is_empty() {
            let condition = options.subset.as_ref().map_or(String::new(), |subset| format!(" that meets {subset}"));
            return Err(SourceError::refused(members[0].dataset.path(), format!("there is no sample{condition}")));
        }
        let warnings = members.iter().flat_map(|member| member.dataset.notices()).map(Remark::from);
        let description = Description {
            is_keyed,
            has_distinct_keys: members.len() == 1,
            is_listed: true,
            not_adoptable: Some("it is a dataset already".into()),
            warnings: merged.warnings.into_iter().chain(warnings).collect(),
            ..Description::new("dataset", origins, Metadata { schema, user: merged.user }, described)
        };
        Ok(Self { members, parts, description })
    }

    fn part(&self, part: usize) -> Result<(&Member, Range<u64>), Bad> {
        let found = self.parts.get(part).and_then(|(member, ordinals)| Some((self.members.get(*member)?, ordinals)));
        found.map(|(member, ordinals)| (member, ordinals.clone())).ok_or_else(|| Bad::no_part(&self.description, part))
    }
}

impl Member {
    /// The ordinals of the samples to take in a range.
    pub(super) fn ordinals(&self, range: Range<u64>) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.subset {
            None => Box::new(range),
            Some(subset) => Box::new(subset.ordinals_in(range)),
        }
    }

    fn count(&self, range: Range<u64>) -> u64 {
        match &self.subset {
            None => range.end - range.start,
            Some(subset) => subset.count_before(range.end) - subset.count_before(range.start),
        }
    }

    /// About how many bytes of memory a payload takes; long ones are streamed.
    pub(super) fn held_len(raw_len: u64) -> u64 {
        raw_len.min(WHOLE_LEN_MAX)
    }
}

impl Source for DatasetSource {
    fn description(&self) -> &Description {
        &self.description
    }

    /// The position of a sample is its ordinal.
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        let (member, range) = self.part(part)?;
        let mut blocks = BlockBuilder::default();
        for ordinal in member.ordinals(range) {
            let location = member.dataset.locate(ordinal).map_err(|error| {
                let location = RecordLocation { record: Some(ordinal), ..RecordLocation::default() };
                bad_of(&self.description.parts[part].path, location, &error, Reach::Rest)
            })?;
            blocks.push(ordinal, Member::held_len(location.raw_len()));
        }
        Ok(Some(blocks.finish()))
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let (member, range) = self.part(part)?;
        let path = &self.description.parts[part].path;
        let ordinals = range.start.max(position).min(range.end)..range.end;
        Ok(Box::new(DatasetSamples::open(member, ordinals, path, layout)?))
    }

    /// A dataset is what its fingerprint says, wherever it is.
    fn stamp(&self) -> u64 {
        let mut hash = Xxh64::new(0);
        for member in &self.members {
            hash.update(member.dataset.fingerprint().to_string().as_bytes());
            hash.update(&member.subset.as_ref().map_or(0, Subset::hash).to_le_bytes());
        }
        hash.digest()
    }
}

/// Checks that a condition suits the datasets: a string that it compares with a category is one of some dataset.
fn check_subset(datasets: &[Dataset], subset: Option<&Expression>) -> Result<(), SourceError> {
    let Some(subset) = subset else { return Ok(()) };
    let mut unfit = None;
    for dataset in datasets {
        match subset.check(dataset) {
            Ok(()) => return Ok(()),
            Err(error) => unfit = unfit.or(Some(error)),
        }
    }
    unfit.map_or(Ok(()), |error| Err(of_selection(error)))
}

/// The samples of a dataset that meet a condition; `ordinal` is that of the dataset.
fn selected(dataset: &Dataset, subset: &Expression) -> Result<Subset, SourceError> {
    let mut words = Vec::new();
    subset.evaluate_into(dataset, 0, &mut words).map_err(of_selection)?;
    Subset::from_words(dataset.sample_count(), words).map_err(|error| of_selection(error.into()))
}

pub(super) fn bad_of(path: &std::path::Path, location: RecordLocation, error: &StoreError, reach: Reach) -> Bad {
    let why = Remark { text: error.to_string(), remedy: error.remedy().map(Box::new) };
    Bad::new(path, location, why, reach)
}

fn of_store(error: StoreError) -> SourceError {
    SourceError::Dataset(Box::new(error))
}

fn of_selection(error: SelectError) -> SourceError {
    SourceError::Selection(Box::new(error))
}
