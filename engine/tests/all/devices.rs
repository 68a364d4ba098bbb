//! Devices that misbehave: reads are short, interrupted or refused, or they fail, panic or hang. They have no file
//! descriptor, so an engine reads them through the code of the test.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use grainstore_engine::{BLOCK_LEN, Engine, IoMode, OpenFile, PreadEngine, ReadAt, Wait};
use proptest::prelude::*;

use crate::engines::{
    EIO, ENGINES, PATIENCE, cause, complete_one, content, pread_engine, request, uring_engine, wait_for_one,
};

const EINVAL: i32 = 22;

#[derive(Debug, Clone)]
enum Step {
    Short(usize),
    Errno(i32),
    Panic,
    /// Reports that it has begun, and waits for a signal to continue.
    Hang(Sender<()>, Receiver<()>),
}

/// A device that follows a script, then works normally. While it is direct, it refuses reads that are not whole blocks.
struct Device {
    bytes: Vec<u8>,
    announced_len: AtomicUsize,
    script: Mutex<VecDeque<Step>>,
    direct: AtomicBool,
}

impl Device {
    fn new(len: usize, script: impl IntoIterator<Item = Step>, mode: IoMode) -> Self {
        Self {
            bytes: content(len),
            announced_len: len.into(),
            script: Mutex::new(script.into_iter().collect()),
            direct: AtomicBool::new(mode == IoMode::Direct),
        }
    }
}

impl ReadAt for Device {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).unwrap();
        let aligned = [offset, bytes.len(), bytes.as_ptr().addr()].iter().all(|place| place.is_multiple_of(BLOCK_LEN));
        let step = self.script.lock().unwrap().pop_front();
        let len_max = match step {
            Some(Step::Errno(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Step::Panic) => panic!("the device panics, as the test wants"),
            Some(Step::Hang(begun, go_on)) => {
                begun.send(()).unwrap();
                go_on.recv_timeout(PATIENCE).unwrap();
                usize::MAX
            }
            _ if self.direct.load(Ordering::SeqCst) && !aligned => return Err(io::Error::from_raw_os_error(EINVAL)),
            Some(Step::Short(len)) => len,
            None => usize::MAX,
        };
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let len = rest.len().min(bytes.len()).min(len_max);
        bytes[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    /// The first value is the length at opening, later ones are the real length.
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.announced_len.swap(self.bytes.len(), Ordering::SeqCst) as u64)
    }

    fn leave_direct(&self) -> io::Result<()> {
        self.direct.store(false, Ordering::SeqCst);
        Ok(())
    }
}

proptest! {
    #[test]
    fn any_sequence_of_short_and_interrupted_reads_yields_the_right_bytes(
        direct in any::<bool>(),
        steps in prop::collection::vec(prop_oneof![
            (1usize..6000).prop_map(Step::Short),
            (1usize..4).prop_map(|blocks| Step::Short(blocks * BLOCK_LEN)),
            Just(Step::Errno(rustix::io::Errno::INTR.raw_os_error())),
        ], 0..12),
        (offset, len) in (0usize..30_000).prop_flat_map(|offset| (Just(offset), 1..=30_000 - offset)),
    ) {
        let mode = if direct { IoMode::Direct } else { IoMode::Buffered };
        for make in ENGINES {
            let source = source(Device::new(30_000, steps.clone(), mode), mode);
            let filled = complete_one(make, &source, offset as u64, len).unwrap();
            prop_assert_eq!(filled, &content(30_000)[offset..offset + len]);
        }
    }
}

#[test]
fn a_direct_read_cut_short_between_blocks_stays_direct_and_inside_a_block_does_not_loop() {
    for make in ENGINES {
        for (cut, falls_back) in [(4096, false), (5000, false), (100, true)] {
            let script = (0..3).map(|_| Step::Short(cut));
            let source = source(Device::new(30_000, script, IoMode::Direct), IoMode::Direct);
            let bytes = complete_one(make, &source, 10, 25_000).unwrap();
            assert_eq!(bytes, content(30_000)[10..25_010], "{cut}");
            assert_eq!(source.fell_back(), falls_back, "{cut}");
        }
    }
}

#[test]
fn an_io_error_names_path_range_and_offset_and_keeps_its_cause() {
    for make in ENGINES {
        let script = [Step::Short(8192), Step::Errno(EIO)];
        let source = source(Device::new(30_000, script, IoMode::Direct), IoMode::Direct);
        let failed = complete_one(make, &source, 5000, 20_000).unwrap_err();
        assert_eq!(failed.error.to_string(), "device.seg: cannot read bytes 5000..25000, failed at 12288");
        assert_eq!(cause(&failed.error).raw_os_error(), Some(EIO));
        assert!(!source.fell_back(), "a bad block is no reason to");
    }
}

