//! A source whose samples get other values of attributes before they are packed.

use grainstore_format::{AttributeValue, Metadata};
use grainstore_sources::{Bad, Blocks, Description, Layout, SampleReader, Source, with_changed_attributes};

/// A change of a sample's attributes.
pub(crate) trait ChangeAttributes: Send + Sync {
    /// Changes them, in the order of the schema.
    ///
    /// # Errors
    /// Why it cannot: the sample is bad.
    fn change(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String>;
}

/// A source and the changes of its samples, in order.
pub(crate) struct Changed<'a, C> {
    source: &'a dyn Source,
    description: Description,
    changes: Vec<C>,
}

impl<'a, C: ChangeAttributes> Changed<'a, C> {
    /// `metadata` is that of the changed samples.
    pub(crate) fn new(source: &'a dyn Source, metadata: Metadata, changes: Vec<C>) -> Self {
        Self { source, description: Description { metadata, ..source.description().clone() }, changes }
    }
}

impl<C: ChangeAttributes> Source for Changed<'_, C> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        if self.changes.is_empty() {
            return Ok(samples);
        }
        let path = &self.description.parts[part].path;
        Ok(with_changed_attributes(samples, path, |_, attributes| {
            self.changes.iter().try_for_each(|change| change.change(attributes))
        }))
    }

    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}
