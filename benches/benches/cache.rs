//! Claim: the second epoch finds the samples in the cache for which there was room, and reads only the others; a cache
//! that is off costs nothing.
//!
//! Cold and direct, whole epochs, the index loaded before; compared with epochs of a reader without a cache right
//! before and after. A cache that is off costs a few comparisons for each unit that is read: too little to measure. So
//! an upper bound is measured: a cache of one byte, which is queried for every unit and never has it. Beside it, off
//! against off shows how much of the difference is noise.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    Dataset, Effort, Meter, Report, Rounds, Row, Shape, Target, bracketed, check_batch, check_contents, drop_caches,
    epoch_options, is_selected, open_direct, open_direct_with_cache,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochStats, Reader};

/// One epoch.
#[derive(Clone)]
struct Run {
    effort: Effort,
    stats: EpochStats,
}

/// Epochs of one reader, the cache empty before the first.
struct Two {
    first: Run,
    second: Run,
}

/// A cache, and the targets of an epoch with it.
struct Room {
    name: &'static str,
    /// Percent of the stored bytes that fit.
    percent: u64,
    hit_rate: f64,
    /// Bytes read for each stored byte.
    read: f64,
}

/// An extent of 256 KiB may take 8 KiB more, since direct I/O reads whole blocks.
const ROOMS: [Room; 2] = [
    Room { name: "cache of a half", percent: 50, hit_rate: 0.48, read: 0.53 },
    Room { name: "cache of all", percent: 110, hit_rate: 1.0, read: 0.0 },
];

fn main() {
    let mut report = Report::new("cache");
    let chunked = Shape::ALL.map(|shape| (shape, Order::Chunked));
    for (shape, order) in chunked.into_iter().chain([(Shape::ImageNet, Order::Full)]) {
        let case = format!("{}/{order}", shape.name());
        if is_selected(&case) {
            add_case(&mut report, &case, &shape.dataset(), order);
        }
    }
    report.finish();
}

fn add_case(report: &mut Report, case: &str, dataset: &Dataset, order: Order) {
    let off = open_direct(dataset);
    check_contents(&off, dataset.fixture());
    let run_off = || run(&off, dataset, order, 0);
    add_off(report, case, "off again", &bracketed(run_off, |number| run(&off, dataset, order, number)));
    let useless = bracketed(run_off, |number| run(&open_direct_with_cache(dataset, 1), dataset, order, number));
    add_off(report, case, "cache of a byte", &useless);
    for room in &ROOMS {
        add_room(report, case, room, &bracketed(run_off, |number| run_twice(dataset, order, room, number)));
    }
}

fn run_twice(dataset: &Dataset, order: Order, room: &Room, number: u64) -> Two {
    let reader = open_direct_with_cache(dataset, dataset.fixture().payload_bytes() * room.percent / 100);
    let first = run(&reader, dataset, order, 2 * number);
    Two { first, second: run(&reader, dataset, order, 2 * number + 1) }
}

fn run(reader: &Reader, dataset: &Dataset, order: Order, number: u64) -> Run {
    let fixture = dataset.fixture();
    drop_caches(&dataset.path());
    let meter = Meter::start();
    let mut epoch = reader.epoch(&epoch_options(order, number)).unwrap();
    let bytes: u64 = epoch.by_ref().map(|batch| check_batch(&batch.unwrap(), fixture)).sum();
    let effort = meter.stop();
    assert_eq!((epoch.stats().samples, bytes), (fixture.samples, fixture.payload_bytes()));
    Run { effort, stats: epoch.stats() }
}

/// The cost of a cache that holds nothing.
fn add_off(report: &mut Report, case: &str, name: &str, rounds: &Rounds<Run, Run>) {
    let rate = rounds.ratio(Run::bytes_per_s, |off| Some(off.bytes_per_s()));
    let cpu = rounds.ratio(Run::cpu_s_per_gb, |off| Some(off.cpu_s_per_gb()));
    report.add(Row::fact(case, &format!("{name}, rate / off"), rate));
    report.add(Row::fact(case, &format!("{name}, CPU / off"), cpu));
}

fn add_room(report: &mut Report, case: &str, room: &Room, rounds: &Rounds<Run, Two>) {
    let row = |what: &str| format!("{}, {what}", room.name);
    let second = |number: fn(&Run) -> f64| rounds.spread(|two| Some(number(&two.second)));
    let against_off = |run: fn(&Two) -> &Run| rounds.ratio(|two| run(two).bytes_per_s(), |off| Some(off.bytes_per_s()));
    let hit = second(Run::hit_rate);
    report.add(Row::claim(case, &row("epoch 2, hit rate"), Target::AtLeast(room.hit_rate), hit));
    let read = second(Run::amplification);
    report.add(Row::claim(case, &row("epoch 2, bytes read / stored"), Target::AtMost(room.read), read));
    report.add(Row::fact(case, &row("epoch 2, rate / off"), against_off(|two| &two.second)));
    report.add(Row::fact(case, &row("epoch 2, payload, MB/s"), second(|run| run.bytes_per_s() / 1e6)));
    report.add(Row::fact(case, &row("epoch 2, CPU-s/GB"), second(Run::cpu_s_per_gb)));
    report.add(Row::fact(case, &row("epoch 1, rate / off"), against_off(|two| &two.first)));
    let off = rounds.device(|off| Some(off.bytes_per_s() / 1e6));
    report.add(Row::fact(case, &row("off, payload, MB/s"), off));
}

impl Run {
    fn bytes_per_s(&self) -> f64 {
        self.stats.payload_bytes as f64 / self.effort.wall_s
    }

    fn cpu_s_per_gb(&self) -> f64 {
        self.effort.cpu_s_per_gb(self.stats.payload_bytes)
    }

    fn hit_rate(&self) -> f64 {
        self.stats.cached_samples as f64 / self.stats.samples as f64
    }

    fn amplification(&self) -> f64 {
        self.stats.read_bytes as f64 / self.stats.stored_bytes as f64
    }
}
