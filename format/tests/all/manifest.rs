//! The manifest: what is written is read back; names that lead out of the directory, sums that do not add up and
//! changed bytes are refused.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use grainstore_format::{Fingerprint, FormatError, IndexRef, Manifest, SegmentKind, SegmentRef};

fn segment(path: &str, fingerprint: u64) -> SegmentRef {
    SegmentRef {
        kind: SegmentKind::Native,
        path: path.into(),
        file_len: 28672,
        sample_count: 10,
        fingerprint: Fingerprint(fingerprint),
    }
}

fn external(path: &str) -> SegmentRef {
    let index_file = "00002.idx".into();
    let data_fingerprint = Fingerprint(8);
    let kind = SegmentKind::External { index_file, data_fingerprint, modified_ns: -5 };
    SegmentRef { kind, ..segment(path, 3) }
}

fn index(file: &str) -> IndexRef {
    IndexRef { file: file.into(), fingerprint: Fingerprint(77) }
}

fn manifest() -> Manifest {
    let segments = vec![segment("00000.seg", 1), segment("00001.seg", 2), external("../train.tar")];
    Manifest::new(index("index-1.idx"), segments, &[1]).unwrap()
}

/// Replaces text, then updates the checksum.
fn mended(old: &str, new: &str) -> Vec<u8> {
    let text = String::from_utf8(manifest().encode().unwrap()).unwrap();
    assert!(text.contains(old), "{text}");
    let text = text.replacen(old, new, 1);
    let body = &text[..text.len() - 26];
    format!("{body},\n  \"crc32\": \"{:08x}\"\n}}\n", crc32fast::hash(body.as_bytes())).into_bytes()
}

fn refusal(old: &str, new: &str) -> String {
    Manifest::decode(&mended(old, new)).unwrap_err().to_string()
}

/// MAN-1, MAN-2, MAN-3, MAN-4, EXT-1, EXT-2, EXT-3, GEN-1
#[test]
fn a_manifest_round_trips() {
    let bytes = manifest().encode().unwrap();
    assert_eq!(Manifest::decode(&bytes).unwrap(), manifest());
    assert_eq!(mended("grainstore", "grainstore"), bytes);
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(json["segments"][2]["data_fingerprint"], "0000000000000008");
    assert_eq!(json["segments"][2]["modified_ns"], -5);
    assert_eq!(json["generations"][0]["sample_count"], 10);
    assert_eq!(json["generations"][1]["sample_count"], 30);
}

/// MAN-1
#[test]
fn every_changed_byte_and_every_cut_is_refused() {
    let bytes = manifest().encode().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(Manifest::decode(&changed).is_err(), "byte {at}");
        assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(Manifest::decode(&[bytes, b"\n".to_vec()].concat()).is_err());
}

/// MAN-2, VER-1, VER-2
#[test]
fn unknown_features_and_other_formats_are_refused_by_name() {
    let newer = refusal("\"version\": 0", "\"version\": 9");
    assert_eq!(newer, "written by a newer grainstore: format version 9 is unknown to this version (0)");
    assert!(refusal("\"incompatible_features\": 0", "\"incompatible_features\": 32").contains("feature bit 5"));
    assert!(refusal("\"grainstore\"", "\"parquet\"").starts_with("not a grainstore manifest"));
    assert!(matches!(Manifest::decode(b"{}"), Err(FormatError::NotGrainstore { .. })));
    assert!(Manifest::decode(&b"[".repeat(1 << 20)).is_err());
}

/// A newer manifest may have any members, or be no JSON; its checksum may be elsewhere.
///
/// MAN-5, VER-1
#[test]
fn a_newer_manifest_is_newer_whatever_follows_its_version() {
    for rest in ["", "}", ",\"segments\":{}}", ", this is not JSON", ",\"incompatible_features\":\"none\"}"] {
        for version in [1_u64, 12, u64::MAX] {
            let text = format!("{{\n \"format\" : \"grainstore\",\t\"version\": {version} {rest}");
            let decoded = Manifest::decode(text.as_bytes());
            if rest.is_empty() {
                assert!(matches!(decoded, Err(FormatError::NotGrainstore { .. })), "{text}");
            } else {
                assert_eq!(decoded, Err(FormatError::TooNew { found: version, ours: 0 }), "{text}");
            }
        }
    }
}

/// MAN-2
#[test]
fn unknown_members_are_ignored_at_any_depth() {
    let deep = format!("\"x\": {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for more in ["\"colour\": 1", "\"x\": {\"a\": -0, \"a\": 1e999}, \"x\": \"\\ud800\"", &deep] {
        for before in ["\"compatible_features\": 0", "\"file\"", "\"kind\"", "\"segment_count\""] {
            let bytes = mended(before, &format!("{more}, {before}"));
            assert_eq!(Manifest::decode(&bytes), Ok(manifest()), "{before}");
        }
    }
    assert_eq!(Manifest::decode(&mended("\"compatible_features\": 0", "\"compatible_features\": 7")), Ok(manifest()));
    for wrong in ["\"x\": 01", "\"x\": +1", "\"x\": NaN", "\"x\": [1,]", "\"x\": \"\u{1}\"", "\"x\" 1"] {
        assert!(refusal("\"segments\"", &format!("{wrong}, \"segments\"")).starts_with("damaged manifest"), "{wrong}");
    }
}

