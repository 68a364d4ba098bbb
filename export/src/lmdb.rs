//! An LMDB environment: the key and the payload, or, with attributes or several fields, the key and a
//! `tf.train.Example` of them. Without keys, the ordinal in nine digits or more is the key.
//!
//! LMDB stores entries in the order of keys. The selected keys are sorted in memory, each with 24 bytes more, and
//! samples are read in that order: every page is written once, and full. LMDB holds a value in memory until it is
//! committed.

use std::io;
use std::ops::Range;
use std::path::Path;

use grainstore_format::{Schema, to_usize};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, MdbError, PutFlags, RwTxn, WithoutTls};
use rustix::io::Errno;

use crate::example::{self, Example};
use crate::fetch::ExportedSample;
use crate::index_pass::{self, Indexed};
use crate::job::ExportJob;
use crate::names::{digit_count, padded};
use crate::whole_folder::WholeFolder;
use crate::{ExportError, map, pipeline};

/// The longest key that LMDB accepts, as it is usually built.
const KEY_LEN_MAX: usize = 511;
/// The longest value.
const VALUE_LEN_MAX: u64 = (1 << 32) - 1;
/// Space that a sample may need beside its payload: one page for the end of the payload, and one for its entry. Pages
/// are 64 KiB at most.
const SAMPLE_ROOM: u64 = 2 << 16;
/// Space that the tree needs beside that, while it is written.
const TREE_ROOM: u64 = 64 << 20;
/// The map is address space, not memory; there are 47 bits of it.
const MAP_LEN_MAX: u64 = 1 << 46;
/// The most bytes and samples of a transaction.
const COMMIT_LEN: u64 = 64 << 20;
const COMMIT_COUNT: u64 = 16384;
/// A disk with less free space than one page of the largest size is full.
const FULL_BELOW: u64 = 1 << 16;

/// The plan of an LMDB export: the sorted keys and the size of the map.
pub(crate) struct Lmdb {
    schema: Schema,
    is_wrapped: bool,
    digit_count: usize,
    keys: SortedKeys,
    map_len: u64,
}

/// Keys and their ordinals.
#[derive(Default)]
struct SortedKeys {
    bytes: Vec<u8>,
    /// The byte range of each key in `bytes`, and the ordinal of its sample.
    entries: Vec<(Range<usize>, u64)>,
}

impl Lmdb {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let schema = job.schema().clone();
        let is_wrapped = !schema.attributes().is_empty() || !job.is_whole_payload();
        let mut keys = SortedKeys::default();
        let mut map_len = TREE_ROOM;
        index_pass::each(job, |sample| {
            check(&schema, is_wrapped, &sample)?;
            map_len = map_len.saturating_add(sample.payload_len).saturating_add(SAMPLE_ROOM);
            keys.add(sample);
            Ok(())
        })?;
        keys.sort()?;
        Ok(Self { schema, is_wrapped, digit_count: digit_count(job), keys, map_len: map_len.min(MAP_LEN_MAX) })
    }

    fn key(&self, sample: &ExportedSample<'_>) -> Vec<u8> {
        sample.facts.key.clone().unwrap_or_else(|| padded(sample.facts.ordinal, self.digit_count))
    }

    fn put_all<'a>(
        &'a self,
        job: &'a ExportJob<'a>,
        (env, folder): (&Env<WithoutTls>, &Path),
        ordinals: Box<dyn Iterator<Item = u64> + Send + 'a>,
    ) -> Result<(), ExportError> {
        let mut writer = Writer::begin(self, env, folder)?;
        pipeline::pass(job, ordinals, |sample| writer.put(sample))?;
        writer.commit()
    }

    fn notes(&self, is_keyed: bool) -> Vec<String> {
        let order = "LMDB keeps samples in the order of their keys";
        let wrapped = "values are tf.train.Example messages of attributes and fields";
        let notes = [(is_keyed, order), (self.is_wrapped, wrapped)];
        notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note.to_owned()).collect()
    }
}

fn check(schema: &Schema, is_wrapped: bool, sample: &Indexed) -> Result<(), ExportError> {
    if let Some(key) = sample.key.as_ref().filter(|key| key.len() > KEY_LEN_MAX) {
        let why = format!("its key has {} bytes, LMDB holds {KEY_LEN_MAX} at most", key.len());
        return Err(ExportError::BadName { ordinal: sample.ordinal, key: key.clone(), why });
    }
    if is_wrapped { example::check(schema, sample) } else { sample.check_len(VALUE_LEN_MAX, "LMDB") }
}

impl WholeFolder for Lmdb {
    fn write(self, job: &ExportJob<'_>, folder: &Path) -> Result<Vec<String>, ExportError> {
        let env =
            map::open_new(folder, to_usize(self.map_len.next_multiple_of(1 << 20))).map_err(library_error(folder))?;
        let is_keyed = job.collection().is_keyed();
        let ordinals: Box<dyn Iterator<Item = u64> + Send> = if is_keyed {
            Box::new(self.keys.entries.iter().map(|(_, ordinal)| *ordinal))
        } else {
            job.selection.ordinals(0..job.selection.len())
        };
        self.put_all(job, (&env, folder), ordinals)?;
        job.events.on_finish();
        env.force_sync().map_err(library_error(folder))?;
        env.prepare_for_closing().wait();
        job.made_files(1);
        Ok(self.notes(is_keyed))
    }
}

