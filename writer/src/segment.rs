//! A native segment under construction: header, samples one after the other, its own index.

use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::{BLOCK_LEN, FileKind, Header, MAX_OFFSET, shown_path};

use crate::describe::Described;
use crate::emit::{Emitted, emit};
use crate::index::{IndexBuilder, IndexRow, IndexSpec};
use crate::output::Output;
use crate::prepare::Prepared;
use crate::storage::Storage;
use crate::{StreamError, StreamedSample, WriteError};

const COPY_LEN: usize = 1 << 20;

/// Writes one segment.
pub(crate) struct SegmentWriter {
    output: Output,
    index: IndexBuilder,
    data_end: u64,
}

impl SegmentWriter {
    /// Begins the segment `path` under a temporary name.
    pub(crate) fn create(storage: &Arc<dyn Storage>, path: PathBuf, spec: IndexSpec) -> Result<Self, WriteError> {
        let mut spill_path = path.clone().into_os_string();
        spill_path.push(".spill.tmp");
        let header = Header { kind: FileKind::Segment };
        let mut output = Output::create(storage, path)?;
        output.write(&header.encode())?;
        let index = IndexBuilder::new(spec, storage, spill_path.into());
        Ok(Self { output, index, data_end: BLOCK_LEN })
    }

    /// The offset where a sample of `stored_len` bytes would end.
    pub(crate) fn end_with(&self, stored_len: u64) -> u64 {
        self.place(stored_len).saturating_add(stored_len)
    }

    /// Whether the segment has no samples.
    pub(crate) fn is_empty(&self) -> bool {
        self.sample_count() == 0
    }

    /// The number of samples written so far.
    pub(crate) fn sample_count(&self) -> u64 {
        self.index.counts.sample_count
    }

    /// Writes a sample.
    pub(crate) fn push(&mut self, mut prepared: Prepared) -> Result<(), WriteError> {
        let payload = std::mem::take(&mut prepared.sample.payload);
        let sample = &prepared.sample;
        let stored_len = payload.len() as u64;
        let offset = self.place(stored_len);
        self.output.pad_to(offset)?;
        self.output.write_owned(payload)?;
        let whole = [Some(0..prepared.raw_len)];
        let row = with_field(sample.described(), &whole).row(offset, stored_len, prepared.crc);
        self.note(&IndexRow { raw_len: prepared.raw_len, lz4: prepared.lz4, ..row })
    }

    /// Writes a sample while it is read. If the source fails, the segment is as it was before.
    pub(crate) fn push_stream(&mut self, sample: &StreamedSample, source: &mut dyn Read) -> Result<(), StreamError> {
        let before = self.output.len();
        let offset = self.place(sample.len);
        self.output.pad_to(offset)?;
        let crc = match self.copy(sample.len, source) {
            Ok(crc) => crc,
            Err(StreamError::Source(error)) => {
                self.output.truncate(before)?;
                return Err(StreamError::Source(error));
            }
            Err(error) => return Err(error),
        };
        let whole = [Some(0..sample.len)];
        Ok(self.note(&with_field(sample.described(), &whole).row(offset, sample.len, crc))?)
    }

    /// Writes a sample as another segment has it. `copy` appends its stored bytes and returns their checksum, or why it
    /// cannot; that, or another checksum than the row has, is the reason that this returns. The segment is broken then.
    pub(crate) fn push_stored(
        &mut self,
        row: &IndexRow<'_>,
        copy: impl FnOnce(&mut Output) -> Result<io::Result<u32>, WriteError>,
    ) -> Result<Result<(), String>, WriteError> {
        let offset = self.place(row.stored_len);
        self.output.pad_to(offset)?;
        match copy(&mut self.output)? {
            Ok(crc) if crc == row.crc => self.note(&IndexRow { offset, ..*row }).map(Ok),
            Ok(crc) => Ok(Err(format!("the CRC-32 of its stored bytes is {crc:08x}, its entry has {:08x}", row.crc))),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Writes the index and renames the segment to its final name.
    pub(crate) fn finish(mut self) -> Result<Emitted, WriteError> {
        self.index.end_segment(self.data_end)?;
        let emitted = emit(self.index, &mut self.output)?;
        self.output.rename_into_place()?;
        Ok(emitted)
    }

    fn place(&self, stored_len: u64) -> u64 {
        let geometry = &self.index.spec.geometry;
        geometry.alignment.place(self.data_end, stored_len, geometry.chunk_size)
    }

    fn note(&mut self, row: &IndexRow<'_>) -> Result<(), WriteError> {
        self.data_end = row.offset + row.stored_len;
        if self.data_end > MAX_OFFSET + 1 {
            let what = format!("it ends at {} of {}, past 2^44", self.data_end, shown_path(self.output.final_path()));
            return Err(WriteError::Sample { ordinal: self.index.counts.sample_count, key: row.key.to_vec(), what });
        }
        self.index.push(row)
    }

    fn copy(&mut self, len: u64, source: &mut dyn Read) -> Result<u32, StreamError> {
        let mut buffer = vec![0; COPY_LEN];
        let mut hasher = crc32fast::Hasher::new();
        let mut rest = len;
        loop {
            // Reads one byte more than the rest, to detect a source that has grown.
            let want = grainstore_format::to_usize(rest.saturating_add(1)).min(COPY_LEN);
            let got = match source.read(&mut buffer[..want]) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(StreamError::Source(error)),
            };
            if got == 0 && rest == 0 {
                return Ok(hasher.finalize());
            }
            if got == 0 || got as u64 > rest {
                let text = if got == 0 {
                    format!("it shrank while it was read: {len} bytes at first, {} read", len - rest)
                } else {
                    format!("it grew while it was read: {len} bytes at first, more than {len} read")
                };
                return Err(StreamError::Source(io::Error::other(text)));
            }
            rest -= got as u64;
            hasher.update(&buffer[..got]);
            self.output.write(&buffer[..got])?;
        }
    }
}

/// A sample without field ranges has one field, the whole payload.
fn with_field<'a>(sample: Described<'a>, whole: &'a [Option<Range<u64>>]) -> Described<'a> {
    if sample.fields.is_empty() { Described { fields: whole, ..sample } } else { sample }
}
