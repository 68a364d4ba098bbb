//! Which names of numbers are declared for Hugging Face's `datasets`: those with which it loads the file.

use std::collections::HashMap;

use grainstore_format::{AttributeValue, escape_bytes};

use super::schema::Names;
use crate::ExportError;
use crate::index_pass::Indexed;
use crate::job::ExportJob;
use crate::labels;

/// The names of all attributes' numbers, checked against the numbers of all selected samples.
pub(super) struct DeclaredNames {
    named: Vec<Named>,
}

struct Named {
    attribute: String,
    /// The number of the attribute.
    position: usize,
    names: Vec<String>,
    /// Why the library would refuse them.
    refused: Option<String>,
}

impl DeclaredNames {
    pub(super) fn of(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let mut named = Vec::new();
        for (position, attribute) in job.schema().attributes().iter().enumerate() {
            if let Some(names) = labels::names(job, &attribute.name)? {
                let refused = refused(&names);
                named.push(Named { attribute: attribute.name.clone(), position, names, refused });
            }
        }
        Ok(Self { named })
    }

    pub(super) fn look(&mut self, sample: &Indexed) {
        for named in self.named.iter_mut().filter(|named| named.refused.is_none()) {
            let number = match sample.attributes.get(named.position) {
                Some(Some(AttributeValue::Int(number))) => i128::from(*number),
                Some(Some(AttributeValue::Uint(number))) => i128::from(*number),
                _ => continue,
            };
            let last = named.names.len() as i128 - 1;
            // The library takes -1 for a label that is missing.
            if !(-1..=last).contains(&number) {
                let ordinal = sample.ordinal;
                named.refused =
                    Some(format!("sample {ordinal} has the number {number}, and the last with a name is {last}"));
            }
        }
    }

    /// The names that are declared, and notes on the others.
    pub(super) fn finish(self) -> (Names, Vec<String>) {
        let (mut names, mut notes) = (Names::new(), Vec::new());
        for named in self.named {
            match named.refused {
                None => drop(names.insert(named.attribute, named.names)),
                Some(why) => notes.push(format!(
                    "the names of \"{}\" are not declared for Hugging Face, whose library would refuse the file: {why}",
                    escape_bytes(named.attribute.as_bytes())
                )),
            }
        }
        (names, notes)
    }
}

/// Why a list of names would be refused whatever the numbers are.
fn refused(names: &[String]) -> Option<String> {
    if names.is_empty() {
        return Some("there are none".to_owned());
    }
    let mut seen = HashMap::new();
    names.iter().enumerate().find_map(|(number, name)| {
        let first = seen.insert(name, number)?;
        Some(format!("the numbers {first} and {number} have the same name \"{}\"", escape_bytes(name.as_bytes())))
    })
}
