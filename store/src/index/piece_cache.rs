//! The pieces of a section that were read last: who asks close by is answered without the disk.
//!
//! Neighbours are asked for together: the first and the last sample of an extent, the samples of a batch in stored
//! order. Without this, each of them would read and check 64 KiB.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// 64 MiB: a piece for each lane of an epoch, of which there are 768 at most by default, and some.
const COUNT_MAX: usize = 1024;

/// Pieces that were checked, by their number in the section.
#[derive(Debug, Default)]
pub(crate) struct PieceCache(Mutex<CachedPieces>);

#[derive(Debug, Default)]
struct CachedPieces {
    by_number: HashMap<u64, Vec<u8>>,
    oldest_first: VecDeque<u64>,
}

impl PieceCache {
    /// Bytes of a piece, where it is here and has them.
    pub(crate) fn read(&self, piece: u64, range: Range<usize>) -> Option<Vec<u8>> {
        self.pieces()?.by_number.get(&piece)?.get(range).map(<[u8]>::to_vec)
    }

    /// Keeps a piece, in place of the oldest where there are too many.
    pub(crate) fn keep(&self, piece: u64, bytes: Vec<u8>) {
        let Some(mut pieces) = self.pieces() else { return };
        if pieces.by_number.insert(piece, bytes).is_none() {
            pieces.oldest_first.push_back(piece);
        }
        if pieces.by_number.len() > COUNT_MAX {
            let oldest = pieces.oldest_first.pop_front();
            oldest.and_then(|oldest| pieces.by_number.remove(&oldest));
        }
    }

    /// Lets go of all pieces. Not in a forked process: somebody who stayed behind may have them for ever.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CachedPieces::default();
    }

    /// `None` where another thread has them: it is not waited for, since in a forked process it may not be there.
    fn pieces(&self) -> Option<MutexGuard<'_, CachedPieces>> {
        match self.0.try_lock() {
            Ok(pieces) => Some(pieces),
            // A piece more or less does no harm.
            Err(TryLockError::Poisoned(pieces)) => Some(pieces.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_piece_makes_room_and_what_it_lacks_is_not_answered() {
        let cache = PieceCache::default();
        (0..=COUNT_MAX as u64).for_each(|piece| cache.keep(piece, piece.to_le_bytes().to_vec()));
        assert_eq!(cache.read(0, 0..1), None);
        assert_eq!(cache.read(1, 0..2), Some(vec![1, 0]));
        assert_eq!((cache.read(1, 7..9), cache.read(9999, 0..1)), (None, None));
        cache.clear();
        assert_eq!(cache.read(1, 0..2), None);
    }

    #[test]
    fn who_finds_them_taken_goes_without() {
        let cache = PieceCache::default();
        cache.keep(3, vec![7; 9]);
        let taken = cache.pieces();
        assert_eq!(cache.read(3, 0..1), None);
        cache.keep(4, vec![1]);
        drop(taken);
        assert_eq!((cache.read(3, 8..9), cache.read(4, 0..1)), (Some(vec![7]), None));
    }
}
