//! The submission and the completion queue, which are shared with the kernel, and the slots of the reads in flight.
//!
//! The kernel knows a read by the number of its slot. The slot owns buffer and file from the moment the read is pushed
//! to the submission queue until its completion, whatever the caller drops. So no sequence of calls makes the kernel
//! write to memory that something else owns, and all methods are safe.
//!
//! Dropping a ring cancels its reads and waits for their completions. If the device does not answer in time, slots and
//! ring are leaked, since the kernel may still write. A thread that the ring does not accept calls from can only close
//! it, and waits for the close signal. A forked process shares the ring's memory and must not touch it.

use std::io;
use std::mem::{self, ManuallyDrop};
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};
use rustix::io::Errno;

use super::UringOptions;
use super::device_queues::DeviceRead;
use super::engine::NAME;
use super::issuer::{CloseSignal, Issuer};
use super::registered_buffers::RegisteredBuffers;
use super::registered_files::RegisteredFiles;
use super::setup::{self, COMPLETIONS_MAX};
use super::slots::Slots;
use crate::in_flight::NextRead;
use crate::{Buffer, EngineError};
use grainstore_host::ProcessId;

/// The longest single read, below the kernel's own bound; whole blocks, so that the rest stays aligned.
const READ_LEN_MAX: usize = 1 << 30;
/// `RWF_DONTCACHE`, since Linux 6.14.
const DONT_CACHE: i32 = 0x80;
/// The `user_data` of the cancellation, which has no slot.
const CANCEL: u64 = u64::MAX;
/// The most slots: the completion queue has room for a completion of each, and for that of the cancellation.
const SLOTS_MAX: usize = COMPLETIONS_MAX as usize - 1;

/// A ring, its reads in flight, and its registered files and buffers.
pub(super) struct Ring {
    io: ManuallyDrop<IoUring>,
    options: UringOptions,
    home: ProcessId,
    issuer: Issuer,
    /// Present if the ring has a single issuer.
    close_signal: Option<CloseSignal>,
    slots: Slots<SubmittedRead>,
    files: RegisteredFiles,
    buffers: RegisteredBuffers,
    /// `user_data` and result of each completion, copied out of the ring. Empty except in [`reap`](Self::reap).
    completions: Vec<(u64, i32)>,
}

/// A read in the submission queue or in the kernel.
#[derive(Debug)]
struct SubmittedRead {
    read: DeviceRead,
    len: u64,
    /// The number of the file, if it is registered.
    file: Option<u32>,
}

/// A read that the kernel has completed.
#[derive(Debug)]
pub(super) struct CompletedRead {
    pub(super) read: DeviceRead,
    /// The length that it was pushed with.
    pub(super) len: u64,
    pub(super) result: io::Result<usize>,
}

impl Ring {
    pub(super) fn new(options: UringOptions) -> Result<Self, EngineError> {
        let io = setup::ring(options.owner)?;
        let issuer = Issuer::of(&io);
        let files = RegisteredFiles::new(&io);
        let buffers = RegisteredBuffers::new(&io);
        let close_signal = if issuer == Issuer::Any { None } else { files.close_signal(&io) };
        Ok(Self {
            io: ManuallyDrop::new(io),
            options,
            home: ProcessId::current(),
            issuer,
            close_signal,
            slots: Slots::default(),
            files,
            buffers,
            completions: Vec::new(),
        })
    }

    /// Replaces the ring by a new one with the same registered buffers, if it does not accept calls from this thread.
    pub(super) fn move_here(&mut self) -> Result<(), EngineError> {
        if self.issuer.may_issue_here() {
            return Ok(());
        }
        if self.slots.len() > 0 {
            return Err(broken(io::Error::other(
                "another thread has reads in flight, and only that thread may complete them",
            )));
        }
        let mut next = Self::new(self.options)?;
        next.buffers.register_all_of(&next.io, &self.buffers);
        *self = next;
        Ok(())
    }

    /// Makes the ring accept reads from this thread.
    pub(super) fn claim(&mut self) -> Result<(), EngineError> {
        self.move_here()?;
        if self.issuer == Issuer::NotYetEnabled {
            self.io.submitter().register_enable_rings().map_err(broken)?;
            self.issuer = Issuer::here();
        }
        Ok(())
    }

    /// Whether the ring accepts no more reads, until `enter` has submitted some or `reap` has taken completions.
    pub(super) fn is_full(&mut self) -> bool {
        self.io.submission().is_full() || self.slots.len() >= SLOTS_MAX
    }

