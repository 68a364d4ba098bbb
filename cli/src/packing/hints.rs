//! Errors of the converters with the flag or the action that helps.

use std::path::Path;

use grainstore_converters::ConvertError;
use grainstore_format::{Manifest, Remedy, shown_path};
use grainstore_sources::SourceError;
use grainstore_writer::{WriteError, resumable};

use crate::hints::{WithHint, hint};
use crate::printer::Printer;
use crate::{Exit, interrupt};

/// The task of a packing command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackTask {
    /// A new dataset.
    Packing,
    /// A new generation of a dataset.
    Adding,
    /// A new generation of a dataset, without some samples.
    Deleting,
    /// The index of files that stay in place.
    Adopting,
}

impl PackTask {
    /// The exit status if the work was interrupted, or the error with its hint.
    pub(crate) fn ended(self, error: ConvertError, destination: &Path, printer: &Printer) -> anyhow::Result<Exit> {
        // Only a conversion can be resumed; a folder of that name from another command is not a conversion.
        let kept = (self == Self::Packing && resumable(destination).is_some()).then_some(destination);
        // An abandoned stream is reported as unreadable.
        if matches!(error, ConvertError::Interrupted) || interrupt::requested() {
            let Some(kept) = kept else { return Ok(Exit::Interrupted) };
            printer.warn("interrupted");
            printer.hint(resume(kept));
            return Ok(Exit::Kept);
        }
        let Some(hint) = self.hint_of(&error, kept) else { return Err(error.into()) };
        // All but the listing's errors include their cause: shown as a chain, it would be printed twice.
        let error = match error {
            ConvertError::Source(SourceError::Listing(error)) => error.into(),
            error => anyhow::Error::msg(error.to_string()),
        };
        Err::<Exit, _>(error).hint(hint)
    }

    fn hint_of(self, error: &ConvertError, kept: Option<&Path>) -> Option<String> {
        let remedy = error.remedy();
        if error.is_skippable() {
            let skip = if kept.is_some() {
                "--resume --skip-bad continues without what cannot be read, and lists it; the finished part is kept until \
                 then"
                    .to_owned()
            } else {
                hint(&Remedy::SkipBad)
            };
            return Some(match remedy {
                None | Some(Remedy::SkipBad) => skip,
                Some(remedy) => format!("{}; {skip}", hint(&remedy)),
            });
        }
        let Some(remedy) = remedy else { return kept.map(resume) };
        Some(match &remedy {
            Remedy::FreeSpace => self.free_space(kept),
            Remedy::Overwrite if !is_dataset(error) => {
                "the last path is DST, the dataset to be made; this is not a dataset: is DST missing?".to_owned()
            }
            Remedy::ChooseDuplicate => self.choose_duplicate(kept),
            _ => hint(&remedy),
        })
    }

    fn free_space(self, kept: Option<&Path>) -> String {
        match (kept, self) {
            (Some(destination), _) => format!("the disk is full: free space; then {}", resume(destination)),
            (None, Self::Adding | Self::Deleting) => {
                "the disk is full: free space; the dataset is unchanged".to_owned()
            }
            (None, _) => {
                "the disk is full: free space or choose a DST on another disk; what was written has been removed"
                    .to_owned()
            }
        }
    }

    fn choose_duplicate(self, kept: Option<&Path>) -> String {
        match self {
            Self::Packing => {
                let choose = hint(&Remedy::ChooseDuplicate);
                match kept.map(shown_path) {
                    Some(shown) => {
                        format!("{choose}; together with --restart, as {shown}.partial was begun without it")
                    }
                    None => choose,
                }
            }
            Self::Adding | Self::Deleting => "--on-duplicate first skips samples whose key is taken".to_owned(),
            Self::Adopting => {
                "`convert` packs such data: --on-duplicate decides which sample of a key is kept".to_owned()
            }
        }
    }
}

/// Whether the destination already contains a dataset.
fn is_dataset(error: &ConvertError) -> bool {
    let ConvertError::Write(WriteError::DestinationExists { path }) = error else { return true };
    path.join(Manifest::FILE_NAME).exists()
}

fn resume(destination: &Path) -> String {
    let shown = shown_path(destination);
    format!("the same command with --resume continues; the finished part is kept in {shown}.partial until then")
}
