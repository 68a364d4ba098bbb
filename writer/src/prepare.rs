//! The work on a sample that does not depend on its offset: compression and checksum. Runs in parallel.

use std::borrow::Cow;

use grainstore_format::MAX_LZ4_RAW_LEN;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::options::{Compression, Sample};

/// A sample with its stored bytes.
pub(crate) struct Prepared {
    /// Its payload is the stored bytes.
    pub(crate) sample: Sample,
    pub(crate) raw_len: u64,
    pub(crate) crc: u32,
    pub(crate) lz4: bool,
}

/// Prepares samples on the threads of the current pool; the order does not change.
pub(crate) fn prepare(samples: Vec<Sample>, compression: Compression) -> Vec<Prepared> {
    samples.into_par_iter().map(|sample| prepare_one(sample, compression)).collect()
}

fn prepare_one(mut sample: Sample, compression: Compression) -> Prepared {
    let raw_len = sample.payload.len() as u64;
    let stored = stored_bytes(&sample.payload, compression);
    let lz4 = matches!(stored, Cow::Owned(_));
    let crc = crc32fast::hash(&stored);
    if let Cow::Owned(stored) = stored {
        sample.payload = stored;
    }
    Prepared { sample, raw_len, crc, lz4 }
}

/// The bytes to store: owned and compressed if LZ4 saves at least a sixteenth. spec.md: SMP-1.
fn stored_bytes(payload: &[u8], compression: Compression) -> Cow<'_, [u8]> {
    if compression == Compression::None || payload.len() as u64 > MAX_LZ4_RAW_LEN {
        return Cow::Borrowed(payload);
    }
    let most = payload.len() - payload.len().div_ceil(16);
    let block = lz4_flex::block::compress(payload);
    if block.len() <= most { Cow::Owned(block) } else { Cow::Borrowed(payload) }
}
