//! External files made by hand: payloads at odd offsets with framing between them, and a dataset of them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::File;
use std::path::{Path, PathBuf};

use grainstore_format::{Metadata, to_usize};
use grainstore_store::Dataset;
use grainstore_writer::{
    ExternalFile, ExternalSample, ExternalSegment, ExternalWriter, FinishedExternal, Sample, WriterOptions,
};

use crate::common::Random;

/// Bytes between two samples: none, less than a block, blocks, whole chunks.
const GAPS: [usize; 8] = [0, 1, 7, 511, 512, 4096, 5001, 20_000];

/// An external file, and where the samples are in it.
pub(crate) struct Foreign {
    pub(crate) bytes: Vec<u8>,
    pub(crate) samples: Vec<ExternalSample>,
}

/// Lays payloads out. In turn, files start with a sample at 0 or with framing, and end with a sample or with framing.
pub(crate) fn lay_out(samples: &[Sample], number: usize, random: &mut Random) -> Foreign {
    let mut bytes = if number.is_multiple_of(2) { vec![] } else { vec![b'#'; 513] };
    let mut placed = Vec::new();
    for (at, sample) in samples.iter().enumerate() {
        if at > 0 {
            bytes.resize(bytes.len() + GAPS[to_usize(random.below(8))], b'#');
        }
        placed.push(ExternalSample {
            offset: bytes.len() as u64,
            len: sample.payload.len() as u64,
            crc: crc32fast::hash(&sample.payload),
            key: sample.key.clone(),
            attributes: sample.attributes.clone(),
            fields: sample.fields.clone(),
        });
        bytes.extend_from_slice(&sample.payload);
    }
    if number % 3 == 1 {
        bytes.extend_from_slice(b"the end of somebody else");
    }
    Foreign { bytes, samples: placed }
}

/// Writes the samples of `native` again as external files: `counts` samples in each of the files `folder/N.bin`, whose
/// indexes are written too. `name_of` makes a file's path in the manifest from its number.
pub(crate) fn adopt(
    folder: &Path,
    samples: &[Sample],
    native: &Dataset,
    counts: &[usize],
    name_of: impl Fn(usize) -> String,
) -> PathBuf {
    let path = folder.join("adopted.grain");
    let metadata = Metadata { schema: native.schema().clone(), user: native.user_metadata().clone() };
    let options = WriterOptions {
        geometry: *native.geometry(),
        keyed: native.is_keyed(),
        memory_len: 1 << 20,
        ..WriterOptions::with_metadata(metadata)
    };
    let writer = ExternalWriter::create(&path, options).unwrap();
    let (mut random, mut rest, mut files) = (Random(samples.len() as u64), samples, Vec::new());
    for (number, &count) in counts.iter().enumerate() {
        let (own, others) = rest.split_at(count);
        let data = folder.join(format!("{number}.bin"));
        let foreign = lay_out(own, number, &mut random);
        std::fs::write(&data, &foreign.bytes).unwrap();
        files.push((writer.segment(number).unwrap(), foreign, data, name_of(number)));
        rest = others;
    }
    assert!(rest.is_empty(), "all samples have a file");
    let mut finished: Vec<FinishedExternal> = std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .into_iter()
            .map(|(segment, foreign, data, name)| scope.spawn(move || index(segment, &foreign, &data, name)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // The segments are ordered by their numbers, not by this order.
    finished.reverse();
    assert_eq!(writer.finish(finished).unwrap().samples, samples.len() as u64);
    path
}

fn index(mut segment: ExternalSegment, foreign: &Foreign, data: &Path, name: String) -> FinishedExternal {
    foreign.samples.iter().for_each(|sample| segment.push(sample).unwrap());
    segment.finish(ExternalFile::of(name, &File::open(data).unwrap()).unwrap()).unwrap()
}
