//! One broken rule of an index at a time, with all checksums right: only the rule can detect it.
//!
//! "Refused" means that opening, loading or using the dataset fails, and that `verify` reports it. "Reported" means
//! that only `verify` checks it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_format::{Alignment, Remedy, SectionKind as Kind};
use grainstore_store::StoreError;

use crate::common::{
    self, Built, DatasetModel, IndexParts, assert_error, assert_refused, assert_reported, use_all, verify,
};

/// One segment of 20 rich samples, its index changed.
fn broken(change: impl FnOnce(&mut IndexParts)) -> Built {
    let mut parts = DatasetModel::rich(&[20]).parts();
    change(&mut parts.segments[0].index);
    parts.write()
}

#[track_caller]
fn refused(what: &str, change: impl FnOnce(&mut IndexParts)) {
    assert_refused(&broken(change).path, what);
}

/// Refused with one error and reported with another: use and verification check in different orders.
#[track_caller]
fn refused_and_reported(error: &str, what: &str, change: impl FnOnce(&mut IndexParts)) {
    let built = broken(change);
    assert_error(&built.path, error);
    assert_reported(&built.path, what);
}

#[track_caller]
fn reported(what: &str, change: impl FnOnce(&mut IndexParts)) {
    assert_reported(&broken(change).path, what);
}

/// HDR-1, FTR-3: only verification reads the header of a dataset's segment.
#[test]
fn reports_a_header_that_disagrees_with_the_index() {
    reported("damaged header: kind is 3", |index| index.header_patches.push((20, vec![3])));
    reported("a segment was expected", |index| index.header_patches.push((20, vec![2])));
    reported("disagree on version or feature bits", |index| index.header_patches.push((16, vec![1])));
    reported("reserved bytes", |index| index.header_patches.push((2000, vec![1])));
}

/// HDR-1, FTR-1, DIR-2, VER-1, VER-2
#[test]
fn refuses_what_a_newer_version_has_written() {
    // Opening reads no header; verification does, and for it a newer file is no damage.
    let header = |at, new: u8, what: &str| {
        let built = broken(|index| index.header_patches.push((at, vec![new])));
        assert_eq!(use_all(&built.path).unwrap().len(), 20);
        assert_newer(verify(&built.path), what);
        assert_newer(use_all(&built.path.join("00000.seg")), what);
    };
    header(8, 1, "format version 1 is unknown");
    header(12, 8, "feature bit 3 is unknown");
    let footer = |change: &dyn Fn(&mut IndexParts), what: &str| {
        let built = broken(|index| change(index));
        for path in [&built.path, &built.path.join("00000.seg")] {
            assert_newer(use_all(path), what);
            assert_newer(verify(path), what);
        }
    };
    footer(&|index| index.footer_patches.push((8, vec![1])), "format version 1 is unknown");
    footer(&|index| index.footer_patches.push((12, vec![1])), "feature bit 0 is unknown");
    footer(&|index| index.directory_patches.push((64, vec![0, 127])), "section kind 32512 is unknown");
}

#[track_caller]
fn assert_newer<T: std::fmt::Debug>(result: Result<T, StoreError>, what: &str) {
    let error = result.unwrap_err();
    assert!(error.is_other_version() && error.remedy() == Some(Remedy::Upgrade), "{error}");
    assert!(error.to_string().contains(what), "{error}");
}

/// VER-1: compatible bits are ignored, in both places at once.
#[test]
fn ignores_compatible_features_and_what_they_may_use() {
    let built = broken(|index| {
        index.header_patches = vec![(16, vec![1]), (2000, vec![5])];
        index.footer_patches = vec![(16, vec![1]), (52, vec![5])];
    });
    assert_eq!(use_all(&built.path).unwrap().len(), 20);
    assert_eq!(common::verify(&built.path).unwrap().1, vec![]);
}

/// FTR-1, FTR-2
#[test]
fn refuses_a_footer_with_wrong_ranges() {
    refused("reserved bytes", |index| index.footer_patches.push((52, vec![1])));
    refused("directory_offset", |index| index.footer_patches.push((24, vec![1])));
    refused("index_offset", |index| index.footer_patches.push((32, vec![1])));
    refused("footer do not end", |index| index.footer_patches.push((20, vec![0, 0xFF, 0xFF])));
}

