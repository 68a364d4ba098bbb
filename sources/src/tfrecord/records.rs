//! The records of a file, one after the other, with their checksums checked.
//!
//! After a record with damaged data the next record can be read. After a damaged length nothing can.

use grainstore_host::open_regular;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use grainstore_format::to_usize;

use super::framing::{FOOTER_LEN, HEADER_LEN, WrongCrc, check, data_len, mask, masked_crc};
use super::input::{Ahead, Input};
use crate::compressed::Compression;
use crate::{Bad, Reach, RecordLocation};

/// Length of the buffer for compressed bytes.
const COMPRESSED_LEN: usize = 256 << 10;

/// The records of a file from an offset on.
pub(super) struct Records<'a> {
    path: &'a Path,
    input: Input,
    /// The file itself and its length, where it is not compressed.
    plain: Option<(Arc<File>, u64)>,
    /// Where the next byte is, in the file or in its content.
    at: u64,
    /// Number of the next record, where they were counted from the first.
    number: Option<u64>,
    /// Whether there must be a record here, because the caller has seen it before.
    is_promised: bool,
    has_ended: bool,
    long: Option<LongRecord>,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    number: Option<u64>,
    /// Where its frame begins.
    offset: u64,
    /// Length of its data.
    pub(super) len: u64,
}

/// A record that is being streamed.
struct LongRecord {
    head: Head,
    left: u64,
    crc: u32,
    footer_is_read: bool,
}

impl Head {
    pub(super) fn location(&self) -> RecordLocation {
        RecordLocation { record: self.number, offset: Some(self.offset), name: None }
    }

    /// Where its data begin.
    pub(super) fn data_offset(&self) -> u64 {
        self.offset + HEADER_LEN as u64
    }

    /// Length of its frame and data.
    pub(super) fn framed_len(&self) -> u64 {
        self.len.saturating_add((HEADER_LEN + FOOTER_LEN) as u64)
    }
}

impl<'a> Records<'a> {
    /// The records from `position` on; a compressed file is read from its start only.
    pub(super) fn open(path: &'a Path, compression: Compression, position: u64) -> Result<Self, Bad> {
        if compression == Compression::None {
            return Self::plain(path, position, Ahead::new);
        }
        let open = || {
            let (file, _) = open_regular(path)?;
            compression.reader(BufReader::with_capacity(COMPRESSED_LEN, file))
        };
        let stream = open().map_err(|error| Bad::file(path, &error))?;
        Ok(Self::over(path, Input::Stream(stream), None))
    }

    /// All records, for a caller that only wants to know where they are.
    pub(super) fn scan(path: &'a Path) -> Result<Self, Bad> {
        Self::plain(path, 0, Ahead::sparse)
    }

    fn plain(path: &'a Path, position: u64, ahead: fn(Arc<File>, u64, u64) -> Ahead) -> Result<Self, Bad> {
        let (file, len) = open_regular(path).map_err(|error| Bad::file(path, &error))?;
        let file = Arc::new(file);
        let records = Self::over(path, Input::Plain(ahead(Arc::clone(&file), position, len)), Some((file, len)));
        let number = (position == 0).then_some(0);
        Ok(Self { at: position, number, is_promised: position > 0, ..records })
    }

    fn over(path: &'a Path, input: Input, plain: Option<(Arc<File>, u64)>) -> Self {
        Self { path, input, plain, at: 0, number: Some(0), is_promised: false, has_ended: false, long: None }
    }

    /// Where the next record begins, in the file or in its content.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// The file, where its bytes can be read by position.
    pub(super) fn file(&self) -> Option<&Arc<File>> {
        self.plain.as_ref().map(|(file, _)| file)
    }

    /// Where the next record is; `None` at the end. The caller reads or skips its data next.
    pub(super) fn next_head(&mut self) -> Result<Option<Head>, Bad> {
        self.leave_long()?;
        if self.has_ended {
            return Ok(None);
        }
        let head = Head { number: self.number, offset: self.at, len: 0 };
        let mut header = [0; HEADER_LEN];
        let found = self.input.read_up_to(&mut header).map_err(|error| self.end(&head, error.to_string()))?;
        if found == 0 && !self.is_promised {
            self.has_ended = true;
            return Ok(None);
        }
        if found < HEADER_LEN {
            return Err(self.end(&head, format!("{found} bytes are left, a record takes 16: {TRUNCATED}")));
        }
        let len = data_len(&header).map_err(|wrong| self.end(&head, wrong.of("the length")))?;
        self.at = self.at.saturating_add(HEADER_LEN as u64);
        self.is_promised = false;
        self.number = self.number.map(|number| number + 1);
        let head = Head { len, ..head };
        self.check_fits(&head).map(|()| Some(head))
    }

