//! The settings of a benchmark from the command line and the environment.

use std::path::PathBuf;

/// The argument before the dataset's path, when a benchmark starts itself as another process.
pub(crate) const CHILD: &str = "--child";

/// Whether each benchmark runs only once, to check that it still works.
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

/// Whether the cases that need tens of gigabytes or minutes run too.
#[must_use]
pub fn is_large_run() -> bool {
    !is_test_run() && std::env::var_os("GRAINSTORE_BENCH_LARGE").is_some_and(|value| value == "1")
}

/// Whether the case runs: its name must contain the words of the command line, if there are any.
#[must_use]
pub fn is_selected(case: &str) -> bool {
    free_arguments().iter().all(|word| case.contains(word))
}

/// The dataset to work on, in a process that a benchmark has started from itself.
#[must_use]
pub fn child_argument() -> Option<PathBuf> {
    value_of(CHILD).map(PathBuf::from)
}

/// Where the report goes as JSON.
pub(crate) fn json_target() -> Option<PathBuf> {
    value_of("--json").map(PathBuf::from).or_else(|| std::env::var_os("GRAINSTORE_BENCH_JSON").map(PathBuf::from))
}

fn value_of(flag: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != flag).nth(1)
}

/// The arguments that are neither flags nor values of flags.
fn free_arguments() -> Vec<String> {
    let mut free = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if ["--json", CHILD].contains(&argument.as_str()) {
            arguments.next();
        } else if !argument.starts_with('-') {
            free.push(argument);
        }
    }
    free
}
