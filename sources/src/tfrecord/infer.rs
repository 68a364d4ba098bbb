//! The features of the first records; the schema is inferred from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use grainstore_format::Remedy;

use super::records::Records;
use super::wire::{self, Kind, RecordBytes, WireError};
use crate::compressed::Compression;
use crate::{Bad, Reach, Remark, SourceError, SourcePart, WHOLE_LEN_MAX};

/// Records that are read to infer the schema,
const RECORDS_MAX: u64 = 1000;
/// and their bytes at most. Records of pictures reach this first.
const LEN_MAX: u64 = 128 << 20;
/// Names beyond this number are ignored; a dataset has 1024 fields and 1024 attributes at most.
const NAMES_MAX: usize = 1 << 16;
/// The feature with the file name in ImageNet's records.
pub(super) const FILENAME: &str = "image/filename";
/// The feature with the key in the records of exported datasets.
pub(super) const KEY: &str = "key";

/// What the first records contain.
#[derive(Debug, Default)]
pub(super) struct FirstRecords {
    /// The file that they are in.
    pub(super) path: PathBuf,
    /// Number of records.
    pub(super) record_count: u64,
    /// Their features, except those without a list.
    pub(super) features: BTreeMap<String, SeenFeature>,
    /// The distinct values of [`FILENAME`] and [`KEY`] that are not empty.
    names: BTreeMap<&'static str, BTreeSet<Vec<u8>>>,
}

/// A feature, as the records have it.
#[derive(Clone, Debug)]
pub(super) struct SeenFeature {
    pub(super) kind: Kind,
    /// Another kind that some record has, and the numbers of a record with each kind.
    pub(super) other: Option<(Kind, [u64; 2])>,
    first_record: u64,
    pub(super) record_count: u64,
    /// The smallest and the largest number of values.
    pub(super) count_min: u64,
    pub(super) count_max: u64,
}

/// How much may still be read.
struct Budget {
    records: u64,
    len: u64,
}

impl FirstRecords {
    /// Reads the first records of the first file that has any.
    pub(super) fn of(first: &Path, parts: &[SourcePart], compressions: &[Compression]) -> Result<Self, SourceError> {
        let mut budget = Budget { records: RECORDS_MAX, len: LEN_MAX };
        let mut first_bad = None;
        for (part, compression) in parts.iter().zip(compressions) {
            let mut found = Self { path: part.path.clone(), ..Self::default() };
            found.read_file(part, *compression, &mut budget, &mut first_bad)?;
            if found.record_count > 0 {
                return Ok(found);
            }
        }
        let none = || SourceError::refused(first, "there is no record in it, nor in any file after it");
        Err(first_bad.map_or_else(none, refused))
    }

    /// Whether every record has a value in `feature` ([`FILENAME`] or [`KEY`]), and no two have the same.
    pub(super) fn is_distinct(&self, feature: &str) -> bool {
        self.names.get(feature).is_some_and(|names| names.len() as u64 == self.record_count)
    }

    fn read_file(
        &mut self,
        part: &SourcePart,
        compression: Compression,
        budget: &mut Budget,
        first_bad: &mut Option<Bad>,
    ) -> Result<(), SourceError> {
        let mut records = match Records::open(&part.path, compression, 0) {
            Ok(records) => records,
            Err(bad) => {
                first_bad.get_or_insert(bad);
                return Ok(());
            }
        };
        let mut data = Vec::new();
        let mut number = 0;
        while budget.records > 0 && budget.len > 0 {
            match self.read_next(&mut records, &mut data, number, budget) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Unfit::Bad(bad)) => {
                    let is_last = bad.reach == Reach::Rest;
                    first_bad.get_or_insert(bad);
                    if is_last {
                        break;
                    }
                }
                Err(Unfit::Sequence(bad)) => return Err(refused(bad)),
            }
            number += 1;
        }
        Ok(())
    }

    /// Reads the next record; false at the end.
    fn read_next(
        &mut self,
        records: &mut Records<'_>,
        data: &mut Vec<u8>,
        number: u64,
        budget: &mut Budget,
    ) -> Result<bool, Unfit> {
        let Some(head) = records.next_head()? else { return Ok(false) };
        budget.records -= 1;
        budget.len = budget.len.saturating_sub(head.len);
        if head.len > WHOLE_LEN_MAX {
            records.skip(&head)?;
            return Ok(true);
        }
        records.read(&head, data)?;
        self.take(data, number).map_err(|error| {
            let why = Remark::new(error.to_string(), Remedy::KeepWhole);
            let bad = Bad::new(&self.path, head.location(), why, Reach::Sample);
            if matches!(error, WireError::Sequence) { Unfit::Sequence(bad) } else { Unfit::Bad(bad) }
        })?;
        Ok(true)
    }

    fn take(&mut self, mut record: &[u8], number: u64) -> Result<(), WireError> {
        let mut features = BTreeMap::new();
        wire::for_each_feature(&mut record, &mut |name, feature| {
            if features.len() < NAMES_MAX || features.contains_key(name) {
                features.insert(name.to_owned(), feature);
            }
        })?;
        let mut found = Vec::new();
        for (name, feature) in features {
            if let Some(list) = wire::list(&mut record, feature)? {
                let values = wire::values(&mut record, &list)?;
                found.push((name, list.kind, values));
            }
        }
        for (name, kind, values) in found {
            let may_tell_apart = [FILENAME, KEY].into_iter().find(|feature| name == *feature);
            if let Some(feature) = may_tell_apart
                && kind == Kind::Bytes
                && values.count == 1
                && !values.last.is_empty()
            {
                self.names.entry(feature).or_default().insert(record.bytes(values.last)?.to_vec());
            }
            self.note(name, kind, values.count, number);
        }
        self.record_count += 1;
        Ok(())
    }

    fn note(&mut self, name: String, kind: Kind, count: u64, number: u64) {
        if self.features.len() >= NAMES_MAX && !self.features.contains_key(&name) {
            return;
        }
        let fresh = SeenFeature {
            kind,
            other: None,
            first_record: number,
            record_count: 0,
            count_min: count,
            count_max: count,
        };
        let seen = self.features.entry(name).or_insert(fresh);
        seen.record_count += 1;
        seen.count_min = seen.count_min.min(count);
        seen.count_max = seen.count_max.max(count);
        if seen.kind != kind {
            seen.other.get_or_insert((kind, [seen.first_record, number]));
        }
    }

    /// The names of the features for a message, shortened.
    pub(super) fn names(&self) -> String {
        super::shape::shown_list(self.features.keys().map(String::as_str))
    }
}

/// A record from which nothing can be inferred.
enum Unfit {
    Bad(Bad),
    /// A `SequenceExample`; all other records will be the same.
    Sequence(Bad),
}

impl From<Bad> for Unfit {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

fn refused(bad: Bad) -> SourceError {
    SourceError::Refused { path: bad.path, why: bad.why.after(&bad.location) }
}
