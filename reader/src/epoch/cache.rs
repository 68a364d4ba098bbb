//! A cache of whole extents: what came in stays in, and what finds no room is read as ever.
//!
//! An epoch needs every sample once, and the next epoch needs them again in another order: what was used last is no
//! more likely to be needed next than anything else. So nothing is ever put out to make room, and the share of samples
//! that need no read is the share of the bytes that are held. A cache that puts out the oldest would hold nothing that
//! is needed again.
//!
//! It holds the stored bytes of an extent, or what a subset wants of them. They are verified each time they are used.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use grainstore_store::Collection;

use super::arena::{Arena, Taken};
use super::wanted::append_wanted;
use crate::ReadError;
use crate::engine::{Buffer, Filled};
use crate::plan::{Extents, Subset};
use crate::run::Run;
use grainstore_host::{Home, Shared};

/// Extents that epochs of a reader keep.
pub(crate) struct Cache {
    home: Home,
    len_max: u64,
    /// Of all samples.
    extents: Arc<Extents>,
    is_full: AtomicBool,
    /// Numbers that were given: of epochs, and of reservations.
    numbers: AtomicU64,
    state: Shared<State>,
}

struct State {
    /// By the extent's number.
    places: HashMap<u32, Place>,
    /// Bytes of buffers that are in the places.
    len: u64,
    arena: Arena,
}

enum Place {
    /// An epoch is reading these bytes of it.
    Reserved {
        owner: u64,
        reservation: u64,
        runs: Vec<Run>,
    },
    Kept(Arc<Kept>),
}

/// The bytes of an extent, or those of it that a subset wants.
pub(crate) struct Kept {
    /// Ascending by place.
    pub(super) parts: Vec<(Run, Filled)>,
}

/// Where a unit's bytes come from.
#[derive(Debug)]
pub(super) enum Supply {
    /// They are read.
    Read,
    /// These are read, which are more than the unit needs, and kept.
    Keep(Reservation, Vec<Run>),
    /// They are there.
    Kept(Arc<Kept>),
    /// The same epoch is reading them already.
    OnTheWay(OnTheWay),
}

/// An extent that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnTheWay {
    extent: u32,
    reservation: u64,
}

/// What has become of it.
pub(super) enum Arrival {
    Kept(Arc<Kept>),
    OnTheWay,
    Never,
}

/// Room for an extent that is being read. Given up when it is dropped.
pub(super) struct Reservation {
    cache: Arc<Cache>,
    extent: u32,
    len: u64,
    /// Whether it still has the place, which is its own until the extent is kept or given up.
    has_place: bool,
    is_kept: bool,
}

impl Cache {
    pub(crate) fn new(len_max: u64, extents: Arc<Extents>) -> Self {
        let state = State { places: HashMap::new(), len: 0, arena: Arena::new(len_max) };
        let (is_full, numbers) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { home: Home::here(), len_max, extents, is_full, numbers, state: Shared::new(state) }
    }

    /// Whether this is the process that made it: its memory is not there in a forked one.
    pub(crate) fn is_home(&self) -> bool {
        self.home.is_here()
    }

    /// A number for an epoch that is going to use it.
    pub(super) fn new_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// What has become of an extent that was on its way, some of whose `runs` are needed.
    pub(super) fn find(&self, on_the_way: OnTheWay, runs: &[Run]) -> Arrival {
        match self.state.lock().as_ref().and_then(|state| state.places.get(&on_the_way.extent)) {
            Some(Place::Kept(kept)) if kept.holds(runs) => Arrival::Kept(Arc::clone(kept)),
            Some(Place::Reserved { reservation, .. }) if *reservation == on_the_way.reservation => Arrival::OnTheWay,
            // That read has failed; who reads it by now, and what of it, is nothing to wait for.
            _ => Arrival::Never,
        }
    }

