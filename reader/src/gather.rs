//! Reads a set of samples at once: each once, neighbours with one read, results in the order of the request.
//!
//! All reads are submitted to the engine before any is waited for, as far as memory allows. Small ones go to one piece
//! of staging memory and are copied; a large raw sample that is read by itself goes straight to the batch.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use crate::ReadError;
use crate::batch::Batch;
use crate::batch_builder::{BatchBuilder, LocatedSample, is_in_place, judge};
use crate::batch_len::check_lists;
use crate::byte_range::ByteRange;
use crate::check::{self, CheckTimes};
use crate::engine::{Buffer, BufferPool, Completion, Engine, Failed, Filled, HUGE_LEN, IoMode};
use crate::engine_pool::EnginePool;
use crate::open_files::OpenFiles;
use crate::read_timeout::ReadTimeout;

/// Neighbours are joined up to this length: longer reads are no faster, and several shorter ones run in parallel.
const JOINED_LEN_MAX: u64 = 1 << 20;
/// From this many reads on, they share a huge page.
const MANY: usize = 16;
/// Bytes that are read at a time into staging memory: a batch needs no more memory than itself and this.
const ROUND_LEN_MAX: u64 = 32 << 20;

/// What reading needs.
pub(crate) struct Gather<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) open_files: &'a OpenFiles,
    pub(crate) engines: &'a EnginePool,
    pub(crate) pool: &'a Arc<BufferPool>,
    pub(crate) timeout: &'a ReadTimeout,
}

/// A read, and which of the wanted samples it contains.
struct SharedRead {
    range: ByteRange,
    wanted: Range<usize>,
}

/// What the reads have brought so far.
struct Arrivals<'a> {
    dataset: &'a Collection,
    open_files: &'a OpenFiles,
    builder: &'a mut BatchBuilder,
    /// The first failure, by ordinal: the error is the same whatever the order in which reads arrive.
    failed: Option<(u64, ReadError)>,
}

impl Gather<'_> {
    /// The samples of `ordinals`, in this order.
    pub(crate) fn batch(&self, ordinals: &[u64]) -> Result<Batch, ReadError> {
        check_lists(ordinals.len() as u64)?;
        let mut distinct = ordinals.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut locations = Vec::new();
        self.dataset.locate_batch(&distinct, &mut locations)?;
        let samples =
            distinct.into_iter().zip(locations).map(|(ordinal, location)| LocatedSample { ordinal, location });
        let samples: Vec<LocatedSample> = samples.collect();
        let reads = coalesce(&samples);
        let in_place_len_min = self.open_files.in_place_len_min();
        let mut singles = reads.iter().filter(|read| read.wanted.len() == 1).map(|read| read.wanted.start).peekable();
        let in_place = |index: usize, sample: &LocatedSample| {
            while singles.next_if(|single| *single < index).is_some() {}
            singles.peek() == Some(&index) && is_in_place(&sample.location, in_place_len_min)
        };
        let mut builder = BatchBuilder::new(samples, Arc::clone(self.pool), in_place)?;
        if !reads.is_empty() {
            self.engines.lend(|engine| self.read(engine, &reads, &mut builder))?;
        }
        Ok(builder.finish_as(self.dataset, ordinals.to_vec()))
    }

    /// Does all reads, a round at a time. If one fails, the others are still done.
    fn read(&self, engine: &mut dyn Engine, reads: &[SharedRead], builder: &mut BatchBuilder) -> Result<(), ReadError> {
        let mut arrivals = Arrivals { dataset: self.dataset, open_files: self.open_files, builder, failed: None };
        if let Some(memory) = arrivals.builder.memory() {
            engine.register(memory);
        }
        let mut start = 0;
        while start < reads.len() {
            let end = start + self.round_len(&reads[start..]);
            self.round(engine, &reads[start..end], &mut arrivals)?;
            start = end;
        }
        arrivals.failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Number of reads that are done together.
    fn round_len(&self, reads: &[SharedRead]) -> usize {
        let mut len = 0;
        let within = |read: &&SharedRead| {
            len += read.range.blocks_len();
            len <= ROUND_LEN_MAX
        };
        reads.iter().take(self.open_files.requests_max()).take_while(within).count().max(1)
    }

    fn round(
        &self,
        engine: &mut dyn Engine,
        reads: &[SharedRead],
        arrivals: &mut Arrivals<'_>,
    ) -> Result<(), ReadError> {
        let mut staging = self.staging(reads, arrivals.builder)?;
        if self.pool.keeps(staging.capacity()) {
            engine.register(&staging);
        }
        let mut used = ReturnedParts::new(reads.len());
        let mut is_missing = vec![false; reads.len()];
        for (number, read) in reads.iter().enumerate() {
            match self.submit(engine, number, read, arrivals.builder, &mut staging) {
                Ok(()) => is_missing[number] = true,
                Err(ReadError::Engine(error)) => return Err(error.into()),
                Err(error) => arrivals.fail(read, error),
            }
        }
        let mut completions = Vec::new();
        while engine.in_flight() > 0 {
            let first = reads.iter().zip(&is_missing).find(|(_, is_missing)| **is_missing);
            let needed = || first.map_or_else(Default::default, |(read, _)| read.range.shown(self.dataset));
            let count = engine.in_flight();
            self.timeout.wait(engine, count, &mut completions, needed)?;
            for Completion { token, result } in completions.drain(..) {
                let number = to_usize(token);
                is_missing[number] = false;
                used.put(number, arrivals.take(&reads[number], result));
            }
        }
        self.pool.give(used.joined(staging));
        Ok(())
    }

    /// Memory for all reads that do not go straight into the batch.
    fn staging(&self, reads: &[SharedRead], builder: &BatchBuilder) -> Result<Buffer, ReadError> {
        if self.open_files.mode() == IoMode::Mapped {
            return Ok(Buffer::with_capacity(0));
        }
        let staged = reads.iter().filter(|read| !builder.has_slot(read.wanted.start));
        let len = to_usize(staged.map(|read| read.range.blocks_len()).sum());
        // One huge page for many small reads.
        let len = if reads.len() >= MANY { len.max(HUGE_LEN) } else { len };
        self.pool.try_take(len).ok_or(ReadError::NoMemory { len: len as u64 })
    }

    fn submit(
        &self,
        engine: &mut dyn Engine,
        number: usize,
        read: &SharedRead,
        builder: &mut BatchBuilder,
        staging: &mut Buffer,
    ) -> Result<(), ReadError> {
        let file = self.open_files.of(read.range.segment)?;
        let slot = builder.lend_slot(read.wanted.start);
        let request = read.range.request(file, number as u64, |len| match slot {
            Some(slot) => Ok(slot),
            // There is no staging memory for mapped files, and this one could not be mapped.
            None if len > staging.capacity() => {
                Buffer::try_with_capacity(len).ok_or(ReadError::NoMemory { len: len as u64 })
            }
            None => {
                let rest = staging.split_off(len);
                Ok(mem::replace(staging, rest))
            }
        })?;
        Ok(engine.submit(request)?)
    }
}

