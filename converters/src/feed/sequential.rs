//! The feed of a source that can only be streamed: its parts in order, or shuffled in a window over sixteen parts.

use std::collections::VecDeque;
use std::thread;

use super::order::PartOrder;
use super::part_stream::PartStream;
use super::{Entry, EntryContent, Feed, How, Skip, memory_len};
use crate::random::{draws_of_window, index};
use crate::{ConvertError, Events};
use grainstore_format::SplitMix64;
use grainstore_sources::Source;

/// Bytes of samples in the shuffling window.
pub(super) const WINDOW_LEN: u64 = 256 << 20;
/// Parts that are read in turn, so that neighbours in the result come from different parts.
const MIXED_PARTS: usize = 16;
/// Bytes read ahead in each of these, or one sample.
const MIXED_AHEAD: u64 = 4 << 20;
/// Bytes read ahead in a part where parts are read in order, or one sample.
const ORDERED_AHEAD: u64 = 16 << 20;
/// Parts that are read ahead in that case.
const ORDERED_PARTS: usize = 4;

pub(super) fn feed<R>(
    source: &dyn Source,
    plan: &PartOrder,
    how: How,
    skip: Skip<'_>,
    consume: impl FnOnce(&mut dyn Feed) -> Result<R, ConvertError>,
) -> Result<R, ConvertError> {
    thread::scope(|scope| {
        let open = |part| {
            let ahead_len = if plan.seed.is_some() { MIXED_AHEAD } else { ORDERED_AHEAD };
            PartStream::open(source, part, how.layout, ahead_len, scope)
        };
        let parts = Parts { plan, open, next: 0 };
        match plan.seed {
            Some(seed) => {
                let window = ShuffleWindow { draws: draws_of_window(seed), waiting: Vec::new(), len: 0 };
                let mixed = Mixed { parts, streams: Vec::new(), turn: 0, window, ended: false, bypassed: None };
                consume(&mut Skipping { feed: mixed, skip, skipped_count: 0 })
            }
            None => {
                let ahead = how.readers().clamp(1, ORDERED_PARTS);
                consume(&mut Skipping {
                    feed: Ordered { parts, ahead, streams: VecDeque::new() },
                    skip,
                    skipped_count: 0,
                })
            }
        }
    })
}

/// The parts in their order, opened one after the other.
struct Parts<'a, F> {
    plan: &'a PartOrder,
    open: F,
    next: usize,
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Parts<'_, F> {
    fn open_next(&mut self) -> Result<Option<PartStream>, ConvertError> {
        let part = self.plan.parts.get(self.next).copied();
        self.next += 1;
        part.map(&self.open).transpose()
    }
}

/// One part after the other.
struct Ordered<'a, F> {
    parts: Parts<'a, F>,
    ahead: usize,
    streams: VecDeque<PartStream>,
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Feed for Ordered<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            while self.streams.len() < self.ahead
                && let Some(stream) = self.parts.open_next()?
            {
                self.streams.push_back(stream);
            }
            let Some(stream) = self.streams.front_mut() else { return Ok(None) };
            if let Some(entry) = stream.next(events)? {
                return Ok(Some(entry));
            }
            self.streams.pop_front();
        }
    }
}

/// Reads an entry from each of sixteen parts in turn into a window, and draws entries from the window.
struct Mixed<'a, F> {
    parts: Parts<'a, F>,
    streams: Vec<PartStream>,
    turn: usize,
    window: ShuffleWindow,
    ended: bool,
    /// A long or bad sample, which does not go through the window.
    bypassed: Option<Entry>,
}

/// The entries to draw from, up to [`WINDOW_LEN`] bytes.
struct ShuffleWindow {
    draws: SplitMix64,
    waiting: Vec<(Entry, u64)>,
    len: u64,
}

impl ShuffleWindow {
    fn put(&mut self, entry: Entry, len: u64) {
        self.len += len;
        self.waiting.push((entry, len));
    }

    fn draw(&mut self) -> Option<Entry> {
        if self.waiting.is_empty() {
            return None;
        }
        let at = index(&mut self.draws, self.waiting.len());
        let (entry, len) = self.waiting.swap_remove(at);
        self.len -= len;
        Some(entry)
    }
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Mixed<'_, F> {
    /// The next entry of the parts in turn.
    fn take(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            while self.streams.len() < MIXED_PARTS
                && let Some(stream) = self.parts.open_next()?
            {
                self.streams.push(stream);
            }
            if self.streams.is_empty() {
                return Ok(None);
            }
            self.turn %= self.streams.len();
            if let Some(entry) = self.streams[self.turn].next(events)? {
                self.turn += 1;
                return Ok(Some(entry));
            }
            self.streams.remove(self.turn);
        }
    }

    /// Fills the window until an entry has to be returned.
    fn fill(&mut self, events: &dyn Events) -> Result<(), ConvertError> {
        while !self.ended && self.bypassed.is_none() && self.window.len < WINDOW_LEN {
            match self.take(events)? {
                None => self.ended = true,
                Some(entry) => match &entry.content {
                    EntryContent::Whole(sample, _) => {
                        let len = memory_len(sample);
                        self.window.put(entry, len);
                    }
                    _ => self.bypassed = Some(entry),
                },
            }
        }
        Ok(())
    }
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Feed for Mixed<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        self.fill(events)?;
        Ok(self.bypassed.take().or_else(|| self.window.draw()))
    }
}

/// Skips the entries that an interrupted conversion packed or skipped. A stream has to be read to skip them.
struct Skipping<'a, F> {
    feed: F,
    skip: Skip<'a>,
    /// Number of counted entries skipped so far.
    skipped_count: u64,
}

impl<F: Feed> Feed for Skipping<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        while let Some(mut entry) = self.feed.next(events)? {
            if self.skipped_count == self.skip.count {
                return Ok(Some(entry));
            }
            if (self.skip.counts)(entry.id) {
                let was_unstored = self.skip.unstored_places.binary_search(&self.skipped_count).is_ok();
                if was_unstored != entry.content.is_unstored() {
                    return Err(ConvertError::Changed { number: self.skipped_count });
                }
                self.skipped_count += 1;
            }
            if let EntryContent::Long(super::LongSample::Streaming { payload, .. }) = &mut entry.content {
                // The part continues only after the payload was read to its end.
                let _ = std::io::copy(payload, &mut std::io::sink());
            }
            super::check(events)?;
        }
        Ok(None)
    }
}
