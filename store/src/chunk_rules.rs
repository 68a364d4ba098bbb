//! The rules between one sample and the chunk list, for an index that is not loaded.
//!
//! Callers that read a whole chunk at once look up its first and its last sample. So these must be in that chunk, and a
//! sample that reaches into other chunks must be the only one there: otherwise a damaged list could cause a read of any
//! length. The rules for all entries of a loaded index are in `entry_rules`.

use grainstore_format::ChunkList;

use crate::entry_rules::stored_len;
use crate::{Dataset, Location, StoreError};

impl Dataset {
    /// Checks a sample against the chunk list and the previous sample. spec.md: ENT-4, CHK-1, CHK-3.
    pub(crate) fn check_chunk(&self, chunks: &ChunkList, ordinal: u64, location: &Location) -> Result<(), StoreError> {
        let previous_end = self.end_of_previous(ordinal, location.segment)?;
        let wrong = wrong_start(previous_end, location).or_else(|| self.wrong_chunk(chunks, ordinal, location));
        match wrong {
            Some(what) => Err(self.damaged_sample(ordinal, location.segment, location.offset, what)),
            None => Ok(()),
        }
    }

    /// Where the sample before `ordinal` ends; 0 for the first of a segment.
    fn end_of_previous(&self, ordinal: u64, segment: usize) -> Result<u64, StoreError> {
        if ordinal == self.0.table.ordinals(segment).start {
            return Ok(0);
        }
        let previous = self.entry(ordinal - 1)?;
        let Some(stored_len) = stored_len(&previous, ordinal - 1, self.0.index.long()?) else {
            let what = "it is long, but missing in the table of long samples".into();
            return Err(self.damaged_sample(ordinal - 1, segment, previous.offset(), what));
        };
        Ok(previous.offset().saturating_add(stored_len))
    }

    fn wrong_chunk(&self, chunks: &ChunkList, ordinal: u64, location: &Location) -> Option<String> {
        let Location { segment, offset, stored_len, .. } = *location;
        let chunk_size = self.geometry().chunk_size;
        let first_chunk = self.0.table.chunks(segment).start;
        let owner = chunk_size.owner(offset, stored_len);
        let owned = chunks.samples(first_chunk + owner);
        if !owned.contains(&ordinal) {
            return Some(format!("it belongs to chunk {owner}, which owns {}..{}", owned.start, owned.end));
        }
        let crosses = chunk_size.crosses_out_of(owner, offset, stored_len);
        if crosses != (ordinal + 1 == owned.end && chunks.edge(first_chunk + owner)) {
            let not = if crosses { "" } else { "not " };
            return Some(format!("it does {not}cross the end of chunk {owner}, the edge list disagrees"));
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

fn wrong_start(previous_end: u64, location: &Location) -> Option<String> {
    let offset = location.offset;
    (offset < previous_end).then(|| format!("it starts at {offset}, the previous sample ends at {previous_end}"))
}
