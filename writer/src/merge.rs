//! Merges the indexes of finished segments into one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{FileKind, Fingerprint, FormatError, Header, IndexRef};

use crate::WriteError;
use crate::emit::emit;
use crate::index::{IndexBuilder, IndexSpec};
use crate::output::Output;
use crate::rows::SegmentRows;
use crate::storage::Storage;

/// Writes the merged index of finished segments; `fingerprint` is that of the dataset.
pub(crate) fn merge(
    storage: &Arc<dyn Storage>,
    directory: &Path,
    segments: impl Iterator<Item = PathBuf>,
    spec: &IndexSpec,
    fingerprint: Fingerprint,
) -> Result<IndexRef, WriteError> {
    let mut builder = IndexBuilder::new(spec.clone(), storage, directory.join("merged.spill.tmp"));
    for path in segments {
        let mut rows = SegmentRows::open(storage.as_ref(), path.clone())?;
        // What an interrupted writer left may be of another dataset.
        if !rows.spec(0).agrees_with(spec) {
            let detail = "its schema, keys or geometry are not those of the dataset".to_owned();
            return Err(WriteError::Damaged { path, source: FormatError::Damaged { what: "segment", detail } });
        }
        while let Some(row) = rows.next()? {
            builder.push(&row)?;
        }
        builder.end_segment(rows.data_end)?;
    }
    let file = format!("index-{fingerprint}.idx");
    let mut output = Output::create(storage, directory.join(&file))?;
    output.write(&Header { kind: FileKind::Index }.encode())?;
    let emitted = emit(builder, &mut output)?;
    output.rename_into_place()?;
    Ok(IndexRef { file, fingerprint: emitted.fingerprint })
}