    /// Where the bytes come from that samples of one extent need, `ordinal` among them; `runs` are the reads that would
    /// fetch them.
    pub(super) fn supply(
        self: &Arc<Self>,
        dataset: &Collection,
        subset: Option<&Subset>,
        ordinal: u64,
        (owner, runs): (u64, &[Run]),
    ) -> Result<Supply, ReadError> {
        let extent = self.extents.extent_of(ordinal, 0);
        match self.state.lock().as_ref().and_then(|state| state.places.get(&extent)) {
            Some(Place::Kept(kept)) if kept.holds(runs) => return Ok(Supply::Kept(Arc::clone(kept))),
            Some(Place::Reserved { owner: other, reservation, runs: read })
                if *other == owner && hold(read.iter(), runs) =>
            {
                return Ok(Supply::OnTheWay(OnTheWay { extent, reservation: *reservation }));
            }
            Some(_) => return Ok(Supply::Read),
            None if self.is_full.load(Ordering::Relaxed) => return Ok(Supply::Read),
            None => {}
        }
        let mut whole = Vec::new();
        append_wanted(dataset, self.extents.samples(extent), subset, &mut whole)?;
        Ok(match self.reserve(extent, owner, &whole) {
            Some(reservation) => Supply::Keep(reservation, whole),
            None => Supply::Read,
        })
    }

    fn reserve(self: &Arc<Self>, extent: u32, owner: u64, runs: &[Run]) -> Option<Reservation> {
        let len = runs.iter().map(Run::blocks_len).fold(0, u64::saturating_add);
        let mut state = self.state.lock()?;
        if state.len.saturating_add(len) > self.len_max {
            self.is_full.store(true, Ordering::Relaxed);
            return None;
        }
        let Entry::Vacant(place) = state.places.entry(extent) else { return None };
        place.insert(Place::Reserved { owner, reservation: self.new_number(), runs: runs.to_vec() });
        state.len += len;
        Some(Reservation { cache: Arc::clone(self), extent, len, has_place: true, is_kept: false })
    }
}

impl Kept {
    /// Whether all bytes of `runs` are there.
    fn holds(&self, runs: &[Run]) -> bool {
        hold(self.parts.iter().map(|(part, _)| part), runs)
    }
}

fn hold<'a>(parts: impl Iterator<Item = &'a Run> + Clone, runs: &[Run]) -> bool {
    runs.iter().all(|run| parts.clone().any(|part| part.covers(run)))
}

impl Reservation {
    /// Memory for a part of the extent.
    pub(super) fn buffer(&self, len: usize) -> Result<Buffer, ReadError> {
        let no_memory = ReadError::NoMemory { len: len as u64 };
        match self.cache.state.lock().ok_or(no_memory)?.arena.take(len)? {
            Taken::Recycled(buffer) | Taken::NewSlab(buffer) | Taken::Lone(buffer) => Ok(buffer),
        }
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: Buffer) {
        if let Some(mut state) = self.cache.state.lock() {
            state.arena.give(buffer);
        }
    }

    /// Lets others read the extent: this read of it has failed. The room is given up with the buffers.
    pub(super) fn give_up(&mut self) {
        if std::mem::take(&mut self.has_place) {
            self.cache.state.lock().into_iter().for_each(|mut state| drop(state.places.remove(&self.extent)));
        }
    }

    /// Keeps the extent, all of whose parts have arrived.
    pub(super) fn keep(mut self, parts: Vec<(Run, Filled)>) -> Arc<Kept> {
        let kept = Arc::new(Kept { parts });
        if let Some(mut state) = self.cache.state.lock().filter(|_| self.has_place) {
            state.places.insert(self.extent, Place::Kept(Arc::clone(&kept)));
            self.is_kept = true;
        }
        kept
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.give_up();
        if let Some(mut state) = self.cache.state.lock() {
            state.len -= self.len;
            self.cache.is_full.store(false, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(run, _)| run)).finish()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("extent", &self.extent).field("len", &self.len).finish_non_exhaustive()
    }
}
