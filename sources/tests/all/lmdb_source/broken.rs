//! Files that are damaged, or change.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use grainstore_sources::lmdb::{LmdbOptions, recognises};
use grainstore_sources::{Layout, Reach, Source};
use proptest::prelude::*;

use super::pages::Pages;
use super::{LmdbFolder, all, check_blocks, fixture, mapped, raw, stream};

/// The refusal of a valid file of which some bytes were replaced.
fn refusal(changes: &[(usize, &[u8])]) -> String {
    LmdbFolder::with(&changed(fixture("plain"), changes)).refusal(&LmdbOptions::default())
}

fn changed(mut bytes: Vec<u8>, changes: &[(usize, &[u8])]) -> Vec<u8> {
    for (at, new) in changes {
        bytes[*at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

fn many(page_len: usize) -> Vec<u8> {
    let entry = |i: usize| (format!("{i:06}").into_bytes(), vec![i as u8; 30]);
    Pages::of(page_len, &(0..400).map(entry).collect::<Vec<_>>())
}

#[test]
fn files_of_other_machines_and_versions_are_refused_by_name() {
    let both = |at: usize, bytes: &'static [u8]| refusal(&[(at, bytes), (4096 + at, bytes)]);
    assert!(both(16, &[0; 4]).starts_with("is not an LMDB file: magic number 00000000"));
    assert!(both(16, &[0xbe, 0xef, 0xc0, 0xde]).starts_with("was written on a big-endian machine"));
    assert_eq!(both(20, &[2, 0, 0, 0]), "is an LMDB file of format 2, expected 1");
    assert_eq!(both(40, &[0; 4]), "pages have 0 bytes, expected a power of two from 512 to 32768");
    let narrow: Vec<u8> = [&fixture("plain")[..8], &fixture("plain")[12..]].concat();
    let narrow = changed(narrow, &[(4, &[0, 0, 8, 0])]);
    assert!(recognises(&narrow));
    assert!(LmdbFolder::with(&narrow).refusal(&raw()).starts_with("was written by a 32-bit LMDB"));
}

#[test]
fn a_torn_meta_page_leaves_the_other() {
    let place = LmdbFolder::with(&changed(fixture("plain"), &[(16, &[0; 4])]));
    assert!(place.open(&raw()).is_err(), "the page size stands in the first");
    let place = LmdbFolder::with(&changed(many(512), &[(512 + 16, &[0; 4])]));
    assert_eq!(all(&place.open(&raw()).unwrap()).len(), 400);
}

#[test]
fn a_commit_of_another_process_ends_the_reading() {
    let place = LmdbFolder::with(&many(512));
    let source = place.open(&raw()).unwrap();
    let mut samples = source.open(0, 0, Layout::Packed).unwrap();
    samples.next().unwrap();
    File::options().write(true).open(place.file()).unwrap().write_all_at(&7_u64.to_le_bytes(), 144).unwrap();
    let rest_of_the_page = std::iter::from_fn(|| samples.next().transpose()).position(|one| one.is_err());
    assert!(rest_of_the_page.unwrap() < 12, "the next page must not be believed");
    let bad = source.open(0, 0, Layout::Packed).err().unwrap();
    let why = "another process has written to it since (transaction 7, was 1): stop the writer or copy the database \
               with `mdb_copy`";
    assert_eq!((bad.why.text.as_str(), bad.reach), (why, Reach::Rest));
    assert!(samples.next().unwrap().is_none());
    assert_eq!(source.blocks(0).unwrap_err().why.text, why);
    assert_eq!(all(&place.open(&raw()).unwrap()).len(), 400);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_ends_the_reading() {
    let place = LmdbFolder::with(&many(512));
    let source = place.open(&raw()).unwrap();
    File::options().write(true).open(place.file()).unwrap().set_len(2048).unwrap();
    let read = stream(&source, Layout::Packed);
    assert!(read.last().unwrap().as_ref().unwrap_err().why.text.contains("cannot be read"));
}

#[test]
fn pages_that_point_in_circles_end() {
    let bytes = many(512);
    let root = u64::from_le_bytes(bytes[88 + 40..88 + 48].try_into().unwrap());
    let (at, depth) = (root as usize * 512, u16::from_le_bytes([bytes[94], bytes[95]]));
    assert_eq!(depth, 3);
    let second = usize::from(u16::from_le_bytes([bytes[at + 18], bytes[at + 19]]));
    // A child of the root is the root again.
    let circle = changed(bytes.clone(), &[(at + second, &root.to_le_bytes()[..6])]);
    let source = LmdbFolder::with(&circle);
    let source = source.open(&raw()).unwrap();
    let bad = stream(&source, Layout::Packed).into_iter().filter(Result::is_err).count();
    assert!(bad > 0);
    check_blocks(&source);
    // Two children of the root are the same.
    let first = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
    let twice = changed(bytes.clone(), &[(at + second, &bytes[at + first..at + first + 6])]);
    let error = LmdbFolder::with(&twice).open(&raw()).unwrap_err().to_string();
    assert!(error.contains("is in a branch page twice"), "{error}");
    for depth in [0_u16, 1, 2, 4, 32, 33, u16::MAX] {
        let place =
            LmdbFolder::with(&changed(bytes.clone(), &[(94, &depth.to_le_bytes()), (512 + 94, &depth.to_le_bytes())]));
        let read = place.open(&raw()).map(|source| stream(&source, Layout::Packed));
        assert!(read.is_err() || read.unwrap().iter().any(Result::is_err), "depth {depth}");
    }
}

#[test]
fn a_bad_leaf_page_loses_only_its_own_samples() {
    let bytes = many(512);
    let leaf = (1024..bytes.len()).step_by(512).find(|at| bytes[at + 10] == 2).unwrap();
    let place = LmdbFolder::with(&changed(bytes, &[(leaf + 10, &[1])]));
    let source = place.open(&raw()).unwrap();
    let read = stream(&source, Layout::Packed);
    let bad: Vec<_> = read.iter().filter_map(|one| one.as_ref().err()).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].why.text, "page 2: page flags are 0001, expected those of a leaf page (0002)");
    assert_eq!(bad[0].location.offset, Some(1024));
    assert!(read.len() > 380 && read.len() < 400);
    check_blocks(&source);
}

#[test]
fn a_folder_without_a_database_and_a_mapped_key_are_refused() {
    let place = LmdbFolder::fixture("plain");
    assert!(place.refusal(&mapped("key=value")).starts_with("a sample's key is its key in the database"));
    assert!(place.refusal(&mapped("image=data")).starts_with("it has nothing named \"data\""));
    fs::remove_file(place.file()).unwrap();
    assert!(place.refusal(&raw()).starts_with("cannot be read"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic_and_blocks_agree_with_streaming(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..4, any::<u8>()), 1..6),
        which in 0_usize..4,
    ) {
        let (mut bytes, options) = match which {
            0 => (many(512), raw()),
            1 => (fixture("datum"), LmdbOptions::default()),
            2 => (fixture("ocr"), mapped("image=image-*,label=label-*")),
            _ => (fixture("plain"), raw()),
        };
        // Three in four flips hit the header or the first nodes of a page.
        let page_len = if which == 0 { 512 } else { 4096 };
        for (index, near, byte) in flips {
            let at = index.index(bytes.len());
            let at = if near == 0 { at } else { at / page_len * page_len + at % 40 };
            bytes[at] ^= byte;
        }
        let place = LmdbFolder::with(&bytes);
        if let Ok(source) = place.open(&options) {
            if (0..source.description().parts.len()).all(|part| source.blocks(part).is_ok()) {
                check_blocks(&source);
            }
            stream(&source, Layout::InPlace);
        }
    }
}
