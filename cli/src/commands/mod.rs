//! The commands, one file per command: arguments (whose doc comments are the help), work, output.

mod adopt;
mod append;
mod bench;
mod convert;
mod delete;
mod demo;
mod epoch;
mod export;
mod get;
mod inspect;
mod ls;
mod plan;
mod rebuild_index;
mod verify;

pub(crate) use self::ls::json as json_value;
use crate::Exit;
use crate::external::External;
use crate::printer::Printer;

/// The command to run.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Convert(convert::ConvertArgs),
    Append(append::AppendArgs),
    Delete(delete::DeleteArgs),
    Adopt(adopt::AdoptArgs),
    Inspect(inspect::InspectArgs),
    Ls(ls::LsArgs),
    Get(get::GetArgs),
    Verify(verify::VerifyArgs),
    RebuildIndex(rebuild_index::RebuildIndexArgs),
    Epoch(epoch::EpochArgs),
    Export(export::ExportArgs),
    Plan(plan::PlanArgs),
    Bench(bench::BenchArgs),
    Demo(demo::DemoArgs),
}

impl Command {
    /// Whether stdout is read by a program: then no progress is shown.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Convert(args) => args.json,
            Self::Append(args) => args.json,
            Self::Delete(args) => args.json,
            Self::Adopt(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Ls(args) => args.json,
            Self::Get(_) | Self::RebuildIndex(_) => false,
            Self::Verify(args) => args.json,
            Self::Epoch(args) => args.json,
            Self::Export(args) => args.json,
            Self::Plan(args) => args.json,
            Self::Bench(args) => args.json,
            Self::Demo(args) => args.json,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// If it fails; the message is meant for the user.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        match self {
            Self::Convert(args) => args.run(printer, external),
            Self::Append(args) => args.run(printer, external),
            Self::Delete(args) => args.run(printer),
            Self::Adopt(args) => args.run(printer, external),
            Self::Inspect(args) => args.run(printer, external),
            Self::Ls(args) => args.run(printer, external),
            Self::Get(args) => args.run(printer, external),
            Self::Verify(args) => args.run(printer, external),
            Self::RebuildIndex(args) => args.run(printer, external),
            Self::Epoch(args) => args.run(printer, external),
            Self::Plan(args) => args.run(printer, external),
            Self::Bench(args) => args.run(printer, external),
            Self::Export(args) => args.run(printer, external),
            Self::Demo(args) => args.run(printer),
        }
    }
}
