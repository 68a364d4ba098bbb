//! Writes the samples of one file into its index.

use std::io::{ErrorKind, Read};
use std::path::Path;

use grainstore_writer::{
    ExternalFile, ExternalSample, ExternalSegment, FinishedExternal, Sample, StreamedSample, WriteError,
};

use crate::{ConvertError, OnBad};
use grainstore_sources::{Bad, Reach, RecordLocation, Skipped};

/// Bytes of a long sample that are read at once.
const PIECE_LEN: usize = 1 << 20;

/// The result of a file: its index, unless it has no samples, and what was skipped.
pub(super) type Adopted = (Option<FinishedExternal>, Vec<Skipped>);

/// Called with the number of bytes read of a long sample; an error stops reading.
pub(super) type Watch<'a> = &'a dyn Fn(u64) -> Result<(), ConvertError>;

pub(super) struct IndexRows<'a> {
    pub(super) path: &'a Path,
    pub(super) on_bad: OnBad,
    segment: ExternalSegment,
    /// Where samples do not come in the order of the file: all rows so far, to be sorted.
    gathered: Option<Vec<ExternalSample>>,
    skipped: Vec<Skipped>,
}

impl<'a> IndexRows<'a> {
    pub(super) fn new(path: &'a Path, on_bad: OnBad, segment: ExternalSegment, in_order: bool) -> Self {
        Self { path, on_bad, segment, gathered: (!in_order).then(Vec::new), skipped: Vec::new() }
    }

    /// Adds a sample; returns its length in bytes.
    pub(super) fn whole(&mut self, sample: Sample, offset: u64) -> Result<u64, ConvertError> {
        let Sample { key, attributes, payload, fields } = sample;
        let len = payload.len() as u64;
        self.push(ExternalSample { offset, len, crc: crc32fast::hash(&payload), key, attributes, fields })?;
        Ok(len)
    }

    /// Adds a long sample, which is read for its checksum; returns its length in bytes.
    pub(super) fn long(
        &mut self,
        sample: StreamedSample,
        offset: u64,
        payload: &mut dyn Read,
        watch: Watch<'_>,
    ) -> Result<u64, ConvertError> {
        let StreamedSample { key, attributes, fields, len } = sample;
        let lost = |why: String| {
            let location = RecordLocation { offset: Some(offset), ..RecordLocation::of_key(&key) };
            Bad::new(self.path, location, why, Reach::Sample)
        };
        let mut hasher = crc32fast::Hasher::new();
        let mut read_len = 0_u64;
        let mut piece = vec![0; PIECE_LEN];
        loop {
            watch(read_len)?;
            match payload.read(&mut piece) {
                Ok(0) => break,
                Ok(found_len) => {
                    hasher.update(&piece[..found_len]);
                    read_len += found_len as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let bad = lost(error.to_string());
                    return self.bad(bad).map(|()| 0);
                }
            }
        }
        if read_len != len {
            let bad = lost(format!("a sample of {len} bytes was here, now it has {read_len}"));
            return self.bad(bad).map(|()| 0);
        }
        self.push(ExternalSample { offset, len, crc: hasher.finalize(), key, attributes, fields })?;
        Ok(len)
    }

    /// Skips a bad sample or returns its error, depending on the options.
    pub(super) fn bad(&mut self, bad: Bad) -> Result<(), ConvertError> {
        if self.on_bad == OnBad::Stop {
            return Err(bad.into());
        }
        self.skipped.push(bad.into());
        Ok(())
    }

    /// Writes the index; a file without samples has none.
    pub(super) fn finish(mut self, file: ExternalFile) -> Result<Adopted, ConvertError> {
        for row in self.gathered.take().into_iter().flat_map(sorted) {
            self.push(row)?;
        }
        if self.segment.taken() == 0 {
            return Ok((None, self.skipped));
        }
        let finished = self.segment.finish(file).map_err(|error| in_file(self.path, error))?;
        Ok((Some(finished), self.skipped))
    }

    fn push(&mut self, row: ExternalSample) -> Result<(), ConvertError> {
        if let Some(gathered) = &mut self.gathered {
            gathered.push(row);
            return Ok(());
        }
        self.segment.push(&row).map_err(|error| in_file(self.path, error))
    }
}

/// Sorts rows by their bytes in the file; an empty sample comes before the sample at the same offset.
fn sorted(mut rows: Vec<ExternalSample>) -> Vec<ExternalSample> {
    rows.sort_by_key(|row| (row.offset, row.len));
    rows
}

/// Errors about the samples of a file name the file, and count from its first sample.
fn in_file(path: &Path, error: WriteError) -> ConvertError {
    match error {
        WriteError::Sample { .. } | WriteError::DuplicateKey { .. } | WriteError::External { .. } => {
            ConvertError::InFile { path: path.to_owned(), source: error }
        }
        other => other.into(),
    }
}
