//! Reads the rows of a finished index back, in order, with bounded memory: to merge and to rebuild.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::memory::{NoMemory, reserve, zeroed};
use grainstore_format::{
    AttributeValue, CHECKSUM_PAGE_LEN, Categories, ChecksumList, Directory, Entry, Fingerprint, Footer, FormatError,
    LongTable, MAX_KEY_LEN, Metadata, SectionKind, SectionRecord, StoredLen, escape_bytes, split_key, to_usize,
};

use crate::WriteError;
use crate::emit::Emitted;
use crate::index::{IndexRow, IndexSpec};
use crate::storage::{Storage, StorageFile};

/// The most bytes of the length before a key.
const LEN_OF_KEY_LEN: usize = 3;

/// The rows of one segment's own index.
pub(crate) struct SegmentRows {
    file: Box<dyn StorageFile>,
    path: PathBuf,
    pub(crate) directory: Directory,
    pub(crate) directory_bytes: Vec<u8>,
    pub(crate) metadata: Metadata,
    pub(crate) data_end: u64,
    file_len: u64,
    long: LongTable,
    streams: SectionStreams,
    next: u64,
    end: u64, // of the previous sample
    key: Vec<u8>,
    attributes: Vec<Option<AttributeValue>>,
    fields: Vec<Option<Range<u64>>>,
}

struct SectionStreams {
    entries: SectionStream,
    raw_len: Option<SectionStream>,
    keys: Option<SectionStream>,
    attributes: Vec<AttributeStream>,
    fields: Vec<(SectionStream, SectionStream, Option<SectionStream>)>,
}

struct AttributeStream {
    values: SectionStream,
    validity: Option<SectionStream>,
    categories: Categories,
}

/// A section that is read from start to end, in pages that are each checked.
struct SectionStream {
    record: SectionRecord,
    checksums: ChecksumList,
    next_page: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl SegmentRows {
    /// Opens a segment or index file of one segment.
    pub(crate) fn open(storage: &dyn Storage, path: PathBuf) -> Result<Self, WriteError> {
        let file = storage.open(&path).map_err(WriteError::io("open", &path))?;
        let damaged = |source| WriteError::Damaged { path: path.clone(), source };
        let file_len = file.file_len().map_err(WriteError::io("look at", &path))?;
        let read = |offset: u64, len: u64| {
            let mut bytes = vec![0; to_usize(len)];
            file.read_exact_at(&mut bytes, offset).map_err(WriteError::io("read", &path))?;
            Ok::<_, WriteError>(bytes)
        };
        let footer_len = Footer::LEN as u64;
        let footer_offset = file_len.checked_sub(footer_len).ok_or_else(|| too_short(file_len)).map_err(damaged)?;
        let footer = Footer::decode(&read(footer_offset, footer_len)?, file_len).map_err(damaged)?;
        let directory_bytes = read(footer.directory_offset(), u64::from(footer.directory_len()))?;
        let directory = Directory::decode(&directory_bytes, &footer).map_err(damaged)?;
        let whole = |record: &SectionRecord| {
            let stream = SectionStream::open(file.as_ref(), record).map_err(|e| e.at(&path))?;
            stream.into_whole(file.as_ref()).map_err(|e| e.at(&path))
        };
        let section = |kind| directory.section(kind, 0).map(whole).transpose();
        // `Directory::decode` has checked that these sections are there.
        let need = |kind| section(kind)?.ok_or_else(|| WriteError::bug("an index lost one of its sections"));
        let metadata = Metadata::decode(&need(SectionKind::Metadata)?).map_err(damaged)?;
        metadata.check_sections(&directory).map_err(damaged)?;
        metadata.schema.check_writable().map_err(damaged)?;
        let table = need(SectionKind::Segments)?;
        let counts = directory.counts();
        let table =
            grainstore_format::SegmentTable::decode(&table, counts.sample_count, directory.geometry().chunk_size)
                .map_err(damaged)?;
        let long = match section(SectionKind::Long)? {
            Some(bytes) => LongTable::decode(bytes, counts.sample_count).map_err(damaged)?,
            None => LongTable::default(),
        };
        let [record] = table.records() else {
            let detail = format!("it has {} segments", counts.segment_count);
            return Err(damaged(FormatError::Damaged { what: "segment's index", detail }));
        };
        let data_end = record.data_end;
        let streams = SectionStreams::open(file.as_ref(), &directory, &metadata).map_err(|e| e.at(&path))?;
        Ok(Self {
            file,
            directory,
            directory_bytes,
            metadata,
            data_end,
            file_len,
            long,
            streams,
            next: 0,
            end: 0,
            key: Vec::new(),
            attributes: Vec::new(),
            fields: Vec::new(),
            path,
        })
    }

    /// The same facts as when the index of this file was written.
    pub(crate) fn emitted(&self) -> Emitted {
        let counts = self.directory.counts();
        Emitted {
            fingerprint: Fingerprint::of_directory(&self.directory_bytes),
            file_len: self.file_len,
            sample_count: counts.sample_count,
            stored_bytes: counts.stored_bytes,
            payload_bytes: counts.payload_bytes,
        }
    }

    /// The properties of this index, for an index that is built from its rows.
    pub(crate) fn spec(&self, memory_len: u64) -> IndexSpec {
        IndexSpec {
            geometry: *self.directory.geometry(),
            metadata: Arc::new(self.metadata.clone()),
            keyed: self.directory.is_keyed(),
            field_columns: self.directory.section(SectionKind::FieldOffset, 0).is_some(),
            memory_len,
        }
    }

    /// The next sample; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<IndexRow<'_>>, WriteError> {
        if self.next == self.directory.counts().sample_count {
            return Ok(None);
        }
        let file = self.file.as_ref();
        let row =
            self.streams.read(file, &self.metadata, self.next, &mut self.key, &mut self.attributes, &mut self.fields);
        let (entry, raw_len) = row.map_err(|error| error.at(&self.path))?;
        let damaged = |detail| {
            let source = FormatError::Damaged { what: "entry", detail };
            WriteError::Damaged { path: self.path.clone(), source }
        };
        let stored_len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long => self.long.stored_len(self.next).ok_or_else(|| {
                damaged(format!("sample {} is long, but missing in the table of long samples", self.next))
            })?,
        };
        // A wrong entry could make the chunk list arbitrarily long. spec.md: ENT-4, SEG-2.
        let end = entry.offset().checked_add(stored_len).filter(|&end| end <= self.data_end);
        let Some(end) = end.filter(|_| entry.offset() >= self.end) else {
            return Err(damaged(format!("sample {} is at {}, outside its range", self.next, entry.offset())));
        };
        self.end = end;
        self.next += 1;
        Ok(Some(IndexRow {
            offset: entry.offset(),
            stored_len,
            raw_len: if entry.is_lz4() { u64::from(raw_len) } else { stored_len },
            crc: entry.crc(),
            lz4: entry.is_lz4(),
            key: &self.key,
            attributes: &self.attributes,
            fields: &self.fields,
        }))
    }
}

