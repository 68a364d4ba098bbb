//! What the writer's tests share: samples from a seed, a disk that fails on purpose, and reading everything back.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

pub mod fake_disk;

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_store::{Dataset, check_and_decode};
use grainstore_writer::{Compression, Sample, WriterOptions};

/// SplitMix64, so that a seed is all that a failure needs to be seen again.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ x >> 31) % n
    }

    pub fn bytes(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// Small chunks and segments, two fields, two attributes, compressed: a little of everything.
pub fn rich_options() -> WriterOptions {
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let schema = Schema::new(
        vec![attribute("label", AttributeType::Int64), attribute("weight", AttributeType::Float32)],
        vec![field("image"), field("caption")],
    )
    .unwrap();
    let user = UserMetadata::default().with_member("class_names", &serde_json::json!(["a", "b"])).unwrap();
    WriterOptions {
        geometry: Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment: Alignment::PACKED, hash_seed: 11 },
        segment_size: 40_000,
        compression: Compression::Lz4,
        memory_len: 1 << 16,
        // A harness makes thousands of writers; starting their threads would take most of its time.
        jobs: NonZeroUsize::new(1),
        ..WriterOptions::with_metadata(Metadata { schema, user })
    }
}

/// `count` samples for [`rich_options`], some compressible, some empty, some larger than a chunk.
pub fn rich_samples(count: u64, seed: u64) -> Vec<Sample> {
    let mut random = Random(seed);
    (0..count)
        .map(|i| {
            let len = [0, 1, 700, 4095, 4096, 4097, 9000][random.below(7) as usize];
            let payload = if random.below(2) == 0 { random.bytes(len) } else { vec![b'z'; len as usize] };
            let cut = random.below(len + 1);
            let caption = (random.below(3) > 0).then_some(cut..len);
            Sample {
                key: format!("class_{}/sample {i}", random.below(9)).into_bytes(),
                attributes: vec![
                    (random.below(4) > 0).then_some(AttributeValue::Int(i as i64 - 5)),
                    Some(AttributeValue::Float32(i as f32 / 3.0)),
                ],
                payload,
                fields: vec![Some(0..cut), caption],
            }
        })
        .collect()
}

/// Opens a dataset and compares every sample, by ordinal and by key, with `expected`.
pub fn assert_holds(path: &Path, expected: &[Sample]) {
    let dataset = Dataset::open(path).unwrap();
    assert_eq!(dataset.sample_count(), expected.len() as u64);
    dataset.load().unwrap();
    for (ordinal, sample) in (0..).zip(expected) {
        assert_eq!(dataset.key(ordinal).unwrap().unwrap_or_default(), sample.key);
        if !sample.key.is_empty() {
            assert_eq!(dataset.find(&sample.key).unwrap(), Some(ordinal));
        }
        assert_eq!(dataset.attributes(ordinal).unwrap(), sample.attributes);
        assert_eq!(payload(&dataset, ordinal), sample.payload, "sample {ordinal}");
        if !sample.fields.is_empty() {
            assert_eq!(dataset.fields(ordinal, sample.payload.len() as u64).unwrap(), sample.fields);
        }
    }
}

/// The raw payload, checked.
pub fn payload(dataset: &Dataset, ordinal: u64) -> Vec<u8> {
    let location = dataset.locate(ordinal).unwrap();
    let file = File::open(dataset.segments()[location.segment].path()).unwrap();
    let mut stored = vec![0; location.stored_len as usize];
    file.read_exact_at(&mut stored, location.offset).unwrap();
    let mut payload = Vec::new();
    check_and_decode(&location, &stored, &mut payload).unwrap();
    payload
}

/// Every file below a directory, by name.
pub fn files(directory: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Two keys whose 48 hash bits are equal with hash seed 7, found by search.
pub fn colliding_keys() -> (Vec<u8>, Vec<u8>) {
    (b"key-561887".to_vec(), b"key-37443054".to_vec())
}
