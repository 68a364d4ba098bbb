//! The naive writer: datasets made in memory, directly from spec.md, for tests.
//!
//! It shares with the product only the small structures of `format`; directories and sections are put together by
//! hand, so that a test can break any rule of them and still have every checksum right.
#![allow(unreachable_pub, reason = "what the tests share is public")]
#![allow(dead_code, reason = "a test of the reader uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, FileKind, Fingerprint, Geometry,
    IndexRef, Manifest, Schema, SegmentKind, SegmentRef, data_fingerprint, modified_ns, round_up,
};
use grainstore_store::{Damage, Dataset, OpenedFile, StoreError, VerifyOptions, VerifyReport, check_and_decode};
use tempfile::TempDir;

mod index;
pub use index::{IndexParts, fingerprint_of};

pub const SEED: u64 = 7;

#[derive(Clone, Default)]
pub struct ModelSample {
    pub key: Vec<u8>,
    pub attributes: Vec<Option<AttributeValue>>,
    pub fields: Vec<Option<Vec<u8>>>,
    pub lz4: bool,
}

impl ModelSample {
    pub fn payload(&self) -> Vec<u8> {
        self.fields.iter().flatten().flatten().copied().collect()
    }

    pub fn ranges(&self) -> Vec<Option<std::ops::Range<u64>>> {
        let mut at = 0;
        let mut place = |field: &Vec<u8>| {
            at += field.len() as u64;
            at - field.len() as u64..at
        };
        self.fields.iter().map(|field| field.as_ref().map(&mut place)).collect::<Vec<_>>()
    }

    fn stored(&self) -> Vec<u8> {
        if self.lz4 { lz4_flex::block::compress(&self.payload()) } else { self.payload() }
    }
}

#[derive(Clone)]
pub struct DatasetModel {
    pub geometry: Geometry,
    pub attributes: Vec<(&'static str, AttributeType)>,
    pub fields: Vec<&'static str>,
    pub keyed: bool,
    /// Samples of each segment, and whether it is external.
    pub segments: Vec<(Vec<ModelSample>, bool)>,
    /// Segment counts of the generations before the last.
    pub earlier: Vec<u32>,
}

impl DatasetModel {
    pub fn geometry(alignment: Alignment) -> Geometry {
        Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment, hash_seed: SEED }
    }

    /// Keys, gaps in attributes and fields, LZ4, an empty sample and edges; `counts` samples in each segment.
    pub fn rich(counts: &[u64]) -> Self {
        let mut ordinal = 0;
        let segments = counts.iter().map(|&count| {
            let samples = (0..count).map(|_| {
                ordinal += 1;
                rich_sample(ordinal - 1)
            });
            (samples.collect(), false)
        });
        Self {
            geometry: Self::geometry(Alignment::PACKED),
            attributes: vec![
                ("label", AttributeType::Int64),
                ("flag", AttributeType::Bool),
                ("score", AttributeType::Float32),
                ("split", AttributeType::Category),
            ],
            fields: vec!["image", "caption"],
            keyed: true,
            segments: segments.collect(),
            earlier: vec![],
        }
    }

    /// One field, no keys, no attributes.
    pub fn plain(payloads: &[Vec<u8>]) -> Self {
        let samples = payloads.iter().map(|p| ModelSample { fields: vec![Some(p.clone())], ..Default::default() });
        Self {
            geometry: Self::geometry(Alignment::PACKED),
            attributes: vec![],
            fields: vec!["data"],
            keyed: false,
            segments: vec![(samples.collect(), false)],
            earlier: vec![],
        }
    }

    /// One field, these keys.
    pub fn with_keys(keys: &[&str]) -> Self {
        let mut model = Self::plain(&keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>());
        model.keyed = true;
        for (sample, key) in model.segments[0].0.iter_mut().zip(keys) {
            sample.key = key.as_bytes().to_vec();
        }
        model
    }

    pub fn samples(&self) -> Vec<&ModelSample> {
        self.segments.iter().flat_map(|(samples, _)| samples).collect()
    }

    pub fn schema(&self) -> Schema {
        let attributes =
            self.attributes.iter().map(|(name, kind)| Attribute { name: (*name).into(), kind: kind.clone() });
        let fields = self.fields.iter().map(|&name| Field { name: name.into(), kind: FieldType::Bytes });
        Schema::new(attributes.collect(), fields.collect()).unwrap()
    }

