//! The files that the kernel knows by number, so that it need not look each up again with every read.
//!
//! A file is made known when it is first read and forgotten when another needs its place. A file that is gone is
//! recognised: its address is not used again while this table remembers it.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Weak};

use io_uring::IoUring;

use super::tenant::Line;
use crate::OpenFile;

/// Files known at a time.
const FILES_MAX: u32 = 512;

/// Which files are known.
#[derive(Debug, Default)]
pub(super) struct Files {
    places: Vec<Place>,
    /// Places by the address of their file.
    by_file: HashMap<usize, u32>,
    /// None, where the kernel takes no table.
    places_max: u32,
    /// The place that is looked at next when one is needed.
    hand: u32,
}

#[derive(Debug)]
struct Place {
    file: Weak<OpenFile>,
    in_flight: u32,
}

impl Files {
    pub(super) fn new(io: &IoUring) -> Self {
        let refused = io.submitter().register_files_sparse(FILES_MAX + 1).is_err();
        Self { places_max: if refused { 0 } else { FILES_MAX }, ..Self::default() }
    }

    /// A line to the ring, in the place behind those of the sources; `None` where there is none.
    pub(super) fn line(&self, io: &IoUring) -> Option<Line> {
        Line::to(io, self.places_max)
    }

    /// The number of a file's file, to be given back with [`release`](Self::release); `None` where it has none.
    pub(super) fn hold(&mut self, io: &IoUring, file: &Arc<OpenFile>, fd: RawFd) -> Option<u32> {
        let key = Arc::as_ptr(file).addr();
        let number = match self.by_file.get(&key) {
            Some(&number) => number,
            None => self.add(io, file, fd)?,
        };
        self.places[number as usize].in_flight += 1;
        Some(number)
    }

    pub(super) fn release(&mut self, number: u32) {
        self.places[number as usize].in_flight -= 1;
    }

    fn add(&mut self, io: &IoUring, file: &Arc<OpenFile>, fd: RawFd) -> Option<u32> {
        let number = self.free()?;
        io.submitter().register_files_update(number, &[fd]).ok()?;
        let place = Place { file: Arc::downgrade(file), in_flight: 0 };
        self.by_file.insert(place.key(), number);
        match self.places.get_mut(number as usize) {
            Some(old) => {
                self.by_file.remove(&old.key());
                *old = place;
            }
            None => self.places.push(place),
        }
        Some(number)
    }

    /// A place that no read needs: a new one, or the next one round the table.
    fn free(&mut self) -> Option<u32> {
        let count = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if count < self.places_max {
            return Some(count);
        }
        let found = (0..count).map(|step| (self.hand + step) % count).find(|&number| self.is_idle(number))?;
        self.hand = found + 1;
        Some(found)
    }

    fn is_idle(&self, number: u32) -> bool {
        self.places[number as usize].in_flight == 0
    }
}

impl Place {
    fn key(&self) -> usize {
        self.file.as_ptr().addr()
    }
}
