//! How readers of an archive group its members into samples: by their names up to the first dot.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use grainstore_format::escape_bytes;
use grainstore_reader::ReadError;

use crate::ExportError;
use crate::index_pass::Indexed;
use crate::job::ExportJob;
use crate::names::{before_first_dot, last_part};

/// Finds samples whose members would be taken for those of another one, and keys that are not kept.
pub(crate) struct Grouping<'a> {
    job: &'a ExportJob<'a>,
    hasher: RandomState,
    field_count: usize,
    /// Whether a sample has several members, so that another one must not have its name.
    has_several: bool,
    /// For keys that have a dot: a hash of their part before it, and the ordinal.
    dotted: Vec<(u64, u64)>,
    before: Vec<u8>,
    merged: Found,
    hidden: Found,
    cut: Found,
    dots: Found,
}

/// How many samples there are of a kind, and the first.
#[derive(Default)]
struct Found(u64, Option<u64>);

impl<'a> Grouping<'a> {
    /// `member_count` is how many members a sample may have.
    pub(crate) fn new(job: &'a ExportJob<'a>, member_count: usize) -> Self {
        Self {
            job,
            hasher: RandomState::new(),
            field_count: job.schema().fields().len(),
            has_several: member_count > 1,
            dotted: Vec::new(),
            before: Vec::new(),
            merged: Found::default(),
            hidden: Found::default(),
            cut: Found::default(),
            dots: Found::default(),
        }
    }

    /// Looks at a sample, whose first member has the name `member`.
    pub(crate) fn look(&mut self, sample: &Indexed, member: &[u8]) -> Result<(), ExportError> {
        if last_part(member).first() == Some(&b'.') {
            self.hidden.count(sample.ordinal);
        }
        match &sample.key {
            Some(key) if self.has_several => return self.look_at_key(sample.ordinal, key),
            Some(_) => {}
            None => return Ok(()),
        }
        let name = before_first_dot(member);
        if name == self.before {
            self.merged.count(sample.ordinal);
        }
        self.before.clear();
        self.before.extend_from_slice(name);
        Ok(())
    }

    fn look_at_key(&mut self, ordinal: u64, key: &[u8]) -> Result<(), ExportError> {
        let name = before_first_dot(key);
        if name.len() == key.len() {
            return Ok(());
        }
        // One field's member is called by the whole key, of which nothing is lost then.
        if self.field_count > 1 {
            self.cut.count(ordinal);
        } else if key.iter().skip(name.len() + 1).any(|byte| *byte == b'.') {
            self.dots.count(ordinal);
        }
        if let Some(other) = self.job.collection().find(name)?.filter(|other| self.job.selection.contains(*other)) {
            return Err(met(ordinal, key, other, name));
        }
        if self.dotted.try_reserve(1).is_err() {
            let len = (self.dotted.len() as u64 + 1) * size_of::<(u64, u64)>() as u64;
            return Err(ExportError::Read(ReadError::NoMemory { len }));
        }
        self.dotted.push((self.hasher.hash_one(name), ordinal));
        Ok(())
    }

    /// Ends the pass. Fails if members of two samples would have the same name.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, ExportError> {
        self.dotted.sort_unstable();
        for same in self.dotted.chunk_by(|(one, _), (other, _)| one == other).filter(|same| same.len() > 1) {
            let mut keys = Vec::new();
            for (_, ordinal) in same {
                keys.extend(
                    self.job.collection().key(*ordinal)?.map(|key| (before_first_dot(&key).to_vec(), *ordinal, key)),
                );
            }
            keys.sort_unstable();
            let pairs = keys.iter().zip(keys.iter().skip(1));
            if let Some(((_, other, _), (name, ordinal, key))) = pairs.into_iter().find(|(one, two)| one.0 == two.0) {
                return Err(met(*ordinal, key, *other, name));
            }
        }
        let cut =
            "the key of a sample ends at the first dot of its last part, as in WebDataset: what follows is left out";
        let dots = "WebDataset takes all that follows the first dot of a name for that of the field, other dots too";
        let merged = "WebDataset ends a sample's name at the first dot of its last part, and takes samples that follow \
                      each other with the same name for one";
        let hidden = "WebDataset does not see members whose last part begins with a dot";
        Ok([(self.cut, cut), (self.dots, dots), (self.merged, merged), (self.hidden, hidden)]
            .into_iter()
            .filter_map(|(found, what)| found.note(what))
            .collect())
    }
}

/// The error of two samples whose members would have the same names.
fn met(ordinal: u64, key: &[u8], other: u64, name: &[u8]) -> ExportError {
    let why = format!(
        "names in an archive end at the first dot, so its files and those of sample {other} would both be \"{}\"",
        escape_bytes(name)
    );
    ExportError::BadName { ordinal, key: key.to_vec(), why }
}

impl Found {
    fn count(&mut self, ordinal: u64) {
        self.0 += 1;
        self.1.get_or_insert(ordinal);
    }

    fn note(&self, what: &str) -> Option<String> {
        self.1.map(|first| format!("{what}: {} in all, the first is sample {first}", self.0))
    }
}