impl Arrivals<'_> {
    /// Checks and copies what a read brought. Returns the buffer, unless it belongs to the batch.
    fn take(&mut self, read: &SharedRead, result: Result<Filled, Failed>) -> Option<Buffer> {
        let filled = match result {
            Ok(filled) => filled,
            Err(Failed { error, buffer }) => {
                let ordinal = self.builder.samples()[read.wanted.start].ordinal;
                self.fail(read, ReadError::unreadable(self.dataset, ordinal, error));
                return Some(buffer).filter(|_| !self.builder.has_slot(read.wanted.start));
            }
        };
        if self.builder.has_slot(read.wanted.start) {
            self.builder.fill_slot(read.wanted.start, filled);
            self.check(read, |_| &[]);
            return None;
        }
        self.check(read, |location| read.range.stored(&filled, location));
        Some(filled.into_buffer())
    }

    fn check<'f>(&mut self, read: &SharedRead, stored: impl Fn(&Location) -> &'f [u8]) {
        let mut checks = self.builder.checks(read.wanted.clone(), |_, sample| stored(&sample.location));
        for (index, wrong) in check::run(&mut checks, &mut CheckTimes::default()) {
            let index = read.wanted.start + index;
            if let Err(error) = judge(self.builder, index, &wrong, (self.dataset, self.open_files)) {
                self.note(self.builder.samples()[index].ordinal, error);
            }
        }
    }

    fn fail(&mut self, read: &SharedRead, error: ReadError) {
        self.note(self.builder.samples()[read.wanted.start].ordinal, error);
    }

    fn note(&mut self, ordinal: u64, error: ReadError) {
        if self.failed.as_ref().is_none_or(|(first, _)| ordinal < *first) {
            self.failed = Some((ordinal, error));
        }
    }
}

/// The parts of the staging memory that have come back, by the number of their read.
struct ReturnedParts(Vec<Option<Buffer>>);

impl ReturnedParts {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| None).collect())
    }

    fn put(&mut self, number: usize, buffer: Option<Buffer>) {
        self.0[number] = buffer;
    }

    /// One buffer of all parts and what was not used; parts that are missing end it.
    fn joined(self, rest: Buffer) -> Buffer {
        let mut parts = self.0.into_iter().flatten().chain([rest]);
        let first = parts.next().unwrap_or_else(|| Buffer::with_capacity(0));
        parts.fold(first, |head, part| head.join(part).unwrap_or_else(|(head, _)| head))
    }
}

