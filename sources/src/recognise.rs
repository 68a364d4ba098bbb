//! Recognises the format of foreign data by their content, not by their names.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::{Header, Manifest, Remedy, shown_path};
use grainstore_host::open_regular;

use crate::alike::split_shards;
use crate::compressed::{Compression, content_head, detect, head_of};
use crate::shards::files_in;
use crate::{Remark, SourceError, lmdb, parquet, tar, tfrecord};

/// The formats of foreign data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Plain files.
    Folder,
    /// TFRecord files.
    TfRecord,
    /// LMDB databases.
    Lmdb,
    /// Tar files, WebDataset's and others.
    Tar,
    /// Parquet files.
    Parquet,
    /// Lists of byte ranges in files. Never recognised: the user has to name this format, because a table may be
    /// anything.
    List,
    /// Datasets of grainstore, or lone segments of it.
    Dataset,
}

/// Data whose format was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The format.
    pub format: Format,
    /// The folders of plain files, the databases, or the files of the format, in order.
    pub paths: Vec<PathBuf>,
    /// Files among the shards that are not shards, such as a README or a list of classes.
    pub ignored: Vec<PathBuf>,
}

impl Format {
    /// Its name, for the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::TfRecord => "TFRecord",
            Self::Lmdb => "LMDB",
            Self::Tar => "tar",
            Self::Parquet => "Parquet",
            Self::List => "list",
            Self::Dataset => "dataset",
        }
    }

    /// The format of a file that begins with `head`, decompressed where it is compressed.
    fn of_head(head: &[u8]) -> Option<Self> {
        let tests = [
            (parquet::recognises(head), Self::Parquet),
            (tar::recognises(head), Self::Tar),
            (lmdb::recognises(head), Self::Lmdb),
            (tfrecord::recognises(head), Self::TfRecord),
        ];
        tests.into_iter().find(|(is_it, _)| *is_it).map(|(_, format)| format)
    }

    /// The format of a regular file; `None` where it is not a known one.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of_file(path: &Path) -> Result<Option<Self>, SourceError> {
        let unread = |source| SourceError::Path { path: path.to_owned(), source };
        let (file, compression) = detect(path, |head| Self::of_head(head).is_some()).map_err(unread)?;
        let head = head_of(&mut &file).map_err(unread)?;
        Ok(match compression {
            Compression::None => Self::of_head(&head),
            compression => Self::of_head(&content_head(&head, compression)),
        })
    }
}

/// Recognises the format of `paths`: all are folders of plain files, or all are of one other format. A folder of shards
/// is replaced by the shards, sorted by name.
///
/// # Errors
/// Where one cannot be read, is not in a known format, or in another format than the one before.
pub fn recognise(paths: &[PathBuf]) -> Result<Recognised, SourceError> {
    let mut all: Option<Recognised> = None;
    for path in paths {
        let found = recognise_one(path)?;
        match &mut all {
            None => all = Some(found),
            Some(all) if all.format == found.format => {
                all.paths.extend(found.paths);
                all.ignored.extend(found.ignored);
            }
            Some(all) => return Err(mixed(path, found.format, &all.paths[0], all.format)),
        }
    }
    all.ok_or_else(|| SourceError::refused(Path::new(""), "nothing was named"))
}

/// The shards of the format that the user named, in folders and among files.
///
/// # Errors
/// Where a folder cannot be listed, or has no file in it.
pub(crate) fn shards_of(paths: &[PathBuf], format: Format) -> Result<Recognised, SourceError> {
    let mut found = Recognised { format, paths: Vec::new(), ignored: Vec::new() };
    for path in paths {
        let is_whole = matches!(format, Format::Folder | Format::Dataset)
            || matches!(format, Format::Lmdb) && path.join("data.mdb").exists();
        if is_whole || !path.is_dir() {
            found.paths.push(path.clone());
            continue;
        }
        let mut files = Vec::new();
        for file in files_in(path)?.into_shards()? {
            let is_shard = Format::of_file(&file)? == Some(format);
            files.push((file, is_shard));
        }
        let (shards, others) = split_shards(files, format)?;
        found.paths.extend(shards);
        found.ignored.extend(others);
    }
    if found.paths.is_empty() {
        let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
        if found.ignored.is_empty() {
            return Err(SourceError::NoSamples { path: path.to_owned(), why: "no files in it".into() });
        }
        return Err(SourceError::refused(path, format!("no {} file in it", format.name())));
    }
    Ok(found)
}

