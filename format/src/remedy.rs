//! What the caller can do about an error, a warning or a note.
//!
//! A library knows what helps, but not what it is called: the command line has flags, Python has keyword arguments. So
//! an error carries a [`Remedy`], and each front end has one function that puts it into words. The enums here are
//! exhaustive on purpose: a front end that has no words for a remedy does not compile.

use std::fmt;
use std::path::PathBuf;

/// What the caller can do, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Use a later version of grainstore.
    Upgrade,
    /// Copy the data to a path of this system, or mount it as one.
    CopyOrMount,
    /// Allow files outside the folder that contains the dataset.
    AllowExternal,
    /// List everything that is damaged.
    ListDamage,
    /// Open the dataset again, as it is now.
    OpenAgain,
    /// Write the index again from the segments.
    RebuildIndex,
    /// Adopt the files again, whose index is lost.
    AdoptAgain,
    /// Use an ordinal below this number, which is at least 1.
    UseOrdinalBelow(u64),

    /// Read with a smaller window or smaller batches.
    UseLessMemory,
    /// Read fewer samples at once.
    UseSmallerBatch,
    /// Read with a larger window, or in an order that has none.
    UseLargerWindow,
    /// Read with a larger queue.
    UseLargerQueue,
    /// Wait longer for a read.
    UseLongerTimeout,
    /// Read files without mapping them.
    ReadUnmapped,
    /// Let the reader choose an engine that works here.
    UseAnyEngine,
    /// Read with a world of 1 or more ranks.
    UseOneRank,
    /// Count ranks from 0 to below the world's size.
    UseRankBelowWorld,
    /// Let the number of lanes follow from the window.
    UseDefaultLanes,
    /// Choose a tail that repeats no sample.
    UseTailWithoutPadding,
    /// List the samples, to choose a subset of them.
    ListSamples,
    /// List the names of an attribute's numbers.
    ListNames,
    /// List the attributes and their types.
    ListAttributes,
    /// Choose samples by a field: read it, select by ordinals; or store it as an attribute.
    SelectByField,
    /// Compare the key hash with a number from 0 to 1.
    UseKeyHashFraction,

    /// Discard the state, or resume from another one.
    DiscardState,
    /// Resume from another state, or from none.
    UseOtherState,
    /// Resume the epoch without a subset, as it was started.
    ResumeWithoutSubset,
    /// Resume the epoch with the subset that it was started with.
    ResumeWithSameSubset,
    /// Resume the epoch without weights, as it was started.
    ResumeWithoutWeights,
    /// Resume the epoch with the weights and the number of draws that it was started with.
    ResumeWithSameWeights,
    /// Open this generation of the dataset, counted from 0: it resumes the epoch.
    OpenGeneration(usize),
    /// Resume the epoch with the value that it was started with.
    ResumeWith {
        /// The setting that differs.
        setting: EpochSetting,
        /// Its value in the state.
        value: String,
    },

    /// Resume the interrupted conversion.
    Resume,
    /// Discard what the interrupted conversion finished and start over.
    Restart,
    /// Resume the interrupted conversion, or discard what it finished and start over.
    ResumeOrRestart,
    /// Resume with the options that the conversion was started with, or start over.
    ResumeAsStarted,
    /// Skip samples that cannot be read.
    SkipBad,
    /// Free space on the disk.
    FreeSpace,
    /// Replace the dataset that exists.
    Overwrite,
    /// Choose which of several samples with one key is kept.
    ChooseDuplicate,
    /// Wait for the other process, or choose another destination.
    WaitForOther,
    /// Choose another destination.
    UseOtherDestination,
    /// Choose a destination outside the source.
    UseDestinationOutside,
    /// Create the folder first.
    CreateFolder,
    /// Put the dataset beside the files that it refers to, or allow files elsewhere.
    AdoptBesideFiles,

    /// Skip samples that are damaged.
    SkipDamaged,
    /// Give the export a name whose end does not name another format.
    UseFittingName,
    /// Export to a format that holds such keys, or leave such samples out.
    ExportOtherKeys,
    /// Export to a format that holds such types, or leave such samples out.
    ExportOtherTypes,

    /// Leave out the attributes and fields that differ, or give them the same names.
    ExcludeNames,
    /// Pack the source, which cannot be adopted.
    Convert,
    /// Name the format of the source.
    NameFormat,
    /// Read a stream of records, not of this format.
    StreamRecords,
    /// Name a folder that has files in it.
    NameFolderOfFiles,
    /// Name a folder of plain files.
    NamePlainFolder,
    /// Choose one of the named databases.
    ChooseDatabase,
    /// Map names, to get another key.
    MapOtherKey,
    /// Name the column of the table that has the samples' keys.
    NameKeyColumn,
    /// Map this extension of file names to a field.
    MapExtension(String),
    /// Move files that are at another level than the others, or pack without labels.
    PackWithoutLabels,
    /// Read this table about the files, or leave it out.
    ReadTable(PathBuf),
    /// Map the documents to a field, to keep them as they are.
    MapDocuments,
    /// Leave out this column.
    ExcludeColumn(String),
    /// Leave out the column, or map some, to leave out the others.
    MapColumns,
    /// Map a feature to a field.
    MapFeature,
    /// Map some features, or keep records whole.
    MapOrKeepWhole,
    /// Map a feature as a list of any length, or keep records whole.
    MapAnyLength,
    /// Keep records whole.
    KeepWhole,
    /// Either map features or keep records whole.
    MapOrKeepWholeNotBoth,
    /// Leave out a setting that means nothing for this source.
    LeaveOut(SourceSetting),
}

/// A setting of an epoch that a saved state holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochSetting {
    /// The order.
    Order,
    /// The seed of the order.
    Seed,
    /// The number of the epoch.
    Epoch,
    /// The number of lanes.
    Lanes,
    /// The number of extents in a group.
    Group,
}

/// A setting that only some kinds of sources have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceSetting {
    /// Which names of the source become which names of the dataset.
    Map,
    /// Whether records are kept whole.
    KeepWhole,
    /// The named database.
    Database,
    /// What the values of a database are.
    Values,
    /// A table of attributes.
    Labels,
    /// Whether labels are left out.
    NoLabels,
    /// Columns of text that become categories.
    Categories,
    /// A condition that samples meet.
    Subset,
}

impl fmt::Display for EpochSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order => "order",
            Self::Seed => "seed",
            Self::Epoch => "epoch",
            Self::Lanes => "lanes",
            Self::Group => "group",
        })
    }
}
