//! TFRecord files: streamed, by blocks and in place.

use std::io::Write;

use grainstore_sources::tfrecord::framing::{FOOTER_LEN, HEADER_LEN, frame};
use grainstore_sources::tfrecord::{TfRecordOptions, TfRecordSource};
use grainstore_sources::{Bad, Blocks, Layout, SampleReader, Source, SourceBlock, SourceSample};
use grainstore_writer::Sample;

/// How a zstd file begins: two kilobytes of it may be a record of gigabytes, which is no news.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The bytes as they stand, and with the checksums of their records put right.
pub fn tfrecord(data: &[u8]) {
    check(data);
    check(&sealed(data));
}

/// The records that the lengths in `data` make of it, each with its checksums.
fn sealed(mut data: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::new();
    while let Some((header, rest)) = data.split_first_chunk::<HEADER_LEN>() {
        let announced = u64::from_le_bytes(header[..8].try_into().unwrap());
        let len = rest.len().min(announced as usize);
        let (record, behind) = rest.split_at(len);
        let framed = frame(record);
        sealed.extend([&framed.header[..], record, &framed.footer].concat());
        data = &behind[behind.len().min(FOOTER_LEN)..];
    }
    [&sealed, data].concat()
}

fn check(bytes: &[u8]) {
    if bytes.starts_with(ZSTD) {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    for raw in [false, true] {
        let options = TfRecordOptions { raw, ..TfRecordOptions::default() };
        if let Ok(source) = TfRecordSource::open(&[file.path().to_owned()], &options) {
            check_source(&source, bytes);
        }
    }
}

fn check_source(source: &dyn Source, bytes: &[u8]) {
    let streamed = all(source, Layout::Packed);
    if let Some(Blocks::Runs(blocks)) = source.blocks(0).unwrap() {
        let read: Vec<_> = blocks.iter().rev().map(|block| read(source, block)).collect();
        let read: Vec<_> = read.into_iter().rev().flatten().collect();
        assert_eq!(read, streamed);
    }
    if source.description().not_adoptable.is_some() {
        return;
    }
    for (there, packed) in all(source, Layout::InPlace).into_iter().zip(streamed) {
        // Values that the file has in pieces are no sample in place.
        let (Ok((there, offset)), Ok((packed, _))) = (there, packed) else { continue };
        let offset = usize::try_from(offset).unwrap();
        assert_eq!(there.payload, bytes[offset..offset + there.payload.len()]);
        assert_eq!((&there.key, fields(&there)), (&packed.key, fields(&packed)));
    }
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

/// The next sample. Record numbers, which a block does not know, are ignored; attributes are too, because NaN is
/// not equal to itself.
fn next(samples: &mut dyn SampleReader) -> Option<Read> {
    match samples.next() {
        Ok(None) => None,
        Ok(Some(SourceSample::LeftOut)) => panic!("no format leaves samples out"),
        Ok(Some(SourceSample::Whole { mut sample, offset })) => {
            sample.attributes.clear();
            Some(Ok((sample, offset)))
        }
        // Only a compressed file can announce so much.
        Ok(Some(SourceSample::Long { sample, offset })) => {
            std::io::copy(samples.payload(), &mut std::io::sink()).err()?;
            let sample = Sample { key: sample.key, ..Sample::default() };
            Some(Ok((sample, offset)))
        }
        Err(mut bad) => {
            bad.location.record = None;
            Some(Err(bad))
        }
    }
}

fn fields(sample: &Sample) -> Vec<Option<Vec<u8>>> {
    if sample.fields.is_empty() {
        return vec![Some(sample.payload.clone())];
    }
    let bytes = |range: &std::ops::Range<u64>| sample.payload[range.start as usize..range.end as usize].to_vec();
    sample.fields.iter().map(|range| range.as_ref().map(bytes)).collect()
}
