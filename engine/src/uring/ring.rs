//! The two queues that the kernel shares with us, and what it may write to meanwhile.
//!
//! A read is known to the kernel by the number of its slot. The slot owns buffer and file from the moment the read is
//! put into the queue until the kernel has answered it, whatever the caller drops. So nothing that this type lets
//! anybody do makes the kernel write to memory that is somebody else's, and all of it is safe to call.
//!
//! Dropped, it cancels its reads and waits for their answers. Where the device does not answer in time, slots and ring
//! are leaked, since the kernel may still write. A thread that the ring does not answer to can only close it, and looks
//! whether the kernel lets go. A forked process has the ring's memory too and must not touch it.

use std::io;
use std::mem::{self, ManuallyDrop};
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};
use rustix::io::Errno;

use super::UringOptions;
use super::engine::NAME;
use super::files::Files;
use super::memory::Memory;
use super::queues::Flight;
use super::setup::{self, ANSWERS_MAX};
use super::slots::Slots;
use super::tenant::{Line, Tenant};
use crate::job::NextRead;
use crate::{Buffer, EngineError};
use grainstore_host::Home;

/// The most bytes asked for at once, less than the kernel's own bound; whole blocks, so that the rest stays aligned.
const READ_LEN_MAX: usize = 1 << 30;
/// `RWF_DONTCACHE`, since Linux 6.14.
const DONT_CACHE: i32 = 0x80;
/// The number of what is no read.
const CANCEL: u64 = u64::MAX;
/// Slots: an answer to each fits the ring, and one more to the order to cancel them.
const SLOTS_MAX: usize = ANSWERS_MAX as usize - 1;

/// A ring, its reads, and what it knows of files and memory.
pub(super) struct Ring {
    io: ManuallyDrop<IoUring>,
    options: UringOptions,
    home: Home,
    tenant: Tenant,
    /// Where one thread alone may ask it.
    line: Option<Line>,
    slots: Slots<Begun>,
    files: Files,
    memory: Memory,
    /// Copied out of the ring, and empty but while they are.
    answers: Vec<(u64, i32)>,
}

/// A read that the kernel has, or is about to get.
#[derive(Debug)]
struct Begun {
    flight: Flight,
    len: u64,
    file: Option<u32>,
}

/// A read that the kernel has answered.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) flight: Flight,
    /// The length that it was started with.
    pub(super) len: u64,
    pub(super) answer: io::Result<usize>,
}

impl Ring {
    pub(super) fn new(options: UringOptions) -> Result<Self, EngineError> {
        let io = setup::ring(options.owner)?;
        let tenant = Tenant::of(&io);
        let (files, memory) = (Files::new(&io), Memory::new(&io));
        let line = if tenant == Tenant::Any { None } else { files.line(&io) };
        let (io, home, slots, answers) = (ManuallyDrop::new(io), Home::here(), Slots::default(), Vec::new());
        Ok(Self { io, options, home, tenant, line, slots, files, memory, answers })
    }

    /// Makes a new ring, which knows the same memory, where this one does not answer to this thread.
    pub(super) fn move_here(&mut self) -> Result<(), EngineError> {
        if self.tenant.is_served_here() {
            return Ok(());
        }
        if self.slots.len() > 0 {
            return Err(broken(io::Error::other("another thread has reads in flight, and alone may complete them")));
        }
        let mut next = Self::new(self.options)?;
        next.memory.register_all_of(&next.io, &self.memory);
        *self = next;
        Ok(())
    }

    /// Makes the ring take reads from this thread.
    pub(super) fn claim(&mut self) -> Result<(), EngineError> {
        self.move_here()?;
        if self.tenant == Tenant::First {
            self.io.submitter().register_enable_rings().map_err(broken)?;
            self.tenant = Tenant::here();
        }
        Ok(())
    }

    /// Whether it takes no more reads: until `enter` has handed some to the kernel, or `land` has taken answers.
    pub(super) fn is_full(&mut self) -> bool {
        self.io.submission().is_full() || self.slots.len() >= SLOTS_MAX
    }