/// FTR-4
#[test]
fn refuses_an_index_file_with_something_before_its_sections() {
    let mut parts = DatasetModel::rich(&[4, 4]).parts();
    parts.segments[0].index_file = String::new();
    let built = parts.write();
    // The first segment's file, under the merged index's name: a whole file, but not an index.
    let merged = parts.merged.unwrap().file(grainstore_format::FileKind::Index, &[0; 5000]);
    std::fs::write(built.path.join("index.idx"), &merged).unwrap();
    let fingerprint = common::fingerprint_of(&merged).to_string();
    built.change_manifest(|text| {
        let at = text.find("\"index\"").unwrap();
        let at = at + text[at..].find("\"fingerprint\": \"").unwrap() + 16;
        format!("{}{fingerprint}{}", &text[..at], &text[at + 16..])
    });
    assert_refused(&built.path, "index_offset is 8192");
}

/// DIR-1, DIR-2, DIR-4, DIR-5: the directory of a dataset is checked at open.
#[test]
fn refuses_a_directory_that_breaks_a_rule() {
    let record = |number: usize, at: usize| 64 + 32 * number + at;
    refused("it begins with", |index| index.directory_patches.push((0, b"X".to_vec())));
    refused("0 samples", |index| index.directory_patches.push((8, vec![0; 8])));
    refused("reserved bytes", |index| index.directory_patches.push((21, vec![1])));
    refused("sections", |index| index.directory_patches.push((28, vec![9])));
    refused("section segments has item 1", |index| index.directory_patches.push((record(0, 2), vec![1])));
    refused("width 15", |index| index.directory_patches.push((record(1, 4), vec![15])));
    refused("section entries is at", |index| index.directory_patches.push((record(1, 9), vec![0xF0])));
    refused("321 bytes", |index| index.directory_patches.push((record(1, 16), 321_u64.to_le_bytes().to_vec())));
    refused("comes after", |index| index.directory_patches.push((record(1, 0), vec![1])));
}

/// DIR-3
#[test]
fn refuses_a_directory_that_lacks_a_section() {
    for kind in [Kind::Segments, Kind::Entries, Kind::Chunks, Kind::Edges, Kind::Metadata] {
        refused("is missing", |index| drop(index.sections.remove(&(kind, 0))));
    }
    for kind in [Kind::Keys, Kind::KeyGroups, Kind::Buckets, Kind::Slots] {
        refused("some of the sections of keys are missing", |index| drop(index.sections.remove(&(kind, 0))));
    }
}

/// SEG-1, SEG-2, SEG-3
#[test]
fn refuses_a_segment_table_that_does_not_fit() {
    refused("segment 0 has no samples", |index| index.section(Kind::Segments, 0)[..8].fill(0));
    refused("its segments have 21 samples", |index| index.section(Kind::Segments, 0)[0] = 21);
    refused("past 2^44", |index| index.section(Kind::Segments, 0)[14] = 1);
    refused_and_reported("segment 0 ends at", "its data ends at", |index| index.section(Kind::Segments, 0)[11] = 1);
    refused_and_reported("segment 0 ends at 0", "its data ends at 0", |index| {
        index.section(Kind::Segments, 0)[8..].fill(0)
    });
    refused("data ends at 4096", |index| {
        index.section(Kind::Segments, 0)[8..].copy_from_slice(&4096_u64.to_le_bytes());
    });
}

/// SEG-2: a data end that is too high in the same block is detected at the last sample.
#[test]
fn refuses_a_data_end_that_is_not_the_last_samples_end() {
    refused("it is the last of its segment", |index| index.section(Kind::Segments, 0)[8] ^= 1);
}

/// ENT-1, ENT-2, ENT-4, ENT-6
#[test]
fn refuses_entries_that_break_a_rule() {
    refused("its entry has segment 1", |index| index.change_entry(3, |entry| entry.segment = 1));
    refused("4095", |index| index.change_entry(0, |entry| entry.offset = 4095));
    // Sample 1 has no bytes, so only its offset can be wrong.
    refused("the previous sample ends at 41", |index| index.change_entry(1, |entry| entry.offset -= 3));
    refused_and_reported("CRC-32", "the previous sample ends at", |index| {
        index.change_entry(4, |entry| entry.offset -= 1)
    });
    refused("the segment's data", |index| index.change_entry(19, |entry| entry.stored_len += 1));
    refused("LZ4 cannot hold", |index| index.change_entry(1, |entry| entry.lz4 = true));
    refused("it is both long and LZ4", |index| {
        index.change_entry(3, |entry| entry.stored_len = grainstore_format::LONG_STORED_LEN);
    });
}

