//! Folders whose files are not all samples, known by the files that an export or another program writes into them.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::Remedy;
use grainstore_host::open_regular;

use super::FolderLabels;
use super::listing::Listing;
use super::roots::remove_from;
use crate::{Remark, SourceError};

/// Tables about the other files of a folder, and how the column with their paths is called in each: what an export
/// writes, and what Hugging Face's ImageFolder reads.
const TABLES: [(&str, &[u8]); 3] =
    [("attributes.jsonl", b"\"path\""), ("metadata.jsonl", b"file_name\""), ("metadata.csv", b"file_name")];
/// Bytes of a table in which that name is looked for.
const HEAD_LEN: u64 = 4096;
/// What `save_to_disk` of Hugging Face's datasets writes beside its Arrow files: for one dataset, and for several.
const SAVED: [&[&str]; 2] = [&["state.json", "dataset_info.json"], &["dataset_dict.json"]];

/// Refuses a table about the other files, which nobody asked to read; or leaves it out, where labels are not wanted.
/// Returns the tables that were left out.
pub(super) fn tables_out_of(
    listings: &mut [Listing],
    folder_labels: FolderLabels,
) -> Result<Vec<PathBuf>, SourceError> {
    let mut left_out = Vec::new();
    for listing in listings {
        for table in tables_in(listing) {
            if folder_labels == FolderLabels::Found {
                let why = "it is a table about the other files in its folder, and no sample";
                return Err(SourceError::refused(&table, Remark::new(why, Remedy::ReadTable(table.clone()))));
            }
            remove_from(listing, &table)?;
            left_out.push(table);
        }
    }
    Ok(left_out)
}

/// The tables in a folder and below it.
fn tables_in(listing: &Listing) -> Vec<PathBuf> {
    let is_table = |&file: &usize| {
        let path = listing.relative_path(file);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let table = TABLES.iter().find(|(table, _)| table.as_bytes() == name);
        table.is_some_and(|(_, column)| has_column(&listing.path(file), column))
    };
    (0..listing.len()).filter(is_table).map(|file| listing.path(file)).collect()
}

/// Whether the first line of a file has these bytes.
fn has_column(path: &Path, column: &[u8]) -> bool {
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|(file, _)| file.take(HEAD_LEN).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && line.windows(column.len()).any(|window| window == column)
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
