//! Lists as a source: each listed file is a part, each row a sample.

use std::path::PathBuf;

use grainstore_format::to_usize;
use xxhash_rust::xxh64::Xxh64;

use super::rows::ListedRows;
use super::samples::ListedSamples;
use super::shape::{ListColumns, WANTED, metadata};
use crate::source::stamp_of_parts;
use crate::table::Table;
use crate::{
    Bad, BlockBuilder, Blocks, Chosen, Description, Layout, Reach, RecordLocation, Remark, SampleReader, Source,
    SourceError, SourcePart, WHOLE_LEN_MAX,
};

/// Samples in files of any kind, named by lists.
#[derive(Debug)]
pub struct ListSource {
    rows: ListedRows,
    description: Description,
}

impl ListSource {
    /// Reads lists, whose columns are matched by name. The listed files are not opened yet.
    ///
    /// # Errors
    /// Where a list cannot be read or understood, has no rows, or has a column that no attribute can be made of.
    pub fn open(lists: &[PathBuf]) -> Result<Self, SourceError> {
        Self::open_chosen(lists, &Chosen::default())
    }

    /// As [`ListSource::open`], with a choice of columns. `key` stays, unless it is named among those to leave out: the
    /// samples have no keys then.
    ///
    /// # Errors
    /// As [`ListSource::open`], and where a column that was named does not exist.
    pub fn open_chosen(lists: &[PathBuf], chosen: &Chosen) -> Result<Self, SourceError> {
        let Some(first) = lists.first() else {
            return Err(SourceError::Refused { path: PathBuf::new(), why: "no list was named".into() });
        };
        let mut table = Table::read(lists, WANTED)?;
        table.choose(chosen, &["key"]).map_err(|why| SourceError::refused(first, why))?;
        let columns = ListColumns::of(&table, first, chosen)?;
        let (metadata, notes) = metadata(&table, first)?;
        let rows = ListedRows::of(table, columns, first)?;
        let parts = rows.parts()?;
        // The lists, then the listed files.
        let origins = lists.iter().chain(parts.iter().map(|part| &part.path)).cloned().collect();
        let description = Description {
            is_keyed: rows.is_keyed(),
            is_listed: true,
            ascends: rows.are_ascending()?,
            not_adoptable: rows.overlap()?.map(Remark::from),
            notes,
            ..Description::new("list", origins, metadata, parts)
        };
        Ok(Self { rows, description })
    }
}

impl Source for ListSource {
    fn description(&self) -> &Description {
        &self.description
    }

    /// The position of a sample is its number in the part.
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        let mut blocks = BlockBuilder::default();
        for (position, row) in (0..).zip(self.rows.of_part(part)) {
            let bug = |error: SourceError| {
                let path = &self.description.parts[part].path;
                Bad::new(path, RecordLocation::default(), error.to_string(), Reach::Rest)
            };
            // A list may claim more than its file has, and a sample that is streamed needs no memory for all of it.
            blocks.push(position, self.rows.extent(row).map_err(bug)?.len.min(WHOLE_LEN_MAX));
        }
        Ok(Some(blocks.finish()))
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let Some(SourcePart { path, .. }) = self.description.parts.get(part) else {
            return Err(Bad::no_part(&self.description, part));
        };
        let mut rows = self.rows.of_part(part);
        rows.start = rows.start.saturating_add(to_usize(position)).min(rows.end);
        Ok(Box::new(ListedSamples::open(&self.rows, rows, path, layout)?))
    }

    fn stamp(&self) -> u64 {
        let mut hash = Xxh64::new(stamp_of_parts(&self.description.parts));
        hash.update(&self.rows.hash().to_le_bytes());
        hash.digest()
    }
}
