//! One dataset, or several as one, end to end: what the reader reads.
//!
//! ```text
//! members    |     a.grain     |  b.grain  |      c.grain      |
//! ordinals   0 ............... 5 ......... 8 .................. 14     end to end, and so are segments
//! ```
//!
//! Queries to a single dataset are passed on directly. Of several, each is opened when it is first needed (`member`)
//! and must have the schema of the first (`agreement`); ordinals and segments are numbered across all of them
//! (`several`). Samples are not drawn from members by weights: the plan orders the samples of all members, and a
//! mixture by weights would be another order. order.md: PLN-8.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{ChunkSize, Fingerprint, Schema, UserMetadata};

pub use self::columns::{CollectionColumn, MergedCategories};
use self::member::{MemberDataset, Sums};
use self::several::Several;
use crate::{Dataset, OpenOptions, OpenedFile, StoreError};

mod agreement;
mod columns;
mod member;
mod samples;
mod several;

/// One dataset, or several as one, end to end. A cheap clone shares everything.
///
/// An error about a sample names the member's file, and the sample's ordinal in that member.
#[derive(Clone)]
pub struct Collection(OneOrSeveral);

#[derive(Clone)]
enum OneOrSeveral {
    One(Dataset),
    Several(Arc<Several>),
}

impl From<Dataset> for Collection {
    fn from(dataset: Dataset) -> Self {
        Self(OneOrSeveral::One(dataset))
    }
}

impl Collection {
    /// The datasets at `paths` as one, in this order; a path may be given twice. If there are several, each is opened
    /// with `options` to read its facts, closed again, and opened later when it is needed: it must not have been
    /// replaced meanwhile.
    ///
    /// # Errors
    /// As [`Dataset::open_with`], and if there is no path, or datasets differ in their attributes or fields (by name,
    /// type or order), or in whether they have keys.
    pub fn open(paths: &[impl AsRef<Path>], options: &OpenOptions) -> Result<Self, StoreError> {
        match paths {
            [] => Err(StoreError::NoMembers),
            [only] => Dataset::open_with(only.as_ref(), options).map(Self::from),
            [first, others @ ..] => Several::closed(first.as_ref(), others, options).map(Self::of_several),
        }
    }

    /// Opened datasets as one, in this order. They stay open.
    ///
    /// # Errors
    /// As [`Collection::open`].
    pub fn of(datasets: Vec<Dataset>) -> Result<Self, StoreError> {
        let mut datasets = datasets.into_iter();
        let first = datasets.next().ok_or(StoreError::NoMembers)?;
        match datasets.len() {
            0 => Ok(Self::from(first)),
            _ => Several::open(first, datasets.collect()).map(Self::of_several),
        }
    }

    /// Samples of all members, as [`Collection::sample_count`].
    pub fn len(&self) -> u64 {
        self.sample_count()
    }

    /// Whether no member has a sample; a dataset has at least one.
    pub fn is_empty(&self) -> bool {
        self.sample_count() == 0
    }

