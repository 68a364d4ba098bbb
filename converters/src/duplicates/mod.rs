//! Finds the samples to skip because another sample has the same key, or the same content.
//!
//! Before the source is packed it is read for its keys, and then once more for its contents, each as a hash of fixed
//! length. Of samples with one key, those that are not kept have no content that counts: keys come first.

mod content;
mod keys;
mod pass;
mod rounds;
mod stored;

use grainstore_sources::Source;
use grainstore_store::Dataset;

use crate::feed::Id;
use crate::{ConvertError, ConvertOptions, Events, OnDuplicate, SameContent};

use content::ContentDrops;
use pass::Pass;

/// The samples to skip.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    /// In source order.
    ids: Vec<Id>,
    by_key: u64,
    by_content: SameContent,
}

impl Drops {
    /// Finds the samples to skip; `present` is the dataset that the others are added to, if there is one.
    pub(crate) fn find(
        source: &dyn Source,
        options: &ConvertOptions,
        present: Option<&Dataset>,
        events: &dyn Events,
    ) -> Result<Self, ConvertError> {
        let mut drops = Self::default();
        let needless = source.description().has_distinct_keys && present.is_none();
        if options.on_duplicate != OnDuplicate::Error && source.description().is_keyed && !needless {
            let pass = Pass::new(source, "keys", options.jobs, events)?;
            drops.ids = keys::dropped(&pass, options.on_duplicate, present)?;
            drops.by_key = drops.ids.len() as u64;
        }
        if options.skip_same_content {
            let pass = Pass::new(source, "content", options.jobs, events)?;
            let ContentDrops { ids, count } = content::dropped(&pass, &drops, present)?;
            drops.ids.extend(ids);
            drops.ids.sort_unstable();
            drops.by_content = count;
        }
        Ok(drops)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// How many have the key of another sample.
    pub(crate) fn by_key(&self) -> u64 {
        self.by_key
    }

    /// How many have the content of another sample.
    pub(crate) fn by_content(&self) -> SameContent {
        self.by_content
    }

    pub(crate) fn contains(&self, id: Id) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}
