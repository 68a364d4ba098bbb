//! The bytes after the last small read, so that small values that follow each other are read together.
//!
//! A window is filled by one read of the file, and [`super::file`] checks after each read that no transaction was added.
//! So everything in a window is of the transaction that is read, also if another process writes to the file later.

use grainstore_format::to_usize;

/// Longer reads do not use a window: a system call for each costs little.
const SMALL_LEN: usize = 32 << 10;
/// Bytes of the first read at a new place; doubled each time that reading continues there.
const STEP_LEN: usize = 4 << 10;
const STEP_LEN_MAX: usize = 128 << 10;
/// Gaps up to this many bytes are read, not jumped over: a leaf page between values.
const GAP_LEN: u64 = 16 << 10;

/// Bytes of the file that were read and are of the transaction that is read.
#[derive(Debug, Default)]
pub(super) struct Window {
    offset: u64,
    bytes: Vec<u8>,
    step_len: usize,
}

impl Window {
    /// Copies the bytes at `offset`, if all are here.
    pub(super) fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let from = offset.checked_sub(self.offset).map_or(usize::MAX, to_usize);
        let there = self.bytes.get(from..).and_then(|there| there.get(..into.len()));
        if let Some(there) = there {
            into.copy_from_slice(there);
        }
        there.is_some()
    }

    /// Empties the window for bytes from `offset` on, of which `len` are wanted and the file has `left`. `None` where
    /// they are read without it.
    pub(super) fn begin(&mut self, offset: u64, len: usize, left: u64) -> Option<&mut Vec<u8>> {
        if len > SMALL_LEN || left < len as u64 {
            return None;
        }
        let end = self.offset + self.bytes.len() as u64;
        let continues = (self.offset..=end + GAP_LEN).contains(&offset) && self.step_len > 0;
        self.step_len = if continues { (self.step_len * 2).min(STEP_LEN_MAX) } else { STEP_LEN };
        self.offset = offset;
        self.bytes.resize(to_usize(left).min(self.step_len.max(len)), 0);
        Some(&mut self.bytes)
    }

    /// Forgets the bytes: they could not be read, or are of another transaction.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as the data file does; returns whether the file was read.
    fn read(window: &mut Window, file: &[u8], offset: usize, len: usize) -> (Vec<u8>, bool) {
        let mut bytes = vec![0; len];
        if window.copy(offset as u64, &mut bytes) {
            return (bytes, false);
        }
        let left = (file.len() - offset) as u64;
        match window.begin(offset as u64, len, left) {
            Some(ahead) => {
                let len = ahead.len();
                ahead.copy_from_slice(&file[offset..][..len]);
                assert!(window.copy(offset as u64, &mut bytes));
            }
            None => bytes.copy_from_slice(&file[offset..][..len]),
        }
        (bytes, true)
    }

    #[test]
    fn reads_anywhere_give_the_bytes_of_the_file() {
        let file: Vec<u8> = (0..200_000_usize).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect();
        let mut draws = grainstore_format::SplitMix64::new(5);
        let mut window = Window::default();
        let mut at = 0;
        for step in 0..3000 {
            let len = to_usize(draws.below(40_000));
            // Mostly onward, sometimes anywhere.
            at = if step % 7 == 0 { to_usize(draws.below(150_000)) } else { at + to_usize(draws.below(500)) };
            at = at.min(file.len() - len);
            assert_eq!(read(&mut window, &file, at, len).0, file[at..at + len], "{len} bytes at {at}");
            if step % 50 == 0 {
                window.clear();
            }
        }
    }

    #[test]
    fn small_values_that_follow_each_other_take_few_reads() {
        let file = vec![7; 4 << 20];
        let mut window = Window::default();
        let pages = (0..file.len()).step_by(4096);
        let count =
            pages.filter(|&page| read(&mut window, &file, page, 16).1 | read(&mut window, &file, page + 16, 3073).1);
        assert!(count.count() < 50);
        let far = (0..file.len()).step_by(1 << 20).filter(|&at| read(&mut window, &file, at, 16).1);
        assert_eq!(far.count(), 4);
        assert_eq!(window.bytes.len(), STEP_LEN, "nothing is read ahead of a jump");
    }
}
