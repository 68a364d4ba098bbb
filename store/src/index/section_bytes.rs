//! The memory that a whole section lies in: of this process, or a map of the file.
//!
//! Large sections of the first kind take huge pages where the system has them. Lookups jump about in hundreds of
//! megabytes; with pages of 4 KiB nearly every jump would wait for the page table too, and filling the memory would
//! fault once a page.

use std::io;
use std::ops::Deref;

use memmap2::MmapMut;

use super::mapping::FileMapping;

/// From here on, memory is asked for in huge pages, 2 MiB each on most systems.
const HUGE_LEN: usize = 4 << 20;

#[derive(Debug)]
pub(crate) enum SectionBytes {
    Allocated(AllocatedBytes),
    Mapped(FileMapping),
}

/// Memory of this process.
#[derive(Debug)]
pub(crate) enum AllocatedBytes {
    Small(Vec<u8>),
    Huge(MmapMut),
}

impl AllocatedBytes {
    /// Zeros, to be filled.
    pub(crate) fn zeroed(len: usize) -> io::Result<Self> {
        if len < HUGE_LEN {
            return Ok(Self::Small(vec![0; len]));
        }
        let pages = MmapMut::map_anon(len)?;
        // Where the system has none, small pages do.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        Ok(Self::Huge(pages))
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Huge(pages) => pages,
        }
    }
}

impl Deref for SectionBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Allocated(AllocatedBytes::Small(bytes)) => bytes,
            Self::Allocated(AllocatedBytes::Huge(pages)) => pages,
            Self::Mapped(map) => map,
        }
    }
}
