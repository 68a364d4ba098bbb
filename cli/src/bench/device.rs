//! What the device can do: random reads straight through an engine, with a fixed number in flight, for a fixed time.
//!
//! Every read in flight has its own buffer, which takes the next read as soon as the last one is done. Nothing is
//! checked or copied, and engine and memory are those of the reader: a reader can reach what this measures. `fio`
//! reaches the same if its memory is on huge pages too.
//!
//! One read at a time is done in this thread, without an engine, as the reader does it.

use std::time::Duration;

use anyhow::anyhow;
use grainstore_format::{SplitMix64, to_usize};
use grainstore_reader::engine::{BLOCK_LEN, Buffer, Completion, Engine, HUGE_LEN, ReadRequest, Wait, read_now};

use super::area::{Area, RandomRead};
use super::pages::{HugePages, addresses};
use super::work::{ReadWork, Watch};
use crate::interrupt::check_interrupt;

/// The engine name reported for reads in this thread.
const ALONE: &str = "pread";

/// The load that a device is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Bytes per read, a multiple of the block size.
    pub(crate) request_len: u64,
    /// Reads in flight.
    pub(crate) depth: usize,
    /// Seed of the offsets.
    pub(crate) seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceWork {
    /// Reads and their bytes.
    pub(crate) work: ReadWork,
    /// The kind of pages that the buffers were on.
    pub(crate) memory: HugePages,
    /// The engine's name.
    pub(crate) engine: &'static str,
    /// What the user should know about the engine, as sentences.
    pub(crate) remarks: Vec<String>,
}

/// Keeps `load.depth` random reads in flight until `limit` is over, and counts the reads that were done by then, at
/// least one. The measured time does not include waiting for what is still in flight at the end.
///
/// It wakes up for every read and takes all that are done by then, as `fio` does. Waiting for several at once costs
/// less CPU time, but leaves the device with less to do, and does not reach a higher rate.
///
/// # Errors
/// If a read fails, there is no memory, or the user wants to stop.
pub(crate) fn measure(engine: &mut dyn Engine, area: &Area, load: Load, limit: Duration) -> anyhow::Result<DeviceWork> {
    let buffers = buffers(load)?;
    if let Some(buffer) = buffers.first() {
        engine.register(buffer);
    }
    let memory = addresses(&buffers);
    let mut reads = Reads::new(area, load);
    let watch = Watch::start();
    for (buffer, token) in buffers.into_iter().zip(0..) {
        reads.next(buffer, token).map_or(Ok(()), |read| engine.submit(read))?;
    }
    let mut completions = Vec::new();
    let mut done = ReadWork::default();
    while engine.in_flight() > 0 && (done.requests == 0 || watch.elapsed() < limit) {
        check_interrupt()?;
        engine.complete(Wait::One, &mut completions)?;
        for completion in completions.drain(..) {
            let token = completion.token;
            let buffer = counted(completion, &mut done)?;
            reads.next(buffer, token).map_or(Ok(()), |read| engine.submit(read))?;
        }
    }
    let work = watch.work_of_reads(done);
    Ok(DeviceWork { work, memory: HugePages::under(&memory), engine: engine.name(), remarks: engine.remarks() })
}

/// Like [`measure`], but one read after the other in this thread.
///
/// # Errors
/// As [`measure`].
pub(crate) fn measure_alone(area: &Area, load: Load, limit: Duration) -> anyhow::Result<DeviceWork> {
    let buffers = buffers(Load { depth: 1, ..load })?;
    let memory = addresses(&buffers);
    let mut reads = Reads::new(area, load);
    let mut next = buffers.into_iter().next().and_then(|buffer| reads.next(buffer, 0));
    let watch = Watch::start();
    let mut done = ReadWork::default();
    while let Some(read) = next.filter(|_| done.requests == 0 || watch.elapsed() < limit) {
        check_interrupt()?;
        let buffer = counted(read_now(read), &mut done)?;
        next = reads.next(buffer, 0);
    }
    let work = watch.work_of_reads(done);
    Ok(DeviceWork { work, memory: HugePages::under(&memory), engine: ALONE, remarks: Vec::new() })
}