    /// Samples of all members.
    pub fn sample_count(&self) -> u64 {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.sample_count(),
            OneOrSeveral::Several(several) => several.sample_count(),
        }
    }

    /// The fingerprint of the only dataset, or one made of the fingerprints and sample counts of all, in order.
    pub fn fingerprint(&self) -> Fingerprint {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.fingerprint(),
            OneOrSeveral::Several(several) => several.fingerprint(),
        }
    }

    /// The largest chunk size of the members.
    pub fn chunk_size(&self) -> ChunkSize {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.geometry().chunk_size,
            OneOrSeveral::Several(several) => several.chunk_size,
        }
    }

    /// Names and types of attributes and fields, the same in all members.
    pub fn schema(&self) -> &Schema {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.schema(),
            OneOrSeveral::Several(several) => &several.agreement.schema,
        }
    }

    /// The user's own metadata of the first member, such as `class_names`. Of the others, only the names of numbers are compared.
    pub fn user_metadata(&self) -> &UserMetadata {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.user_metadata(),
            OneOrSeveral::Several(several) => &several.agreement.user,
        }
    }

    /// Whether the samples have keys: those of all members, or of none.
    pub fn is_keyed(&self) -> bool {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.is_keyed(),
            OneOrSeveral::Several(several) => several.agreement.is_keyed,
        }
    }

    /// Whether the fields of some member have columns in its index. If not, the only field is the whole payload.
    pub fn has_field_columns(&self) -> bool {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.has_field_columns(),
            OneOrSeveral::Several(several) => several.has_field_columns,
        }
    }

    /// Segments of all members, numbered end to end.
    pub fn segment_count(&self) -> usize {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.segments().len(),
            OneOrSeveral::Several(several) => several.segment_count(),
        }
    }

    /// The path of a segment's file, once [`Collection::segment_file`] has checked it. For a member that is not open,
    /// or a segment that does not exist, the member's path: enough for a message.
    pub fn segment_path(&self, segment: usize) -> &Path {
        match &self.0 {
            OneOrSeveral::One(dataset) => {
                dataset.segments().get(segment).map_or_else(|| dataset.path(), |one| one.path())
            }
            OneOrSeveral::Several(several) => several.segment_path(segment),
        }
    }

    /// Checks the file of a segment: [`Dataset::segment_file`].
    ///
    /// # Errors
    /// As [`Dataset::segment_file`] and [`Collection::member`].
    pub fn segment_file(&self, segment: usize) -> Result<(), StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.segment_file(segment),
            OneOrSeveral::Several(several) => {
                let (member, segment) = several.dataset_of_segment(segment)?;
                member.segment_file(segment)
            }
        }
    }

    /// Checks that an open file is a segment: [`Dataset::check_opened_segment`].
    ///
    /// # Errors
    /// As [`Dataset::check_opened_segment`] and [`Collection::member`].
    pub fn check_opened_segment<E: From<StoreError>>(
        &self,
        segment: usize,
        file: OpenedFile<'_>,
        read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.check_opened_segment(segment, file, read),
            OneOrSeveral::Several(several) => {
                let (member, segment) = several.dataset_of_segment(segment)?;
                member.check_opened_segment(segment, file, read)
            }
        }
    }

    /// The error of a segment whose file is not there: [`Dataset::missing_segment_file`], or why its member cannot be
    /// opened.
    pub fn missing_segment_file(&self, segment: usize) -> StoreError {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.missing_segment_file(segment),
            OneOrSeveral::Several(several) => match several.dataset_of_segment(segment) {
                Ok((member, segment)) => member.missing_segment_file(segment),
                Err(error) => error,
            },
        }
    }

    /// [`Dataset::notices`] of every member that is open.
    pub fn notices(&self) -> Vec<String> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.notices(),
            OneOrSeveral::Several(several) => {
                several.members().iter().filter_map(MemberDataset::opened).flat_map(Dataset::notices).collect()
            }
        }
    }

    /// The sum of the lengths of the files of all segments, in bytes.
    pub fn segment_bytes(&self) -> u64 {
        match &self.0 {
            OneOrSeveral::One(dataset) => member::segment_bytes(dataset),
            OneOrSeveral::Several(several) => several.segment_bytes,
        }
    }

    /// Sum of the stored lengths of all samples, in bytes.
    ///
    /// # Errors
    /// As [`Dataset::stored_bytes`] and [`Collection::member`], neither of which the newest generations need.
    pub fn stored_bytes(&self) -> Result<u64, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.stored_bytes(),
            OneOrSeveral::Several(several) => several.sum(|sums: &Sums| sums.stored_bytes, Dataset::stored_bytes),
        }
    }

    /// Sum of the raw lengths of all samples, in bytes.
    ///
    /// # Errors
    /// As [`Collection::stored_bytes`].
    pub fn payload_bytes(&self) -> Result<u64, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.payload_bytes(),
            OneOrSeveral::Several(several) => several.sum(|sums: &Sums| sums.payload_bytes, Dataset::payload_bytes),
        }
    }

    /// [`Dataset::load`] of every member.
    ///
    /// # Errors
    /// As [`Dataset::load`] and [`Collection::member`].
    pub fn load(&self) -> Result<(), StoreError> {
        self.members().try_for_each(|member| member?.load())
    }

    /// Whether [`Dataset::is_loaded`] holds for every member.
    pub fn is_loaded(&self) -> bool {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.is_loaded(),
            OneOrSeveral::Several(several) => {
                several.members().iter().all(|member| member.opened().is_some_and(Dataset::is_loaded))
            }
        }
    }

    /// [`Dataset::load_if_small`] of every member.
    ///
    /// # Errors
    /// As [`Dataset::load_if_small`] and [`Collection::member`].
    pub fn load_if_small(&self) -> Result<(), StoreError> {
        self.members().try_for_each(|member| member?.load_if_small())
    }

    /// [`Dataset::load_ahead`] of every member.
    ///
    /// # Errors
    /// As [`Dataset::load_ahead`] and [`Collection::member`].
    pub fn load_ahead(&self) -> Result<(), StoreError> {
        self.members().try_for_each(|member| member?.load_ahead())
    }

    /// [`Dataset::check_load`] of every member that is open.
    ///
    /// # Errors
    /// As [`Dataset::check_load`].
    pub fn check_load(&self) -> Result<(), StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.check_load(),
            OneOrSeveral::Several(several) => {
                several.members().iter().filter_map(MemberDataset::opened).try_for_each(Dataset::check_load)
            }
        }
    }

    /// The number of datasets, at least 1.
    pub fn member_count(&self) -> usize {
        match &self.0 {
            OneOrSeveral::One(_) => 1,
            OneOrSeveral::Several(several) => several.members().len(),
        }
    }

    /// A member, opened if needed: for its own columns and segments.
    ///
    /// # Errors
    /// If there is no such member, it cannot be opened, or it has been replaced since it was first opened.
    pub fn member(&self, member: usize) -> Result<&Dataset, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) if member == 0 => Ok(dataset),
            OneOrSeveral::One(_) => Err(StoreError::NoSuchMember { member, member_count: 1 }),
            OneOrSeveral::Several(several) => several.member(member),
        }
    }

    /// All members in order, each opened when the iterator reaches it.
    pub fn members(&self) -> impl Iterator<Item = Result<&Dataset, StoreError>> + '_ {
        (0..self.member_count()).map(|member| self.member(member))
    }

    /// The ordinals of a member's samples; empty if there is no such member. No member is opened.
    pub fn member_ordinals(&self, member: usize) -> Range<u64> {
        match &self.0 {
            OneOrSeveral::One(dataset) if member == 0 => 0..dataset.sample_count(),
            OneOrSeveral::One(dataset) => dataset.sample_count()..dataset.sample_count(),
            OneOrSeveral::Several(several) => several.member_ordinals(member),
        }
    }

    /// The member that has sample `ordinal`, and the sample's ordinal in it. No member is opened.
    ///
    /// # Errors
    /// If there is no such sample.
    pub fn locate_member(&self, ordinal: u64) -> Result<(usize, u64), StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.check_ordinal(ordinal).map(|()| (0, ordinal)),
            OneOrSeveral::Several(several) => several.locate_member(ordinal),
        }
    }

    /// The paths of the members, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> + '_ {
        let (only, several) = match &self.0 {
            OneOrSeveral::One(dataset) => (Some(dataset.path()), &[][..]),
            OneOrSeveral::Several(several) => (None, several.members()),
        };
        only.into_iter().chain(several.iter().map(MemberDataset::path))
    }

    fn of_several(several: Several) -> Self {
        Self(OneOrSeveral::Several(Arc::new(several)))
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths()).finish()
    }
}
