//! Several datasets end to end: which of them has an ordinal or a segment, numbered across all of them.
//! order.md: PLN-8.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use grainstore_format::{AttributeValue, Categories, ChunkSize, DatasetFingerprint, Fingerprint};

use super::agreement::Agreement;
use super::member::{MemberDataset, Sums};
use crate::{Dataset, Location, OpenOptions, PayloadError, StoreError};

/// Two datasets or more.
#[derive(Debug)]
pub(super) struct Several {
    members: Vec<MemberDataset>,
    /// The first ordinal of each member, then the sample count.
    first_ordinals: Vec<u64>,
    /// The first segment of each member, then the segment count.
    first_segments: Vec<usize>,
    chain: DatasetFingerprint,
    pub(super) chunk_size: ChunkSize,
    pub(super) segment_bytes: u64,
    pub(super) has_field_columns: bool,
    pub(super) agreement: Agreement,
    /// For each attribute, the categories of all members and each member's codes in them, once they are merged.
    merged_categories: Vec<OnceLock<(Categories, Vec<Vec<u32>>)>>,
}

/// A sample, and its member.
struct SampleOfMember<'a> {
    member: &'a MemberDataset,
    number: usize,
    /// The sample's ordinal in the member.
    ordinal: u64,
}

impl Several {
    /// Opens each dataset to read its facts, and closes it again. There is at least one path.
    pub(super) fn closed(first: &Path, others: &[impl AsRef<Path>], options: &OpenOptions) -> Result<Self, StoreError> {
        let open = |path: &Path| {
            let dataset = Dataset::open_with(path, options)?;
            let member = MemberDataset::closed(&dataset, options)?;
            Ok((dataset, member))
        };
        let mut several = Self::begin(open(first)?)?;
        for path in others {
            several.append(open(path.as_ref())?)?;
        }
        Ok(several)
    }

    /// A collection of datasets that stay open.
    pub(super) fn open(first: Dataset, others: Vec<Dataset>) -> Result<Self, StoreError> {
        let open = |dataset: Dataset| Ok((dataset.clone(), MemberDataset::open(dataset)?));
        let mut several = Self::begin(open(first)?)?;
        for dataset in others {
            several.append(open(dataset)?)?;
        }
        Ok(several)
    }

    fn begin((dataset, member): (Dataset, MemberDataset)) -> Result<Self, StoreError> {
        let mut several = Self {
            members: Vec::new(),
            first_ordinals: vec![0],
            first_segments: vec![0],
            chain: DatasetFingerprint::new(),
            chunk_size: member.facts.chunk_size,
            segment_bytes: 0,
            has_field_columns: false,
            agreement: Agreement::of(&dataset)?,
            merged_categories: dataset.schema().attributes().iter().map(|_| OnceLock::new()).collect(),
        };
        several.append((dataset, member))?;
        Ok(several)
    }

    fn append(&mut self, (dataset, member): (Dataset, MemberDataset)) -> Result<(), StoreError> {
        self.agreement.check(self.first_path(), &dataset)?;
        let facts = member.facts;
        let sample_count = self.sample_count().checked_add(facts.sample_count).ok_or_else(|| {
            let what = format!("with its {} samples the collection has more than 2^64", facts.sample_count);
            StoreError::mismatch(member.path(), what)
        })?;
        self.first_ordinals.push(sample_count);
        self.first_segments.push(self.segment_count() + facts.segment_count);
        self.chain.push(facts.fingerprint, facts.sample_count);
        self.chunk_size = self.chunk_size.max(facts.chunk_size);
        self.segment_bytes = self.segment_bytes.saturating_add(facts.segment_bytes);
        self.has_field_columns |= facts.has_field_columns;
        self.members.push(member);
        Ok(())
    }

    pub(super) fn sample_count(&self) -> u64 {
        self.first_ordinals.last().copied().unwrap_or(0)
    }

    pub(super) fn segment_count(&self) -> usize {
        self.first_segments.last().copied().unwrap_or(0)
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.chain.get()
    }

    pub(super) fn members(&self) -> &[MemberDataset] {
        &self.members
    }

