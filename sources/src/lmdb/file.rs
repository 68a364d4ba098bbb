//! The data file: finds the newest meta page, and reads pages and values of that transaction.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::vec;

use grainstore_host::open_regular;

use super::meta::{META_LEN, Meta};
use super::page::{HEADER_LEN, NodeContent, overflow_page_count, u64_at};
use super::window::Window;
use crate::{Bad, Reach, RecordLocation, SourceError};

/// Pages before this one are meta pages.
const FIRST_PAGE: u64 = 2;

/// A file of which one transaction is read.
#[derive(Debug)]
pub(super) struct DataFile {
    path: PathBuf,
    file: File,
    pub(super) len: u64,
    meta: Meta,
    /// Pages that are in the file and belong to the environment.
    page_count: u64,
}

/// Damage at a place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    offset: u64,
    why: String,
    pub(super) reach: Reach,
}

/// Where a value is in the file, and its bytes where they have been read already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredValue {
    pub(super) offset: u64,
    pub(super) len: u64,
    bytes: Option<Vec<u8>>,
}

impl Fault {
    pub(super) fn new(offset: u64, why: impl Into<String>) -> Self {
        Self { offset, why: why.into(), reach: Reach::Sample }
    }

    fn rest(offset: u64, why: impl Into<String>) -> Self {
        Self { reach: Reach::Rest, ..Self::new(offset, why) }
    }

    /// A contradiction in our own bookkeeping.
    pub(super) fn bug(what: &'static str) -> Self {
        Self::rest(0, SourceError::bug(what).to_string())
    }

    /// As an error of a sample, with its key where it is known.
    pub(super) fn into_bad(self, path: &Path, key: Option<&[u8]>) -> Bad {
        let location = RecordLocation { record: None, offset: Some(self.offset), name: key.map(<[u8]>::to_vec) };
        Bad::new(path, location, self.why, self.reach)
    }
}

impl DataFile {
    /// Opens `path`: a file, or a folder with `data.mdb` in it.
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        let path = if path.is_dir() { path.join("data.mdb") } else { path.to_owned() };
        let opened = open_regular(&path);
        let (file, len) = opened.map_err(|source| SourceError::Path { path: path.clone(), source })?;
        let meta = newest(&file, None).map_err(|why| SourceError::Refused { path: path.clone(), why: why.into() })?;
        let page_count = (len / u64::from(meta.page_len)).min(meta.last_page.saturating_add(1));
        Ok(Self { path, file, len, meta, page_count })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(super) fn page_len(&self) -> u64 {
        self.meta.page_len.into()
    }

    pub(super) fn page_count(&self) -> u64 {
        self.page_count
    }

    /// A fault on a page.
    pub(super) fn fault(&self, page: u64, why: impl AsRef<str>) -> Fault {
        Fault::new(page.saturating_mul(self.page_len()), format!("page {page}: {}", why.as_ref()))
    }

    /// Fails if a transaction was added after the file was opened: what was read before may be partly overwritten.
    pub(super) fn check_unwritten(&self) -> Result<(), Fault> {
        let now = newest(&self.file, Some(self.meta.page_len)).map_err(|why| Fault::rest(0, why))?;
        let now = now.transaction;
        let then = self.meta.transaction;
        if now == then {
            return Ok(());
        }
        Err(Fault::rest(
            0,
            format!(
                "another process has written to it since (transaction {now}, was {then}): stop the writer or copy the \
                 database with `mdb_copy`"
            ),
        ))
    }

    /// Reads a page into `bytes`.
    pub(super) fn read_page(&self, page: u64, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        bytes.resize(grainstore_format::to_usize(self.page_len()), 0);
        let offset = self.offset_of(page)?;
        self.read(offset, bytes)?;
        self.check_number(page, bytes)
    }

    /// Where the value of a node is. The node is in the leaf page `page`, whose bytes are `leaf`.
    pub(super) fn value(
        &self,
        page: u64,
        leaf: &[u8],
        content: &NodeContent,
        window: &mut Window,
    ) -> Result<StoredValue, Fault> {
        match content {
            NodeContent::Inline(range) | NodeContent::Database(range) => Ok(StoredValue {
                offset: self.offset_of(page)? + range.start as u64,
                len: range.len() as u64,
                bytes: leaf.get(range.clone()).map(<[u8]>::to_vec),
            }),
            NodeContent::Overflow { page, len } => self.overflow(*page, *len, window),
        }
    }

    /// Reads a value whole.
    pub(super) fn read_value(&self, value: StoredValue, window: &mut Window) -> Result<Vec<u8>, Fault> {
        if let Some(bytes) = value.bytes {
            return Ok(bytes);
        }
        self.read_at_most(&value, value.len, window)
    }

