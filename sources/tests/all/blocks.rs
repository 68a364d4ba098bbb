//! Blocks of neighbours: bounded by their bytes and by their number, so that reading some takes a bounded memory.

#![expect(clippy::panic, reason = "a step of a test that fails should fail the test")]

use grainstore_sources::{BlockBuilder, Blocks, Layout, SourceBlock, SourceOptions, open_source};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

use crate::shelf::Shelf;
use crate::tar_support::read_blocks;

const COUNT: u64 = 10_000;

fn runs(blocks: Blocks) -> Vec<SourceBlock> {
    let Blocks::Runs(runs) = blocks else { panic!("samples are stored together") };
    runs
}

#[test]
fn a_block_is_full_at_some_bytes_or_samples() {
    for (len, largest) in [(0, 4096), (1, 4096), (256, 4096), (257, 4081), (1024, 1024), (64 << 10, 1)] {
        let mut blocks = BlockBuilder::default();
        (0..COUNT).for_each(|number| blocks.push(number, len));
        let runs = runs(blocks.finish());
        assert_eq!(runs.iter().map(|run| run.sample_count).max(), Some(largest), "{len}");
        assert_eq!(runs.iter().map(|run| u64::from(run.sample_count)).sum::<u64>(), COUNT);
    }
}

#[test]
fn tiny_samples_are_read_in_small_blocks_and_all_of_them() {
    let shelf = Shelf::new();
    let dataset = shelf.path("d.grain");
    let mut writer = DatasetWriter::create(&dataset, WriterOptions::default()).unwrap();
    (0..COUNT).for_each(|number| writer.write(Sample::new(format!("{number}"), Vec::new())).unwrap());
    writer.finish().unwrap();
    let source = open_source(&[dataset], &SourceOptions::default()).unwrap();
    let runs = runs(source.blocks(0).unwrap().unwrap());
    assert_eq!(runs.iter().map(|run| run.sample_count).collect::<Vec<_>>(), [4096, 4096, 1808]);
    let keys: Vec<String> =
        read_blocks(source.as_ref(), Layout::Packed).into_iter().map(|got| got.unwrap().key).collect();
    assert_eq!(keys, (0..COUNT).map(|number| number.to_string()).collect::<Vec<_>>());
}
