//! `grainstore rebuild-index`: rebuilds a lost or damaged merged index.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use grainstore_format::{Manifest, Remedy, shown_path};
use grainstore_writer::{DiskStorage, Storage, WriterOptions, rebuild_index};

use crate::Exit;
use crate::external::External;
use crate::hints::WithHint;
use crate::printer::Printer;
use crate::sizes::counted;

/// Rebuild a lost or damaged index of a dataset from its segments
///
/// Every segment has an index of its own; a dataset of two segments or more also has a merged one. This command
/// rewrites the merged index and replaces it in one step. Samples are not read: `grainstore verify` does that.
#[derive(clap::Args)]
pub(crate) struct RebuildIndexArgs {
    /// Dataset directory
    #[arg(value_name = "DATASET")]
    path: PathBuf,
}

impl RebuildIndexArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the manifest or a segment's own index is damaged too.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
        if !self.path.is_dir() {
            bail!("{}: not a dataset directory", shown_path(&self.path));
        }
        let manifest = Manifest::FILE_NAME;
        if !self.path.join(manifest).exists() {
            let missing = anyhow!("{}: it has no {manifest}, which names a dataset's segments", shown_path(&self.path));
            return Err(missing)
                .hint("where its segments are still there, `grainstore convert` packs those *.seg files anew");
        }
        let rebuilt = rebuild_index(&storage, &self.path, WriterOptions::DEFAULT_MEMORY_LEN);
        match rebuilt {
            Err(ref error) if error.remedy() == Some(Remedy::ListDamage) => {
                rebuilt.hint("`grainstore verify` lists everything that is damaged")?
            }
            _ => rebuilt?,
        }
        let dataset = external.open(&self.path)?;
        let samples = dataset.sample_count();
        let segments = dataset.segments().len() as u64;
        let path = shown_path(&self.path);
        if segments == 1 {
            printer.line(format!("{path}: one segment, its index is inside it: nothing to rebuild"))?;
            return Ok(Exit::Done);
        }
        printer.line(format!("{path}: index of {} in {}", counted(samples, "sample"), counted(segments, "segment")))?;
        Ok(Exit::Done)
    }
}