/// An endless sequence of random reads.
struct Reads<'a> {
    area: &'a Area,
    len: u64,
    random: SplitMix64,
}

impl<'a> Reads<'a> {
    fn new(area: &'a Area, load: Load) -> Self {
        Self { area, len: load.request_len, random: SplitMix64::new(load.seed) }
    }

    /// `None` if there is nothing to read.
    fn next(&mut self, buffer: Buffer, token: u64) -> Option<ReadRequest> {
        let RandomRead { file, offset, len } = self.area.draw(self.len, &mut self.random)?;
        Some(ReadRequest { file, offset, len: to_usize(len), buffer, token })
    }
}

/// One buffer for each read in flight, all cut from one slab, as the reader does it.
fn buffers(load: Load) -> anyhow::Result<Vec<Buffer>> {
    let len = to_usize(load.request_len).next_multiple_of(BLOCK_LEN);
    let slab_len = len.saturating_mul(load.depth).next_multiple_of(HUGE_LEN);
    let mut slab = Buffer::try_slab(slab_len).ok_or_else(|| anyhow!("no memory for {slab_len} bytes at once"))?;
    let mut cut = || {
        let rest = slab.split_off(len);
        std::mem::replace(&mut slab, rest)
    };
    Ok((0..load.depth).map(|_| cut()).collect())
}

/// Counts a read, and makes its buffer free again.
fn counted(completion: Completion, done: &mut ReadWork) -> anyhow::Result<Buffer> {
    let filled = completion.result.map_err(|failed| failed.error)?;
    done.requests += 1;
    done.read_bytes += filled.bytes().len() as u64;
    Ok(filled.into_buffer())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use grainstore_reader::engine::PreadEngine;

    use super::super::area::tests::files;
    use super::*;

    fn run(area: &Area, request_len: u64, depth: usize) -> ReadWork {
        let mut engine = PreadEngine::new(NonZeroUsize::MIN).unwrap();
        measure(&mut engine, area, load(request_len, depth), Duration::ZERO).unwrap().work
    }

    fn load(request_len: u64, depth: usize) -> Load {
        Load { request_len, depth, seed: 1 }
    }

    #[test]
    fn every_read_is_of_the_length_asked_for_and_one_is_done_however_short_the_time() {
        let (_folder, area) = files(&[100_000]);
        let alone = measure_alone(&area, load(8192, 1), Duration::ZERO).unwrap();
        assert_eq!((alone.work.requests, alone.engine), (1, "pread"));
        for work in [run(&area, 8192, 4), alone.work] {
            assert!(work.requests >= 1);
            assert_eq!(work.read_bytes, work.requests * 8192);
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_a_read_is_read_whole() {
        let (_folder, area) = files(&[5000]);
        let work = run(&area, 8192, 1);
        assert_eq!(work.read_bytes, work.requests * 5000);
    }

    #[test]
    fn no_bytes_are_no_reads() {
        assert_eq!(run(&files(&[]).1, 4096, 3).requests, 0);
        assert_eq!(measure_alone(&files(&[0, 0]).1, load(4096, 1), Duration::ZERO).unwrap().work.requests, 0);
    }

    #[test]
    fn buffers_are_neighbours_in_one_slab_and_begin_where_a_huge_page_does() {
        let buffers = buffers(load(8192, 3)).unwrap();
        assert_eq!(buffers.iter().map(Buffer::capacity).collect::<Vec<_>>(), [8192; 3]);
        assert!(buffers[0].touches(&buffers[1]) && buffers[1].touches(&buffers[2]));
        assert_eq!(buffers[0].as_slice().as_ptr().addr() % HUGE_LEN, 0);
    }
}
