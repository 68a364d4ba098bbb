//! Reads a set of samples at once: each read once, neighbours with one read, results in the order asked.
//!
//! All reads are handed to the engine before any is waited for, as far as memory allows. Small ones land in one piece
//! of staging memory and are copied; a large raw sample that is read by itself lands in the batch.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use crate::ReadError;
use crate::batch::Batch;
use crate::check::{self, CheckTimes};
use crate::draft::{Draft, Due, is_in_place};
use crate::engine::{Buffer, BufferPool, Completion, Engine, Failed, Filled, HUGE_LEN, IoMode};
use crate::engine_pool::EnginePool;
use crate::open_files::OpenFiles;
use crate::patience::Patience;
use crate::run::Run;

/// Neighbours are joined up to this length: longer reads are no faster, and shorter ones run beside each other.
const JOINED_LEN_MAX: u64 = 1 << 20;
/// So many small reads share a huge page.
const MANY: usize = 16;
/// Bytes that are read at a time into staging memory: a batch needs no more memory than itself and this.
const ROUND_LEN_MAX: u64 = 32 << 20;

/// What reading needs.
pub(crate) struct Gather<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) open_files: &'a OpenFiles,
    pub(crate) engines: &'a EnginePool,
    pub(crate) pool: &'a Arc<BufferPool>,
    pub(crate) patience: &'a Patience,
}

/// A run, and which of the wanted samples it brings.
struct Share {
    run: Run,
    wanted: Range<usize>,
}

/// What has come of the shares so far.
struct Arrivals<'a> {
    dataset: &'a Collection,
    draft: &'a mut Draft,
    /// The first failure, by ordinal: the error told is the same whatever the order in which reads arrive.
    failed: Option<(u64, ReadError)>,
}

impl Gather<'_> {
    /// The samples of `ordinals`, in this order.
    pub(crate) fn batch(&self, ordinals: &[u64]) -> Result<Batch, ReadError> {
        let mut distinct = ordinals.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut locations = Vec::new();
        self.dataset.locate_batch(&distinct, &mut locations)?;
        let due = distinct.into_iter().zip(locations).map(|(ordinal, location)| Due { ordinal, location });
        let due: Vec<Due> = due.collect();
        let shares = coalesce(&due);
        let in_place_len_min = self.open_files.in_place_len_min();
        let mut singles =
            shares.iter().filter(|share| share.wanted.len() == 1).map(|share| share.wanted.start).peekable();
        let in_place = |sample: usize, due: &Due| {
            while singles.next_if(|single| *single < sample).is_some() {}
            singles.peek() == Some(&sample) && is_in_place(&due.location, in_place_len_min)
        };
        let mut draft = Draft::new(due, in_place, Arc::clone(self.pool))?;
        if !shares.is_empty() {
            self.engines.lend(|engine| self.read(engine, &shares, &mut draft))?;
        }
        Ok(draft.finish_as(self.dataset, ordinals.to_vec()))
    }

    /// Reads all shares, a round at a time. What fails does not keep the others from being read.
    fn read(&self, engine: &mut dyn Engine, shares: &[Share], draft: &mut Draft) -> Result<(), ReadError> {
        let mut arrivals = Arrivals { dataset: self.dataset, draft, failed: None };
        arrivals.draft.memory().into_iter().for_each(|memory| engine.register(memory));
        let mut start = 0;
        while start < shares.len() {
            let end = start + self.round_len(&shares[start..]);
            self.round(engine, &shares[start..end], &mut arrivals)?;
            start = end;
        }
        arrivals.failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Shares that are read together.
    fn round_len(&self, shares: &[Share]) -> usize {
        let mut len = 0;
        let within = |share: &&Share| {
            len += share.run.blocks_len();
            len <= ROUND_LEN_MAX
        };
        shares.iter().take(self.open_files.requests_max()).take_while(within).count().max(1)
    }

    fn round(&self, engine: &mut dyn Engine, shares: &[Share], arrivals: &mut Arrivals<'_>) -> Result<(), ReadError> {
        let mut staging = self.staging(shares, arrivals.draft)?;
        if self.pool.keeps(staging.capacity()) {
            engine.register(&staging);
        }
        let mut used = Used::new(shares.len());
        let mut is_missing = vec![false; shares.len()];
        for (number, share) in shares.iter().enumerate() {
            match self.submit(engine, number, share, arrivals.draft, &mut staging) {
                Ok(()) => is_missing[number] = true,
                Err(ReadError::Engine(error)) => return Err(error.into()),
                Err(error) => arrivals.fail(share, error),
            }
        }
        let mut completions = Vec::new();
        while engine.in_flight() > 0 {
            let first = shares.iter().zip(&is_missing).find(|(_, is_missing)| **is_missing);
            let needed = || first.map_or_else(Default::default, |(share, _)| share.run.shown(self.dataset));
            let count = engine.in_flight();
            self.patience.wait(engine, count, &mut completions, needed)?;
            for Completion { token, result } in completions.drain(..) {
                let number = to_usize(token);
                is_missing[number] = false;
                used.put(number, arrivals.take(&shares[number], result));
            }
        }
        self.pool.give(used.joined(staging));
        Ok(())
    }

    /// Memory for all shares that do not go straight into the batch.
    fn staging(&self, shares: &[Share], draft: &Draft) -> Result<Buffer, ReadError> {
        if self.open_files.mode() == IoMode::Mapped {
            return Ok(Buffer::with_capacity(0));
        }
        let staged = shares.iter().filter(|share| !draft.has_slot(share.wanted.start));
        let len = to_usize(staged.map(|share| share.run.blocks_len()).sum());
        // One huge page for many small reads.
        let len = if shares.len() >= MANY { len.max(HUGE_LEN) } else { len };
        self.pool.try_take(len).ok_or(ReadError::NoMemory { len: len as u64 })
    }

    fn submit(
        &self,
        engine: &mut dyn Engine,
        number: usize,
        share: &Share,
        draft: &mut Draft,
        staging: &mut Buffer,
    ) -> Result<(), ReadError> {
        let source = self.open_files.of(share.run.segment)?;
        let slot = draft.lend_slot(share.wanted.start);
        let request = share.run.request(source, number as u64, |len| {
            Ok(slot.unwrap_or_else(|| {
                let rest = staging.split_off(len);
                mem::replace(staging, rest)
            }))
        })?;
        Ok(engine.submit(request)?)
    }
}