fn recognise_one(path: &Path) -> Result<Recognised, SourceError> {
    let whole = |format| Recognised { format, paths: vec![path.to_owned()], ignored: Vec::new() };
    if is_dataset(path) {
        return Ok(whole(Format::Dataset));
    }
    if path.is_dir() {
        return if path.join("data.mdb").is_file() { Ok(whole(Format::Lmdb)) } else { recognise_folder(path) };
    }
    match Format::of_file(path)? {
        Some(format) => Ok(whole(format)),
        None => {
            let why = "it is not a tar, TFRecord, LMDB or Parquet file, compressed or not, and not a folder";
            Err(SourceError::refused(path, Remark::new(why, Remedy::NameFormat)))
        }
    }
}

/// Whether a folder is a dataset of grainstore, intact or damaged, or a file one of its segments: their bytes are no
/// samples.
fn is_dataset(path: &Path) -> bool {
    let starts = |path: &Path| {
        let mut start = Vec::with_capacity(64);
        let read = open_regular(path).and_then(|(file, _)| file.take(64).read_to_end(&mut start));
        read.is_ok().then_some(start)
    };
    if path.is_dir() {
        return starts(&path.join(Manifest::FILE_NAME))
            .is_some_and(|start| start.windows(12).any(|window| window == b"\"grainstore\""));
    }
    starts(path).is_some_and(|start| start.starts_with(&Header::MAGIC))
}

/// A folder is a folder of shards if it has no folders inside and at least one file of a known format among its first
/// files; else its files are the samples.
fn recognise_folder(path: &Path) -> Result<Recognised, SourceError> {
    let folder = || Ok(Recognised { format: Format::Folder, paths: vec![path.to_owned()], ignored: Vec::new() });
    if has_folders(path)? {
        return folder();
    }
    let found = files_in(path)?;
    let mut formats = Vec::with_capacity(found.files.len().min(1024));
    for file in &found.files {
        let format = Format::of_file(file)?;
        // The first sixteen files are not shards: pictures, not a README among shards.
        if formats.len() == 16 && formats.iter().all(Option::is_none) {
            return folder();
        }
        formats.push(format);
    }
    let mut shards = found.files.iter().zip(&formats).filter_map(|(file, format)| Some((file, (*format)?)));
    let Some((first_file, first)) = shards.next() else { return folder() };
    if let Some((file, format)) = shards.find(|(_, format)| *format != first) {
        return Err(mixed(file, format, first_file, first));
    }
    let is_shard = formats.into_iter().map(|format| format.is_some());
    let (paths, ignored) = split_shards(found.into_shards()?.into_iter().zip(is_shard).collect(), first)?;
    Ok(Recognised { format: first, paths, ignored })
}

fn has_folders(path: &Path) -> Result<bool, SourceError> {
    let unlisted = |source| SourceError::Path { path: path.to_owned(), source };
    for entry in std::fs::read_dir(path).map_err(unlisted)? {
        if entry.map_err(unlisted)?.path().is_dir() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn mixed(path: &Path, format: Format, other: &Path, other_format: Format) -> SourceError {
    let name = format.name();
    let other_name = other_format.name();
    let why = format!("it is {name}, but {} is {other_name}: name data of one kind", shown_path(other));
    SourceError::refused(path, Remark::new(why, Remedy::NameFormat))
}
