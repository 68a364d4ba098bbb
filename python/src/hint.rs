//! The hint for an error, a warning or a note, in terms of Python arguments and functions.

use grainstore_format::{EpochSetting, Remedy, SourceSetting, shown_path};

/// A sentence that names arguments and functions; `None` if the message itself is sufficient.
pub(crate) fn hint(remedy: &Remedy) -> Option<String> {
    let hint = match remedy {
        Remedy::UseOrdinalBelow(_) => return None,
        Remedy::Upgrade => "upgrade grainstore",
        Remedy::CopyOrMount => "copy the data to a disk, or mount the store as a file system, and name that path",
        Remedy::AllowExternal => "allow_external=True allows it",
        Remedy::ListDamage => "grainstore.verify() lists everything that is damaged",
        Remedy::OpenAgain => "grainstore.open() opens it again, as it is now",
        Remedy::RebuildIndex => "grainstore.rebuild_index() rebuilds the index from the segments",
        Remedy::AdoptAgain => "the index of adopted files is lost: adopt() with overwrite=True makes it again",

        Remedy::UseLessMemory => "a smaller window_bytes or batch_size needs less",
        Remedy::UseSmallerBatch => "take a smaller batch_size, or fewer samples at once",
        Remedy::UseLargerWindow => "the default of window_bytes is 256 MiB; order=\"full\" needs none",
        Remedy::UseLargerQueue => "the default of queue_bytes is 8 MiB",
        Remedy::UseLongerTimeout => "a longer timeout_s waits for a slow device",
        Remedy::ReadUnmapped => "io=\"buffered\" reads without mapping files",
        Remedy::UseAnyEngine => "engine=\"auto\" reads with threads instead",
        Remedy::UseOneRank => "world_size is the number of ranks, 1 or more",
        Remedy::UseRankBelowWorld => "world_size is the number of ranks, rank counts them from 0",
        Remedy::UseDefaultLanes => "without lanes, their number follows from window_bytes",
        Remedy::UseTailWithoutPadding => "tail=\"short\" and tail=\"drop\" repeat nothing",
        Remedy::ListSamples => "keys() and column() give what filter() chooses by",
        Remedy::ListNames => "categories() lists all names of an attribute's numbers",
        Remedy::ListAttributes => "schema has the attributes and their types",
        Remedy::SelectByField => "select(ordinals) takes samples that you chose by what you read",
        Remedy::UseKeyHashFraction => "\"key_hash < 0.9\" is nine tenths of the samples",

        Remedy::DiscardState => "it is cut short, or not a state",
        Remedy::UseOtherState => "without a state the epoch starts over",
        Remedy::ResumeWithoutSubset => "the whole dataset, without filter() or select(), resumes it",
        Remedy::ResumeWithSameSubset => "the filter() or select() that it was started with resumes it",
        Remedy::ResumeWithoutWeights => "a loader without weights= resumes it",
        Remedy::ResumeWithSameWeights => {
            "a loader with the weights= and num_samples= that it was started with resumes it"
        }
        Remedy::OpenGeneration(generation) => {
            return Some(format!("a loader of grainstore.open(path, generation={generation}) resumes it"));
        }
        Remedy::ResumeWith { setting, value } => return Some(format!("{} resumes it", argument(*setting, value))),

        Remedy::Resume => {
            "convert() with resume=True continues it; an adoption or export starts over when it is run again"
        }
        Remedy::Restart => "restart=True discards what the interrupted conversion finished and starts over",
        Remedy::ResumeOrRestart => "resume=True continues with them, restart=True discards them",
        Remedy::ResumeAsStarted => {
            "the arguments that it was started with resume it, restart=True discards it and starts over"
        }
        Remedy::SkipBad => "skip_bad=True continues without what cannot be read, and lists it",
        Remedy::FreeSpace => "the disk is full: free space or choose a destination on another disk",
        Remedy::Overwrite => "overwrite=True replaces a dataset",
        Remedy::ChooseDuplicate => {
            "on_duplicate=\"first\" keeps the first sample of a key, \"last\" the last one, whatever the others hold; where a \
             column or feature is the key, exclude=[name] packs all samples without keys"
        }
        Remedy::WaitForOther => "wait for the other process, or choose another destination",
        Remedy::UseOtherDestination => "choose another destination",
        Remedy::UseDestinationOutside => "choose a destination outside the source",
        Remedy::CreateFolder => "create the folder first",
        Remedy::AdoptBesideFiles => {
            "put the dataset beside its files, or let it refer to files elsewhere with allow_external=True"
        }
        Remedy::SkipDamaged => "skip_damaged=True continues without what cannot be read, and lists it",
        Remedy::UseFittingName => "to= names the format, the end of the destination must not name another one",
        Remedy::ExportOtherKeys => {
            "to=\"tfrecord\" and to=\"parquet\" hold any key, to=\"lmdb\" any of up to 511 bytes, to=\"tar\" parts of any \
             length; select_columns() can leave attributes out, filter() \
             samples"
        }
        Remedy::ExportOtherTypes => "to=\"parquet\" holds every type of attribute; filter() can leave samples out",

        Remedy::ExcludeNames => "exclude=[name] leaves out what differs, map={new: old} renames it",
        Remedy::Convert => "grainstore.convert() packs it",
        Remedy::NameFormat => "format= names the format",
        Remedy::StreamRecords => "the command `grainstore convert` reads streams",
        Remedy::NameFolderOfFiles => "links to folders are not followed, name the folder they lead to",
        Remedy::NamePlainFolder => "name a folder of plain files",
        Remedy::ChooseDatabase => "database= chooses one of them",
        Remedy::MapOtherKey => "map= chooses another key, or none",
        Remedy::NameKeyColumn => "attributes_key= names the column with the keys",
        Remedy::MapExtension(extension) => {
            return Some(format!("map=\"NAME={extension},...\" names the extensions to take and ignores others"));
        }
        Remedy::PackWithoutLabels => "move them elsewhere, or pack all files without labels: no_labels=True",
        Remedy::ReadTable(table) => {
            return Some(format!("labels=\"{}\" reads it, no_labels=True leaves it out", shown_path(table)));
        }
        Remedy::MapDocuments => "map=\"json=json,...\" keeps the documents as they are",
        Remedy::ExcludeColumn(name) => return Some(format!("exclude={name:?} leaves the column out")),
        Remedy::MapColumns => {
            "exclude= leaves columns out, map= takes only those that it names, such as map=\"image=image.bytes,label\""
        }
        Remedy::MapFeature => "map= names one, such as map=\"image=image/encoded\"",
        Remedy::MapOrKeepWhole => "choose features with map=, or keep records whole with raw=True",
        Remedy::MapAnyLength => {
            "map={name: \"feature[]\"} takes any number of values (name the other features, too), raw=True keeps records whole"
        }
        Remedy::KeepWhole => "raw=True keeps records whole",
        Remedy::MapOrKeepWholeNotBoth => "use raw=True or map=, not both",
        Remedy::LeaveOut(setting) => return Some(format!("leave out {}", source_argument(*setting))),
    };
    Some(hint.to_owned())
}

