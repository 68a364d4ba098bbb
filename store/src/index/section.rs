//! One section of an index: read in pages, or whole. Every byte is checked before it is returned. spec.md: DIR-6.
//!
//! A single query reads only the checksum pages of 64 KiB that cover the answer; the last ones are cached. After
//! `max(8, pages / 8)` pages the whole section is loaded, so that many queries read at most an eighth more than the
//! section.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use grainstore_format::{CHECKSUM_PAGE_LEN, ChecksumList, FormatError, SectionRecord, to_usize};
use grainstore_host::ForkLock;

use super::file::IndexFile;
use super::numbers::little_endian;
use super::page_cache::PageCache;
use super::section_bytes::{AllocatedBytes, SectionBytes};
use crate::StoreError;
use crate::threads::share_out;

/// Bytes that one thread reads and checks at a time when a section is loaded.
const SHARE_LEN: u64 = 16 * CHECKSUM_PAGE_LEN;
/// Sections up to this many bytes are loaded by the calling thread: starting more threads takes longer.
const SINGLE_THREAD_LEN: u64 = 8 * SHARE_LEN;

#[derive(Debug)]
pub(crate) struct Section {
    record: SectionRecord,
    checksums: OnceLock<ChecksumList>,
    whole: OnceLock<SectionBytes>,
    loading: ForkLock<()>,
    pages_read: AtomicU64,
    cache: PageCache,
    /// It could not be loaded: its undamaged parts are read in pages.
    is_broken: AtomicBool,
}

/// A section and its file. Whether it is loaded is checked once, not at every read.
pub(crate) struct View<'a> {
    section: &'a Section,
    file: &'a IndexFile,
    whole: Option<&'a [u8]>,
    width: u64,
}

impl<'a> View<'a> {
    #[inline]
    pub(crate) fn new(section: &'a Section, file: &'a IndexFile) -> Self {
        let whole = section.whole.get().map(|whole| &**whole);
        Self { section, file, whole, width: u64::from(section.record.width) }
    }

    /// The bytes of `range`, from memory if the section is loaded.
    #[inline]
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        match self.whole.and_then(|whole| whole.get(to_usize(range.start)..to_usize(range.end))) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.section.read(self.file, range),
        }
    }

    /// The bytes of `range`, from memory if the section is loaded, else from the disk and not cached.
    pub(crate) fn read_once(&self, range: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        match self.whole.and_then(|whole| whole.get(to_usize(range.start)..to_usize(range.end))) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.section.read_uncached(self.file, range).map(Cow::Owned),
        }
    }

    /// Elements `index` and `index + 1`: where an item starts and where it ends.
    #[inline]
    pub(crate) fn start_and_end(&self, index: u64) -> Result<(u64, u64), StoreError> {
        let from = index.saturating_mul(self.width);
        let both = self.read(from..from.saturating_add(2 * self.width))?;
        let Some((start, end)) = both.split_at_checked(to_usize(self.width)) else {
            return Err(StoreError::bug("a section returned fewer bytes than were requested"));
        };
        Ok((little_endian(start), little_endian(end)))
    }
}

impl Section {
    pub(crate) fn new(record: SectionRecord) -> Self {
        Self {
            record,
            checksums: OnceLock::new(),
            whole: OnceLock::new(),
            loading: ForkLock::default(),
            pages_read: AtomicU64::new(0),
            cache: PageCache::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    pub(crate) fn record(&self) -> &SectionRecord {
        &self.record
    }

    /// The bytes of `range` of the section, from memory if it is loaded.
    #[inline]
    pub(crate) fn read(&self, file: &IndexFile, range: Range<u64>) -> Result<Cow<'_, [u8]>, StoreError> {
        let all = match self.whole.get() {
            Some(whole) => &**whole,
            None => match self.read_pages(file, &range)? {
                Some(bytes) => return Ok(Cow::Owned(bytes)),
                None => match self.whole(file) {
                    Ok(whole) => whole,
                    // Damage elsewhere in the section must not fail this read.
                    Err(_) => return self.read_uncached(file, range).map(Cow::Owned),
                },
            },
        };
        all.get(to_usize(range.start)..to_usize(range.end)).map(Cow::Borrowed).ok_or_else(|| self.outside(file, &range))
    }

    /// The bytes of `range`, if the section is loaded.
    pub(crate) fn loaded(&self, range: Range<u64>) -> Option<&[u8]> {
        self.whole.get()?.get(to_usize(range.start)..to_usize(range.end))
    }

    /// The whole section; loaded at the first call.
    pub(crate) fn whole(&self, file: &IndexFile) -> Result<&[u8], StoreError> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        // One thread loads, the others wait: a section may take gigabytes.
        // A process forked meanwhile loads by itself: the thread that held the lock exists only in the parent.
        let _loading = self.loading.lock();
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let bytes = self.load(file);
        self.is_broken.store(bytes.is_err(), Ordering::Relaxed);
        let bytes = bytes?;
        let whole = self.whole.get_or_init(|| bytes);
        if self.loading.is_current() {
            self.cache.clear();
        }
        Ok(whole)
    }

    /// The bytes of `range`, read from the disk and not cached.
    pub(crate) fn read_uncached(&self, file: &IndexFile, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        if range.start > range.end || range.end > self.record.len {
            return Err(self.outside(file, &range));
        }
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let from = range.start / CHECKSUM_PAGE_LEN * CHECKSUM_PAGE_LEN;
        let to = (range.end.div_ceil(CHECKSUM_PAGE_LEN) * CHECKSUM_PAGE_LEN).min(self.record.len);
        let checksums = self.checksums(file)?;
        let mut bytes = file.read(self.record.offset + from..self.record.offset + to)?;
        self.check(file, checksums, from, &bytes)?;
        bytes.truncate(to_usize(range.end - from));
        bytes.drain(..to_usize(range.start - from));
        Ok(bytes)
    }

