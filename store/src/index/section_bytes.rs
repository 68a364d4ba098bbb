//! The bytes of a whole section: allocated by this process, or a map of the file.
//!
//! Large allocated sections use huge pages if the system has them. Lookups access hundreds of megabytes at random: with
//! pages of 4 KiB nearly every access would wait for the page table too, and filling the memory would fault once per
//! page.

use std::ops::Deref;

use grainstore_format::memory::{self, NoMemory};
use memmap2::MmapMut;

use super::mapping::FileMapping;

/// Sections from this length on use huge pages, 2 MiB each on most systems.
const HUGE_LEN: usize = 4 << 20;

#[derive(Debug)]
pub(crate) enum SectionBytes {
    Allocated(AllocatedBytes),
    Mapped(FileMapping),
}

/// Bytes allocated by this process.
#[derive(Debug)]
pub(crate) enum AllocatedBytes {
    Small(Vec<u8>),
    Huge(MmapMut),
}

impl AllocatedBytes {
    /// Zeroed bytes, for the caller to fill.
    pub(crate) fn zeroed(len: usize) -> Result<Self, NoMemory> {
        if len < HUGE_LEN {
            return memory::zeroed(len as u64).map(Self::Small);
        }
        let lack = || NoMemory { len: len as u64 };
        let pages = MmapMut::map_anon(len).map_err(|_| lack())?;
        memory::check_room(0).map_err(|_| lack())?;
        // If the system has none, it uses small pages.
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