/// Puts samples in ascending order of keys, one transaction after another.
struct Writer<'a> {
    format: &'a Lmdb,
    env: &'a Env<WithoutTls>,
    folder: &'a Path,
    database: Database<'a, Bytes, Bytes>,
    transaction: Option<RwTxn<'a>>,
    last_key: Option<Vec<u8>>,
    pending_len: u64,
    pending_count: u64,
}

impl<'a> Writer<'a> {
    fn begin(format: &'a Lmdb, env: &'a Env<WithoutTls>, folder: &'a Path) -> Result<Self, ExportError> {
        let database = unnamed_database(env).map_err(library_error(folder))?;
        Ok(Self { format, env, folder, database, transaction: None, last_key: None, pending_len: 0, pending_count: 0 })
    }

    fn put(&mut self, sample: &mut ExportedSample<'_>) -> Result<(), ExportError> {
        let key = self.format.key(sample);
        // `APPEND` promises LMDB that keys ascend, so this checks it.
        if self.last_key.as_ref().is_some_and(|last| *last >= key) {
            let why = "its key changed while the dataset was read".to_owned();
            return Err(ExportError::BadName { ordinal: sample.facts.ordinal, key, why });
        }
        self.put_as(&key, sample).map_err(library_error(self.folder))?;
        self.last_key = Some(key);
        self.pending_len += sample.facts.payload_len;
        self.pending_count += 1;
        if self.pending_len >= COMMIT_LEN || self.pending_count >= COMMIT_COUNT { self.commit() } else { Ok(()) }
    }

    fn put_as(&mut self, key: &[u8], sample: &mut ExportedSample<'_>) -> heed::Result<()> {
        let transaction = match &mut self.transaction {
            Some(transaction) => transaction,
            none => none.insert(self.env.write_txn()?),
        };
        let facts = sample.facts;
        let append = PutFlags::APPEND;
        let found = if self.format.is_wrapped {
            let example =
                Example::of(&self.format.schema, facts, &mut sample.payload, false).map_err(heed::Error::Io)?;
            let write = |value: &mut heed::ReservedSpace<'_>| example.write(&mut sample.payload, value);
            self.database.get_or_put_reserved_with_flags(transaction, append, key, to_usize(example.len()), write)?
        } else {
            let write = |value: &mut heed::ReservedSpace<'_>| sample.payload.copy(&(0..facts.payload_len), value);
            self.database.get_or_put_reserved_with_flags(
                transaction,
                append,
                key,
                to_usize(facts.payload_len),
                write,
            )?
        };
        if found.is_some() { Err(heed::Error::Mdb(MdbError::KeyExist)) } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), ExportError> {
        self.pending_len = 0;
        self.pending_count = 0;
        self.transaction.take().map_or(Ok(()), |transaction| transaction.commit().map_err(library_error(self.folder)))
    }
}

fn unnamed_database(env: &Env<WithoutTls>) -> heed::Result<Database<'_, Bytes, Bytes>> {
    let created = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| {
        opener.create_database(transaction, None).map(CommitOrAbort::<_, heed::Error>::Commit)
    })?;
    match created {
        CommitOrAbort::Commit(database) => Ok(database),
        CommitOrAbort::Abort(error) => Err(error),
    }
}

impl SortedKeys {
    fn add(&mut self, sample: Indexed) {
        let Some(key) = sample.key else { return };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&key);
        self.entries.push((start..self.bytes.len(), sample.ordinal));
    }

    /// Fails if two samples have the same key, which is possible in several datasets read as one.
    fn sort(&mut self) -> Result<(), ExportError> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|one, other| (self.key(one), one.1).cmp(&(self.key(other), other.1)));
        let twice = entries.windows(2).find_map(|pair| match pair {
            [one, other] if self.key(one) == self.key(other) => Some((one.1, other.1, self.key(other).to_vec())),
            _ => None,
        });
        self.entries = entries;
        twice.map_or(Ok(()), |(first, ordinal, key)| {
            let why = format!("sample {first} has the same key, LMDB holds one of them");
            Err(ExportError::BadName { ordinal, key, why })
        })
    }

    fn key(&self, (range, _): &(Range<usize>, u64)) -> &[u8] {
        &self.bytes[range.clone()]
    }
}

/// Makes an error of LMDB, unless the error came from the sample.
fn library_error(folder: &Path) -> impl FnOnce(heed::Error) -> ExportError {
    move |error| match error {
        heed::Error::Io(error) => ExportError::io("write it", folder)(unmasked(error, folder)),
        heed::Error::Mdb(MdbError::Other(code)) => {
            let error = io::Error::from_raw_os_error(code);
            ExportError::io("write it", folder)(unmasked(error, folder))
        }
        other => ExportError::Library { path: folder.to_path_buf(), source: other.to_string().into() },
    }
}

/// LMDB reports a short write, which happens when the disk becomes full, as an I/O error. Returns "disk full" for it.
fn unmasked(error: io::Error, folder: &Path) -> io::Error {
    let is_full =
        || rustix::fs::statvfs(folder).is_ok_and(|space| space.f_bavail.saturating_mul(space.f_frsize) < FULL_BELOW);
    match error.raw_os_error() {
        Some(code) if code == Errno::IO.raw_os_error() && is_full() => Errno::NOSPC.into(),
        _ => error,
    }
}
