//! What the tests of exports share: datasets, and exporting them.
#![allow(unreachable_pub, reason = "what the tests share is public")]
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use grainstore_export::{ExportError, ExportOptions, ExportSummary, Format, NoEvents, Selection, export};
use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_reader::{Reader, ReaderOptions, Subset};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

/// A dataset, and room beside it.
pub struct Place {
    pub folder: TempDir,
}

pub struct Made {
    pub place: Place,
    pub reader: Reader,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names in the folder, except the dataset.
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "data.grain").collect();
        names.sort();
        names
    }
}

impl Made {
    pub fn of(options: WriterOptions, samples: impl IntoIterator<Item = Sample>) -> Self {
        let place = Place::new();
        let mut writer = DatasetWriter::create(place.path("data.grain"), options).unwrap();
        samples.into_iter().for_each(|sample| writer.write(sample).unwrap());
        writer.finish().unwrap();
        let reader = Reader::open(place.path("data.grain"), ReaderOptions::default()).unwrap();
        Self { place, reader }
    }

    /// One field, no attributes.
    pub fn keyed(samples: &[(&[u8], &[u8])]) -> Self {
        Self::of(WriterOptions::default(), samples.iter().map(|(key, payload)| Sample::new(*key, payload.to_vec())))
    }

    pub fn keyless(payloads: &[&[u8]], field: &str) -> Self {
        let options = options(vec![], vec![(field, FieldType::Bytes)], UserMetadata::default());
        let samples = payloads.iter().map(|payload| Sample::new("", payload.to_vec()));
        Self::of(WriterOptions { keyed: false, ..options }, samples)
    }

    pub fn export(&self, out: &str, format: Format) -> Result<ExportSummary, ExportError> {
        self.export_with(out, &ExportOptions::to(format))
    }

    pub fn export_with(&self, out: &str, options: &ExportOptions) -> Result<ExportSummary, ExportError> {
        export(&self.reader, &Selection::all(&self.reader), &self.place.path(out), options, &NoEvents)
    }

    pub fn export_some(&self, out: &str, format: Format, ordinals: &[u64]) -> Result<ExportSummary, ExportError> {
        let count = self.reader.collection().sample_count();
        let selection = Subset::from_ordinals(count, ordinals.iter().copied()).unwrap().into();
        export(&self.reader, &selection, &self.place.path(out), &ExportOptions::to(format), &NoEvents)
    }

    /// The error, after which nothing is left.
    pub fn refusal(&self, out: &str, format: Format) -> String {
        let error = self.export(out, format).unwrap_err();
        assert!(self.place.names().is_empty(), "{:?}", self.place.names());
        error.to_string().replace(&*self.place.folder.path().to_string_lossy(), "[PATH]")
    }

    pub fn out(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }
}

pub fn options(
    attributes: Vec<(&str, AttributeType)>,
    fields: Vec<(&str, FieldType)>,
    user: UserMetadata,
) -> WriterOptions {
    let attributes = attributes.into_iter().map(|(name, kind)| Attribute { name: name.into(), kind }).collect();
    let fields = fields.into_iter().map(|(name, kind)| Field { name: name.into(), kind }).collect();
    let schema = Schema::new(attributes, fields).unwrap();
    WriterOptions {
        geometry: Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment: Alignment::PACKED, hash_seed: 1 },
        segment_size: 100_000,
        ..WriterOptions::with_metadata(Metadata { schema, user })
    }
}

/// Two fields and three attributes, each missing somewhere; `count` samples with keys `part/NUMBER`.
pub fn rich(count: u64) -> Made {
    let attributes =
        vec![("label", AttributeType::Int64), ("weight", AttributeType::Float32), ("good", AttributeType::Bool)];
    let fields = vec![("jpg", FieldType::Bytes), ("txt", FieldType::Str)];
    let user = UserMetadata::default().with_member("class_names", &serde_json::json!(["cat", "dog", "emu"])).unwrap();
    Made::of(options(attributes, fields, user), (0..count).map(rich_sample))
}

pub fn rich_sample(number: u64) -> Sample {
    let image = image(number);
    let caption = format!("caption {number}").into_bytes();
    let image_len = image.len() as u64;
    let len = image_len + caption.len() as u64;
    Sample {
        key: format!("part/{number:05}").into_bytes(),
        attributes: vec![
            (number % 5 != 4).then_some(AttributeValue::Int((number % 3).cast_signed())),
            (number % 7 != 6).then_some(AttributeValue::Float32(number as f32 / 10.0)),
            Some(AttributeValue::Bool(number.is_multiple_of(2))),
        ],
        payload: [image, caption].concat(),
        fields: vec![Some(0..image_len), (number % 11 != 10).then_some(image_len..len)],
    }
}

/// Bytes that differ from sample to sample in length and content.
pub fn image(number: u64) -> Vec<u8> {
    let len = number * 37 % 3001;
    (0..len).map(|place| u8::try_from((place * 31 + number * 7) % 251).unwrap()).collect()
}

/// All files below a folder, by their paths.
pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}
