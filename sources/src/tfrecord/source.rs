//! TFRecord files as a source: a file is a part, a record a sample.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{Field, FieldType, Metadata, Remedy, Schema, SourceSetting, UserMetadata, shown_path};
use grainstore_writer::{Sample, StreamedSample};

use super::decode::{DecodedRecord, Mismatch};
use super::framing::recognises;
use super::infer::FirstRecords;
use super::payload::{PayloadLayout, PayloadReader};
use super::records::{Head, Records};
use super::shape::TfRecordShape;
use super::wire::InFile;
use crate::compressed::{Compression, detect, head_of};
use crate::{
    Bad, BlockBuilder, Blocks, Chosen, Description, Layout, Mapping, Reach, Remark, SampleReader, Source, SourceError,
    SourcePart, SourceSample, WHOLE_LEN_MAX, stamp_of_parts,
};

/// The zlib stream of no bytes is at most this long, whichever program wrote it.
const EMPTY_ZLIB_LEN_MAX: u64 = 64;

/// How records are understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TfRecordOptions {
    /// Which features become what; inferred where it is empty.
    pub map: Mapping,
    /// Which features, by their names or those that they get, are taken.
    pub chosen: Chosen,
    /// Whether records are packed as they are, each as one field `record`.
    pub raw: bool,
}

/// TFRecord files.
#[derive(Debug)]
pub struct TfRecordSource {
    description: Description,
    compressions: Vec<Compression>,
    /// `None` where records are packed as they are.
    shape: Option<TfRecordShape>,
}

impl TfRecordSource {
    /// Reads the first bytes of each file and, unless records are packed as they are, the first records of the first
    /// file that has any.
    ///
    /// # Errors
    /// Where no schema can be made of what is there.
    pub fn open(files: &[PathBuf], options: &TfRecordOptions) -> Result<Self, SourceError> {
        let Some(first) = files.first() else {
            return Err(SourceError::refused(Path::new(""), "no file was named"));
        };
        if options.raw && !options.map.is_empty() {
            let why = Remark::new("records that are kept whole have no features to map", Remedy::MapOrKeepWholeNotBoth);
            return Err(SourceError::refused(first, why));
        }
        if options.raw && !options.chosen.is_all() {
            let why = Remark::new(
                "records that are kept whole have no features to choose",
                Remedy::LeaveOut(SourceSetting::KeepWhole),
            );
            return Err(SourceError::refused(first, why));
        }
        let (parts, compressions): (Vec<_>, Vec<_>) = files.iter().map(|path| part(path)).unzip();
        let shape = if options.raw {
            None
        } else {
            let records = FirstRecords::of(first, &parts, &compressions)?;
            Some({
                let shape = TfRecordShape::of(&records, &options.map, &options.chosen);
                shape.map_err(|why| SourceError::refused(&records.path, why))?
            })
        };
        let compressed = not_adoptable(&parts, &compressions);
        let description = match &shape {
            None => Description {
                is_keyed: false,
                not_adoptable: compressed,
                ..Description::new("TFRecord", files.to_vec(), raw_metadata()?, parts)
            },
            Some(shape) => Description {
                is_keyed: shape.is_keyed,
                not_adoptable: compressed.or_else(|| shape.not_in_place()),
                notes: shape.notes.clone(),
                ..Description::new("TFRecord", files.to_vec(), shape.metadata.clone(), parts)
            },
        };
        Ok(Self { description: Description { ascends: true, ..description }, compressions, shape })
    }
}

impl Source for TfRecordSource {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        if self.compressions[part] != Compression::None {
            return Ok(None);
        }
        let mut records = Records::scan(&self.description.parts[part].path)?;
        let mut blocks = BlockBuilder::default();
        loop {
            let position = records.position();
            match records.next_head() {
                Ok(Some(head)) => {
                    blocks.push(position, head.framed_len());
                    records.skip(&head)?;
                }
                Ok(None) => break,
                Err(_) => {
                    // Of this length, it is a block of its own.
                    blocks.push(position, BlockBuilder::ALONE_LEN);
                    break;
                }
            }
        }
        Ok(Some(blocks.finish()))
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let path = &self.description.parts[part].path;
        let records = Records::open(path, self.compressions[part], position)?;
        Ok(Box::new(Reading {
            source: self,
            path,
            layout,
            records,
            data: Vec::new(),
            long: LongPayload::None(io::empty()),
        }))
    }

    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}

