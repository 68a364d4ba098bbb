//! Facts about a dataset: counts and sizes.

use grainstore_format::{Alignment, BLOCK_LEN, Fingerprint, Manifest, SegmentKind, round_up};

use crate::{Dataset, StoreError};

/// Counts and sizes of the opened generation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Samples.
    pub samples: u64,
    /// Segments, external ones too.
    pub segments: u64,
    /// Segments whose data are in another program's file.
    pub external_segments: u64,
    /// Sum of the raw lengths, in bytes.
    pub payload_bytes: u64,
    /// Sum of the stored lengths, in bytes.
    pub stored_bytes: u64,
    /// All files of the dataset including index and manifest, in bytes; external data are not counted.
    pub file_bytes: u64,
    /// All copies of the index, in bytes.
    pub index_bytes: u64,
    /// Bytes of a chunk.
    pub chunk_size: u64,
    /// Where samples may start.
    pub alignment: Alignment,
    /// Chunks of all segments.
    pub chunks: u64,
    /// Samples that cross out of their chunk.
    pub edge_samples: u64,
    /// Samples whose stored length does not fit their entry.
    pub long_samples: u64,
    /// Samples stored as LZ4.
    pub lz4_samples: u64,
    /// Generations of the dataset, including newer ones.
    pub generations: u64,
    /// Whether samples have keys.
    pub keyed: bool,
    /// Attributes of the schema.
    pub attributes: u64,
    /// Fields of the schema.
    pub fields: u64,
    /// The fingerprint of the opened generation.
    pub fingerprint: Fingerprint,
}

impl Dataset {
    /// Counts and sizes. Loads the index, and queries the lengths of the files.
    ///
    /// # Errors
    /// As [`Dataset::load`], and if a file of the dataset is missing.
    pub fn facts(&self) -> Result<Facts, StoreError> {
        let loaded = self.loaded()?;
        let chunks = self.chunks()?;
        let totals = loaded.totals;
        let (file_bytes, index_bytes) = self.file_sizes()?;
        Ok(Facts {
            samples: self.sample_count(),
            segments: self.segments().len() as u64,
            external_segments: self.segments().iter().filter(|segment| segment.is_external()).count() as u64,
            payload_bytes: totals.payload_bytes,
            stored_bytes: totals.stored_bytes,
            file_bytes,
            index_bytes,
            chunk_size: self.geometry().chunk_size.bytes(),
            alignment: self.geometry().alignment,
            chunks: chunks.len(),
            edge_samples: chunks.edge_samples().count() as u64,
            long_samples: totals.long_count,
            lz4_samples: totals.lz4_count,
            generations: self.0.manifest.as_ref().map_or(1, |manifest| manifest.generations().len() as u64),
            keyed: self.is_keyed(),
            attributes: self.schema().attributes().len() as u64,
            fields: self.schema().fields().len() as u64,
            fingerprint: self.fingerprint(),
        })
    }

    /// Bytes of all files, and of all copies of the index among them.
    fn file_sizes(&self) -> Result<(u64, u64), StoreError> {
        let len_of = |path: &std::path::Path| {
            std::fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| StoreError::io(path, error))
        };
        let mut files = 0;
        let mut indexes = 0;
        for (segment, record) in self.segments().iter().zip(self.segment_table().records()) {
            if !segment.is_external() {
                files += segment.file_len();
                indexes += segment.file_len() - round_up(record.data_end, BLOCK_LEN).min(segment.file_len());
            }
        }
        let Some(manifest) = &self.0.manifest else { return Ok((files, indexes)) };
        files += len_of(&self.path().join(Manifest::FILE_NAME))?;
        let mut index_files: Vec<&str> = Vec::new();
        for segment in manifest.segments().iter().take(self.segments().len()) {
            if let SegmentKind::External { index_file, .. } = &segment.kind {
                index_files.push(index_file);
            }
        }
        // The index of a single native segment is in its file, and counted there.
        let only_native = matches!(manifest.segments(), [only] if only.kind == SegmentKind::Native);
        if !only_native && !index_files.contains(&manifest.index().file.as_str()) {
            index_files.push(&manifest.index().file);
        }
        for file in index_files {
            let len = len_of(&self.path().join(file))?;
            files += len;
            indexes += len;
        }
        Ok((files, indexes))
    }
}