    /// Reads the first bytes of a value, `len` at most.
    pub(super) fn read_head(&self, value: &StoredValue, len: u64) -> Result<Vec<u8>, Fault> {
        self.read_at_most(value, len.min(value.len), &mut Window::default())
    }

    /// Streams values, one after the other.
    pub(super) fn stream(&self, values: Vec<StoredValue>) -> ValueReader<'_> {
        let mut values = values.into_iter();
        let now = values.next();
        ValueReader { file: self, now, values }
    }

    fn read_at_most(&self, value: &StoredValue, len: u64, window: &mut Window) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let len = grainstore_format::to_usize(len);
        bytes.try_reserve_exact(len).map_err(|error| Fault::new(value.offset, error.to_string()))?;
        bytes.resize(len, 0);
        self.read_ahead(value.offset, &mut bytes, window)?;
        Ok(bytes)
    }

    fn overflow(&self, page: u64, len: u64, window: &mut Window) -> Result<StoredValue, Fault> {
        let offset = self.offset_of(page)?;
        let mut header = [0; HEADER_LEN];
        self.read_ahead(offset, &mut header, window)?;
        self.check_number(page, &header)?;
        let count = overflow_page_count(&header).map_err(|why| self.fault(page, why))?;
        let room = count * self.page_len();
        let rest = self.page_count.saturating_sub(page);
        if count > rest || room < len + HEADER_LEN as u64 {
            let why = format!("a value of {len} bytes is on {count} overflow pages, and {rest} pages are left");
            return Err(self.fault(page, why));
        }
        Ok(StoredValue { offset: offset + HEADER_LEN as u64, len, bytes: None })
    }

    fn offset_of(&self, page: u64) -> Result<u64, Fault> {
        if (FIRST_PAGE..self.page_count).contains(&page) {
            return Ok(page * self.page_len());
        }
        Err(self.fault(page, format!("there is no such page, expected {FIRST_PAGE}..{}", self.page_count)))
    }

    fn check_number(&self, page: u64, bytes: &[u8]) -> Result<(), Fault> {
        match u64_at(bytes, 0) {
            Some(number) if number == page => Ok(()),
            Some(number) => Err(self.fault(page, format!("its header has page number {number}"))),
            None => Err(self.fault(page, "it is shorter than a page number")),
        }
    }

    /// Reads bytes, and small ones with those that follow them.
    fn read_ahead(&self, offset: u64, bytes: &mut [u8], window: &mut Window) -> Result<(), Fault> {
        if window.copy(offset, bytes) {
            return Ok(());
        }
        let Some(ahead) = window.begin(offset, bytes.len(), self.len.saturating_sub(offset)) else {
            return self.read(offset, bytes);
        };
        if self.read(offset, ahead).is_err() {
            // What cannot be read may be behind the wanted bytes.
            window.clear();
            return self.read(offset, bytes);
        }
        if window.copy(offset, bytes) { Ok(()) } else { Err(Fault::bug("a window has no bytes after it was filled")) }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|error| Fault::rest(offset, format!("cannot be read: {error}")))?;
        self.check_unwritten()
    }
}

/// Reads values that are too long for memory.
pub(super) struct ValueReader<'a> {
    file: &'a DataFile,
    now: Option<StoredValue>,
    values: vec::IntoIter<StoredValue>,
}

impl Read for ValueReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.as_ref().is_some_and(|value| value.len == 0) {
            self.now = self.values.next();
        }
        let Some(value) = &mut self.now else { return Ok(0) };
        let len = buffer.len().min(grainstore_format::to_usize(value.len));
        let bytes = &mut buffer[..len];
        self.file.read(value.offset, bytes).map_err(|fault| io::Error::other(fault.why))?;
        value.offset += len as u64;
        value.len -= len as u64;
        Ok(len)
    }
}

/// The newer meta page. If one cannot be read, a crash may have torn it, and the other one counts.
fn newest(file: &File, page_len: Option<u32>) -> Result<Meta, String> {
    let read = |offset| {
        let mut bytes = [0; META_LEN];
        let read = file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| format!("its meta page at byte {offset} cannot be read: {error}"))?;
        Meta::decode(&bytes)
    };
    let first = read(0);
    let Some(page_len) = page_len.or(first.as_ref().ok().map(|meta| meta.page_len)) else { return first };
    let of_this_size = |meta: &Meta| meta.page_len == page_len;
    match (first, read(page_len.into())) {
        (Ok(first), Ok(second)) if of_this_size(&first) && of_this_size(&second) => {
            Ok(if second.transaction > first.transaction { second } else { first })
        }
        (Ok(only), Err(_)) | (Err(_), Ok(only)) if of_this_size(&only) => Ok(only),
        (Ok(first), Ok(second)) => Err(format!(
            "its meta pages disagree on the length of pages: {} and {} bytes",
            first.page_len, second.page_len
        )),
        (Ok(_), Err(why)) | (Err(why), _) => Err(why),
    }
}
