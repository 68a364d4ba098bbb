//! Claim: ranks that are processes on one machine together read at 0.95 or more of one reader's rate, and at most 1.03
//! times its bytes.
//!
//! Cold and direct, whole epochs. The one reader is a process too. All processes open the dataset and load its index,
//! then begin at the same moment. The rate is the payload of all, divided by the time until the last one is done.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use grainstore_benches::{
    Dataset, Fixture, Meter, Report, Rounds, Row, Shape, Target, bracketed, check_batch, check_contents,
    child_argument, drop_caches, epoch_options, is_selected, open_direct, open_direct_at, run_together, work_together,
};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, Reader};
use serde::{Deserialize, Serialize};

const WORLDS: [u64; 2] = [2, 4];

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Case {
    TinyChunked,
    CifarChunked,
    ImageNetChunked,
    ImageNetFull,
}

/// The task of a process.
#[derive(Serialize, Deserialize)]
struct Task {
    case: Case,
    rank: u64,
    world: u64,
    epoch: u64,
}

/// The result of a process.
#[derive(Serialize, Deserialize)]
struct Measured {
    samples: u64,
    ordinal_sum: u64,
    payload_bytes: u64,
    cpu_s: f64,
    /// 0 if the kernel does not count them.
    read_bytes: u64,
}

/// An epoch that was read by one process or more.
#[derive(Clone)]
struct Run {
    bytes_per_s: f64,
    cpu_s_per_gb: f64,
    /// 0 if the kernel does not count them.
    read_bytes: f64,
}

fn main() {
    if let Some(path) = child_argument() {
        return work_together(|_| open_direct_at(&path), read_share);
    }
    let mut report = Report::new("ranks");
    for case in [Case::TinyChunked, Case::CifarChunked, Case::ImageNetChunked, Case::ImageNetFull] {
        if is_selected(&case.name()) {
            add_case(&mut report, case);
        }
    }
    report.finish();
}

fn add_case(report: &mut Report, case: Case) {
    let dataset = case.shape().dataset();
    check_contents(&open_direct(&dataset), dataset.fixture());
    for world in WORLDS {
        let run = |world, epoch| run_ranks(&dataset, case, world, epoch);
        add_rows(report, &case.name(), world, &bracketed(|| run(1, 0), |epoch| run(world, epoch)));
    }
}

fn run_ranks(dataset: &Dataset, case: Case, world: u64, epoch: u64) -> Run {
    let (path, fixture) = (dataset.path(), dataset.fixture());
    let tasks: Vec<Task> = (0..world).map(|rank| Task { case, rank, world, epoch }).collect();
    let together = run_together(&path, &tasks, || drop_caches(&path));
    let sum = |number: fn(&Measured) -> u64| together.reports.iter().map(number).sum::<u64>();
    let n = fixture.samples;
    assert_eq!((sum(|measured| measured.samples), sum(|measured| measured.ordinal_sum)), (n, n * (n - 1) / 2));
    let payload_bytes = sum(|measured| measured.payload_bytes);
    assert_eq!(payload_bytes, fixture.payload_bytes());
    let cpu_s: f64 = together.reports.iter().map(|measured| measured.cpu_s).sum();
    Run {
        bytes_per_s: payload_bytes as f64 / together.wall_s,
        cpu_s_per_gb: cpu_s / (payload_bytes as f64 / 1e9),
        read_bytes: sum(|measured| measured.read_bytes) as f64,
    }
}

fn add_rows(report: &mut Report, case: &str, world: u64, rounds: &Rounds<Run, Run>) {
    let against_one = |number: fn(&Run) -> f64| rounds.ratio(number, |one| Some(number(one)).filter(|&one| one > 0.0));
    let row = |what: &str| format!("{world} ranks, {what}");
    let rate = against_one(|run| run.bytes_per_s);
    report.add(Row::claim(case, &row("rate / one reader's"), Target::AtLeast(0.95), rate));
    let read = against_one(|run| run.read_bytes);
    report.add(Row::claim(case, &row("bytes read / one reader's"), Target::AtMost(1.03), read));
    report.add(Row::fact(case, &row("CPU-s/GB / one reader's"), against_one(|run| run.cpu_s_per_gb)));
    report.add(Row::fact(case, &row("payload, MB/s"), rounds.spread(|run| Some(run.bytes_per_s / 1e6))));
    report.add(Row::fact(case, &row("one reader's payload, MB/s"), rounds.device(|run| Some(run.bytes_per_s / 1e6))));
    report.add(Row::fact(case, &row("one reader's CPU-s/GB"), rounds.device(|run| Some(run.cpu_s_per_gb))));
}

fn read_share(task: &Task, reader: &Reader) -> Measured {
    let Task { case, rank, world, epoch } = *task;
    let fixture = case.shape().fixture();
    let options = EpochOptions { rank, world, ..epoch_options(case.order(), epoch) };
    let meter = Meter::start();
    let (samples, ordinal_sum, payload_bytes) = read_all(reader, &options, &fixture);
    let effort = meter.stop();
    Measured { samples, ordinal_sum, payload_bytes, cpu_s: effort.cpu_s, read_bytes: effort.read_bytes.unwrap_or(0) }
}

/// Samples, the sum of their ordinals, and their bytes.
fn read_all(reader: &Reader, options: &EpochOptions, fixture: &Fixture) -> (u64, u64, u64) {
    reader.epoch(options).unwrap().fold((0, 0, 0), |(samples, ordinal_sum, bytes), batch| {
        let batch = batch.unwrap();
        let ordinals: u64 = batch.ordinals().iter().sum();
        (samples + batch.len() as u64, ordinal_sum + ordinals, bytes + check_batch(&batch, fixture))
    })
}

impl Case {
    fn shape(self) -> Shape {
        match self {
            Self::TinyChunked => Shape::Tiny,
            Self::CifarChunked => Shape::Cifar,
            Self::ImageNetChunked | Self::ImageNetFull => Shape::ImageNet,
        }
    }

    fn order(self) -> Order {
        match self {
            Self::ImageNetFull => Order::Full,
            _ => Order::Chunked,
        }
    }

    fn name(self) -> String {
        format!("{}/{}", self.shape().name(), self.order())
    }
}
