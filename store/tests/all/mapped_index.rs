//! A mapped index gives the same answers as a loaded one, and reports the same damage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::path::Path;

use grainstore_format::SectionKind as Kind;
use grainstore_store::{Dataset, IndexMemory, OpenOptions, StoreError};

use crate::common::{self, DatasetModel, read};

fn open(path: &Path, index_memory: IndexMemory) -> Dataset {
    Dataset::open_with(path, &OpenOptions { index_memory, ..OpenOptions::default() }).unwrap()
}

#[test]
fn a_mapped_index_answers_as_a_loaded_one() {
    let built = DatasetModel::rich(&[40, 3, 90]).write();
    let [loaded, mapped] = [IndexMemory::Owned, IndexMemory::Mapped].map(|memory| open(&built.path, memory));
    for dataset in [&loaded, &mapped] {
        dataset.load().unwrap();
    }
    for ordinal in 0..133 {
        assert_eq!(loaded.locate(ordinal).unwrap(), mapped.locate(ordinal).unwrap());
        assert_eq!(read(&loaded, ordinal).unwrap(), read(&mapped, ordinal).unwrap());
    }
    for attribute in loaded.schema().attributes() {
        let [a, b] = [&loaded, &mapped].map(|dataset| dataset.column(&attribute.name).unwrap());
        assert_eq!((a.width, a.len, a.bytes), (b.width, b.len, b.bytes));
    }
    assert_eq!(loaded.payload_bytes().unwrap(), mapped.payload_bytes().unwrap());
}

/// Ten megabytes of entries: several threads load them, or check them in the map.
fn large() -> common::Built {
    DatasetModel::plain(&vec![vec![]; 700_000]).write()
}

/// DIR-6
#[test]
fn damage_in_a_large_section_is_reported_the_same_way_mapped_or_loaded() {
    let built = large();
    let file = built.path.join("00000.seg");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let [loaded, mapped] = [IndexMemory::Owned, IndexMemory::Mapped]
        .map(|memory| open(&built.path, memory).load().unwrap_err().to_string());
    assert!(loaded.contains(&format!("section {}", Kind::Entries.name())), "{loaded}");
    assert_eq!(loaded, mapped);
}

#[test]
fn loading_reads_each_byte_of_the_entries_once_mapped_or_loaded() {
    let built = large();
    for memory in [IndexMemory::Owned, IndexMemory::Mapped] {
        let dataset = open(&built.path, memory);
        dataset.load().unwrap();
        let (read, entries_len) = (dataset.index_bytes_read(), 16 * 700_000);
        assert!((entries_len..entries_len + (192 << 10)).contains(&read), "{memory:?}: {read} of {entries_len}");
        dataset.load().unwrap();
        assert_eq!(dataset.locate(699_999).unwrap().stored_len, 0);
        assert_eq!(dataset.index_bytes_read(), read, "{memory:?}: all is in memory");
    }
}

#[test]
fn a_file_that_was_cut_short_since_it_was_opened_is_not_mapped() {
    let built = large();
    let dataset = open(&built.path, IndexMemory::Mapped);
    let file = std::fs::File::options().write(true).open(built.path.join("00000.seg")).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
    let error = dataset.load().unwrap_err();
    assert!(matches!(error, StoreError::Format { .. }), "{error}");
    assert!(error.to_string().contains("when it was opened"), "{error}");
}
