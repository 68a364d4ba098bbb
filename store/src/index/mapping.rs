//! Maps of files. The only file of this crate with `unsafe`: the compiler cannot know what others do to a file.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

use grainstore_format::to_usize;
use memmap2::{Advice, Mmap, MmapOptions};

/// Bytes of a file, mapped for reading.
#[derive(Debug)]
pub(crate) struct FileMapping(Mmap);

impl FileMapping {
    /// Maps `range`, which is not empty and is inside the file.
    pub(crate) fn of_file(file: &File, range: Range<u64>) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.offset(range.start).len(to_usize(range.end.saturating_sub(range.start)));
        // SAFETY: the bytes of a `&[u8]` must not change while it exists. A map cannot promise that of a file that
        // others may overwrite or truncate. The caller who opened the dataset did: `IndexMemory::Mapped`, the only way
        // here, is for files that nobody changes while they are open, documents what happens otherwise, and is never
        // the default. Files of a dataset are written once and then only replaced by name, which leaves the mapped
        // ones as they are. Nothing in this process writes to the map, and the range was inside the file a moment ago.
        let map = unsafe { options.map(file) }?;
        // All of it is checked next. If the system does not read ahead, that only takes longer.
        let _ = map.advise(Advice::WillNeed);
        Ok(Self(map))
    }
}

impl Deref for FileMapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
