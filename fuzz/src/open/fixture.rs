//! The datasets that are changed: written once, in memory where possible.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use grainstore_format::{Manifest, SegmentKind, SegmentRef};
use grainstore_store::{Dataset, check_and_decode};
use grainstore_writer::Sample;

use super::answers::Known;
use super::base::{BaseFile, Role};
use super::material::{Material, materials};

/// A dataset whose files are known by heart.
pub(super) struct Fixture {
    pub(super) files: Vec<BaseFile>,
    /// All samples, in order.
    pub(super) samples: Vec<Known>,
    /// The sample count of each generation.
    pub(super) generations: Vec<usize>,
    directory: PathBuf,
    is_lone: bool,
    changed: Mutex<Vec<usize>>,
}

/// The fixtures, by number.
pub(super) fn fixtures() -> &'static [Fixture] {
    static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
        let place = place();
        let materials = materials(&place);
        materials.into_iter().map(|material| Fixture::new(&material)).collect()
    });
    &FIXTURES
}

/// A directory of this process, in memory where there is such a place.
///
/// The fuzzer ends the process without unwinding, so what earlier ones left is removed here.
fn place() -> PathBuf {
    const NAME: &str = "grainstore-fuzz-";
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    if Path::new("/proc/self").exists() {
        for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
            if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
    let place = parent.join(format!("{NAME}{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).unwrap();
    place
}

impl Fixture {
    fn new(material: &Material) -> Self {
        let opened = Dataset::open(&material.path).unwrap();
        let samples = known(&opened, &material.samples);
        let is_lone = material.path.is_file();
        let directory = if is_lone { material.path.parent().unwrap().to_owned() } else { material.path.clone() };
        let mut names: Vec<String> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !is_lone || material.path.ends_with(name))
            .collect();
        // The manifest, which is made from the others, comes last.
        names.sort();
        let files: Vec<BaseFile> = names.into_iter().map(|name| BaseFile::read(&directory, name)).collect();
        let generations = match files.last().filter(|file| file.role == Role::Manifest) {
            Some(file) => Manifest::decode(&file.bytes).unwrap().generations().to_vec(),
            None => Vec::new(),
        };
        let generations = generations.iter().map(|generation| generation.sample_count as usize);
        let generations: Vec<usize> = if is_lone { vec![samples.len()] } else { generations.collect() };
        Self { files, samples, generations, directory, is_lone, changed: Mutex::new(Vec::new()) }
    }

    /// What is opened.
    pub(super) fn path(&self) -> PathBuf {
        if self.is_lone { self.directory.join(&self.files[0].name) } else { self.directory.clone() }
    }

    /// Writes the files; whether one of them is not as it was at first.
    pub(super) fn put(&self, files: &[Vec<u8>]) -> bool {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, (base, bytes)) in self.files.iter().zip(files).enumerate() {
            let differs = base.bytes != *bytes;
            if differs || changed.contains(&number) {
                std::fs::write(self.directory.join(&base.name), bytes).unwrap();
            }
            changed.retain(|other| *other != number);
            changed.extend(differs.then_some(number));
        }
        !changed.is_empty()
    }

    /// Makes the files as they were at first.
    pub(super) fn put_back(&self) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for number in changed.drain(..) {
            std::fs::write(self.directory.join(&self.files[number].name), &self.files[number].bytes).unwrap();
        }
    }

    /// The number of the file with the samples of a segment.
    pub(super) fn data_of(&self, segment: u32) -> Option<usize> {
        let has_samples = |file: &&BaseFile| matches!(file.role, Role::Segment | Role::Data);
        let name = &self.files.iter().filter(has_samples).nth(segment as usize)?.name;
        self.files.iter().position(|file| file.name == *name)
    }

    /// The name of the file with the index of a segment.
    pub(super) fn index_file_of<'a>(&self, segment: &'a SegmentRef) -> &'a str {
        match &segment.kind {
            SegmentKind::Native => &segment.path,
            SegmentKind::External { index_file, .. } => index_file,
        }
    }
}

/// What the dataset says of its samples, compared with what was written.
fn known(dataset: &Dataset, written: &[Sample]) -> Vec<Known> {
    assert_eq!(dataset.sample_count(), written.len() as u64);
    let row = |(ordinal, sample): (u64, &Sample)| {
        let location = dataset.locate(ordinal).unwrap();
        let file = std::fs::read(dataset.segments()[location.segment].path()).unwrap();
        let mut payload = Vec::new();
        let stored = &file[location.offset as usize..][..location.stored_len as usize];
        check_and_decode(&location, stored, &mut payload).unwrap();
        let key = dataset.key(ordinal).unwrap();
        assert_eq!((&payload, key.as_deref().unwrap_or_default()), (&sample.payload, &sample.key[..]));
        let attributes = dataset.attributes(ordinal).unwrap();
        assert_eq!(attributes, sample.attributes);
        let fields = dataset.fields(ordinal, payload.len() as u64).unwrap();
        Known { location, key, attributes, fields, payload }
    };
    (0..).zip(written).map(row).collect()
}