/// Joins samples that are close to each other; `wanted` ascends by ordinal, so by offset.
fn coalesce(wanted: &[LocatedSample]) -> Vec<SharedRead> {
    let mut reads: Vec<SharedRead> = Vec::new();
    for (index, LocatedSample { location, .. }) in wanted.iter().enumerate() {
        let range = ByteRange::of_sample(location);
        if let Some(read) = reads.last_mut() {
            // An index that is not loaded has not been checked as a whole: a sample may begin before the range's end.
            if let Some(joined) = read.range.joined(&range).filter(|joined| joined.len <= JOINED_LEN_MAX) {
                read.range = joined;
                read.wanted.end = index + 1;
                continue;
            }
        }
        reads.push(SharedRead { range, wanted: index..index + 1 });
    }
    reads
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use grainstore_store::Encoding;
    use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

    use super::*;
    use crate::engine::{EngineError, EngineStats, IoMode, ReadRequest, Wait, read_now};
    use crate::engine_choice::EngineChoice;
    use crate::engine_pool::EngineSpec;
    use crate::open_files::Opening;

    /// Performs every read at once except one, which never completes.
    struct Losing {
        done: Vec<Completion>,
        lost: u64,
    }

    impl Engine for Losing {
        fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
            if request.token != self.lost {
                self.done.push(read_now(request));
            }
            Ok(())
        }

        fn complete(&mut self, _wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
            out.append(&mut self.done);
            Ok(())
        }

        fn in_flight(&self) -> usize {
            self.done.len() + 1
        }

        fn stats(&self) -> EngineStats {
            EngineStats::default()
        }

        fn name(&self) -> &'static str {
            "losing"
        }
    }

    #[test]
    fn a_read_that_never_completes_is_reported_with_its_byte_range() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made");
        let mut writer = DatasetWriter::create(&path, WriterOptions::default()).unwrap();
        for i in 0..20 {
            writer.write(Sample::new(format!("{i}"), vec![i; 5000])).unwrap();
        }
        writer.finish().unwrap();
        let dataset = Collection::from(grainstore_store::Dataset::open(&path).unwrap());
        let (mode, choice, threads) = (IoMode::Buffered, EngineChoice::Pread, NonZeroUsize::MIN);
        let gather = Gather {
            dataset: &dataset,
            open_files: &OpenFiles::new(dataset.clone(), Opening { mode, dont_cache: false, must_map: false }),
            engines: &EnginePool::new(EngineSpec { mode, choice, threads, queue_len: 1 }).unwrap(),
            pool: &Arc::new(BufferPool::new(1 << 20)),
            timeout: &ReadTimeout::new(Duration::from_millis(20)),
        };
        // The samples are too far from each other to be read together.
        let locate = |ordinal| LocatedSample { ordinal, location: dataset.locate(ordinal).unwrap() };
        let located: Vec<LocatedSample> = (0..20).step_by(2).map(locate).collect();
        for lost in [0, 3, 9] {
            let mut builder = BatchBuilder::new(located.clone(), Arc::clone(gather.pool), |_, _| false).unwrap();
            let mut engine = Losing { done: Vec::new(), lost };
            let error = gather.read(&mut engine, &coalesce(&located), &mut builder).unwrap_err();
            let ReadError::Stalled { range, .. } = error else { panic!("{error}") };
            let Location { offset, stored_len, .. } = located[to_usize(lost)].location;
            assert_eq!(range, offset..offset + stored_len);
        }
    }

    fn ranges(samples: &[(usize, u64, u64)]) -> Vec<(u64, u64, usize)> {
        let wanted = samples.iter().zip(0..).map(|(&(segment, offset, stored_len), ordinal)| LocatedSample {
            ordinal,
            location: Location { segment, offset, stored_len, crc: 0, encoding: Encoding::Raw },
        });
        let reads = coalesce(&wanted.collect::<Vec<_>>());
        reads.iter().map(|read| (read.range.offset, read.range.len, read.wanted.len())).collect()
    }

    #[test]
    fn neighbours_and_small_gaps_are_one_read() {
        assert_eq!(ranges(&[(0, 4096, 10), (0, 4106, 0), (0, 4106, 5)]), [(4096, 15, 3)]);
        assert_eq!(ranges(&[(0, 0, 10), (0, 10 + 4096, 5)]), [(0, 4111, 2)]);
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn a_wide_gap_another_segment_and_a_long_read_are_not_joined() {
        assert_eq!(ranges(&[(0, 0, 10), (0, 10 + 4097, 5)]), [(0, 10, 1), (4107, 5, 1)]);
        assert_eq!(ranges(&[(0, 0, 10), (1, 10, 5)]), [(0, 10, 1), (10, 5, 1)]);
        assert_eq!(ranges(&[(0, 0, 1 << 20), (0, 1 << 20, 1)]), [(0, 1 << 20, 1), (1 << 20, 1, 1)]);
    }

    #[test]
    fn samples_that_overlap_in_a_damaged_index_are_read_separately() {
        assert_eq!(
            ranges(&[(0, 100, 50), (0, 120, 5), (0, u64::MAX, 9)]),
            [(100, 50, 1), (120, 5, 1), (u64::MAX, 9, 1)]
        );
    }
}
