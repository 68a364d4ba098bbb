//! The effect of an epoch's order on training: a small network is trained from one dataset in many orders.
//!
//! The dataset is stored twice: class by class, which is the worst case, and shuffled, as converters store it.
//! Everything comes from seeds, so the figures are the same each time (except the last digits, where another machine's
//! `exp` differs).
//!
//! ```text
//! cargo run --release -p grainstore-benches --bin shuffling                  prints both tables
//! cargo run --release -p grainstore-benches --bin shuffling -- --out docs    and puts them into docs/shuffling.md
//! ```
//!
//! - `--out DIR`: the tables replace those of `DIR/shuffling.md`, between its markers; the picture is
//!   `DIR/shuffling.svg`.
//! - `--quick`: everything tiny, to check that it still works.
#![forbid(unsafe_code)]

mod data;
mod feed;
mod mixing;
mod model;
mod page;
mod picture;
mod report;
mod scale;
mod settings;
mod training;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use grainstore_benches::say;

use crate::data::Task;
use crate::scale::Scale;
use crate::training::Trainer;

/// Every failure is reported and ends the run.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The options of the command line.
struct Arguments {
    out: Option<PathBuf>,
    is_quick: bool,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse()?;
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::WHOLE };
    let begin = Instant::now();

    let mixing = mixing::table(scale.mixing_samples)?;
    print(&mixing)?;
    let task = Task::new(&scale);
    let stores = task.pack()?;
    let results = Trainer { scale: &scale, task: &task, stores: &stores }.train_all()?;
    let training = report::table(&scale, &results);
    print(&training)?;

    if let Some(out) = arguments.out {
        page::put(&out.join("shuffling.md"), &[("mixing", &mixing), ("training", &training)])?;
        std::fs::write(out.join("shuffling.svg"), picture::draw(&scale, &results))?;
    }
    say(&format!("{:.0} s", begin.elapsed().as_secs_f64()));
    Ok(())
}

impl Arguments {
    fn parse() -> Outcome<Self> {
        let mut arguments = Self { out: None, is_quick: false };
        let mut words = std::env::args_os().skip(1);
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--quick") => arguments.is_quick = true,
                Some("--out") => arguments.out = Some(words.next().ok_or("--out needs a directory")?.into()),
                _ => return Err(format!("{word:?} is unknown, expected --quick or --out DIR").into()),
            }
        }
        Ok(arguments)
    }
}

fn print(table: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout(), "{table}")?)
}