/// ENT-3, LNG-1
#[test]
fn refuses_long_samples_if_entries_and_table_disagree() {
    let long = grainstore_format::LONG_STORED_LEN;
    let record = |ordinal| grainstore_format::LongTable::encode_record(ordinal, 1 << 40).to_vec();
    refused("missing in the table of long samples", |index| index.change_entry(0, |e| e.stored_len = long));
    refused("1 records, but 0 entries are long", |index| index.put(Kind::Long, 0, 16, record(2)));
    refused("ordinal 20 does not exist among 20 samples", |index| index.put(Kind::Long, 0, 16, record(20)));
    refused("the segment's data", |index| {
        index.change_entry(0, |entry| entry.stored_len = long);
        index.put(Kind::Long, 0, 16, record(0));
    });
}

/// ENT-5, RD-1
#[test]
fn a_sample_whose_crc_fails_is_refused_by_name() {
    refused("sample 7 (key \"key/7\"): ", |index| index.change_entry(7, |entry| entry.crc ^= 1));
    refused("CRC-32 of stored bytes", |index| index.change_entry(7, |entry| entry.crc ^= 1));
}

/// CHK-1, CHK-3
#[test]
fn refuses_chunks_that_do_not_own_their_samples() {
    refused_and_reported("chunk", "which owns", |index| {
        let at = (0..).find(|&at| index.number(Kind::Chunks, 0, at + 1) > 0 && index.number(Kind::Chunks, 0, at) > 1);
        let (at, bytes) = (at.unwrap(), index.section(Kind::Chunks, 0));
        bytes[at] -= 1;
        bytes[at + 1] += 1;
    });
    refused("do not own its 20 samples", |index| index.section(Kind::Chunks, 0)[1] += 1);
    refused("bits are set, the directory has", |index| index.edge_count += 1);
    refused("the edge list disagrees", |index| {
        // One bit moves to another chunk that owns samples.
        let counts = index.section(Kind::Chunks, 0).clone();
        let edges = index.section(Kind::Edges, 0);
        let bit = |edges: &[u8], at: usize| edges[at / 8] >> (at % 8) & 1 == 1;
        let set = (0..counts.len()).find(|&at| bit(edges, at)).unwrap();
        let clear = (0..counts.len()).find(|&at| counts[at] > 0 && !bit(edges, at)).unwrap();
        edges[set / 8] ^= 1 << (set % 8);
        edges[clear / 8] ^= 1 << (clear % 8);
    });
    refused("unused bits are set", |index| {
        index.edge_count += 1;
        *index.section(Kind::Edges, 0).last_mut().unwrap() |= 0x80;
    });
}

/// RAW-1, RAW-2
#[test]
fn refuses_impossible_raw_lengths() {
    refused("it is stored raw, but has the raw length 5", |index| index.set(Kind::RawLen, 0, 0, 5));
    refused("cannot hold 0 raw bytes", |index| index.set(Kind::RawLen, 0, 3, 0));
    refused("cannot hold 67108865 raw bytes", |index| index.set(Kind::RawLen, 0, 3, (64 << 20) + 1));
    refused("LZ4 block decodes to", |index| index.set(Kind::RawLen, 0, 3, 1000));
    refused_and_reported("there is no section of raw lengths", "cannot hold 0 raw bytes", |index| {
        drop(index.sections.remove(&(Kind::RawLen, 0)));
    });
    reported("are LZ4, the presence of section raw_len disagrees", |index| {
        for place in 0..20 {
            index.change_entry(place, |entry| entry.lz4 = false);
            index.set(Kind::RawLen, 0, place, 0);
        }
    });
}

/// DIR-1: the totals of the directory are those of the samples.
#[test]
fn refuses_sums_that_do_not_add_up() {
    refused("raw bytes, it has", |index| index.stored_bytes += 1);
    refused("raw bytes, it has", |index| index.payload_bytes -= 1);
}

