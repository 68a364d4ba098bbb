//! The flags that describe a source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use grainstore_converters::{ConvertError, ConvertSummary, Coverage};
use grainstore_reader::Expression;
use grainstore_sources::attributes::AttributeTable;
use grainstore_sources::folder::FolderLabels;
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::lmdb::LmdbValues;
use grainstore_sources::{From, Mapping, Source, SourceOptions, open_source};

use crate::choices::named;
use crate::external::External;
use crate::interrupt;
use crate::printer::{Counted, Printer};

#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// Format of SRC; auto looks at its content
    ///
    /// folder: plain files, in one folder or several; tfrecord: gzip and zlib too; tar: WebDataset's too, gzip and zstd
    /// too; lmdb, parquet; list: CSV, TSV or JSON Lines with a row for each sample, in files of any kind: path (from the
    /// list's folder), offset, length and, if wanted, key, and other columns of numbers become attributes; stream:
    /// records on standard input (SRC is `-`), each key length (4 bytes), key, payload length (8 bytes), payload,
    /// little-endian; dataset: of grainstore, or lone segments.
    #[arg(
        long,
        value_name = "KIND",
        default_value = From::NAMES[0],
        value_parser = named::<From>(&From::NAMES),
        help_heading = "Source"
    )]
    from: From,
    /// Names in the source and names in the dataset: NAME=SOURCE,... with `key` for the key, such as
    /// key=image/filename,image=image/encoded,label=image/class/label (TFRecord features, Parquet columns, tar
    /// extensions, LMDB key patterns); of a dataset NEW=OLD renames OLD
    #[arg(long, value_name = "MAP", help_heading = "Source")]
    map: Option<Mapping>,
    /// TFRecord: keep records whole, whatever they contain
    #[arg(long, help_heading = "Source")]
    raw: bool,
    /// LMDB: read this named database
    #[arg(long, value_name = "NAME", help_heading = "Source")]
    database: Option<String>,
    /// LMDB: how values are stored: plain bytes (raw), Caffe's Datum, or whatever the first ones look like (auto)
    #[arg(
        long,
        value_name = "VALUES",
        default_value_t,
        value_parser = named::<LmdbValues>(&LmdbValues::NAMES),
        help_heading = "Source"
    )]
    values: LmdbValues,
    /// Dataset: only samples that meet this condition on attributes and keys, as in `grainstore plan`
    #[arg(long, value_name = "EXPR", help_heading = "Source")]
    subset: Option<Expression>,
    /// Only these, by their names in the source or in the dataset, comma-separated: TFRecord features, Parquet and list
    /// columns, tar extensions, attributes and fields of any other source; the key stays
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Source")]
    only: Vec<String>,
    /// All but these, as for --only; where a feature or column is the key, naming it makes samples without keys
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Source")]
    exclude: Vec<String>,
    /// Parquet: these columns of text, comma-separated, become attributes of type `category`; others are fields, except
    /// those that the file keeps in a dictionary
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Source")]
    categories: Vec<String>,
    /// Folder: a CSV, TSV or JSON Lines table with one row per file; its first column, or the one called `path`, is the
    /// path below SRC, numbers become attributes, text becomes fields
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    labels: Option<PathBuf>,
    /// Folder: pack no labels, whatever the folders' names; without it, files beside class folders stop the work
    #[arg(long, help_heading = "Source", conflicts_with = "labels")]
    no_labels: bool,
}

impl SourceArgs {
    /// Opens the source.
    pub(crate) fn open(
        &self,
        named: &[PathBuf],
        skip_bad: bool,
        external: External,
        printer: &Printer,
    ) -> Result<Box<dyn Source>, ConvertError> {
        let looking = printer.progress(Counted::Steps, None);
        looking.set_message("looking at the source");
        Ok(open_source(named, &self.options(skip_bad, external.is_allowed()))?)
    }

    /// The settings of the source besides its paths.
    pub(crate) fn words(&self) -> String {
        self.options(false, false).words()
    }

    fn options(&self, skip_bad: bool, allow_external: bool) -> SourceOptions {
        SourceOptions {
            from: self.from,
            map: self.map.clone().unwrap_or_default(),
            raw: self.raw,
            database: self.database.clone(),
            values: self.values,
            labels: self.labels.clone(),
            folder_labels: if self.no_labels { FolderLabels::Ignored } else { FolderLabels::Found },
            only: self.only.clone(),
            exclude: self.exclude.clone(),
            categories: self.categories.clone(),
            subset: self.subset.clone(),
            allow_external,
            on_unreadable: if skip_bad { OnUnreadable::Skip } else { OnUnreadable::Stop },
            jobs: None,
            stopped: Some(interrupt::requested),
        }
    }
}

/// The flags that add attributes to the samples of a source.
#[derive(clap::Args)]
pub(crate) struct AttributeArgs {
    /// CSV, TSV, JSON Lines or Parquet table with the samples' keys in its column `key`; its other columns become
    /// attributes: numbers, and texts as categories
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    attributes: Option<PathBuf>,
    /// The column of --attributes with the keys
    #[arg(long, value_name = "NAME", default_value = "key", help_heading = "Source", requires = "attributes")]
    attributes_key: String,
}

/// What was packed, how it went, and a note for the user.
pub(crate) type Packed = (Box<dyn Source>, ConvertSummary, Option<String>);

/// A table that is open.
pub(crate) type OpenTable = Option<Arc<AttributeTable>>;

impl AttributeArgs {
    /// Reads the table, if one is named.
    pub(crate) fn read(&self) -> Result<OpenTable, ConvertError> {
        let read = |path: &PathBuf| AttributeTable::read(path, &self.attributes_key).map(Arc::new);
        Ok(self.attributes.as_ref().map(read).transpose()?)
    }
}

/// What to say of rows and samples that do not match; `added` samples were packed last.
pub(crate) fn coverage_note(table: &OpenTable, dataset: &Path, added: u64) -> Result<Option<String>, ConvertError> {
    let Some(table) = table else { return Ok(None) };
    Ok(Coverage::of(table, dataset, added)?.note(table))
}

/// `SRC... DST`: the last path is the destination.
#[derive(clap::Args)]
pub(crate) struct Paths {
    /// SRC, what to pack: files, folders, patterns such as 'train-*.tar' or 'train-{00000..00127}.tar', or `-` for
    /// standard input; and last DST, the dataset
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

impl Paths {
    /// The sources and the destination.
    pub(crate) fn split(&self) -> anyhow::Result<(&[PathBuf], &PathBuf)> {
        match self.paths.split_last() {
            Some((destination, sources)) if !sources.is_empty() => Ok((sources, destination)),
            _ => bail!("two paths are needed, what to take and the dataset: SRC... DST"),
        }
    }

    /// All paths except the last.
    pub(crate) fn sources(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, sources)| sources)
    }
}
