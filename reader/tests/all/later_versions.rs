//! Files as later versions may write them, made by hand: both readers of today read what they know of them, or report
//! that the file is newer.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

use grainstore_format::{Fingerprint, IndexRef, Manifest, Remedy, SegmentRef};
use grainstore_reader::{Reader, ReaderOptions};
use grainstore_store::{Dataset, StoreError, VerifyOptions};
use grainstore_writer::{AppendOptions, DatasetWriter, DiskStorage, rebuild_index};
use proptest::prelude::*;

use crate::second::{Packed, Python, Question, Recipe, listing};

const FIRST_ANCILLARY_KIND: u16 = 32768;

/// A range of bytes of a file, as a number.
fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

/// Puts right the checksum in the last four bytes.
fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..at]);
    put(bytes, at, &crc.to_le_bytes());
}

/// Adds sections of these kinds, items and lengths to a file, sets a compatible bit, and uses a reserved byte of header
/// and footer. Returns the fingerprint and the length of the new file.
fn extend(path: &Path, sections: &[(u16, u16, usize)]) -> (Fingerprint, u64) {
    let mut bytes = std::fs::read(path).unwrap();
    let mut footer = bytes.split_off(bytes.len() - 64);
    let begin = number(&footer, 24, 8);
    let mut directory = bytes[begin..begin + number(&footer, 20, 4)].to_vec();
    bytes.truncate(begin);
    for &(kind, item, len) in sections {
        let offset = bytes.len() as u64;
        // The list of checksums is wrong, too: nobody reads it.
        bytes.resize(bytes.len() + len.next_multiple_of(4) + 4 * len.div_ceil(65536), 0xA5);
        bytes.resize(bytes.len().next_multiple_of(4096), 0x5A);
        directory.extend([kind.to_le_bytes(), item.to_le_bytes()].concat());
        directory.extend([77; 4]);
        directory.extend([offset.to_le_bytes(), (len as u64).to_le_bytes(), [0xEE; 8]].concat());
    }
    let count = u32::try_from((directory.len() - 64) / 32).unwrap();
    put(&mut directory, 28, &count.to_le_bytes());
    put(&mut footer, 24, &(bytes.len() as u64).to_le_bytes());
    put(&mut footer, 20, &(64 + 32 * count).to_le_bytes());
    bytes.extend(&directory);
    bytes.resize((bytes.len() + 64).next_multiple_of(4096) - 64, 0);
    put(&mut footer, 40, &(bytes.len() as u64 + 64).to_le_bytes());
    put(&mut footer, 48, &crc32fast::hash(&directory).to_le_bytes());
    for structure in [&mut bytes[..4096], &mut footer] {
        put(structure, 16, &[0x20]);
    }
    (bytes[3000], footer[55]) = (9, 9);
    seal(&mut bytes[..4096]);
    seal(&mut footer);
    bytes.extend(footer);
    std::fs::write(path, &bytes).unwrap();
    (Fingerprint::of_directory(&directory), bytes.len() as u64)
}

/// Writes the manifest's bytes with some text replaced, and the right checksum.
fn write_manifest(path: &Path, manifest: &Manifest, old: &str, new: &str) {
    let text = String::from_utf8(manifest.encode().unwrap()).unwrap();
    let body = text[..text.len() - 26].replace(old, new);
    let crc = crc32fast::hash(body.as_bytes());
    std::fs::write(path, format!("{body},\n  \"crc32\": \"{crc:08x}\"\n}}\n")).unwrap();
}

/// Rewrites all files of a dataset of native segments.
fn extend_all(path: &Path, sections: &[(u16, u16, usize)], members: &str) {
    let manifest_path = path.join(Manifest::FILE_NAME);
    let manifest = Manifest::decode(&std::fs::read(&manifest_path).unwrap()).unwrap();
    let extended = |segment: &SegmentRef| {
        let (fingerprint, file_len) = extend(&path.join(&segment.path), sections);
        SegmentRef { fingerprint, file_len, ..segment.clone() }
    };
    let segments: Vec<SegmentRef> = manifest.segments().iter().map(extended).collect();
    let file = manifest.index().file.clone();
    let fingerprint = match segments.as_slice() {
        [only] => only.fingerprint,
        _ => extend(&path.join(&file), sections).0,
    };
    let manifest = Manifest::new(IndexRef { file, fingerprint }, segments, &[]).unwrap();
    write_manifest(&manifest_path, &manifest, "{\n      \"", &format!("{{{members}\n      \""));
}

fn verified(path: &Path) -> Result<Vec<String>, StoreError> {
    let damage = std::sync::Mutex::new(Vec::new());
    let options = VerifyOptions::default();
    grainstore_store::verify(path, &options, &|one| damage.lock().unwrap().push(one.to_string()), &|_| ())?;
    Ok(damage.into_inner().unwrap())
}

/// Every sample, as both readers see it.
fn assert_whole(packed: &Packed, path: &Path, python: &mut Python) {
    let reader = Reader::open(path, ReaderOptions::default()).unwrap();
    for (ordinal, sample) in (0..).zip(&packed.samples) {
        assert_eq!(reader.collection().key(ordinal).unwrap().unwrap_or_default(), sample.key);
        assert!(*reader.get(ordinal).unwrap().payload == *sample.payload, "sample {ordinal}");
    }
    assert_eq!(verified(path).unwrap(), [""; 0]);
    assert!(python.ask(&Question::new("ls", path)).success() == listing(packed, &packed.samples));
    assert_eq!(python.ask(&Question::new("verify", path)).lines(), [""; 0]);
}

