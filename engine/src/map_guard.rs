//! Faults of mapped files. A mapped page may be impossible to read: somebody truncated the file, or its device failed. The
//! process then gets `SIGBUS`, which ends it. The handler here maps zeros in place of the page instead. Whoever uses the
//! bytes finds that their checksum is wrong, and reads them with a system call, which reports the cause.
//!
//! A handler of a signal may do little, so this one takes no lock and no memory: maps are in a list that only grows,
//! whose places are used again.
//!
//! A fault at any other address goes to the handler that was there before, as if this one did not exist. Others may
//! install theirs later, as PyTorch's loader does in its workers; so each thread looks from time to time, and first
//! thing after a fork, whether ours is still there.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Uses of mapped bytes after which a thread looks again.
const USES_UNWATCHED: u32 = 256;

/// The registration of a map, for as long as it is mapped.
#[derive(Debug)]
pub(super) struct MapGuard(&'static Place);

/// A place in the list of maps.
#[derive(Debug)]
struct Place {
    is_taken: AtomicBool,
    /// The first address; 0 while no map is here. It is set last and cleared first.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The place that was made before.
    next: AtomicPtr<Place>,
}

/// The place that was made last.
static PLACES: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
/// What the handler before ours was; it is never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Whether the handler before ours is running.
static IS_PASSED_ON: AtomicBool = AtomicBool::new(false);
static PAGE_LEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Uses of mapped bytes until this thread looks whether the handler is installed.
    static USES_LEFT: Cell<u32> = const { Cell::new(0) };
}

impl MapGuard {
    /// Registers mapped bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        install();
        let start = bytes.as_ptr().addr();
        let place = free_place().unwrap_or_else(added_place);
        place.end.store((start + bytes.len()).next_multiple_of(page_len()), Ordering::SeqCst);
        place.start.store(start, Ordering::SeqCst);
        Self(place)
    }

    /// To be called before mapped bytes are used.
    #[inline]
    pub(super) fn watch(&self) {
        USES_LEFT.with(|left| match left.get() {
            0 => {
                left.set(USES_UNWATCHED);
                install();
            }
            uses => left.set(uses - 1),
        });
    }
}

impl Drop for MapGuard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::SeqCst);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

impl Place {
    /// The addresses of the map that is here, if there is one.
    fn range(&self) -> Option<Range<usize>> {
        let start = self.start.load(Ordering::SeqCst);
        let end = self.end.load(Ordering::SeqCst);
        // Otherwise the end may be that of another map.
        (start != 0 && start == self.start.load(Ordering::SeqCst)).then_some(start..end)
    }
}

fn places() -> impl Iterator<Item = &'static Place> {
    std::iter::successors(place_at(&PLACES), |place| place_at(&place.next))
}

fn place_at(at: &AtomicPtr<Place>) -> Option<&'static Place> {
    // SAFETY: null, or a place that `added_place` leaked; its fields are atomic.
    unsafe { at.load(Ordering::Acquire).as_ref() }
}

fn free_place() -> Option<&'static Place> {
    places().find(|place| !place.is_taken.swap(true, Ordering::Acquire))
}

/// A new place in the list, which is taken.
fn added_place() -> &'static Place {
    let place: &'static Place = Box::leak(Box::new(Place {
        is_taken: AtomicBool::new(true),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        next: AtomicPtr::default(),
    }));
    let mut last = PLACES.load(Ordering::Acquire);
    loop {
        place.next.store(last, Ordering::Relaxed);
        let new = ptr::from_ref(place).cast_mut();
        match PLACES.compare_exchange(last, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return place,
            Err(now) => last = now,
        }
    }
}

fn page_len() -> usize {
    match PAGE_LEN.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: it reads a number that the system has.
            let len = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
            PAGE_LEN.store(len, Ordering::Relaxed);
            len
        }
        len => len,
    }
}

/// Installs the handler, unless it is installed.
#[cold]
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        page_len();
        // SAFETY: the function takes nothing, and touches only a variable of the one thread that the child has.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    });
    // SAFETY: `sigaction` is a C structure of numbers and pointers, for which zeros are valid.
    let (mut now, mut ours): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
    // SAFETY: it only writes what is installed to `now`.
    let known = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) } == 0;
    if !known || now.sa_sigaction == handler as libc::sighandler_t {
        return;
    }
    BEFORE.store(Box::into_raw(Box::new(now)), Ordering::Release);
    ours.sa_sigaction = handler as libc::sighandler_t;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the handler is for `SA_SIGINFO`, and calls only what a handler may call. A failure leaves what was there.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) };
}

/// The child looks before it uses mapped bytes.
extern "C" fn after_fork() {
    // A thread that ends has no variables any more; it does not fork then.
    let _ = USES_LEFT.try_with(|left| left.set(0));
}

/// The handler.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system calls the handler with valid information.
    let known = unsafe { &*info };
    // Codes above 0 are the kernel's; others are of signals that a process sent.
    let is_fault = known.si_code > 0;
    // SAFETY: what is known of a fault has the address.
    if !(is_fault && is_replaced(unsafe { known.si_addr() }.addr())) {
        pass_on(signal, info, context, is_fault);
    }
}

/// Replaces the page at an address, and all after it in its map, by zeros; `false` if no map of ours is there.
fn is_replaced(address: usize) -> bool {
    let page_len = PAGE_LEN.load(Ordering::Relaxed);
    let found = places().filter_map(Place::range).find(|range| range.contains(&address));
    let Some(range) = found else { return false };
    let start = address / page_len * page_len;
    // To the end of the map, so that it is in two parts at most, and not in one for each page that fails.
    let len = range.end - start;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: it returns where the variable of this thread is.
    let errno_at = unsafe { libc::__errno_location() };
    // SAFETY: it is there as long as the thread. What was interrupted must find it as it was.
    let errno = unsafe { *errno_at };
    // SAFETY: these pages are a part of a map of ours, which the interrupted thread is borrowing, so it stays mapped.
    // They are only ever read.
    let mapped = unsafe { libc::mmap(ptr::with_exposed_provenance_mut(start), len, libc::PROT_READ, flags, -1, 0) };
    // SAFETY: as above.
    unsafe { *errno_at = errno };
    mapped != libc::MAP_FAILED
}

/// Does what would have happened without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, is_fault: bool) {
    // SAFETY: null, or leaked by `install`.
    let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
    // A handler that calls the one before it may come back to this one; it is called once.
    let before = before.filter(|_| !IS_PASSED_ON.swap(true, Ordering::SeqCst));
    match before {
        Some(before) if before.sa_sigaction == libc::SIG_IGN && !is_fault => {}
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: a handler of this type was installed with this flag.
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(before.sa_sigaction) };
                handler(signal, info, context);
            } else {
                // SAFETY: a handler of this type was installed without the flag.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(before.sa_sigaction) };
                handler(signal);
            }
        }
        _ => end_process(signal, is_fault),
    }
    IS_PASSED_ON.store(false, Ordering::SeqCst);
}

/// Ends the process by the signal.
fn end_process(signal: c_int, is_fault: bool) {
    // SAFETY: `sigaction` is a C structure of numbers and pointers, for which zeros are valid: the default action.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it installs the default action. A fault happens again when this returns.
    unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
    if !is_fault {
        // SAFETY: it sends a signal to this thread.
        unsafe { libc::raise(signal) };
    }
}
