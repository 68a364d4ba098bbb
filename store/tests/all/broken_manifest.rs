//! One broken rule at a time of manifests, of external segments and of the links between files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use grainstore_format::SectionKind as Kind;

use crate::common::{self, Built, DatasetModel, assert_error, assert_refused, assert_reported, use_all, verify};

fn two_segments() -> Built {
    let mut model = DatasetModel::rich(&[4, 6]);
    model.earlier = vec![1];
    model.write()
}

fn external() -> (Built, std::path::PathBuf) {
    let mut model = DatasetModel::rich(&[4, 6]);
    model.segments[1].1 = true;
    let built = model.write();
    let data = built.root.path().join("00001.tar");
    (built, data)
}

#[track_caller]
fn refused(what: &str, change: impl FnOnce(String) -> String) {
    let built = two_segments();
    built.change_manifest(change);
    assert_refused(&built.path, what);
}

fn replaced<'a>(from: &'a str, to: &'a str) -> impl FnOnce(String) -> String + 'a {
    move |text| {
        assert!(text.contains(from), "{text}");
        text.replacen(from, to, 1)
    }
}

/// MAN-1
#[test]
fn refuses_a_manifest_with_a_wrong_checksum() {
    let built = two_segments();
    let path = built.path.join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"sample_count\": 4", "\"sample_count\": 5", 1)).unwrap();
    assert_refused(&built.path, "its CRC-32 is");
    std::fs::write(&path, text.trim_end()).unwrap();
    assert_refused(&built.path, "damaged manifest");
}

/// MAN-2, VER-1
#[test]
fn refuses_other_versions_and_ignores_unknown_members() {
    refused("fingerprint", replaced("\"fingerprint\": \"", "\"fingerprint\": \"X"));
    for (from, to, what) in [
        ("\"version\": 0", "\"version\": 1", "format version 1 is unknown"),
        ("\"incompatible_features\": 0", "\"incompatible_features\": 2", "feature bit 1 is unknown"),
    ] {
        let built = two_segments();
        built.change_manifest(replaced(from, to));
        assert_error(&built.path, what);
        assert!(verify(&built.path).unwrap_err().to_string().contains(what), "too new is no damage");
    }
    let built = two_segments();
    built.change_manifest(|text| text.replacen("\"kind\"", "\"colour\": 1, \"kind\"", 1) + ",\n  \"colour\": [1e999]");
    assert_eq!(use_all(&built.path).unwrap().len(), 10);
}

/// MAN-3
#[test]
fn refuses_names_that_lead_outside_the_directory() {
    for name in ["../00000.seg", "a/b.seg", "/etc/passwd", "", ".", ".."] {
        refused("is not a plain file name", replaced("\"00000.seg\"", &format!("\"{name}\"")));
    }
    refused("is not a plain file name", replaced("\"index.idx\"", "\"../index.idx\""));
}

/// MAN-3, SEG-1, GEN-1
#[test]
fn refuses_counts_that_the_index_does_not_have() {
    refused("does not agree with its", replaced("\"sample_count\": 4", "\"sample_count\": 5"));
    let parts = DatasetModel::rich(&[4, 6]).parts();
    let mut other = parts.clone();
    other.merged = DatasetModel::rich(&[5, 5]).parts().merged;
    let built = other.write();
    assert_error(&built.path, "segment 0 has 5 samples in the index, 4 in the manifest");
    assert_reported(&built.path, "disagree on the number of samples");
    other.merged = DatasetModel::rich(&[4, 4, 2]).parts().merged;
    assert_error(&other.write().path, "it has 3 segments, the manifest has 2");
}

/// MAN-4, FPR-1, MRG-1
#[test]
fn refuses_an_index_with_another_fingerprint() {
    let built = two_segments();
    let other = DatasetModel::rich(&[4, 7]).parts().merged.unwrap();
    std::fs::write(built.path.join("index.idx"), other.file(grainstore_format::FileKind::Index, &[])).unwrap();
    assert_refused(&built.path, "its fingerprint is");
    // Verification reads the index of a segment, so it detects a segment that was replaced by another one.
    let built = two_segments();
    let other = DatasetModel::rich(&[4, 6]).parts();
    let mut index = other.segments[0].index.clone();
    index.set(Kind::Attribute, 0, 0, 77);
    let file = index.file(grainstore_format::FileKind::Segment, &other.segments[0].data);
    std::fs::write(built.path.join("00000.seg"), file).unwrap();
    assert_reported(&built.path, "00000.seg: its fingerprint is");
    assert_reported(
        &built.path,
        "sample 0: the segment's index and the merged one disagree on its attribute \"label\"",
    );
}

/// MAN-4
#[test]
fn refuses_another_index_than_its_only_segments() {
    let built = DatasetModel::rich(&[4]).write();
    std::fs::copy(built.path.join("00000.seg"), built.path.join("other")).unwrap();
    built.change_manifest(replaced("\"00000.seg\"", "\"other\""));
    assert_error(&built.path, "it names another index than its only segment");
    assert_reported(&built.path, "the manifest names another index");
}

