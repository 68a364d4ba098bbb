//! Adds a source's samples to an existing dataset, as a new generation.

use std::path::Path;

use grainstore_sources::Source;
use grainstore_store::{Dataset, OpenOptions};
use grainstore_writer::{AppendOptions, DatasetWriter, Summary, existing};

use crate::convert::{Packing, pack};
use crate::duplicates::Drops;
use crate::feed::PackingOrder;
use crate::fitted::fitted;
use crate::relabelled::relabelled;
use crate::{ConvertError, ConvertOptions, ConvertSummary, Events, OnDuplicate, check_destination};

/// Adds all samples of `source` to `dataset`. Chunk size, alignment and hash seed are the dataset's; all else is in
/// `options`. New class names are added after those of the dataset, and labels are renumbered to match; a label without
/// a name makes a bad sample. `split` and `split_names` are handled the same way. Whole numbers get
/// the type that their attribute has in the dataset; one that it cannot hold exactly makes a bad sample.
///
/// # Errors
/// Where the source has another schema, where a key is in the dataset already ([`OnDuplicate::First`] skips such
/// samples), where it has no samples ([`ConvertError::is_nothing_to_add`]), and as [`convert`](crate::convert). The
/// dataset is unchanged then.
pub fn append(
    source: &dyn Source,
    dataset: &Path,
    options: &ConvertOptions,
    events: &dyn Events,
) -> Result<ConvertSummary, ConvertError> {
    let refused = |why: String| ConvertError::Refused { path: dataset.to_owned(), why: why.into() };
    let present = existing(dataset)?;
    for origin in &source.description().origins {
        check_destination(origin, dataset, true)?;
    }
    if options.on_duplicate == OnDuplicate::Last {
        return Err(refused("samples are never replaced: the first one of a key can be kept, not the last".into()));
    }
    if present.keyed != source.description().is_keyed {
        let (has, has_not) = if present.keyed { ("its", "the new") } else { ("the new", "its") };
        return Err(refused(format!("{has} samples have keys, {has_not} samples have none")));
    }
    // Numbers first: the new one may fit a type that the old one does not.
    let relabelled = relabelled(source, &present.metadata).map_err(refused)?;
    let fitted = fitted(&relabelled, &present.metadata.schema)?;
    // Before keys are compared: this refuses another schema and locks out other writers, who could add keys.
    let writer = DatasetWriter::append(dataset, for_writer(&fitted, options))?;
    if existing(dataset)? != present {
        return Err(refused("another process added to it just now: try again".into()));
    }
    // Only its index is read, and where contents are compared the samples that may be equal.
    let opened = Dataset::open_with(dataset, &OpenOptions { allow_external: true, ..OpenOptions::default() })?;
    let drops = Drops::find(&fitted, options, Some(&opened), events)?;
    let plan = PackingOrder::of(&fitted, options.order, events)?;
    pack(Packing { source: &fitted, plan, drops, options, events }, writer, None)
}

/// What [`append`] reports where there was nothing to add ([`ConvertError::is_nothing_to_add`]): no sample, no segment,
/// and the fingerprint of the generation that stays the newest.
///
/// # Errors
/// If `dataset` is not a dataset's directory, or is damaged.
pub fn nothing_added(dataset: &Path) -> Result<Summary, ConvertError> {
    existing(dataset)?;
    let opened = Dataset::open_with(dataset, &OpenOptions { allow_external: true, ..OpenOptions::default() })?;
    let fingerprint = opened.fingerprint();
    Ok(Summary { samples: 0, segments: 0, payload_bytes: 0, stored_bytes: 0, fingerprint, leftover: None })
}

fn for_writer(source: &dyn Source, options: &ConvertOptions) -> AppendOptions {
    AppendOptions {
        segment_size: options.segment_size,
        compression: options.compression,
        metadata: Some(source.description().metadata.clone()),
        jobs: options.jobs,
        ..AppendOptions::default()
    }
}
