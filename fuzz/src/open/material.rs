//! What the fixtures are made of: small datasets with a little of everything.

use std::path::{Path, PathBuf};

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Directory, Field, FieldType, FileKind, Fingerprint,
    Footer, Geometry, Header, IndexRef, Manifest, Metadata, Schema, SectionRecord, SegmentKind, SegmentRef,
    UserMetadata, data_fingerprint, round_up, to_usize,
};
use grainstore_writer::{Compression, DatasetWriter, Sample, WriterOptions};

use super::base::frame;

/// A dataset on disk, and the samples that went into it.
pub(super) struct Material {
    /// The dataset's directory, or a lone segment.
    pub(super) path: PathBuf,
    pub(super) samples: Vec<Sample>,
}

/// A lone segment with everything, two segments in two generations, a lone segment without keys, and an external one.
pub(super) fn materials(place: &Path) -> Vec<Material> {
    let lone = write(&place.join("lone"), rich(1 << 30), rich_samples(18));
    let two = write(&place.join("two"), rich(16_000), rich_samples(18));
    add_generation(&two.path);
    let plain = write(&place.join("plain"), plain(), plain_samples(12));
    let external = external(&place.join("external"), &lone);
    let segment = |material: Material| Material { path: material.path.join("00000.seg"), ..material };
    vec![segment(lone), two, segment(plain), external]
}

fn write(path: &Path, options: WriterOptions, samples: Vec<Sample>) -> Material {
    let mut writer = DatasetWriter::create(path, options).unwrap();
    writer.write_batch(samples.clone()).unwrap();
    writer.finish().unwrap();
    Material { path: path.to_owned(), samples }
}

/// Two fields, three attributes of which two may be missing, LZ4.
fn rich(segment_size: u64) -> WriterOptions {
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let kinds = [AttributeType::Bool, AttributeType::Int64, AttributeType::Float32];
    let attributes = ["seen", "label", "weight"].iter().zip(kinds).map(|(name, kind)| attribute(name, kind));
    let schema = Schema::new(attributes.collect(), vec![field("image"), field("caption")]).unwrap();
    let user = UserMetadata::default().with_member("class_names", &serde_json::json!(["a", "b"])).unwrap();
    WriterOptions {
        geometry: geometry(Alignment::PACKED),
        segment_size,
        compression: Compression::Lz4,
        ..WriterOptions::with_metadata(Metadata { schema, user })
    }
}

fn plain() -> WriterOptions {
    WriterOptions { geometry: geometry(Alignment::NoEdges), keyed: false, ..WriterOptions::default() }
}

fn geometry(alignment: Alignment) -> Geometry {
    Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment, hash_seed: 11 }
}

fn rich_samples(count: u64) -> Vec<Sample> {
    let sample = |i: u64| {
        let len = [0, 1, 300, 4096, 5000, 40, 4097][to_usize(i % 7)];
        let payload: Vec<u8> = if i.is_multiple_of(2) { noise(i, len) } else { vec![b'z'; to_usize(len)] };
        let cut = len / 3;
        Sample {
            key: format!("class_{}/sample {i}", i % 5).into_bytes(),
            attributes: vec![
                Some(AttributeValue::Bool(i.is_multiple_of(3))),
                (!i.is_multiple_of(4)).then_some(AttributeValue::Int(i as i64 - 5)),
                (!i.is_multiple_of(5)).then_some(AttributeValue::Float32(i as f32 / 3.0)),
            ],
            payload,
            fields: vec![Some(0..cut), (!i.is_multiple_of(3)).then_some(cut..len)],
        }
    };
    (0..count).map(sample).collect()
}

fn plain_samples(count: u64) -> Vec<Sample> {
    (0..count).map(|i| Sample::new(b"", noise(i + 100, [700, 0, 4096, 3000, 9000][to_usize(i % 5)]))).collect()
}

/// Bytes from a seed, by a xorshift.
fn noise(seed: u64, len: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| byte()).collect()
}

/// Makes the first segment an older generation of the dataset.
fn add_generation(path: &Path) {
    let file = path.join(Manifest::FILE_NAME);
    let manifest = Manifest::decode(&std::fs::read(&file).unwrap()).unwrap();
    assert!(manifest.segments().len() > 1);
    let manifest = Manifest::new(manifest.index().clone(), manifest.segments().to_vec(), &[1]).unwrap();
    std::fs::write(file, manifest.encode().unwrap()).unwrap();
}

/// The same samples, where the segment is somebody else's file and the index stands apart. spec.md: EXT-1, FIL-3.
fn external(path: &Path, lone: &Material) -> Material {
    let data = std::fs::read(lone.path.join("00000.seg")).unwrap();
    let index = index_apart(&data);
    let (_, directory) = frame(&index);
    let fingerprint = Fingerprint::of_directory(&directory.encode());
    let (head, tail) = (&data[..data.len().min(65536)], &data[data.len().saturating_sub(65536)..]);
    let segment = SegmentRef {
        kind: SegmentKind::External {
            index_file: "00000.idx".into(),
            data_fingerprint: data_fingerprint(head, tail, data.len() as u64),
            modified_ns: 0,
        },
        path: "data.bin".into(),
        file_len: data.len() as u64,
        sample_count: lone.samples.len() as u64,
        fingerprint,
    };
    let manifest = Manifest::new(IndexRef { file: "00000.idx".into(), fingerprint }, vec![segment], &[]).unwrap();
    std::fs::create_dir(path).unwrap();
    std::fs::write(path.join("data.bin"), data).unwrap();
    std::fs::write(path.join("00000.idx"), index).unwrap();
    std::fs::write(path.join(Manifest::FILE_NAME), manifest.encode().unwrap()).unwrap();
    Material { path: path.to_owned(), samples: lone.samples.clone() }
}

/// The sections of a native segment as an index file.
fn index_apart(segment: &[u8]) -> Vec<u8> {
    let (footer, directory) = frame(segment);
    let shift = footer.index_offset() - 4096;
    let moved = |section: &SectionRecord| SectionRecord { offset: section.offset - shift, ..*section };
    let sections = directory.sections().iter().map(moved).collect();
    let directory = Directory::new(*directory.counts(), *directory.geometry(), sections).unwrap();
    let mut index = Header { kind: FileKind::Index }.encode().to_vec();
    index.extend(&segment[to_usize(footer.index_offset())..to_usize(footer.directory_offset())]);
    let encoded = directory.encode();
    let footer = Footer::new(4096, index.len() as u64, &encoded).unwrap();
    index.extend(encoded);
    index.resize(to_usize(round_up((index.len() + Footer::LEN) as u64, 4096)) - Footer::LEN, 0);
    index.extend(footer.encode());
    index
}
