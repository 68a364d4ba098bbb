//! Processes of the same program that a benchmark starts: one, or several that begin to work at the same moment.
//!
//! ```text
//! benchmark                          each process
//! starts it, writes its task   --->  prepares
//!                              <---  a line: ready
//! all are ready: a line to each ->   works
//!                              <---  a line: its report
//! ```
//! Starting, opening and loading are done before the measured time begins; it ends at the last line.
#![expect(clippy::unwrap_used, reason = "a benchmark whose processes fail does so too, by panicking")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arguments::{CHILD, is_test_run};

/// The reports of processes that started together.
#[derive(Debug)]
pub struct Together<T> {
    /// Seconds from the beginning until the last of them was done.
    pub wall_s: f64,
    /// The report of each, in the order of their tasks.
    pub reports: Vec<T>,
}

/// A process that waits for its turn.
struct Started {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// The command that runs this benchmark again on the dataset at `path`: there, `child_argument` returns the path.
///
/// # Panics
/// If the path of this program is not available.
#[must_use]
pub fn child_command(path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([if is_test_run() { "--test" } else { "--bench" }, CHILD]).arg(path);
    command
}

/// Starts a process for each task. When all are ready, `before` is called, and then they begin.
///
/// # Panics
/// If one of them fails.
pub fn run_together<J: Serialize, T: DeserializeOwned>(path: &Path, tasks: &[J], before: impl FnOnce()) -> Together<T> {
    let mut all: Vec<Started> = tasks.iter().map(|task| Started::new(path, task)).collect();
    all.iter_mut().for_each(|started| assert_eq!(started.line(), "ready"));
    before();
    let begin = Instant::now();
    all.iter_mut().for_each(|started| started.write(&"begin"));
    let reports: Vec<String> = all.iter_mut().map(Started::line).collect();
    let wall_s = begin.elapsed().as_secs_f64();
    all.into_iter().for_each(Started::finish);
    Together { wall_s, reports: reports.iter().map(|line| serde_json::from_str(line).unwrap()).collect() }
}

/// In a process that [`run_together`] has started: prepares for its task, waits for the others, works, and reports.
///
/// # Panics
/// If the parent process has ended: no task can be read, or no report written.
pub fn work_together<J: DeserializeOwned, P, T: Serialize>(
    prepare: impl FnOnce(&J) -> P,
    work: impl FnOnce(&J, &P) -> T,
) {
    let mut lines = std::io::stdin().lines();
    let task = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let prepared = prepare(&task);
    report("ready");
    lines.next().unwrap().unwrap();
    report(&serde_json::to_string(&work(&task, &prepared)).unwrap());
}

impl Started {
    fn new(path: &Path, task: &impl Serialize) -> Self {
        let mut command = child_command(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut started = Self { process, stdin, lines: BufReader::new(stdout).lines() };
        started.write(task);
        started
    }

    fn write(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).unwrap();
        writeln!(self.stdin, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn finish(mut self) {
        assert!(self.process.wait().unwrap().success(), "a process of the benchmark failed");
    }
}

fn report(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}
