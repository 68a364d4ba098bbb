//! Splits the selected samples into groups that are read at once: about 8 MiB, or one long sample that is streamed.

use std::collections::VecDeque;

use grainstore_store::{Collection, Encoding, Location};

use crate::ExportError;

/// The most payload bytes of a group.
pub(crate) const READ_GROUP_LEN: u64 = 8 << 20;
/// The most samples of a group.
const SAMPLES_MAX: usize = 4096;

/// Samples that are read at once.
#[derive(Debug)]
pub(crate) enum ReadGroup {
    /// The ordinals of samples that are held in memory.
    Held(Vec<u64>),
    /// One raw sample that is longer than a group.
    Streamed {
        /// The sample.
        ordinal: u64,
        /// Its length.
        payload_len: u64,
    },
}

/// Splits ordinals into groups.
pub(crate) struct ReadGroups<'a> {
    collection: &'a Collection,
    ordinals: Box<dyn Iterator<Item = u64> + Send + 'a>,
    ahead: VecDeque<(u64, Location)>,
}

impl<'a> ReadGroups<'a> {
    pub(crate) fn new(collection: &'a Collection, ordinals: Box<dyn Iterator<Item = u64> + Send + 'a>) -> Self {
        Self { collection, ordinals, ahead: VecDeque::new() }
    }

    /// The next group; `None` after the last.
    pub(crate) fn next_group(&mut self) -> Result<Option<ReadGroup>, ExportError> {
        self.look_ahead()?;
        let Some(&(ordinal, location)) = self.ahead.front() else { return Ok(None) };
        if is_streamed(&location) {
            self.ahead.pop_front();
            return Ok(Some(ReadGroup::Streamed { ordinal, payload_len: location.raw_len() }));
        }
        let mut len = 0_u64;
        let fits = |(position, (_, location)): &(usize, &(u64, Location))| {
            len = len.saturating_add(location.raw_len());
            !is_streamed(location) && (*position == 0 || len <= READ_GROUP_LEN)
        };
        let count = self.ahead.iter().enumerate().take_while(fits).count();
        Ok(Some(ReadGroup::Held(self.ahead.drain(..count).map(|(ordinal, _)| ordinal).collect())))
    }

    fn look_ahead(&mut self) -> Result<(), ExportError> {
        let wanted = SAMPLES_MAX - self.ahead.len().min(SAMPLES_MAX);
        // Looking up many samples at a time is faster.
        if wanted < SAMPLES_MAX / 2 {
            return Ok(());
        }
        let ordinals: Vec<u64> = self.ordinals.by_ref().take(wanted).collect();
        let mut locations = Vec::with_capacity(ordinals.len());
        self.collection.locate_batch(&ordinals, &mut locations)?;
        self.ahead.extend(ordinals.into_iter().zip(locations));
        Ok(())
    }
}

/// Whether a sample is too long to be held. A compressed one, 64 MiB at most, is always held.
pub(crate) fn is_streamed(location: &Location) -> bool {
    location.encoding == Encoding::Raw && location.stored_len > READ_GROUP_LEN
}

/// Splits samples into shards: a shard ends before the sample that would make its payload longer than `shard_len`.
pub(crate) struct Cutter {
    shard_len: u64,
    len: u64,
    counts: Vec<u64>,
}

impl Cutter {
    pub(crate) fn new(shard_len: u64) -> Self {
        Self { shard_len, len: 0, counts: vec![0] }
    }

    pub(crate) fn add(&mut self, payload_len: u64) {
        self.len = self.len.saturating_add(payload_len);
        match self.counts.last_mut() {
            Some(count) if *count == 0 || self.len <= self.shard_len => *count += 1,
            _ => {
                self.counts.push(1);
                self.len = payload_len;
            }
        }
    }

    /// The number of samples of each shard; there is at least one shard.
    pub(crate) fn counts(self) -> Vec<u64> {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::Cutter;

    #[test]
    fn a_shard_ends_before_the_sample_that_would_make_it_too_long() {
        let counts = |lens: &[u64]| {
            let mut cutter = Cutter::new(10);
            lens.iter().for_each(|len| cutter.add(*len));
            cutter.counts()
        };
        assert_eq!(counts(&[]), [0]);
        assert_eq!(counts(&[10]), [1]);
        assert_eq!(counts(&[5, 5, 0, 1]), [3, 1]);
        assert_eq!(counts(&[100, 100, 1, 9, 1]), [1, 1, 2, 1]);
        assert_eq!(counts(&[0, 0, 11, 0]), [2, 1, 1]);
        assert_eq!(counts(&[u64::MAX, u64::MAX]), [1, 1]);
    }
}
