//! Parquet files: read twice, as they stand.

use std::io::Write;

use grainstore_sources::parquet::{ParquetOptions, ParquetSource, recognises};
use grainstore_sources::{Bad, Layout, Reach, Source, SourceSample};
use grainstore_writer::Sample;

/// A run of one value costs a file nothing, so there may be any number of rows.
const ROWS_READ: usize = 4096;

/// Row groups read the same each time, and no further than they say.
pub fn parquet(data: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data).unwrap();
    let Ok(source) = ParquetSource::open(&[file.path().to_owned()], &ParquetOptions::default()) else { return };
    assert!(recognises(data));
    for (part, described) in source.description().parts.iter().enumerate().take(16) {
        let count = described.sample_count.unwrap();
        let rows = read(&source, part);
        assert!(rows.len() as u64 <= count);
        // As text, in which a NaN is a NaN.
        assert_eq!(format!("{rows:?}"), format!("{:?}", read(&source, part)));
        for sample in rows.iter().flatten() {
            assert_eq!(sample.attributes.len(), source.description().metadata.schema.attributes().len());
            assert_eq!(sample.key.is_empty(), !source.description().is_keyed);
        }
    }
}

fn read(source: &dyn Source, part: usize) -> Vec<Result<Sample, Bad>> {
    let mut samples = match source.open(part, 0, Layout::Packed) {
        Ok(samples) => samples,
        Err(bad) => return vec![Err(bad)],
    };
    let mut rows = Vec::new();
    while rows.len() < ROWS_READ {
        match samples.next() {
            Ok(None) => break,
            Ok(Some(SourceSample::Whole { sample, .. })) => rows.push(Ok(sample)),
            Ok(Some(SourceSample::LeftOut)) => panic!("no format leaves samples out"),
            Ok(Some(SourceSample::Long { .. })) => break,
            Err(bad) => {
                let ends = bad.reach == Reach::Rest;
                rows.push(Err(bad));
                if ends {
                    assert!(samples.next().unwrap().is_none());
                }
            }
        }
    }
    rows
}