    fn check_fits(&mut self, head: &Head) -> Result<(), Bad> {
        let Some((_, end)) = &self.plain else { return Ok(()) };
        let left = end.saturating_sub(self.at);
        if head.len.checked_add(FOOTER_LEN as u64).is_some_and(|need| need <= left) {
            return Ok(());
        }
        let why = format!("its length is {} and 4 bytes more, {left} bytes are left: {TRUNCATED}", head.len);
        Err(self.end(head, why))
    }

    /// Reads the data of the last record into memory; the caller has checked that it is short enough.
    pub(super) fn read(&mut self, head: &Head, data: &mut Vec<u8>) -> Result<(), Bad> {
        data.clear();
        if self.plain.is_some() {
            let reserved = data.try_reserve_exact(to_usize(head.len));
            reserved.map_err(|error| self.end(head, error.to_string()))?;
        }
        let read = (&mut self.input).take(head.len).read_to_end(data);
        read.map_err(|error| self.end(head, error.to_string()))?;
        let found = data.len() as u64;
        self.at += found;
        if found < head.len {
            return Err(self.short(head));
        }
        self.check_data(head, masked_crc(data))
    }

    fn check_data(&mut self, head: &Head, computed: u32) -> Result<(), Bad> {
        let mut footer = [0; FOOTER_LEN];
        let found = self.input.read_up_to(&mut footer).map_err(|error| self.end(head, error.to_string()))?;
        self.at += found as u64;
        if found < FOOTER_LEN {
            return Err(self.short(head));
        }
        check(computed, footer)
            .map_err(|wrong| Bad::new(self.path, head.location(), wrong.of("the data"), Reach::Sample))
    }

    /// Skips the data of the last record.
    pub(super) fn skip(&mut self, head: &Head) -> Result<(), Bad> {
        self.skip_bytes(head, head.len.saturating_add(FOOTER_LEN as u64))
    }

    fn skip_bytes(&mut self, head: &Head, len: u64) -> Result<(), Bad> {
        self.at = self.at.saturating_add(len);
        match self.input.skip(len) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.short(head)),
            Err(error) => Err(self.end(head, error.to_string())),
        }
    }

    /// Lets [`Records::stream`] return the data of the last record.
    pub(super) fn begin_long(&mut self, head: Head) {
        self.long = Some(LongRecord { head, left: head.len, crc: 0, footer_is_read: false });
    }

    /// Checks the checksum of the last record without holding its data in memory.
    pub(super) fn check_long(&mut self, head: Head) -> Result<(), Bad> {
        let mut piece = vec![0; 1 << 20];
        self.begin_long(head);
        while self.stream(&mut piece)? > 0 {}
        Ok(())
    }

    /// The next bytes of a streamed record. The last bytes are returned only if the checksum of all is right.
    pub(super) fn stream(&mut self, into: &mut [u8]) -> Result<usize, Bad> {
        let Some(LongRecord { head, left, crc, .. }) = self.long else { return Ok(0) };
        let want = into.len().min(to_usize(left));
        let into = &mut into[..want];
        if into.is_empty() {
            return Ok(0);
        }
        let found = self.input.read_up_to(into).map_err(|error| self.end(&head, error.to_string()))?;
        self.at += found as u64;
        if found < want {
            return Err(self.short(&head));
        }
        let left = left - found as u64;
        let crc = crc32c::crc32c_append(crc, into);
        self.long = Some(LongRecord { head, left, crc, footer_is_read: left == 0 });
        if left == 0 {
            self.check_data(&head, mask(crc))?;
        }
        Ok(found)
    }

    fn leave_long(&mut self) -> Result<(), Bad> {
        let Some(long) = self.long.take() else { return Ok(()) };
        if long.footer_is_read || self.has_ended {
            return Ok(());
        }
        self.skip_bytes(&long.head, long.left + FOOTER_LEN as u64)
    }

    /// The error for a file that ends inside a record.
    fn short(&mut self, head: &Head) -> Bad {
        let why = match &self.plain {
            Some((_, len)) => format!("the file had {len} bytes when it was opened and is shorter now"),
            None => format!("its length is {} and 4 bytes more, the content ends before that: {TRUNCATED}", head.len),
        };
        self.end(head, why)
    }

    /// An error after which nothing can be read.
    fn end(&mut self, head: &Head, why: String) -> Bad {
        self.has_ended = true;
        Bad::new(self.path, head.location(), why, Reach::Rest)
    }
}

impl Read for Records<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream(into)
            .map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, format!("{}{}", bad.location, bad.why)))
    }
}

const TRUNCATED: &str = "truncated, or not a TFRecord file";

impl WrongCrc {
    fn of(self, what: &str) -> String {
        format!("the masked CRC-32C of {what} is {:08x}, the record has {:08x}", self.computed, self.stored)
    }
}
