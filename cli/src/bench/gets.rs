//! Measures calls for samples by ordinal: many at once, and one after the other.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use grainstore_format::to_usize;
use grainstore_reader::Reader;
use grainstore_reader::engine::{BLOCK_LEN, IoMode};
use grainstore_reader::plan::{Extents, Order, Plan, PlanSpec};

use super::ways::{Bench, Cache, Latency, WARM_LEN};
use super::work::{ReadWork, Watch};
use crate::interrupt::check_interrupt;

const BLOCK: u64 = BLOCK_LEN as u64;
/// Number of calls whose times are recorded; later calls are only counted.
const TIMES_MAX: usize = 1 << 20;

/// Reads batches of random samples for the time of the bench; no sample is repeated before all have been read once.
///
/// The number of reads is unknown, because the reader merges reads that are close together.
pub(super) fn measure_batches(bench: &Bench, reader: &Reader, cache: Cache) -> anyhow::Result<ReadWork> {
    let mut ordinals = ordinals(bench, reader, cache)?;
    let watch = Watch::start();
    let mut done = ReadWork::default();
    while done.samples == 0 || watch.elapsed() < bench.limit {
        check_interrupt()?;
        let wanted: Vec<u64> = ordinals.by_ref().take(bench.batch_size.get()).collect();
        done.payload_bytes += reader.get_batch(&wanted)?.payload_bytes();
        done.samples += wanted.len() as u64;
        for ordinal in wanted {
            done.stored_bytes += bench.dataset.locate(ordinal)?.stored_len;
        }
    }
    Ok(timed(done, &watch))
}

/// Reads random samples one after the other for the time of the bench, and reports how long a call took.
pub(super) fn measure_singles(bench: &Bench, reader: &Reader, cache: Cache) -> anyhow::Result<(ReadWork, Latency)> {
    let ordinals = ordinals(bench, reader, cache)?;
    let mut times = Vec::new();
    let watch = Watch::start();
    let mut done = ReadWork::default();
    for ordinal in ordinals {
        check_interrupt()?;
        let before = watch.elapsed();
        let sample = reader.get(ordinal)?;
        let after = watch.elapsed();
        if times.len() < TIMES_MAX {
            times.push(after - before);
        }
        let location = bench.dataset.locate(ordinal)?;
        done.samples += 1;
        done.requests += 1;
        done.payload_bytes += sample.payload.len() as u64;
        done.stored_bytes += location.stored_len;
        done.read_bytes += read_len(location.offset, location.stored_len, reader.io().mode);
        if after >= bench.limit {
            break;
        }
    }
    Ok((timed(done, &watch), latency(times)))
}

/// Samples in random order, without end; warm samples have been read before.
fn ordinals(bench: &Bench, reader: &Reader, cache: Cache) -> anyhow::Result<Box<dyn Iterator<Item = u64>>> {
    let shuffled = shuffled(bench, reader.extents()?);
    Ok(match cache {
        Cache::Cold => Box::new(shuffled),
        Cache::Warm => Box::new(warmed(bench, reader, shuffled)?.into_iter().cycle()),
    })
}

/// Reads samples once; returns those that the next reads will find in the page cache.
fn warmed(bench: &Bench, reader: &Reader, ordinals: impl Iterator<Item = u64>) -> anyhow::Result<Vec<u64>> {
    let watch = Watch::start();
    let mut payload_bytes = 0;
    let mut warm = Vec::new();
    // Each sample at most once.
    let mut ordinals = ordinals.take(to_usize(bench.dataset.sample_count()));
    while warm.is_empty() || (watch.elapsed() < bench.limit && payload_bytes < WARM_LEN) {
        check_interrupt()?;
        let wanted: Vec<u64> = ordinals.by_ref().take(bench.batch_size.get()).collect();
        if wanted.is_empty() {
            break;
        }
        payload_bytes += reader.get_batch(&wanted)?.payload_bytes();
        warm.extend(wanted);
    }
    Ok(warm)
}

/// All samples in random order, then all of them in another one, and so on.
fn shuffled(bench: &Bench, extents: Arc<Extents>) -> impl Iterator<Item = u64> + use<> {
    let seed = bench.seed;
    let fingerprint = bench.dataset.fingerprint().0;
    (0..)
        .map_while(move |epoch| {
            let spec = PlanSpec {
                extents: Arc::clone(&extents),
                seed,
                epoch,
                fingerprint,
                order: Order::Full,
                lanes: 1,
                group: NonZeroU32::MIN,
            };
            // Only a dataset without samples has no plan.
            Plan::new(spec).ok().map(|plan| plan.ordinals_from(0))
        })
        .flatten()
}

/// Bytes that a read of a sample takes from a file.
fn read_len(offset: u64, len: u64, io: IoMode) -> u64 {
    match io {
        IoMode::Direct if len > 0 => (offset % BLOCK).saturating_add(len).div_ceil(BLOCK).saturating_mul(BLOCK),
        _ => len,
    }
}

fn timed(done: ReadWork, watch: &Watch) -> ReadWork {
    let ReadWork { elapsed, cpu, .. } = watch.work();
    ReadWork { elapsed, cpu, ..done }
}

fn latency(mut times: Vec<Duration>) -> Latency {
    times.sort_unstable();
    let at = |percent: usize| {
        let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Latency { p50_us: at(50), p99_us: at(99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_first_time_that_this_share_does_not_exceed() {
        let times = |count: u64| (1..=count).rev().map(Duration::from_micros).collect();
        assert_eq!(latency(times(100)), Latency { p50_us: 50.0, p99_us: 99.0 });
        assert_eq!(latency(times(3)), Latency { p50_us: 2.0, p99_us: 3.0 });
        assert_eq!(latency(times(0)), Latency::default());
    }

    #[test]
    fn a_direct_read_is_whole_blocks() {
        assert_eq!(read_len(4000, 200, IoMode::Direct), 8192);
        assert_eq!(read_len(4096, 4096, IoMode::Direct), 4096);
        assert_eq!((read_len(4000, 200, IoMode::Buffered), read_len(4000, 0, IoMode::Direct)), (200, 0));
    }
}
