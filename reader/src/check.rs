//! What happens to bytes that have arrived: their checksum is verified, then they are copied or decoded into the batch.
//!
//! In groups small enough that what was verified is still in the CPU's cache when it is copied; the samples after the
//! ones at hand are prefetched, since draws from a window of memory lie anywhere. Where one thread cannot keep up with
//! the device, several take shares of the samples; they have nothing in common but the list.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use grainstore_store::{Location, PayloadError, check_stored, decode_into};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::engine::{PREFETCH_LEN_MAX, prefetch};

/// Bytes that are verified before they are copied.
const GROUP_LEN: usize = 16 << 10;

/// A sample to be verified and, unless it is in its place already, to be copied or decoded there.
pub(crate) struct Check<'a> {
    pub(crate) location: &'a Location,
    pub(crate) stored: &'a [u8],
    pub(crate) raw: Option<&'a mut [u8]>,
}

/// Time that was spent, added up over threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckTimes {
    pub(crate) verify: Duration,
    pub(crate) copy: Duration,
}

/// Why a check failed, and its place in the list.
pub(crate) type Failure = (usize, PayloadError);

/// Does all `checks`. Returns those that fail, in order; nothing that fails is copied.
pub(crate) fn run(checks: &mut [Check<'_>], times: &mut CheckTimes) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut start = 0;
    while start < checks.len() {
        let end = group_end(checks, start);
        let begin = Instant::now();
        for index in start..end {
            let Check { location, stored, .. } = &checks[index];
            if let Some(later) = checks.get(index + prefetch_distance(stored.len())) {
                prefetch(later.stored);
            }
            if let Err(error) = check_stored(location, stored) {
                failures.push((index, error));
                checks[index].raw = None;
            }
        }
        let verified = Instant::now();
        for (index, check) in checks.iter_mut().enumerate().take(end).skip(start) {
            if let Some(raw) = &mut check.raw
                && let Err(error) = decode_into(check.location, check.stored, raw)
            {
                failures.push((index, error));
            }
        }
        times.verify += verified - begin;
        times.copy += verified.elapsed();
        start = end;
    }
    // Those of a group that cannot be decoded follow those that are not what was stored.
    failures.sort_by_key(|(index, _)| *index);
    failures
}

/// How many samples ahead the CPU fetches into its cache: as many as it can have on their way at a time.
fn prefetch_distance(stored_len: usize) -> usize {
    (PREFETCH_LEN_MAX / stored_len.max(1)).clamp(1, 8)
}

/// The end of the group that begins at `start`.
fn group_end(checks: &[Check<'_>], start: usize) -> usize {
    let mut len = 0;
    let within = |check: &&Check<'_>| {
        len += check.stored.len();
        len <= GROUP_LEN
    };
    start + checks[start..].iter().take_while(within).count().max(1)
}

/// Threads that share checks: one, until more are called for.
pub(crate) struct Checkers {
    count: usize,
    count_max: usize,
    pool: Option<ThreadPool>,
}

impl Checkers {
    /// At most as many as the machine has cores.
    pub(crate) fn new() -> Self {
        let count_max = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { count: 1, count_max, pool: None }
    }

    /// Threads that share the checks now.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Calls for twice as many threads. Where they are not to be had, it stays as it is.
    pub(crate) fn grow(&mut self) {
        let count = (self.count * 2).min(self.count_max);
        if count == self.count {
            return;
        }
        // The calling thread is one of them.
        let name = |number| format!("grain-check-{number}");
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(count - 1).thread_name(name).build() {
            (self.pool, self.count) = (Some(pool), count);
        }
    }

    /// As [`run`], with all threads.
    pub(crate) fn run(&self, checks: &mut [Check<'_>], times: &mut CheckTimes) -> Vec<Failure> {
        let Some(pool) = &self.pool else { return run(checks, times) };
        let mut shares: Vec<Share<'_, '_>> = shares(checks, self.count);
        pool.in_place_scope(|scope| {
            let Some((first, others)) = shares.split_first_mut() else { return };
            others.iter_mut().for_each(|share| scope.spawn(|_| share.run()));
            first.run();
        });
        for share in &shares {
            times.verify += share.times.verify;
            times.copy += share.times.copy;
        }
        let of_all =
            |share: Share<'_, '_>| share.failures.into_iter().map(move |(index, error)| (share.start + index, error));
        shares.into_iter().flat_map(of_all).collect()
    }
}

/// A part of a list of checks, for one thread.
struct Share<'l, 'a> {
    start: usize,
    checks: &'l mut [Check<'a>],
    times: CheckTimes,
    failures: Vec<Failure>,
}

impl Share<'_, '_> {
    fn run(&mut self) {
        self.failures = run(self.checks, &mut self.times);
    }
}

/// Cuts the list into at most `count` parts of about equally many bytes.
fn shares<'l, 'a>(checks: &'l mut [Check<'a>], count: usize) -> Vec<Share<'l, 'a>> {
    let total_len: usize = checks.iter().map(|check| check.stored.len()).sum();
    let share_len = (total_len / count).max(1);
    let (mut rest, mut start) = (checks, 0);
    let mut shares = Vec::with_capacity(count);
    while !rest.is_empty() {
        let mut len = 0;
        let within = |check: &&Check<'_>| {
            len += check.stored.len();
            len <= share_len
        };
        let taken = rest.iter().take_while(within).count() + 1;
        let taken = if shares.len() + 1 == count { rest.len() } else { taken.min(rest.len()) };
        let (checks, others) = rest.split_at_mut(taken);
        shares.push(Share { start, checks, times: CheckTimes::default(), failures: Vec::new() });
        (rest, start) = (others, start + taken);
    }
    shares
}

