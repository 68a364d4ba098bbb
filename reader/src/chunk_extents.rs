//! The extents of a dataset, found in its chunk list: this reads about a byte of the index for each chunk.
//!
//! The list does not contain the length of a chunk's last sample, and a sample of 8 chunks or more is an extent of its
//! own (PLN-2). But such a sample covers the chunks after its own:
//!
//! ```text
//! chunk    c     c+1   c+2   c+3   c+4   c+5   c+6   c+7   c+8
//!       |  [=====:=====:=====:=====:=====:=====:=====:==]  |       8 chunks long at least
//! owns    ..,i  none  none  none  none  none  none  (0)   i+1..
//! ```
//!
//! It ends at the end of chunk c + 7 or later. So chunks c + 1 to c + 6 own no sample, chunk c + 7 is one of the same
//! segment, and c has its edge bit. Chunk c + 7 owns none either, unless the sample ends exactly with it: then samples
//! of no bytes may follow, which belong to the chunk of the byte before. Only if all this is true is the sample
//! located, which gives its length.

use std::ops::Range;

use grainstore_format::ChunkList;
use grainstore_store::{Collection, Dataset};

use crate::ReadError;
use crate::plan::{Extents, ExtentsBuilder, LONE_SAMPLE_CHUNKS};

/// Cuts what is read into extents, dataset by dataset.
pub(crate) fn extents_of(collection: &Collection) -> Result<Extents, ReadError> {
    let mut builder = ExtentsBuilder::new(collection.chunk_size().bytes());
    for member in collection.members() {
        let dataset = member?;
        builder.start_member(dataset.geometry().chunk_size.bytes());
        let chunks = dataset.chunks()?;
        let table = dataset.segment_table();
        for segment in 0..table.len() {
            add_segment(&mut builder, dataset, chunks, table.chunks(segment))?;
        }
    }
    Ok(builder.finish())
}

fn add_segment(
    builder: &mut ExtentsBuilder,
    dataset: &Dataset,
    chunks: &ChunkList,
    of_segment: Range<u64>,
) -> Result<(), ReadError> {
    for chunk in of_segment.clone() {
        let samples = chunks.samples(chunk);
        let last_len = if last_may_be_lone(chunks, chunk, of_segment.end) {
            dataset.locate(samples.end - 1)?.stored_len
        } else {
            // It is shorter than 8 chunks, and its exact length does not matter.
            0
        };
        builder.chunk(samples.end - samples.start, last_len)?;
    }
    Ok(())
}

/// Whether the chunk's last sample may be an extent of its own, as far as the list shows.
fn last_may_be_lone(chunks: &ChunkList, chunk: u64, segment_end: u64) -> bool {
    let last_covered = chunk + LONE_SAMPLE_CHUNKS - 1;
    // A chunk without an edge sample owns no sample, or its last sample ends in it.
    chunks.edge(chunk) && last_covered < segment_end && chunks.samples(last_covered).start == chunks.samples(chunk).end
}
