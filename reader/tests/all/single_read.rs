//! Reads without another thread: a request in the caller's thread, and bytes that are in the page cache when a request
//! is submitted.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use grainstore_format::to_usize;
use grainstore_reader::engine::{
    Buffer, Completion, Engine, Failed, Filled, IoMode, OpenFile, PreadEngine, ReadAt, ReadRequest, Wait, read_now,
};
use grainstore_reader::{IoChoice, ReadError, Reader};

use crate::common::{Made, Random, Shape};

const EIO: i32 = 5;
const LEN: usize = 30_000;

/// A device: its page cache, and the results of its reads in order (after them, each read is complete).
#[derive(Default)]
struct Device {
    cached_len: usize,
    /// The most bytes of a read, or its error.
    answers: Mutex<VecDeque<Result<usize, i32>>>,
    /// Offset and length of every read that was not served by the page cache.
    reads: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Device {
    fn answering(answers: impl IntoIterator<Item = Result<usize, i32>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }
}

fn content() -> Vec<u8> {
    Random(4).bytes(LEN)
}

fn copy(bytes: &mut [u8], offset: u64, end: usize) -> usize {
    let content = content();
    let from = content[..end].get(to_usize(offset)..).unwrap_or_default();
    let len = from.len().min(bytes.len());
    bytes[..len].copy_from_slice(&from[..len]);
    len
}

impl ReadAt for Device {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.lock().unwrap().push((offset, bytes.len()));
        let len = match self.answers.lock().unwrap().pop_front() {
            Some(Err(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Ok(len)) => len.min(bytes.len()),
            None => bytes.len(),
        };
        Ok(copy(&mut bytes[..len], offset, LEN))
    }

    fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        Ok(Some(copy(bytes, offset, self.cached_len)).filter(|&len| len > 0))
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(LEN as u64)
    }
}

fn request(device: Device, mode: IoMode, offset: u64, len: usize) -> ReadRequest {
    let source = Arc::new(OpenFile::from_reader("device.seg", device, mode).unwrap());
    let buffer = Buffer::with_capacity(source.buffer_len(offset, len));
    ReadRequest { file: source, offset, len, buffer, token: 9 }
}

/// Submits a request to an engine of one thread and returns whether it is completed without waiting.
fn submit(request: ReadRequest) -> (bool, Result<Filled, Failed>) {
    let mut engine = PreadEngine::new(NonZeroUsize::MIN).unwrap();
    // The only thread is busy with this read until it is released, so a request that needs the thread cannot complete.
    let (go_on, waits) = crossbeam_channel::bounded::<()>(0);
    engine.submit(self::request_that_hangs(waits)).unwrap();
    engine.submit(request).unwrap();
    let mut out: Vec<Completion> = Vec::new();
    engine.complete(Wait::None, &mut out).unwrap();
    let at_once = !out.is_empty();
    drop(go_on);
    engine.complete(Wait::Many(2), &mut out).unwrap();
    assert_eq!(engine.stats().request_count, 2);
    let place = out.iter().position(|completion| completion.token == 9).unwrap();
    (at_once, out.swap_remove(place).result)
}

struct Hanging(crossbeam_channel::Receiver<()>);

impl ReadAt for Hanging {
    fn read_at(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(1)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(1)
    }
}

fn request_that_hangs(waits: crossbeam_channel::Receiver<()>) -> ReadRequest {
    let source = Arc::new(OpenFile::from_reader("hanging.seg", Hanging(waits), IoMode::Buffered).unwrap());
    ReadRequest { file: source, offset: 0, len: 1, buffer: Buffer::with_capacity(1), token: 0 }
}

#[test]
fn bytes_in_the_page_cache_are_delivered_without_a_thread() {
    let device = Device { cached_len: LEN, ..Device::default() };
    let reads = Arc::clone(&device.reads);
    let (at_once, result) = submit(request(device, IoMode::Buffered, 100, 20_000));
    assert!(at_once);
    assert!(result.unwrap().bytes() == &content()[100..20_100]);
    assert!(reads.lock().unwrap().is_empty());
}

#[test]
fn a_thread_continues_where_the_page_cache_ends() {
    let device = Device { cached_len: 8192, ..Device::default() };
    let reads = Arc::clone(&device.reads);
    let (at_once, result) = submit(request(device, IoMode::Buffered, 100, 20_000));
    assert!(!at_once);
    assert!(result.unwrap().bytes() == &content()[100..20_100]);
    assert_eq!(*reads.lock().unwrap(), [(8192, 20_100 - 8192)]);
}

#[test]
fn a_direct_read_does_not_ask_the_page_cache() {
    let device = Device { cached_len: LEN, ..Device::default() };
    let (at_once, result) = submit(request(device, IoMode::Direct, 100, 20_000));
    assert!(!at_once);
    assert!(result.unwrap().bytes() == &content()[100..20_100]);
}

#[test]
fn a_request_without_an_engine_continues_after_short_and_interrupted_reads() {
    let interrupted = Err(rustix::io::Errno::INTR.raw_os_error());
    for mode in [IoMode::Buffered, IoMode::Direct] {
        let device = Device::answering([Ok(4096), interrupted, Ok(5000)]);
        let Completion { token, result } = read_now(request(device, mode, 5000, 20_000));
        assert_eq!(token, 9);
        assert!(result.unwrap().bytes() == &content()[5000..25_000], "{mode:?}");
    }
}

