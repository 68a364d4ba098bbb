//! The caller's description of an external file, and of the samples in it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use grainstore_format::{
    AttributeValue, Fingerprint, MAX_OFFSET, data_fingerprint_of, external_path_reach, modified_ns,
};

use crate::WriteError;
use crate::describe::Described;

/// An external file: it holds samples and is not changed. spec.md: EXT-1 to EXT-3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalFile {
    /// Its path in the manifest: relative to the dataset's directory, or absolute.
    pub path: String,
    /// Its length in bytes.
    pub file_len: u64,
    /// The fingerprint of its first and last bytes and its length.
    pub data_fingerprint: Fingerprint,
    /// The time of its last modification, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// A sample in an external file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExternalSample {
    /// The offset of its payload in the file.
    pub offset: u64,
    /// The length of its payload in bytes.
    pub len: u64,
    /// CRC-32 of its payload.
    pub crc: u32,
    /// 1 to 65535 bytes; empty in a keyless dataset.
    pub key: Vec<u8>,
    /// One for each attribute of the schema, in its order.
    pub attributes: Vec<Option<AttributeValue>>,
    /// The byte range of each field in the payload, counted from `offset`; empty if the only field is the whole
    /// payload.
    pub fields: Vec<Option<Range<u64>>>,
}

impl ExternalFile {
    /// Describes an open file, named by `path` in the manifest. Reads its first and last bytes: call it again, or
    /// compare the modification time, if the file may have been written to while its samples were searched.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(path: impl Into<String>, file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let file_len = metadata.len();
        let data_fingerprint = data_fingerprint_of(file_len, |bytes, offset| file.read_exact_at(bytes, offset))?;
        Ok(Self { path: path.into(), file_len, data_fingerprint, modified_ns: modified_ns(metadata.modified()?) })
    }

    /// Fails if it cannot be segment `number`, whose samples end at `data_end`.
    pub(super) fn check(&self, number: usize, data_end: u64) -> Result<(), WriteError> {
        external_path_reach(&self.path)?;
        let file_len = self.file_len;
        let wrong = |what: String| Err(WriteError::External { number, what });
        if file_len > MAX_OFFSET + 1 {
            return wrong(format!("its file has {file_len} bytes, the limit is 2^44"));
        }
        if data_end > file_len {
            return wrong(format!("its samples end at {data_end}, its file at {file_len}"));
        }
        Ok(())
    }
}

impl ExternalSample {
    pub(super) fn described(&self) -> Described<'_> {
        Described { key: &self.key, attributes: &self.attributes, fields: &self.fields }
    }

    /// The end of its payload. Fails if the payload starts before `end`, or is past the limit of an entry.
    pub(super) fn end_after(&self, end: u64) -> Result<u64, String> {
        let Self { offset, len, .. } = *self;
        if offset < end {
            return Err(format!("it starts at {offset}, the sample before it ends at {end}"));
        }
        let own_end = offset.checked_add(len).filter(|&own_end| own_end <= MAX_OFFSET + 1 && offset <= MAX_OFFSET);
        own_end.ok_or_else(|| format!("its {len} bytes at {offset} are past 2^44"))
    }
}
