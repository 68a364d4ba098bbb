//! The samples with the content of another one: the same bytes in every field.
//!
//! A sample is held in 48 bytes: the length of its payload, the XXH3-128 of the lengths of its fields and of their
//! bytes, its id, and a hash of its attributes. Equal hashes and lengths are taken for equal contents; the bytes
//! themselves are not compared. XXH3 is fast, not secret: whoever makes the data can make two contents with one hash.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use grainstore_format::AttributeValue;
use grainstore_writer::{Sample, StreamedSample};
use xxhash_rust::xxh3::Xxh3;
use xxhash_rust::xxh64::Xxh64;

use super::Drops;
use super::pass::{Pass, Scanned};
use super::rounds::{HELD_LEN, Hashed, Round, in_rounds};
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

/// What is held of a sample. In a sorted list, samples with the same content are neighbours, in source order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HashedContent {
    content: Content,
    id: Id,
    attributes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    len: u64,
    /// The lower half of the hash first.
    hash: [u64; 2],
}

const _: () = assert!(size_of::<HashedContent>() == 48);

impl Hashed for HashedContent {
    fn hash(&self) -> u64 {
        self.content.hash[0]
    }
}

/// The samples to skip, which are not in `drops`: of several with one content all but the first.
pub(super) fn dropped(pass: &Pass<'_>, drops: &Drops) -> Result<ContentDrops, ConvertError> {
    let mut found = ContentDrops::default();
    let read = |round: &mut Round<HashedContent>| {
        pass.for_each(&mut |id, sample| {
            if !drops.contains(id)
                && let Some((content, attributes)) = hashed(sample, pass.events)?
            {
                round.take(HashedContent { content, id, attributes });
            }
            Ok(())
        })
    };
    in_rounds(HELD_LEN / size_of::<HashedContent>(), read, |mut held| {
        held.sort_unstable();
        for equal in held.chunk_by(|one, next| one.content == next.content) {
            let [kept, others @ ..] = equal else { continue };
            found.skip(others, kept.attributes);
        }
        Ok(())
    })?;
    Ok(found)
}

impl ContentDrops {
    /// Skips samples with the content of one with these attributes.
    fn skip(&mut self, samples: &[HashedContent], attributes: u64) {
        self.ids.extend(samples.iter().map(|sample| sample.id));
        self.count.samples += samples.len() as u64;
        self.count.with_other_attributes +=
            samples.iter().filter(|sample| sample.attributes != attributes).count() as u64;
    }
}

/// The content of a sample and a hash of its attributes; `None` where it cannot be read to its end.
fn hashed(sample: Scanned<'_>, events: &dyn Events) -> Result<Option<(Content, u64)>, ConvertError> {
    match sample {
        Scanned::Whole(Sample { attributes, payload, fields, .. }) => {
            let mut hash = begin(fields, payload.len() as u64);
            hash.update(payload);
            Ok(Some((content(&hash, payload.len() as u64), hash_of(attributes))))
        }
        Scanned::Long(StreamedSample { attributes, fields, len, .. }, payload) => {
            let mut hash = begin(fields, *len);
            let is_whole = read_into(&mut hash, payload, *len, events)?;
            Ok(is_whole.then(|| (content(&hash, *len), hash_of(attributes))))
        }
    }
}

/// The hash of the fields' lengths: two samples whose bytes are divided otherwise have other contents.
fn begin(fields: &[Option<Range<u64>>], len: u64) -> Xxh3 {
    let mut hash = Xxh3::new();
    let whole = std::iter::once(0..len).map(Some);
    let mut add = |field: Option<Range<u64>>| {
        // A missing field is not an empty one.
        let len = field.map(|field| field.end - field.start);
        hash.update(&[u8::from(len.is_some())]);
        hash.update(&len.unwrap_or(0).to_le_bytes());
    };
    if fields.is_empty() {
        whole.for_each(&mut add);
    } else {
        fields.iter().cloned().for_each(&mut add);
    }
    hash
}

/// Hashes `len` bytes. Whether there were as many: otherwise packing reports what is wrong.
fn read_into(hash: &mut Xxh3, payload: &mut dyn Read, len: u64, events: &dyn Events) -> Result<bool, ConvertError> {
    let mut piece = vec![0; PIECE_LEN];
    let mut read_len = 0;
    loop {
        check(events)?;
        match payload.read(&mut piece) {
            Ok(0) => return Ok(read_len == len),
            Ok(count) => {
                hash.update(&piece[..count]);
                read_len += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
    }
}

fn content(hash: &Xxh3, len: u64) -> Content {
    let hash = hash.digest128();
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the hash")]
    let hash = [hash as u64, (hash >> 64) as u64];
    Content { len, hash }
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
