//! The pages of a section that were read last, so that reads near them need no disk.
//!
//! Neighbours are read together: the first and the last sample of an extent, the samples of a batch in stored order.
//! Without this cache, each of them would read and check 64 KiB.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// 64 MiB: a page for each lane of an epoch, of which there are 768 at most by default, and some more.
const COUNT_MAX: usize = 1024;

/// Checked pages, by their number in the section.
#[derive(Debug, Default)]
pub(crate) struct PageCache(Mutex<CachedPages>);

#[derive(Debug, Default)]
struct CachedPages {
    by_number: HashMap<u64, Vec<u8>>,
    oldest_first: VecDeque<u64>,
}

impl PageCache {
    /// Bytes of a page, if it is cached and long enough.
    pub(crate) fn read(&self, page: u64, range: Range<usize>) -> Option<Vec<u8>> {
        self.pages()?.by_number.get(&page)?.get(range).map(<[u8]>::to_vec)
    }

    /// Adds a page; if there are too many, the oldest is dropped.
    pub(crate) fn insert(&self, page: u64, bytes: Vec<u8>) {
        let Some(mut pages) = self.pages() else { return };
        if pages.by_number.insert(page, bytes).is_none() {
            pages.oldest_first.push_back(page);
        }
        if pages.by_number.len() > COUNT_MAX
            && let Some(oldest) = pages.oldest_first.pop_front()
        {
            pages.by_number.remove(&oldest);
        }
    }

    /// Drops all pages. Not for a forked process, where the lock may stay taken forever.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CachedPages::default();
    }

    /// `None` if another thread holds the lock. It is not waited for: in a forked process that thread may not exist.
    fn pages(&self) -> Option<MutexGuard<'_, CachedPages>> {
        match self.0.try_lock() {
            Ok(pages) => Some(pages),
            // A missing page does no harm.
            Err(TryLockError::Poisoned(pages)) => Some(pages.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_page_is_dropped_and_bytes_past_a_page_are_a_miss() {
        let cache = PageCache::default();
        for page in 0..=COUNT_MAX as u64 {
            cache.insert(page, page.to_le_bytes().to_vec());
        }
        assert_eq!(cache.read(0, 0..1), None);
        assert_eq!(cache.read(1, 0..2), Some(vec![1, 0]));
        assert_eq!((cache.read(1, 7..9), cache.read(9999, 0..1)), (None, None));
        cache.clear();
        assert_eq!(cache.read(1, 0..2), None);
    }

    #[test]
    fn a_taken_lock_is_a_miss() {
        let cache = PageCache::default();
        cache.insert(3, vec![7; 9]);
        let taken = cache.pages();
        assert_eq!(cache.read(3, 0..1), None);
        cache.insert(4, vec![1]);
        drop(taken);
        assert_eq!((cache.read(3, 8..9), cache.read(4, 0..1)), (Some(vec![7]), None));
    }
}