    /// Pushes a read to the submission queue, which `enter` submits; the ring must not be full.
    pub(super) fn push(&mut self, mut read: DeviceRead, len: u64) {
        let file = self.files.hold(&self.io, &read.request.request().file, read.fd);
        let entry = self.entry(&mut read, file);
        let number = self.slots.put(SubmittedRead { read, len, file });
        let entry = entry.user_data(number as u64);
        // SAFETY: the entry names a buffer and a file that the slot's request owns. Only `reap` frees the slot, after
        // the kernel has completed the read, and `drop` leaks it if the completion does not come. Moving the request
        // does not move the memory of its buffer, and nothing reads or writes that memory meanwhile.
        let pushed = unsafe { self.io.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "the caller has checked `is_full`");
    }

    /// Whether reads in the submission queue wait for `enter`.
    pub(super) fn has_queued(&mut self) -> bool {
        !self.io.submission().is_empty()
    }

    /// Number of reads in flight, or in the submission queue.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Submits the queue and waits until there are `wanted` completions, or no longer than `timeout`. It may return
    /// early: the caller checks and calls again.
    pub(super) fn enter(&mut self, wanted: usize, timeout: Option<Duration>) -> io::Result<()> {
        let (queued, is_work_left) = {
            let queue = self.io.submission();
            (queue.len(), queue.taskrun())
        };
        if queued == 0 && !is_work_left && self.io.completion().len() >= wanted {
            return Ok(());
        }
        let entered = self.wait(wanted, timeout, |ring, args| ring.io.submitter().submit_with_args(wanted, args));
        match entered {
            // No memory for more requests, or too many completions: wait for some that are in flight.
            Err(error) if is(&error, Errno::AGAIN) || is(&error, Errno::BUSY) => self.make_room(wanted, timeout, error),
            entered => entered,
        }
    }

    /// Appends the reads that have been completed since the last call.
    pub(super) fn reap(&mut self, out: &mut Vec<CompletedRead>) {
        let mut completions = mem::take(&mut self.completions);
        completions.extend(self.io.completion().map(|entry| (entry.user_data(), entry.result())));
        out.extend(completions.drain(..).filter_map(|(number, result)| self.complete(number, result)));
        self.completions = completions;
    }

    /// Registers the region of a buffer.
    pub(super) fn register(&mut self, buffer: &Buffer) {
        self.buffers.register(&self.io, buffer);
    }

    pub(super) fn buffers(&self) -> &RegisteredBuffers {
        &self.buffers
    }

    fn entry(&self, read: &mut DeviceRead, file: Option<u32>) -> squeue::Entry {
        let NextRead { file: open_file, offset, bytes } = read.request.next_read();
        let flags = if open_file.dont_cache() { DONT_CACHE } else { 0 };
        let len = bytes.len().min(READ_LEN_MAX);
        let address = bytes.as_mut_ptr();
        let fd = Fd(read.fd);
        let part = self.buffers.part(address, len);
        #[expect(clippy::cast_possible_truncation, reason = "at most `READ_LEN_MAX`")]
        let len = len as u32;
        let fixed = |part| match file {
            Some(file) => opcode::ReadFixed::new(Fixed(file), address, len, part),
            None => opcode::ReadFixed::new(fd, address, len, part),
        };
        let plain = || match file {
            Some(file) => opcode::Read::new(Fixed(file), address, len),
            None => opcode::Read::new(fd, address, len),
        };
        match part {
            Some(part) => fixed(part).offset(offset).rw_flags(flags).build(),
            None => plain().offset(offset).rw_flags(flags).build(),
        }
    }

    fn complete(&mut self, number: u64, result: i32) -> Option<CompletedRead> {
        let SubmittedRead { read, len, file } = self.slots.take(usize::try_from(number).ok()?)?;
        if let Some(file) = file {
            self.files.release(file);
        }
        let result = usize::try_from(result).map_err(|_| error_of(result));
        Some(CompletedRead { read, len, result })
    }

    /// Waits for one completion without submitting anything.
    fn make_room(&mut self, wanted: usize, timeout: Option<Duration>, refusal: io::Error) -> io::Result<()> {
        let in_kernel = self.slots.len() - self.io.submission().len().min(self.slots.len());
        if in_kernel == 0 {
            return Err(refusal);
        }
        let flags = (EnterFlags::EXT_ARG | EnterFlags::GETEVENTS).bits();
        let wanted = u32::from(wanted > 0);
        self.wait(1, timeout, |ring, args| {
            // SAFETY: nothing is submitted, and the argument has the type that `EXT_ARG` requires.
            unsafe { ring.io.submitter().enter(0, wanted, flags, Some(args)) }
        })
    }

