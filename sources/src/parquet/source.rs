//! Parquet files as a source.

use std::collections::HashSet;
use std::io::Cursor;
use std::path::PathBuf;

use grainstore_format::{MAX_KEY_LEN, Remedy, shown_path};
use parquet::data_type::AsBytes;

use super::cells::{self, Cell};
use super::columns::{Column, ColumnMapping, FirstRows, is_chosen};
use super::file::{CheckedGroup, ParquetFile};
use super::kind::ColumnKind;
use super::rows::RowGroupSamples;
use crate::{
    Bad, Blocks, Chosen, Description, Layout, Mapping, Reach, RecordLocation, Remark, SampleReader, Source,
    SourceError, SourcePart, stamp_of_parts,
};

/// Rows that are read to see whether a column can be the key.
const ROWS_LOOKED_AT: u64 = 1000;

/// How Parquet files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParquetOptions {
    /// Which columns become the key, fields and attributes; all of them where it is empty.
    pub map: Mapping,
    /// Which columns, by their names or those that they get, are taken; the name of a struct stands for its members.
    pub chosen: Chosen,
    /// Columns of text that become attributes of type `category`, by their names or those that they get.
    pub categories: Vec<String>,
}

/// Parquet files as a source: a row is a sample, a row group is a part.
#[derive(Debug)]
pub struct ParquetSource {
    files: Vec<OpenedFile>,
    mapping: ColumnMapping,
    description: Description,
    groups: Vec<Group>,
}

/// A file, and where the columns of the mapping are among its leaf columns.
#[derive(Debug)]
struct OpenedFile {
    file: ParquetFile,
    leaves: Vec<usize>,
}

/// A row group, which is a part.
#[derive(Debug)]
struct Group {
    file: usize,
    number: usize,
    first_row: u64,
    row_count: u64,
}

