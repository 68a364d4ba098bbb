//! What foreign data are, by their content and not by their names.

use std::path::{Path, PathBuf};

use grainstore_format::{Remedy, shown_path};

use crate::compressed::{Compression, content_head, detect, head_of};
use crate::shards::files_in;
use crate::{Remark, SourceError, lmdb, parquet, tar, tfrecord};

/// Formats that data come in.
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
    /// Lists of byte ranges in files: only where the user names it, for a table may be anything.
    List,
}

/// Data whose format is known.
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
        }
    }

    /// What the first bytes of a file are, decompressed where they are compressed.
    fn of_head(head: &[u8]) -> Option<Self> {
        let tests = [
            (parquet::recognises(head), Self::Parquet),
            (tar::recognises(head), Self::Tar),
            (lmdb::recognises(head), Self::Lmdb),
            (tfrecord::recognises(head), Self::TfRecord),
        ];
        tests.into_iter().find(|(is_it, _)| *is_it).map(|(_, format)| format)
    }

    /// What a regular file holds; `None` where it is not of a known format.
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

/// Finds out what `paths` are: all folders of plain files, or all of one other format. A folder whose own files are
/// shards stands for them, sorted by name.
///
/// # Errors
/// Where one cannot be read, is of no known format, or of another than the one before.
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

/// The shards of a format that was named by the user, in folders and among files.
///
/// # Errors
/// Where a folder cannot be listed, or has no file in it.
pub(crate) fn shards_of(paths: &[PathBuf], format: Format) -> Result<Recognised, SourceError> {
    let mut found = Recognised { format, paths: Vec::new(), ignored: Vec::new() };
    for path in paths {
        let is_whole =
            matches!(format, Format::Folder) || matches!(format, Format::Lmdb) && path.join("data.mdb").exists();
        if is_whole || !path.is_dir() {
            found.paths.push(path.clone());
            continue;
        }
        for file in files_in(path)? {
            let list = if Format::of_file(&file)? == Some(format) { &mut found.paths } else { &mut found.ignored };
            list.push(file);
        }
    }
    if found.paths.is_empty() {
        let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
        return Err(SourceError::refused(path, format!("no {} file in it", format.name())));
    }
    Ok(found)
}

fn recognise_one(path: &Path) -> Result<Recognised, SourceError> {
    let whole = |format| Recognised { format, paths: vec![path.to_owned()], ignored: Vec::new() };
    if grainstore_writer::existing(path).is_ok() {
        let why = "it is a grainstore dataset, which need not be converted";
        return Err(SourceError::refused(path, Remark::new(why, Remedy::Export)));
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

/// A folder is a folder of shards where its first file is one and no folder is in it; else its files are the samples.
fn recognise_folder(path: &Path) -> Result<Recognised, SourceError> {
    let folder = || Ok(Recognised { format: Format::Folder, paths: vec![path.to_owned()], ignored: Vec::new() });
    if has_folders(path)? {
        return folder();
    }
    let files = files_in(path)?;
    let mut formats = Vec::with_capacity(files.len().min(1024));
    for file in &files {
        let format = Format::of_file(file)?;
        // Many files that begin with none: pictures, not a README among shards.
        if formats.len() == 16 && formats.iter().all(Option::is_none) {
            return folder();
        }
        formats.push(format);
    }
    let Some(first) = formats.iter().flatten().next().copied() else { return folder() };
    if let Some(other) = formats.iter().position(|format| format.is_some_and(|format| format != first)) {
        let one = formats.iter().position(|format| *format == Some(first)).unwrap_or(0);
        return Err(mixed(&files[other], formats[other].unwrap_or(first), &files[one], first));
    }
    let mut paths = Vec::new();
    let mut ignored = Vec::new();
    for (file, format) in files.into_iter().zip(formats) {
        if format.is_some() { paths.push(file) } else { ignored.push(file) }
    }
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