    pub fn parts(&self) -> DatasetParts {
        let mut segments = Vec::new();
        let mut all = Vec::new();
        for (number, (samples, external)) in self.segments.iter().enumerate() {
            let (data, placed) = place(samples, *external, &self.geometry);
            let index = IndexParts::of(self, &[(&placed, data.len() as u64)]);
            let stem = format!("{number:05}");
            let (name, index_file) = if *external {
                (format!("../{stem}.tar"), format!("{stem}.idx"))
            } else {
                (stem + ".seg", String::new())
            };
            segments.push(SegmentParts { name, index_file, data: data.clone(), index, sparse_len: None });
            all.push((placed, data.len() as u64));
        }
        let merged: Vec<(&[Placed], u64)> = all.iter().map(|(placed, end)| (placed.as_slice(), *end)).collect();
        let merged = (self.segments.len() > 1).then(|| IndexParts::of(self, &merged));
        DatasetParts { segments, merged, earlier: self.earlier.clone() }
    }

    pub fn write(&self) -> Built {
        self.parts().write()
    }
}

fn rich_sample(ordinal: u64) -> ModelSample {
    let len = [5, 0, 5000, 300, 700][ordinal as usize % 5];
    let image: Vec<u8> = (0..len).map(|i| if ordinal % 5 == 3 { 9 } else { (i * 7 + ordinal) as u8 }).collect();
    let caption = (ordinal % 3 != 1).then(|| format!("caption {ordinal}").into_bytes());
    let caption = if ordinal % 5 == 1 { None } else { caption };
    ModelSample {
        key: format!("key/{ordinal}").into_bytes(),
        attributes: vec![
            (ordinal % 4 != 2).then_some(AttributeValue::Int(ordinal as i64 - 3)),
            Some(AttributeValue::Bool(ordinal.is_multiple_of(2))),
            ordinal.is_multiple_of(2).then_some(AttributeValue::Float32(ordinal as f32 / 2.0)),
            (ordinal % 6 != 3)
                .then(|| AttributeValue::Category(["a", "b/\u{f6}", "", "d"][(ordinal * 5 % 7 % 4) as usize].into())),
        ],
        fields: vec![Some(image), caption],
        lz4: ordinal % 5 == 3,
    }
}

/// A sample and its location.
#[derive(Clone)]
pub struct Placed {
    pub sample: ModelSample,
    pub offset: u64,
    pub stored_len: u64,
    pub raw_len: u64,
    pub crc: u32,
}

/// The bytes of a file up to the end of its data, and where the samples are in it.
fn place(samples: &[ModelSample], external: bool, geometry: &Geometry) -> (Vec<u8>, Vec<Placed>) {
    let mut data = vec![0; if external { 0 } else { 4096 }];
    let mut placed = Vec::new();
    for sample in samples {
        let stored = sample.stored();
        let end = data.len() as u64;
        let offset = if external { end } else { place_of(end, stored.len() as u64, geometry) };
        data.resize(offset as usize, 0);
        data.extend_from_slice(&stored);
        let (stored_len, raw_len) = (stored.len() as u64, sample.payload().len() as u64);
        placed.push(Placed { sample: sample.clone(), offset, stored_len, raw_len, crc: crc32fast::hash(&stored) });
        if external {
            data.extend_from_slice(b"framing of somebody else");
        }
    }
    if external {
        data.truncate(data.len() - b"framing of somebody else".len());
    }
    (data, placed)
}

/// SMP-2, as in spec.md.
fn place_of(end: u64, stored_len: u64, geometry: &Geometry) -> u64 {
    let chunk = geometry.chunk_size.bytes();
    match geometry.alignment {
        Alignment::NoEdges if (1..=chunk).contains(&stored_len) && end / chunk != (end + stored_len - 1) / chunk => {
            round_up(end, chunk)
        }
        Alignment::NoEdges => end,
        fixed => round_up(end, fixed.to_string().parse().unwrap()),
    }
}

#[derive(Clone)]
pub struct SegmentParts {
    pub name: String,
    /// The index file of an external segment; else empty.
    pub index_file: String,
    /// From the start of the file to the end of its last sample.
    pub data: Vec<u8>,
    pub index: IndexParts,
    /// The length of an external file, which is extended by a hole.
    pub sparse_len: Option<u64>,
}

