//! What `verify` reports: damage, one line each, and progress.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use grainstore_format::{Remedy, escape_bytes, shown_key};

use super::VerifyOptions;
use super::contents::FieldCheck;
use crate::StoreError;
use crate::error::index_remedy;
use crate::segment::modified_since;

/// One thing that is wrong with a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// The file: of a segment or an index as the manifest names it, or the manifest.
    pub segment: Option<String>,
    /// The sample.
    pub ordinal: Option<u64>,
    /// The sample's key, if it has one that can be read.
    pub key: Option<Vec<u8>>,
    /// The position in the file, in bytes.
    pub offset: Option<u64>,
    /// Found and expected.
    pub what: String,
}

impl Damage {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        self.segment.as_deref().and_then(index_remedy)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(segment) = &self.segment {
            write!(f, "{}: ", escape_bytes(segment.as_bytes()))?;
        }
        if let Some(ordinal) = self.ordinal {
            write!(f, "sample {ordinal}{}: ", shown_key(self.key.as_deref()))?;
        }
        if let Some(offset) = self.offset {
            write!(f, "at {offset}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// The most damages that a [`DamageList`] holds.
const LISTED_COUNT_MAX: usize = 100_000;
/// The most bytes of keys and texts that it holds.
const LISTED_LEN_MAX: usize = 64 << 20;

/// The first 100,000 damages that were reported, for callers that list them after the check: a file of a few megabytes
/// can break a rule for every sample of billions.
#[derive(Debug, Default)]
pub struct DamageList {
    damages: Vec<Damage>,
    len: usize,
}

impl DamageList {
    /// Adds a damage, unless there are too many.
    pub fn add(&mut self, damage: Damage) {
        let texts =
            [Some(damage.what.len()), damage.segment.as_ref().map(String::len), damage.key.as_ref().map(Vec::len)];
        self.len += texts.into_iter().flatten().sum::<usize>();
        if self.damages.len() < LISTED_COUNT_MAX && self.len <= LISTED_LEN_MAX {
            self.damages.push(damage);
        }
    }

    /// The damages by segment, ordinal and offset.
    pub fn into_sorted(mut self) -> Vec<Damage> {
        self.damages.sort_by(|a, b| {
            (&a.segment, a.ordinal, a.offset, &a.what).cmp(&(&b.segment, b.ordinal, b.offset, &b.what))
        });
        self.damages
    }
}

/// Collects damage and progress from all threads.
pub(super) struct Reporter<'a> {
    on_damage: &'a (dyn Fn(Damage) + Sync),
    on_progress: &'a (dyn Fn(u64) + Sync),
    options: &'a VerifyOptions,
    damaged: AtomicU64,
    checked_bytes: AtomicU64,
    checked_fields: AtomicU64,
    /// Held by threads that use much memory, so that they are few whatever the number of threads.
    large_permits: [Mutex<()>; 4],
    /// Why the check cannot continue.
    failure: OnceLock<StoreError>,
    /// Files that were modified, but have the content that the manifest records.
    modified: Mutex<BTreeSet<String>>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        on_damage: &'a (dyn Fn(Damage) + Sync),
        on_progress: &'a (dyn Fn(u64) + Sync),
        options: &'a VerifyOptions,
    ) -> Self {
        Self {
            on_damage,
            on_progress,
            options,
            damaged: AtomicU64::new(0),
            checked_bytes: AtomicU64::new(0),
            checked_fields: AtomicU64::new(0),
            large_permits: Default::default(),
            failure: OnceLock::new(),
            modified: Mutex::default(),
        }
    }

    /// Whether the caller has stopped the check, or it cannot continue.
    pub(super) fn is_stopped(&self) -> bool {
        self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) || self.failure.get().is_some()
    }

    /// Ends the check: what is left cannot be checked. The first error is returned to the caller.
    pub(super) fn fail(&self, error: StoreError) {
        // Another thread may have failed meanwhile.
        let _ = self.failure.set(error);
    }

    /// Why the check could not continue.
    pub(super) fn into_failure(self) -> Option<StoreError> {
        self.failure.into_inner()
    }

