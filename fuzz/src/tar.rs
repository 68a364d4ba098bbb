//! Tars: streamed, by blocks, in place, and from a stream.

use std::io::{Cursor, Write};
use std::ops::Range;

use grainstore_sources::stream::{StreamFormat, StreamSource};
use grainstore_sources::tar::{TarOptions, TarSource, recognises};
use grainstore_sources::{Bad, Blocks, Layout, SampleReader, Source, SourceBlock, SourceSample};
use grainstore_writer::Sample;

/// How compressed files begin: a few kilobytes of them may be a member of gigabytes, which is no news.
const COMPRESSED: [&[u8]; 2] = [b"\x28\xb5\x2f\xfd", b"\x1f\x8b"];

/// The bytes as they stand, and with the checksums of their headers put right.
pub fn tar(data: &[u8]) {
    check(data);
    check(&sealed(data));
}

/// Any bytes as a stream of records.
pub fn records(data: &[u8]) {
    if COMPRESSED.iter().any(|magic| data.starts_with(magic)) {
        return;
    }
    let stream = Box::new(Cursor::new(data.to_vec()));
    if let Ok(source) = StreamSource::open(stream, StreamFormat::Records, &TarOptions::default()) {
        all(&source, Layout::Packed);
    }
}

/// Every block that may be a header gets the sum that it should have.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut sealed = data.to_vec();
    let mut offset: usize = 0;
    while let Some(header) = offset.checked_add(512).and_then(|end| sealed.get_mut(offset..end)) {
        if header.iter().any(|&byte| byte != 0) {
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        let size = std::str::from_utf8(&header[124..135]).ok().and_then(|size| usize::from_str_radix(size, 8).ok());
        offset += 512 + size.unwrap_or(0).next_multiple_of(512);
    }
    sealed
}

fn check(bytes: &[u8]) {
    if COMPRESSED.iter().any(|magic| bytes.starts_with(magic)) {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let Ok(source) = TarSource::open(&[file.path().to_owned()], &TarOptions::default()) else { return };
    let streamed = check_source(&source, bytes);
    if recognises(bytes) && streamed.iter().all(Result::is_ok) {
        let stream = Box::new(Cursor::new(bytes.to_vec()));
        let stream = StreamSource::open(stream, StreamFormat::Tar, &TarOptions::default()).unwrap();
        assert_eq!(all(&stream, Layout::Packed), streamed);
    }
}

fn check_source(source: &dyn Source, bytes: &[u8]) -> Vec<Read> {
    let streamed = all(source, Layout::Packed);
    let Some(Blocks::Runs(blocks)) = source.blocks(0).unwrap() else { return streamed };
    let read: Vec<_> = blocks.iter().rev().map(|block| read(source, block)).collect();
    let read: Vec<_> = read.into_iter().rev().flatten().collect();
    assert_eq!(read, streamed);
    for (there, packed) in all(source, Layout::InPlace).into_iter().zip(&streamed) {
        let (Ok((there, offset)), Ok((packed, _))) = (there, packed) else { continue };
        let offset = usize::try_from(offset).unwrap();
        assert_eq!(there.payload, bytes[offset..offset + there.payload.len()]);
        assert_eq!((&there.key, fields(&there)), (&packed.key, fields(packed)));
    }
    streamed
}

type Read = Result<(Sample, u64), Bad>;

fn all(source: &dyn Source, layout: Layout) -> Vec<Read> {
    let mut samples = source.open(0, 0, layout).unwrap();
    std::iter::from_fn(|| next(&mut *samples)).collect()
}

fn read(source: &dyn Source, block: &SourceBlock) -> Vec<Read> {
    let mut samples = source.open(0, block.position, Layout::Packed).unwrap();
    (0..block.sample_count).map(|_| next(&mut *samples).expect("a block has its samples")).collect()
}

/// The next sample, without attributes, because NaN is not equal to itself.
fn next(samples: &mut dyn SampleReader) -> Option<Read> {
    match samples.next() {
        Ok(None) => None,
        Ok(Some(SourceSample::LeftOut)) => panic!("no format leaves samples out"),
        Ok(Some(SourceSample::Whole { mut sample, offset })) => {
            sample.attributes.clear();
            Some(Ok((sample, offset)))
        }
        // Only a stream can announce so much.
        Ok(Some(SourceSample::Long { sample, offset })) => {
            std::io::copy(samples.payload(), &mut std::io::sink()).err()?;
            Some(Ok((Sample { key: sample.key, ..Sample::default() }, offset)))
        }
        Err(bad) => Some(Err(bad)),
    }
}

fn fields(sample: &Sample) -> Vec<Option<Vec<u8>>> {
    if sample.fields.is_empty() {
        return vec![Some(sample.payload.clone())];
    }
    let bytes = |range: &Range<u64>| sample.payload[range.start as usize..range.end as usize].to_vec();
    sample.fields.iter().map(|range| range.as_ref().map(bytes)).collect()
}
