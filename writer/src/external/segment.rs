//! The index of one external file under construction: in memory, then in the spill file, then complete under its name.

use std::sync::Arc;

use grainstore_format::{FileKind, Header, IndexRef, SegmentKind, SegmentRef};

use super::{ExternalFile, ExternalSample, Shared};
use crate::WriteError;
use crate::emit::{Emitted, emit};
use crate::index::IndexBuilder;
use crate::output::Output;

/// Takes the samples of one file, in the order of their offsets. It can be filled in any thread. If it is dropped
/// before [`ExternalSegment::finish`], the dataset does not include its file.
pub struct ExternalSegment {
    index: IndexBuilder,
    data_end: u64,
    begun: Begun,
}

/// A file whose index is written: an argument of [`ExternalWriter::finish`](super::ExternalWriter::finish).
#[derive(Debug)]
pub struct FinishedExternal {
    pub(super) number: usize,
    /// `None` without samples.
    pub(super) written: Option<Written>,
}

/// An index under its final name, and the file that it describes.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: ExternalFile,
    pub(super) emitted: Emitted,
    index_file: String,
}

/// The unique number of a segment. Dropping it before the segment is written releases the number.
struct Begun {
    number: usize,
    shared: Arc<Shared>,
    is_written: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_written {
            self.shared.give_back(self.number);
        }
    }
}

impl ExternalSegment {
    pub(super) fn new(number: usize, shared: Arc<Shared>) -> Self {
        let spill_path = shared.directory.path().join(index_name(number) + ".spill.tmp");
        let index = IndexBuilder::new(shared.segment_spec.clone(), &shared.storage, spill_path);
        Self { index, data_end: 0, begun: Begun { number, shared, is_written: false } }
    }

    /// Takes the next sample. Ordinals in errors count from the first of this file.
    ///
    /// # Errors
    /// If it does not match the schema, or does not start after the sample before it: it is not taken, but others can
    /// be. If a file operation failed, here or for another segment: then the dataset cannot be completed.
    pub fn push(&mut self, sample: &ExternalSample) -> Result<(), WriteError> {
        let ordinal = self.index.counts.sample_count;
        let described = sample.described();
        described.check(&self.index.spec, ordinal, sample.len)?;
        let end = sample.end_after(self.data_end);
        let end = end.map_err(|what| WriteError::Sample { ordinal, key: sample.key.clone(), what })?;
        let index = &mut self.index;
        self.begun.shared.guarded(|| index.push(&described.row(sample.offset, sample.len, sample.crc)))?;
        self.data_end = end;
        Ok(())
    }

    /// The number of samples taken so far.
    pub fn taken(&self) -> u64 {
        self.index.counts.sample_count
    }

    /// Writes the index. A file without samples gets no index, and the dataset does not include it.
    ///
    /// # Errors
    /// If the manifest cannot name the file, it ends before its samples do or has more than 2^44 bytes, a key appears
    /// twice in it, or a file operation failed.
    pub fn finish(self, file: ExternalFile) -> Result<FinishedExternal, WriteError> {
        let Self { index, data_end, mut begun } = self;
        let number = begun.number;
        if index.counts.sample_count == 0 {
            return Ok(FinishedExternal { number, written: None });
        }
        file.check(number, data_end)?;
        let index_file = index_name(number);
        let emitted = begun.shared.guarded(|| write(&begun.shared, index, data_end, &index_file))?;
        begun.is_written = true;
        Ok(FinishedExternal { number, written: Some(Written { file, emitted, index_file }) })
    }
}

impl Written {
    pub(super) fn index(&self) -> IndexRef {
        IndexRef { file: self.index_file.clone(), fingerprint: self.emitted.fingerprint }
    }

    pub(super) fn reference(&self) -> SegmentRef {
        let ExternalFile { path, file_len, data_fingerprint, modified_ns } = self.file.clone();
        SegmentRef {
            kind: SegmentKind::External { index_file: self.index_file.clone(), data_fingerprint, modified_ns },
            path,
            file_len,
            sample_count: self.emitted.sample_count,
            fingerprint: self.emitted.fingerprint,
        }
    }
}

fn write(shared: &Shared, mut index: IndexBuilder, data_end: u64, name: &str) -> Result<Emitted, WriteError> {
    index.end_segment(data_end)?;
    let mut output = Output::create(&shared.storage, shared.directory.path().join(name))?;
    output.write(&Header { kind: FileKind::Index }.encode())?;
    let emitted = emit(index, &mut output)?;
    output.rename_into_place()?;
    Ok(emitted)
}

fn index_name(number: usize) -> String {
    format!("{number:05}.idx")
}
