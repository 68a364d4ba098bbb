//! Listed folders as a source: one file, one sample.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grainstore_format::{Remedy, escape_bytes, shown_path};
use grainstore_host::{open_regular, read_whole};
use grainstore_writer::{Sample, StreamedSample};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use xxhash_rust::xxh64::Xxh64;

use super::known::{refuse_saved, tables_out_of};
use super::labels::Labels;
use super::listing::{Listing, OnUnreadable, ScanOptions};
use super::roots::{Roots, remove_from};
use super::shape::FolderShape;
use crate::source::file_stamp;
use crate::{
    Bad, Blocks, Description, Layout, NotPacked, Reach, RecordLocation, Remark, SampleReader, Skipped, Source,
    SourceError, SourcePart, SourceSample, WHOLE_LEN_MAX,
};

/// Default number of threads that list folders. They wait for the device most of the time, so their number does not
/// depend on the number of cores.
const LISTERS: usize = 16;

/// How a folder is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderOptions {
    /// What to do about a folder that cannot be listed, or a link that leads nowhere.
    pub on_unreadable: OnUnreadable,
    /// Threads that list; 16 where `None`. The result does not depend on it.
    pub jobs: Option<NonZeroUsize>,
    /// A table with a row for each file: CSV, TSV or JSON Lines. Columns of numbers become attributes, columns of text
    /// become fields. If it is in the folder itself, it is not a sample.
    pub labels: Option<PathBuf>,
    /// Whether the folders' names are labels.
    pub folder_labels: FolderLabels,
}

/// Whether the names of folders are labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderLabels {
    /// Where every file is at CLASS/FILE, or no file is; it is an error where some are, and a table has no labels either.
    #[default]
    Found,
    /// Never.
    Ignored,
}

/// One folder of plain files as a source, or several.
#[derive(Debug)]
pub struct FolderSource {
    roots: Roots,
    shape: FolderShape,
    description: Description,
}

impl FolderSource {
    /// Lists the folder `root`. No file is opened yet, except the table of labels.
    ///
    /// # Errors
    /// Where it cannot be listed, a path is too long to be a key, or labels and files do not match.
    pub fn open(root: &Path, options: &FolderOptions) -> Result<Self, SourceError> {
        Self::open_all(&[root.to_owned()], options)
    }

    /// Lists several folders, which become one dataset: `convert imagenet/train imagenet/val`.
    ///
    /// Keys begin with the folder's own name, `train/`; the attribute `split` is the folder's number, and `split_names`
    /// in the user metadata are the names. Classes are those of all folders. With one folder, as [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`]; and where there is no folder, two have the same name, or one is inside another.
    pub fn open_all(roots: &[PathBuf], options: &FolderOptions) -> Result<Self, SourceError> {
        if roots.is_empty() {
            return Err(SourceError::Refused { path: PathBuf::new(), why: "no folder was named".into() });
        }
        let mut listings = scan_all(roots, options)?;
        refuse_saved(&listings)?;
        let tables = match &options.labels {
            Some(labels) => {
                for listing in &mut listings {
                    remove_from(listing, labels)?;
                }
                Vec::new()
            }
            None => tables_out_of(&mut listings, options.folder_labels)?,
        };
        let roots = Roots::of(listings)?;
        let labels = options.labels.as_deref().map(Labels::read).transpose()?;
        if labels.is_none() && options.folder_labels == FolderLabels::Found {
            check_classes(&roots)?;
        }
        let shape = FolderShape::of(&roots, labels, options.folder_labels)?;
        let origins: Vec<PathBuf> = roots.listings().iter().map(|listing| listing.root().to_owned()).collect();
        let part = |listing: &Listing| SourcePart {
            path: listing.root().to_owned(),
            len: 0,
            sample_count: Some(listing.len() as u64),
        };
        let parts = roots.listings().iter().map(part).collect();
        let skipped = |(path, why): &(PathBuf, String)| Skipped { path: path.clone(), why: why.as_str().into() };
        let description = Description {
            has_distinct_keys: true,
            is_listed: true,
            not_adoptable: Some(Remark::new("every file would be a segment of its own", Remedy::Convert)),
            notes: notes(&roots, &shape, options.folder_labels),
            warnings: links_warning(&roots).into_iter().chain(tables_warning(&tables)).collect(),
            not_packed: NotPacked { files: tables.len() as u64, ..NotPacked::default() },
            skipped: roots.listings().iter().flat_map(Listing::unreadable).map(skipped).collect(),
            ..Description::new("folder", origins, shape.metadata().clone(), parts)
        };
        Ok(Self { roots, shape, description })
    }

