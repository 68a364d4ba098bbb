//! Reads a set of samples at once: each read once, neighbours with one read, results in the order asked.

use std::ops::Range;

use grainstore_format::to_usize;
use grainstore_store::{Dataset, Location};

use crate::batch::{Batch, BatchBuilder};
use crate::engine::{BufferPool, Completion, Engine, Wait};
use crate::engines::{Engines, Width};
use crate::run::{Run, check_memory};
use crate::sources::Sources;
use crate::{ReadError, Sample};

/// A gap between samples that is read over rather than around: about what a device reads anyway.
const GAP_LEN_MAX: u64 = 4 << 10;
/// Neighbours are joined up to this length: longer reads are no faster, and shorter ones run beside each other.
const JOINED_LEN_MAX: u64 = 1 << 20;
/// Bytes in flight. Enough for any device, and a batch needs no more memory than itself and this.
const IN_FLIGHT_LEN_MAX: u64 = 64 << 20;

/// What reading needs.
pub(crate) struct Gather<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) sources: &'a Sources,
    pub(crate) engines: &'a Engines,
    pub(crate) pool: &'a BufferPool,
}

/// A sample to be read.
struct Wanted {
    ordinal: u64,
    location: Location,
}

/// A run, and which of the wanted samples it brings.
struct Share {
    run: Run,
    wanted: Range<usize>,
}

/// Samples that have arrived, and the first one, by ordinal, that did not.
struct Arrived<'a> {
    builder: BatchBuilder<'a>,
    views: Vec<Range<usize>>,
    failed: Option<(u64, ReadError)>,
}

impl<'a> Gather<'a> {
    /// The samples of `ordinals`, in this order.
    pub(crate) fn batch(&self, ordinals: &[u64]) -> Result<Batch, ReadError> {
        let (wanted, Arrived { builder, views, .. }) = self.fetch(ordinals)?;
        // Each of them is there: `fetch` made `wanted` of them.
        let place = |ordinal: &u64| wanted.partition_point(|wanted| wanted.ordinal < *ordinal);
        let views = ordinals.iter().map(|ordinal| views[place(ordinal)].clone()).collect();
        Ok(builder.finish(ordinals.to_vec(), views, None))
    }

    /// One sample.
    pub(crate) fn sample(&self, ordinal: u64) -> Result<Sample, ReadError> {
        let (_, arrived) = self.fetch(&[ordinal])?;
        Sample::new(self.dataset, ordinal, arrived.builder.into_payload())
    }

    fn fetch(&self, ordinals: &[u64]) -> Result<(Vec<Wanted>, Arrived<'a>), ReadError> {
        let mut distinct = ordinals.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let wanted =
            distinct.into_iter().map(|ordinal| Ok(Wanted { ordinal, location: self.dataset.locate(ordinal)? }));
        let wanted: Vec<Wanted> = wanted.collect::<Result<_, ReadError>>()?;
        let shares = coalesce(&wanted);
        let builder = BatchBuilder::with_room_for(self.dataset, wanted.iter().map(|wanted| &wanted.location))?;
        let arrived = Arrived { builder, views: vec![0..0; wanted.len()], failed: None };
        let width = if shares.len() == 1 { Width::Single } else { Width::Wide };
        let mut arrived = match shares.len() {
            0 => arrived,
            _ => self.engines.lend(width, |engine| self.read(engine, &shares, &wanted, arrived))?,
        };
        match arrived.failed.take() {
            Some((_, error)) => Err(error),
            None => Ok((wanted, arrived)),
        }
    }

    /// Reads all shares. What fails does not keep the others from being read, so that the error told is the same
    /// whatever the order in which they arrive.
    fn read(
        &self,
        engine: &mut dyn Engine,
        shares: &[Share],
        wanted: &[Wanted],
        mut arrived: Arrived<'a>,
    ) -> Result<Arrived<'a>, ReadError> {
        let requests_max = self.sources.requests_max();
        let mut completions = Vec::new();
        let (mut next, mut in_flight_len) = (0, 0_u64);
        while next < shares.len() || engine.in_flight() > 0 {
            while let Some(share) = shares.get(next) {
                let fits = in_flight_len + share.run.len <= IN_FLIGHT_LEN_MAX && engine.in_flight() < requests_max;
                if !fits && engine.in_flight() > 0 {
                    break;
                }
                match self.submit(engine, next, share) {
                    Ok(()) => in_flight_len += share.run.len,
                    Err(ReadError::Engine(error)) => return Err(error.into()),
                    Err(error) => arrived.fail(wanted[share.wanted.start].ordinal, error),
                }
                next += 1;
            }
            engine.complete(Wait::One, &mut completions)?;
            for Completion { token, result } in completions.drain(..) {
                let share = &shares[to_usize(token)];
                in_flight_len -= share.run.len;
                match result {
                    Ok(filled) => {
                        arrived.take(share, wanted, &filled);
                        self.pool.give(filled.into_buffer());
                    }
                    Err(failed) => {
                        let ordinal = wanted[share.wanted.start].ordinal;
                        arrived.fail(ordinal, ReadError::unreadable(self.dataset, ordinal, failed.error));
                        self.pool.give(failed.buffer);
                    }
                }
            }
        }
        Ok(arrived)
    }

    fn submit(&self, engine: &mut dyn Engine, number: usize, share: &Share) -> Result<(), ReadError> {
        let source = self.sources.of(share.run.segment)?;
        let request = share.run.request(source, number as u64, |len| {
            check_memory(len)?;
            Ok(self.pool.take(len))
        })?;
        Ok(engine.submit(request)?)
    }
}

impl Arrived<'_> {
    fn take(&mut self, share: &Share, wanted: &[Wanted], filled: &crate::engine::Filled) {
        for index in share.wanted.clone() {
            let Wanted { ordinal, location } = &wanted[index];
            match self.builder.push(*ordinal, location, share.run.stored(filled, location)) {
                Ok(view) => self.views[index] = view,
                Err(error) => self.fail(*ordinal, error),
            }
        }
    }

    fn fail(&mut self, ordinal: u64, error: ReadError) {
        if self.failed.as_ref().is_none_or(|(first, _)| ordinal < *first) {
            self.failed = Some((ordinal, error));
        }
    }
}

/// Joins samples that lie close to each other; `wanted` ascends by ordinal, so by place.
fn coalesce(wanted: &[Wanted]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for (index, Wanted { location, .. }) in wanted.iter().enumerate() {
        match shares.last_mut() {
            Some(share) if joins(&share.run, location) => {
                share.run.extend_to(location);
                share.wanted.end = index + 1;
            }
            _ => shares.push(Share { run: Run::of_sample(location), wanted: index..index + 1 }),
        }
    }
    shares
}

fn joins(run: &Run, location: &Location) -> bool {
    // An index that is not loaded has not been checked as a whole: a sample may lie before the run's end.
    let gap = location.offset.checked_sub(run.end());
    let joined_len = Run::of_sample(location).end().saturating_sub(run.offset);
    run.segment == location.segment && gap.is_some_and(|gap| gap <= GAP_LEN_MAX) && joined_len <= JOINED_LEN_MAX
}

#[cfg(test)]
mod tests {
    use grainstore_store::Encoding;

    use super::*;

    fn runs(samples: &[(usize, u64, u64)]) -> Vec<(u64, u64, usize)> {
        let wanted = samples.iter().zip(0..).map(|(&(segment, offset, stored_len), ordinal)| Wanted {
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
