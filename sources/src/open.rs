//! Opens a source of any format from the paths that the user names.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use grainstore_format::{Remedy, SourceSetting, UnknownName, choice_of, shown_path};
use grainstore_reader::Expression;

use crate::dataset::{DatasetOptions, DatasetSource};
use crate::folder::listing::OnUnreadable;
use crate::folder::{FolderLabels, FolderOptions, FolderSource};
use crate::ignored::{refuse_data, with_ignored};
use crate::list::ListSource;
use crate::lmdb::{LmdbOptions, LmdbSource, LmdbValues};
use crate::narrowed::narrowed;
use crate::parquet::{ParquetOptions, ParquetSource};
use crate::recognise::{Format, Recognised, recognise, shards_of};
use crate::shards::expand;
use crate::source::file_stamp;
use crate::stream::{Stoppable, StreamFormat, StreamSource};
use crate::tar::{TarOptions, TarSource};
use crate::tfrecord::{TfRecordOptions, TfRecordSource};
use crate::{Chosen, Mapping, Remark, Source, SourceError};

/// The format that the user names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    /// Recognised by the content.
    #[default]
    Auto,
    /// Files of this format, or folders of such files.
    Format(Format),
    /// Records of key and payload, each after its length, on standard input.
    Stream,
}

impl From {
    /// The names of the choices.
    pub const NAMES: [&'static str; 9] =
        ["auto", "folder", "tfrecord", "lmdb", "tar", "parquet", "list", "dataset", "stream"];
    const ALL: [Self; 9] = [
        Self::Auto,
        Self::Format(Format::Folder),
        Self::Format(Format::TfRecord),
        Self::Format(Format::Lmdb),
        Self::Format(Format::Tar),
        Self::Format(Format::Parquet),
        Self::Format(Format::List),
        Self::Format(Format::Dataset),
        Self::Stream,
    ];
}

impl FromStr for From {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        choice_of(name, &Self::NAMES, Self::ALL)
    }
}

/// How foreign data are read. An option of another format is refused, or has no effect where the field documents that.
#[derive(Clone, Debug, Default)]
pub struct SourceOptions {
    /// The format.
    pub from: From,
    /// Which names become which. Not for folders and lists.
    pub map: Mapping,
    /// TFRecord: records are stored whole, without decoding.
    pub raw: bool,
    /// LMDB: the named database.
    pub database: Option<String>,
    /// LMDB: what the values are.
    pub values: LmdbValues,
    /// Folder: a table of attributes and captions.
    pub labels: Option<PathBuf>,
    /// Folder: whether the folders' names are labels.
    pub folder_labels: FolderLabels,
    /// Dataset: the attributes and fields to take; all where it is empty.
    pub only: Vec<String>,
    /// Dataset: the attributes and fields to leave out.
    pub exclude: Vec<String>,
    /// Parquet: columns of text that become attributes of type `category`.
    pub categories: Vec<String>,
    /// Dataset: takes only samples that meet it.
    pub subset: Option<Expression>,
    /// Dataset: whether an adopted one may read files outside its parent directory.
    pub allow_external: bool,
    /// Folder: what to do about folders that cannot be listed and links that lead nowhere.
    pub on_unreadable: OnUnreadable,
    /// Threads that list folders.
    pub jobs: Option<NonZeroUsize>,
    /// Standard input: whether to stop waiting for it. Asked several times a second, by any thread.
    pub stopped: Option<fn() -> bool>,
}

/// Opens the data that `named` refers to: files, folders, patterns (see [`shards::expand`](crate::shards::expand)), or
/// `-` alone for standard input.
///
/// # Errors
/// Where something does not exist, cannot be read, or is not in the chosen format.
pub fn open_source(named: &[PathBuf], options: &SourceOptions) -> Result<Box<dyn Source>, SourceError> {
    if let [only] = named
        && only == Path::new("-")
    {
        return from_stdin(options);
    }
    if let Some(dash) = named.iter().find(|path| *path == Path::new("-")) {
        return Err(SourceError::refused(dash, "standard input is a source by itself"));
    }
    let paths = expand(named)?;
    let found = match options.from {
        From::Auto if options.labels.is_some() => shards_of(&paths, Format::Folder)?,
        From::Auto => recognise(&paths)?,
        From::Format(format) => shards_of(&paths, format)?,
        From::Stream => return Err(SourceError::refused(&paths[0], "a stream is read from standard input: name `-`")),
    };
    options.check(found.format, &found.paths[0])?;
    if options.from == From::Auto {
        refuse_data(&found)?;
    }
    Ok(with_ignored(open_recognised(&found, options)?, &found.ignored))
}

fn open_recognised(found: &Recognised, options: &SourceOptions) -> Result<Box<dyn Source>, SourceError> {
    let paths = found.paths.as_slice();
    let map = options.map.clone();
    let chosen = options.chosen();
    Ok(match found.format {
        Format::Folder => narrowed(Box::new(FolderSource::open_all(paths, &options.for_folder())?), &chosen)?,
        Format::TfRecord => Box::new(TfRecordSource::open(paths, &TfRecordOptions { map, chosen, raw: options.raw })?),
        Format::Tar => Box::new(TarSource::open(paths, &TarOptions { map, chosen })?),
        Format::Parquet => {
            let categories = options.categories.clone();
            Box::new(ParquetSource::open(paths, &ParquetOptions { map, chosen, categories })?)
        }
        Format::List => Box::new(ListSource::open_chosen(paths, &chosen)?),
        Format::Dataset => Box::new(DatasetSource::open(paths, &options.for_dataset())?),
        Format::Lmdb => {
            let database = options.database.clone();
            let values = options.values;
            let options = LmdbOptions { map, database, values, ..LmdbOptions::default() };
            narrowed(Box::new(LmdbSource::open(paths, &options)?), &chosen)?
        }
    })
}