    /// What was found in the folder; in the first one, where there are several.
    pub fn listing(&self) -> &Listing {
        &self.roots.listings()[0]
    }

    /// What was found in each folder.
    pub fn listings(&self) -> &[Listing] {
        self.roots.listings()
    }

    /// Number of classes, where every file is at `class/file` and no table has other labels.
    pub fn class_count(&self) -> Option<usize> {
        self.shape.class_count()
    }
}

fn notes(roots: &Roots, shape: &FolderShape, folder_labels: FolderLabels) -> Vec<Remark> {
    let special: u64 = roots.listings().iter().map(Listing::skipped_special).sum();
    let special = (special > 0).then(|| format!("pipes, sockets and devices, ignored: {special}"));
    let junk: u64 = roots.listings().iter().map(Listing::skipped_junk).sum();
    let junk = (junk > 0).then(|| format!("junk such as .DS_Store and Thumbs.db, ignored: {junk}"));
    let labels = if folder_labels == FolderLabels::Found { labels_note(roots, shape) } else { None };
    let texts = labels.into_iter().chain(shape.notes().iter().cloned()).chain(special).chain(junk);
    texts.map(Remark::from).collect()
}

/// Files that are named where they hide the classes.
const SHOWN_MAX: usize = 5;

/// Refuses folders of which only some files are at CLASS/FILE: nobody wants to lose all labels to a few other files.
fn check_classes(roots: &Roots) -> Result<(), SourceError> {
    let paths = |listing| (0..Listing::len(listing)).map(|file| listing.relative_path(file));
    let all = || roots.listings().iter().flat_map(paths);
    let elsewhere: Vec<String> =
        all().filter(|path| !is_class_file(path)).take(SHOWN_MAX).map(|path| escape_bytes(path).to_string()).collect();
    if elsewhere.is_empty() || !all().any(is_class_file) {
        return Ok(());
    }
    let (file_count, count) = (all().count(), all().filter(|path| !is_class_file(path)).count());
    let more = if count > SHOWN_MAX { format!(" and {} more", count - SHOWN_MAX) } else { String::new() };
    let why = format!(
        "{count} of {file_count} files are not at CLASS/FILE, so there are no labels: {}{more}",
        elsewhere.join(", ")
    );
    Err(SourceError::refused(roots.listings()[0].root(), Remark::new(why, Remedy::PackWithoutLabels)))
}

fn is_class_file(path: &[u8]) -> bool {
    path.iter().filter(|&&byte| byte == b'/').count() == 1
}

/// A note on whether the samples have labels, and if not, why.
fn labels_note(roots: &Roots, shape: &FolderShape) -> Option<String> {
    if let Some(count) = shape.class_count() {
        let ending = if count == 1 { "" } else { "es" };
        return Some(format!("labels: {count} class{ending} (the folders)"));
    }
    if shape.metadata().schema.attributes().iter().any(|attribute| attribute.name == "label") {
        return None;
    }
    let paths = |listing| (0..Listing::len(listing)).map(|file| listing.relative_path(file));
    let other = roots.listings().iter().flat_map(paths).find(|path| !is_class_file(path));
    let shown = other.map_or_else(String::new, |path| format!(", such as {}", escape_bytes(path)));
    // train/CLASS/FILE and val/CLASS/FILE: labels need each split to be named.
    let are_splits = |path: &[u8]| path.iter().filter(|&&byte| byte == b'/').count() == 2;
    let way_out = if roots.listings().iter().flat_map(paths).all(are_splits) {
        "; where SRC has folders of classes in folders such as train and val, name each: SRC/train SRC/val"
    } else {
        ""
    };
    Some(format!("no labels: not every file is at CLASS/FILE{shown}{way_out}"))
}

fn links_warning(roots: &Roots) -> Option<Remark> {
    let links: u64 = roots.listings().iter().map(Listing::skipped_dir_links).sum();
    let ending = if links == 1 { "" } else { "s" };
    (links > 0).then(|| format!("{links} link{ending} to folders NOT packed: only links to files are followed").into())
}

fn tables_warning(tables: &[PathBuf]) -> Option<Remark> {
    let names: Vec<String> = tables.iter().take(SHOWN_MAX).map(shown_path).collect();
    let others = tables.len() - names.len();
    let more = if others == 0 { String::new() } else { format!(" and {others} more") };
    (!names.is_empty())
        .then(|| format!("tables about the other files are NOT packed: {}{more}", names.join(", ")).into())
}

