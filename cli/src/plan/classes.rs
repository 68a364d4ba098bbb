//! The class of each sample: one column of integers per dataset.

use std::ops::Range;

use anyhow::bail;
use grainstore_format::{AttributeType, AttributeValue, escape_bytes};
use grainstore_store::{Collection, Column};

/// The column, dataset by dataset.
pub(super) struct Classes<'a> {
    members: Vec<(Range<u64>, Column<'a>)>,
}

impl<'a> Classes<'a> {
    /// Reads the classes from the attribute; `None` if there is no such attribute.
    ///
    /// # Errors
    /// If its values are not integers, or a column is damaged.
    pub(super) fn of(collection: &'a Collection, attribute: &str) -> anyhow::Result<Option<Self>> {
        let Some(found) = collection.schema().attributes().iter().find(|found| found.name == attribute) else {
            return Ok(None);
        };
        if matches!(found.kind, AttributeType::Float32 | AttributeType::Float64) {
            let name = escape_bytes(attribute.as_bytes());
            let kind = found.kind.name();
            bail!("attribute \"{name}\" is a {kind}, expected whole numbers: one for each class");
        }
        let columns = collection.members().enumerate().map(|(member, dataset)| {
            let column = dataset?.column(attribute)?;
            anyhow::Ok((collection.member_ordinals(member), column))
        });
        Ok(Some(Self { members: columns.collect::<Result<_, _>>()? }))
    }

    /// The class of a sample; `None` if it has none.
    pub(super) fn of_sample(&self, ordinal: u64) -> Option<u64> {
        let member = self.members.partition_point(|(ordinals, _)| ordinals.end <= ordinal);
        let (ordinals, column) = self.members.get(member)?;
        match column.get(ordinal - ordinals.start)? {
            AttributeValue::Bool(value) => Some(value.into()),
            AttributeValue::Int(value) => Some(value.cast_unsigned()),
            AttributeValue::Uint(value) => Some(value),
            AttributeValue::Float32(_) | AttributeValue::Float64(_) => None,
        }
    }
}
