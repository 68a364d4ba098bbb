//! Tar archives in files as a source: each is a part.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::{Remedy, shown_path};

use super::bytes::{FileBytes, StreamBytes};
use super::file::{FileSamples, blocks};
use super::infer::FirstSamples;
use super::recognises;
use super::shape::TarShape;
use super::stream::StreamSamples;
use crate::compressed::{Compression, detect, open};
use crate::{
    Bad, Blocks, Chosen, Description, Layout, Mapping, Reach, RecordLocation, Remark, SampleReader, Source,
    SourceError, SourcePart, stamp_of_parts,
};

/// Bytes of a compressed archive's content that are examined to infer the schema.
pub(crate) const LOOK_LEN_MAX: u64 = 64 << 20;

/// How archives are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TarOptions {
    /// The extensions to take, several for one name with `;` between them, and what they are called; members of others
    /// are ignored. By default all, by their own names.
    pub map: Mapping,
    /// Which members, by their extensions or by the names of what becomes of them, are taken.
    pub chosen: Chosen,
}

/// Tar archives, compressed or not.
#[derive(Debug)]
pub struct TarSource {
    description: Description,
    compressions: Vec<Compression>,
    shape: TarShape,
}

impl TarSource {
    /// Opens archives, and infers the schema from the first 1,000 samples of the first archive that has any.
    ///
    /// # Errors
    /// Where one cannot be opened, or none holds a file.
    pub fn open(files: &[PathBuf], options: &TarOptions) -> Result<Self, SourceError> {
        let mut compressions = Vec::new();
        let mut parts = Vec::new();
        let Some(first) = files.first() else {
            return Err(SourceError::refused(Path::new(""), "no file was named"));
        };
        let refused = |why: Remark| SourceError::refused(first, why);
        let mut first_samples = FirstSamples::new(&options.map).map_err(refused)?;
        for path in files {
            let (file, compression) = detect(path, recognises).map_err(|error| unopened(path, &error))?;
            let file_len = file.metadata().map_err(|error| unopened(path, &error))?.len();
            let len = if compression == Compression::None { file_len } else { 0 };
            if first_samples.is_empty() {
                read_first_samples(&mut first_samples, path, file, compression)?;
            }
            compressions.push(compression);
            parts.push(SourcePart { path: path.clone(), len, sample_count: None });
        }
        let shape = first_samples.shape_of(&options.chosen).map_err(refused)?;
        let description = Description {
            ascends: true,
            not_adoptable: not_adoptable(&parts, &compressions),
            notes: shape.notes().to_vec(),
            ..Description::new("tar", files.to_vec(), shape.metadata().clone(), parts)
        };
        Ok(Self { description, compressions, shape })
    }

    fn part(&self, part: usize) -> Result<(&Path, Compression), Bad> {
        match (self.description.parts.get(part), self.compressions.get(part)) {
            (Some(part), Some(compression)) => Ok((&part.path, *compression)),
            _ => Err(Bad::no_part(&self.description, part)),
        }
    }
}

fn read_first_samples(
    first_samples: &mut FirstSamples,
    path: &Path,
    file: File,
    compression: Compression,
) -> Result<(), SourceError> {
    if compression == Compression::None {
        let len = file.metadata().map_err(|error| unopened(path, &error))?.len();
        first_samples.read_archive(FileBytes::new(file, len));
    } else {
        let content = open(path, compression).map_err(|error| unopened(path, &error))?;
        first_samples.read_archive(StreamBytes::new(content.take(LOOK_LEN_MAX)));
    }
    Ok(())
}

fn unopened(path: &Path, error: &std::io::Error) -> SourceError {
    SourceError::Refused { path: path.to_owned(), why: format!("cannot be opened: {error}").into() }
}

fn file_bytes(path: &Path) -> Result<FileBytes, Bad> {
    let (file, len) = grainstore_host::open_regular(path).map_err(|error| Bad::file(path, &error))?;
    Ok(FileBytes::new(file, len))
}

impl Source for TarSource {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        match self.part(part)? {
            (path, Compression::None) => Ok(Some(blocks(&self.shape, file_bytes(path)?))),
            _ => Ok(None),
        }
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let (path, compression) = self.part(part)?;
        if compression == Compression::None {
            let bytes = file_bytes(path)?;
            return Ok(Box::new(FileSamples::new(&self.shape, path, bytes, (position, layout))));
        }
        if position != 0 || layout == Layout::InPlace {
            let why = format!("it is {}-compressed, so it is read from its start only", compression.name());
            return Err(Bad::new(path, RecordLocation::default(), why, Reach::Rest));
        }
        let content = open(path, compression).map_err(|error| Bad::file(path, &error))?;
        Ok(Box::new(StreamSamples::new(&self.shape, path, content)))
    }

    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}

fn not_adoptable(parts: &[SourcePart], compressions: &[Compression]) -> Option<Remark> {
    let is_compressed = |(_, compression): &(&SourcePart, &Compression)| **compression != Compression::None;
    let (part, compression) = parts.iter().zip(compressions).find(is_compressed)?;
    let path = shown_path(&part.path);
    let name = compression.name();
    Some(Remark::new(format!("{path} is {name}-compressed; decompressed, it can be adopted"), Remedy::Convert))
}