    pub(super) fn member(&self, member: usize) -> Result<&Dataset, StoreError> {
        let member_count = self.members.len();
        self.members.get(member).ok_or(StoreError::NoSuchMember { member, member_count })?.dataset()
    }

    /// The sum of a number of each member; `compute` gets it from an opened member if it is not known.
    pub(super) fn sum(
        &self,
        known: impl Fn(&Sums) -> u64,
        compute: impl Fn(&Dataset) -> Result<u64, StoreError>,
    ) -> Result<u64, StoreError> {
        self.members.iter().try_fold(0_u64, |sum, member| {
            let of_member = match &member.sums {
                Some(sums) => known(sums),
                None => compute(member.dataset()?)?,
            };
            Ok(sum.saturating_add(of_member))
        })
    }

    /// The categories of an attribute of all members, and each member's codes in them.
    pub(super) fn merged_categories(&self, attribute: &str) -> Result<(&Categories, &[Vec<u32>]), StoreError> {
        let attributes = self.agreement.schema.attributes();
        let number = attributes.iter().position(|known| known.name == attribute);
        let cell = number.and_then(|number| self.merged_categories.get(number));
        let merged = match cell.and_then(OnceLock::get) {
            Some(merged) => merged,
            None => {
                let members = self.members.iter().map(|member| member.dataset()?.categories(attribute));
                let members: Vec<&Categories> = members.collect::<Result<_, StoreError>>()?;
                let failed = |source| StoreError::Format { path: self.first_path().to_owned(), source };
                let merged = Categories::merged(&members).map_err(failed)?;
                let unknown = || StoreError::bug("an attribute of the members is not in their schema");
                cell.ok_or_else(unknown)?.get_or_init(|| merged)
            }
        };
        Ok((&merged.0, &merged.1))
    }

    /// The member that has a sample, and the sample's ordinal in it.
    pub(super) fn locate_member(&self, ordinal: u64) -> Result<(usize, u64), StoreError> {
        self.sample(ordinal).map(|sample| (sample.number, sample.ordinal))
    }

    /// The ordinals of a member's samples.
    pub(super) fn member_ordinals(&self, member: usize) -> Range<u64> {
        let bound = |member| self.first_ordinals.get(member).copied().unwrap_or_else(|| self.sample_count());
        bound(member)..bound(member.saturating_add(1))
    }

