//! The contents that a dataset holds already.
//!
//! Its index decides which samples are read: those with the length of a new one and, where they are stored raw, with its
//! checksum. A damaged sample is no match, as it cannot be compared.

use std::collections::HashMap;
use std::ops::Range;

use grainstore_format::to_usize;
use grainstore_reader::Subset;
use grainstore_sources::SourceError;
use grainstore_sources::dataset::DatasetSource;
use grainstore_store::{Dataset, Encoding};

use super::content::{Content, HashedContent, hashed};
use super::pass::Pass;
use crate::ConvertError;
use crate::feed::check;

/// Those of `held`, sorted by content, that `dataset` holds, and a hash of the stored sample's attributes.
pub(super) fn find(
    dataset: &Dataset,
    held: &[HashedContent],
    pass: &Pass<'_>,
) -> Result<HashMap<Content, u32>, ConvertError> {
    let mut found = HashMap::new();
    let candidates = candidates(dataset, held, pass)?;
    if candidates.is_empty() {
        return Ok(found);
    }
    let source = DatasetSource::chosen(dataset.clone(), candidates)?;
    pass.of(&source)?.for_each(&mut |id, sample| {
        let Some(stored) = hashed(id, sample, pass.events)? else { return Ok(()) };
        if held.binary_search_by_key(&stored.content(), HashedContent::content).is_ok() {
            found.entry(stored.content()).or_insert(stored.attributes);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The samples of the dataset that may have one of these contents. Only its index is read.
fn candidates(dataset: &Dataset, held: &[HashedContent], pass: &Pass<'_>) -> Result<Subset, ConvertError> {
    // A bit for each sample.
    let mut candidates = vec![0; to_usize(dataset.sample_count().div_ceil(64))];
    for ordinal in 0..dataset.sample_count() {
        check(pass.events)?;
        let location = dataset.locate(ordinal)?;
        let fields = dataset.fields(ordinal, location.raw_len())?;
        let len = fields.iter().flatten().map(|field| field.end - field.start).sum::<u64>();
        let is_raw = location.encoding == Encoding::Raw && is_packed(&fields, location.raw_len());
        let least = (len, if is_raw { location.crc } else { 0 });
        let most = (len, if is_raw { location.crc } else { u32::MAX });
        let start = held.partition_point(|held| held.len_and_crc() < least);
        if held.get(start).is_some_and(|held| held.len_and_crc() <= most) {
            candidates[to_usize(ordinal / 64)] |= 1 << (ordinal % 64);
        }
    }
    Subset::from_words(dataset.sample_count(), candidates)
        .map_err(|error| ConvertError::Source(SourceError::Selection(Box::new(error.into()))))
}

/// Whether a payload of `len` bytes is its fields, one after the other, and nothing else.
fn is_packed(fields: &[Option<Range<u64>>], len: u64) -> bool {
    let mut end = 0;
    for field in fields.iter().flatten() {
        if field.start != end {
            return false;
        }
        end = field.end;
    }
    end == len
}