#[test]
fn a_refused_direct_read_is_done_buffered_and_the_file_reports_it() {
    for make in ENGINES {
        let source = source(Device::new(30_000, [Step::Errno(EINVAL)], IoMode::Direct), IoMode::Direct);
        assert!(!source.fell_back());
        let bytes = complete_one(make, &source, 5000, 20_000).unwrap();
        assert_eq!(bytes, content(30_000)[5000..25_000]);
        assert!(source.fell_back());
        assert_eq!(source.mode(), IoMode::Buffered);
        assert_eq!(source.buffer_len(5000, 20_000), 20_000, "nothing is widened any more");
    }
}

#[test]
fn a_refused_buffered_read_is_an_error_and_is_not_tried_again() {
    for make in ENGINES {
        let source = source(Device::new(30_000, [Step::Errno(EINVAL)], IoMode::Buffered), IoMode::Buffered);
        let failed = complete_one(make, &source, 0, 100).unwrap_err();
        assert_eq!(cause(&failed.error).raw_os_error(), Some(EINVAL));
        assert!(!source.fell_back());
    }
}

#[test]
fn a_truncated_file_is_an_error_that_reports_its_new_end() {
    for make in ENGINES {
        for mode in [IoMode::Direct, IoMode::Buffered] {
            for (offset, len) in [(0, 9000), (4999, 2), (6000, 100), (8192, 100)] {
                let device = Device { announced_len: 9000.into(), ..Device::new(5000, [], mode) };
                let source = source(device, mode);
                let failed = complete_one(make, &source, offset, len).unwrap_err();
                let expected = format!("device.seg: file ends at 5000, wanted bytes {offset}..{}", offset + len as u64);
                assert_eq!(failed.error.to_string(), expected, "{mode:?}");
                assert!(!source.fell_back());
            }
        }
    }
}

#[test]
fn a_slow_read_does_not_hold_back_a_later_one() {
    let ((begun, has_begun), (go_on, waits)) = (bounded(1), bounded(1));
    let slow = source(Device::new(100, [Step::Hang(begun, waits)], IoMode::Buffered), IoMode::Buffered);
    let quick = source(Device::new(100, [], IoMode::Buffered), IoMode::Buffered);
    let mut engine = pread_engine();
    engine.submit(request(&slow, 0, 100, 1)).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    engine.submit(request(&quick, 0, 100, 2)).unwrap();
    assert_eq!(wait_for_one(engine.as_mut()).token, 2);
    assert_eq!(engine.in_flight(), 1);
    let mut out = Vec::new();
    engine.complete(Wait::Within { count: 1, timeout: Duration::from_millis(1) }, &mut out).unwrap();
    assert!(out.is_empty() && engine.in_flight() == 1, "waiting has an end");
    go_on.send(()).unwrap();
    assert_eq!(wait_for_one(engine.as_mut()).token, 1);
}

#[test]
fn a_panic_while_reading_fails_its_request_and_no_other() {
    for make in [pread_engine_of_one, uring_engine] {
        let bad = source(Device::new(100, [Step::Panic], IoMode::Buffered), IoMode::Buffered);
        let mut engine = make();
        engine.submit(request(&bad, 10, 20, 1)).unwrap();
        let failed = wait_for_one(engine.as_mut()).result.unwrap_err();
        assert_eq!(failed.error.to_string(), "device.seg: reading bytes 10..30 panicked");
        assert_eq!(failed.buffer.capacity(), 4096);
        engine.submit(request(&bad, 30, 40, 2)).unwrap();
        assert_eq!(wait_for_one(engine.as_mut()).result.unwrap().bytes(), &content(100)[30..70]);
    }
}

#[test]
fn dropping_waits_for_the_read_that_has_begun_and_drops_the_queued_ones_unread() {
    let ((begun, has_begun), (go_on, waits)) = (bounded(1), bounded(1));
    let slow = source(Device::new(100, [Step::Hang(begun, waits.clone())], IoMode::Buffered), IoMode::Buffered);
    let (queued_begun, queued_has_begun) = bounded(1);
    let queued = source(Device::new(100, [Step::Hang(queued_begun, waits)], IoMode::Buffered), IoMode::Buffered);
    let mut engine = PreadEngine::new(NonZeroUsize::MIN).unwrap();
    engine.submit(request(&slow, 0, 100, 0)).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    (1..100).for_each(|token| engine.submit(request(&queued, 0, 100, token)).unwrap());
    drop(queued);
    let dropping = thread::spawn(move || drop(engine));
    // The device was dropped with the last of its requests, and never reported that a read had begun.
    assert_eq!(queued_has_begun.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    assert_eq!(Arc::strong_count(&slow), 2, "the running read keeps its file");
    go_on.send(()).unwrap();
    dropping.join().unwrap();
    assert_eq!(Arc::strong_count(&slow), 1);
}

/// An engine of one thread: if it can still read, its thread is alive.
fn pread_engine_of_one() -> Box<dyn Engine> {
    Box::new(PreadEngine::new(NonZeroUsize::MIN).unwrap())
}

fn source(device: Device, mode: IoMode) -> Arc<OpenFile> {
    Arc::new(OpenFile::from_reader("device.seg", device, mode).unwrap())
}