fn not_adoptable(parts: &[SourcePart], compressions: &[Compression]) -> Option<Remark> {
    let is_compressed = |(_, compression): &(&SourcePart, &Compression)| **compression != Compression::None;
    let (part, compression) = parts.iter().zip(compressions).find(is_compressed)?;
    let path = shown_path(&part.path);
    let name = compression.name();
    Some(format!("{path} is compressed ({name}), so its records are not in the file as they are").into())
}

/// A file that cannot be opened is reported when it is read, so that the other files can still be packed.
fn part(path: &Path) -> (SourcePart, Compression) {
    let (len, compression) = detect_compression(path).unwrap_or((0, Compression::None));
    (SourcePart { path: path.to_owned(), len, sample_count: None }, compression)
}

fn detect_compression(path: &Path) -> io::Result<(u64, Compression)> {
    let (mut file, compression) = detect(path, recognises)?;
    let len = file.metadata()?.len();
    if compression == Compression::None && len <= EMPTY_ZLIB_LEN_MAX && is_empty_zlib(&head_of(&mut file)?) {
        return Ok((len, Compression::Zlib));
    }
    Ok((len, compression))
}

/// Whether these bytes are the zlib stream of no bytes. TensorFlow writes that for a file without records; there is no
/// content by which it could be recognised as TFRecord.
fn is_empty_zlib(file: &[u8]) -> bool {
    let decoded = || Compression::of(file).reader(file)?.read_to_end(&mut Vec::new());
    Compression::of(file) == Compression::Zlib && decoded().is_ok_and(|len| len == 0)
}

fn raw_metadata() -> Result<Metadata, SourceError> {
    let record = Field { name: "record".into(), kind: FieldType::Bytes };
    Ok(Metadata { schema: Schema::new(vec![], vec![record])?, user: UserMetadata::default() })
}

/// The records of a file from one on.
struct Reading<'a> {
    source: &'a TfRecordSource,
    path: &'a Path,
    layout: Layout,
    records: Records<'a>,
    /// The data of the current record.
    data: Vec<u8>,
    long: LongPayload,
}

/// Where the payload of a long sample comes from.
enum LongPayload {
    None(io::Empty),
    /// It is the data of the current record.
    Record,
    Pieces(PayloadReader),
}

impl SampleReader for Reading<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        self.long = LongPayload::None(io::empty());
        let Some(head) = self.records.next_head()? else { return Ok(None) };
        match &self.source.shape {
            None => self.raw(head),
            Some(shape) => self.example(shape, head),
        }
        .map(Some)
    }

    fn payload(&mut self) -> &mut dyn Read {
        match &mut self.long {
            LongPayload::None(nothing) => nothing,
            LongPayload::Record => &mut self.records,
            LongPayload::Pieces(pieces) => pieces,
        }
    }
}

