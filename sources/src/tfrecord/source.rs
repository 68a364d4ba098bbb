//! TFRecord files as a source: a file is a part, a record a sample.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{Field, FieldType, Metadata, Remedy, Schema, shown_path};
use grainstore_writer::{Sample, StreamedSample};
use serde_json::Map;

use super::fit::{Fitted, Misfit};
use super::framing::recognises;
use super::look::Looked;
use super::payload::{Laid, PayloadReader};
use super::records::{Head, Records};
use super::shape::TfRecordShape;
use super::wire::InFile;
use crate::compressed::{Compression, detect, head_of};
use crate::{
    Bad, BlockBuilder, Blocks, Description, Layout, Mapping, Reach, Remark, SampleReader, Source, SourceError,
    SourcePart, SourceSample, WHOLE_LEN_MAX, stamp_of_parts,
};

/// The zlib stream of no bytes is not longer, whatever program writes it.
const EMPTY_ZLIB_LEN_MAX: u64 = 64;

/// How records are understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TfRecordOptions {
    /// Which features become what; where it is empty, that is detected.
    pub map: Mapping,
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
    /// Looks at the head of each file and, unless records are packed as they are, at the first records of the first.
    ///
    /// # Errors
    /// Where no schema can be made of what is there.
    pub fn open(files: &[PathBuf], options: &TfRecordOptions) -> Result<Self, SourceError> {
        let first = files.first().cloned().unwrap_or_default();
        if files.is_empty() {
            return Err(SourceError::refused(&first, "there is no file"));
        }
        if options.raw && !options.map.is_empty() {
            let why = Remark::new("records that are kept whole have no features to map", Remedy::MapOrKeepWholeNotBoth);
            return Err(SourceError::refused(&first, why));
        }
        let (parts, compressions): (Vec<_>, Vec<_>) = files.iter().map(|path| part(path)).unzip();
        let shape = if options.raw {
            None
        } else {
            let looked = Looked::at(&parts, &compressions)?;
            Some(TfRecordShape::of(&looked, &options.map).map_err(|why| SourceError::refused(&looked.path, why))?)
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
                warnings: shape.warnings.clone(),
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
            match records.next_head() {
                Ok(Some(head)) => {
                    blocks.push(head.offset(), head.framed_len());
                    records.skip(&head)?;
                }
                Ok(None) => break,
                Err(bad) => {
                    // Of this length, it is a block of its own.
                    blocks.push(bad.location.offset.unwrap_or(0), BlockBuilder::ALONE_LEN);
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

/// A file that cannot be opened is an error when it is read: the others may do without it.
fn part(path: &Path) -> (SourcePart, Compression) {
    let (len, compression) = look_at(path).unwrap_or((0, Compression::None));
    (SourcePart { path: path.to_owned(), len, sample_count: None }, compression)
}

fn look_at(path: &Path) -> io::Result<(u64, Compression)> {
    let (mut file, compression) = detect(path, recognises)?;
    let len = file.metadata()?.len();
    if compression == Compression::None && len <= EMPTY_ZLIB_LEN_MAX && is_empty_zlib(&head_of(&mut file)?) {
        return Ok((len, Compression::Zlib));
    }
    Ok((len, compression))
}

/// Whether these bytes are the zlib stream of no bytes: TensorFlow writes that for no records, and nothing is inside by
/// which it could be known.
fn is_empty_zlib(file: &[u8]) -> bool {
    let decoded = || Compression::of(file).reader(file)?.read_to_end(&mut Vec::new());
    Compression::of(file) == Compression::Zlib && decoded().is_ok_and(|len| len == 0)
}

fn raw_metadata() -> Result<Metadata, SourceError> {
    let record = Field { name: "record".into(), kind: FieldType::Bytes };
    Ok(Metadata { schema: Schema::new(vec![], vec![record])?, user: Map::new() })
}

/// The records of a file from one on.
struct Reading<'a> {
    source: &'a TfRecordSource,
    path: &'a Path,
    layout: Layout,
    records: Records<'a>,
    /// The record that is taken apart.
    data: Vec<u8>,
    long: LongPayload,
}

/// Where the payload of a long sample comes from.
enum LongPayload {
    None(io::Empty),
    /// It is the record, which comes next.
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
        let fitted = shape.fit(&mut &self.data[..]).map_err(|misfit| self.bad(&head, misfit))?;
        let (laid, described) = self.lay(&head, fitted)?;
        if laid.len > WHOLE_LEN_MAX {
            let item = described.long(&laid, self.offset(&head, laid.start));
            self.long = LongPayload::Pieces(laid.stream_held(std::mem::take(&mut self.data)));
            return Ok(item);
        }
        let payload = laid.gather(&self.data);
        debug_assert_eq!(payload.len() as u64, laid.len, "fields were found in this record");
        if payload.len() as u64 != laid.len {
            return Err(
                self.bad(&head, Misfit("internal error: a field is outside its record; please report it".into()))
            );
        }
        Ok(described.whole(payload, &laid, self.offset(&head, laid.start)))
    }

    /// A record that is not held: checked first, then taken apart where it is.
    fn long_example(&mut self, shape: &TfRecordShape, head: Head) -> Result<SourceSample, Bad> {
        let Some(file) = self.records.file().map(Arc::clone) else {
            self.records.skip(&head)?;
            let why = format!(
                "it has {} bytes; to be taken apart, a record of more than 64 MiB must not be compressed",
                head.len
            );
            return Err(self.bad(&head, Misfit(Remark::new(why, Remedy::MapOrKeepWhole))));
        };
        self.records.check_long(head)?;
        let mut record = InFile::new(Arc::clone(&file), head.data_offset(), head.len);
        let fitted = shape.fit(&mut record).map_err(|misfit| self.bad(&head, misfit))?;
        let (laid, described) = self.lay(&head, fitted)?;
        let offset = self.offset(&head, laid.start);
        let mut pieces = laid.stream(file, head.data_offset());
        if laid.len > WHOLE_LEN_MAX {
            self.long = LongPayload::Pieces(pieces);
            return Ok(described.long(&laid, offset));
        }
        let mut payload = Vec::new();
        pieces.read_to_end(&mut payload).map_err(|error| self.bad(&head, Misfit(error.to_string().into())))?;
        Ok(described.whole(payload, &laid, offset))
    }

    fn lay(&self, head: &Head, fitted: Fitted) -> Result<(Laid, Described), Bad> {
        let Fitted { key, attributes, fields, .. } = fitted;
        let laid = match self.layout {
            Layout::Packed => Some(Laid::packed(fields)),
            Layout::InPlace => Laid::in_place(&fields),
        };
        let apart =
            || Misfit("the numbers of a field are not one little-endian byte range, so it is not used in place".into());
        laid.map(|laid| (laid, Described { key, attributes })).ok_or_else(|| self.bad(head, apart()))
    }

    /// Where a payload begins that begins at `start` of the record.
    fn offset(&self, head: &Head, start: u64) -> u64 {
        match self.layout {
            Layout::Packed => 0,
            Layout::InPlace => head.data_offset() + start,
        }
    }

    fn bad(&self, head: &Head, Misfit(why): Misfit) -> Bad {
        Bad::new(self.path, head.place(), why, Reach::Sample)
    }
}

/// What is beside a sample's payload.
struct Described {
    key: Vec<u8>,
    attributes: Vec<Option<grainstore_format::AttributeValue>>,
}

impl Described {
    fn whole(self, payload: Vec<u8>, laid: &Laid, offset: u64) -> SourceSample {
        let Self { key, attributes } = self;
        SourceSample::Whole { sample: Sample { key, attributes, payload, fields: laid.fields.clone() }, offset }
    }

    fn long(self, laid: &Laid, offset: u64) -> SourceSample {
        let Self { key, attributes } = self;
        let fields = laid.fields.clone();
        SourceSample::Long { sample: StreamedSample { key, attributes, fields, len: laid.len }, offset }
    }
}