impl SectionStreams {
    fn open(file: &dyn StorageFile, directory: &Directory, metadata: &Metadata) -> Result<Self, RowError> {
        let open =
            |kind, item| directory.section(kind, item).map(|record| SectionStream::open(file, record)).transpose();
        // `Directory::decode` and `Metadata::check_sections` have checked that these sections are there.
        let need = |kind, item| open(kind, item)?.ok_or(RowError::Bug("a column of the schema has no section"));
        let has_fields = directory.section(SectionKind::FieldOffset, 0).is_some();
        let field_count = if has_fields { metadata.schema.fields().len() } else { 0 };
        Ok(Self {
            entries: need(SectionKind::Entries, 0)?,
            raw_len: open(SectionKind::RawLen, 0)?,
            keys: open(SectionKind::Keys, 0)?,
            attributes: (0_u16..)
                .zip(metadata.schema.attributes())
                .map(|(item, _)| {
                    let categories = match open(SectionKind::Categories, item)? {
                        Some(mut stream) => Categories::decode(stream.take(file, to_usize(stream.record.len))?)?,
                        None => Categories::default(),
                    };
                    let values = need(SectionKind::Attribute, item)?;
                    Ok(AttributeStream { values, validity: open(SectionKind::Validity, item)?, categories })
                })
                .collect::<Result<_, RowError>>()?,
            fields: (0_u16..)
                .take(field_count)
                .map(|item| {
                    let bounds = (need(SectionKind::FieldOffset, item)?, need(SectionKind::FieldLen, item)?);
                    Ok((bounds.0, bounds.1, open(SectionKind::FieldValidity, item)?))
                })
                .collect::<Result<_, RowError>>()?,
        })
    }

    /// Reads row `ordinal` into the buffers; returns its entry and raw length.
    fn read(
        &mut self,
        file: &dyn StorageFile,
        metadata: &Metadata,
        ordinal: u64,
        key: &mut Vec<u8>,
        attributes: &mut Vec<Option<AttributeValue>>,
        fields: &mut Vec<Option<Range<u64>>>,
    ) -> Result<(Entry, u32), RowError> {
        let entry = Entry::slice_of(self.entries.take(file, Entry::LEN)?).first().copied().ok_or(ended())?;
        let raw_len = match &mut self.raw_len {
            Some(stream) => u32::from_le_bytes(*stream.take(file, 4)?.first_chunk().ok_or(ended())?),
            None => 0,
        };
        key.clear();
        if let Some(stream) = &mut self.keys {
            stream.take_key(file, key)?;
        }
        attributes.clear();
        for (stream, attribute) in self.attributes.iter_mut().zip(metadata.schema.attributes()) {
            let AttributeStream { values, validity, categories } = stream;
            let width = values.record.width as usize;
            let value = attribute.kind.decode(values.take(file, width)?, categories);
            let there = validity.as_mut().map_or(Ok(true), |validity| validity.take_bit(file, ordinal))?;
            if there && value.is_none() {
                let name = escape_bytes(attribute.name.as_bytes());
                let detail = format!("the \"{name}\" of sample {ordinal} is no value of its type");
                return Err(RowError::Format(FormatError::Damaged { what: "attribute", detail }));
            }
            attributes.push(value.filter(|_| there));
        }
        fields.clear();
        for (offsets, lens, validity) in &mut self.fields {
            let from = offsets.take_uint(file)?;
            let len = lens.take_uint(file)?;
            let there = validity.as_mut().map_or(Ok(true), |validity| validity.take_bit(file, ordinal))?;
            fields.push(there.then_some(from..from.saturating_add(len)));
        }
        Ok((entry, raw_len))
    }
}

