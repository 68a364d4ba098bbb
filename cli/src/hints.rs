//! The one `hint:` line below an error: a flag or a command to try.
//!
//! An error of a library carries a [`Remedy`], and [`hint`] gives the command line's text for it. A command that knows
//! more attaches its own hint with [`WithHint::hint`].

use std::error::Error;
use std::fmt;

use grainstore_export::ExportError;
use grainstore_format::{FormatError, Remedy, SourceSetting, shown_path};
use grainstore_reader::engine::EngineError;
use grainstore_reader::{ReadError, SelectError, StateError};
use grainstore_store::StoreError;
use grainstore_writer::WriteError;

use crate::errors::on_one_line;

/// An error with a hint. It shows its whole chain itself, so it is the last link of the chain around it.
#[derive(Debug)]
struct Hinted {
    error: anyhow::Error,
    hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&on_one_line(self.error.as_ref()))
    }
}

impl std::error::Error for Hinted {}

/// Attaches a hint to an error.
pub(crate) trait WithHint<T> {
    /// The same result; if it is an error, the line `hint: ...` is printed below it.
    ///
    /// # Errors
    /// The original error, with the hint attached.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithHint<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| Hinted { error: error.into(), hint: hint.into() }.into())
    }
}

/// The hint for an error, if there is one.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|link| match link.downcast_ref::<Hinted>() {
        Some(hinted) => Some(hinted.hint.clone()),
        None => remedy_of(link).map(|remedy| hint(&remedy)),
    })
}

