//! An error of the converters with the flag or the action that helps.

use std::path::Path;

use grainstore_converters::ConvertError;
use grainstore_format::{Manifest, shown_path};
use grainstore_sources::SourceError;
use grainstore_sources::folder::listing::ListingError;
use grainstore_writer::{WriteError, resumable};

use crate::hints::WithHint;
use crate::printer::Printer;
use crate::{Exit, interrupt};

/// What is being made of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A dataset.
    Packing,
    /// A generation of a dataset.
    Adding,
    /// The index of files that stay.
    Adopting,
}

impl Work {
    /// What to exit with where the work was interrupted or failed; the error has its hint.
    pub(crate) fn ended(self, error: ConvertError, destination: &Path, printer: &Printer) -> anyhow::Result<Exit> {
        // Only a conversion is continued; what else stands under its name is none of ours.
        let kept = (self == Self::Packing && resumable(destination).is_some()).then_some(destination);
        // Whoever gives up waiting for a stream says that it cannot be read.
        if matches!(error, ConvertError::Interrupted) || interrupt::requested() {
            let Some(kept) = kept else { return Ok(Exit::Interrupted) };
            printer.warn("interrupted");
            printer.hint(go_on(kept));
            return Ok(Exit::Kept);
        }
        let Some(hint) = self.hint_of(&error, kept) else { return Err(error.into()) };
        // All but the listing's errors say their cause themselves: shown as a chain, it would stand there twice.
        let error = match error {
            ConvertError::Source(SourceError::Listing(error)) => error.into(),
            error => anyhow::Error::msg(error.to_string()),
        };
        Err::<Exit, _>(error).hint(hint)
    }

    fn hint_of(self, error: &ConvertError, kept: Option<&Path>) -> Option<String> {
        let hint = match error {
            error if error.is_disk_full() => return Some(self.room(kept)),
            error if error.is_skippable() && kept.is_some() => {
                "--resume --skip-bad goes on without what cannot be read, and lists it; what is done is kept until then"
            }
            error if error.is_skippable() => "--skip-bad goes on without what cannot be read, and lists it",
            ConvertError::Write(WriteError::DestinationExists { path }) if !path.join(Manifest::FILE_NAME).exists() => {
                "the last path is DST, the dataset to be made; this is none: is DST missing?"
            }
            ConvertError::Write(WriteError::DestinationExists { .. }) => {
                "--overwrite replaces it, once the new dataset is whole"
            }
            ConvertError::Write(WriteError::DuplicateKey { .. }) => self.duplicates(),
            ConvertError::Write(WriteError::Locked { .. }) => "wait for the other conversion, or choose another DST",
            ConvertError::Write(WriteError::ResumeMismatch { .. }) => {
                "the command that it was begun with goes on with it; --restart throws it away and begins anew"
            }
            ConvertError::KeptWork { .. } => {
                "the same command with --resume goes on with them; --restart throws them away and begins anew"
            }
            ConvertError::DestinationInsideSource { .. } => "choose a DST outside SRC",
            ConvertError::SourceInsideDestination { .. } => "choose another DST",
            ConvertError::Outside { .. } => {
                "put the dataset beside its files, or let it point elsewhere with --allow-external"
            }
            ConvertError::NoParent { .. } => "make the folder first",
            ConvertError::Source(SourceError::Listing(ListingError::NoFiles { .. })) => {
                "SRC is a folder with files in it; links to folders are not followed, name the folder they lead to"
            }
            ConvertError::Source(SourceError::Listing(ListingError::NotAFolder { .. })) => {
                "SRC is a folder of plain files"
            }
            _ => return kept.map(go_on),
        };
        Some(hint.to_owned())
    }

    fn room(self, kept: Option<&Path>) -> String {
        match (kept, self) {
            (Some(destination), _) => format!("the disk is full: free space; then {}", go_on(destination)),
            (None, Self::Adding) => "the disk is full: free space; the dataset is what it was".to_owned(),
            (None, _) => {
                "the disk is full: free space or choose a DST on another disk; what was written has been removed"
                    .to_owned()
            }
        }
    }

    fn duplicates(self) -> &'static str {
        match self {
            Self::Packing => "--on-duplicate first keeps the first sample of a key, last the last one",
            Self::Adding => "--on-duplicate first leaves out samples whose key is taken",
            Self::Adopting => "`convert` packs such data: --on-duplicate says which sample of a key is kept",
        }
    }
}

fn go_on(destination: &Path) -> String {
    let shown = shown_path(destination);
    format!("the same command with --resume goes on; what is done is kept in {shown}.partial until then")
}
