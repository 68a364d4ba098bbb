//! LMDB as a source: files of py-lmdb 3.0 (liblmdb 0.9.36), files made page by page, and damaged files.
//!
//! The contents of the files in `fixtures/lmdb` are described where they are read. `shorter_than_its_last_page` had
//! values added and deleted in one transaction, so its last pages were never written.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]
#![allow(clippy::panic, reason = "so should one that finds something else")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod broken;
mod pages;
mod real;
mod walked;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use grainstore_format::AttributeValue;
use grainstore_sources::lmdb::{LmdbOptions, LmdbSource, LmdbValues};
use grainstore_sources::{Bad, Blocks, Layout, Reach, SampleReader, Source, SourceError, SourceSample};

/// A sample, read whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taken {
    pub(crate) key: Vec<u8>,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) fields: Vec<Option<Range<u64>>>,
    pub(crate) offset: u64,
}

pub(crate) struct LmdbFolder(tempfile::TempDir);

impl LmdbFolder {
    pub(crate) fn with(bytes: &[u8]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.file(), bytes).unwrap();
        place
    }

    pub(crate) fn fixture(name: &str) -> Self {
        Self::with(&fixture(name))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("data.mdb")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    pub(crate) fn open(&self, options: &LmdbOptions) -> Result<LmdbSource, SourceError> {
        LmdbSource::open(&[self.file()], options)
    }

    /// The error of opening, without the path.
    pub(crate) fn refusal(&self, options: &LmdbOptions) -> String {
        let text = self.open(options).unwrap_err().to_string();
        text.strip_prefix(&format!("{}: ", self.file().display())).unwrap().to_owned()
    }
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lmdb");
    fs::read(format!("{folder}/{name}.mdb")).unwrap()
}

pub(crate) fn mapped(map: &str) -> LmdbOptions {
    LmdbOptions { map: map.parse().unwrap(), ..LmdbOptions::default() }
}

pub(crate) fn raw() -> LmdbOptions {
    LmdbOptions { values: LmdbValues::Raw, ..LmdbOptions::default() }
}

pub(crate) fn next(samples: &mut dyn SampleReader) -> Result<Option<Taken>, Bad> {
    let Some(item) = samples.next()? else { return Ok(None) };
    Ok(Some(match item {
        SourceSample::Whole { sample, offset } => {
            let (key, attributes, payload, fields) = (sample.key, sample.attributes, sample.payload, sample.fields);
            Taken { key, attributes, payload, fields, offset }
        }
        SourceSample::LeftOut => unreachable!("no format leaves samples out"),
        SourceSample::Long { sample, offset } => {
            let mut payload = Vec::new();
            samples.payload().read_to_end(&mut payload).unwrap();
            assert_eq!(payload.len() as u64, sample.len);
            let (key, attributes, fields) = (sample.key, sample.attributes, sample.fields);
            Taken { key, attributes, payload, fields, offset }
        }
    }))
}

/// All samples of a part, the bad ones too, `count` at most.
pub(crate) fn read(source: &LmdbSource, at: (usize, u64), layout: Layout, count: usize) -> Vec<Result<Taken, Bad>> {
    let mut samples = source.open(at.0, at.1, layout).unwrap();
    let (mut all, mut ended) = (Vec::new(), false);
    while !ended && all.len() < count {
        let read = next(samples.as_mut());
        ended = matches!(&read, Ok(None)) || matches!(&read, Err(bad) if bad.reach == Reach::Rest);
        all.extend(read.transpose());
    }
    all
}

/// All samples, streamed part for part.
pub(crate) fn stream(source: &LmdbSource, layout: Layout) -> Vec<Result<Taken, Bad>> {
    (0..source.description().parts.len()).flat_map(|part| read(source, (part, 0), layout, usize::MAX)).collect()
}

pub(crate) fn all(source: &LmdbSource) -> Vec<Taken> {
    stream(source, Layout::Packed).into_iter().map(Result::unwrap).collect()
}

pub(crate) fn keys_and_payloads(source: &LmdbSource) -> Vec<(Vec<u8>, Vec<u8>)> {
    all(source).into_iter().map(|sample| (sample.key, sample.payload)).collect()
}

/// Reading block by block, from the last to the first, returns what streaming returns.
pub(crate) fn check_blocks(source: &LmdbSource) {
    for part in 0..source.description().parts.len() {
        let Some(Blocks::Runs(blocks)) = source.blocks(part).unwrap() else { panic!("no blocks") };
        let read_block = |block: &grainstore_sources::SourceBlock| {
            read(source, (part, block.position), Layout::Packed, block.sample_count as usize)
        };
        let mut runs: Vec<_> = blocks.iter().rev().map(read_block).collect();
        runs.reverse();
        assert_eq!(runs.concat(), read(source, (part, 0), Layout::Packed, usize::MAX));
    }
}

/// Payloads are in the file at their offsets.
pub(crate) fn check_in_place(place: &LmdbFolder, source: &LmdbSource) {
    let file = fs::read(place.file()).unwrap();
    let (packed, in_place) = (all(source), stream(source, Layout::InPlace));
    assert_eq!(packed.len(), in_place.len());
    for (packed, found) in packed.iter().zip(in_place) {
        let found = found.unwrap();
        let start = found.offset as usize;
        assert_eq!(found.payload, file[start..start + found.payload.len()]);
        assert_eq!((&found.payload, &found.key, packed.offset), (&packed.payload, &packed.key, 0));
    }
}
