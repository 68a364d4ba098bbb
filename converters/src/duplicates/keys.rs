//! The samples with the key of another one.
//!
//! A sample is held as a hash of its key and an id, 24 bytes. Equal hashes do not prove equal keys, so where there are
//! any, the source is read once more to compare the keys themselves.

use std::collections::{HashMap, HashSet};

use grainstore_store::Dataset;
use xxhash_rust::xxh64::xxh64;

use super::pass::{Pass, Scanned};
use super::rounds::{HELD_LEN, Hashed, Round, in_rounds};
use crate::feed::Id;
use crate::{ConvertError, OnDuplicate};

struct HashedKey {
    hash: u64,
    id: Id,
}

const _: () = assert!(size_of::<HashedKey>() == 24);

impl Hashed for HashedKey {
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// The samples to skip, in source order: those whose key `present` has, and of several samples with one key all but one.
pub(super) fn dropped(
    pass: &Pass<'_>,
    on_duplicate: OnDuplicate,
    present: Option<&Dataset>,
) -> Result<Vec<Id>, ConvertError> {
    let mut ids = Vec::new();
    if let Some(present) = present {
        pass.for_each(&mut |id, sample: Scanned<'_>| {
            ids.extend(present.find(sample.key())?.map(|_| id));
            Ok(())
        })?;
    }
    let alike = if pass.source().description().has_distinct_keys { HashSet::new() } else { alike(pass)? };
    if !alike.is_empty() {
        ids.extend(all_but_one(pass, &alike, on_duplicate)?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The samples whose hash another sample has too.
fn alike(pass: &Pass<'_>) -> Result<HashSet<Id>, ConvertError> {
    let mut alike = HashSet::new();
    let read = |round: &mut Round<HashedKey>| {
        pass.for_each(&mut |id, sample: Scanned<'_>| {
            round.take(HashedKey { hash: xxh64(sample.key(), 0), id });
            Ok(())
        })
    };
    in_rounds(HELD_LEN / size_of::<HashedKey>(), read, |mut held| {
        held.sort_unstable_by_key(|held| (held.hash, held.id));
        for equal in held.chunk_by(|one, next| one.hash == next.hash).filter(|equal| equal.len() > 1) {
            alike.extend(equal.iter().map(|held| held.id));
        }
        Ok(())
    })?;
    Ok(alike)
}

/// The samples of `alike` to skip: those with the key of another sample, except the one to keep.
fn all_but_one(pass: &Pass<'_>, alike: &HashSet<Id>, on_duplicate: OnDuplicate) -> Result<Vec<Id>, ConvertError> {
    let mut kept: HashMap<Vec<u8>, Id> = HashMap::new();
    let mut dropped = Vec::new();
    pass.for_each(&mut |id, sample: Scanned<'_>| {
        if alike.contains(&id) {
            match kept.get_mut(sample.key()) {
                None => drop(kept.insert(sample.key().to_vec(), id)),
                Some(last) if on_duplicate == OnDuplicate::Last => dropped.push(std::mem::replace(last, id)),
                Some(_) => dropped.push(id),
            }
        }
        Ok(())
    })?;
    Ok(dropped)
}
