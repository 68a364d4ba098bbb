//! Registered files: the kernel knows them by number and need not look up a descriptor for every read.
//!
//! A file is registered when it is first read, and replaced when another file needs its slot. Files are found by their
//! address. The address of a dropped file is not reused while this table has a weak reference to it.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Weak};

use io_uring::IoUring;

use super::issuer::CloseSignal;
use crate::OpenFile;

/// The most files that are registered at a time.
const FILES_MAX: u32 = 512;

/// The table of registered files.
#[derive(Debug, Default)]
pub(super) struct RegisteredFiles {
    slots: Vec<FileSlot>,
    /// Slots by the address of their file.
    by_file: HashMap<usize, u32>,
    /// 0 if the kernel refuses the table.
    slots_max: u32,
    /// The slot that is considered next when one is needed.
    clock_hand: u32,
}

#[derive(Debug)]
struct FileSlot {
    file: Weak<OpenFile>,
    in_flight: u32,
}

impl RegisteredFiles {
    pub(super) fn new(io: &IoUring) -> Self {
        let refused = io.submitter().register_files_sparse(FILES_MAX + 1).is_err();
        Self { slots_max: if refused { 0 } else { FILES_MAX }, ..Self::default() }
    }

    /// Registers a close signal in the slot after those of the files; `None` if that is refused.
    pub(super) fn close_signal(&self, io: &IoUring) -> Option<CloseSignal> {
        CloseSignal::register(io, self.slots_max)
    }

    /// The number of a registered file, to be given back with [`release`](Self::release); `None` if it is not
    /// registered.
    pub(super) fn hold(&mut self, io: &IoUring, file: &Arc<OpenFile>, fd: RawFd) -> Option<u32> {
        let key = Arc::as_ptr(file).addr();
        let number = match self.by_file.get(&key) {
            Some(&number) => number,
            None => self.add(io, file, fd)?,
        };
        self.slots[number as usize].in_flight += 1;
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.slots[number as usize].in_flight -= 1;
    }

    fn add(&mut self, io: &IoUring, file: &Arc<OpenFile>, fd: RawFd) -> Option<u32> {
        let number = self.free()?;
        io.submitter().register_files_update(number, &[fd]).ok()?;
        let slot = FileSlot { file: Arc::downgrade(file), in_flight: 0 };
        self.by_file.insert(slot.key(), number);
        match self.slots.get_mut(number as usize) {
            Some(old) => {
                self.by_file.remove(&old.key());
                *old = slot;
            }
            None => self.slots.push(slot),
        }
        Some(number)
    }

    /// A slot that no read uses: a new one, or the next idle one round the table.
    fn free(&mut self) -> Option<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "at most `FILES_MAX` slots")]
        let count = self.slots.len() as u32;
        if count < self.slots_max {
            return Some(count);
        }
        let found = (0..count).map(|step| (self.clock_hand + step) % count).find(|&number| self.is_idle(number))?;
        self.clock_hand = found + 1;
        Some(found)
    }

    fn is_idle(&self, number: u32) -> bool {
        self.slots[number as usize].in_flight == 0
    }
}

impl FileSlot {
    fn key(&self) -> usize {
        self.file.as_ptr().addr()
    }
}