impl Reading<'_> {
    fn raw(&mut self, head: Head) -> Result<SourceSample, Bad> {
        let offset = self.offset(&head, 0);
        if head.len > WHOLE_LEN_MAX {
            self.records.begin_long(head);
            self.long = LongPayload::Record;
            let sample = StreamedSample { len: head.len, ..StreamedSample::default() };
            return Ok(SourceSample::Long { sample, offset });
        }
        let mut payload = Vec::new();
        self.records.read(&head, &mut payload)?;
        Ok(SourceSample::Whole { sample: Sample { payload, ..Sample::default() }, offset })
    }

    fn example(&mut self, shape: &TfRecordShape, head: Head) -> Result<SourceSample, Bad> {
        if head.len > WHOLE_LEN_MAX {
            return self.long_example(shape, head);
        }
        self.records.read(&head, &mut self.data)?;
        let decoded = shape.decode(&mut &self.data[..]).map_err(|mismatch| self.bad(&head, mismatch))?;
        let (arranged, described) = self.lay_out(&head, decoded)?;
        if arranged.len > WHOLE_LEN_MAX {
            let item = described.long(&arranged, self.offset(&head, arranged.start));
            self.long = LongPayload::Pieces(arranged.stream_held(std::mem::take(&mut self.data)));
            return Ok(item);
        }
        let payload = arranged.gather(&self.data);
        Ok(described.whole(payload, &arranged, self.offset(&head, arranged.start)))
    }

    /// A record that is too long for memory: its checksum is checked first, then it is decoded in the file.
    fn long_example(&mut self, shape: &TfRecordShape, head: Head) -> Result<SourceSample, Bad> {
        let Some(file) = self.records.file().map(Arc::clone) else {
            self.records.skip(&head)?;
            let why = format!(
                "it has {} bytes; to be taken apart, a record of more than 64 MiB must not be compressed",
                head.len
            );
            return Err(self.bad(&head, Mismatch(Remark::new(why, Remedy::MapOrKeepWhole))));
        };
        self.records.check_long(head)?;
        let mut record = InFile::new(Arc::clone(&file), head.data_offset(), head.len);
        let decoded = shape.decode(&mut record).map_err(|mismatch| self.bad(&head, mismatch))?;
        let (arranged, described) = self.lay_out(&head, decoded)?;
        let offset = self.offset(&head, arranged.start);
        let mut pieces = arranged.stream(file, head.data_offset());
        if arranged.len > WHOLE_LEN_MAX {
            self.long = LongPayload::Pieces(pieces);
            return Ok(described.long(&arranged, offset));
        }
        let mut payload = Vec::new();
        pieces.read_to_end(&mut payload).map_err(|error| self.bad(&head, Mismatch(error.to_string().into())))?;
        Ok(described.whole(payload, &arranged, offset))
    }

    fn lay_out(&self, head: &Head, decoded: DecodedRecord) -> Result<(PayloadLayout, Described), Bad> {
        let DecodedRecord { key, attributes, fields, .. } = decoded;
        let arranged = match self.layout {
            Layout::Packed => Some(PayloadLayout::packed(fields)),
            Layout::InPlace => PayloadLayout::in_place(&fields),
        };
        let apart = || {
            Mismatch("the numbers of a field are not one little-endian byte range, so it is not used in place".into())
        };
        let arranged = arranged.ok_or_else(|| self.bad(head, apart()))?;
        if !arranged.is_inside(head.len) {
            let bug = SourceError::bug("a field is outside the record that it was found in");
            return Err(self.bad(head, Mismatch(bug.to_string().into())));
        }
        Ok((arranged, Described { key, attributes }))
    }

    /// The offset of a payload that begins at `start` in the record.
    fn offset(&self, head: &Head, start: u64) -> u64 {
        match self.layout {
            Layout::Packed => 0,
            Layout::InPlace => head.data_offset() + start,
        }
    }

    fn bad(&self, head: &Head, Mismatch(why): Mismatch) -> Bad {
        Bad::new(self.path, head.location(), why, Reach::Sample)
    }
}

/// The key and the attributes of a sample.
struct Described {
    key: Vec<u8>,
    attributes: Vec<Option<grainstore_format::AttributeValue>>,
}

impl Described {
    fn whole(self, payload: Vec<u8>, arranged: &PayloadLayout, offset: u64) -> SourceSample {
        let Self { key, attributes } = self;
        SourceSample::Whole { sample: Sample { key, attributes, payload, fields: arranged.fields.clone() }, offset }
    }

    fn long(self, arranged: &PayloadLayout, offset: u64) -> SourceSample {
        let Self { key, attributes } = self;
        let fields = arranged.fields.clone();
        SourceSample::Long { sample: StreamedSample { key, attributes, fields, len: arranged.len }, offset }
    }
}
