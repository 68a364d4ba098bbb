//! Folders whose files are not all samples, known by the files that an export or another program writes into them.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::Remedy;
use grainstore_host::open_regular;
use serde_json::{Map, Value};

use super::FolderLabels;
use super::listing::Listing;
use crate::{Remark, SourceError};

/// Tables about the other files of a folder, and how the column with their paths is called in each: what an export
/// writes, and what Hugging Face's ImageFolder reads.
const TABLES: [(&str, &str); 3] =
    [("attributes.jsonl", "path"), ("metadata.jsonl", "file_name"), ("metadata.csv", "file_name")];
/// What else a column with paths ends with, of which Hugging Face's tables may have several.
const PATHS: &str = "_file_name";
/// Bytes of a table in which that name is looked for.
const HEAD_LEN: u64 = 1 << 16;
/// What `save_to_disk` of Hugging Face's datasets writes beside its Arrow files: for one dataset, and for several.
const SAVED: [&[&str]; 2] = [&["state.json", "dataset_info.json"], &["dataset_dict.json"]];

/// Refuses a table about the other files, which nobody asked to read; or leaves it out, where labels are not wanted.
/// Returns the tables that were left out.
pub(super) fn tables_out_of(
    listings: &mut [Listing],
    folder_labels: FolderLabels,
) -> Result<Vec<PathBuf>, SourceError> {
    let mut left_out = Vec::new();
    let is_only_root = listings.len() == 1;
    for listing in listings {
        let tables = tables_in(listing);
        if let (Some(table), FolderLabels::Found) = (tables.first(), folder_labels) {
            let path = listing.path(table.file);
            let what = "it is a table about the other files in its folder, and no sample";
            let is_of_all = is_only_root && tables.len() == 1 && table.is_readable && !table.relative.contains(&b'/');
            let why = if is_of_all {
                Remark::new(what, Remedy::ReadTable(path.clone()))
            } else {
                format!("{what}: convert each folder that has a table by itself, or move the tables elsewhere").into()
            };
            return Err(SourceError::refused(&path, why));
        }
        left_out.extend(tables.iter().map(|table| listing.path(table.file)));
        listing.remove_all(tables.iter().map(|table| &*table.relative))?;
    }
    Ok(left_out)
}

/// A table about other files.
struct KnownTable {
    /// Its number in the listing, and its path there.
    file: usize,
    relative: Vec<u8>,
    /// Whether it has the paths in the column that a reader of labels looks for.
    is_readable: bool,
}

/// The tables in a folder and below it.
fn tables_in(listing: &Listing) -> Vec<KnownTable> {
    let known = |file: usize| {
        let relative = listing.relative_path(file);
        let name = relative.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let (table, column) = TABLES.iter().find(|(table, _)| table.as_bytes() == name)?;
        let columns = columns_of(&listing.path(file), table.ends_with(".csv"));
        let is_readable = columns.iter().any(|found| found == column);
        let is_table = is_readable || columns.iter().any(|found| found.ends_with(PATHS));
        is_table.then(|| KnownTable { file, relative: relative.to_vec(), is_readable })
    };
    (0..listing.len()).filter_map(known).collect()
}

/// The names in the first line of a table; none where it cannot be read.
fn columns_of(path: &Path, is_csv: bool) -> Vec<String> {
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|(file, _)| file.take(HEAD_LEN).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line));
    if read.is_err() {
        Vec::new()
    } else if is_csv {
        text.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect()
    } else {
        let members: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        members.into_iter().map(|(name, _)| name).collect()
    }
}

/// Refuses a folder of Arrow files and what describes them, which would be packed as a few samples.
pub(super) fn refuse_saved(listings: &[Listing]) -> Result<(), SourceError> {
    let is_saved = |root: &Path| SAVED.iter().any(|names| names.iter().all(|name| root.join(name).is_file()));
    match listings.iter().find(|listing| is_saved(listing.root())) {
        Some(listing) => Err(SourceError::refused(
            listing.root(),
            "save_to_disk of Hugging Face's datasets wrote it, and its Arrow files are not read: write it as Parquet \
             (`load_from_disk(...).to_parquet(...)`), and name those files",
        )),
        None => Ok(()),
    }
}