#[test]
fn a_device_error_in_the_middle_is_reported_with_its_offset_and_returns_the_buffer() {
    let device = Device::answering([Ok(8192), Err(EIO)]);
    let Failed { error, buffer } = read_now(request(device, IoMode::Buffered, 5000, 20_000)).result.unwrap_err();
    assert_eq!(error.to_string(), "device.seg: cannot read bytes 5000..25000, failed at 13192");
    assert!(buffer.capacity() >= 20_000);
}

fn made() -> Made {
    Shape::plain(4096, vec![1000; 400]).write()
}

fn cut(made: &Made, len: u64) {
    let file = std::fs::File::options().write(true).open(made.path().join("00000.seg")).unwrap();
    file.set_len(len).unwrap();
}

#[test]
fn a_segment_truncated_while_open_is_an_error_with_its_end_and_samples_before_it_still_read() {
    for io in [IoChoice::Buffered, IoChoice::Direct] {
        // In the middle of a block, at the edge of a block, and at the edge of a sample.
        for end in [20_000, 20_480, 4096 + 16_000, 4096] {
            let made = made();
            let reader = made.reader(io);
            made.check(&reader.get_batch(&[0, 200, 399]).unwrap());
            cut(&made, end);
            let whole = (end - 4096) / 1000;
            for ordinal in (0..whole).chain([whole, whole + 1, 399]) {
                let expected = format!("file ends at {end}, wanted bytes");
                let [single, batch] = [reader.get(ordinal).map(|_| ()), reader.get_batch(&[ordinal]).map(|_| ())];
                if ordinal < whole {
                    assert!(single.is_ok() && batch.is_ok(), "sample {ordinal} of {whole}, {io}");
                    continue;
                }
                for error in [single.unwrap_err(), batch.unwrap_err()] {
                    assert!(matches!(error, ReadError::Unreadable { ordinal: o, .. } if o == ordinal), "{error}");
                    let source = std::error::Error::source(&error).unwrap().to_string();
                    assert!(source.contains(&expected), "{source}");
                }
            }
            // In a batch all reads are waited for, and the error names a sample.
            let error = reader.get_batch(&(0..400).collect::<Vec<_>>()).unwrap_err();
            assert!(matches!(error, ReadError::Unreadable { .. }), "{error}");
        }
    }
}

/// A copy of a payload from its map.
fn copied(reader: &Reader, ordinal: u64) -> Option<Vec<u8>> {
    let mapped = reader.mapped(ordinal)?;
    let mut out = vec![MaybeUninit::new(1); to_usize(mapped.payload_len())];
    assert!(mapped.copy_to(&mut vec![MaybeUninit::new(1); out.len() + 1]).is_none(), "the length is another one");
    mapped.copy_to(&mut out).map(|copy| copy.to_vec())
}

/// The memory is reused, whatever it held; a map gives raw samples without waiting, and no other samples.
#[test]
fn payloads_are_read_into_memory_of_the_callers_and_copied_out_of_a_map() {
    let made = Shape { lz4: true, ..Shape::plain(4096, (0..200).map(|i| i * 37).collect()) }.write();
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        let (reader, mut payload) = (made.reader(io), b"of another sample".to_vec());
        let mut copied_count = 0;
        for ordinal in (0..200).rev() {
            reader.get_into(ordinal, &mut payload).unwrap();
            assert!(payload == made.payload(ordinal), "sample {ordinal}, {io}");
            let copied = copied(&reader, ordinal);
            assert!(copied.as_ref().is_none_or(|copied| *copied == payload), "sample {ordinal}, {io}");
            copied_count += u64::from(copied.is_some());
        }
        assert_eq!(copied_count > 0, io == IoChoice::Mapped, "{io}");
        assert!(reader.get_into(200, &mut payload).is_err());
        let none = copied(&reader, 200);
        assert_eq!(none, None, "what is wrong is reported by the call that reads");
    }
}

#[test]
fn a_damaged_payload_is_not_copied_out_of_a_map() {
    let made = made();
    let path = made.path().join("00000.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + 1500] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let reader = made.reader(IoChoice::Mapped);
    assert_eq!(copied(&reader, 1), None, "the index was not read yet");
    let whole = reader.get(0).unwrap();
    assert_eq!(copied(&reader, 0), Some(whole.payload));
    assert_eq!(copied(&reader, 1), None, "what is wrong is reported by the call that reads");
    let error = reader.get(1).unwrap_err();
    assert!(error.to_string().contains("sample 1 (key"), "{error}");
}

#[test]
fn many_threads_get_single_samples_from_one_reader() {
    let made = Shape { lz4: true, several_fields: true, ..Shape::plain(4096, vec![3000; 200]) }.write();
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        let reader = made.reader(io);
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let (made, reader) = (&made, &reader);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    for ordinal in (0..300).map(|_| random.below(200)) {
                        let sample = reader.get(ordinal).unwrap();
                        assert!(sample.payload == made.payload(ordinal));
                        assert_eq!(sample.fields(), made.samples[to_usize(ordinal)].fields);
                    }
                });
            }
        });
    }
}