/// A dataset in memory that tests can break.
#[derive(Clone)]
pub struct DatasetParts {
    pub segments: Vec<SegmentParts>,
    pub merged: Option<IndexParts>,
    pub earlier: Vec<u32>,
}

impl DatasetParts {
    pub fn write(&self) -> Built {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("d.grain");
        std::fs::create_dir(&path).unwrap();
        let (mut segments, mut only) = (Vec::new(), None);
        for segment in &self.segments {
            let index = &segment.index;
            let external = !segment.index_file.is_empty();
            let file = index.file(
                if external { FileKind::Index } else { FileKind::Segment },
                if external { &[] } else { &segment.data },
            );
            let (kind, file_len) = if external {
                std::fs::write(path.join(&segment.index_file), &file).unwrap();
                let data = path.join(&segment.name);
                let (data_fingerprint, file_len) = write_external(&data, segment);
                let modified_ns = modified_ns(data.metadata().unwrap().modified().unwrap());
                let index_file = segment.index_file.clone();
                (SegmentKind::External { index_file, data_fingerprint, modified_ns }, file_len)
            } else {
                std::fs::write(path.join(&segment.name), &file).unwrap();
                (SegmentKind::Native, file.len() as u64)
            };
            let own = if segment.index_file.is_empty() { &segment.name } else { &segment.index_file };
            only = Some((own.clone(), fingerprint_of(&file)));
            let fingerprint = fingerprint_of(&file);
            let sample_count = index.sample_count;
            segments.push(SegmentRef { kind, path: segment.name.clone(), file_len, sample_count, fingerprint });
        }
        let index = match &self.merged {
            None => only.map(|(file, fingerprint)| IndexRef { file, fingerprint }).unwrap(),
            Some(merged) => {
                let file = merged.file(FileKind::Index, &[]);
                std::fs::write(path.join("index.idx"), &file).unwrap();
                IndexRef { file: "index.idx".into(), fingerprint: fingerprint_of(&file) }
            }
        };
        let manifest = Manifest::new(index, segments, &self.earlier).unwrap();
        std::fs::write(path.join(Manifest::FILE_NAME), manifest.encode().unwrap()).unwrap();
        Built { path, root }
    }
}

fn write_external(path: &Path, segment: &SegmentParts) -> (Fingerprint, u64) {
    std::fs::write(path, &segment.data).unwrap();
    let len = segment.sparse_len.unwrap_or(segment.data.len() as u64);
    std::fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
    let mut bytes = segment.data.clone();
    let end = len.min(65536) as usize;
    bytes.resize(bytes.len().max(end), 0);
    let tail = if segment.sparse_len.is_some() { vec![0; end] } else { bytes[bytes.len() - end..].to_vec() };
    (data_fingerprint(&bytes[..end], &tail, len), len)
}

/// A dataset on disk, removed when dropped.
pub struct Built {
    pub path: PathBuf,
    pub root: TempDir,
}

