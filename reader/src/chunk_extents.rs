//! The extents of a dataset, found in its chunk list: about a byte a chunk is read of the index, and no more.
//!
//! What the list cannot say is how long a chunk's last sample is, and one of 8 chunks or more is an extent of its own
//! (PLN-2). But such a sample covers the chunks behind its own:
//!
//! ```text
//! chunk    c     c+1   c+2   c+3   c+4   c+5   c+6   c+7   c+8
//!       |  [=====:=====:=====:=====:=====:=====:=====:==]  |       8 chunks long at least
//! owns    ..,i  none  none  none  none  none  none  (0)   i+1..
//! ```
//!
//! It ends at the end of chunk c + 7 or later. So chunks c + 1 to c + 6 own no sample, chunk c + 7 is one of the same
//! segment, and c has its edge bit. Chunk c + 7 owns none either, unless the sample ends right with it: then samples of
//! no bytes may stand there, which belong to the chunk of the byte before. Only where all this is so is the sample
//! located, and that settles it.

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
        builder.set_chunk_size(dataset.geometry().chunk_size.bytes());
        let (chunks, table) = (dataset.chunks()?, dataset.segment_table());
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
        let last_len = match last_may_be_lone(chunks, chunk, of_segment.end) {
            true => dataset.locate(samples.end - 1)?.stored_len,
            // Short enough, whatever it is.
            false => 0,
        };
        builder.chunk(samples.end - samples.start, last_len)?;
    }
    Ok(())
}

/// Whether the chunk's last sample may be an extent of its own, for all that the list says.
fn last_may_be_lone(chunks: &ChunkList, chunk: u64, segment_end: u64) -> bool {
    let last_covered = chunk + LONE_SAMPLE_CHUNKS - 1;
    // A chunk without an edge owns none, or its last sample ends in it.
    chunks.edge(chunk) && last_covered < segment_end && chunks.samples(last_covered).start == chunks.samples(chunk).end
}
