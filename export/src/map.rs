//! Opens the LMDB environment that is written. LMDB maps its file: the only part of this crate that needs `unsafe`.

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};

/// Creates an environment in a folder that this export has just created. It syncs only on request.
pub(crate) fn open_new(folder: &Path, map_len: usize) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_len).max_readers(1);
    // SAFETY: without syncs a crash may leave a torn file, which nobody opens: it is renamed only after `force_sync`.
    // No other flag is set, so locking and the order of page writes are as LMDB requires.
    unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC) };
    // SAFETY: the file is created in a folder that this export has created with `mkdir` under a name of its own, so no
    // other process has it open or changes it, and this process opens it once: `Lmdb::write` is the only caller.
    unsafe { options.open(folder) }
}
