//! The flags that say what a source is.

use std::path::PathBuf;

use anyhow::bail;
use grainstore_converters::ConvertError;
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::lmdb::LmdbValues;
use grainstore_sources::{From, Mapping, Source, SourceOptions, open_source};

use crate::choices::named;
use crate::interrupt;
use crate::printer::{Counted, Printer};

#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    /// What SRC is; auto looks at its content
    ///
    /// folder: plain files, in one folder or several; tfrecord: gzip and zlib too; tar: WebDataset's too, gzip and zstd
    /// too; lmdb, parquet; list: CSV, TSV or JSON Lines with a row for each sample, in files of any kind: path (from the
    /// list's folder), offset, length and, if wanted, key, and other columns of numbers become attributes; stream:
    /// records on standard input (SRC is `-`), each key length (4 bytes), key, payload length (8 bytes), payload,
    /// little-endian.
    #[arg(
        long,
        value_name = "KIND",
        default_value = From::NAMES[0],
        value_parser = named::<From>(&From::NAMES),
        help_heading = "Source"
    )]
    from: From,
    /// Which names of the source become which of the dataset: NAME=SOURCE,... with `key` for the key, such as
    /// key=image/filename,image=image/encoded,label=image/class/label (TFRecord features, Parquet columns, tar
    /// extensions, LMDB key patterns)
    #[arg(long, value_name = "MAP", help_heading = "Source")]
    map: Option<Mapping>,
    /// TFRecord: keep records whole, whatever they hold
    #[arg(long, help_heading = "Source")]
    raw: bool,
    /// LMDB: read this named database
    #[arg(long, value_name = "NAME", help_heading = "Source")]
    database: Option<String>,
    /// LMDB: what the values are: bytes as they are (raw), Caffe's Datum, or what the first ones look like (auto)
    #[arg(
        long,
        value_name = "VALUES",
        default_value_t,
        value_parser = named::<LmdbValues>(&LmdbValues::NAMES),
        help_heading = "Source"
    )]
    values: LmdbValues,
    /// Folder: a CSV, TSV or JSON Lines table with a row for each file; its first column, or the one called `path`, is
    /// the path below SRC, numbers become attributes, text becomes fields
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    labels: Option<PathBuf>,
}

impl SourceArgs {
    /// Opens what was named.
    pub(crate) fn open(
        &self,
        named: &[PathBuf],
        skip_bad: bool,
        printer: &Printer,
    ) -> Result<Box<dyn Source>, ConvertError> {
        let looking = printer.progress(Counted::Steps, None);
        looking.set_message("looking at the source");
        Ok(open_source(named, &self.options(skip_bad))?)
    }

    /// What was said of the source beside its paths.
    pub(crate) fn words(&self) -> String {
        self.options(false).words()
    }

    fn options(&self, skip_bad: bool) -> SourceOptions {
        SourceOptions {
            from: self.from,
            map: self.map.clone().unwrap_or_default(),
            raw: self.raw,
            database: self.database.clone(),
            values: self.values,
            labels: self.labels.clone(),
            on_unreadable: if skip_bad { OnUnreadable::Skip } else { OnUnreadable::Stop },
            jobs: None,
            stopped: Some(interrupt::requested),
        }
    }
}

/// `SRC... DST`: the last path is the destination.
#[derive(clap::Args)]
pub(crate) struct Paths {
    /// SRC, what to take: files, folders, patterns such as 'train-*.tar' or 'train-{00000..00127}.tar', or `-` for
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

    /// All but the last.
    pub(crate) fn sources(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, sources)| sources)
    }
}
