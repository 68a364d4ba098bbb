//! LMDB files with any pages.

use grainstore_sources::lmdb::{LmdbOptions, LmdbSource, recognises};
use grainstore_sources::{Blocks, Layout, Reach, Source, SourceSample};

use crate::input::Input;

/// Length of a file: sixteen pages of the usual size.
const FILE_LEN_MAX: usize = 64 << 10;
/// Samples that are read of a part; bytes may be of many samples at once, so there may be very many.
const SAMPLES_MAX: usize = 300;

/// What a file is made of and how it is read; then nothing panics, and every block gives what streaming gives.
pub fn lmdb(data: &[u8]) {
    let mut input = Input(data);
    let options = options(input.byte());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data.mdb");
    let bytes = file(&mut input);
    std::fs::write(&path, &bytes).unwrap();
    let Ok(source) = LmdbSource::open(&[path], &options) else { return };
    assert!(recognises(&bytes));
    for part in 0..source.description().parts.len() {
        let streamed = read(&source, part, 0, SAMPLES_MAX);
        let Ok(Some(Blocks::Runs(blocks))) = source.blocks(part) else { continue };
        let mut at = 0;
        for block in &blocks {
            let count = block.sample_count as usize;
            let end = at + count;
            if end > SAMPLES_MAX {
                break;
            }
            assert_eq!(read(&source, part, block.position, count), streamed[at..end]);
            at = end;
        }
    }
}

fn options(byte: u8) -> LmdbOptions {
    let map = if byte & 1 == 0 { Default::default() } else { "image=image-*,label=label-*".parse().unwrap() };
    let database = (byte & 2 != 0).then(|| "train".into());
    LmdbOptions { map, database, ..LmdbOptions::default() }
}

/// Runs of bytes with zeros between them.
fn file(input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !input.is_empty() && bytes.len() < FILE_LEN_MAX {
        bytes.resize(bytes.len() + usize::from(input.u16()), 0);
        let len = usize::from(input.u16()).min(input.0.len());
        let (run, rest) = input.0.split_at(len);
        bytes.extend_from_slice(run);
        input.0 = rest;
    }
    bytes.truncate(FILE_LEN_MAX);
    bytes
}

fn read(source: &LmdbSource, part: usize, position: u64, count: usize) -> Vec<String> {
    let Ok(mut samples) = source.open(part, position, Layout::Packed) else { return Vec::new() };
    let mut read = Vec::new();
    while read.len() < count {
        match samples.next() {
            Ok(None) => break,
            Ok(Some(SourceSample::Whole { sample, .. })) => {
                let payload = crc32fast::hash(&sample.payload);
                read.push(format!("{:?} {:?} {:?} {payload}", sample.key, sample.attributes, sample.fields));
            }
            Ok(Some(SourceSample::LeftOut)) => panic!("no format leaves samples out"),
            Ok(Some(SourceSample::Long { .. })) => panic!("a value is longer than the file"),
            Err(bad) => {
                read.push(bad.to_string());
                if bad.reach == Reach::Rest {
                    break;
                }
            }
        }
    }
    read
}