impl Arrivals<'_> {
    /// Checks and copies what a read brought. Returns the buffer, unless it is the batch's.
    fn take(&mut self, share: &Share, result: Result<Filled, Failed>) -> Option<Buffer> {
        let filled = match result {
            Ok(filled) => filled,
            Err(Failed { error, buffer }) => {
                let ordinal = self.draft.samples()[share.wanted.start].ordinal;
                self.fail(share, ReadError::unreadable(self.dataset, ordinal, error));
                return Some(buffer).filter(|_| !self.draft.has_slot(share.wanted.start));
            }
        };
        if self.draft.has_slot(share.wanted.start) {
            self.draft.fill_slot(share.wanted.start, filled);
            self.check(share, |_| &[]);
            return None;
        }
        self.check(share, |location| share.run.stored(&filled, location));
        Some(filled.into_buffer())
    }

    fn check<'f>(&mut self, share: &Share, stored: impl Fn(&Location) -> &'f [u8]) {
        let mut checks = self.draft.checks(share.wanted.clone(), |due| stored(&due.location));
        for (index, error) in check::run(&mut checks, &mut CheckTimes::default()) {
            let Due { ordinal, location } = self.draft.samples()[share.wanted.start + index];
            self.note(ordinal, ReadError::damaged(self.dataset, ordinal, &location, &error));
        }
    }

    fn fail(&mut self, share: &Share, error: ReadError) {
        self.note(self.draft.samples()[share.wanted.start].ordinal, error);
    }

    fn note(&mut self, ordinal: u64, error: ReadError) {
        if self.failed.as_ref().is_none_or(|(first, _)| ordinal < *first) {
            self.failed = Some((ordinal, error));
        }
    }
}

/// The parts of the staging memory that have come back, by the number of their read.
struct Used(Vec<Option<Buffer>>);

