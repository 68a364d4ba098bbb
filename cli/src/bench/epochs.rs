//! Measures epochs, repeatedly until the time is over.
//!
//! The data that an epoch has read and not yet delivered grows at its start and shrinks at its end, so there are two
//! fair ways to measure: a whole epoch from end to end, or only its steady part. Whole epochs are measured from end to
//! end. If there was no time for a whole one, the measurement starts when every lane has started, and ends with the
//! last batch that came in time. If there was no steady part in that time, it starts with the epoch.

use std::time::{Duration, Instant};

use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, Reader};

use super::ways::{Bench, Cache, WARM_LEN};
use super::work::{ReadWork, Watch};
use crate::interrupt::check_interrupt;

/// When to stop reading an epoch.
#[derive(Clone, Copy)]
struct Stop {
    deadline: Instant,
    /// After this number of samples.
    samples: u64,
    /// After this number of payload bytes.
    payload_bytes: u64,
}

impl Stop {
    /// When the time is over.
    fn after(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit that no clock can reach is a year.
        let deadline = now.checked_add(limit).unwrap_or(now + Duration::from_secs(365 * 86_400));
        Self { deadline, samples: u64::MAX, payload_bytes: u64::MAX }
    }

    fn is_reached(&self, work: &ReadWork) -> bool {
        work.samples >= self.samples || work.payload_bytes >= self.payload_bytes || Instant::now() >= self.deadline
    }
}

/// What an epoch has delivered so far.
struct Pass {
    whole: bool,
    /// Samples delivered.
    samples: u64,
    /// The part that is measured.
    counted: ReadWork,
}

/// Reads epochs in an order for the time of the bench.
///
/// Each cold epoch starts with a cold cache and has the order of another epoch number. Warm epochs read the same
/// samples in the same order every time, limited to what was read once before.
pub(super) fn measure(bench: &Bench, reader: &Reader, order: Order, cache: Cache) -> anyhow::Result<ReadWork> {
    let epochs = Epochs { bench, reader, order };
    let mut stop = Stop::after(bench.limit);
    if cache == Cache::Warm {
        let warmed = epochs.pass(0, Stop { payload_bytes: WARM_LEN, ..stop })?;
        stop = Stop { samples: warmed.samples, ..Stop::after(bench.limit) };
    }
    let mut passes = Vec::new();
    for number in 0.. {
        passes.push(match cache {
            Cache::Warm => epochs.pass(0, stop)?,
            Cache::Cold => {
                bench.make_cold();
                epochs.pass(number, stop)?
            }
        });
        if Instant::now() >= stop.deadline {
            break;
        }
    }
    Ok(total(&passes))
}

/// Whether reads kept up with delivery. Otherwise samples came from what was read at the start, and the rate is
/// meaningless.
fn flows(order: Order, part: ReadWork) -> bool {
    let (read, delivered) = match order {
        // A whole block is read even for a sample of a few bytes, so comparing bytes would be misleading.
        Order::Full => (part.requests, part.samples),
        Order::Chunked | Order::Sequential => (part.read_bytes, part.stored_bytes),
    };
    part.samples > 0 && read >= delivered - delivered / 20
}

/// Whole epochs if there are any, otherwise the parts.
fn total(passes: &[Pass]) -> ReadWork {
    let any_whole = passes.iter().any(|pass| pass.whole);
    passes.iter().filter(|pass| pass.whole == any_whole).map(|pass| pass.counted).sum()
}

struct Epochs<'a> {
    bench: &'a Bench,
    reader: &'a Reader,
    order: Order,
}

impl Epochs<'_> {
    fn pass(&self, number: u64, stop: Stop) -> anyhow::Result<Pass> {
        let watch = Watch::start();
        let mut epoch = self.reader.epoch(&self.options(number))?;
        let lane_count = epoch.lanes().unwrap_or(1); // an order without lanes starts at once
        let mut flowing = None;
        let mut now = ReadWork::default();
        while let Some(batch) = epoch.next_batch() {
            batch?;
            check_interrupt()?;
            now = watch.work_of(&epoch.stats());
            if now.samples >= lane_count {
                flowing.get_or_insert(now);
            }
            if stop.is_reached(&now) {
                break;
            }
        }
        let whole = now.samples == self.bench.dataset.sample_count();
        let counted = match flowing {
            Some(from) if !whole && flows(self.order, now.since(from)) => now.since(from),
            _ => now,
        };
        Ok(Pass { whole, samples: now.samples, counted })
    }

    fn options(&self, number: u64) -> EpochOptions {
        EpochOptions {
            order: self.order.into(),
            seed: self.bench.seed,
            epoch: number,
            batch_size: self.bench.batch_size,
            ..EpochOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_was_read_before_it_began_does_not_flow() {
        let part = |requests, read_bytes| ReadWork {
            samples: 100,
            stored_bytes: 1000,
            requests,
            read_bytes,
            ..ReadWork::default()
        };
        assert!(flows(Order::Chunked, part(1, 980)) && !flows(Order::Chunked, part(1, 900)));
        assert!(flows(Order::Full, part(98, 0)) && !flows(Order::Full, part(90, 400_000)));
        assert!(!flows(Order::Sequential, ReadWork::default()));
    }

    #[test]
    fn an_epoch_that_was_cut_short_counts_only_where_none_is_whole() {
        let pass = |whole, samples| Pass { whole, samples, counted: ReadWork { samples, ..ReadWork::default() } };
        assert_eq!(total(&[pass(true, 10), pass(true, 10), pass(false, 3)]).samples, 20);
        assert_eq!(total(&[pass(false, 3), pass(false, 4)]).samples, 7);
        assert_eq!(total(&[]).samples, 0);
    }
}
