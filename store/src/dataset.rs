//! The opened dataset and its basic facts. The methods for samples, keys and columns are in other modules.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use grainstore_format::{
    Categories, ChunkList, Fingerprint, Geometry, Manifest, Schema, SegmentTable, UserMetadata, shown_path,
};

use crate::StoreError;
use crate::dataset_cache::{CachedAttribute, CheckedEntries, LoadControl};
use crate::index::Index;
use crate::open::{OpenedParts, open, read_manifest};
use crate::opened_segment::OpenedFile;
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
    /// If not, or there is no such segment; `Changed` if the dataset no longer has this segment.
    pub fn segment_file(&self, segment: usize) -> Result<(), StoreError> {
        let found = self.segment(segment)?.check_file(self.path());
        if found.map_err(|error| self.changed_or(segment, error))? == FileTime::Other {
            self.0.modified.get_or_init(|| segment);
        }
        Ok(())
    }

    /// Checks that a file that was opened by the path of `segment`, after [`Dataset::segment_file`], is this segment:
    /// that it has its length, and a native one its fingerprint. Meanwhile a writer may have deleted the segment and
    /// given its name to another. `read` fills a buffer from an offset of the file; usually it is called once, for at
    /// most 4096 bytes, and not at all for a file that was found right before.
    ///
    /// # Errors
    /// If not, or there is no such segment; `Changed` if the dataset no longer has this segment; those of `read`.
    pub fn check_opened_segment<E: From<StoreError>>(
        &self,
        segment: usize,
        file: OpenedFile<'_>,
        read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let checked = self.segment(segment)?.check_opened(file, read)?;
        checked.map_err(|error| self.changed_or(segment, error).into())
    }

    /// The error of a segment whose file is not there: `Changed` if the dataset no longer has this segment.
    pub fn missing_segment_file(&self, segment: usize) -> StoreError {
        match self.segment(segment) {
            Ok(found) => self.changed_or(segment, StoreError::NotFound { path: found.path().to_owned() }),
            Err(error) => error,
        }
    }

    /// The error of a segment's file, or that the dataset was changed since it was opened, where that explains it.
    #[cold]
    fn changed_or(&self, segment: usize, error: StoreError) -> StoreError {
        let Some(file) = self.0.segments.get(segment) else { return error };
        let is_possible = match (&error, &self.0.manifest) {
            (StoreError::NotFound { .. }, None) => false,
            (StoreError::NotFound { .. } | StoreError::Mismatch { .. }, _) => true,
            (StoreError::Format { .. }, _) => !error.is_lack_of_memory(),
            _ => false,
        };
        if !is_possible || !self.no_longer_has(segment) {
            return error;
        }
        StoreError::Changed { path: file.path().to_owned(), what: error.without_path() }
    }

    /// Whether the dataset that is at the path now has no such segment. A lone segment is the dataset.
    fn no_longer_has(&self, segment: usize) -> bool {
        let Some(opened) = &self.0.manifest else { return true };
        let Some(of_opened) = opened.segments().get(segment) else { return false };
        read_manifest(self.path()).is_ok_and(|now| !now.segments().contains(of_opened))
    }

    fn segment(&self, segment: usize) -> Result<&Segment, StoreError> {
        self.0.segments.get(segment).ok_or_else(|| {
            let what = format!("no segment {segment}: the dataset has {}", self.0.segments.len());
            StoreError::mismatch(&self.0.path, what)
        })
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
