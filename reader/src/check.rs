//! Checks samples that have arrived: verifies their checksums, then copies or decodes them into the batch.
//!
//! Raw samples are copied and checked in one pass, and what is checked is the copy: a mapped file may change meanwhile.
//! Compressed ones are checked in groups that are small enough to be still in the CPU's cache when they are decoded. The
//! samples after them are prefetched, since samples of a batch are scattered over the memory of the window. If one
//! thread cannot keep up with the device, several threads divide the samples; they share nothing except the list.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use grainstore_store::{Encoding, Location, PayloadError, check_stored, copy_checked, decode_into};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::engine::{PREFETCH_LEN_MAX, prefetch};

/// Bytes that are verified before they are decoded.
const GROUP_LEN: usize = 16 << 10;

/// Samples whose first bytes are fetched one right after the other, before the rest of each. Samples of a mapped file are
/// on small pages all over memory: the processor looks several of them up at a time, but only if it meets them together.
const BURST: usize = 16;

/// A sample to be verified and, if `raw` is given, copied or decoded there.
pub(crate) struct Check<'a> {
    pub(crate) location: &'a Location,
    pub(crate) stored: &'a [u8],
    pub(crate) raw: Option<&'a mut [u8]>,
}

impl Check<'_> {
    /// Whether the bytes are copied as they are stored.
    fn is_copied(&self) -> bool {
        self.raw.is_some() && self.location.encoding == Encoding::Raw
    }
}

/// Time spent, added up over threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckTimes {
    /// Verifying what is not copied, or decoded afterwards.
    pub(crate) verify: Duration,
    /// Copying and verifying in one pass, and decoding.
    pub(crate) copy: Duration,
}

/// The index of a check that failed, and why.
pub(crate) type Failure = (usize, PayloadError);

/// Does all `checks`. Returns the failures in order; a sample that fails is not copied.
pub(crate) fn run(checks: &mut [Check<'_>], times: &mut CheckTimes) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut start = 0;
    while start < checks.len() {
        let end = group_end(checks, start);
        let begin = Instant::now();
        for (index, check) in checks.iter_mut().enumerate().take(end).skip(start) {
            if check.is_copied() {
                continue;
            }
            if let Err(error) = check_stored(check.location, check.stored) {
                failures.push((index, error));
                check.raw = None;
            }
        }
        let verified = Instant::now();
        for index in start..end {
            if index.is_multiple_of(BURST) {
                let later = checks.iter().skip(index + BURST).take(BURST);
                later.for_each(|check| prefetch(check.stored.get(..1).unwrap_or_default()));
            }
            if let Some(later) = checks.get(index + prefetch_distance(checks[index].stored.len())) {
                prefetch(later.stored);
            }
            let is_copied = checks[index].is_copied();
            let Check { location, stored, raw: Some(raw) } = &mut checks[index] else { continue };
            let result = match is_copied {
                true => copy_checked(location, stored, raw),
                false => decode_into(location, stored, raw),
            };
            if let Err(error) = result {
                failures.push((index, error));
            }
        }
        times.verify += verified - begin;
        times.copy += verified.elapsed();
        start = end;
    }
    // In a group, samples that cannot be decoded come after samples whose checksum is wrong.
    failures.sort_by_key(|(index, _)| *index);
    failures
}

/// How many samples ahead the CPU fetches into its cache: as many as it can have in flight at a time.
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

/// Threads that divide checks among them: one at first.
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

    /// Number of threads now.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Starts twice as many threads, if the system has them.
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
        let mut parts: Vec<ThreadPart<'_, '_>> = divide(checks, self.count);
        pool.in_place_scope(|scope| {
            let Some((first, others)) = parts.split_first_mut() else { return };
            for part in others {
                scope.spawn(|_| part.run());
            }
            first.run();
        });
        let mut failures = Vec::new();
        for part in parts {
            times.verify += part.times.verify;
            times.copy += part.times.copy;
            failures.extend(part.failures.into_iter().map(|(index, error)| (part.start + index, error)));
        }
        failures
    }
}

/// A part of a list of checks, for one thread.
struct ThreadPart<'l, 'a> {
    start: usize,
    checks: &'l mut [Check<'a>],
    times: CheckTimes,
    failures: Vec<Failure>,
}

impl ThreadPart<'_, '_> {
    fn run(&mut self) {
        self.failures = run(self.checks, &mut self.times);
    }
}

/// Cuts the list into at most `count` parts of about equally many bytes.
fn divide<'l, 'a>(checks: &'l mut [Check<'a>], count: usize) -> Vec<ThreadPart<'l, 'a>> {
    let total_len: usize = checks.iter().map(|check| check.stored.len()).sum();
    let part_len = (total_len / count).max(1);
    let mut rest = checks;
    let mut start = 0;
    let mut parts = Vec::with_capacity(count);
    while !rest.is_empty() {
        let mut len = 0;
        let within = |check: &&Check<'_>| {
            len += check.stored.len();
            len <= part_len
        };
        let taken = rest.iter().take_while(within).count() + 1;
        let taken = if parts.len() + 1 == count { rest.len() } else { taken.min(rest.len()) };
        let (checks, others) = rest.split_at_mut(taken);
        parts.push(ThreadPart { start, checks, times: CheckTimes::default(), failures: Vec::new() });
        rest = others;
        start += taken;
    }
    parts
}

#[cfg(test)]
mod tests {
    use grainstore_store::Encoding;

    use super::*;

    fn samples(count: usize, len: usize) -> Vec<(Location, Vec<u8>)> {
        let sample = |i: usize| {
            let stored: Vec<u8> = (0..len + i % 3).map(|at| u8::try_from((at * 7 + i) % 251).unwrap()).collect();
            let stored_len = stored.len() as u64;
            let crc = crc32fast::hash(&stored);
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
    fn every_number_of_threads_copies_the_same_and_reports_what_fails() {
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
        assert_eq!(checkers.count(), 4, "no more than count_max");
    }
}
