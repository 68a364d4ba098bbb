//! Shared by the benchmarks: datasets from a seed, the rate of the device at the moment, and the table at the end.
//!
//! A benchmark is a file of `benches/`, named for a claim that its first line states; it checks its answers. Those on
//! Criterion time the processor's work. The others compare with the device:
//!
//! ```text
//! baseline | measured | baseline | measured | baseline ...      a round: one measured thing and its two neighbours
//! ```
//!
//! The device drifts by a factor of two within a minute, so each measured thing is divided by the mean of the
//! baselines right before and after it, and the median of five rounds is reported. The baseline is `fio` on the same
//! blocks; without `fio` only absolute numbers are reported. No benchmark fails for speed, and a verdict is reliable
//! only if the machine was idle.
//!
//! - `-- --test`: once, on tiny datasets (`cargo bench -p grainstore-benches -- --test`).
//! - `-- --json PATH` or `GRAINSTORE_BENCH_JSON`: the table as JSON too; into a directory as `NAME.json`. Cargo starts
//!   benchmarks in `benches/`, so an absolute path is best.
//! - `-- WORD`: only the cases that have the word in their name, such as `512B`.
//! - `GRAINSTORE_BENCH_DIR`: the directory of the datasets, on the device to measure; large ones are kept there for the
//!   next run. Without it, they are among the temporary files and removed at the end.
//! - `GRAINSTORE_BENCH_ROUNDS`: another number of rounds. `GRAINSTORE_BENCH_LARGE=1`: the cases of 50,000,000
//!   samples and more too.
#![forbid(unsafe_code)]

mod arguments;
mod baseline;
mod check;
mod cold;
mod datasets;
mod fio;
mod fixture;
mod meter;
mod proc_io;
mod processes;
mod random;
mod report;
mod rounds;

pub use arguments::{child_argument, is_large_run, is_selected, is_test_run, scaled};
pub use baseline::{AgainstFio, Ceiling, FioBaseline};
pub use check::{check_batch, check_contents};
pub use cold::drop_caches;
pub use datasets::{Shape, epoch_options, index_range, open_direct, open_direct_at, open_direct_with_cache};
pub use fio::{BlockSizes, Fio, FioEngine, FioRun, Job};
pub use fixture::{Dataset, Filling, Fixture, Lengths, directory};
pub use meter::{Effort, Meter};
pub use proc_io::{peak_memory_len, reset_peak_memory};
pub use processes::{Together, child_command, run_together, work_together};
pub use random::{Ordinals, Random};
pub use report::{Report, Row, Target, say};
pub use rounds::{Round, Rounds, Spread, bracketed, round_count};
