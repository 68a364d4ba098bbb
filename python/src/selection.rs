//! Which samples a dataset or a view of it has, and in which order.

use std::ops::Range;
use std::sync::Arc;

use grainstore_format::memory::reserve;
use grainstore_format::to_usize;
use grainstore_reader::Subset;

use crate::error::Raised;

/// A sequence of samples.
#[derive(Clone)]
pub(crate) enum Selection {
    /// All samples, or a contiguous range.
    Range(Range<u64>),
    /// Some samples, in ascending order.
    Subset(Arc<Subset>),
    /// Any samples, in any order, with possible repeats.
    List(Arc<[u64]>),
}

/// A slice of Python, resolved.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

impl Selection {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end - range.start,
            Self::Subset(subset) => subset.len(),
            Self::List(ordinals) => ordinals.len() as u64,
        }
    }

    /// The ordinal at an index, counted from the end if it is negative.
    pub(crate) fn ordinal(&self, index: i64) -> Result<u64, Raised> {
        let len = self.len();
        let place = if index < 0 { len.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
        match place.filter(|&place| place < len) {
            Some(place) => self.at(place),
            None => Err(Raised::no_such_ordinal(index, len)),
        }
    }

    /// The ordinal at an index below the length.
    fn at(&self, index: u64) -> Result<u64, Raised> {
        let outside = || Raised::bug("an index is past the end of its selection");
        if index >= self.len() {
            return Err(outside());
        }
        match self {
            Self::Range(range) => Ok(range.start + index),
            Self::Subset(subset) => Ok(subset.ordinal(index)),
            Self::List(ordinals) => ordinals.get(to_usize(index)).copied().ok_or_else(outside),
        }
    }

    /// The ordinals at indices, which may be counted from the end.
    pub(crate) fn ordinals(&self, indices: &[i64]) -> Result<Vec<u64>, Raised> {
        indices.iter().map(|&index| self.ordinal(index)).collect()
    }

    /// The ordinals at a range of indices below the length.
    pub(crate) fn ordinals_at(&self, indices: Range<u64>) -> Result<Vec<u64>, Raised> {
        match self {
            Self::Range(range) => {
                let mut ordinals = Vec::new();
                reserve(&mut ordinals, indices.end - indices.start)?;
                ordinals.extend(range.start + indices.start..range.start + indices.end);
                Ok(ordinals)
            }
            Self::Subset(_) | Self::List(_) => {
                let mut ordinals = Vec::new();
                reserve(&mut ordinals, indices.end - indices.start)?;
                for index in indices {
                    ordinals.push(self.at(index)?);
                }
                Ok(ordinals)
            }
        }
    }

    pub(crate) fn contains(&self, ordinal: u64) -> bool {
        match self {
            Self::Range(range) => range.contains(&ordinal),
            Self::Subset(subset) => subset.contains(ordinal),
            Self::List(ordinals) => ordinals.contains(&ordinal),
        }
    }

    pub(crate) fn slice(&self, slice: Slice) -> Result<Self, Raised> {
        let Slice { start, step, count } = slice;
        let index = |number: u64| start.saturating_add(step.saturating_mul(number.cast_signed())).cast_unsigned();
        match self {
            Self::Range(range) if step == 1 => {
                let first = range.start + index(0).min(self.len());
                Ok(Self::Range(first..first + count))
            }
            _ => {
                let mut ordinals = Vec::new();
                reserve(&mut ordinals, count)?;
                for number in 0..count {
                    ordinals.push(self.at(index(number))?);
                }
                Ok(Self::List(ordinals.into()))
            }
        }
    }

    /// The samples of this selection that are also in `wanted`.
    pub(crate) fn filter(&self, wanted: Subset) -> Result<Self, Raised> {
        match self {
            Self::Range(range) if *range == (0..wanted.sample_count()) => Ok(Self::Subset(Arc::new(wanted))),
            Self::Range(range) => self.subset_of(wanted.sample_count(), wanted.ordinals_in(range.clone())),
            Self::Subset(subset) => {
                let both = wanted.ordinals_in(0..wanted.sample_count()).filter(|&ordinal| subset.contains(ordinal));
                self.subset_of(wanted.sample_count(), both)
            }
            Self::List(ordinals) => {
                Ok(Self::List(ordinals.iter().copied().filter(|&ordinal| wanted.contains(ordinal)).collect()))
            }
        }
    }

    fn subset_of(&self, sample_count: u64, ordinals: impl Iterator<Item = u64>) -> Result<Self, Raised> {
        let subset =
            Subset::from_ordinals(sample_count, ordinals).map_err(|error| Raised::option(error.to_string()))?;
        Ok(Self::Subset(Arc::new(subset)))
    }

    /// Numbers of the samples of this selection, in the order of an epoch's indices: ascending by ordinal.
    pub(crate) fn by_index(&self, numbers: Vec<f64>) -> Result<Vec<f64>, Raised> {
        let Self::List(ordinals) = self else { return Ok(numbers) };
        let mut places = Vec::new();
        reserve(&mut places, numbers.len() as u64)?;
        places.extend(ordinals.iter().copied().zip(numbers));
        places.sort_by_key(|&(ordinal, _)| ordinal);
        Ok(places.into_iter().map(|(_, number)| number).collect())
    }

    /// The samples that an epoch visits, each as often as it is here; `None`: all samples, once.
    pub(crate) fn for_epoch(&self, sample_count: u64) -> Result<Option<Arc<Subset>>, Raised> {
        let wrong = |error: grainstore_reader::SubsetError| Raised::option(error.to_string());
        match self {
            Self::Range(range) if *range == (0..sample_count) => Ok(None),
            Self::Range(range) => Ok(Some(Arc::new(Subset::from_range(sample_count, range.clone()).map_err(wrong)?))),
            Self::Subset(subset) => Ok(Some(Arc::clone(subset))),
            Self::List(ordinals) => {
                let subset = Subset::with_repeats(sample_count, ordinals.iter().copied()).map_err(wrong)?;
                Ok(Some(Arc::new(subset)))
            }
        }
    }
}
