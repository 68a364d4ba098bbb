//! `fio`: the rates of the device, measured with the usual tool.
//!
//! It reads the dataset's own file, only the samples, at random offsets that differ from run to run, with direct I/O.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::{is_test_run, say};

/// The alignment of direct I/O.
const BLOCK: u64 = 4096;

/// The installed `fio`.
#[derive(Debug)]
pub struct Fio {
    /// Its version, as it prints it.
    pub version: String,
    /// Whether it can use buffers in huge pages.
    pub has_huge_pages: bool,
}

/// How `fio` submits reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioEngine {
    /// Through io_uring, this many at a time, a new one as soon as one is done.
    IoUring(u32),
    /// Through io_uring, this many at a time, the next ones when all are done.
    IoUringBatches(u32),
    /// One at a time with `pread`.
    Psync,
}

/// The lengths of the reads: one length, or two lengths that are mixed so that the mean is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    small_len: u64,
    large_len: u64,
    large_percent: u64,
}

/// A job of random reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// How.
    pub engine: FioEngine,
    /// How long.
    pub sizes: BlockSizes,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FioRun {
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Mean seconds from a read's submission to its completion.
    pub latency_s: f64,
    /// CPU seconds of `fio` for 10^9 bytes.
    pub cpu_s_per_gb: f64,
}

/// The memory of a run's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Plain,
    Huge,
}

/// Bytes at the start of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) file: &'a Path,
    pub(crate) len: u64,
}

impl BlockSizes {
    /// Reads of one length.
    #[must_use]
    pub const fn same(len: u64) -> Self {
        Self { small_len: len, large_len: len, large_percent: 0 }
    }

    /// Reads of whole blocks that are `mean_len` bytes long in the mean, to one percent of a block.
    #[must_use]
    pub fn around(mean_len: u64) -> Self {
        let small_len = (mean_len / BLOCK * BLOCK).max(BLOCK);
        let large_percent = mean_len.saturating_sub(small_len) * 100 / BLOCK;
        Self { small_len, large_len: small_len + BLOCK, large_percent }
    }

    /// Reads of one length: the multiple of a block that is nearest to `len`.
    #[must_use]
    pub fn nearest(len: u64) -> Self {
        Self::same(((len + BLOCK / 2) / BLOCK * BLOCK).max(BLOCK))
    }

    fn arguments(self) -> Vec<String> {
        let Self { small_len, large_len, large_percent } = self;
        if large_percent == 0 {
            return vec![format!("--bs={small_len}"), format!("--blockalign={BLOCK}")];
        }
        vec![
            format!("--bssplit={small_len}/{}:{large_len}/{large_percent}", 100 - large_percent),
            format!("--blockalign={BLOCK}"),
            // Otherwise reads that touch a block read before are cut short, and the mean is not the requested one.
            "--norandommap".into(),
        ]
    }
}

impl FioEngine {
    fn arguments(self) -> Vec<String> {
        match self {
            Self::IoUring(depth) => vec!["--ioengine=io_uring".into(), format!("--iodepth={depth}")],
            Self::IoUringBatches(depth) => vec![
                "--ioengine=io_uring".into(),
                format!("--iodepth={depth}"),
                format!("--iodepth_batch={depth}"),
                format!("--iodepth_batch_complete_min={depth}"),
            ],
            Self::Psync => vec!["--ioengine=psync".into(), "--iodepth=1".into()],
        }
    }
}

impl Fio {
    /// The installed `fio`. If there is none, this prints a line, once.
    pub fn installed() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Fio>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        let output = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success());
        let Some(output) = output else {
            say("fio is not installed: only absolute numbers are reported, without the rate of the device");
            return None;
        };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let reserved = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap_or_default();
        let has_huge_pages = reserved.trim().parse::<u64>().is_ok_and(|count| count > 0);
        Some(Self { version, has_huge_pages })
    }

    /// Runs a job; an error is a sentence.
    pub(crate) fn run(&self, job: &Job, target: Target<'_>, memory: Memory) -> Result<FioRun, String> {
        // A colon would separate two names.
        let name = target.file.to_string_lossy().replace(':', "\\:");
        let mut command = Command::new("fio");
        command.args(["--name=device", "--output-format=json", "--readonly", "--rw=randread", "--direct=1"]);
        command.args(["--randrepeat=0", "--time_based", if is_test_run() { "--runtime=100ms" } else { "--runtime=2" }]);
        command.args([format!("--filename={name}"), format!("--size={}", target.len)]);
        command.args(job.engine.arguments()).args(job.sizes.arguments());
        if memory == Memory::Huge {
            command.arg("--mem=mmaphuge");
        }
        let output = command.output().map_err(|error| format!("fio cannot be run: {error}"))?;
        parse(&output.stdout).map_err(|error| {
            let message = String::from_utf8_lossy(&output.stderr);
            format!("fio: {error}: {}", message.lines().next().unwrap_or_default())
        })
    }
}

#[derive(Deserialize)]
struct RawOutput {
    jobs: Vec<RawJob>,
}

#[derive(Deserialize)]
struct RawJob {
    error: i64,
    read: RawRead,
    usr_cpu: f64, // percent of the time that the job ran
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct RawRead {
    bw_bytes: f64,
    iops: f64,
    clat_ns: RawLatency,
}

#[derive(Deserialize)]
struct RawLatency {
    mean: f64,
}

fn parse(output: &[u8]) -> Result<FioRun, String> {
    // There may be notes before the document.
    let start = output.iter().position(|&byte| byte == b'{').unwrap_or(0);
    let document: RawOutput = serde_json::from_slice(&output[start..]).map_err(|error| error.to_string())?;
    let job = document.jobs.first().ok_or("no job ran")?;
    if job.error != 0 || job.read.iops <= 0.0 {
        return Err(format!("the job failed with error {}", job.error));
    }
    Ok(FioRun {
        bytes_per_s: job.read.bw_bytes,
        reads_per_s: job.read.iops,
        latency_s: job.read.clat_ns.mean / 1e9,
        cpu_s_per_gb: (job.usr_cpu + job.sys_cpu) / 100.0 / (job.read.bw_bytes / 1e9),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_between_two_blocks_becomes_a_mixture() {
        let bssplit = |mean_len| BlockSizes::around(mean_len).arguments().swap_remove(0);
        assert_eq!(bssplit(7168), "--bssplit=4096/25:8192/75");
        assert!(BlockSizes::around(7168).arguments().contains(&"--norandommap".into()));
        assert_eq!(bssplit(8192), "--bs=8192");
        assert_eq!(bssplit(100), "--bs=4096");
        assert_eq!(BlockSizes::nearest(110_000), BlockSizes::same(108 << 10));
    }

    #[test]
    fn numbers_are_found_in_the_report_and_a_failed_job_is_none() {
        let report = |error: i64| {
            let read = r#"{"bw_bytes":2000000000,"iops":500.5,"clat_ns":{"mean":1500.0}}"#;
            let job = format!(r#"{{"error":{error},"usr_cpu":10.0,"sys_cpu":30.0,"read":{read}}}"#);
            parse(format!("fio: a note\n{{\"jobs\":[{job}]}}").as_bytes())
        };
        let expected = FioRun { bytes_per_s: 2e9, reads_per_s: 500.5, latency_s: 1.5e-6, cpu_s_per_gb: 0.2 };
        assert_eq!(report(0), Ok(expected));
        assert_eq!(report(22), Err("the job failed with error 22".into()));
    }
}
