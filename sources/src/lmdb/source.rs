//! LMDB environments as a source: a range of a database's keys is a part.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use grainstore_format::{Remedy, UnknownName, choice_of, escape_bytes, shown_path};

use super::file::{DataFile, Fault};
use super::left_out::left_out;
use super::meta::Record;
use super::page::{Node, NodeContent};
use super::samples::LmdbSamples;
use super::shape::LmdbShape;
use super::split::{check_len, split};
use super::tree::{Spot, Tree};
use super::window::Window;
use crate::{
    Bad, BlockBuilder, Blocks, Description, Layout, Mapping, NotPacked, Reach, Remark, SampleReader, Source,
    SourceError, SourcePart, stamp_of_parts,
};

/// Keys that are examined to infer what a database holds.
const KEYS_SEEN_MAX: usize = 1000;
/// Values that are examined to infer what they are, and their bytes at most.
const VALUES_SEEN_MAX: usize = 100;
const BYTES_SEEN_MAX: u64 = 16 << 20;
/// Bytes that are read of a value that cannot be a `Datum`: enough to recognise a picture.
const HEAD_LEN: u64 = 64;

/// How LMDB environments are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LmdbOptions {
    /// Which names become which; see the module for the valid names.
    pub map: Mapping,
    /// The named database that is read; the main one where `None`.
    pub database: Option<String>,
    /// What the values are.
    pub values: LmdbValues,
    /// Keys that are not samples.
    pub exclude: Vec<Vec<u8>>,
}

/// What the values of an LMDB are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LmdbValues {
    /// Inferred from the first hundred.
    #[default]
    Auto,
    /// Bytes that are not decoded.
    Raw,
    /// Caffe's `Datum`.
    Datum,
}

impl LmdbValues {
    /// The names of the choices.
    pub const NAMES: [&'static str; 3] = ["auto", "raw", "datum"];
    const ALL: [Self; 3] = [Self::Auto, Self::Raw, Self::Datum];
}

impl fmt::Display for LmdbValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::NAMES[*self as usize])
    }
}

impl FromStr for LmdbValues {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        choice_of(name, &Self::NAMES, Self::ALL)
    }
}

/// LMDB environments, one after the other. All are decoded like the first.
#[derive(Debug)]
pub struct LmdbSource {
    databases: Vec<Database>,
    shape: LmdbShape,
    exclude: Vec<Vec<u8>>,
    description: Description,
    /// For each part, its database and its range.
    ranges: Vec<(usize, Range<Spot>)>,
}

/// A database of an open file.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) file: DataFile,
    pub(super) tree: Tree,
}

/// What was seen in the first nodes of a database.
#[derive(Default)]
struct SeenNodes {
    /// Names of databases.
    names: Vec<String>,
    plain_count: usize,
    values: Vec<Vec<u8>>,
}

impl LmdbSource {
    /// Opens LMDB environments: each a folder with `data.mdb` in it, or such a file.
    ///
    /// # Errors
    /// Where one cannot be opened, is not LMDB, is cut off, is being written to, or holds what cannot be converted.
    pub fn open(files: &[PathBuf], options: &LmdbOptions) -> Result<Self, SourceError> {
        let databases = files.iter().map(|path| Database::open(path, options)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = databases.first() else {
            return Err(refused(Path::new(""), "no LMDB was named"));
        };
        let (shape, notes) = first.shape(options)?;
        let mut ranges = Vec::new();
        let mut parts = Vec::new();
        for (index, database) in databases.iter().enumerate() {
            let own = split(&database.file, &database.tree);
            parts.extend(vec![database.part(own.len() as u64); own.len()]);
            ranges.extend(own.into_iter().map(|range| (index, range)));
        }
        let (mut warnings, mut not_packed) = (Vec::new(), NotPacked::default());
        if !shape.patterns().is_empty() {
            for one in &databases {
                let (key_count, remarks) = left_out(&one.file, &one.tree, shape.patterns());
                not_packed.keys += key_count;
                warnings.extend(remarks);
            }
        }
        let origins = databases.iter().map(|database| database.file.path().to_owned()).collect();
        let description = Description {
            // Several environments may share keys.
            has_distinct_keys: databases.len() == 1,
            // Pages are filled from their ends, and in any order.
            ascends: false,
            not_adoptable: shape.not_adoptable().map(Remark::from),
            notes,
            warnings,
            not_packed,
            ..Description::new("LMDB", origins, shape.metadata.clone(), parts)
        };
        Ok(Self { databases, shape, exclude: options.exclude.clone(), description, ranges })
    }

    pub(super) fn shape(&self) -> &LmdbShape {
        &self.shape
    }

    /// The key of a node's sample; `None` where the node is not a sample.
    pub(super) fn sample_key<'a>(&self, node: &Node<'a>) -> Option<&'a [u8]> {
        if matches!(node.content, NodeContent::Database(_)) || self.exclude.iter().any(|key| key == node.key) {
            return None;
        }
        self.shape.sample_key(node.key)
    }

    /// The database of a part, and its range from `position` on. Fails if the file was written to since it was opened.
    fn range(&self, part: usize, position: u64) -> Result<(&Database, Range<Spot>), Bad> {
        let (index, range) = self.ranges.get(part).ok_or_else(|| Bad::no_part(&self.description, part))?;
        let database = &self.databases[*index];
        database.file.check_unwritten().map_err(|fault| fault.into_bad(database.file.path(), None))?;
        Ok((database, range.start.max(Spot::at(position))..range.end))
    }
}