/// MET-1, MET-2
#[test]
fn refuses_metadata_without_a_valid_schema() {
    refused("metadata", |index| *index.section(Kind::Metadata, 0) = b"{}".to_vec());
    refused("is used twice", |index| {
        let text = String::from_utf8(index.section(Kind::Metadata, 0).clone()).unwrap();
        *index.section(Kind::Metadata, 0) = text.replace("caption", "image").into_bytes();
    });
}

/// ATR-1, FLD-1, FLD-2
#[test]
fn refuses_sections_that_disagree_with_the_schema() {
    refused("attribute[1] does not agree with the schema", |index| drop(index.sections.remove(&(Kind::Attribute, 1))));
    refused("attribute[4] does not agree", |index| index.put(Kind::Attribute, 4, 1, vec![0; 20]));
    refused("field_len[1] does not agree", |index| drop(index.sections.remove(&(Kind::FieldLen, 1))));
    refused("field_len[1] does not agree", |index| index.put(Kind::FieldLen, 1, 8, vec![0; 160]));
}

/// ATR-1, ATR-2
#[test]
fn refuses_values_that_their_type_does_not_have() {
    refused("not a bool", |index| index.section(Kind::Attribute, 1)[4] = 2);
    refused("unused bits", |index| index.section(Kind::Validity, 0)[2] |= 0x80);
    reported("attribute \"label\" is absent, but its value is not 0", |index| index.set(Kind::Attribute, 0, 2, 9));
    reported("is present, but all samples have a value", |index| {
        index.section(Kind::Validity, 0).copy_from_slice(&[0xFF, 0xFF, 0x0F])
    });
}

/// FLD-2, FLD-3
#[test]
fn refuses_fields_outside_their_payload() {
    refused("the payload has", |index| index.set(Kind::FieldOffset, 0, 0, 1 << 20));
    refused("the payload has", |index| index.set(Kind::FieldLen, 0, 0, u64::from(u32::MAX)));
    reported("field \"caption\" is absent, but has 1 bytes", |index| index.set(Kind::FieldLen, 1, 1, 1));
    reported("is present, but all samples have a value", |index| {
        index.section(Kind::FieldValidity, 1).copy_from_slice(&[0xFF, 0xFF, 0x0F]);
    });
}

/// CHK-2, FLD-2: a writer takes the smallest width; readers and verification take any.
#[test]
fn takes_chunks_and_fields_that_are_wider_than_their_numbers_need() {
    let whole = use_all(&DatasetModel::rich(&[20]).write().path).unwrap();
    for width in [2, 4, 8] {
        let built = broken(|index| {
            let widen = |bytes: &[u8], from: usize, to: usize| -> Vec<u8> {
                bytes.chunks(from).flat_map(|number| [number, &[0; 8][..to - from]].concat()).collect()
            };
            let chunks = widen(index.section(Kind::Chunks, 0), 1, width);
            index.put(Kind::Chunks, 0, width as u32, chunks);
            for kind in [Kind::FieldOffset, Kind::FieldLen].into_iter().filter(|_| width == 8) {
                for item in 0..2 {
                    let wide = widen(index.section(kind, item), 4, 8);
                    index.put(kind, item, 8, wide);
                }
            }
        });
        assert_eq!(use_all(&built.path).unwrap(), whole, "width {width}");
        assert_eq!(verify(&built.path).unwrap().1, vec![], "width {width}");
    }
}

/// SMP-1: readers take it.
#[test]
fn reports_an_lz4_sample_that_saves_less_than_a_sixteenth() {
    let mut model = DatasetModel::plain(&[b"incompressible".to_vec(), vec![7; 100]]);
    model.segments[0].0.iter_mut().for_each(|sample| sample.lz4 = true);
    let built = model.write();
    assert_eq!(use_all(&built.path).unwrap().len(), 2);
    let (_, damage) = verify(&built.path).unwrap();
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_reported(&built.path, "save less than a sixteenth of 14");
}

/// FLD-4
#[test]
fn reports_an_array_whose_length_is_not_that_of_its_type() {
    reported("field \"image\" is 5 bytes, its type is float32[3,2]", |index| {
        let text = String::from_utf8(index.section(Kind::Metadata, 0).clone()).unwrap();
        let text = text.replacen("\"bytes\"", "\"float32[3,2]\"", 1);
        *index.section(Kind::Metadata, 0) = text.into_bytes();
    });
}