impl Built {
    /// Changes the manifest's text, and updates its checksum.
    pub fn change_manifest(&self, change: impl FnOnce(String) -> String) {
        let path = self.path.join(Manifest::FILE_NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        let body = change(text[..text.len() - 26].to_owned());
        let crc = crc32fast::hash(body.as_bytes());
        std::fs::write(path, format!("{body},\n  \"crc32\": \"{crc:08x}\"\n}}\n")).unwrap();
    }

    /// All files of the dataset, external data too.
    pub fn files(&self) -> Vec<PathBuf> {
        let list =
            |dir: &Path| -> Vec<PathBuf> { std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect() };
        let mut files: Vec<PathBuf> = [list(&self.path), list(self.root.path())].concat();
        files.retain(|file| file.is_file());
        files.sort();
        files
    }
}

/// All that a dataset returns about one sample.
#[derive(Debug, PartialEq, Clone)]
pub struct SampleContents {
    pub key: Option<Vec<u8>>,
    pub attributes: Vec<Option<AttributeValue>>,
    pub fields: Vec<Option<Vec<u8>>>,
}

/// Reads a sample with every accessor.
pub fn read(dataset: &Dataset, ordinal: u64) -> Result<SampleContents, StoreError> {
    let location = dataset.locate(ordinal)?;
    dataset.segment_file(location.segment)?;
    let path = dataset.segments()[location.segment].path();
    let mut stored = vec![0; location.stored_len as usize];
    let file = std::fs::File::open(path).unwrap();
    let opened = OpenedFile { len: file.metadata().unwrap().len(), fd: Some(file.as_fd()) };
    dataset.check_opened_segment(location.segment, opened, |bytes, offset| {
        file.read_exact_at(bytes, offset).map_err(|source| StoreError::Io { path: path.to_owned(), source })
    })?;
    file.read_exact_at(&mut stored, location.offset)
        .map_err(|error| dataset.damaged_sample(ordinal, location.segment, location.offset, error.to_string()))?;
    let mut payload = Vec::new();
    check_and_decode(&location, &stored, &mut payload)
        .map_err(|error| dataset.payload_error(ordinal, &location, &error))?;
    let key = dataset.key(ordinal)?;
    if let Some(key) = &key {
        let found = dataset.find(key)?;
        if found != Some(ordinal) {
            return Err(dataset.damaged_sample(ordinal, 0, 0, format!("its key is found at {found:?}")));
        }
    }
    let fields = dataset.fields(ordinal, payload.len() as u64)?;
    let cut = |range: std::ops::Range<u64>| payload[range.start as usize..range.end as usize].to_vec();
    let attributes = dataset.attributes(ordinal)?;
    for (place, attribute) in dataset.schema().attributes().iter().enumerate() {
        let column = dataset.column(&attribute.name)?;
        // As text: a NaN that was read twice is not equal to itself.
        let (of_column, of_row) = (format!("{:?}", column.get(ordinal)), format!("{:?}", attributes[place]));
        assert_eq!(of_column, of_row, "column and row agree");
    }
    Ok(SampleContents { key, attributes, fields: fields.into_iter().map(|range| range.map(cut)).collect() })
}

pub fn seen(model: &DatasetModel, sample: &ModelSample) -> SampleContents {
    let key = model.keyed.then(|| sample.key.clone());
    SampleContents { key, attributes: sample.attributes.clone(), fields: sample.fields.clone() }
}

/// Opens, loads, and reads everything. Returns the first error.
pub fn use_all(path: &Path) -> Result<Vec<SampleContents>, StoreError> {
    let dataset = Dataset::open(path)?;
    let all: Result<Vec<SampleContents>, StoreError> =
        (0..dataset.sample_count()).map(|ordinal| read(&dataset, ordinal)).collect();
    let loaded = dataset.load();
    let all = all?;
    loaded.map(|()| all)
}

/// Verifies. Returns the report and all damage.
pub fn verify(path: &Path) -> Result<(VerifyReport, Vec<Damage>), StoreError> {
    let list = std::sync::Mutex::new(Vec::new());
    let progress = std::sync::atomic::AtomicU64::new(0);
    let report = grainstore_store::verify(
        path,
        &VerifyOptions { threads: Some(2), ..VerifyOptions::default() },
        &|damage| list.lock().unwrap().push(damage),
        &|bytes| {
            progress.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        },
    )?;
    let list = list.into_inner().unwrap();
    assert_eq!(report.damaged, list.len() as u64);
    assert_eq!(report.checked_bytes, progress.into_inner());
    Ok((report, list))
}

/// Checks that verification reports damage that contains `what`.
#[track_caller]
pub fn assert_reported(path: &Path, what: &str) {
    let (_, damage) = verify(path).unwrap();
    let lines: Vec<String> = damage.iter().map(Damage::to_string).collect();
    assert!(lines.iter().any(|line| line.contains(what)), "\"{what}\" is not in {lines:#?}");
}

/// Checks that opening or using the dataset fails with `what`.
#[track_caller]
pub fn assert_error(path: &Path, what: &str) {
    let error = use_all(path).map(|all| all.len()).expect_err("a broken dataset").to_string();
    assert!(error.contains(what), "\"{what}\" is not in \"{error}\"");
}

/// Checks that opening or using the dataset fails with `what`, and that verification reports it too.
#[track_caller]
pub fn assert_refused(path: &Path, what: &str) {
    assert_error(path, what);
    assert_reported(path, what);
}
