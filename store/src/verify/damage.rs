//! What `verify` tells: damage, one line each, and progress.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use grainstore_format::{escape_bytes, shown_key};

use crate::segment::modified_since;

/// One thing that is wrong with a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// The file, as the manifest names it.
    pub segment: Option<String>,
    /// The sample.
    pub ordinal: Option<u64>,
    /// The sample's key, where it has one that can be read.
    pub key: Option<Vec<u8>>,
    /// Where in the file, in bytes.
    pub offset: Option<u64>,
    /// Found and expected.
    pub what: String,
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

/// Takes damage and progress from all threads.
pub(super) struct Reporter<'a> {
    on_damage: &'a (dyn Fn(Damage) + Sync),
    on_progress: &'a (dyn Fn(u64) + Sync),
    stop: Option<&'a AtomicBool>,
    damaged: AtomicU64,
    checked_bytes: AtomicU64,
    /// Files that were modified and are still what the manifest says.
    modified: Mutex<BTreeSet<String>>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        on_damage: &'a (dyn Fn(Damage) + Sync),
        on_progress: &'a (dyn Fn(u64) + Sync),
        stop: Option<&'a AtomicBool>,
    ) -> Self {
        let (damaged, checked_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { on_damage, on_progress, stop, damaged, checked_bytes, modified: Mutex::default() }
    }

    /// Whether nobody wants to know any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    pub(super) fn damage(&self, damage: Damage) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        (self.on_damage)(damage);
    }

    /// So many more bytes were checked.
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

    /// What is no damage, once everything was checked.
    pub(super) fn notices(&self) -> Vec<String> {
        let files = self.modified.lock().unwrap_or_else(PoisonError::into_inner);
        let first = files.first().map(|first| escape_bytes(first.as_bytes()));
        first.map(|first| modified_since(&first, files.len() - 1)).into_iter().collect()
    }

    /// The same for one file.
    pub(super) fn file<'r>(&'r self, name: &'r str, first_ordinal: u64) -> FileReport<'r> {
        FileReport { reporter: self, name, first_ordinal }
    }
}

/// Tells what is wrong with one file.
#[derive(Clone, Copy)]
pub(super) struct FileReport<'a> {
    reporter: &'a Reporter<'a>,
    name: &'a str,
    /// The dataset's ordinal of the file's first sample.
    first_ordinal: u64,
}

impl FileReport<'_> {
    /// Something is wrong with the file as a whole, or a structure of it.
    pub(super) fn damage(&self, what: impl Into<String>) {
        self.tell(Damage { what: what.into(), ..Damage::default() });
    }

    /// Something is wrong at `offset` of the file.
    pub(super) fn at(&self, offset: u64, what: impl Into<String>) {
        self.tell(Damage { offset: Some(offset), what: what.into(), ..Damage::default() });
    }

    /// Something is wrong with a sample; `ordinal` counts from the file's first.
    pub(super) fn sample(&self, ordinal: u64, key: Option<Vec<u8>>, offset: Option<u64>, what: impl Into<String>) {
        let ordinal = Some(self.first_ordinal.saturating_add(ordinal));
        self.tell(Damage { ordinal, key, offset, what: what.into(), segment: None });
    }

    pub(super) fn checked(&self, bytes: u64) {
        self.reporter.checked(bytes);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.reporter.is_stopped()
    }

    /// The file was modified, and is still what the manifest says.
    pub(super) fn modified(&self) {
        let mut files = self.reporter.modified.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(self.name.to_owned());
    }

    fn tell(&self, damage: Damage) {
        self.reporter.damage(Damage { segment: Some(self.name.to_owned()), ..damage });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_one_line_whatever_the_names_hold() {
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