    /// The section's list of checksums, checked; read at the first call.
    pub(crate) fn checksums(&self, file: &IndexFile) -> Result<&ChecksumList, StoreError> {
        if let Some(list) = self.checksums.get() {
            return Ok(list);
        }
        let start = self.record.checksums_offset();
        let bytes = file.read(start..start + 4 * self.record.page_count())?;
        let list = ChecksumList::decode(bytes, self.record.checksums_crc).map_err(|error| self.wrong(file, error))?;
        Ok(self.checksums.get_or_init(|| list))
    }

    /// The bytes of `range`; `None` once enough pages were read that the whole section should be loaded.
    fn read_pages(&self, file: &IndexFile, range: &Range<u64>) -> Result<Option<Vec<u8>>, StoreError> {
        let page = range.start / CHECKSUM_PAGE_LEN;
        let from = page * CHECKSUM_PAGE_LEN;
        let within = to_usize(range.start - from)..to_usize(range.end.saturating_sub(from));
        if let Some(bytes) = self.cache.read(page, within.clone()) {
            return Ok(Some(bytes));
        }
        if self.is_worth_loading(range) {
            return Ok(None);
        }
        let to = from.saturating_add(CHECKSUM_PAGE_LEN).min(self.record.len);
        if range.end > to {
            return self.read_uncached(file, range.clone()).map(Some);
        }
        let bytes = self.read_uncached(file, from..to)?;
        let requested = bytes.get(within).map(<[u8]>::to_vec).ok_or_else(|| self.outside(file, range))?;
        self.cache.insert(page, bytes);
        Ok(Some(requested))
    }

    fn is_worth_loading(&self, range: &Range<u64>) -> bool {
        let pages = range.end.div_ceil(CHECKSUM_PAGE_LEN).saturating_sub(range.start / CHECKSUM_PAGE_LEN);
        let read = self.pages_read.fetch_add(pages, Ordering::Relaxed).saturating_add(pages);
        let all = self.record.page_count();
        // The last page of a few is worth it, too: later reads find pages in the cache, and count none.
        read > (all / 8).max(8).min(all.saturating_sub(1)) && !self.is_broken.load(Ordering::Relaxed)
    }

    fn load(&self, file: &IndexFile) -> Result<SectionBytes, StoreError> {
        let len = self.record.len;
        if self.record.offset.saturating_add(len) > file.len() {
            return Err(self.outside(file, &(0..len)));
        }
        if file.is_mapped() && len > 0 { self.load_map(file) } else { self.load_owned(file) }
    }

    fn load_owned(&self, file: &IndexFile) -> Result<SectionBytes, StoreError> {
        let checksums = self.checksums(file)?;
        let memory = AllocatedBytes::zeroed(to_usize(self.record.len));
        let mut memory = memory.map_err(|error| StoreError::no_memory(file.path(), error))?;
        file.expect_long_reads();
        let done = self.for_each_share(memory.as_mut().chunks_mut(to_usize(SHARE_LEN)), |from, share| {
            file.read_into(self.record.offset + from, share)?;
            self.check(file, checksums, from, share)
        });
        file.expect_short_reads();
        done.map(|()| SectionBytes::Allocated(memory))
    }

    fn load_map(&self, file: &IndexFile) -> Result<SectionBytes, StoreError> {
        let checksums = self.checksums(file)?;
        let map = file.map(self.record.offset..self.record.offset + self.record.len)?;
        self.for_each_share(map.chunks(to_usize(SHARE_LEN)), |from, share| self.check(file, checksums, from, share))?;
        Ok(SectionBytes::Mapped(map))
    }

    /// Calls `work` with each share and its start in the section, in threads if that is faster.
    fn for_each_share<S: Send>(
        &self,
        shares: impl Iterator<Item = S> + Send,
        work: impl Fn(u64, S) -> Result<(), StoreError> + Sync,
    ) -> Result<(), StoreError> {
        let mut shares = (0..).step_by(to_usize(SHARE_LEN)).zip(shares);
        let work = |(from, share)| work(from, share);
        if self.record.len <= SINGLE_THREAD_LEN { shares.try_for_each(work) } else { share_out(shares, work) }
    }

    /// Checks whole pages that start at `from`, a multiple of the page's length.
    fn check(&self, file: &IndexFile, list: &ChecksumList, from: u64, bytes: &[u8]) -> Result<(), StoreError> {
        (from / CHECKSUM_PAGE_LEN..)
            .zip(bytes.chunks(to_usize(CHECKSUM_PAGE_LEN)))
            .try_for_each(|(page, bytes)| list.check_page(page, bytes))
            .map_err(|error| self.wrong(file, error))
    }

    fn outside(&self, file: &IndexFile, range: &Range<u64>) -> StoreError {
        let detail = format!("bytes {}..{} are outside its {} bytes", range.start, range.end, self.record.len);
        StoreError::damaged(file.path(), self.record.kind.name(), detail)
    }

    /// Adds the section's name to an error.
    fn wrong(&self, file: &IndexFile, error: FormatError) -> StoreError {
        let detail = match error {
            FormatError::Damaged { detail, .. } => detail,
            lack @ FormatError::NoMemory { .. } => return StoreError::format(file.path(), lack),
            other => other.to_string(),
        };
        let detail = format!("section {}: {detail}", self.record.label());
        StoreError::damaged(file.path(), "index", detail)
    }
}