    pub(super) fn damage(&self, damage: Damage) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        (self.on_damage)(damage);
    }

    /// Adds to the number of checked bytes.
    pub(super) fn checked(&self, bytes: u64) {
        self.checked_bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.on_progress)(bytes);
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    pub(super) fn checked_bytes(&self) -> u64 {
        self.checked_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn checked_fields(&self) -> u64 {
        self.checked_fields.load(Ordering::Relaxed)
    }

    /// Notices that are not damage, after everything was checked.
    pub(super) fn notices(&self) -> Vec<String> {
        let files = self.modified.lock().unwrap_or_else(PoisonError::into_inner);
        let first = files.first().map(|first| escape_bytes(first.as_bytes()));
        match first {
            Some(first) => vec![modified_since(&first, files.len() - 1)],
            None => Vec::new(),
        }
    }

    /// A reporter for one file.
    pub(super) fn file<'r>(&'r self, name: &'r str, first_ordinal: u64) -> FileReport<'r> {
        FileReport { reporter: self, name, first_ordinal }
    }
}

/// Reports damage of one file.
#[derive(Clone, Copy)]
pub(super) struct FileReport<'a> {
    reporter: &'a Reporter<'a>,
    name: &'a str,
    /// The dataset's ordinal of the file's first sample.
    first_ordinal: u64,
}

impl FileReport<'_> {
    /// Reports damage of the whole file, or of a structure in it.
    pub(super) fn damage(&self, what: impl Into<String>) {
        self.report(Damage { what: what.into(), ..Damage::default() });
    }

    /// Reports damage at `offset` of the file.
    pub(super) fn at(&self, offset: u64, what: impl Into<String>) {
        self.report(Damage { offset: Some(offset), what: what.into(), ..Damage::default() });
    }

    /// Reports damage of a sample; `ordinal` counts from the first sample of the file.
    pub(super) fn sample(&self, ordinal: u64, key: Option<Vec<u8>>, offset: Option<u64>, what: impl Into<String>) {
        let ordinal = Some(self.first_ordinal.saturating_add(ordinal));
        self.report(Damage { ordinal, key, offset, what: what.into(), segment: None });
    }

    /// Reports a file, or a structure at `offset` of it, that cannot be read. If memory is lacking, the check ends with
    /// that error instead: it says nothing about the file.
    pub(super) fn unreadable(&self, offset: Option<u64>, error: StoreError) {
        if error.is_lack_of_memory() {
            return self.reporter.fail(error);
        }
        self.report(Damage { offset, what: error.without_path(), ..Damage::default() });
    }

    /// Returns the value, or `None` if it cannot be read. The error is reported elsewhere: every page of the file is
    /// checked separately.
    pub(super) fn readable<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(error @ StoreError::Bug { .. }) => self.damage(error.to_string()),
            Err(error) if error.is_lack_of_memory() => self.reporter.fail(error),
            Err(_) => {}
        }
        None
    }

    /// Ends the check: the file cannot be read now, which says nothing about it.
    pub(super) fn io_failure(&self, error: io::Error) {
        self.reporter.fail(StoreError::io(Path::new(self.name), error));
    }

    /// Waits until this thread may use much memory.
    pub(super) fn large_permit(&self) -> MutexGuard<'_, ()> {
        let [first, second, third, fourth] = &self.reporter.large_permits;
        let permit = match rayon::current_thread_index().unwrap_or(0) % 4 {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        };
        permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn checked(&self, bytes: u64) {
        self.reporter.checked(bytes);
    }

    /// Counts a sample whose field was held against the caller's rule.
    pub(super) fn checked_field(&self) {
        self.reporter.checked_fields.fetch_add(1, Ordering::Relaxed);
    }

    /// The caller's rule for what a field holds.
    pub(super) fn field_check(&self) -> Option<&FieldCheck> {
        self.reporter.options.field_check.as_ref()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.reporter.is_stopped()
    }

    /// Notes that the file was modified, but has the content that the manifest records.
    pub(super) fn modified(&self) {
        let mut files = self.reporter.modified.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(self.name.to_owned());
    }

    fn report(&self, damage: Damage) {
        self.reporter.damage(Damage { segment: Some(self.name.to_owned()), ..damage });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_printed_on_one_line_for_any_names() {
        let damage = Damage {
            segment: Some("00003.seg".into()),
            ordinal: Some(12),
            key: Some(b"a\nb".to_vec()),
            offset: Some(4096),
            what: "CRC-32 is wrong".into(),
        };
        assert_eq!(damage.to_string(), "00003.seg: sample 12 (key \"a\\nb\"): at 4096: CRC-32 is wrong");
    }
}
