//! What the tests of TFRecord files share: files, sources over them, and reading those in every way.
#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::AttributeValue;
use grainstore_sources::tfrecord::{TfRecordOptions, TfRecordSource};
use grainstore_sources::{Bad, Blocks, Chosen, Layout, Mapping, SampleReader, Source, SourceError, SourceSample};
use tempfile::TempDir;

pub(crate) use crate::foreign::{example, framed, gzip};

/// Files of a source; they live as long as this and what is opened of it.
pub(crate) struct Files {
    folder: Option<Arc<TempDir>>,
    paths: Vec<PathBuf>,
}

/// A source whose files live as long as it does.
#[derive(Debug)]
pub(crate) struct Opened {
    source: TfRecordSource,
    _folder: Option<Arc<TempDir>>,
}

impl Deref for Opened {
    type Target = TfRecordSource;

    fn deref(&self) -> &TfRecordSource {
        &self.source
    }
}

/// A sample as the source returns it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) key: Vec<u8>,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) fields: Vec<Option<Range<u64>>>,
    pub(crate) offset: u64,
}

/// A sample as the user sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) fields: Vec<Option<Vec<u8>>>,
}

impl Files {
    pub(crate) fn of(contents: &[&[u8]]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |number| folder.path().join(format!("{number:05}.tfrecord"));
        let paths: Vec<PathBuf> = (0..contents.len()).map(path).collect();
        for (path, bytes) in paths.iter().zip(contents) {
            std::fs::write(path, bytes).unwrap();
        }
        Self { folder: Some(Arc::new(folder)), paths }
    }

    pub(crate) fn path(&self, number: usize) -> &Path {
        &self.paths[number]
    }

    pub(crate) fn open(&self, map: &str) -> Result<Opened, SourceError> {
        let map = if map.is_empty() { Mapping::default() } else { map.parse().unwrap() };
        self.open_with(&TfRecordOptions { map, ..TfRecordOptions::default() })
    }

    pub(crate) fn open_chosen(&self, only: &[&str], exclude: &[&str]) -> Result<Opened, SourceError> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = Chosen { only: names(only), exclude: names(exclude) };
        self.open_with(&TfRecordOptions { chosen, ..TfRecordOptions::default() })
    }

    pub(crate) fn open_raw(&self) -> Result<Opened, SourceError> {
        self.open_with(&TfRecordOptions { raw: true, ..TfRecordOptions::default() })
    }

    fn open_with(&self, options: &TfRecordOptions) -> Result<Opened, SourceError> {
        let source = TfRecordSource::open(&self.paths, options)?;
        Ok(Opened { source, _folder: self.folder.clone() })
    }
}

/// A file that TensorFlow has written.
pub(crate) fn fixture(name: &str) -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tfrecord");
    Files { folder: None, paths: vec![folder.join(name)] }
}

impl Read {
    pub(crate) fn row(&self) -> Row {
        let slice = |range: &Range<u64>| {
            self.payload[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec()
        };
        let fields = match self.fields.as_slice() {
            [] => vec![Some(self.payload.clone())],
            fields => fields.iter().map(|range| range.as_ref().map(slice)).collect(),
        };
        let key = String::from_utf8(self.key.clone()).unwrap();
        Row { key, attributes: self.attributes.clone(), fields }
    }
}

/// The bytes of a file of records of these lengths.
pub(crate) fn records(lens: &[usize]) -> Vec<u8> {
    let records: Vec<Vec<u8>> = lens.iter().zip(1_u8..).map(|(len, byte)| vec![byte; *len]).collect();
    framed(&records.iter().map(|record| &record[..]).collect::<Vec<_>>())
}

pub(crate) fn i64s(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Why a source was refused.
pub(crate) fn refusal(opened: Result<Opened, SourceError>) -> String {
    let error = opened.unwrap_err();
    assert!(matches!(error, SourceError::Refused { .. }));
    error.to_string()
}

/// All samples of all parts, none of them bad.
pub(crate) fn whole_rows(source: &TfRecordSource) -> Vec<Row> {
    let parts = 0..source.description().parts.len();
    parts.flat_map(|part| streamed(source, part)).map(|item| item.unwrap().row()).collect()
}

pub(crate) fn streamed(source: &TfRecordSource, part: usize) -> Vec<Result<Read, Bad>> {
    streamed_layout(source, part, Layout::Packed)
}

pub(crate) fn streamed_layout(source: &TfRecordSource, part: usize, layout: Layout) -> Vec<Result<Read, Bad>> {
    let mut samples = match source.open(part, 0, layout) {
        Ok(samples) => samples,
        Err(bad) => return vec![Err(bad)],
    };
    std::iter::from_fn(|| next(&mut *samples)).collect()
}

/// Every block opened by itself, the last one first where `backwards`; the results in the order of the file.
pub(crate) fn by_blocks(source: &TfRecordSource, part: usize, backwards: bool) -> Vec<Result<Read, Bad>> {
    let Some(Blocks::Runs(blocks)) = source.blocks(part).unwrap() else { unreachable!("they are runs") };
    let read = |block: &grainstore_sources::SourceBlock| {
        let mut samples = source.open(part, block.position, Layout::Packed).unwrap();
        let items = (0..block.sample_count).map(|_| next(&mut *samples).unwrap());
        items.map(without_number).collect::<Vec<_>>()
    };
    let mut found: Vec<Vec<_>> =
        if backwards { blocks.iter().rev().map(read).collect() } else { blocks.iter().map(read).collect() };
    if backwards {
        found.reverse();
    }
    found.into_iter().flatten().collect()
}

/// A record has no number where its block is read by itself, unless it is the first one.
pub(crate) fn without_number(item: Result<Read, Bad>) -> Result<Read, Bad> {
    item.map_err(|mut bad| {
        bad.location.record = None;
        bad
    })
}

/// The next sample with its bytes; a long one whose bytes cannot be read is bad.
fn next(samples: &mut dyn SampleReader) -> Option<Result<Read, Bad>> {
    match samples.next() {
        Ok(None) => None,
        Ok(Some(SourceSample::Whole { sample, offset })) => {
            let (key, attributes, payload, fields) = (sample.key, sample.attributes, sample.payload, sample.fields);
            Some(Ok(Read { key, attributes, payload, fields, offset }))
        }
        Ok(Some(SourceSample::LeftOut)) => unreachable!("no format leaves samples out"),
        Ok(Some(SourceSample::Long { sample, offset })) => {
            let mut payload = Vec::new();
            let (key, attributes, fields) = (sample.key, sample.attributes, sample.fields);
            Some(match samples.payload().read_to_end(&mut payload) {
                Ok(read) => {
                    assert_eq!(read as u64, sample.len);
                    Ok(Read { key, attributes, payload, fields, offset })
                }
                Err(error) => {
                    assert!((payload.len() as u64) < sample.len, "the end is handed out only when it is right");
                    Err(Bad::file(Path::new("long"), &error))
                }
            })
        }
        Err(bad) => Some(Err(bad)),
    }
}
