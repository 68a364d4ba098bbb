//! What the benchmarks share: datasets made from a seed, and how large they are in this run.
//!
//! A benchmark is a file of `benches/`, named for a claim that its first line states; it checks its answers. The
//! datasets stand in `GRAINSTORE_BENCH_DIR`, or in the system's directory for temporary files. Run with `--test`,
//! as `cargo bench -p grainstore-benches -- --test`, every benchmark runs once on a tiny dataset.
#![forbid(unsafe_code)]

mod fixture;
mod random;

pub use fixture::{Dataset, Filling, Fixture, directory};
pub use random::Random;

/// Whether each benchmark is only to run once, to see that it still works.
#[must_use]
pub fn is_test_run() -> bool {
    let mut arguments = std::env::args();
    // Criterion's own rule: what `cargo bench` starts has `--bench`, and `--test` overrides it.
    let mut measured = false;
    let tested = arguments.any(|argument| {
        measured |= argument == "--bench";
        argument == "--test"
    });
    tested || !measured
}

/// `count` in a measured run, a hundredth of it (at least 16) in a test run.
#[must_use]
pub fn scaled(count: u64) -> u64 {
    if is_test_run() { (count / 100).max(16) } else { count }
}
