//! The columns of an index under construction: byte strings that grow at the end and spill to one file when they exceed
//! their share of memory.

use std::path::PathBuf;
use std::sync::Arc;

use crate::WriteError;
use crate::storage::{Storage, StorageFile};

/// The file that columns spill to. It is created at the first spill and removed at the end.
pub(crate) struct Spill {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Option<Box<dyn StorageFile>>,
    len: u64,
}

impl Spill {
    pub(crate) fn new(storage: Arc<dyn Storage>, path: PathBuf) -> Self {
        Self { storage, path, file: None, len: 0 }
    }

    /// Appends `bytes` and returns their offset in the file.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64, WriteError> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(self.storage.create(&self.path).map_err(WriteError::io("create", &self.path))?),
        };
        file.append(bytes).map_err(WriteError::io("write", &self.path))?;
        let offset = self.len;
        self.len += bytes.len() as u64;
        Ok(offset)
    }

    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), WriteError> {
        let file = self.file.as_ref().ok_or_else(|| WriteError::bug("the spill file is read before it is written"))?;
        file.read_exact_at(bytes, offset).map_err(WriteError::io("read", &self.path))
    }

    /// Removes the file.
    pub(crate) fn finish(mut self) -> Result<(), WriteError> {
        if self.file.take().is_some() {
            self.storage.remove_file(&self.path).map_err(WriteError::io("remove", &self.path))?;
        }
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If this fails, too, there is nothing more to do.
            let _ = self.storage.remove_file(&self.path);
        }
    }
}

/// One column: the spilled blocks, and a tail in memory.
#[derive(Default)]
pub(crate) struct ColumnWriter {
    blocks: Vec<SpilledBlock>,
    spilled_len: u64,
    tail: Vec<u8>,
}

struct SpilledBlock {
    start: u64,  // in the column
    offset: u64, // in the spill file
    len: u64,
}

impl ColumnWriter {
    /// Adds the bytes of whole elements.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// The tail, for callers that append elements themselves.
    pub(crate) fn tail_mut(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    pub(crate) fn len(&self) -> u64 {
        self.spilled_len + self.tail.len() as u64
    }

    /// Spills the tail if it has `limit` bytes or more.
    pub(crate) fn relieve(&mut self, spill: &mut Spill, limit: usize) -> Result<(), WriteError> {
        if self.tail.len() < limit {
            return Ok(());
        }
        let offset = spill.append(&self.tail)?;
        let len = self.tail.len() as u64;
        self.blocks.push(SpilledBlock { start: self.spilled_len, offset, len });
        self.spilled_len += len;
        self.tail.clear();
        Ok(())
    }

    /// Passes the whole column to `take`, in order, in parts of whole elements.
    pub(crate) fn for_each_part(
        &self,
        spill: &Spill,
        mut take: impl FnMut(&[u8]) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let mut part = Vec::new();
        for block in &self.blocks {
            part.resize(grainstore_format::to_usize(block.len), 0);
            spill.read(&mut part, block.offset)?;
            take(&part)?;
        }
        if self.tail.is_empty() { Ok(()) } else { take(&self.tail) }
    }

    /// The bytes `[from, from + len)` of the column, which exist.
    pub(crate) fn read(&self, spill: &Spill, from: u64, len: u64) -> Result<Vec<u8>, WriteError> {
        let mut bytes = vec![0; grainstore_format::to_usize(len)];
        let mut at = from;
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            if at >= self.spilled_len {
                let start = grainstore_format::to_usize(at - self.spilled_len);
                rest.copy_from_slice(&self.tail[start..start + rest.len()]);
                break;
            }
            let block = &self.blocks[self.blocks.partition_point(|block| block.start <= at) - 1];
            let within = at - block.start;
            let (now, later) = rest.split_at_mut(rest.len().min(grainstore_format::to_usize(block.len - within)));
            spill.read(now, block.offset + within)?;
            at += now.len() as u64;
            rest = later;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskStorage;

    #[test]
    fn a_column_reads_the_same_wherever_it_was_spilled() {
        let folder = tempfile::tempdir().unwrap();
        for limit in [1, 7, 64, usize::MAX] {
            let mut spill = Spill::new(Arc::new(DiskStorage), folder.path().join("spill"));
            let mut column = ColumnWriter::default();
            let mut model = Vec::new();
            for i in 0..200_u8 {
                let bytes = vec![i; usize::from(i % 5)];
                column.push(&bytes);
                model.extend(bytes);
                column.relieve(&mut spill, limit).unwrap();
            }
            let mut whole = Vec::new();
            column
                .for_each_part(&spill, |part| {
                    whole.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
            assert_eq!(whole, model);
            for from in (0..model.len()).step_by(17) {
                for len in [0, 1, 40, model.len() - from] {
                    let len = len.min(model.len() - from);
                    assert_eq!(column.read(&spill, from as u64, len as u64).unwrap(), &model[from..from + len]);
                }
            }
            spill.finish().unwrap();
            assert!(!folder.path().join("spill").exists());
        }
    }
}
