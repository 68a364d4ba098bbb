//! The pieces of a section that were read last, so that reads near them need no disk.
//!
//! Neighbours are read together: the first and the last sample of an extent, the samples of a batch in stored order.
//! Without this cache, each of them would read and check 64 KiB.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// 64 MiB: a piece for each lane of an epoch, of which there are 768 at most by default, and some more.
const COUNT_MAX: usize = 1024;

/// Checked pieces, by their number in the section.
#[derive(Debug, Default)]
pub(crate) struct PieceCache(Mutex<CachedPieces>);

#[derive(Debug, Default)]
struct CachedPieces {
    by_number: HashMap<u64, Vec<u8>>,
    oldest_first: VecDeque<u64>,
}

impl PieceCache {
    /// Bytes of a piece, if it is cached and long enough.
    pub(crate) fn read(&self, piece: u64, range: Range<usize>) -> Option<Vec<u8>> {
        self.pieces()?.by_number.get(&piece)?.get(range).map(<[u8]>::to_vec)
    }

    /// Adds a piece; if there are too many, the oldest is dropped.
    pub(crate) fn insert(&self, piece: u64, bytes: Vec<u8>) {
        let Some(mut pieces) = self.pieces() else { return };
        if pieces.by_number.insert(piece, bytes).is_none() {
            pieces.oldest_first.push_back(piece);
        }
        if pieces.by_number.len() > COUNT_MAX
            && let Some(oldest) = pieces.oldest_first.pop_front()
        {
            pieces.by_number.remove(&oldest);
        }
    }

    /// Drops all pieces. Not for a forked process, where the lock may stay taken forever.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CachedPieces::default();
    }

    /// `None` if another thread holds the lock. It is not waited for: in a forked process that thread may not exist.
    fn pieces(&self) -> Option<MutexGuard<'_, CachedPieces>> {
        match self.0.try_lock() {
            Ok(pieces) => Some(pieces),
            // A missing piece does no harm.
            Err(TryLockError::Poisoned(pieces)) => Some(pieces.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_piece_is_dropped_and_bytes_past_a_piece_are_a_miss() {
        let cache = PieceCache::default();
        for piece in 0..=COUNT_MAX as u64 {
            cache.insert(piece, piece.to_le_bytes().to_vec());
        }
        assert_eq!(cache.read(0, 0..1), None);
        assert_eq!(cache.read(1, 0..2), Some(vec![1, 0]));
        assert_eq!((cache.read(1, 7..9), cache.read(9999, 0..1)), (None, None));
        cache.clear();
        assert_eq!(cache.read(1, 0..2), None);
    }

    #[test]
    fn a_taken_lock_is_a_miss() {
        let cache = PieceCache::default();
        cache.insert(3, vec![7; 9]);
        let taken = cache.pieces();
        assert_eq!(cache.read(3, 0..1), None);
        cache.insert(4, vec![1]);
        drop(taken);
        assert_eq!((cache.read(3, 8..9), cache.read(4, 0..1)), (Some(vec![7]), None));
    }
}