    fn sample(&self, ordinal: u64) -> Result<SampleOfMember<'_>, StoreError> {
        let number = holder(&self.first_ordinals, &ordinal);
        let first = self.first_ordinals.get(number).copied().unwrap_or(0);
        match self.members.get(number) {
            Some(member) => Ok(SampleOfMember { member, number, ordinal: ordinal - first }),
            None => Err(StoreError::NoSuchOrdinal { ordinal, sample_count: self.sample_count() }),
        }
    }

    /// The member that has a segment, and the segment's number in it.
    fn segment(&self, segment: usize) -> Option<(&MemberDataset, usize)> {
        let number = holder(&self.first_segments, &segment);
        Some((self.members.get(number)?, segment - self.first_segments.get(number)?))
    }

    fn first_segment(&self, member: usize) -> usize {
        self.first_segments.get(member).copied().unwrap_or(0)
    }

    pub(super) fn segment_path(&self, segment: usize) -> &Path {
        let Some((member, segment)) = self.segment(segment) else { return self.first_path() };
        let known = member.opened().and_then(|dataset| dataset.segments().get(segment));
        known.map_or_else(|| member.path(), |segment| segment.path())
    }

    /// The dataset that has a segment, and the segment's number in it.
    pub(super) fn dataset_of_segment(&self, segment: usize) -> Result<(&Dataset, usize), StoreError> {
        if let Some((member, segment)) = self.segment(segment) {
            return Ok((member.dataset()?, segment));
        }
        let what = format!("no segment {segment}: the datasets from this one on have {}", self.segment_count());
        Err(StoreError::mismatch(self.first_path(), what))
    }

    /// The path of the first member, whose schema all others have.
    fn first_path(&self) -> &Path {
        self.members.first().map_or(Path::new(""), MemberDataset::path)
    }

    pub(super) fn cached_attribute(&self, attribute: usize, ordinal: u64) -> Option<Option<AttributeValue>> {
        let SampleOfMember { member, ordinal, .. } = self.sample(ordinal).ok()?;
        member.opened()?.cached_attribute(attribute, ordinal)
    }

    pub(super) fn cached_location(&self, ordinal: u64) -> Option<Location> {
        let SampleOfMember { member, number, ordinal } = self.sample(ordinal).ok()?;
        let location = member.opened()?.cached_location(ordinal)?;
        Some(Location { segment: location.segment + self.first_segment(number), ..location })
    }

    pub(super) fn locate(&self, ordinal: u64) -> Result<Location, StoreError> {
        let SampleOfMember { member, number, ordinal } = self.sample(ordinal)?;
        let location = member.dataset()?.locate(ordinal)?;
        Ok(Location { segment: location.segment + self.first_segment(number), ..location })
    }

    /// Consecutive samples of one member are located together, which is faster.
    pub(super) fn locate_batch(&self, ordinals: &[u64], out: &mut Vec<Location>) -> Result<(), StoreError> {
        let mut rest = ordinals;
        let mut in_member = Vec::new();
        while let Some(&ordinal) = rest.first() {
            let sample = self.sample(ordinal)?;
            let all = self.member_ordinals(sample.number);
            let (together, others) = rest.split_at(rest.iter().take_while(|ordinal| all.contains(ordinal)).count());
            in_member.clear();
            in_member.extend(together.iter().map(|ordinal| ordinal - all.start));
            let from = out.len();
            let located = sample.member.dataset()?.locate_batch(&in_member, out);
            let first_segment = self.first_segment(sample.number);
            for location in out.iter_mut().skip(from) {
                location.segment += first_segment;
            }
            located?;
            rest = others;
        }
        Ok(())
    }

    /// Calls `query` with the member that has a sample, and the sample's ordinal in it.
    pub(super) fn query_member<T>(
        &self,
        ordinal: u64,
        query: impl FnOnce(&Dataset, u64) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let sample = self.sample(ordinal)?;
        query(sample.member.dataset()?, sample.ordinal)
    }

    pub(super) fn find(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        if self.agreement.is_keyed {
            for (member, first) in self.members.iter().zip(&self.first_ordinals) {
                if let Some(ordinal) = member.dataset()?.find(key)? {
                    return Ok(Some(first + ordinal));
                }
            }
        }
        Ok(None)
    }

    /// Each member is searched for the keys that no earlier member has.
    pub(super) fn find_batch(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut found = vec![None; keys.len()];
        if self.agreement.is_keyed {
            for (member, first) in self.members.iter().zip(&self.first_ordinals) {
                let missing = || keys.iter().zip(&found).filter(|(_, found)| found.is_none());
                let keys: Vec<&[u8]> = missing().map(|(key, _)| key.as_ref()).collect();
                if keys.is_empty() {
                    break;
                }
                let answers = member.dataset()?.find_batch(&keys)?;
                for (found, answer) in found.iter_mut().filter(|found| found.is_none()).zip(answers) {
                    *found = answer.map(|ordinal| first + ordinal);
                }
            }
        }
        Ok(found)
    }

    /// The error has the member's path, with the ordinal and segment in that member.
    pub(super) fn payload_error(&self, ordinal: u64, location: &Location, error: &PayloadError) -> StoreError {
        let error = self.sample(ordinal).and_then(|sample| {
            let segment = location.segment.saturating_sub(self.first_segment(sample.number));
            let location = Location { segment, ..*location };
            Ok(sample.member.dataset()?.payload_error(sample.ordinal, &location, error))
        });
        error.unwrap_or_else(|error| error)
    }
}

/// The index of the last of ascending first numbers that is not above `number`: the member that has it, or one past all
/// members.
fn holder<T: Ord>(firsts: &[T], number: &T) -> usize {
    firsts.partition_point(|first| first <= number).saturating_sub(1)
}
