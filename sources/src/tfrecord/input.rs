//! The bytes of a file from an offset on: read ahead if the file is not compressed, else decompressed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grainstore_format::to_usize;

/// Bytes that are read in order.
pub(super) enum Input {
    /// An uncompressed file: skipped bytes are not read.
    Plain(Ahead),
    /// The content of a compressed file.
    Stream(Box<dyn Read + Send>),
}

/// A file read by position, with a read-ahead buffer.
///
/// The buffer doubles each time it is filled: a caller that reads one record does not pay for a large buffer, and a
/// caller that reads all of the file does not pay for small reads.
pub(super) struct Ahead {
    file: Arc<File>,
    /// Where the next byte is.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
    fill_len: usize,
    fill_len_max: usize,
    is_sparse: bool,
}

/// Bytes of the largest buffer. A new one of a mebibyte costs more than it saves: the system clears its pages.
const FILL_LEN_MAX: usize = 256 << 10;
/// Bytes that a caller reads at once who skips most of them.
const SPARSE_LEN: usize = 8 << 10;
/// The same where it skips a page at most: then the system reads every page anyway, and few calls copy all of them
/// faster than many calls copy a part.
const DENSE_LEN: usize = 64 << 10;
const PAGE_LEN: u64 = 4 << 10;

impl Ahead {
    /// The bytes from `at` to `end`, for a caller that wants all of them.
    pub(super) fn new(file: Arc<File>, at: u64, end: u64) -> Self {
        let buffer = Vec::new();
        Self { file, at, end, buffer, taken: 0, fill_len: 64 << 10, fill_len_max: FILL_LEN_MAX, is_sparse: false }
    }

    /// The bytes from `at` to `end`, for a caller that skips most of them.
    pub(super) fn sparse(file: Arc<File>, at: u64, end: u64) -> Self {
        Self { fill_len: SPARSE_LEN, fill_len_max: SPARSE_LEN, is_sparse: true, ..Self::new(file, at, end) }
    }

    fn skip(&mut self, len: u64) {
        if self.is_sparse {
            self.fill_len = if len <= PAGE_LEN { DENSE_LEN } else { SPARSE_LEN };
            self.fill_len_max = self.fill_len;
        }
        self.at = self.at.saturating_add(len);
        self.taken = self.taken.saturating_add(to_usize(len)).min(self.buffer.len());
    }

    fn left(&self, len: usize) -> usize {
        to_usize(self.end.saturating_sub(self.at)).min(len)
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.resize(self.left(self.fill_len), 0);
        self.taken = self.buffer.len();
        let found = self.file.read_at(&mut self.buffer, self.at)?;
        self.buffer.truncate(found);
        self.taken = 0;
        self.fill_len = (self.fill_len * 2).min(self.fill_len_max);
        Ok(())
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let is_empty = self.taken == self.buffer.len();
        let found = if is_empty && into.len() >= self.fill_len {
            let want = self.left(into.len());
            self.file.read_at(&mut into[..want], self.at)?
        } else {
            if is_empty {
                self.fill()?;
            }
            let found = (&self.buffer[self.taken..]).read(into)?;
            self.taken += found;
            found
        };
        self.at += found as u64;
        Ok(found)
    }
}

impl Input {
    /// Skips the next bytes; false where there are fewer.
    pub(super) fn skip(&mut self, len: u64) -> io::Result<bool> {
        match self {
            Self::Plain(file) => file.skip(len),
            Self::Stream(stream) => return Ok(io::copy(&mut stream.take(len), &mut io::sink())? == len),
        }
        Ok(true)
    }

    /// Fills `into` as far as there are bytes, and returns their number.
    pub(super) fn read_up_to(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut found = 0;
        while found < into.len() {
            match self.read(&mut into[found..]) {
                Ok(0) => break,
                Ok(more) => found += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Stream(stream) => stream.read(into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_and_skips_give_what_a_slice_gives(
            len in 0_usize..40_000,
            start in 0_usize..1000,
            sparse: bool,
            steps in prop::collection::vec((any::<bool>(), 0_usize..12_000), 0..40),
        ) {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 % 251).try_into().unwrap()).collect();
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("x"), &bytes).unwrap();
            let file = Arc::new(File::open(folder.path().join("x")).unwrap());
            let open = if sparse { Ahead::sparse } else { Ahead::new };
            let mut input = Input::Plain(open(file, start as u64, len as u64));
            let mut at = start;
            for (skip, step) in steps {
                if skip {
                    prop_assert!(input.skip(step as u64).unwrap());
                    at += step;
                    continue;
                }
                let mut found = vec![0; step];
                let count = input.read_up_to(&mut found).unwrap();
                let expected = bytes.get(at..).unwrap_or_default();
                prop_assert_eq!(&found[..count], &expected[..step.min(expected.len())]);
                at += count;
            }
        }
    }
}
