//! How mixed the batches are, as numbers for programs and as a small table for people.

use std::num::NonZeroU64;

use anyhow::anyhow;
use grainstore_format::escape_bytes;
use grainstore_reader::plan::{Distinct, Mixing, Plan};
use grainstore_store::Collection;
use serde::Serialize;

use super::classes::Classes;
use crate::hints::WithHint;
use crate::sizes::counted;

/// The default attribute that classes are taken from.
const LABEL: &str = "label";

/// How mixed the batches of all ranks together are, compared with a full shuffle.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MixingDocument {
    /// Samples in a batch of all ranks together.
    global_batch_size: u64,
    /// Number of positions in the epoch that were measured.
    places: u32,
    /// The attribute that classes are taken from; null if the samples have no such attribute.
    class_attribute: Option<String>,
    one_batch: DistinctDocument,
    sixteen_batches: DistinctDocument,
    /// Number of samples in the epoch: not repeated here, since the plan's document has it.
    #[serde(skip)]
    epoch_samples: u64,
}

/// Means over the positions; for a full shuffle, the expected values.
#[derive(Clone, Copy, Debug, Serialize)]
struct DistinctDocument {
    /// Distinct 256ths of the stored order.
    parts: f64,
    full_shuffle_parts: f64,
    /// Distinct classes.
    classes: Option<f64>,
    full_shuffle_classes: Option<f64>,
}

impl MixingDocument {
    /// Measures it, by the classes of `attribute`, or of `label` if none is given.
    ///
    /// # Errors
    /// If there is no such attribute, or it cannot be read.
    pub(crate) fn measure(
        collection: &Collection,
        plan: &Plan,
        global_batch_size: NonZeroU64,
        attribute: Option<&str>,
    ) -> anyhow::Result<Self> {
        let classes = Classes::of(collection, attribute.unwrap_or(LABEL))?;
        if let (Some(name), None) = (attribute, &classes) {
            let names = collection.schema().attributes().iter().map(|found| escape_bytes(found.name.as_bytes()));
            let known = names.collect::<Vec<_>>().join(", ");
            let error = anyhow!("no attribute \"{}\"", escape_bytes(name.as_bytes()));
            return Err(error).hint(format!("the samples have: {known}"));
        }
        let class_of = |ordinal| classes.as_ref().and_then(|classes| classes.of_sample(ordinal));
        let class_of: Option<&dyn Fn(u64) -> Option<u64>> = if classes.is_some() { Some(&class_of) } else { None };
        let mixing = Mixing::measure(plan, global_batch_size, class_of, Mixing::PLACES);
        Ok(Self {
            global_batch_size: global_batch_size.get(),
            places: mixing.places.get(),
            class_attribute: classes.is_some().then(|| attribute.unwrap_or(LABEL).to_owned()),
            one_batch: DistinctDocument::of(mixing.one, mixing.full_one),
            sixteen_batches: DistinctDocument::of(mixing.sixteen, mixing.full_sixteen),
            epoch_samples: plan.len(),
        })
    }

    /// The table.
    pub(crate) fn lines(&self) -> Vec<String> {
        let one = self.one_batch;
        let sixteen = self.sixteen_batches;
        let row = |name: &str, cells: [f64; 4]| {
            let cells = cells.map(|cell| format!("  {cell:>12.1}")).concat();
            format!("{name:<24}{cells}")
        };
        let parts = [one.parts, one.full_shuffle_parts, sixteen.parts, sixteen.full_shuffle_parts];
        let mut lines = vec![
            format!(
                "{:<24}  {:>12}  {:>12}  {:>12}  {:>12}",
                "distinct in",
                self.shown_batches(1),
                "full shuffle",
                self.shown_batches(16),
                "full shuffle"
            ),
            row("256ths of stored order", parts),
        ];
        let classes = [one.classes, one.full_shuffle_classes, sixteen.classes, sixteen.full_shuffle_classes];
        match (&self.class_attribute, classes) {
            (Some(name), [Some(one), Some(full_one), Some(sixteen), Some(full_sixteen)]) => {
                let name = format!("classes, by {}", escape_bytes(name.as_bytes()));
                lines.push(row(&name, [one, full_one, sixteen, full_sixteen]));
            }
            _ => lines.push(format!("classes are not counted: no attribute \"{LABEL}\"")),
        }
        let batch = self.global_batch_size;
        let places = self.places;
        lines.push(format!("a batch is one of all ranks, {batch} samples; means over {places} positions of the epoch"));
        lines
    }

    /// The values for a number of batches.
    fn shown_batches(&self, count: u64) -> String {
        if self.global_batch_size.saturating_mul(count) > self.epoch_samples {
            return "whole epoch".to_owned();
        }
        counted(count, "batch")
    }
}

impl DistinctDocument {
    fn of(found: Distinct, full: Distinct) -> Self {
        Self {
            parts: found.parts,
            full_shuffle_parts: full.parts,
            classes: found.classes,
            full_shuffle_classes: full.classes,
        }
    }
}
