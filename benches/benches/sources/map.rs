//! The baseline for LMDB with its own library: a cursor over all values, which are written to one file.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, EnvFlags, EnvOpenOptions};

/// Writes the values of the environment in `path` to `out`, in the order of their keys.
pub(crate) fn walk(path: &Path, out: &Path) {
    let mut options = EnvOpenOptions::new();
    // SAFETY: read-only, and without a lock file no other process is involved.
    let options = unsafe { options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK) };
    // SAFETY: the bench made this environment itself, and no other process writes to it while it is mapped.
    let environment = unsafe { options.open(path) }.unwrap();
    let opened = environment.open_databases_and_commit(environment.read_txn().unwrap(), |opener, transaction| {
        opener.open_database(transaction, None).map(CommitOrAbort::<_, heed::Error>::Commit)
    });
    let database: Option<Database<Bytes, Bytes>> = opened.unwrap().unwrap_commit();
    let (database, transaction) = (database.unwrap(), environment.read_txn().unwrap());
    let mut out = BufWriter::with_capacity(1 << 20, File::create(out).unwrap());
    for pair in database.iter(&transaction).unwrap() {
        out.write_all(pair.unwrap().1).unwrap();
    }
    out.flush().unwrap();
}