/// CON-8, MAN-2
#[test]
fn a_named_member_that_appears_twice_or_has_another_shape_is_refused() {
    for (old, new) in [
        ("\"compatible_features\": 0", "\"compatible_features\": 0, \"compatible_features\": 0"),
        ("\"compatible_features\": 0", "\"compatible_features\": 0, \"crc32\": 1"),
        ("\"compatible_features\": 0", "\"compatible_features\": 0, \"version\": 0"),
        ("\"compatible_features\": 0", "\"compatible_features\": 0, \"format\": \"grainstore\""),
        ("\"compatible_features\": 0", "\"compatible_features\": 4294967296"),
        ("\"kind\": \"native\"", "\"kind\": \"native\", \"kind\": \"native\""),
        ("\"kind\": \"native\"", "\"kind\": {\"native\": null}"),
        ("\"kind\": \"native\"", "\"kind\": \"remote\""),
        ("\"kind\": \"native\"", "\"kind\": \"native\", \"index_file\": null"),
        ("\"sample_count\": 10", "\"sample_count\": 1e1"),
        ("\"sample_count\": 10", "\"sample_count\": 10.0"),
        ("\"sample_count\": 10", "\"sample_count\": 010"),
        ("\"modified_ns\": -5", "\"modified_ns\": -0"),
    ] {
        assert!(refusal(old, new).starts_with("damaged manifest"), "{new}");
    }
    let as_array = "\"index\": [\"index-1.idx\", \"000000000000004d\"]";
    let text = String::from_utf8(manifest().encode().unwrap()).unwrap();
    let from = text.find("\"index\"").unwrap();
    let to = from + text[from..].find('}').unwrap() + 1;
    assert!(refusal(&text[from..to], as_array).starts_with("damaged manifest"));
}

/// MAN-3, EXT-1
#[test]
fn names_that_lead_outside_the_directory_are_refused() {
    assert!(Manifest::new(index(&"n".repeat(255)), vec![segment("00000.seg", 1)], &[]).is_ok());
    for name in ["", ".", "..", "a/b", "/etc/passwd", "../00000.seg", &"n".repeat(256)] {
        assert!(Manifest::new(index(name), vec![segment("00000.seg", 1)], &[]).is_err(), "index {name}");
        assert!(Manifest::new(index("i"), vec![segment(name, 1)], &[]).is_err(), "native {name}");
    }
    for path in ["", "..", "../", "../..", "/", "/../x", "a/../b", "a//b", "./a", "a/.", "../a/..", "/a/../b"] {
        assert!(Manifest::new(index("i"), vec![external(path)], &[]).is_err(), "external {path}");
    }
    for path in ["x.tar", "a/b.tar", "../x.tar", "../a/b.tar", "../../x.tar", "/a/b.tar"] {
        assert!(Manifest::new(index("i"), vec![external(path)], &[]).is_ok(), "external {path}");
    }
}

/// MAN-2, MAN-3, GEN-1, FPR-2
#[test]
fn wrong_sums_and_fingerprint_chains_are_refused() {
    assert!(
        refusal(
            "\"sample_count\": 10,\n      \"fingerprint\": \"0000000000000001\"",
            "\"sample_count\": 11,\n      \"fingerprint\": \"0000000000000001\""
        )
        .contains("generation 0 does not agree")
    );
    assert!(refusal("\"0000000000000002\"", "\"0000000000000009\"").contains("generation 1 does not agree"));
    assert!(refusal("\"segment_count\": 1", "\"segment_count\": 3").contains("do not ascend"));
    assert!(refusal("\"segment_count\": 1", "\"segment_count\": 0").contains("generation 0"));
    assert!(refusal("\"0000000000000002\"", "\"000000000000000A\"").contains("hexadecimal"));
    assert!(refusal("\"external\"", "\"native\"").contains("members of another kind"));
    assert!(refusal(",\n      \"modified_ns\": -5", "").contains("lacks one of its own"));
    assert!(refusal("\"modified_ns\": -5", "\"modified_ns\": 9223372036854775808").contains("damaged manifest"));
    assert!(refusal("\"path\": \"00000.seg\"", "\"path\": \"00000.seg\", \"modified_ns\": 1").contains("another kind"));
    assert!(refusal("\"sample_count\": 10", "\"sample_count\": 0").contains("has 0 samples"));
    assert!(Manifest::new(index("i"), vec![], &[]).is_err());
    assert!(Manifest::new(index("i"), vec![segment("a", 1)], &[0]).is_err(), "a generation of no segments");
    assert!(Manifest::new(index("i"), vec![segment("a", 1)], &[2]).is_err(), "a generation of too many segments");
    assert!(Manifest::new(index("i"), vec![segment("a", 1)], &[1]).is_err(), "a generation twice");
}