/// SMP-2
#[test]
fn reports_a_sample_at_another_offset_than_the_alignment_gives() {
    let mut model = DatasetModel::rich(&[20]);
    model.geometry = DatasetModel::geometry(Alignment::multiple_of(64).unwrap());
    let mut parts = model.parts();
    parts.segments[0].index.geometry = DatasetModel::geometry(Alignment::multiple_of(8).unwrap());
    assert_reported(&parts.write().path, "with alignment 8 it belongs at");
    parts.segments[0].index.geometry = DatasetModel::geometry(Alignment::NoEdges);
    assert_reported(&parts.write().path, "with alignment no-edges it belongs at");
}

/// CON-5
#[test]
fn reports_bytes_between_samples_that_are_not_zero() {
    let mut model = DatasetModel::rich(&[20]);
    model.geometry = DatasetModel::geometry(Alignment::multiple_of(64).unwrap());
    let mut parts = model.parts();
    parts.segments[0].data[4096 + 63] = 1;
    assert_reported(&parts.write().path, "00000.seg: at 4159: a byte between samples is not zero");
}

/// KEY-2, KEY-3, KEY-4
#[test]
fn refuses_slots_without_a_key_or_with_the_wrong_one() {
    refused_and_reported("has an invalid slot", "does not ascend in bucket", |index| {
        let slots = index.section(Kind::Slots, 0);
        let first: Vec<u8> = slots[..7].to_vec();
        slots.copy_within(7..14, 0);
        slots[7..14].copy_from_slice(&first);
    });
    refused_and_reported("has an invalid slot", "names sample 200", |index| index.section(Kind::Slots, 0)[0] = 200);
    reported("its slot has another hash than its key", |index| index.section(Kind::Slots, 0)[1] ^= 1);
    reported("it is in no slot", |index| {
        let ordinal = index.section(Kind::Slots, 0)[0];
        index.section(Kind::Slots, 0)[0] = (ordinal + 1) % 20;
    });
}

/// KEY-5
#[test]
fn refuses_buckets_that_descend_or_end_at_another_slot() {
    let broken_at = |place: usize, value: u64| {
        let mut parts = DatasetModel::rich(&[100]).parts();
        parts.segments[0].index.set(Kind::Buckets, 0, place, value);
        parts.write()
    };
    assert_refused(&broken_at(2, 101).path, "has the slots");
    assert_refused(&broken_at(2, 0).path, "has the slots");
    assert_reported(&broken_at(0, 1).path, "element 0 of buckets is 1, not 0");
    assert_reported(&broken_at(4, 99).path, "element 4 of buckets is 99, not 100");
}

/// KEY-1, KEY-7
#[test]
fn refuses_keys_that_are_not_in_their_group() {
    let broken = |change: &dyn Fn(&mut IndexParts)| {
        let mut parts = DatasetModel::rich(&[100]).parts();
        change(&mut parts.segments[0].index);
        parts.write()
    };
    let groups = |place, value| broken(&move |index| index.set(Kind::KeyGroups, 0, place, value));
    assert_refused(&groups(1, u64::MAX).path, "group 0 has the bytes");
    assert_refused(&groups(1, 5).path, "list of keys");
    assert_reported(&groups(0, 1).path, "element 0 of key_groups is 1, not 0");
    assert_reported(&groups(2, 600).path, "element 2 of key_groups is 600");
    assert_refused(&broken(&|index| index.section(Kind::Keys, 0)[0] = 0).path, "a key has 0 bytes");
    let longer = broken(&|index| index.section(Kind::Keys, 0).extend(b"\x01x"));
    assert_reported(&longer.path, "of key_groups");
}

/// KEY-1
#[test]
fn reports_two_samples_with_one_key() {
    let built = DatasetModel::with_keys(&["a", "b", "c", "b", "b"]).write();
    assert_reported(&built.path, "sample 3 (key \"b\"): its key is that of sample 1");
    assert_reported(&built.path, "sample 4 (key \"b\"): its key is that of sample 1");
    let mut model = DatasetModel::rich(&[3, 3]);
    model.segments[1].0[0].key = model.segments[0].0[2].key.clone();
    assert_reported(&model.write().path, "index.idx: sample 3 (key \"key/2\"): its key is that of sample 2");
}
