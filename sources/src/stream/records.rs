//! A stream of records: key and payload, each after its length.

use std::io::{self, Read};
use std::path::Path;

use grainstore_format::MAX_KEY_LEN;
use grainstore_writer::{Sample, StreamedSample};

use crate::{Bad, Reach, RecordLocation, SampleReader, SourceSample, WHOLE_LEN_MAX};

/// The records of a stream.
pub(super) struct Records<'a> {
    path: &'a Path,
    stream: Counted,
    is_keyed: bool,
    /// Number of the next record.
    record: u64,
    has_ended: bool,
    /// Bytes left of the payload that is being streamed.
    long_len: u64,
}

/// A stream that counts the bytes read.
struct Counted {
    stream: Box<dyn Read + Send>,
    offset: u64,
}

/// A record before its payload.
struct Head {
    offset: u64,
    key: Vec<u8>,
    len: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(path: &'a Path, stream: Box<dyn Read + Send>, is_keyed: bool) -> Self {
        let stream = Counted { stream, offset: 0 };
        Self { path, stream, is_keyed, record: 0, has_ended: false, long_len: 0 }
    }

    fn read_head(&mut self) -> Result<Option<Head>, String> {
        let offset = self.stream.offset;
        let Some(key_len) = self.stream.read_number()? else { return Ok(None) };
        let key_len = u32::from_le_bytes(key_len);
        if key_len as usize > MAX_KEY_LEN {
            return Err(format!("its key has {key_len} bytes; keys have {MAX_KEY_LEN} at most"));
        }
        let key = self.stream.read_exact_len(u64::from(key_len))?;
        let len = self.stream.read_number()?.ok_or("the stream ends before the length of its payload")?;
        Ok(Some(Head { offset, key, len: u64::from_le_bytes(len) }))
    }

    fn read_record(&mut self) -> Result<Option<Result<SourceSample, Bad>>, String> {
        self.skip_long()?;
        let Some(Head { offset, key, len }) = self.read_head()? else { return Ok(None) };
        if key.is_empty() == self.is_keyed {
            self.long_len = len;
            let why =
                if self.is_keyed { "it has no key, but the first has" } else { "it has a key, but the first has none" };
            return Ok(Some(Err(self.bad(offset, why.into(), Reach::Sample))));
        }
        if len > WHOLE_LEN_MAX {
            self.long_len = len;
            let sample = StreamedSample { key, len, ..StreamedSample::default() };
            return Ok(Some(Ok(SourceSample::Long { sample, offset: 0 })));
        }
        let payload = self.stream.read_exact_len(len)?;
        Ok(Some(Ok(SourceSample::Whole { sample: Sample::new(key, payload), offset: 0 })))
    }

    /// Skips the unread rest of a long payload.
    fn skip_long(&mut self) -> Result<(), String> {
        let skipped = io::copy(&mut self.stream.by_ref().take(self.long_len), &mut io::sink()).map_err(unreadable)?;
        match std::mem::take(&mut self.long_len) - skipped {
            0 => Ok(()),
            missing => Err(format!("the stream ends {missing} bytes before the end of the previous record's payload")),
        }
    }

    fn bad(&self, offset: u64, why: String, reach: Reach) -> Bad {
        let location = RecordLocation { record: Some(self.record), offset: Some(offset), name: None };
        Bad::new(self.path, location, why, reach)
    }
}

impl Counted {
    /// The next bytes; `None` where the stream has ended before them.
    fn read_number<const LEN: usize>(&mut self) -> Result<Option<[u8; LEN]>, String> {
        let found = self.read_up_to(LEN as u64)?;
        match <[u8; LEN]>::try_from(&found[..]) {
            Ok(number) => Ok(Some(number)),
            Err(_) if found.is_empty() => Ok(None),
            Err(_) => Err(format!("the stream ends after {} of the {LEN} bytes of a length", found.len())),
        }
    }

    fn read_exact_len(&mut self, len: u64) -> Result<Vec<u8>, String> {
        let found = self.read_up_to(len)?;
        if (found.len() as u64) < len {
            return Err(format!("the stream ends after {} of its {len} bytes", found.len()));
        }
        Ok(found)
    }

    /// Reads at most `len` bytes. Memory grows with what is read, not with `len`, which may be wrong.
    fn read_up_to(&mut self, len: u64) -> Result<Vec<u8>, String> {
        let mut found = Vec::new();
        self.take(len).read_to_end(&mut found).map_err(unreadable)?;
        Ok(found)
    }
}

fn unreadable(error: io::Error) -> String {
    format!("cannot be read: {error}")
}

impl SampleReader for Records<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        if self.has_ended {
            return Ok(None);
        }
        let offset = self.stream.offset;
        let found = self.read_record();
        let item = match found {
            Ok(Some(item)) => item.map(Some),
            Ok(None) => {
                self.has_ended = true;
                Ok(None)
            }
            Err(why) => {
                self.has_ended = true;
                Err(self.bad(offset, why, Reach::Rest))
            }
        };
        self.record += 1;
        item
    }

    fn payload(&mut self) -> &mut dyn Read {
        self
    }
}

/// Reads the payload of the last sample.
impl Read for Records<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = (&mut self.stream).take(self.long_len).read(buffer)?;
        self.long_len -= found as u64;
        if found == 0 && self.long_len > 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ends inside the payload"));
        }
        Ok(found)
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.stream.read(buffer)?;
        self.offset += found as u64;
        Ok(found)
    }
}
