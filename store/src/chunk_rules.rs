//! Whether a sample lies where the chunk list says, asked of a sample by itself while the index is not loaded.
//!
//! Who reads the samples of a chunk with one read looks up the first and the last of them. So these must lie in that
//! chunk, and a sample that reaches into other chunks must own what it covers: else a list that lies would make a read
//! of any length of it. What the loaded index has to keep is in `entries`.

use grainstore_format::ChunkList;

use crate::entry_rules::stored_len;
use crate::{Dataset, Location, StoreError};

impl Dataset {
    /// Checks a sample against the chunk list and the sample before it. spec.md: ENT-4, CHK-1, CHK-3.
    pub(crate) fn check_place(&self, chunks: &ChunkList, ordinal: u64, location: &Location) -> Result<(), StoreError> {
        let before = self.end_of_sample_before(ordinal, location.segment)?;
        let wrong = wrong_before(before, location).or_else(|| self.wrong_chunk(chunks, ordinal, location));
        wrong.map_or(Ok(()), |what| Err(self.damaged_sample(ordinal, location.segment, location.offset, what)))
    }

    /// Where the sample before `ordinal` ends; the first of a segment has none.
    fn end_of_sample_before(&self, ordinal: u64, segment: usize) -> Result<u64, StoreError> {
        if ordinal == self.0.table.ordinals(segment).start {
            return Ok(0);
        }
        let before = self.entry(ordinal - 1)?;
        let stored_len = stored_len(&before, ordinal - 1, self.0.index.long()?).unwrap_or_default();
        Ok(before.offset().saturating_add(stored_len))
    }

    fn wrong_chunk(&self, chunks: &ChunkList, ordinal: u64, location: &Location) -> Option<String> {
        let Location { segment, offset, stored_len, .. } = *location;
        let (chunk_size, first_chunk) = (self.geometry().chunk_size, self.0.table.chunks(segment).start);
        let owner = chunk_size.owner(offset, stored_len);
        let owned = chunks.samples(first_chunk + owner);
        if !owned.contains(&ordinal) {
            return Some(format!("it belongs to chunk {owner}, which owns {}..{}", owned.start, owned.end));
        }
        let crosses = chunk_size.crosses_out_of(owner, offset, stored_len);
        if crosses != (ordinal + 1 == owned.end && chunks.edge(first_chunk + owner)) {
            let not = if crosses { "" } else { "not " };
            return Some(format!("it does {not}cross out of chunk {owner}, the edge list says otherwise"));
        }
        if !crosses {
            return None;
        }
        // The next sample starts at its end or later, so it is owned by the chunk of its last byte or a later one.
        let last = chunk_size.owner(offset + stored_len - 1, 1);
        let next = chunks.samples(first_chunk + last).start;
        (next != ordinal + 1).then(|| format!("it covers chunks {owner} to {last}, which own samples after it"))
    }
}

fn wrong_before(before: u64, location: &Location) -> Option<String> {
    let offset = location.offset;
    (offset < before).then(|| format!("it starts at {offset}, before {before}, where the one before ends"))
}
