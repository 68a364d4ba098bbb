//! Entries of a source that is streamed: its parts in order, or sixteen at a time in turn through a window.

use std::collections::VecDeque;
use std::thread;

use super::lanes::PartStream;
use super::order::PartOrder;
use super::{Entry, EntryContent, Feed, How, Skip, memory_len};
use crate::random::{draws_of_window, index};
use crate::{ConvertError, Events};
use grainstore_format::SplitMix64;
use grainstore_sources::Source;

/// Bytes of samples that wait to be drawn.
pub(super) const WINDOW_LEN: u64 = 256 << 20;
/// Parts that are taken in turn, so that neighbours in the result come from different ones.
const MIXED_PARTS: usize = 16;
/// Bytes read ahead of each of those, or one sample.
const MIXED_AHEAD: u64 = 4 << 20;
/// Bytes read ahead of a part, where parts come one after the other, or one sample.
const ORDERED_AHEAD: u64 = 16 << 20;
/// Parts read ahead there.
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
                let mixed = Mixed { parts, lanes: Vec::new(), turn: 0, window, ended: false, passed: None };
                consume(&mut Skipping { feed: mixed, skip, passed: 0 })
            }
            None => {
                let ahead = how.readers.clamp(1, ORDERED_PARTS);
                consume(&mut Skipping { feed: Ordered { parts, ahead, lanes: VecDeque::new() }, skip, passed: 0 })
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
    lanes: VecDeque<PartStream>,
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Feed for Ordered<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            while self.lanes.len() < self.ahead
                && let Some(lane) = self.parts.open_next()?
            {
                self.lanes.push_back(lane);
            }
            let Some(lane) = self.lanes.front_mut() else { return Ok(None) };
            if let Some(entry) = lane.next(events)? {
                return Ok(Some(entry));
            }
            self.lanes.pop_front();
        }
    }
}

/// Sixteen parts in turn, an entry each; what is taken waits in a window and is drawn from it.
struct Mixed<'a, F> {
    parts: Parts<'a, F>,
    lanes: Vec<PartStream>,
    turn: usize,
    window: ShuffleWindow,
    ended: bool,
    /// What is not held: long and bad samples pass the window by.
    passed: Option<Entry>,
}

/// Entries that wait, up to [`WINDOW_LEN`] bytes.
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
            while self.lanes.len() < MIXED_PARTS
                && let Some(lane) = self.parts.open_next()?
            {
                self.lanes.push(lane);
            }
            if self.lanes.is_empty() {
                return Ok(None);
            }
            self.turn %= self.lanes.len();
            if let Some(entry) = self.lanes[self.turn].next(events)? {
                self.turn += 1;
                return Ok(Some(entry));
            }
            self.lanes.remove(self.turn);
        }
    }

    /// Fills the window until something must come out of it.
    fn fill(&mut self, events: &dyn Events) -> Result<(), ConvertError> {
        while !self.ended && self.passed.is_none() && self.window.len < WINDOW_LEN {
            match self.take(events)? {
                None => self.ended = true,
                Some(entry) => match &entry.content {
                    EntryContent::Whole(sample, _) => {
                        let len = memory_len(sample);
                        self.window.put(entry, len);
                    }
                    _ => self.passed = Some(entry),
                },
            }
        }
        Ok(())
    }
}

impl<F: Fn(usize) -> Result<PartStream, ConvertError>> Feed for Mixed<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        self.fill(events)?;
        Ok(self.passed.take().or_else(|| self.window.draw()))
    }
}

/// A feed without the entries that an interrupted conversion packed or skipped; a stream must be read to skip them.
struct Skipping<'a, F> {
    feed: F,
    skip: Skip<'a>,
    /// Counted entries that were skipped.
    passed: u64,
}

impl<F: Feed> Feed for Skipping<'_, F> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        while let Some(mut entry) = self.feed.next(events)? {
            if self.passed == self.skip.count {
                return Ok(Some(entry));
            }
            if (self.skip.counts)(entry.id) {
                let was_bad = self.skip.bad_places.binary_search(&self.passed).is_ok();
                if was_bad != matches!(entry.content, EntryContent::Bad(_)) {
                    return Err(ConvertError::Changed { number: self.passed });
                }
                self.passed += 1;
            }
            if let EntryContent::Long(super::LongSample::Streaming { payload, .. }) = &mut entry.content {
                // Read to its end, or the part would not continue.
                let _ = std::io::copy(payload, &mut std::io::sink());
            }
            super::check(events)?;
        }
        Ok(None)
    }
}
