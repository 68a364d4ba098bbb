//! Makes checksums right again, so that a change reaches the checks that follow them.

use std::ops::Range;

use grainstore_format::{
    Entry, Fingerprint, IndexRef, Manifest, SectionKind, SegmentKind, SegmentRef, StoredLen, data_fingerprint,
};

use super::base::Role;
use super::fixture::Fixture;
use crate::documents::sealed_manifest;
use crate::input::{seal, u32_at, u64_at};

/// What is made right again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// No checksum.
    Nothing,
    /// Those of index, header, footer and manifest, and the fingerprints.
    Index,
    /// Also the CRC-32 of the samples.
    Samples,
}

/// The repairs by their number in an input.
pub(super) const REPAIRS: [Repair; 3] = [Repair::Nothing, Repair::Index, Repair::Samples];

pub(super) fn repair(repaired: Repair, fixture: &Fixture, files: &mut [Vec<u8>]) {
    if repaired == Repair::Nothing {
        return;
    }
    for number in 0..files.len() {
        let mut bytes = std::mem::take(&mut files[number]);
        if repaired == Repair::Samples {
            repair_entries(fixture, files, number, &mut bytes);
        }
        match fixture.files[number].role {
            Role::Manifest => bytes = repair_manifest(fixture, files, number, &bytes),
            Role::Segment | Role::Index => repair_file(&mut bytes),
            Role::Data => {}
        }
        files[number] = bytes;
    }
}

/// Where the directory of a file is, as far as its footer can be believed.
fn directory_of(bytes: &[u8]) -> Option<Range<usize>> {
    let footer = &bytes[bytes.len().checked_sub(64)?..];
    let from = usize::try_from(u64_at(footer, 24)).ok()?;
    let end = from.checked_add(u32_at(footer, 20) as usize)?;
    (end <= bytes.len() - 64 && from + 64 <= end).then_some(from..end)
}

/// The records of a directory, each 32 bytes.
fn records(directory: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
    (directory.start + 64..directory.end).step_by(32).take(directory.len().saturating_sub(64) / 32)
}

fn repair_file(bytes: &mut [u8]) {
    if bytes.len() < 4096 + 64 {
        return;
    }
    if let Some(directory) = directory_of(bytes) {
        records(&directory).for_each(|record| repair_section(bytes, record));
        let crc = crc32fast::hash(&bytes[directory]);
        let footer = bytes.len() - 64;
        bytes[footer + 48..footer + 52].copy_from_slice(&crc.to_le_bytes());
    }
    let footer = bytes.len() - 64;
    let len = bytes.len() as u64;
    bytes[footer + 40..footer + 48].copy_from_slice(&len.to_le_bytes());
    seal(&mut bytes[footer..], 60);
    seal(&mut bytes[..4096], 4092);
}

fn repair_section(bytes: &mut [u8], record: usize) {
    let Some(section) = section(bytes, record) else { return };
    let crcs: Vec<u8> =
        bytes[section.clone()].chunks(65536).flat_map(|piece| crc32fast::hash(piece).to_le_bytes()).collect();
    let list = section.end.next_multiple_of(4);
    if let Some(place) = bytes.get_mut(list..list + crcs.len()) {
        place.copy_from_slice(&crcs);
        bytes[record + 24..record + 28].copy_from_slice(&crc32fast::hash(&crcs).to_le_bytes());
    }
}

fn section(bytes: &[u8], record: usize) -> Option<Range<usize>> {
    let from = usize::try_from(u64_at(bytes, record + 8)).ok()?;
    let end = from.checked_add(usize::try_from(u64_at(bytes, record + 16)).ok()?)?;
    (end <= bytes.len()).then_some(from..end)
}

/// Gives each entry the CRC-32 of the bytes that it points to. `bytes` are those of file `number`.
fn repair_entries(fixture: &Fixture, files: &[Vec<u8>], number: usize, bytes: &mut [u8]) {
    let own_data = fixture.files[number].role == Role::Segment;
    let Some(directory) = directory_of(bytes) else { return };
    let entries = records(&directory).find(|&record| bytes[record] == SectionKind::Entries as u8);
    let Some(entries) = entries.and_then(|record| section(bytes, record)) else { return };
    for at in entries.step_by(Entry::LEN) {
        let Some(&entry) = bytes.get(at..at + Entry::LEN).and_then(|entry| Entry::slice_of(entry).first()) else {
            return;
        };
        let StoredLen::Here(len) = entry.stored_len() else { continue };
        let from = entry.offset() as usize;
        let stored = from..from + len as usize;
        let crc = if own_data {
            bytes.get(stored).map(crc32fast::hash)
        } else {
            let data = fixture.data_of(entry.segment()).filter(|data| *data != number);
            data.and_then(|data| files[data].get(stored)).map(crc32fast::hash)
        };
        if let Some(crc) = crc {
            bytes[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// The manifest of the files as they are now, where it was not changed itself; its checksum in any case.
fn repair_manifest(fixture: &Fixture, files: &[Vec<u8>], number: usize, bytes: &[u8]) -> Vec<u8> {
    if bytes != fixture.files[number].bytes {
        return sealed_manifest(bytes);
    }
    let base = Manifest::decode(bytes).expect("a fixture's manifest is whole");
    let file = |name: &str| fixture.files.iter().position(|file| file.name == name).map(|number| &files[number]);
    let fingerprint = |name: &str, before: Fingerprint| {
        let bytes = file(name);
        let directory = bytes.and_then(|bytes| bytes.get(directory_of(bytes)?));
        directory.map_or(before, Fingerprint::of_directory)
    };
    let segments = base.segments().iter().map(|segment| SegmentRef {
        file_len: file(&segment.path).map_or(segment.file_len, |bytes| bytes.len() as u64),
        fingerprint: fingerprint(fixture.index_file_of(segment), segment.fingerprint),
        kind: repaired_kind(&segment.kind, file(&segment.path)),
        ..segment.clone()
    });
    let index = base.index();
    let index = IndexRef { file: index.file.clone(), fingerprint: fingerprint(&index.file, index.fingerprint) };
    let earlier: Vec<u32> = base.generations().iter().rev().skip(1).rev().map(|one| one.segment_count).collect();
    let manifest = Manifest::new(index, segments.collect(), &earlier).and_then(|manifest| manifest.encode());
    manifest.unwrap_or_else(|_| bytes.to_vec())
}

/// EXT-2
fn repaired_kind(kind: &SegmentKind, data: Option<&Vec<u8>>) -> SegmentKind {
    match (kind, data) {
        (&SegmentKind::External { ref index_file, modified_ns, .. }, Some(data)) => {
            let len = data.len().min(65536);
            let data_fingerprint = data_fingerprint(&data[..len], &data[data.len() - len..], data.len() as u64);
            SegmentKind::External { index_file: index_file.clone(), data_fingerprint, modified_ns }
        }
        _ => kind.clone(),
    }
}
