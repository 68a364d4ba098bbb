//! Opens a dataset directory or a lone native segment: reads the manifest and one index, and checks that they agree.
//!
//! The work does not grow with the number of samples; the files of the segments are not opened.
//! spec.md: section 9, MAN-3, MAN-4, EXT-1, GEN-1, FPR-2.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use grainstore_format::{
    BLOCK_LEN, DatasetFingerprint, FileKind, Fingerprint, Footer, FormatError, Header, Manifest, SegmentKind,
    SegmentRef, SegmentTable, UrlPath, round_up,
};

use crate::index::file::open_regular;
use crate::index::{Frame, Index};
use crate::segment::{AllowedPaths, ExternalData, Segment};
use crate::{OpenOptions, StoreError};

/// The parts of an opened dataset.
#[derive(Debug)]
pub(crate) struct OpenedParts {
    pub(crate) index: Index,
    /// The segments of the opened generation.
    pub(crate) segments: Vec<Segment>,
    /// For every segment of the index: whether it is external.
    pub(crate) external: Vec<bool>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) table: SegmentTable,
    pub(crate) manifest: Option<Manifest>,
}

/// What a path leads to.
pub(crate) enum PathKind {
    Directory,
    LoneFile,
}

/// Checks the path before anything is opened.
pub(crate) fn path_kind(path: &Path) -> Result<PathKind, StoreError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(PathKind::LoneFile),
        Ok(metadata) if metadata.is_dir() => match path.join(Manifest::FILE_NAME).try_exists() {
            Ok(true) => Ok(PathKind::Directory),
            Ok(false) => Err(no_manifest(path)),
            Err(error) => Err(StoreError::io(&path.join(Manifest::FILE_NAME), error)),
        },
        Ok(_) => Err(StoreError::NotADataset {
            path: path.to_owned(),
            why: "it is neither a directory nor a regular file".into(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && partial_of(path).is_dir() => {
            let why = "it is not finished".into();
            Err(StoreError::Unfinished { path: path.to_owned(), why, partial: partial_of(path) })
        }
        Err(error) => {
            if error.kind() == std::io::ErrorKind::NotFound {
                UrlPath::refuse(path).map_err(StoreError::Url)?;
            }
            Err(StoreError::io(path, error))
        }
    }
}

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<OpenedParts, StoreError> {
    match path_kind(path)? {
        PathKind::Directory => open_directory(path, options),
        PathKind::LoneFile => open_lone(path, options),
    }
}

/// Reads `manifest.json`.
pub(crate) fn read_manifest(directory: &Path) -> Result<Manifest, StoreError> {
    let path = directory.join(Manifest::FILE_NAME);
    let (file, len) = open_regular(&path)?;
    if len > Manifest::MAX_LEN {
        let source = FormatError::Limit { what: "length of the manifest", found: len, limit: Manifest::MAX_LEN };
        return Err(StoreError::format(&path, source));
    }
    let bytes = grainstore_host::read_whole(file, len).map_err(|error| StoreError::io(&path, error))?;
    Manifest::decode(&bytes).map_err(|error| StoreError::format(&path, error))
}

fn open_directory(path: &Path, options: &OpenOptions) -> Result<OpenedParts, StoreError> {
    let manifest = read_manifest(path)?;
    let count = manifest.generations().len();
    let number = options.generation.unwrap_or(count.saturating_sub(1));
    let chosen = *manifest.generations().get(number).ok_or_else(|| StoreError::NoSuchGeneration {
        path: path.to_owned(),
        generation: number,
        count,
    })?;
    check_only_index(path, &manifest)?;
    let index = Index::open(&path.join(&manifest.index().file), options.index_memory)?;
    check_index(&index, &manifest)?;
    let table = index.table.truncated(chosen.segment_count as usize);
    let allowed = AllowedPaths::new(options.allow_external);
    let segments = manifest.segments().iter().take(table.len()).enumerate().map(|(number, segment)| {
        allowed.check(path, segment)?;
        let data = ExternalData::of(&segment.kind, allowed);
        let ordinals = table.ordinals(number);
        Ok(Segment::new(path.join(&segment.path), data, segment.file_len, segment.fingerprint, ordinals))
    });
    Ok(OpenedParts {
        segments: segments.collect::<Result<_, StoreError>>()?,
        external: manifest.segments().iter().map(|segment| segment.kind != SegmentKind::Native).collect(),
        fingerprint: chosen.fingerprint,
        table,
        index,
        manifest: Some(manifest),
    })
}

fn open_lone(path: &Path, options: &OpenOptions) -> Result<OpenedParts, StoreError> {
    if let Some(generation) = options.generation.filter(|&generation| generation > 0) {
        return Err(StoreError::NoSuchGeneration { path: path.to_owned(), generation, count: 1 });
    }
    check_is_segment(path)?;
    let index = Index::open(path, options.index_memory)?;
    check_lone(&index)?;
    let mut fingerprint = DatasetFingerprint::new();
    fingerprint.push(index.frame.fingerprint, index.sample_count());
    let (len, own) = (index.frame.file.len(), index.frame.fingerprint);
    Ok(OpenedParts {
        segments: vec![Segment::new(path.to_owned(), None, len, own, index.table.ordinals(0))],
        external: vec![false],
        fingerprint: fingerprint.get(),
        table: index.table.clone(),
        index,
        manifest: None,
    })
}

/// Checks the header of a lone file: only a native segment is a dataset. spec.md: FIL-2, FIL-3.
fn check_is_segment(path: &Path) -> Result<(), StoreError> {
    check_is_ours(path)?;
    let header = read_header(path)?;
    match Header::decode(&header).map_err(|error| StoreError::format(path, error))?.kind {
        FileKind::Segment => Ok(()),
        FileKind::Index => Err(StoreError::NotADataset {
            path: path.to_owned(),
            why: "it is an index and holds no samples; open its directory".into(),
        }),
    }
}

/// The error of a file whose header is of another version; `None` if it is of this one, or cannot be read.
/// spec.md: VER-1.
pub(crate) fn other_version_of_header(path: &Path) -> Option<StoreError> {
    let error = Header::decode(&read_header(path).ok()?).err()?;
    error.is_other_version().then(|| StoreError::format(path, error))
}

/// The first block of a file; all of a shorter file.
pub(crate) fn read_header(path: &Path) -> Result<Vec<u8>, StoreError> {
    use std::io::Read;
    let (file, _) = open_regular(path)?;
    let mut header = Vec::with_capacity(Header::LEN);
    file.take(Header::LEN as u64).read_to_end(&mut header).map_err(|error| StoreError::io(path, error))?;
    Ok(header)
}

/// The file that has a segment's own index: the segment itself, or the one beside it.
pub(crate) fn index_file_of(segment: &SegmentRef) -> &String {
    match &segment.kind {
        SegmentKind::Native => &segment.path,
        SegmentKind::External { index_file, .. } => index_file,
    }
}

/// Checks that the index of a dataset of one segment is the segment's own. spec.md: MAN-4.
fn check_only_index(path: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let [only] = manifest.segments() else { return Ok(()) };
    let wrong = |what| Err(StoreError::damaged(&path.join(Manifest::FILE_NAME), "manifest", what));
    if manifest.index().file != *index_file_of(only) {
        return wrong("it names another index than its only segment");
    }
    if manifest.index().fingerprint != only.fingerprint {
        return wrong("it has two fingerprints for one index: as an index and as its only segment");
    }
    Ok(())
}

/// Checks that the manifest and its index agree. spec.md: MAN-3, MAN-4.
fn check_index(index: &Index, manifest: &Manifest) -> Result<(), StoreError> {
    let wrong = |what: String| Err(StoreError::mismatch(index.path(), what));
    let found = index.frame.fingerprint;
    let expected = manifest.index().fingerprint;
    if found != expected {
        return wrong(format!("its fingerprint is {found}, the manifest has {expected}"));
    }
    let found = index.table.len();
    let expected = manifest.segments().len();
    if found != expected {
        return wrong(format!("it has {found} segments, the manifest has {expected}"));
    }
    let records = index.table.records().iter().zip(manifest.segments());
    for (number, (record, segment)) in records.enumerate() {
        if record.sample_count != segment.sample_count {
            let found = record.sample_count;
            let expected = segment.sample_count;
            return wrong(format!("segment {number} has {found} samples in the index, {expected} in the manifest"));
        }
        let native = segment.kind == SegmentKind::Native;
        if !data_end_fits(native, record.data_end, segment.file_len) {
            let end = record.data_end;
            let len = segment.file_len;
            return wrong(format!("segment {number} ends at {end}, which does not fit its file of {len} bytes"));
        }
    }
    match manifest.segments() {
        [only] if only.kind == SegmentKind::Native => check_only_segment(index, only),
        _ => check_index_file(&index.frame),
    }
}

/// Whether the samples of a segment fit its file, in a native one with an index after them. spec.md: SEG-2.
pub(crate) fn data_end_fits(native: bool, data_end: u64, file_len: u64) -> bool {
    if !native {
        return data_end <= file_len;
    }
    let index_end = round_up(data_end, BLOCK_LEN).saturating_add(2 * BLOCK_LEN);
    data_end >= BLOCK_LEN && index_end <= file_len
}

fn check_only_segment(index: &Index, segment: &SegmentRef) -> Result<(), StoreError> {
    let (found, expected) = (index.frame.file.len(), segment.file_len);
    if found != expected {
        return Err(StoreError::mismatch(index.path(), format!("it has {found} bytes, the manifest has {expected}")));
    }
    check_lone(index)
}

/// Checks that the index of a native segment follows its samples. spec.md: FIL-2, SEG-2.
pub(crate) fn check_lone(index: &Index) -> Result<(), StoreError> {
    let data_end = match index.table.records() {
        [only] => only.data_end,
        records => {
            return Err(index.damaged("segment table", format!("{} records, expected 1 in a segment", records.len())));
        }
    };
    let expected = round_up(data_end, BLOCK_LEN);
    let found = index.frame.footer.index_offset();
    if data_end < BLOCK_LEN || expected != found {
        return Err(index.damaged("segment table", format!("data ends at {data_end}, the index is at {found}")));
    }
    Ok(())
}

/// Checks that an index file holds nothing before its sections. spec.md: FTR-4.
pub(crate) fn check_index_file(frame: &Frame) -> Result<(), StoreError> {
    let offset = frame.footer.index_offset();
    if offset == BLOCK_LEN {
        return Ok(());
    }
    Err(StoreError::damaged(
        frame.path(),
        "footer",
        format!("index_offset is {offset}, expected 4096 in an index file"),
    ))
}

/// Refuses a file that neither begins nor ends like a grainstore file.
pub(crate) fn check_is_ours(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::FileExt;
    if read_header(path)?.starts_with(b"\x89GRAIN\r\n") {
        return Ok(());
    }
    let (file, len) = open_regular(path)?;
    let mut magic = [0; 8];
    let offset = len.saturating_sub(Footer::LEN as u64);
    if file.read_exact_at(&mut magic, offset).is_ok() && &magic == b"GRAINEND" {
        return Ok(());
    }
    let why = "it neither begins nor ends like a grainstore file".into();
    Err(StoreError::NotADataset { path: path.to_owned(), why })
}

fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".partial");
    path.with_file_name(name)
}

/// Why a directory without a manifest is no dataset.
fn no_manifest(path: &Path) -> StoreError {
    let why = format!("the directory has no {}", Manifest::FILE_NAME);
    let partial = if path.extension().is_some_and(|extension| extension == "partial") {
        path.to_owned()
    } else {
        partial_of(path)
    };
    if partial.is_dir() {
        return StoreError::Unfinished { path: path.to_owned(), why, partial };
    }
    StoreError::NotADataset { path: path.to_owned(), why }
}
