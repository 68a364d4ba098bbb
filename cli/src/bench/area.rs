//! The files on which the device is measured: those of the dataset, read past the page cache, at random offsets.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::SplitMix64;
use grainstore_reader::engine::{BLOCK_LEN, IoMode, OpenFile};

/// Maximum number of open files: a quarter of the usual limit of descriptors. Of more files, an even selection is read.
const OPEN_MAX: usize = 64;
const BLOCK: u64 = BLOCK_LEN as u64;

/// The files that are read.
pub(crate) struct Area {
    files: Vec<Arc<OpenFile>>,
    /// Where each file would end if all files were concatenated.
    ends: Vec<u64>,
}

/// A read to be done.
pub(super) struct RandomRead {
    pub(super) file: Arc<OpenFile>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Area {
    /// Opens files for direct reads. Empty files are skipped.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(crate) fn open<P: AsRef<Path>>(paths: &[P]) -> anyhow::Result<Self> {
        let step = paths.len().div_ceil(OPEN_MAX).max(1);
        let mut files = Vec::new();
        let mut ends = Vec::new();
        let mut end = 0_u64;
        for path in paths.iter().step_by(step) {
            let file = OpenFile::open(path, IoMode::Direct)?;
            if file.file_len() > 0 {
                end = end.saturating_add(file.file_len());
                files.push(Arc::new(file));
                ends.push(end);
            }
        }
        Ok(Self { files, ends })
    }

    /// How files are read now: buffered as soon as direct I/O was refused for one of them.
    pub(crate) fn mode(&self) -> IoMode {
        if self.refused().is_some() { IoMode::Buffered } else { IoMode::Direct }
    }

    /// A file for which direct I/O was refused.
    pub(crate) fn refused(&self) -> Option<&Path> {
        self.files.iter().find(|file| file.fell_back()).map(|file| file.path())
    }

    /// A random read of `len` bytes, or of a whole file that is shorter; `None` if there is nothing to read. It starts
    /// at a block boundary, and a file is chosen with a probability proportional to its length.
    pub(super) fn draw(&self, len: u64, random: &mut SplitMix64) -> Option<RandomRead> {
        let all_len = self.ends.last().copied()?;
        let drawn = random.below(all_len);
        let file = self.files.get(self.ends.partition_point(|&end| end <= drawn))?;
        let file_len = file.file_len();
        let len = len.min(file_len);
        let block_count = (file_len - len) / BLOCK + 1;
        Some(RandomRead { file: Arc::clone(file), offset: random.below(block_count) * BLOCK, len })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;

    /// Files of these lengths, in a temporary folder.
    pub(in super::super) fn files(lens: &[usize]) -> (tempfile::TempDir, Area) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..lens.len()).map(|number| folder.path().join(number.to_string())).collect();
        paths.iter().zip(lens).for_each(|(path, len)| fs::write(path, vec![1; *len]).unwrap());
        let area = Area::open(&paths).unwrap();
        (folder, area)
    }

    #[test]
    fn reads_are_aligned_lie_inside_and_go_to_files_as_they_are_long() {
        let (_folder, area) = files(&[1, 90_000, 0, 10_000]);
        let mut random = SplitMix64::new(3);
        let mut short = 0;
        let mut tiny = 0;
        for _ in 0..2000 {
            let RandomRead { file, offset, len } = area.draw(4096, &mut random).unwrap();
            assert!(offset % BLOCK == 0 && offset + len <= file.file_len());
            short += u32::from(file.file_len() == 10_000);
            tiny += u32::from(file.file_len() == 1);
        }
        assert!((120..280).contains(&short) && tiny <= 2, "{short} {tiny}");
    }

    #[test]
    fn there_is_nothing_to_draw_from_no_bytes() {
        let mut random = SplitMix64::new(3);
        assert!(files(&[]).1.draw(1, &mut random).is_none() && files(&[0, 0]).1.draw(1, &mut random).is_none());
    }
}