fn scan_all(roots: &[PathBuf], options: &FolderOptions) -> Result<Vec<Listing>, SourceError> {
    let listers = options.jobs.map_or(LISTERS, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(listers).build();
    let pool = pool.map_err(|error| SourceError::Threads(error.to_string()))?;
    let scan = ScanOptions { on_unreadable: options.on_unreadable };
    Ok(pool.install(|| roots.iter().map(|root| Listing::scan(root, scan)).collect::<Result<_, _>>())?)
}

impl Source for FolderSource {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        Ok(Some(Blocks::Each(self.roots.listings()[part].len() as u64)))
    }

    fn open(&self, part: usize, position: u64, _layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let long = Box::new(io::empty());
        Ok(Box::new(FolderSamples { source: self, root: part, next: position, ahead: None, long }))
    }

    /// A hash of every file's stamp, read by many threads; the files are opened soon anyway.
    fn stamp(&self) -> u64 {
        let mut hash = Xxh64::new(0);
        for listing in self.listings() {
            let stamps = (0..listing.len()).into_par_iter().map(|file| file_stamp(&listing.path(file)));
            for stamp in stamps.collect::<Vec<u64>>() {
                hash.update(&stamp.to_le_bytes());
            }
        }
        hash.digest()
    }
}

/// Reads the files of a folder, from one on.
struct FolderSamples<'a> {
    source: &'a FolderSource,
    root: usize,
    next: u64,
    /// The next file, opened to see how long it is.
    ahead: Option<io::Result<(File, u64)>>,
    long: Box<dyn Read>,
}

impl SampleReader for FolderSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let file = grainstore_format::to_usize(self.next);
        if file >= self.listing().len() {
            return Ok(None);
        }
        self.next += 1;
        self.read(file).map(Some).map_err(|error| {
            let path = self.listing().path(file);
            Bad::new(&path, RecordLocation::default(), format!("cannot be packed: {error}"), Reach::Sample)
        })
    }

    fn ahead_len(&mut self) -> Option<u64> {
        let file = grainstore_format::to_usize(self.next);
        let listing = &self.source.roots.listings()[self.root];
        if file >= listing.len() {
            return None;
        }
        let opened = self.ahead.get_or_insert_with(|| open_regular(&listing.path(file)));
        opened.as_ref().ok().map(|&(_, len)| len).filter(|&len| len <= WHOLE_LEN_MAX)
    }

    fn file(&self) -> Option<PathBuf> {
        Some(self.listing().path(grainstore_format::to_usize(self.next.checked_sub(1)?)))
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

impl FolderSamples<'_> {
    fn listing(&self) -> &Listing {
        &self.source.roots.listings()[self.root]
    }

    fn read(&mut self, file: usize) -> io::Result<SourceSample> {
        let FolderSource { roots, shape, .. } = self.source;
        let opened = self.ahead.take().unwrap_or_else(|| open_regular(&self.listing().path(file)));
        let (opened, file_len) = opened?;
        let key = roots.key(self.root, file);
        let rank = roots.rank(self.root, file);
        let attributes = shape.attributes(self.root, file, rank);
        let texts = shape.texts(rank);
        let (fields, len) = fields(file_len, &texts);
        let joined_texts: String = texts.into_iter().flatten().collect();
        if len > WHOLE_LEN_MAX {
            // A file that has grown returns one byte too many, so that it is reported and not cut.
            self.long = if fields.is_empty() {
                Box::new(opened)
            } else {
                Box::new(opened.take(file_len.saturating_add(1)).chain(Cursor::new(joined_texts)))
            };
            return Ok(SourceSample::Long { sample: StreamedSample { key, attributes, fields, len }, offset: 0 });
        }
        let mut payload = read_whole(opened, file_len)?;
        payload.extend_from_slice(joined_texts.as_bytes());
        Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields }, offset: 0 })
    }
}

/// The ranges of a file and of the texts after it in the payload, and its length; no ranges where there are no texts.
fn fields(file_len: u64, texts: &[Option<&str>]) -> (Vec<Option<Range<u64>>>, u64) {
    if texts.is_empty() {
        return (Vec::new(), file_len);
    }
    let mut fields = vec![Some(0..file_len)];
    let mut end = file_len;
    for text in texts {
        let start = end;
        end += text.map_or(0, str::len) as u64;
        fields.push(text.map(|_| start..end));
    }
    (fields, end)
}
