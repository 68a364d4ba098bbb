//! The samples with the content of another one: the same bytes in every field.
//!
//! A sample is held in 48 bytes: the length and the CRC-32 of its payload, the XXH3-128 of the lengths of its fields and
//! of their bytes, its id, and a hash of its attributes. If all but id and attributes are equal, so are the contents; the
//! bytes themselves are not compared. XXH3 is fast, not secret: whoever makes the data can make two contents with one
//! hash.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;

use grainstore_format::AttributeValue;
use grainstore_store::Dataset;
use grainstore_writer::{Sample, StreamedSample};
use xxhash_rust::xxh3::Xxh3;
use xxhash_rust::xxh64::Xxh64;

use super::pass::{Pass, Scanned};
use super::rounds::{HELD_LEN, Hashed, Round, in_rounds};
use super::{Drops, stored};
use crate::feed::{Id, check};
use crate::{ConvertError, Events, SameContent};

/// Bytes of a long sample that are hashed at once.
const PIECE_LEN: usize = 1 << 20;

/// Which samples are skipped for their content.
#[derive(Default)]
pub(super) struct ContentDrops {
    pub(super) ids: Vec<Id>,
    pub(super) count: SameContent,
}

/// What is held of a sample.
#[derive(Clone, Copy)]
pub(super) struct HashedContent {
    len: u64,
    crc: u32,
    /// A hash of them.
    pub(super) attributes: u32,
    /// The lower half of the hash first.
    hash: [u64; 2],
    id: Id,
}

/// The same for samples with the same content. Those of one length are neighbours in its order, and among these those
/// with one checksum.
pub(super) type Content = (u64, u32, [u64; 2]);

const _: () = assert!(size_of::<HashedContent>() == 48);

impl Hashed for HashedContent {
    fn hash(&self) -> u64 {
        self.hash[0]
    }
}

impl HashedContent {
    pub(super) fn content(&self) -> Content {
        (self.len, self.crc, self.hash)
    }

    /// Length and checksum, which an index has too.
    pub(super) fn len_and_crc(&self) -> (u64, u32) {
        (self.len, self.crc)
    }
}

/// The samples to skip, which are not in `drops`: those with the content of a sample of `present`, and of several with
/// one content all but the first.
pub(super) fn dropped(pass: &Pass<'_>, drops: &Drops, present: Option<&Dataset>) -> Result<ContentDrops, ConvertError> {
    let mut found = ContentDrops::default();
    let read = |round: &mut Round<HashedContent>| {
        pass.for_each(&mut |id, sample| {
            if !drops.contains(id)
                && let Some(hashed) = hashed(id, sample, pass.events)?
            {
                round.take(hashed);
            }
            Ok(())
        })
    };
    in_rounds(HELD_LEN / size_of::<HashedContent>(), read, |mut held| {
        held.sort_unstable_by_key(|held| (held.content(), held.id));
        let stored = match present {
            Some(present) => stored::find(present, &held, pass)?,
            None => HashMap::new(),
        };
        for equal in held.chunk_by(|one, next| one.content() == next.content()) {
            let [first, others @ ..] = equal else { continue };
            match stored.get(&first.content()) {
                Some(&attributes) => found.skip(equal, attributes),
                None => found.skip(others, first.attributes),
            }
        }
        Ok(())
    })?;
    Ok(found)
}

impl ContentDrops {
    /// Skips samples with the content of one with these attributes.
    fn skip(&mut self, samples: &[HashedContent], attributes: u32) {
        self.ids.extend(samples.iter().map(|sample| sample.id));
        self.count.samples += samples.len() as u64;
        self.count.with_other_attributes +=
            samples.iter().filter(|sample| sample.attributes != attributes).count() as u64;
    }
}

/// What is held of a sample; `None` where it cannot be read to its end.
pub(super) fn hashed(id: Id, sample: Scanned<'_>, events: &dyn Events) -> Result<Option<HashedContent>, ConvertError> {
    match sample {
        Scanned::Whole(Sample { attributes, payload, fields, .. }) => {
            let mut hashes = Hashes::begin(fields, payload.len() as u64);
            hashes.update(payload);
            Ok(Some(hashes.finish(id, attributes)))
        }
        Scanned::Long(StreamedSample { attributes, fields, len, .. }, payload) => {
            let mut hashes = Hashes::begin(fields, *len);
            let is_whole = hashes.read(payload, *len, events)?;
            Ok(is_whole.then(|| hashes.finish(id, attributes)))
        }
    }
}

/// The hashes of a content, of the bytes so far.
struct Hashes {
    content: Xxh3,
    payload: crc32fast::Hasher,
    len: u64,
}

impl Hashes {
    /// Begins with the fields' lengths: two samples whose bytes are divided otherwise have other contents.
    fn begin(fields: &[Option<Range<u64>>], len: u64) -> Self {
        let mut content = Xxh3::new();
        let mut add = |len: Option<u64>| {
            // A missing field is not an empty one.
            content.update(&[u8::from(len.is_some())]);
            content.update(&len.unwrap_or(0).to_le_bytes());
        };
        if fields.is_empty() {
            add(Some(len));
        }
        for field in fields {
            add(field.as_ref().map(|field| field.end - field.start));
        }
        Self { content, payload: crc32fast::Hasher::new(), len: 0 }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.content.update(bytes);
        self.payload.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// Reads `len` bytes. Whether there were as many: otherwise packing reports what is wrong.
    fn read(&mut self, payload: &mut dyn Read, len: u64, events: &dyn Events) -> Result<bool, ConvertError> {
        let mut piece = vec![0; PIECE_LEN];
        loop {
            check(events)?;
            match payload.read(&mut piece) {
                Ok(0) => return Ok(self.len == len),
                Ok(count) => self.update(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(false),
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a hash, and one of another")]
    fn finish(self, id: Id, attributes: &[Option<AttributeValue>]) -> HashedContent {
        let hash = self.content.digest128();
        HashedContent {
            len: self.len,
            crc: self.payload.finalize(),
            attributes: hash_of(attributes) as u32,
            hash: [hash as u64, (hash >> 64) as u64],
            id,
        }
    }
}

/// A hash of a sample's attributes, to count samples that differ in nothing else.
fn hash_of(attributes: &[Option<AttributeValue>]) -> u64 {
    let mut hash = Xxh64::new(0);
    for attribute in attributes {
        match attribute {
            None => hash.update(&[0]),
            Some(value) => {
                hash.update(&[1]);
                with_bytes(value, |bytes| {
                    hash.update(&(bytes.len() as u64).to_le_bytes());
                    hash.update(bytes);
                });
            }
        }
    }
    hash.digest()
}

/// Calls `take` with the bytes of a value. Values of one attribute have one type, so the type is not among them.
fn with_bytes(value: &AttributeValue, mut take: impl FnMut(&[u8])) {
    match value {
        AttributeValue::Bool(value) => take(&[u8::from(*value)]),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => take(&value.to_le_bytes()),
        AttributeValue::Uint(value) => take(&value.to_le_bytes()),
        AttributeValue::Float16(value) => take(&value.to_le_bytes()),
        AttributeValue::Bfloat16(value) => take(&value.to_le_bytes()),
        AttributeValue::Float32(value) => take(&value.to_le_bytes()),
        AttributeValue::Float64(value) => take(&value.to_le_bytes()),
        AttributeValue::Category(text) => take(text.as_bytes()),
        AttributeValue::Opaque(bytes) => take(bytes),
    }
}
