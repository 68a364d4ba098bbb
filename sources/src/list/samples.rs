//! Reads the listed samples of one file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use grainstore_format::to_usize;
use grainstore_host::open_regular;
use grainstore_writer::{Sample, StreamedSample};

use super::rows::{Extent, ListedRows};
use crate::{Bad, Layout, Reach, RecordLocation, SampleReader, SourceSample, WHOLE_LEN_MAX};

/// The samples of a file, from one of its rows on.
pub(super) struct ListedSamples<'a> {
    rows: &'a ListedRows,
    left: Range<usize>,
    path: &'a Path,
    file: File,
    file_len: u64,
    layout: Layout,
    long: Box<dyn Read>,
}

impl<'a> ListedSamples<'a> {
    pub(super) fn open(rows: &'a ListedRows, left: Range<usize>, path: &'a Path, layout: Layout) -> Result<Self, Bad> {
        let (file, file_len) = open_regular(path).map_err(|error| Bad::file(path, &error))?;
        Ok(Self { rows, left, path, file, file_len, layout, long: Box::new(io::empty()) })
    }

    fn read(&mut self, row: usize) -> Result<SourceSample, Bad> {
        let extent = self.rows.extent(row).map_err(|error| self.bad(0, error.to_string()))?;
        let Extent { offset, len } = extent;
        let end = extent.end();
        if end > self.file_len {
            let row = self.rows.shown(row);
            let file_len = self.file_len;
            return Err(self.bad(offset, format!("{row} names bytes {offset}..{end}, the file has {file_len} bytes")));
        }
        let key = self.rows.key(row);
        let attributes = self.rows.attributes(row);
        let fields = Vec::new();
        let unread = |error: io::Error| self.bad(offset, format!("{}: {error}", self.rows.shown(row)));
        let offset_in_file = if self.layout == Layout::InPlace { offset } else { 0 };
        if len > WHOLE_LEN_MAX {
            self.long = Box::new(cut(&self.file, offset, len).map_err(unread)?);
            let sample = StreamedSample { key, attributes, fields, len };
            return Ok(SourceSample::Long { sample, offset: offset_in_file });
        }
        let mut payload = vec![0; to_usize(len)];
        self.file.read_exact_at(&mut payload, offset).map_err(unread)?;
        Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields }, offset: offset_in_file })
    }

    fn bad(&self, offset: u64, why: String) -> Bad {
        Bad::new(self.path, RecordLocation { offset: Some(offset), ..RecordLocation::default() }, why, Reach::Sample)
    }
}

/// A byte range of a file; all other reads are positional, so nothing else uses the offset of the file.
fn cut(file: &File, offset: u64, len: u64) -> io::Result<io::Take<File>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file.take(len))
}

impl SampleReader for ListedSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        self.long = Box::new(io::empty());
        self.left.next().map(|row| self.read(row)).transpose()
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}