#[cfg(test)]
mod tests {
    use grainstore_store::Encoding;

    use super::*;

    fn samples(count: usize, len: usize) -> Vec<(Location, Vec<u8>)> {
        let sample = |i: usize| {
            let stored: Vec<u8> = (0..len + i % 3).map(|at| u8::try_from((at * 7 + i) % 251).unwrap()).collect();
            let (stored_len, crc) = (stored.len() as u64, crc32fast::hash(&stored));
            (Location { segment: 0, offset: 0, stored_len, crc, encoding: Encoding::Raw }, stored)
        };
        (0..count).map(sample).collect()
    }

    fn checked(checkers: &Checkers, samples: &[(Location, Vec<u8>)]) -> (Vec<Vec<u8>>, Vec<usize>) {
        let mut raw: Vec<Vec<u8>> = samples.iter().map(|(_, stored)| vec![0; stored.len()]).collect();
        let lists = samples.iter().zip(&mut raw);
        let mut checks: Vec<Check<'_>> =
            lists.map(|((location, stored), raw)| Check { location, stored, raw: Some(raw) }).collect();
        let failures = checkers.run(&mut checks, &mut CheckTimes::default());
        (raw, failures.into_iter().map(|(index, _)| index).collect())
    }

    #[test]
    fn every_number_of_threads_copies_the_same_and_tells_what_fails() {
        let mut checkers = Checkers { count: 1, count_max: 4, pool: None };
        for threads in [1, 2, 4] {
            assert_eq!(checkers.count(), threads);
            for (count, len) in [(0, 1), (1, 100_000), (3, 0), (700, 512), (50, 70_000)] {
                let mut samples = samples(count, len);
                let mut expected: Vec<Vec<u8>> = samples.iter().map(|(_, stored)| stored.clone()).collect();
                assert_eq!(checked(&checkers, &samples), (expected.clone(), vec![]));
                let mut all_broken = Vec::new();
                for broken in [count / 2, count.saturating_sub(1)] {
                    if let Some(byte) = samples.get_mut(broken).and_then(|(_, stored)| stored.first_mut()) {
                        *byte = byte.wrapping_add(1);
                        all_broken.push(broken);
                        all_broken.dedup();
                        expected[broken].fill(0);
                        let (raw, failures) = checked(&checkers, &samples);
                        assert_eq!(failures, all_broken);
                        assert!(raw == expected, "nothing that fails is copied");
                    }
                }
            }
            checkers.grow();
        }
        checkers.grow();
        assert_eq!(checkers.count(), 4, "no more than there may be");
    }
}