/// Kinds of all sections of a file.
fn kinds(path: &Path) -> Vec<u16> {
    let bytes = std::fs::read(path).unwrap();
    let footer = &bytes[bytes.len() - 64..];
    let begin = number(footer, 24, 8);
    let records = bytes[begin + 64..begin + number(footer, 20, 4)].chunks(32);
    records.map(|record| u16::from_le_bytes([record[0], record[1]])).collect()
}

fn has_ancillary(path: &Path) -> bool {
    kinds(path).iter().any(|&kind| kind >= FIRST_ANCILLARY_KIND)
}

fn merged(path: &Path) -> PathBuf {
    let manifest = Manifest::decode(&std::fs::read(path.join(Manifest::FILE_NAME)).unwrap()).unwrap();
    path.join(&manifest.index().file)
}

const MORE: [(u16, u16, usize); 3] = [(FIRST_ANCILLARY_KIND, 0, 1), (40_000, 3, 200_000), (u16::MAX, u16::MAX, 65_536)];

/// DIR-2, VER-1, MAN-2
#[test]
fn both_readers_read_a_dataset_with_sections_bits_and_members_that_they_do_not_know() {
    let mut python = Python::start();
    for recipe in [Recipe::rich("rich", 200), Recipe::plain("plain", 4096, vec![0, 1, 4095, 4096, 40_000])] {
        let packed = recipe.pack();
        let deep = format!("\"later\": {}1e999{},", "[".repeat(5000), "]".repeat(5000));
        extend_all(packed.path(), &MORE, &deep);
        assert!(has_ancillary(&merged(packed.path())));
        assert_whole(&packed, packed.path(), &mut python);
        assert_eq!(Dataset::open(packed.path()).unwrap().facts().unwrap().samples, packed.samples.len() as u64);
    }
}

/// DIR-7
#[test]
fn writers_do_not_copy_sections_that_they_do_not_know() {
    let mut python = Python::start();
    let packed = Recipe::rich("rich", 200).pack();
    let path = packed.path();
    extend_all(path, &MORE, "");
    let storage: std::sync::Arc<dyn grainstore_writer::Storage> = std::sync::Arc::new(DiskStorage);
    std::fs::remove_file(merged(path)).unwrap();
    rebuild_index(&storage, path, 1 << 20).unwrap();
    assert!(!has_ancillary(&merged(path)));
    assert_whole(&packed, path, &mut python);

    let mut writer = DatasetWriter::append(path, AppendOptions::default()).unwrap();
    let sample = grainstore_writer::Sample { key: b"new".to_vec(), ..packed.samples[7].clone() };
    writer.write(sample).unwrap();
    writer.finish().unwrap();
    assert!(!has_ancillary(&merged(path)));
    let dataset = Dataset::open(path).unwrap();
    assert_eq!(dataset.find(b"new").unwrap(), Some(200));
    assert_eq!(verified(path).unwrap(), [""; 0]);
    assert!(has_ancillary(&path.join("00000.seg")), "a segment that exists stays as it is");
}

#[track_caller]
fn assert_newer(path: &Path, python: &mut Python) {
    for error in [Dataset::open(path).map(|_| ()).unwrap_err(), verified(path).map(|_| ()).unwrap_err()] {
        assert!(error.is_other_version() && error.remedy() == Some(Remedy::Upgrade), "{error}");
        assert!(error.to_string().contains("written by a newer grainstore"), "{error}");
    }
    for command in ["ls", "verify"] {
        let answer = python.ask(&Question::new(command, path));
        assert_eq!(answer.status, 2, "{command}: {}", answer.stderr);
        assert!(answer.stderr.contains("was written by a newer grainstore"), "{}", answer.stderr);
    }
}

/// VER-1, DIR-2: also where only one segment of several is newer; opening meets that when its index is opened.
#[test]
fn both_readers_report_that_an_index_or_a_segment_is_newer() {
    let mut python = Python::start();
    let packed = Recipe::plain("plain", 4096, vec![100; 9]).pack();
    let segment = packed.path().join("00000.seg");
    let whole = std::fs::read(&segment).unwrap();
    let footer = whole.len() - 64;
    let with = |at: usize, new: u8| {
        let mut bytes = whole.clone();
        bytes[at] = new;
        seal(&mut bytes[..4096]);
        seal(&mut bytes[footer..]);
        bytes
    };
    for at in [8, 12] {
        // The header alone decides, whatever the rest is.
        std::fs::write(&segment, with(at, 4)).unwrap();
        assert_newer(&segment, &mut python);
        std::fs::write(&segment, with(footer + at, 4)).unwrap();
        assert_newer(&segment, &mut python);
        assert_newer(packed.path(), &mut python);
    }
    let mut other = whole.clone();
    other[8] = 1;
    other[4000..].fill(0xFF);
    for len in [4096, 28_672, other.len() - 1, other.len()] {
        std::fs::write(&segment, &other[..len]).unwrap();
        assert_newer(&segment, &mut python);
        assert_newer(packed.path(), &mut python);
    }
    for kind in [0, 18, 32_767] {
        let packed = Recipe::rich("rich", 200).pack();
        extend_all(packed.path(), &[(kind, 0, 9)], "");
        assert_newer(packed.path(), &mut python);
        assert_newer(&packed.path().join("00001.seg"), &mut python);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// MAN-5, VER-1
    #[test]
    fn both_readers_report_that_a_manifest_is_newer_whatever_follows_its_version(
        space in "[ \t\r\n]{0,9}",
        version in 1..=u64::MAX,
        end in "[,}]",
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let s = space;
        let start = format!("{s}{{{s}\"format\"{s}:{s}\"grainstore\"{s},{s}\"version\"{s}:{s}{version}{s}{end}");
        std::fs::write(folder.path().join(Manifest::FILE_NAME), [start.as_bytes(), &rest].concat()).unwrap();
        assert_newer(folder.path(), &mut Python::start());
    }
}
