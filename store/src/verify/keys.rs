//! Checks that keys, groups, buckets and slots agree. spec.md: KEY-1 to KEY-7.
//!
//! Slots are in hash order, keys in ordinal order, and both may be larger than memory. So for every block of ordinals
//! the hashes of (key hash, ordinal) are added up on both sides: the sums are equal if both sides hold the same pairs.
//! Only blocks whose sums differ are compared pair by pair.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use grainstore_format::memory::push;
use grainstore_format::{KeyGeometry, KeyGroups, SLOT_LEN, SectionKind, hash48, mix, to_usize};
use rayon::prelude::*;

use super::report::FileReport;
use super::slices::{Fault, KeyCursor, PART_LEN, key_of, parallel_parts, parts};
use crate::StoreError;
use crate::index::Index;
use crate::index::numbers::numbers;

/// Buckets that one thread checks at a time: about as many slots as a part has samples.
const BUCKETS_AT_A_TIME: u64 = PART_LEN / 32;

/// Blocks that are compared pair by pair: each needs a pass over all slots.
const BLOCKS_COMPARED: usize = 16;

/// Checks the four sections of keys.
pub(super) fn check_keys(report: &FileReport<'_>, index: &Index) {
    if !index.frame.directory.is_keyed() {
        return;
    }
    let check = KeyCheck::new(report, index);
    check.ends();
    let keys_whole = parallel_parts(0..index.sample_count(), PART_LEN)
        .map(|ordinals| check.report_fault(check.keys(ordinals)))
        .reduce(|| true, |a, b| a & b);
    let slots_whole = parallel_parts(0..check.geometry.bucket_count(), BUCKETS_AT_A_TIME)
        .map(|buckets| {
            check.report_fault(check.buckets(buckets, &|ordinal, hash| check.add(&check.slot_sums, ordinal, hash)))
        })
        .reduce(|| true, |a, b| a & b);
    // Sums mean nothing if a side could not be read to its end.
    if keys_whole && slots_whole {
        check.compare_sums();
    }
}

struct KeyCheck<'a> {
    report: &'a FileReport<'a>,
    index: &'a Index,
    geometry: KeyGeometry,
    hash_seed: u64,
    key_sums: Vec<AtomicU64>,
    slot_sums: Vec<AtomicU64>,
}

impl<'a> KeyCheck<'a> {
    fn new(report: &'a FileReport<'a>, index: &'a Index) -> Self {
        let blocks = index.sample_count().div_ceil(PART_LEN);
        let sums = || (0..blocks).map(|_| AtomicU64::new(0)).collect();
        Self {
            report,
            index,
            geometry: KeyGeometry::new(index.sample_count()),
            hash_seed: index.frame.geometry().hash_seed,
            key_sums: sums(),
            slot_sums: sums(),
        }
    }

    /// Reports a broken rule. Returns whether there was no fault.
    fn report_fault(&self, result: Result<(), Fault>) -> bool {
        match result {
            Ok(()) => return true,
            Err(Fault::Stopped) => {}
            Err(Fault::Unreadable(error)) => drop(self.report.readable::<()>(Err(error))),
            Err(Fault::Wrong(what)) => self.report.damage(what),
        }
        false
    }

    fn add(&self, sums: &[AtomicU64], ordinal: u64, hash: u64) {
        if let Some(sum) = sums.get(to_usize(ordinal / PART_LEN)) {
            sum.fetch_add(mix(mix(hash) ^ ordinal), Ordering::Relaxed);
        }
    }

    /// Checks the first and last elements of BUCKETS and KEY_GROUPS. spec.md: KEY-5, KEY-7.
    fn ends(&self) {
        let keys_len = self.index.record(SectionKind::Keys, 0).map_or(0, |record| record.len);
        let samples = self.index.sample_count();
        let expected = [
            (SectionKind::Buckets, 0, 0),
            (SectionKind::Buckets, self.geometry.bucket_count(), samples),
            (SectionKind::KeyGroups, 0, 0),
            (SectionKind::KeyGroups, KeyGroups::count(samples) - 1, keys_len),
        ];
        for (kind, element, expected) in expected {
            match self.index.number(kind, 0, element) {
                Ok(found) if found != expected => {
                    self.report.damage(format!("element {element} of {} is {found}, not {expected}", kind.name()));
                }
                _ => {}
            }
        }
    }

    /// Checks the keys of a block of ordinals. spec.md: KEY-1, KEY-7.
    fn keys(&self, ordinals: Range<u64>) -> Result<(), Fault> {
        if self.report.is_stopped() {
            return Err(Fault::Stopped);
        }
        let mut keys = KeyCursor::new(self.index, ordinals)?;
        while let Some((ordinal, key)) = keys.next_key()? {
            self.add(&self.key_sums, ordinal, hash48(key, self.hash_seed));
        }
        Ok(())
    }

