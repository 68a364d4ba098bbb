//! A source whose whole numbers have the types of the dataset that they are added to.
//!
//! A table says nothing of its types: a day whose scores are all whole numbers looks like one of integers. Each value is
//! taken over exactly, or its sample is bad.

use grainstore_format::{Attribute, AttributeType, AttributeValue, Metadata, Schema, escape_bytes};
use grainstore_sources::{Source, SourceError};

use crate::changed::{ChangeAttributes, Changed};

/// An attribute whose values get another type.
pub(crate) struct Fit {
    attribute: usize,
    name: String,
    kind: AttributeType,
}

/// Attributes of the same name get the type that they have in the dataset, where the source has whole numbers and the
/// dataset numbers.
///
/// # Errors
/// If the schema is not legal.
pub(crate) fn fitted<'a>(source: &'a dyn Source, dataset: &Schema) -> Result<Changed<'a, Fit>, SourceError> {
    let described = source.description();
    let mut attributes = described.metadata.schema.attributes().to_vec();
    let mut fits = Vec::new();
    for (number, Attribute { name, kind }) in attributes.iter_mut().enumerate() {
        let Some(wanted) = dataset.attributes().iter().find(|attribute| attribute.name == *name) else { continue };
        if wanted.kind != *kind && kind.is_integer() && (wanted.kind.is_integer() || is_float(&wanted.kind)) {
            *kind = wanted.kind.clone();
            fits.push(Fit { attribute: number, name: name.clone(), kind: wanted.kind.clone() });
        }
    }
    let schema = Schema::new(attributes, described.metadata.schema.fields().to_vec())?;
    let metadata = Metadata { schema, user: described.metadata.user.clone() };
    Ok(Changed::new(source, metadata, fits))
}

impl ChangeAttributes for Fit {
    fn change(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String> {
        let Some(Some(value)) = attributes.get_mut(self.attribute) else { return Ok(()) };
        let whole = match value {
            AttributeValue::Int(whole) => i128::from(*whole),
            AttributeValue::Uint(whole) => i128::from(*whole),
            _ => return Ok(()),
        };
        *value = self.kind.whole(whole).ok_or_else(|| {
            format!("its {} is {whole}, which {} cannot hold", escape_bytes(self.name.as_bytes()), self.kind.name())
        })?;
        Ok(())
    }
}

fn is_float(kind: &AttributeType) -> bool {
    matches!(kind, AttributeType::Float64 | AttributeType::Float32)
}
