//! The samples that an export writes: all, or those of a subset, in the order of their ordinals.

use std::ops::Range;

use grainstore_format::to_usize;
use grainstore_reader::{Reader, Subset};

/// Samples of a dataset, in ascending order of ordinals.
#[derive(Clone, Debug)]
pub struct Selection {
    sample_count: u64,
    subset: Option<Subset>,
}

impl Selection {
    /// All samples of a reader's dataset.
    pub fn all(reader: &Reader) -> Self {
        Self { sample_count: reader.collection().sample_count(), subset: None }
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.subset.as_ref().map_or(self.sample_count, Subset::len)
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples of the dataset, selected or not.
    pub(crate) fn sample_count(&self) -> u64 {
        self.sample_count
    }

    pub(crate) fn contains(&self, ordinal: u64) -> bool {
        self.subset.as_ref().map_or(ordinal < self.sample_count, |subset| subset.contains(ordinal))
    }

    /// The ordinals at a range of positions in the selection. The range must be inside the selection.
    pub(crate) fn ordinals(&self, positions: Range<u64>) -> Box<dyn Iterator<Item = u64> + Send + '_> {
        match &self.subset {
            None => Box::new(positions),
            Some(_) if positions.is_empty() => Box::new(0..0),
            Some(subset) => {
                let count = to_usize(positions.end - positions.start);
                let all = subset.ordinals_in(subset.ordinal(positions.start)..self.sample_count);
                Box::new(all.take(count))
            }
        }
    }
}

impl From<Subset> for Selection {
    fn from(subset: Subset) -> Self {
        Self { sample_count: subset.sample_count(), subset: Some(subset) }
    }
}