fn from_stdin(options: &SourceOptions) -> Result<Box<dyn Source>, SourceError> {
    let format = match options.from {
        From::Stream => StreamFormat::Records,
        From::Auto | From::Format(Format::Tar) => StreamFormat::Tar,
        From::Format(other) => {
            let why = format!("{} cannot be read from a stream, only tar and records", other.name());
            return Err(SourceError::refused(Path::new("-"), Remark::new(why, Remedy::StreamRecords)));
        }
    };
    let unreadable = |error: io::Error| SourceError::refused(Path::new("-"), format!("cannot be read: {error}"));
    let stdin = Box::new(Stoppable::new(io::stdin(), options.stopped.unwrap_or(|| false)).map_err(unreadable)?);
    let tar_options = TarOptions { map: options.map.clone(), chosen: options.chosen() };
    let source = Box::new(StreamSource::open(stdin, format, &tar_options)?);
    match format {
        StreamFormat::Tar => Ok(source),
        StreamFormat::Records => narrowed(source, &tar_options.chosen),
    }
}

impl SourceOptions {
    /// All options that affect the samples, as text: parts that are separated by "; ", as many for all options.
    pub fn words(&self) -> String {
        let Self { map, raw, database, values, labels, folder_labels, only, exclude, categories, subset, .. } = self;
        let none = || "none".to_owned();
        // A comma inside a name must not look like one between two.
        let escaped = |name: &String| name.replace('\\', "\\\\").replace(',', "\\,");
        let listed = |names: &[String]| match names {
            [] => none(),
            _ => names.iter().map(escaped).collect::<Vec<_>>().join(", "),
        };
        let map = if map.is_empty() { none() } else { map.to_string() };
        let records = if *raw { "kept whole" } else { "decoded" };
        let database = database.clone().unwrap_or_else(none);
        let values = match values {
            LmdbValues::Auto => "auto",
            LmdbValues::Raw => "raw",
            LmdbValues::Datum => "datum",
        };
        let labels =
            labels.as_ref().map_or_else(none, |path| format!("{} ({:016x})", shown_path(path), file_stamp(path)));
        let folders = match folder_labels {
            FolderLabels::Found => "labels",
            FolderLabels::Ignored => "no labels",
        };
        let (only, exclude, categories) = (listed(only), listed(exclude), listed(categories));
        let subset = subset.as_ref().map_or_else(none, ToString::to_string);
        format!(
            "map: {map}; records: {records}; database: {database}; values: {values}; table of labels: {labels}; \
             names of folders: {folders}; only: {only}; exclude: {exclude}; categories: {categories}; subset: {subset}"
        )
    }

    fn chosen(&self) -> Chosen {
        Chosen { only: self.only.clone(), exclude: self.exclude.clone() }
    }

    fn for_dataset(&self) -> DatasetOptions {
        DatasetOptions {
            map: self.map.clone(),
            only: self.only.clone(),
            exclude: self.exclude.clone(),
            subset: self.subset.clone(),
            allow_external: self.allow_external,
        }
    }

    fn for_folder(&self) -> FolderOptions {
        FolderOptions {
            on_unreadable: self.on_unreadable,
            jobs: self.jobs,
            labels: self.labels.clone(),
            folder_labels: self.folder_labels,
        }
    }

    /// Refuses a setting that does not apply to the format.
    fn check(&self, format: Format, path: &Path) -> Result<(), SourceError> {
        use SourceSetting::{Categories, Database, KeepWhole, Labels, Map, NoLabels, Subset, Values};
        let no_labels = self.folder_labels == FolderLabels::Ignored;
        let is_dataset = format == Format::Dataset;
        let settings = [
            (KeepWhole, self.raw, format == Format::TfRecord, "only TFRecord records can be kept whole"),
            (Database, self.database.is_some(), format == Format::Lmdb, "only LMDB has named databases"),
            (Values, self.values != LmdbValues::Auto, format == Format::Lmdb, "only LMDB has kinds of values"),
            (Labels, self.labels.is_some(), format == Format::Folder, "only folders take a table of labels"),
            (NoLabels, no_labels, format == Format::Folder, "only folders have labels in their names"),
            (
                Categories,
                !self.categories.is_empty(),
                format == Format::Parquet,
                "only Parquet's texts become categories by name",
            ),
            (Subset, self.subset.is_some(), is_dataset, "only samples of datasets are chosen by a condition"),
            (Map, !self.map.is_empty(), format != Format::Folder, "the files of a folder have no names to map"),
            (Map, !self.map.is_empty(), format != Format::List, "the columns of a list have names already"),
        ];
        for (setting, is_given, has_meaning, why) in settings {
            if is_given && !has_meaning {
                let why = format!("it is {}, and {why}", described(format));
                return Err(SourceError::refused(path, Remark::new(why, Remedy::LeaveOut(setting))));
            }
        }
        Ok(())
    }
}

fn described(format: Format) -> &'static str {
    if format == Format::Folder { "a folder of files" } else { format.name() }
}
