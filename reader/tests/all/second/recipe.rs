//! Datasets of every kind the format has, from a seed.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};
use half::{bf16, f16};
use tempfile::TempDir;

use crate::common::Random;

const ATTRIBUTES: [&str; 15] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "timestamp",
    "category",
    "float64",
];

/// The shape of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    pub(crate) chunk_size: u64,
    pub(crate) alignment: Alignment,
    pub(crate) keyed: bool,
    pub(crate) lz4: bool,
    pub(crate) several_fields: bool,
    pub(crate) attributes: bool,
    pub(crate) segment_size: u64,
    pub(crate) payload_lens: Vec<usize>,
}

impl Recipe {
    /// Keyed samples of one field, stored raw in one segment.
    pub(crate) fn plain(name: &'static str, chunk_size: u64, payload_lens: Vec<usize>) -> Self {
        Self {
            name,
            chunk_size,
            alignment: Alignment::PACKED,
            keyed: true,
            lz4: false,
            several_fields: false,
            attributes: false,
            segment_size: 1 << 40,
            payload_lens,
        }
    }

    /// All features of the format at once, in several segments of a few hundred samples of up to 900 bytes each.
    pub(crate) fn rich(name: &'static str, count: usize) -> Self {
        let payload_lens = (0..count).map(|i| i * 7919 % 900).collect();
        Self {
            lz4: true,
            several_fields: true,
            attributes: true,
            segment_size: 50_000,
            ..Self::plain(name, 4096, payload_lens)
        }
    }

    pub(crate) fn pack(&self) -> Packed {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.grain", self.name));
        let options = WriterOptions {
            geometry: Geometry {
                chunk_size: ChunkSize::new(self.chunk_size).unwrap(),
                alignment: self.alignment,
                hash_seed: self.payload_lens.len() as u64,
            },
            segment_size: self.segment_size,
            compression: if self.lz4 { Compression::Lz4 } else { Compression::None },
            keyed: self.keyed,
            jobs: NonZeroUsize::new(1),
            ..WriterOptions::with_metadata(Metadata { schema: self.schema(), user: UserMetadata::default() })
        };
        let mut random = Random(self.payload_lens.len() as u64);
        let samples: Vec<_> = (0..self.payload_lens.len()).map(|ordinal| self.sample(ordinal, &mut random)).collect();
        let mut writer = DatasetWriter::create(&path, options).unwrap();
        writer.write_batch(samples.clone()).unwrap();
        writer.finish().unwrap();
        Packed { _folder: folder, path, schema: self.schema(), samples }
    }

    fn schema(&self) -> Schema {
        let types = ATTRIBUTES.iter().map(|name| AttributeType::from_name(name).unwrap());
        let attributes = types.map(|kind| Attribute { name: format!("{} \"größe\"", kind.name()), kind });
        let fields: &[(&str, &str)] = match self.several_fields {
            true => &[("image", "bytes"), ("caption", "str"), ("boxes", "float32[2,0,4]"), ("list", "bfloat16[,3]")],
            false => &[("data", "bytes")],
        };
        let field = |&(name, kind): &(&str, &str)| {
            let kind = FieldType::from_name(kind).unwrap();
            Field { name: name.into(), kind }
        };
        let attributes = if self.attributes { attributes.collect() } else { vec![] };
        Schema::new(attributes, fields.iter().map(field).collect()).unwrap()
    }

    fn sample(&self, ordinal: usize, random: &mut Random) -> Sample {
        let len = self.payload_lens[ordinal];
        let payload = if random.below(2) == 0 { random.bytes(len) } else { random.text(len) };
        Sample {
            key: if self.keyed { key(ordinal) } else { vec![] },
            attributes: if self.attributes { attributes(ordinal, random) } else { vec![] },
            fields: if self.several_fields { fields(len as u64, random) } else { vec![] },
            payload,
        }
    }
}

/// A written dataset, and its samples.
pub(crate) struct Packed {
    _folder: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) schema: Schema,
    pub(crate) samples: Vec<Sample>,
}

impl Packed {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The files of the dataset, in order of their names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// Keys of text and of invalid UTF-8, long and short.
fn key(ordinal: usize) -> Vec<u8> {
    match ordinal % 8 {
        0 => format!("class/{ordinal}.jpg").into_bytes(),
        1 => format!("größe \u{1f33e} {ordinal}").into_bytes(),
        2 => [format!("{ordinal}").as_bytes(), b"\x00\xff\xed\xa0\x80\t\n\x7f\xc3"].concat(),
        3 => format!("{ordinal}-").repeat(80).into_bytes(),
        _ => format!("{ordinal}").into_bytes(),
    }
}

/// Limits of each type, numbers between them, and missing values; the last attribute has no missing values.
fn attributes(ordinal: usize, random: &mut Random) -> Vec<Option<AttributeValue>> {
    let signed = |bits: u32| [i64::MIN >> (64 - bits), i64::MAX >> (64 - bits), 0, -1][ordinal % 4];
    let unsigned = |bits: u32| [u64::MAX >> (64 - bits), 0, 1][ordinal % 3];
    let quarter = ordinal as f64 / 4.0 - 10.0;
    let floats = [quarter, f64::INFINITY, quarter, f64::NEG_INFINITY, quarter, -0.0, quarter, f64::NAN];
    let float = floats[ordinal % 8];
    let mut values = vec![AttributeValue::Bool(ordinal.is_multiple_of(3))];
    values.extend([8, 16, 32, 64].map(|bits| AttributeValue::Int(signed(bits))));
    values.extend([8, 16, 32, 64].map(|bits| AttributeValue::Uint(unsigned(bits))));
    #[expect(clippy::cast_possible_truncation, reason = "quarters of small numbers are exact in both types")]
    let short = float as f32;
    values.push(AttributeValue::Float16(f16::from_f32(short)));
    values.push(AttributeValue::Bfloat16(bf16::from_f32(short)));
    values.push(AttributeValue::Float32(short));
    values.push(AttributeValue::Timestamp(signed(64)));
    values.push(AttributeValue::Category(["train", "größe \n\"", "", "test"][ordinal % 7 % 4].into()));
    let mut values: Vec<_> = values.into_iter().map(|value| (random.below(4) > 0).then_some(value)).collect();
    values.push(Some(AttributeValue::Float64(float)));
    values
}

/// Parts of the payload, with gaps and overlaps; every sample has the first field.
fn fields(len: u64, random: &mut Random) -> Vec<Option<Range<u64>>> {
    let part = |place: u64| {
        let (a, b) = (random.below(len + 1), random.below(len + 1));
        let (start, end) = (a.min(b), a.max(b));
        let part_len = match place {
            2 => 0,
            3 => (end - start) / 6 * 6,
            _ => end - start,
        };
        (random.below(4) >= place).then_some(start..start + part_len)
    };
    (0..4).map(part).collect()
}