    /// Puts a read into the queue, from which `enter` hands it to the kernel; the ring must not be full.
    pub(super) fn start(&mut self, mut flight: Flight, len: u64) {
        let file = self.files.hold(&self.io, &flight.job.request().file, flight.fd);
        let entry = self.entry(&mut flight, file);
        let number = self.slots.put(Begun { flight, len, file });
        let entry = entry.user_data(number as u64);
        // SAFETY: the entry names a buffer and a file that the slot's job owns. The slot is given up by `land` alone,
        // after the kernel's answer, and is leaked where `drop` gets none; moving the job does not move the buffer's
        // memory, and nobody reads or writes that meanwhile.
        let pushed = unsafe { self.io.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "the caller has asked whether there is room");
    }

    /// Whether reads wait for `enter` to hand them to the kernel.
    pub(super) fn has_queued(&mut self) -> bool {
        !self.io.submission().is_empty()
    }

    /// Reads that the kernel has or will get with the next `enter`.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Hands the kernel what is in the queue and waits until there are `wanted` answers, or no longer than `patience`.
    /// It may wait for less: whoever waits looks and comes again.
    pub(super) fn enter(&mut self, wanted: usize, patience: Option<Duration>) -> io::Result<()> {
        let (queued, is_work_left) = {
            let queue = self.io.submission();
            (queue.len(), queue.taskrun())
        };
        if queued == 0 && !is_work_left && self.io.completion().len() >= wanted {
            return Ok(());
        }
        let entered = self.wait(wanted, patience, |ring, args| ring.io.submitter().submit_with_args(wanted, args));
        match entered {
            // No memory for more requests, or too many answers: those in flight make room.
            Err(error) if is(&error, Errno::AGAIN) || is(&error, Errno::BUSY) => {
                self.make_room(wanted, patience, error)
            }
            entered => entered,
        }
    }

    /// What has been answered since the last call.
    pub(super) fn land(&mut self, out: &mut Vec<Landed>) {
        let mut answers = mem::take(&mut self.answers);
        answers.extend(self.io.completion().map(|entry| (entry.user_data(), entry.result())));
        out.extend(answers.drain(..).filter_map(|(number, result)| self.landed(number, result)));
        self.answers = answers;
    }

