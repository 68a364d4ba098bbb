//! The two JSON documents: manifest and metadata.

use std::path::{Component, Path};

use grainstore_format::{FieldType, Manifest, Metadata, PathReach, SegmentKind, external_path_reach};

use crate::strict_json::{Shape, named_members_are_unique};

const MANIFEST: Shape = Shape::Object(&[
    ("format", Shape::Any),
    ("version", Shape::Any),
    ("incompatible_features", Shape::Any),
    ("compatible_features", Shape::Any),
    ("index", Shape::Object(&[("file", Shape::Any), ("fingerprint", Shape::Any)])),
    ("segments", Shape::List(&SEGMENT)),
    ("generations", Shape::List(&GENERATION)),
    ("crc32", Shape::Any),
]);
const SEGMENT: Shape = Shape::Object(&[
    ("kind", Shape::Any),
    ("path", Shape::Any),
    ("file_len", Shape::Any),
    ("sample_count", Shape::Any),
    ("fingerprint", Shape::Any),
    ("index_file", Shape::Any),
    ("data_fingerprint", Shape::Any),
    ("modified_ns", Shape::Any),
]);
const GENERATION: Shape =
    Shape::Object(&[("segment_count", Shape::Any), ("sample_count", Shape::Any), ("fingerprint", Shape::Any)]);
const METADATA: Shape = Shape::Object(&[
    ("schema", Shape::Object(&[("attributes", Shape::List(&COLUMN)), ("fields", Shape::List(&COLUMN))])),
    ("user", Shape::Any),
]);
const COLUMN: Shape = Shape::Object(&[("name", Shape::Any), ("type", Shape::Any)]);

/// `,\n  "crc32": "` and what follows it. MAN-1.
const TAIL_LEN: usize = 26;

/// MAN-1 to MAN-4, EXT-1, GEN-1, CON-8: the bytes as they stand, and with the checksum put right.
pub fn manifest(data: &[u8]) {
    check_manifest(data);
    check_manifest(&sealed_manifest(data));
}

/// The document without its last 26 bytes, where those are a checksum; a right one in their place.
pub(crate) fn sealed_manifest(data: &[u8]) -> Vec<u8> {
    let tail_at = data.len().saturating_sub(TAIL_LEN);
    let has_tail = data[tail_at..].starts_with(b",\n  \"crc32\": \"");
    let body = if has_tail { &data[..tail_at] } else { data };
    let tail = format!(",\n  \"crc32\": \"{:08x}\"\n}}\n", crc32fast::hash(body));
    [body, tail.as_bytes()].concat()
}

fn check_manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert!(named_members_are_unique(bytes, &MANIFEST), "a named member is there twice");
    let encoded = manifest.encode().unwrap();
    let again = Manifest::decode(&encoded).unwrap();
    assert_eq!(again, manifest);
    assert_eq!(again.encode().unwrap(), encoded);
    assert_stays_inside(&manifest.index().file, 0);
    for segment in manifest.segments() {
        match &segment.kind {
            SegmentKind::Native => assert_stays_inside(&segment.path, 0),
            SegmentKind::External { index_file, .. } => {
                assert_stays_inside(index_file, 0);
                assert_leads_where_it_says(&segment.path);
            }
        }
    }
    let last = manifest.generations().last().unwrap();
    assert_eq!(last.segment_count as usize, manifest.segments().len());
    assert_eq!(last.sample_count, manifest.segments().iter().map(|segment| segment.sample_count).sum::<u64>());
    assert_eq!(last.fingerprint, manifest.fingerprint());
}

/// EXT-1: what does not stay inside is said to lead out; either way it goes down by plain names at its end.
fn assert_leads_where_it_says(path: &str) {
    match external_path_reach(path).unwrap() {
        PathReach::Inside => assert_stays_inside(path, 1),
        PathReach::Outside if path.starts_with('/') => assert_stays_inside(&format!("..{path}"), 1),
        PathReach::Outside => {
            assert!(path.starts_with("../../"), "{path:?}");
            assert_stays_inside(path, usize::MAX);
        }
    }
}

/// The path climbs at most `parents` directories, and then goes down by plain names.
fn assert_stays_inside(path: &str, parents: usize) {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let climbs = parts.iter().take_while(|part| **part == Component::ParentDir).count();
    let plain = parts[climbs..].iter().all(|part| matches!(part, Component::Normal(_)));
    assert!(climbs <= parents && plain && climbs < parts.len() && !path.contains('\0'), "{path:?}");
    assert!(parents > 0 || parts.len() == 1, "{path:?}");
}

/// MET-1 to MET-3, FLD-4, CON-8
pub fn metadata(data: &[u8]) {
    let Ok(metadata) = Metadata::decode(data) else { return };
    assert!(named_members_are_unique(data, &METADATA), "a named member is there twice");
    let encoded = metadata.encode();
    assert_eq!(encoded.is_ok(), metadata.schema.check_writable().is_ok());
    let Ok(encoded) = encoded else { return };
    let again = Metadata::decode(&encoded).unwrap();
    assert_eq!(again, metadata);
    assert_eq!(again.encode().unwrap(), encoded);
    for (number, attribute) in metadata.schema.attributes().iter().enumerate() {
        assert_eq!(metadata.schema.attribute(&attribute.name), Some(number));
    }
    for (number, field) in metadata.schema.fields().iter().enumerate() {
        assert_eq!(metadata.schema.field(&field.name), Some(number));
        let is_opaque = matches!(field.kind, FieldType::Opaque(_));
        assert_eq!(FieldType::from_name(&field.kind.name()), (!is_opaque).then(|| field.kind.clone()));
    }
}