/// A text with its hint.
pub(crate) fn with_hint(text: String, remedy: Option<&Remedy>) -> String {
    match remedy.and_then(hint) {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

fn argument(setting: EpochSetting, value: &str) -> String {
    match setting {
        EpochSetting::Order => format!("order=\"{value}\""),
        EpochSetting::Seed | EpochSetting::Epoch | EpochSetting::Lanes | EpochSetting::Group => {
            format!("{setting}={value}")
        }
    }
}

fn source_argument(setting: SourceSetting) -> &'static str {
    match setting {
        SourceSetting::Map => "map",
        SourceSetting::KeepWhole => "raw",
        SourceSetting::Database => "database",
        SourceSetting::Values => "values",
        SourceSetting::Labels => "labels",
        SourceSetting::NoLabels => "no_labels",
        SourceSetting::Categories => "categories",
        SourceSetting::Subset => "subset",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_remedy_stays_as_it_is() {
        assert_eq!(with_hint("no".into(), None), "no");
        assert_eq!(with_hint("no".into(), Some(&Remedy::UseOrdinalBelow(3))), "no");
        assert_eq!(with_hint("no".into(), Some(&Remedy::KeepWhole)), "no; raw=True keeps records whole");
    }

    #[test]
    fn a_setting_of_a_state_is_an_argument() {
        let of = |setting| hint(&Remedy::ResumeWith { setting, value: "3".into() });
        assert_eq!(of(EpochSetting::Order).as_deref(), Some("order=\"3\" resumes it"));
        assert_eq!(of(EpochSetting::Lanes).as_deref(), Some("lanes=3 resumes it"));
        assert_eq!(of(EpochSetting::Group).as_deref(), Some("group=3 resumes it"));
    }
}
