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
use crate::engine::{Buffer, Filled, Shared};
use crate::plan::{Extents, Subset};
use crate::run::Run;

/// Extents that epochs of a reader keep.
pub(crate) struct Cache {
    len_max: u64,
    /// Of all samples.
    extents: Arc<Extents>,
    is_full: AtomicBool,
    owner_count: AtomicU64,
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
    /// The same epoch is reading them already, with the extent of this number.
    OnTheWay(u32),
}

/// Room for an extent that is being read. Given up when it is dropped.
pub(super) struct Reservation {
    cache: Arc<Cache>,
    extent: u32,
    len: u64,
    is_kept: bool,
}

impl Cache {
    pub(crate) fn new(len_max: u64, extents: Arc<Extents>) -> Self {
        let state = State { places: HashMap::new(), len: 0, arena: Arena::new(len_max) };
        let (is_full, owner_count) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { len_max, extents, is_full, owner_count, state: Shared::new(state) }
    }

    /// A number for an epoch that is going to use it.
    pub(super) fn new_owner(&self) -> u64 {
        self.owner_count.fetch_add(1, Ordering::Relaxed)
    }

    /// The bytes of an extent, if they are there; or whether they are on their way.
    pub(super) fn find(&self, extent: u32) -> (Option<Arc<Kept>>, bool) {
        match self.state.lock().as_ref().and_then(|state| state.places.get(&extent)) {
            Some(Place::Kept(kept)) => (Some(Arc::clone(kept)), false),
            Some(Place::Reserved { .. }) => (None, true),
            None => (None, false),
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
            Some(Place::Reserved { owner: other, runs: read }) if *other == owner && hold(read.iter(), runs) => {
                return Ok(Supply::OnTheWay(extent));
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
        place.insert(Place::Reserved { owner, runs: runs.to_vec() });
        state.len += len;
        Some(Reservation { cache: Arc::clone(self), extent, len, is_kept: false })
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

    /// Keeps the extent, all of whose parts have arrived.
    pub(super) fn keep(mut self, parts: Vec<(Run, Filled)>) -> Arc<Kept> {
        let kept = Arc::new(Kept { parts });
        if let Some(mut state) = self.cache.state.lock() {
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
        if let Some(mut state) = self.cache.state.lock() {
            state.places.remove(&self.extent);
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
