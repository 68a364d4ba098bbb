//! Datasets for the tests of the reader: a seed and a shape give the samples, the writer packs them.
#![allow(dead_code, clippy::unwrap_used, reason = "each program uses its part, and may fail")]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{Batch, EpochOptions, IoChoice, Reader, ReaderOptions};
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

pub(crate) const ORDERS: [Order; 3] = [Order::Chunked, Order::Full, Order::Sequential];

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(len).collect()
    }

    /// Bytes that LZ4 compresses well.
    pub(crate) fn text(&mut self, len: usize) -> Vec<u8> {
        let word = self.bytes(13);
        word.iter().cycle().take(len).copied().collect()
    }
}

/// The shape of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) seed: u64,
    pub(crate) chunk_size: u64,
    pub(crate) payload_lens: Vec<usize>,
    pub(crate) keyed: bool,
    pub(crate) lz4: bool,
    pub(crate) several_fields: bool,
    pub(crate) attributes: bool,
    pub(crate) alignment: Alignment,
    pub(crate) segment_size: u64,
}

impl Shape {
    /// Keyed samples of one field in one segment.
    pub(crate) fn plain(chunk_size: u64, payload_lens: Vec<usize>) -> Self {
        Self {
            seed: 7,
            chunk_size,
            payload_lens,
            keyed: true,
            lz4: false,
            several_fields: false,
            attributes: false,
            alignment: Alignment::PACKED,
            segment_size: 1 << 40,
        }
    }

    fn metadata(&self) -> Metadata {
        let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
        let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
        let attributes = match self.attributes {
            true => vec![attribute("label", AttributeType::Int16), attribute("weight", AttributeType::Float64)],
            false => vec![],
        };
        let fields: &[&str] = if self.several_fields { &["image", "caption", "boxes"] } else { &["data"] };
        let schema = Schema::new(attributes, fields.iter().map(|name| field(name)).collect()).unwrap();
        Metadata { schema, user: UserMetadata::default() }
    }

    fn sample(&self, ordinal: usize, random: &mut Random) -> Sample {
        let len = self.payload_lens[ordinal];
        let payload = if random.below(3) == 0 { random.bytes(len) } else { random.text(len) };
        let key = if self.keyed { format!("class {}/{ordinal}.jpg", ordinal % 3).into_bytes() } else { vec![] };
        let label = (random.below(4) > 0).then_some(AttributeValue::Int(ordinal as i64 % 1000));
        let attributes = if self.attributes { vec![label, Some(AttributeValue::Float64(0.5))] } else { vec![] };
        Sample { key, attributes, fields: self.fields(len as u64, random), payload }
    }

    /// Parts of the payload, with gaps; some samples lack some.
    fn fields(&self, len: u64, random: &mut Random) -> Vec<Option<Range<u64>>> {
        if !self.several_fields {
            return vec![];
        }
        let part = |random: &mut Random| {
            let (a, b) = (random.below(len + 1), random.below(len + 1));
            (random.below(4) > 0).then_some(a.min(b)..a.max(b))
        };
        (0..3).map(|_| part(random)).collect()
    }

    pub(crate) fn write(&self) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.grain");
        let geometry = Geometry {
            chunk_size: ChunkSize::new(self.chunk_size).unwrap(),
            alignment: self.alignment,
            hash_seed: self.seed,
        };
        let options = WriterOptions {
            geometry,
            segment_size: self.segment_size,
            compression: if self.lz4 { Compression::Lz4 } else { Compression::None },
            keyed: self.keyed,
            jobs: NonZeroUsize::new(1),
            ..WriterOptions::with_metadata(self.metadata())
        };
        let mut random = Random(self.seed);
        let samples: Vec<_> = (0..self.payload_lens.len()).map(|ordinal| self.sample(ordinal, &mut random)).collect();
        let mut writer = DatasetWriter::create(&path, options).unwrap();
        writer.write_batch(samples.clone()).unwrap();
        writer.finish().unwrap();
        Made { folder, path, samples }
    }
}

/// A written dataset, and its samples.
pub(crate) struct Made {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) samples: Vec<Sample>,
}

impl Made {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn reader(&self, io: IoChoice) -> Reader {
        Reader::open(&self.path, ReaderOptions { io, threads: 3, ..ReaderOptions::default() }).unwrap()
    }

    pub(crate) fn payload(&self, ordinal: u64) -> &[u8] {
        &self.samples[usize::try_from(ordinal).unwrap()].payload
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.samples.iter().map(|sample| sample.payload.len() as u64).sum()
    }

    /// Checks that every payload of the batch is the one that was written.
    pub(crate) fn check(&self, batch: &Batch) {
        assert_eq!(batch.payloads().len(), batch.len());
        for (i, &ordinal) in batch.ordinals().iter().enumerate() {
            assert!(batch.payload(i) == self.payload(ordinal), "payload of sample {ordinal}");
        }
    }

    /// Flips the lowest bit of a stored byte of a sample.
    pub(crate) fn flip(&self, ordinal: u64, byte: u64) {
        let dataset = grainstore_store::Dataset::open(&self.path).unwrap();
        let location = dataset.locate(ordinal).unwrap();
        assert!(byte < location.stored_len);
        let path = dataset.segments()[location.segment].path();
        let mut bytes = std::fs::read(path).unwrap();
        bytes[usize::try_from(location.offset + byte).unwrap()] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
}

pub(crate) fn epoch_options(order: Order) -> EpochOptions {
    EpochOptions { order: OrderChoice::Fixed(order), seed: 11, epoch: 3, ..EpochOptions::default() }
}
