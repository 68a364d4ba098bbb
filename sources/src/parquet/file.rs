//! A Parquet file: its footer, with the parts that are used checked against the file.

use grainstore_host::open_regular;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnDescriptor;
use serde_json::Value;

use super::declared::DeclaredTypes;
use super::footer::is_buildable;
use super::lists::ListPath;
use super::pages::{FileAt, contained};
use crate::{Bad, Reach, RecordLocation, SourceError};

/// The first and the last bytes of a file.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// A file whose footer was read. The file itself is closed: there may be more files than a process may open.
#[derive(Debug)]
pub(super) struct ParquetFile {
    pub(super) path: PathBuf,
    len: u64,
    pub(super) metadata: Arc<ParquetMetaData>,
}

/// A row group whose columns are inside the file.
pub(super) struct CheckedGroup {
    pub(super) row_count: u64,
    /// Length of the columns that are read, in bytes.
    pub(super) stored_len: u64,
}

impl ParquetFile {
    /// # Errors
    /// Where it cannot be read, or its footer makes no sense.
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Path { path: path.to_owned(), source };
        let (file, len) = open_regular(path).map_err(failed)?;
        let head = crate::compressed::head_of(&mut &file).map_err(failed)?;
        let refused = |why: String| SourceError::Refused { path: path.to_owned(), why: why.into() };
        if !super::recognises(&head) {
            return Err(refused(format!("not a Parquet file: {len} bytes that do not begin with \"PAR1\"")));
        }
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let reader = ParquetMetaDataReader::new().with_metadata_options(Some(options));
        let at = FileAt { file: Arc::new(file), len };
        let damaged = |error: String| refused(format!("damaged, or cut off: its footer cannot be read: {error}"));
        let footer = contained(|| footer_of(&at)).map_err(damaged)?;
        if !is_buildable(&footer) {
            return Err(damaged("its columns are not a tree, or are nested too deeply".into()));
        }
        let metadata = contained(|| reader.parse_and_finish(&at)).map_err(damaged)?;
        Ok(Self { path: path.to_owned(), len, metadata: Arc::new(metadata) })
    }

    /// Opens it again, to read its pages.
    ///
    /// # Errors
    /// Where that fails, or it is another file now.
    pub(super) fn reopen(&self) -> Result<FileAt, Bad> {
        let (file, len) = open_regular(&self.path).map_err(|error| Bad::file(&self.path, &error))?;
        if len != self.len {
            let why = format!("it has {len} bytes now; it had {} when it was looked at", self.len);
            return Err(Bad::new(&self.path, RecordLocation::default(), why, Reach::Rest));
        }
        Ok(FileAt { file: Arc::new(file), len })
    }

    pub(super) fn leaves(&self) -> impl ExactSizeIterator<Item = &ColumnDescriptor> {
        self.metadata.file_metadata().schema_descr().columns().iter().map(|column| &**column)
    }

    /// The leaf columns, and their names with what they have of lists.
    pub(super) fn named_leaves(&self) -> impl Iterator<Item = (ListPath, &ColumnDescriptor)> {
        let root = self.metadata.file_metadata().schema_descr().root_schema();
        self.leaves().map(move |column| (ListPath::of(column, root), column))
    }

    /// The types that the footer declares beside the columns.
    pub(super) fn declared(&self) -> DeclaredTypes {
        DeclaredTypes::of(self.metadata.file_metadata().key_value_metadata())
    }

    /// What Hugging Face's library keeps in the footer: the types of the columns.
    pub(super) fn features(&self) -> Option<Value> {
        let pairs = self.metadata.file_metadata().key_value_metadata()?;
        let text = pairs.iter().find(|pair| pair.key == "huggingface")?.value.as_deref()?;
        serde_json::from_str::<Value>(text).ok()?.pointer("/info/features").cloned()
    }

    /// Checks the number of rows of a row group, and where these columns are in the file.
    ///
    /// # Errors
    /// Names the row group and the column.
    pub(super) fn check_group(&self, group: usize, leaves: &[usize]) -> Result<CheckedGroup, SourceError> {
        let refused = |why: String| SourceError::Refused {
            path: self.path.clone(),
            why: format!("row group {group}{why}").into(),
        };
        let metadata = self.metadata.row_group(group);
        let row_count = u64::try_from(metadata.num_rows());
        let row_count = row_count.map_err(|_| refused(format!(" has {} rows", metadata.num_rows())))?;
        let mut stored_len: u64 = 0;
        for &leaf in leaves {
            let chunk = metadata.columns().get(leaf).ok_or_else(|| refused(" has too few columns".into()))?;
            let column = chunk.column_descr().path().string();
            let chunk_len = self.check_chunk(chunk);
            let chunk_len =
                chunk_len.map_err(|why| refused(format!(", column \"{}\": {why}", column.escape_debug())))?;
            stored_len = stored_len.saturating_add(chunk_len);
        }
        Ok(CheckedGroup { row_count, stored_len })
    }

    /// Checks where a column of a row group is; returns its length in bytes.
    fn check_chunk(&self, chunk: &ColumnChunkMetaData) -> Result<u64, String> {
        match chunk.compression() {
            Compression::BROTLI(_) => return Err(not_built_in("brotli")),
            Compression::LZO => return Err(not_built_in("lzo")),
            _ => {}
        }
        if chunk.file_path().is_some() {
            return Err("its data are in another file; name that file".into());
        }
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        match (u64::try_from(start), u64::try_from(chunk.compressed_size())) {
            (Ok(start), Ok(len)) if start.checked_add(len).is_some_and(|end| end <= self.len) => Ok(len),
            _ => Err(format!("its {} bytes at byte {start} end past the file's {}", chunk.compressed_size(), self.len)),
        }
    }
}

/// The bytes between the data and the footer's length.
fn footer_of(file: &FileAt) -> parquet::errors::Result<Bytes> {
    let missing = || ParquetError::EOF(format!("there are only {} bytes", file.len));
    let end = file.len.checked_sub(8).ok_or_else(missing)?;
    let tail = file.get_bytes(end, 8)?;
    let len = u32::from_le_bytes(*tail.first_chunk().ok_or_else(missing)?);
    file.get_bytes(end.checked_sub(len.into()).ok_or_else(missing)?, len as usize)
}

fn not_built_in(codec: &str) -> String {
    format!("it is compressed with {codec}, which is not built in; write the file again with zstd, snappy or gzip")
}