impl ParquetSource {
    /// Reads the footers of all files, and the first rows of a column that may be the key; no other data.
    ///
    /// # Errors
    /// Where a file is not Parquet, is damaged, or has other columns than the first one; where a column cannot be
    /// stored.
    pub fn open(files: &[PathBuf], options: &ParquetOptions) -> Result<Self, SourceError> {
        let opened = files.iter().map(|path| ParquetFile::open(path)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = opened.first() else {
            return Err(SourceError::Refused { path: PathBuf::new(), why: "no file was named".into() });
        };
        let ParquetOptions { map, chosen, .. } = options;
        let mapping = ColumnMapping::new(first, options, &Looked { files: &opened })?;
        // Without a choice, what only another file has would be left out.
        let is_taken = |name: &str| map.targets().is_empty() && is_chosen(chosen, name, name);
        let leaves = opened
            .iter()
            .map(|file| {
                check_classes(file, first)?;
                mapping.leaves_of(file, first, is_taken)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let files: Vec<OpenedFile> =
            opened.into_iter().zip(leaves).map(|(file, leaves)| OpenedFile { file, leaves }).collect();
        let (parts, groups) = parts(&files)?;
        let origins: Vec<PathBuf> = files.iter().map(|opened| opened.file.path.clone()).collect();
        if let Some(path) = origins.first().filter(|_| parts.is_empty()) {
            let why = "it has no rows, nor has any other file".into();
            return Err(SourceError::NoSamples { path: path.clone(), why });
        }
        let description = Description {
            is_keyed: mapping.key.is_some(),
            ascends: true,
            not_adoptable: Some(Remark::new("Parquet pages are encoded", Remedy::Convert)),
            notes: mapping.notes.clone(),
            ..Description::new("Parquet", origins, mapping.metadata.clone(), parts)
        };
        Ok(Self { files, mapping, description, groups })
    }

    fn cells(&self, group: &Group) -> Result<Vec<Box<dyn cells::Cells>>, Bad> {
        let OpenedFile { file, leaves } = &self.files[group.file];
        let at = file.reopen()?;
        let metadata = file.metadata.row_group(group.number);
        let open = |(&leaf, column): (&usize, &Column)| cells::open(at.clone(), metadata, leaf, &column.kind);
        leaves.iter().zip(&self.mapping.columns).map(open).collect::<Result<_, _>>().map_err(|why| {
            let location = RecordLocation { record: Some(group.first_row), ..RecordLocation::default() };
            Bad::new(&file.path, location, format!("row group {}: {why}", group.number), Reach::Rest)
        })
    }
}

impl Source for ParquetSource {
    fn description(&self) -> &Description {
        &self.description
    }

    /// Always `None`: the length of a row is known only after its page was decoded.
    fn blocks(&self, _part: usize) -> Result<Option<Blocks>, Bad> {
        Ok(None)
    }

    /// The only position is 0.
    fn open(&self, part: usize, _position: u64, _layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let group = &self.groups[part];
        Ok(Box::new(RowGroupSamples {
            path: &self.files[group.file].file.path,
            mapping: &self.mapping,
            group: group.number,
            first_row: group.first_row,
            row_count: group.row_count,
            row: 0,
            cells: self.cells(group)?,
            long: Cursor::default(),
        }))
    }

    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}

/// A part for each row group that has rows.
fn parts(files: &[OpenedFile]) -> Result<(Vec<SourcePart>, Vec<Group>), SourceError> {
    let mut parts = Vec::new();
    let mut groups = Vec::new();
    for (number, OpenedFile { file, leaves }) in files.iter().enumerate() {
        let mut first_row = 0_u64;
        for group in 0..file.metadata.num_row_groups() {
            let CheckedGroup { row_count, stored_len } = file.check_group(group, leaves)?;
            if row_count == 0 {
                continue;
            }
            parts.push(SourcePart { path: file.path.clone(), len: stored_len, sample_count: Some(row_count) });
            groups.push(Group { file: number, number: group, first_row, row_count });
            first_row = first_row.saturating_add(row_count);
        }
    }
    Ok((parts, groups))
}

/// What is looked at before the columns are chosen.
struct Looked<'a> {
    files: &'a [ParquetFile],
}

impl FirstRows for Looked<'_> {
    /// Whether the first cells are all present, all different, and of a valid length for a key.
    fn can_be_key(&self, leaf: usize, kind: &ColumnKind) -> bool {
        let mut seen = HashSet::new();
        first_cells(&self.files[0], leaf, kind, |cell| match cell {
            Cell::Bytes(bytes) => (1..=MAX_KEY_LEN).contains(&bytes.len()) && seen.insert(bytes.as_bytes().to_vec()),
            _ => false,
        })
    }

    /// The footers count the elements of each row group, and the first rows are looked at. A null or an empty list
    /// counts as one element, so lengths of 1 say nothing.
    fn list_len(&self, name: &str, kind: &ColumnKind) -> Option<u64> {
        let ColumnKind::List(list) = kind else { return None };
        let width = u64::from(list.element.width()?);
        let mut len = None;
        for file in self.files {
            let leaf = file.named_leaves().position(|(path, _)| path.name == name)?;
            for group in file.metadata.row_groups().iter().filter(|group| group.num_rows() > 0) {
                let count = u64::try_from(group.columns().get(leaf)?.num_values()).ok()?;
                let rows = u64::try_from(group.num_rows()).ok()?;
                let per_row = count.checked_div(rows).filter(|_| count.is_multiple_of(rows))?;
                if *len.get_or_insert(per_row) != per_row {
                    return None;
                }
            }
        }
        let len = len.filter(|&len| len > 1)?;
        let leaf = self.files[0].named_leaves().position(|(path, _)| path.name == name)?;
        let has_len = |cell| matches!(cell, Cell::Bytes(bytes) if bytes.len() as u64 == len.saturating_mul(width));
        first_cells(&self.files[0], leaf, kind, has_len).then_some(len)
    }
}

/// Whether all of the first cells of a column are `good`.
fn first_cells(file: &ParquetFile, leaf: usize, kind: &ColumnKind, mut good: impl FnMut(Cell) -> bool) -> bool {
    let Some(group) = file.metadata.row_groups().iter().position(|group| group.num_rows() > 0) else { return false };
    let Ok(CheckedGroup { row_count, .. }) = file.check_group(group, &[leaf]) else { return false };
    let metadata = file.metadata.row_group(group);
    let Ok(Ok(mut cells)) = file.reopen().map(|at| cells::open(at, metadata, leaf, kind)) else { return false };
    (0..row_count.min(ROWS_LOOKED_AT)).all(|_| cells.next().is_ok_and(&mut good))
}

/// Checks that class numbers mean the same in both files.
fn check_classes(file: &ParquetFile, first: &ParquetFile) -> Result<(), SourceError> {
    if file.features().is_some() && first.features().is_some() && file.features() != first.features() {
        let first = shown_path(&first.path);
        let why = format!("its features, as Hugging Face's library wrote them, are not those of {first}");
        return Err(SourceError::Refused { path: file.path.clone(), why: why.into() });
    }
    Ok(())
}