impl Source for LmdbSource {
    fn description(&self) -> &Description {
        &self.description
    }

    /// Reads leaf pages only: they have the lengths of values on overflow pages.
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        let (database, range) = self.range(part, 0)?;
        let mut entries = database.tree.entries(&database.file, range);
        let mut blocks = BlockBuilder::default();
        let path = database.file.path();
        while let Some((spot, found)) = entries.next() {
            match found {
                Err(fault) if fault.reach == Reach::Rest => return Err(fault.into_bad(path, None)),
                Err(_) => blocks.push(spot.position(), 0),
                Ok(found) if self.sample_key(&found.node).is_none() => {}
                Ok(found) => blocks.push(spot.position(), found.node.content.len()),
            }
        }
        database.file.check_unwritten().map_err(|fault| fault.into_bad(path, None))?;
        Ok(Some(blocks.finish()))
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let (database, range) = self.range(part, position)?;
        let entries = database.tree.entries(&database.file, range);
        Ok(Box::new(LmdbSamples::new(self, database, entries, layout)))
    }

    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}

impl Database {
    fn open(path: &Path, options: &LmdbOptions) -> Result<Self, SourceError> {
        let file = DataFile::open(path)?;
        let refuse = |why: String| refused(file.path(), why);
        check_len(&file).map_err(refuse)?;
        let main = file.meta().main;
        let open = |record: Record| -> Result<Tree, SourceError> {
            record.check().map_err(refuse)?;
            Tree::open(&file, record).map_err(|fault| fault.into_bad(file.path(), None).into())
        };
        let tree = match &options.database {
            None => open(main)?,
            Some(name) => {
                let tree = open(main)?;
                open(named(&file, &tree, name)?)?
            }
        };
        Ok(Self { file, tree })
    }

    fn shape(&self, options: &LmdbOptions) -> Result<(LmdbShape, Vec<Remark>), SourceError> {
        let seen = self.read_first_nodes(options).map_err(SourceError::from)?;
        let names = seen.names.join(", ");
        if seen.plain_count == 0 && !seen.names.is_empty() {
            let why = format!("holds no values itself, only named databases ({names})");
            return Err(refused(self.file.path(), Remark::new(why, Remedy::ChooseDatabase)));
        }
        let shape = LmdbShape::of(options, &seen.values).map_err(|why| refused(self.file.path(), why))?;
        if shape.searches() && !self.tree.is_ordered_by_bytes() {
            return Err(refused(
                self.file.path(),
                "its keys are not in the order of their bytes, so none can be found",
            ));
        }
        let note = format!("{} holds named databases too, which are not read: {names}", shown_path(self.file.path()));
        Ok((shape, if seen.names.is_empty() { Vec::new() } else { vec![Remark::new(note, Remedy::ChooseDatabase)] }))
    }

    /// Reads the first keys and the first values.
    fn read_first_nodes(&self, options: &LmdbOptions) -> Result<SeenNodes, Bad> {
        let mut seen = SeenNodes::default();
        let mut bytes_seen = 0;
        let mut entries = self.tree.entries(&self.file, self.tree.whole());
        let bad = |fault: Fault| fault.into_bad(self.file.path(), None);
        for _ in 0..KEYS_SEEN_MAX {
            let Some((_, found)) = entries.next() else { break };
            // Errors are reported when the samples are read.
            let Ok(mut found) = found else { continue };
            if matches!(found.node.content, NodeContent::Database(_)) {
                seen.names.push(escape_bytes(found.node.key));
                continue;
            }
            if options.exclude.iter().any(|key| key == found.node.key) {
                continue;
            }
            seen.plain_count += 1;
            if seen.values.len() >= VALUES_SEEN_MAX || bytes_seen >= BYTES_SEEN_MAX {
                continue;
            }
            let Ok(value) = found.value() else { continue };
            bytes_seen += value.len;
            let whole = value.len <= BYTES_SEEN_MAX && options.values != LmdbValues::Raw;
            let len = if whole { value.len } else { HEAD_LEN };
            seen.values.push(self.file.read_head(&value, len).map_err(bad)?);
        }
        Ok(seen)
    }

    /// One of its `count` parts.
    fn part(&self, count: u64) -> SourcePart {
        let bytes = self.tree.page_count().saturating_mul(self.file.page_len()).min(self.file.len);
        SourcePart { path: self.file.path().to_owned(), len: bytes / count.max(1), sample_count: None }
    }
}

/// The record of a named database.
fn named(file: &DataFile, main: &Tree, name: &str) -> Result<Record, SourceError> {
    if !main.is_ordered_by_bytes() {
        return Err(refused(file.path(), "its main database is not in the order of bytes, so it has no named ones"));
    }
    let found =
        main.find(file, name.as_bytes()).map_err(|fault| SourceError::from(fault.into_bad(file.path(), None)))?;
    let found = match found {
        Some((NodeContent::Database(_), value)) => file.read_value(value, &mut Window::default()).ok(),
        _ => None,
    };
    let record = found.and_then(|bytes| Record::decode(&bytes));
    record.ok_or_else(|| refused(file.path(), format!("has no named database \"{}\"", escape_bytes(name.as_bytes()))))
}

fn refused(path: &Path, why: impl Into<Remark>) -> SourceError {
    SourceError::Refused { path: path.to_owned(), why: why.into() }
}
