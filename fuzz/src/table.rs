//! Tables: as lists of samples, and as labels of a folder.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_sources::list::ListSource;
use grainstore_sources::{Bad, Blocks, Layout, SampleReader, Source, SourceBlock, SourceSample};
use grainstore_writer::Sample;
use tempfile::TempDir;

/// The file that lists may name, and labels must.
const CONTENT: &[u8] = b"the bytes of the only file, which is called a";

/// `a`, and a folder `files` with another `a` in it.
static PLACE: LazyLock<TempDir> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("files")).unwrap();
    for name in ["a", "files/a"] {
        fs::write(place.path().join(name), CONTENT).unwrap();
    }
    place
});

/// The first byte says what the table's file is called, and so how it is read; the others are its content.
pub fn table(data: &[u8]) {
    let Some((form, content)) = data.split_first() else { return };
    let name = ["table.csv", "table.tsv", "table.jsonl", "table"][usize::from(form % 4)];
    let path = PLACE.path().join(name);
    fs::write(&path, content).unwrap();
    check_list(&path);
    check_labels(&path);
}

/// Samples are slices of the file, the same whether streamed or read by blocks.
fn check_list(path: &Path) {
    let Ok(source) = ListSource::open(&[path.to_owned()]) else { return };
    for (part, described) in source.description().parts.iter().enumerate() {
        if described.path != PLACE.path().join("a") {
            continue;
        }
        let streamed = read(&source, part, 0, usize::MAX, Layout::InPlace);
        assert_eq!(Some(streamed.len() as u64), described.sample_count);
        for (sample, offset) in streamed.iter().flatten() {
            let offset = *offset as usize;
            assert_eq!(sample.payload, CONTENT[offset..offset + sample.payload.len()]);
            assert_eq!(sample.attributes.len(), source.description().metadata.schema.attributes().len());
            assert_eq!(sample.key.is_empty(), !source.description().is_keyed);
        }
        let Ok(Some(Blocks::Runs(blocks))) = source.blocks(part) else { panic!("a list has blocks") };
        let of =
            |block: &SourceBlock| read(&source, part, block.position, block.sample_count as usize, Layout::InPlace);
        let by_blocks: Vec<Read> = blocks.iter().flat_map(of).collect();
        // As text, in which a NaN is a NaN.
        assert_eq!(format!("{by_blocks:?}"), format!("{streamed:?}"));
    }
    check_overlap(&source);
}

/// What can be adopted has no two samples in one place.
fn check_overlap(source: &ListSource) {
    if source.description().not_adoptable.is_some() {
        return;
    }
    for part in 0..source.description().parts.len() {
        let mut ranges: Vec<Range<u64>> = read(source, part, 0, usize::MAX, Layout::InPlace)
            .into_iter()
            .flatten()
            .map(|(sample, offset)| offset..offset + sample.payload.len() as u64)
            .collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}

/// A table that fits the folder says something of its only file.
fn check_labels(path: &Path) {
    let options =
        FolderOptions { labels: Some(path.to_owned()), jobs: NonZeroUsize::new(1), ..FolderOptions::default() };
    let Ok(source) = FolderSource::open(&PLACE.path().join("files"), &options) else { return };
    let samples = read(&source, 0, 0, usize::MAX, Layout::Packed);
    let [Ok((sample, _))] = samples.as_slice() else { panic!("the folder has one file: {samples:?}") };
    let schema = &source.description().metadata.schema;
    assert!(sample.key == b"a" && sample.payload.starts_with(CONTENT));
    assert_eq!(sample.attributes.len(), schema.attributes().len());
    assert!(sample.fields.is_empty() || sample.fields.len() == schema.fields().len());
}

type Read = Result<(Sample, u64), Bad>;

fn read(source: &dyn Source, part: usize, position: u64, count: usize, layout: Layout) -> Vec<Read> {
    match source.open(part, position, layout) {
        Ok(mut samples) => std::iter::from_fn(|| next(&mut *samples)).take(count).collect(),
        Err(bad) => vec![Err(bad)],
    }
}

fn next(samples: &mut dyn SampleReader) -> Option<Read> {
    match samples.next() {
        Ok(None) => None,
        Ok(Some(SourceSample::Whole { sample, offset })) => Some(Ok((sample, offset))),
        Ok(Some(SourceSample::LeftOut)) => panic!("no format leaves samples out"),
        Ok(Some(SourceSample::Long { .. })) => panic!("no file here is long"),
        Err(bad) => Some(Err(bad)),
    }
}