    /// Makes the region of a buffer known to the kernel.
    pub(super) fn register(&mut self, buffer: &Buffer) {
        self.memory.register(&self.io, buffer);
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    fn entry(&self, flight: &mut Flight, file: Option<u32>) -> squeue::Entry {
        let NextRead { file: open_file, offset, bytes } = flight.job.next_read();
        let flags = if open_file.dont_cache() { DONT_CACHE } else { 0 };
        let len = bytes.len().min(READ_LEN_MAX);
        let (place, fd) = (bytes.as_mut_ptr(), Fd(flight.fd));
        let part = self.memory.part(place, len);
        let len = u32::try_from(len).unwrap_or(0);
        let fixed = |part| match file {
            Some(file) => opcode::ReadFixed::new(Fixed(file), place, len, part),
            None => opcode::ReadFixed::new(fd, place, len, part),
        };
        let plain = || match file {
            Some(file) => opcode::Read::new(Fixed(file), place, len),
            None => opcode::Read::new(fd, place, len),
        };
        match part {
            Some(part) => fixed(part).offset(offset).rw_flags(flags).build(),
            None => plain().offset(offset).rw_flags(flags).build(),
        }
    }

    fn landed(&mut self, number: u64, result: i32) -> Option<Landed> {
        let Begun { flight, len, file } = self.slots.take(usize::try_from(number).ok()?)?;
        if let Some(file) = file {
            self.files.release(file);
        }
        let answer = usize::try_from(result).map_err(|_| told(result));
        Some(Landed { flight, len, answer })
    }

    /// Waits for one answer without handing over anything.
    fn make_room(&mut self, wanted: usize, patience: Option<Duration>, refusal: io::Error) -> io::Result<()> {
        let in_kernel = self.slots.len() - self.io.submission().len().min(self.slots.len());
        if in_kernel == 0 {
            return Err(refusal);
        }
        let flags = (EnterFlags::EXT_ARG | EnterFlags::GETEVENTS).bits();
        let wanted = u32::from(wanted > 0);
        self.wait(1, patience, |ring, args| {
            // SAFETY: nothing is handed over, and the argument is of the kind that `EXT_ARG` says.
            unsafe { ring.io.submitter().enter(0, wanted, flags, Some(args)) }
        })
    }

    /// Enters the kernel; signals and the end of the patience are no errors.
    fn wait(
        &mut self,
        wanted: usize,
        patience: Option<Duration>,
        enter: impl FnOnce(&mut Self, &SubmitArgs<'_, '_>) -> io::Result<usize>,
    ) -> io::Result<()> {
        let patience = patience.filter(|_| wanted > 0).map(Timespec::from);
        let args = SubmitArgs::new();
        let entered = match &patience {
            Some(patience) => enter(self, &args.timespec(patience)),
            None => enter(self, &args),
        };
        match entered {
            Err(error) if !is(&error, Errno::INTR) && !is(&error, Errno::TIME) => Err(error),
            _ => Ok(()),
        }
    }

    /// Cancels all reads and waits for their answers; `false` where some do not come.
    fn drain(&mut self) -> bool {
        let deadline = Instant::now() + self.options.drain_max;
        let mut landed = Vec::new();
        let mut is_cancelled = false;
        // So that there is room for the order to cancel.
        let _ = self.enter(0, None);
        while self.slots.len() > 0 {
            is_cancelled = is_cancelled || self.cancel();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            match self.enter(1, Some(left)) {
                // The kernel is short of something, for a while.
                Err(error) if is(&error, Errno::AGAIN) || is(&error, Errno::BUSY) => std::thread::yield_now(),
                Err(_) => return false,
                Ok(()) => {}
            }
            self.land(&mut landed);
            landed.clear();
        }
        true
    }

    /// Asks the kernel to give all reads up. Before Linux 5.19 it refuses, and they are waited for.
    fn cancel(&mut self) -> bool {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        // SAFETY: the entry names no memory and no file.
        unsafe { self.io.submission().push(&entry) }.is_ok()
    }

    /// Closes a ring that does not answer to this thread; `false` where the kernel may go on with its reads.
    fn close(&mut self) -> bool {
        // SAFETY: `drop` alone calls this, once, and does not use the ring afterwards.
        unsafe { ManuallyDrop::drop(&mut self.io) };
        let drain_max = self.options.drain_max;
        self.slots.len() == 0 || self.line.as_mut().is_some_and(|line| line.hangs_up_within(drain_max))
    }

    /// Leaves what the kernel may still write to alone for good.
    fn leak(&mut self) {
        mem::forget(mem::take(&mut self.slots));
        mem::forget(mem::take(&mut self.memory));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.home.is_here() {
            // The process that it belongs to goes on using it; this one gives up its view and its descriptor alone.
            self.leak();
        } else if !self.tenant.is_served_here() {
            if !self.close() {
                self.leak();
            }
            return;
        } else if !self.drain() {
            self.leak();
            return;
        } else {
            // A forked process may keep the ring alive, but not its memory.
            let _ = self.io.submitter().unregister_buffers();
        }
        // SAFETY: it is dropped here alone, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.io) };
    }
}

/// Tells the kernel of memory by a number, or with no bytes, that the number is free.
pub(super) fn pin(io: &IoUring, number: u16, place: *mut u8, len: usize) -> io::Result<()> {
    let part = libc::iovec { iov_base: place.cast(), iov_len: len };
    let submitter = io.submitter();
    // SAFETY: the kernel looks the pages up now, refuses a place that has none, and keeps those that it found until
    // the number is free. It writes to them when a read names the number, and such a read is made for a slot's own
    // buffer alone.
    unsafe { submitter.register_buffers_update(number.into(), &[part], None) }
}

/// An error as the kernel tells it. A read that was given up is begun again: the thread that began it has ended, and
/// nobody cancels but `drop`, which does not look.
fn told(result: i32) -> io::Error {
    let errno = result.saturating_neg();
    let given_up = errno == Errno::CANCELED.raw_os_error();
    if given_up { Errno::INTR.into() } else { io::Error::from_raw_os_error(errno) }
}

fn broken(source: io::Error) -> EngineError {
    EngineError::Broken { engine: NAME, source }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
