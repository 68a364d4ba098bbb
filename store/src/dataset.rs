//! The opened dataset and its basic facts. The methods for samples, keys and columns are in other modules.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use grainstore_format::{
    Categories, ChunkList, Fingerprint, Geometry, Manifest, Schema, SegmentTable, UserMetadata, shown_path,
};

use crate::StoreError;
use crate::dataset_cache::{CachedAttribute, CheckedEntries, LoadControl};
use crate::index::Index;
use crate::open::{OpenedParts, open};
use crate::options::OpenOptions;
use crate::segment::{FileTime, Segment, modified_since};

/// An opened dataset: a directory, or a lone native segment. A cheap clone shares everything.
///
/// It shows one generation: samples added later are not visible, and nothing in it changes.
#[derive(Debug, Clone)]
pub struct Dataset(pub(crate) Arc<DatasetInner>);

#[derive(Debug)]
pub(crate) struct DatasetInner {
    pub(crate) path: std::path::PathBuf,
    pub(crate) index: Index,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) fingerprint: Fingerprint,
    /// The segments of the opened generation.
    pub(crate) table: SegmentTable,
    pub(crate) segments: Vec<Segment>,
    /// For every segment of the index, including later generations: whether it is external.
    pub(crate) external: Vec<bool>,
    pub(crate) attributes: Vec<OnceLock<CachedAttribute>>,
    /// Of each attribute, if it is of type `category`.
    pub(crate) categories: Vec<OnceLock<Categories>>,
    /// The first segment whose file has another modification time than the manifest.
    pub(crate) modified: OnceLock<usize>,
    /// The chunk list of the opened generation.
    pub(crate) chunks: OnceLock<ChunkList>,
    pub(crate) loaded: OnceLock<CheckedEntries>,
    pub(crate) loading: LoadControl,
}

impl Dataset {
    /// Opens the newest generation of the dataset directory, or the native segment, at `path`.
    ///
    /// # Errors
    /// If there is no dataset, or it breaks a rule of the format. Samples, keys and columns are not read yet; they are
    /// checked when they are used.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// Opens a dataset with options.
    ///
    /// # Errors
    /// As [`Dataset::open`], and if there is no such generation.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let _span = tracing::debug_span!("open", path = %shown_path(path)).entered();
        let OpenedParts { index, segments, external, fingerprint, table, manifest } = open(path, options)?;
        let attribute_count = index.metadata.schema.attributes().len();
        Ok(Self(Arc::new(DatasetInner {
            path: path.to_owned(),
            index,
            manifest,
            fingerprint,
            table,
            segments,
            external,
            attributes: std::iter::repeat_with(OnceLock::new).take(attribute_count).collect(),
            categories: std::iter::repeat_with(OnceLock::new).take(attribute_count).collect(),
            modified: OnceLock::new(),
            chunks: OnceLock::new(),
            loaded: OnceLock::new(),
            loading: LoadControl::new(),
        })))
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The fingerprint of the opened generation.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// The generation with this fingerprint, counted from the oldest, which is 0: the opened one, an earlier or a later
    /// one.
    pub fn generation_of(&self, fingerprint: Fingerprint) -> Option<usize> {
        match &self.0.manifest {
            Some(manifest) => {
                manifest.generations().iter().position(|generation| generation.fingerprint == fingerprint)
            }
            None => (self.fingerprint() == fingerprint).then_some(0),
        }
    }

    /// Samples of the opened generation.
    pub fn sample_count(&self) -> u64 {
        self.0.table.sample_count()
    }

    /// Chunk size, alignment and hash seed.
    pub fn geometry(&self) -> &Geometry {
        self.0.index.frame.geometry()
    }

    /// Names and types of attributes and fields.
    pub fn schema(&self) -> &Schema {
        &self.0.index.metadata.schema
    }

    /// The user's own metadata of the dataset, such as `class_names`.
    pub fn user_metadata(&self) -> &UserMetadata {
        &self.0.index.metadata.user
    }

    /// Whether the samples have keys.
    pub fn is_keyed(&self) -> bool {
        self.0.index.frame.directory.is_keyed()
    }

    /// The segments of the opened generation, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// The ordinals and data ends of the segments of the opened generation.
    pub fn segment_table(&self) -> &SegmentTable {
        &self.0.table
    }

    /// Whether the opened generation is the newest one.
    pub(crate) fn is_newest(&self) -> bool {
        self.0.table.len() == self.0.index.table.len()
    }

    /// Checks that the file of `segment` exists with its length, and that an external one has its fingerprint. Each
    /// segment is checked once.
    ///
    /// # Errors
    /// If not, or there is no such segment.
    pub fn segment_file(&self, segment: usize) -> Result<(), StoreError> {
        let found = self.0.segments.get(segment).ok_or_else(|| {
            let what = format!("no segment {segment}: the dataset has {}", self.0.segments.len());
            StoreError::mismatch(&self.0.path, what)
        })?;
        if found.check_file(self.path())? == FileTime::Other {
            self.0.modified.get_or_init(|| segment);
        }
        Ok(())
    }

    /// Notices for the user about the files that [`Dataset::segment_file`] has checked, as sentences; usually none.
    pub fn notices(&self) -> Vec<String> {
        let modified = self.0.modified.get().and_then(|&segment| self.segments().get(segment));
        match modified {
            Some(segment) => vec![modified_since(&shown_path(segment.path()), 0)],
            None => Vec::new(),
        }
    }

    /// Bytes of the index read from the disk since it was opened.
    pub fn index_bytes_read(&self) -> u64 {
        self.0.index.frame.file.bytes_read()
    }

    /// Refuses ordinals that the opened generation does not have.
    pub(crate) fn check_ordinal(&self, ordinal: u64) -> Result<(), StoreError> {
        let sample_count = self.sample_count();
        if ordinal < sample_count { Ok(()) } else { Err(StoreError::NoSuchOrdinal { ordinal, sample_count }) }
    }
}