impl Used {
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

/// Joins samples that lie close to each other; `wanted` ascends by ordinal, so by place.
fn coalesce(wanted: &[Due]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for (index, Due { location, .. }) in wanted.iter().enumerate() {
        let run = Run::of_sample(location);
        if let Some(share) = shares.last_mut() {
            // An index that is not loaded has not been checked as a whole: a sample may lie before the run's end.
            if let Some(joined) = share.run.joined(&run).filter(|joined| joined.len <= JOINED_LEN_MAX) {
                share.run = joined;
                share.wanted.end = index + 1;
                continue;
            }
        }
        shares.push(Share { run, wanted: index..index + 1 });
    }
    shares
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

    /// Does every read but one at once, and that one never.
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
    fn a_read_that_never_comes_back_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made");
        let mut writer = DatasetWriter::create(&path, WriterOptions::default()).unwrap();
        (0..20).for_each(|i| writer.write(Sample::new(format!("{i}"), vec![i; 5000])).unwrap());
        writer.finish().unwrap();
        let dataset = Collection::from(grainstore_store::Dataset::open(&path).unwrap());
        let (mode, choice, threads) = (IoMode::Buffered, EngineChoice::Pread, NonZeroUsize::MIN);
        let gather = Gather {
            dataset: &dataset,
            open_files: &OpenFiles::new(dataset.clone(), Opening { mode, dont_cache: false }),
            engines: &EnginePool::new(EngineSpec { mode, choice, threads, queue_len: 1 }).unwrap(),
            pool: &Arc::new(BufferPool::new(1 << 20)),
            patience: &Patience::new(Duration::from_millis(20)),
        };
        // Too far from each other to be read together.
        let due = |ordinal| Due { ordinal, location: dataset.locate(ordinal).unwrap() };
        let due: Vec<Due> = (0..20).step_by(2).map(due).collect();
        for lost in [0, 3, 9] {
            let mut draft = Draft::new(due.clone(), |_, _| false, Arc::clone(gather.pool)).unwrap();
            let mut engine = Losing { done: Vec::new(), lost };
            let error = gather.read(&mut engine, &coalesce(&due), &mut draft).unwrap_err();
            let ReadError::Stalled { range, .. } = error else { panic!("{error}") };
            let Location { offset, stored_len, .. } = due[to_usize(lost)].location;
            assert_eq!(range, offset..offset + stored_len);
        }
    }

    fn runs(samples: &[(usize, u64, u64)]) -> Vec<(u64, u64, usize)> {
        let wanted = samples.iter().zip(0..).map(|(&(segment, offset, stored_len), ordinal)| Due {
            ordinal,
            location: Location { segment, offset, stored_len, crc: 0, encoding: Encoding::Raw },
        });
        let shares = coalesce(&wanted.collect::<Vec<_>>());
        shares.iter().map(|share| (share.run.offset, share.run.len, share.wanted.len())).collect()
    }

    #[test]
    fn neighbours_and_small_gaps_are_one_read() {
        assert_eq!(runs(&[(0, 4096, 10), (0, 4106, 0), (0, 4106, 5)]), [(4096, 15, 3)]);
        assert_eq!(runs(&[(0, 0, 10), (0, 10 + 4096, 5)]), [(0, 4111, 2)]);
        assert!(runs(&[]).is_empty());
    }

    #[test]
    fn a_wide_gap_another_segment_and_a_long_read_are_not_joined() {
        assert_eq!(runs(&[(0, 0, 10), (0, 10 + 4097, 5)]), [(0, 10, 1), (4107, 5, 1)]);
        assert_eq!(runs(&[(0, 0, 10), (1, 10, 5)]), [(0, 10, 1), (10, 5, 1)]);
        assert_eq!(runs(&[(0, 0, 1 << 20), (0, 1 << 20, 1)]), [(0, 1 << 20, 1), (1 << 20, 1, 1)]);
    }

    #[test]
    fn samples_that_overlap_in_a_damaged_index_are_read_apart() {
        assert_eq!(runs(&[(0, 100, 50), (0, 120, 5), (0, u64::MAX, 9)]), [(100, 50, 1), (120, 5, 1), (u64::MAX, 9, 1)]);
    }
}