impl SectionStream {
    fn open(file: &dyn StorageFile, record: &SectionRecord) -> Result<Self, RowError> {
        let mut list = zeroed(4 * record.page_count())?;
        file.read_exact_at(&mut list, record.checksums_offset())?;
        let checksums = ChecksumList::decode(list, record.checksums_crc)?;
        Ok(Self { record: *record, checksums, next_page: 0, buffer: Vec::new(), at: 0 })
    }

    /// All bytes of the section, of which none was taken.
    fn into_whole(mut self, file: &dyn StorageFile) -> Result<Vec<u8>, RowError> {
        reserve(&mut self.buffer, self.record.len)?;
        self.take(file, to_usize(self.record.len))?;
        Ok(self.buffer)
    }

    /// The next `len` bytes of the section.
    fn take(&mut self, file: &dyn StorageFile, len: usize) -> Result<&[u8], RowError> {
        while self.buffer.len() - self.at < len {
            self.fill(file)?;
        }
        self.at += len;
        Ok(&self.buffer[self.at - len..self.at])
    }

    /// Adds the next page to the buffer.
    fn fill(&mut self, file: &dyn StorageFile) -> Result<(), RowError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let from = self.next_page * CHECKSUM_PAGE_LEN;
        let len = self.record.len.saturating_sub(from).min(CHECKSUM_PAGE_LEN);
        if len == 0 {
            return Err(RowError::Format(ended()));
        }
        let start = self.buffer.len();
        self.buffer.resize(start + to_usize(len), 0);
        file.read_exact_at(&mut self.buffer[start..], self.record.offset + from)?;
        self.checksums.check_page(self.next_page, &self.buffer[start..])?;
        self.next_page += 1;
        Ok(())
    }

    fn take_uint(&mut self, file: &dyn StorageFile) -> Result<u64, RowError> {
        let bytes = self.take(file, self.record.width as usize)?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Bit `ordinal`; ordinals must be requested one after the other.
    fn take_bit(&mut self, file: &dyn StorageFile, ordinal: u64) -> Result<bool, RowError> {
        if ordinal.is_multiple_of(8) {
            self.take(file, 1)?;
        }
        let byte = self.buffer.get(self.at.wrapping_sub(1)).copied().ok_or(ended())?;
        Ok(byte >> (ordinal % 8) & 1 == 1)
    }

    fn take_key(&mut self, file: &dyn StorageFile, key: &mut Vec<u8>) -> Result<(), RowError> {
        loop {
            if let Ok((found, rest)) = split_key(&self.buffer[self.at..]) {
                key.extend_from_slice(found);
                self.at = self.buffer.len() - rest.len();
                return Ok(());
            }
            // Either the key continues in the next page, or there is no next page and this fails. A longer one is broken.
            if self.buffer.len() - self.at > MAX_KEY_LEN + LEN_OF_KEY_LEN {
                split_key(&self.buffer[self.at..])?;
            }
            self.fill(file)?;
        }
    }
}

/// An error of a file whose path the caller adds.
enum RowError {
    Io(std::io::Error),
    NoMemory(NoMemory),
    Format(FormatError),
    Bug(&'static str),
}

impl RowError {
    fn at(self, path: &std::path::Path) -> WriteError {
        match self {
            Self::Io(source) => WriteError::io("read", path)(source),
            Self::NoMemory(error) => {
                WriteError::io("read", path)(std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))
            }
            Self::Format(source) => WriteError::Damaged { path: path.to_owned(), source },
            Self::Bug(what) => WriteError::bug(what),
        }
    }
}

impl From<std::io::Error> for RowError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<NoMemory> for RowError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error)
    }
}

impl From<FormatError> for RowError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

fn ended() -> FormatError {
    FormatError::Damaged { what: "index", detail: "a section ends before its last element".into() }
}

fn too_short(file_len: u64) -> FormatError {
    FormatError::Length { what: "file", found: file_len, expected: "28672 or more".into() }
}
