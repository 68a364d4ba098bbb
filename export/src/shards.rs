//! Formats whose files can each be used on their own: one file, or a folder of shards that are written in parallel.
//!
//! ```text
//! OUT.tar                            one file, because its name has the extension
//! OUT/OUT-00000-of-00012.tar ...     a shard ends before its payload would exceed `shard_len`
//! ```
//!
//! The index alone decides where shards end, so the files are the same for any number of threads.

use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_host::SteadyFile;

use crate::ExportError;
use crate::destination::{OutputKind, Partial};
use crate::fetch::ExportedSample;
use crate::job::ExportJob;
use crate::{index_pass, pipeline, read_groups, workers};

/// A format of such files. Its `plan` has checked the selection.
pub(crate) trait Sharded: Sync {
    /// Begins writing to a file that was just created.
    fn begin<'a>(&'a self, file: SteadyFile, path: &'a Path) -> Result<Box<dyn ShardWriter + 'a>, ExportError>;

    /// Notes for the user.
    fn notes(&self) -> Vec<String>;
}

/// Writes one file, front to back.
pub(crate) trait ShardWriter {
    fn write(&mut self, sample: &mut ExportedSample<'_>) -> Result<(), ExportError>;

    /// Ends the file and syncs it.
    fn finish(self: Box<Self>) -> Result<(), ExportError>;
}

/// A range of positions in the selection, and the file for these samples.
struct Shard {
    positions: Range<u64>,
    path: PathBuf,
}

/// Writes the selection.
pub(crate) fn write(job: &ExportJob<'_>, format: impl Sharded) -> Result<Vec<String>, ExportError> {
    let no_extension = || ExportError::bug("a format of shards has no extension");
    let extension = job.options.format.extension().ok_or_else(no_extension)?;
    let notes = format.notes();
    if job.out.extension().is_some_and(|found| found == extension) {
        write_file(job, &format)?;
    } else {
        write_folder(job, &format, extension)?;
    }
    Ok(notes)
}

fn write_file(job: &ExportJob<'_>, format: &impl Sharded) -> Result<(), ExportError> {
    let mut partial = Partial::create(job.out, OutputKind::File)?;
    let file = partial.take_file().ok_or_else(|| ExportError::bug("the output is not a file"))?;
    write_shard(job, format, (file, partial.path()), 0..job.selection.len())?;
    job.events.on_finish();
    partial.rename_into_place()
}

fn write_folder(job: &ExportJob<'_>, format: &impl Sharded, extension: &str) -> Result<(), ExportError> {
    let counts = shard_counts(job)?;
    let partial = Partial::create(job.out, OutputKind::Folder)?;
    let shards = name_shards(job, &counts, (partial.path(), extension))?;
    let next = AtomicUsize::new(0);
    workers::run(job, job.thread_count().min(shards.len()), || {
        while let Some(shard) = shards.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = File::options().write(true).create_new(true).open(&shard.path);
            let file = file.map_err(ExportError::io("create it", &shard.path))?;
            write_shard(job, format, (file, &shard.path), shard.positions.clone())?;
        }
        Ok(())
    })?;
    job.events.on_finish();
    partial.rename_into_place()
}

fn write_shard(
    job: &ExportJob<'_>,
    format: &impl Sharded,
    (file, path): (File, &Path),
    positions: Range<u64>,
) -> Result<(), ExportError> {
    let mut writer = format.begin(SteadyFile::new(file), path)?;
    pipeline::pass(job, job.selection.ordinals(positions), |sample| writer.write(sample))?;
    writer.finish()?;
    job.made_files(1);
    job.go_on()
}

/// The number of samples of each shard.
fn shard_counts(job: &ExportJob<'_>) -> Result<Vec<u64>, ExportError> {
    let mut cutter = read_groups::Cutter::new(job.options.shard_len);
    index_pass::each_len(job, |payload_len| cutter.add(payload_len))?;
    Ok(cutter.counts())
}

fn name_shards(
    job: &ExportJob<'_>,
    counts: &[u64],
    (folder, extension): (&Path, &str),
) -> Result<Vec<Shard>, ExportError> {
    // `destination::check` has refused a path without a name.
    let out_name = job.out.file_name().ok_or_else(|| ExportError::bug("the output has no name"))?;
    let mut start = 0;
    let shard = |(number, count): (usize, &u64)| {
        let mut name = OsString::from(out_name);
        name.push(format!("-{number:05}-of-{:05}.{extension}", counts.len()));
        let positions = start..start + count;
        start = positions.end;
        Shard { positions, path: folder.join(name) }
    };
    Ok(counts.iter().enumerate().map(shard).collect())
}
