//! The data of an epoch: one dataset, or several as one collection.

use std::path::PathBuf;

use grainstore_format::shown_path;
use grainstore_reader::plan::Share;
use grainstore_reader::{EpochState, Reader, ReaderOptions};
use grainstore_store::{Dataset, OpenOptions};

use crate::printer::Printer;

/// The datasets that are read as one.
#[derive(clap::Args)]
pub(crate) struct DatasetArgs {
    /// Dataset directory, or one segment; several are read end to end as one, in this order
    #[arg(value_name = "DATASET", required = true)]
    paths: Vec<PathBuf>,
}

impl DatasetArgs {
    /// Opens them; a single dataset in the generation that the state belongs to.
    ///
    /// # Errors
    /// If one cannot be opened, or they cannot be read as one.
    pub(crate) fn open(
        &self,
        options: ReaderOptions,
        state: Option<&EpochState>,
        printer: &Printer,
    ) -> anyhow::Result<Reader> {
        let index = OpenOptions { allow_external: options.allow_external, ..OpenOptions::default() };
        let generation = match (self.paths.as_slice(), state) {
            ([path], Some(state)) => older_generation(&Dataset::open_with(path, &index)?, state),
            _ => None,
        };
        if let Some(generation) = generation {
            let dataset = self.shown();
            printer.note(format_args!(
                "{dataset}: the state is of generation {generation}: samples that were added later are not read"
            ));
        }
        Ok(Reader::open_all(&self.paths, ReaderOptions { generation, ..options })?)
    }

    /// Their paths, as they were given.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.iter().map(shown_path).collect()
    }

    /// `a.grain`, or `a.grain and 2 more`.
    pub(crate) fn shown(&self) -> String {
        shown(&self.paths())
    }
}

/// `a.grain`, or `a.grain and 2 more`.
pub(crate) fn shown(paths: &[String]) -> String {
    match paths {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}

/// Number of samples in all batches of a rank, from where it starts.
pub(crate) fn samples_of(share: &Share) -> u64 {
    // Only the last batch may be shorter.
    let whole = share.batch_count().saturating_sub(1);
    whole.saturating_mul(share.spec().batch_size.get() as u64).saturating_add(share.positions(whole).count)
}

/// The generation of a state that was saved before samples were added.
fn older_generation(newest: &Dataset, state: &EpochState) -> Option<usize> {
    newest.generation_of(state.fingerprint()).filter(|_| state.fingerprint() != newest.fingerprint())
}