    /// Checks the slots of some buckets; `each` is called with ordinal and hash. spec.md: KEY-1, KEY-3 to KEY-5.
    fn buckets(&self, buckets: Range<u64>, each: &dyn Fn(u64, u64)) -> Result<(), Fault> {
        let width = self.index.record(SectionKind::Buckets, 0).map_or(4, |record| record.width);
        let range = buckets.start * u64::from(width)..(buckets.end + 1) * u64::from(width);
        let starts = self.index.read_uncached(SectionKind::Buckets, 0, range)?;
        let starts: Vec<u64> = numbers(&starts, width).collect();
        for (bucket, pair) in buckets.clone().zip(starts.windows(2)) {
            let [from, to] = pair else { continue };
            if from > to || *to > self.index.sample_count() {
                return Err(Fault::Wrong(format!("bucket {bucket} has the slots {from}..{to}")));
            }
        }
        let [first, ends @ ..] = starts.as_slice() else { return Ok(()) };
        let last = ends.last().copied().unwrap_or(*first);
        let mut walk = BucketWalk { check: self, bucket: buckets.start, ends, before: None, equal: Vec::new() };
        for slots in parts(*first..last, PART_LEN) {
            if self.report.is_stopped() {
                return Err(Fault::Stopped);
            }
            let range = slots.start * SLOT_LEN as u64..slots.end * SLOT_LEN as u64;
            let bytes = self.index.read_uncached(SectionKind::Slots, 0, range)?;
            for (number, slot) in slots.zip(bytes.as_chunks::<SLOT_LEN>().0) {
                let (ordinal, hash) = walk.take(number, KeyGeometry::decode_slot(slot))?;
                each(ordinal, hash);
            }
        }
        Ok(())
    }

    fn compare_sums(&self) {
        let differing: Vec<u64> = (0..)
            .zip(self.key_sums.iter().zip(&self.slot_sums))
            .filter(|(_, (keys, slots))| keys.load(Ordering::Relaxed) != slots.load(Ordering::Relaxed))
            .map(|(block, _)| block)
            .collect();
        for (number, block) in differing.into_iter().enumerate() {
            let ordinals = block * PART_LEN..((block + 1) * PART_LEN).min(self.index.sample_count());
            if number >= BLOCKS_COMPARED {
                let Range { start, end } = ordinals;
                self.report.damage(format!("keys and slots of samples {start}..{end} of this index disagree"));
                continue;
            }
            self.report_fault(self.compare_block(ordinals));
        }
    }

    /// Names the samples of a block whose slot and key disagree. spec.md: KEY-2 to KEY-4.
    fn compare_block(&self, ordinals: Range<u64>) -> Result<(), Fault> {
        // By ordinal: the first hash, and the number of slots.
        let found: Mutex<HashMap<u64, (u64, u64)>> = Mutex::default();
        self.buckets(0..self.geometry.bucket_count(), &|ordinal, hash| {
            if ordinals.contains(&ordinal) {
                found.lock().unwrap_or_else(PoisonError::into_inner).entry(ordinal).or_insert((hash, 0)).1 += 1;
            }
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut keys = KeyCursor::new(self.index, ordinals)?;
        while let Some((ordinal, key)) = keys.next_key()? {
            let what = match found.get(&ordinal) {
                Some((hash, 1)) if *hash == hash48(key, self.hash_seed) => continue,
                Some((_, 1)) => "its slot has another hash than its key".to_owned(),
                Some((_, slot_count)) => format!("it is in {slot_count} slots"),
                None => "it is in no slot".to_owned(),
            };
            self.report.sample(ordinal, Some(key.to_vec()), None, what);
        }
        Ok(())
    }
}

/// Checks the slots of consecutive buckets, in order.
struct BucketWalk<'a> {
    check: &'a KeyCheck<'a>,
    bucket: u64,
    /// Where this and the following buckets end.
    ends: &'a [u64],
    before: Option<u64>,
    /// Earlier samples of the bucket with the hash of the previous slot.
    equal: Vec<u64>,
}

impl BucketWalk<'_> {
    /// Checks slot `number`. Returns its ordinal and hash.
    fn take(&mut self, number: u64, slot: u64) -> Result<(u64, u64), Fault> {
        while let Some((&end, later)) = self.ends.split_first()
            && number >= end
        {
            self.ends = later;
            self.bucket += 1;
            self.before = None;
        }
        let geometry = self.check.geometry;
        let bucket = self.bucket;
        let ordinal = geometry.ordinal(slot);
        if ordinal >= self.check.index.sample_count() {
            return Err(Fault::Wrong(format!("slot {number} names sample {ordinal}, which does not exist")));
        }
        if self.before >= Some(slot) {
            return Err(Fault::Wrong(format!("slot {number} does not ascend in bucket {bucket}")));
        }
        let hash = geometry.hash48(bucket, slot);
        if self.before.is_none_or(|before| geometry.hash48(bucket, before) != hash) {
            self.equal.clear();
        }
        self.check_unequal(ordinal);
        let lack = |error| StoreError::no_memory(self.check.index.path(), error);
        push(&mut self.equal, ordinal).map_err(lack)?;
        self.before = Some(slot);
        Ok((ordinal, hash))
    }

    /// Checks that samples with the same hash have different keys. spec.md: KEY-1.
    fn check_unequal(&self, ordinal: u64) {
        let index = self.check.index;
        let report = self.check.report;
        for &other in &self.equal {
            if let (Some(a), Some(b)) = (key_of(index, other), key_of(index, ordinal))
                && a == b
            {
                report.sample(ordinal, Some(b), None, format!("its key is that of sample {other} of this index"));
            }
        }
    }
}