/// The remedy that an error of a library carries.
fn remedy_of(error: &(dyn Error + 'static)) -> Option<Remedy> {
    None.or_else(|| error.downcast_ref().and_then(FormatError::remedy))
        .or_else(|| error.downcast_ref().and_then(StoreError::remedy))
        .or_else(|| error.downcast_ref().and_then(EngineError::remedy))
        .or_else(|| error.downcast_ref().and_then(StateError::remedy))
        .or_else(|| error.downcast_ref().and_then(SelectError::remedy))
        .or_else(|| error.downcast_ref().and_then(ReadError::remedy))
        .or_else(|| error.downcast_ref().and_then(WriteError::remedy))
        .or_else(|| error.downcast_ref().and_then(ExportError::remedy))
}

/// The text of a remedy for users of the command line.
pub(crate) fn hint(remedy: &Remedy) -> String {
    let hint = match remedy {
        Remedy::Upgrade => "upgrade grainstore",
        Remedy::CopyOrMount => COPY_OR_MOUNT,
        Remedy::AllowExternal => {
            "`--allow-external`, or GRAINSTORE_ALLOW_EXTERNAL=1, reads such files; a dataset can name any file, so allow \
             it only where you trust this one"
        }
        Remedy::ListDamage => "`grainstore verify` lists everything that is damaged",
        Remedy::OpenAgain => "another command changed it meanwhile; the same command again reads it as it is now",
        Remedy::RebuildIndex => "`grainstore rebuild-index` rebuilds the index from the segments",
        Remedy::AdoptAgain => {
            "the adopted files are not affected, but their index is; `grainstore adopt --overwrite` with them makes it \
             again"
        }
        Remedy::UseOrdinalBelow(count) => return format!("ordinals go from 0 to {}", count.saturating_sub(1)),

        Remedy::UseLessMemory => "a smaller `--window` or `--batch-size` needs less",
        Remedy::UseSmallerBatch => "take a smaller `--batch-size`",
        Remedy::UseLargerWindow => "the default of `--window` is 256M; `--order full` needs none",
        Remedy::UseLargerQueue => "the default of `--queue` is 8M",
        Remedy::UseLongerTimeout => {
            "if the device or the network is only slow, a longer `--timeout` waits for it; the system's log (`dmesg`) \
             shows whether a device fails"
        }
        Remedy::ReadUnmapped => "`--io buffered` reads without mapping files",
        Remedy::UseAnyEngine => "`--engine auto` reads with threads instead",
        Remedy::UseOneRank => "the default of `--world` is 1: one rank that reads everything",
        Remedy::UseRankBelowWorld => "`--world` is the number of ranks, `--rank` counts them from 0",
        Remedy::UseDefaultLanes => "without `--lanes`, their number follows from `--window`",
        Remedy::UseTailWithoutPadding => "`--tail short` and `--tail drop` repeat nothing",
        Remedy::ListSamples => {
            "`grainstore ls` lists the ordinal, key and attributes of every sample, which `--subset` chooses by"
        }
        Remedy::ListNames => "`grainstore inspect --json` lists all names, in the user metadata",
        Remedy::ListAttributes => "`grainstore inspect` lists the attributes and their types",
        Remedy::SelectByField => {
            "only attributes can be compared: store what you choose by as one; in Python, `select(ordinals)` takes any samples"
        }
        Remedy::UseKeyHashFraction => "'key_hash < 0.9' is nine tenths of the samples",

        Remedy::DiscardState => {
            "the file is cut short, or not a state: delete it to start the epoch over, or name another"
        }
        Remedy::UseOtherState => START_OVER,
        Remedy::ResumeWithoutSubset => return format!("without `--subset` the epoch resumes; {START_OVER}"),
        Remedy::ResumeWithSameSubset => {
            return format!("the `--subset` that the epoch was started with resumes it; {START_OVER}");
        }
        Remedy::ResumeWithoutWeights | Remedy::ResumeWithSameWeights => {
            return format!(
                "this command draws nothing by weights: `grainstore.Loader` with the same weights resumes it; {START_OVER}"
            );
        }
        Remedy::OpenGeneration(generation) => {
            return format!("in Python, `grainstore.open(path, generation={generation})` resumes it; {START_OVER}");
        }
        Remedy::ResumeWith { setting, value } => {
            return format!("`--{setting} {value}` resumes the epoch; {START_OVER}");
        }

        Remedy::Resume => {
            "the same conversion with `--resume` continues it; an adoption or export starts over when it is run again"
        }
        Remedy::Restart => "`--restart` discards what the interrupted conversion finished and starts over",
        Remedy::ResumeOrRestart => {
            "the same command with --resume continues with them; --restart discards them and starts over"
        }
        Remedy::ResumeAsStarted => {
            "the command that it was started with resumes it; --restart discards it and starts over"
        }
        Remedy::SkipBad => "--skip-bad continues without what cannot be read, and lists it",
        Remedy::FreeSpace => "the disk is full: free space or choose a destination on another disk",
        Remedy::Overwrite => "--overwrite replaces it, once the new dataset is complete",
        Remedy::ChooseDuplicate => {
            "--on-duplicate first keeps the first sample of a key, last the last one, whatever the others hold; where a \
             column or feature is the key, --exclude NAME packs all samples without keys"
        }
        Remedy::WaitForOther => "wait for the other conversion, or choose another DST",
        Remedy::UseOtherDestination => "choose another destination",
        Remedy::UseDestinationOutside => "choose a DST outside SRC",
        Remedy::CreateFolder => "create the folder first",
        Remedy::AdoptBesideFiles => {
            "put the dataset beside its files, or let it refer to files elsewhere with --allow-external"
        }
        Remedy::SkipDamaged => "--skip-damaged continues without what cannot be read, and lists it",
        Remedy::UseFittingName => "--to names the format, the end of OUT must not name another one",
        Remedy::ExportOtherKeys => {
            "`--to tfrecord` and `--to parquet` hold any key, `--to lmdb` any of up to 511 bytes, `--to tar` parts of any \
             length; --subset can leave samples out"
        }
        Remedy::ExportOtherTypes => {
            "`--to parquet` holds every type of attribute; --exclude can leave attributes out, --subset samples"
        }

        Remedy::ExcludeNames => "--exclude NAME leaves out what differs, --map NEW=OLD renames it",
        Remedy::Convert => "`grainstore convert` packs it",
        Remedy::NameFormat => "--from names the format",
        Remedy::StreamRecords => "--from stream reads records of key and payload",
        Remedy::NameFolderOfFiles => {
            "SRC is a folder with files in it; links to folders are not followed, name the folder they lead to"
        }
        Remedy::NamePlainFolder => "SRC is a folder of plain files",
        Remedy::ChooseDatabase => "--database chooses one of them",
        Remedy::MapOtherKey => "--map chooses another key, or none",
        Remedy::NameKeyColumn => "--attributes-key names the column with the keys",
        Remedy::MapExtension(extension) => {
            return format!("`--map NAME={extension},...` names the extensions to take and ignores others");
        }
        Remedy::PackWithoutLabels => "move them elsewhere, or pack all files without labels by --no-labels",
        Remedy::ReadTable(table) => {
            return format!("--labels {} reads it, --no-labels leaves it out", shown_path(table));
        }
        Remedy::MapDocuments => "`--map json=json,...` keeps the documents as they are",
        Remedy::ExcludeColumn(name) => return format!("--exclude {name} leaves the column out"),
        Remedy::MapColumns => {
            "--exclude leaves columns out, --map takes only those that it names, such as --map image=image.bytes,label"
        }
        Remedy::MapFeature => "--map names one, such as --map image=image/encoded",
        Remedy::MapOrKeepWhole => "choose features with --map, or keep records whole with --raw",
        Remedy::MapAnyLength => {
            "--map NAME=FEATURE[] takes any number of values (name the other features, too); --raw keeps records whole"
        }
        Remedy::KeepWhole => "--raw keeps records whole",
        Remedy::MapOrKeepWholeNotBoth => "use --raw or --map, not both",
        Remedy::LeaveOut(setting) => return format!("leave out {}", flag(*setting)),
    };
    hint.to_owned()
}

const COPY_OR_MOUNT: &str = "copy the data to a disk, or mount the store as a file system, and name that path";
const START_OVER: &str = "another `--state` file starts over";

fn flag(setting: SourceSetting) -> &'static str {
    match setting {
        SourceSetting::Map => "--map",
        SourceSetting::KeepWhole => "--raw",
        SourceSetting::Database => "--database",
        SourceSetting::Values => "--values",
        SourceSetting::Labels => "--labels",
        SourceSetting::NoLabels => "--no-labels",
        SourceSetting::Categories => "--categories",
        SourceSetting::Subset => "--subset",
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use anyhow::{Context, anyhow};
    use grainstore_format::{EpochSetting, Fingerprint};
    use grainstore_reader::engine;

    use super::*;

    #[test]
    fn a_hint_is_found_through_context_and_the_text_stays_whole() {
        let error =
            Err::<(), _>(anyhow!("inner").context("outer")).hint("try --this").context("outermost").unwrap_err();
        assert_eq!(format!("{error:#}"), "outermost: outer: inner");
        assert_eq!(hint_of(&error).as_deref(), Some("try --this"));
    }

    #[test]
    fn an_ordinal_out_of_range_is_answered_with_the_range() {
        let error = StoreError::NoSuchOrdinal { ordinal: 9, sample_count: 4 }.into();
        assert_eq!(hint_of(&error).as_deref(), Some("ordinals go from 0 to 3"));
    }

    #[test]
    fn a_file_outside_is_answered_with_what_allows_it() {
        let outside = || StoreError::Outside { path: "a.grain".into(), target: "/x.tar".into() };
        for error in [outside().into(), ReadError::from(outside()).into()] {
            assert!(hint_of(&error).is_some_and(|hint| hint.starts_with("`--allow-external`, ")));
        }
    }

    #[test]
    fn an_invalid_option_is_answered_with_its_flag() {
        let small = ReadError::SmallWindow { window_len: 1, chunk_size: 9 };
        assert!(hint_of(&small.into()).is_some_and(|hint| hint.contains("`--window` ")));
        assert!(hint_of(&ReadError::NoQueue.into()).is_some_and(|hint| hint.contains("`--queue` ")));
    }

    #[test]
    fn a_read_that_does_not_come_is_answered_with_the_timeout() {
        let error = ReadError::Stalled { path: "a.seg".into(), range: 0..1, timeout: Duration::from_secs(3) };
        assert!(hint_of(&error.into()).is_some_and(|hint| hint.contains("`--timeout`")));
    }

    #[test]
    fn a_refused_engine_is_answered_whether_the_reader_or_the_bench_asked_for_it() {
        let refused = || EngineError::Refused { why: "no".to_owned() };
        let hints = [hint_of(&refused().into()), hint_of(&ReadError::from(refused()).into())];
        assert!(hints.iter().flatten().all(|hint| hint.starts_with("`--engine auto` ")));
        assert_eq!(hints.iter().flatten().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_mapped_or_was_cut_short_is_answered() {
        let path: Arc<Path> = Path::new("a.seg").into();
        let source = engine::FileError::Map { path: Arc::clone(&path), source: ErrorKind::OutOfMemory.into() };
        assert!(
            hint_of(&ReadError::CannotOpen { source }.into()).is_some_and(|hint| hint.starts_with("`--io buffered`"))
        );
        let source = engine::FileError::EndOfFile { path, range: 0..9, file_len: 5 };
        let error = ReadError::Unreadable { ordinal: 1, key: None, source };
        assert!(hint_of(&error.into()).is_some_and(|hint| hint.contains("`grainstore verify`")));
    }

    #[test]
    fn a_state_of_another_epoch_is_answered_by_the_flag_that_resumes_it() {
        let hint = |error: StateError| hint_of(&ReadError::from(error).into()).unwrap();
        let setting = EpochSetting::Lanes;
        let found = "24".to_owned();
        let expected = String::new();
        let lanes = StateError::OfOtherEpoch { setting, found, expected };
        assert_eq!(hint(lanes), "`--lanes 24` resumes the epoch; another `--state` file starts over");

        let dataset = StateError::OfOtherDataset { found: Fingerprint(1), expected: Fingerprint(2) };
        assert_eq!(hint(dataset), "another `--state` file starts over");
        assert_eq!(hint(StateError::TooNew { found: 2 }), "upgrade grainstore");
        assert!(
            hint(StateError::Malformed { why: String::new() }).starts_with("the file is cut short, or not a state")
        );
        let subset = |found| StateError::OfOtherSubset { found, expected: Some(9) };
        assert!(hint(subset(None)).starts_with("without `--subset`"));
        assert!(hint(subset(Some(7))).starts_with("the `--subset` that the epoch was started with"));
    }

    #[test]
    fn an_unknown_class_is_answered_by_where_all_are() {
        let unfit = |remedy| SelectError::Unfit {
            path: "a.grain".into(),
            name: "label".into(),
            column: 1,
            what: String::new(),
            remedy,
        };
        let hint = |remedy| hint_of(&unfit(remedy).into()).unwrap();
        assert!(hint(Remedy::ListNames).starts_with("`grainstore inspect --json`"));
        assert!(hint(Remedy::ListAttributes).starts_with("`grainstore inspect` "));
    }

    #[test]
    fn most_errors_have_no_hint() {
        assert_eq!(hint_of(&anyhow!("no")), None);
    }
}