/// FPR-2, GEN-1
#[test]
fn refuses_generations_that_do_not_chain() {
    refused("do not ascend", replaced("\"segment_count\": 1", "\"segment_count\": 2"));
    refused("generation 1 does not agree", replaced("\"segment_count\": 2", "\"segment_count\": 3"));
    refused("generation 0 does not agree", |text| {
        let at = text.find("\"generations\"").unwrap();
        let at = at + text[at..].find("\"fingerprint\": \"").unwrap() + 16;
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    });
}

/// EXT-1
#[test]
fn refuses_invalid_external_paths() {
    for path in ["../a/../b", "", "..", "./a", "/", "/../a", "../../a/.."] {
        let (built, _) = external();
        built.change_manifest(replaced("\"../00001.tar\"", &format!("\"{path}\"")));
        assert_refused(&built.path, "that is not at its front");
    }
    let (built, _) = external();
    built.change_manifest(replaced("\"index_file\": \"00001.idx\"", "\"index_file\": \"../00001.idx\""));
    assert_refused(&built.path, "is not a plain file name");
}

/// EXT-1, EXT-2
#[test]
fn refuses_external_data_that_have_changed() {
    let (built, data) = external();
    let bytes = std::fs::read(&data).unwrap();
    let mut longer = bytes.clone();
    longer.push(0);
    std::fs::write(&data, &longer).unwrap();
    assert_refused(&built.path, "bytes, the manifest has");
    let mut flipped = bytes.clone();
    // Between two samples: no checksum of ours covers it.
    let framing = bytes.windows(7).position(|window| window == b"framing").unwrap();
    flipped[framing] ^= 1;
    std::fs::write(&data, &flipped).unwrap();
    assert_refused(&built.path, "the data has changed");
    std::fs::remove_file(&data).unwrap();
    assert_refused(&built.path, "no such file");
    std::fs::create_dir(&data).unwrap();
    assert_refused(&built.path, "it is not a regular file");
    std::fs::remove_dir(&data).unwrap();
    std::fs::write(&data, &bytes).unwrap();
    assert_eq!(use_all(&built.path).unwrap().len(), 10);
}

/// EXT-1, FIL-3: an external segment's index is verified too.
#[test]
fn reports_an_external_index_that_is_missing_or_of_another_kind() {
    let (built, _) = external();
    std::fs::copy(built.path.join("00000.seg"), built.path.join("00001.idx")).unwrap();
    assert_reported(&built.path, "00001.idx: at 0: damaged header");
    std::fs::remove_file(built.path.join("00001.idx")).unwrap();
    assert_reported(&built.path, "00001.idx: no such file");
    assert_eq!(use_all(&built.path).unwrap().len(), 10, "the merged index is enough to read");
}

/// HDR-2, MET-1, MRG-1: what the merged index repeats.
#[test]
fn reports_segments_that_disagree_with_the_merged_index() {
    let reported = |change: &dyn Fn(&mut common::DatasetParts), what: &str| {
        let mut parts = DatasetModel::rich(&[5, 8]).parts();
        change(&mut parts);
        assert_reported(&parts.write().path, what);
    };
    let other_seed = |parts: &mut common::DatasetParts| parts.segments[1].index.geometry.hash_seed = 8;
    reported(&other_seed, "disagree on chunk size, alignment or hash seed");
    let other_name = |parts: &mut common::DatasetParts| {
        let text = String::from_utf8(parts.segments[1].index.section(Kind::Metadata, 0).clone()).unwrap();
        *parts.segments[1].index.section(Kind::Metadata, 0) = text.replace("caption", "captain").into_bytes();
    };
    reported(&other_name, "different schemas");
    reported(
        &|parts| {
            for kind in [Kind::Keys, Kind::KeyGroups, Kind::Buckets, Kind::Slots] {
                parts.segments[1].index.sections.remove(&(kind, 0));
            }
        },
        "whether samples have keys",
    );
    reported(
        &|parts| parts.segments[1].index.change_entry(3, |e| e.crc ^= 1),
        "00001.seg: sample 8: the segment's index",
    );
    reported(&|parts| parts.merged.as_mut().unwrap().set(Kind::FieldLen, 0, 12, 1), "disagree on its field \"image\"");
    reported(
        &|parts| {
            let keys = parts.merged.as_mut().unwrap().section(Kind::Keys, 0);
            *keys.last_mut().unwrap() ^= 1;
        },
        "sample 12: the segment's index and the merged one disagree on its key",
    );
    reported(
        &|parts| parts.merged.as_mut().unwrap().section(Kind::Segments, 0)[24] ^= 1,
        "disagree on samples or data end",
    );
}
