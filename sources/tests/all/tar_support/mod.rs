//! What the tests of tars and streams share: archives in memory, and everything that a source returns for them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use grainstore_format::{AttributeValue, to_usize};
use grainstore_sources::tar::{TarOptions, TarSource};
use grainstore_sources::{Bad, Blocks, Layout, SampleReader, Source, SourceError, SourceSample};

pub(crate) use crate::foreign::archive;

/// A sample as a source returns it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Got {
    pub(crate) key: String,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) fields: Vec<Option<Range<u64>>>,
    pub(crate) payload: Vec<u8>,
    pub(crate) offset: u64,
    pub(crate) is_long: bool,
}

impl Got {
    /// The bytes of each field.
    pub(crate) fn parts(&self) -> Vec<Option<Vec<u8>>> {
        if self.fields.is_empty() {
            return vec![Some(self.payload.clone())];
        }
        let part = |range: &Range<u64>| self.payload[to_usize(range.start)..to_usize(range.end)].to_vec();
        self.fields.iter().map(|range| range.as_ref().map(part)).collect()
    }
}

/// A member with any header.
pub(crate) fn raw_member(name: &[u8], kind: u8, size: [u8; 12], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.as_mut_bytes()[156] = kind;
    header.as_mut_bytes()[124..136].copy_from_slice(&size);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The size of a header, in octal.
pub(crate) fn octal(len: usize) -> [u8; 12] {
    format!("{len:011o}\0").into_bytes().try_into().unwrap()
}

/// A file with these bytes, and the folder that it is in.
pub(crate) fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

pub(crate) fn mapped(map: &str) -> TarOptions {
    TarOptions { map: map.parse().unwrap(), ..TarOptions::default() }
}

/// All samples of a tar, read from its start.
pub(crate) fn read_tar(bytes: &[u8], options: &TarOptions) -> Result<Vec<Result<Got, Bad>>, SourceError> {
    let (_folder, path) = file(bytes);
    Ok(read(&TarSource::open(&[path], options)?, Layout::Packed))
}

/// All samples of a tar that has nothing bad.
pub(crate) fn good(bytes: &[u8]) -> Vec<Got> {
    read_tar(bytes, &TarOptions::default()).unwrap().into_iter().map(|got| got.unwrap()).collect()
}

/// The errors of a tar, in order.
pub(crate) fn bad(bytes: &[u8]) -> Vec<String> {
    let all = read_tar(bytes, &TarOptions::default()).unwrap();
    all.into_iter().filter_map(Result::err).map(|bad| said(&bad)).collect()
}

/// The text of an error without the path, which differs from run to run.
pub(crate) fn said(bad: &Bad) -> String {
    bad.to_string().split_once(".tar: ").unwrap().1.to_owned()
}

/// All parts, each from its start.
pub(crate) fn read(source: &dyn Source, layout: Layout) -> Vec<Result<Got, Bad>> {
    (0..source.description().parts.len()).flat_map(|part| from(source, part, 0, layout, u64::MAX)).collect()
}

/// All parts by their blocks, the last block read first, put in order again.
pub(crate) fn read_blocks(source: &dyn Source, layout: Layout) -> Vec<Result<Got, Bad>> {
    let mut all = Vec::new();
    for part in 0..source.description().parts.len() {
        let Some(Blocks::Runs(blocks)) = source.blocks(part).unwrap() else { panic!("no blocks") };
        let read = |block: &grainstore_sources::SourceBlock| {
            let got = from(source, part, block.position, layout, u64::from(block.sample_count));
            assert_eq!(got.len(), block.sample_count as usize, "{block:?}");
            got
        };
        let mut backwards: Vec<_> = blocks.iter().rev().map(read).collect();
        backwards.reverse();
        all.extend(backwards.into_iter().flatten());
    }
    all
}

fn from(source: &dyn Source, part: usize, position: u64, layout: Layout, max: u64) -> Vec<Result<Got, Bad>> {
    let mut samples = match source.open(part, position, layout) {
        Ok(samples) => samples,
        Err(bad) => return vec![Err(bad)],
    };
    let mut all = Vec::new();
    while (all.len() as u64) < max {
        match samples.next() {
            Ok(None) => break,
            Ok(Some(item)) => all.push(Ok(got(item, &mut *samples))),
            Err(bad) => all.push(Err(bad)),
        }
        assert!(all.len() < 1_000_000, "it does not end");
    }
    all
}

fn got(item: SourceSample, samples: &mut dyn SampleReader) -> Got {
    let key = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
    match item {
        SourceSample::Whole { sample, offset } => Got {
            key: key(sample.key),
            attributes: sample.attributes,
            fields: sample.fields,
            payload: sample.payload,
            offset,
            is_long: false,
        },
        SourceSample::LeftOut => unreachable!("no format leaves samples out"),
        SourceSample::Long { sample, offset } => {
            let mut payload = Vec::new();
            samples.payload().read_to_end(&mut payload).unwrap();
            assert_eq!(payload.len() as u64, sample.len);
            let (attributes, fields) = (sample.attributes, sample.fields);
            Got { key: key(sample.key), attributes, fields, payload, offset, is_long: true }
        }
    }
}