    /// Enters the kernel; a signal and the end of the timeout are not errors.
    fn wait(
        &mut self,
        wanted: usize,
        timeout: Option<Duration>,
        enter: impl FnOnce(&mut Self, &SubmitArgs<'_, '_>) -> io::Result<usize>,
    ) -> io::Result<()> {
        let timeout = timeout.filter(|_| wanted > 0).map(Timespec::from);
        let args = SubmitArgs::new();
        let entered = match &timeout {
            Some(timeout) => enter(self, &args.timespec(timeout)),
            None => enter(self, &args),
        };
        match entered {
            Err(error) if !is(&error, Errno::INTR) && !is(&error, Errno::TIME) => Err(error),
            _ => Ok(()),
        }
    }

    /// Cancels all reads and waits for their completions; `false` if some do not come in time.
    fn drain(&mut self) -> bool {
        let deadline = Instant::now() + self.options.drain_max;
        let mut completed = Vec::new();
        let mut is_cancelled = false;
        // Makes room in the submission queue for the cancellation.
        let _ = self.enter(0, None);
        while self.slots.len() > 0 {
            is_cancelled = is_cancelled || self.cancel();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            match self.enter(1, Some(left)) {
                // The kernel lacks a resource, temporarily.
                Err(error) if is(&error, Errno::AGAIN) || is(&error, Errno::BUSY) => std::thread::yield_now(),
                Err(_) => return false,
                Ok(()) => {}
            }
            self.reap(&mut completed);
            completed.clear();
        }
        true
    }

    /// Asks the kernel to cancel all reads. Before Linux 5.19 it refuses, and `drain` waits for their normal end.
    fn cancel(&mut self) -> bool {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        // SAFETY: the entry names no memory and no file.
        unsafe { self.io.submission().push(&entry) }.is_ok()
    }

    /// Closes a ring that does not accept calls from this thread; `false` if the kernel may continue with its reads.
    fn close(&mut self) -> bool {
        // SAFETY: only `drop` calls this, once, and it does not use the ring afterwards.
        unsafe { ManuallyDrop::drop(&mut self.io) };
        let drain_max = self.options.drain_max;
        self.slots.len() == 0 || self.close_signal.as_mut().is_some_and(|signal| signal.wait_closed(drain_max))
    }

    /// Leaks everything that the kernel may still write to.
    fn leak(&mut self) {
        mem::forget(mem::take(&mut self.slots));
        mem::forget(mem::take(&mut self.buffers));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.home.is_current() {
            // The process that made the ring still uses it; this one only drops its mapping and its descriptor.
            self.leak();
        } else if !self.issuer.may_issue_here() {
            if !self.close() {
                self.leak();
            }
            return;
        } else if !self.drain() {
            self.leak();
            return;
        } else {
            // A forked process may keep the ring alive; it must not keep the buffers pinned.
            let _ = self.io.submitter().unregister_buffers();
        }
        // SAFETY: the ring has not been dropped above, and is not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.io) };
    }
}

/// Registers memory with the kernel by a number; with no bytes, frees the number.
pub(super) fn update_registration(io: &IoUring, number: u16, address: *mut u8, len: usize) -> io::Result<()> {
    let part = libc::iovec { iov_base: address.cast(), iov_len: len };
    let submitter = io.submitter();
    // SAFETY: the kernel looks the pages up now, refuses an address that has none, and pins those that it finds until
    // the number is freed. It writes to them only for a read that names the number, and such a read is made only for
    // the buffer that a slot owns.
    unsafe { submitter.register_buffers_update(number.into(), &[part], None) }
}

/// The error of a negative result. A cancelled read is repeated: the thread that submitted it has ended. (The only
/// other cancellation is in `drop`, which ignores results.)
fn error_of(result: i32) -> io::Error {
    let errno = result.saturating_neg();
    let is_cancelled = errno == Errno::CANCELED.raw_os_error();
    if is_cancelled { Errno::INTR.into() } else { io::Error::from_raw_os_error(errno) }
}

fn broken(source: io::Error) -> EngineError {
    EngineError::Broken { engine: NAME, source }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
