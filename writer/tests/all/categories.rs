//! Categories come back as they were written, from one segment, from several, and after an addition; a dataset with
//! types that this version does not know is not added to.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Directory, Field, FieldType, Fingerprint, Footer, IndexRef, Manifest,
    Metadata, Remedy, Schema, SectionKind, SegmentKind, SegmentRef, Shape, UserMetadata, to_usize,
};
use grainstore_store::{Dataset, OpenOptions, VerifyOptions, verify};
use grainstore_writer::{AppendOptions, DatasetWriter, Sample, WriterOptions};
use proptest::prelude::*;

fn metadata(field: FieldType) -> Metadata {
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let attributes = vec![attribute("split", AttributeType::Category), attribute("source", AttributeType::Category)];
    let schema = Schema::new(attributes, vec![Field { name: "data".into(), kind: field }]).unwrap();
    Metadata { schema, user: UserMetadata::default() }
}

fn options(segment_size: u64) -> WriterOptions {
    let jobs = std::num::NonZeroUsize::new(1);
    WriterOptions { keyed: false, segment_size, jobs, ..WriterOptions::with_metadata(metadata(FieldType::Bytes)) }
}

fn sample(split: Option<&str>, source: Option<&str>) -> Sample {
    let value = |text: Option<&str>| text.map(|text| AttributeValue::Category(text.into()));
    Sample { attributes: vec![value(split), value(source)], payload: vec![7; 100], ..Sample::default() }
}

/// The model: each value as it was given, and the categories in the order of their first appearance.
fn assert_is(dataset: &Dataset, name: &str, number: usize, values: &[Option<String>]) {
    let mut expected: Vec<&str> = Vec::new();
    for value in values.iter().flatten() {
        if !expected.contains(&value.as_str()) {
            expected.push(value);
        }
    }
    let categories: Vec<&str> = dataset.categories(name).unwrap().iter().collect();
    assert_eq!(categories, expected);
    let column = dataset.column(name).unwrap();
    assert_eq!(u64::from(column.width), if expected.len() <= 256 { 1 } else { 2 });
    for (ordinal, value) in (0..).zip(values) {
        let found = dataset.attributes(ordinal).unwrap().swap_remove(number);
        assert_eq!(found, value.as_deref().map(|text| AttributeValue::Category(text.into())));
        assert_eq!(column.get(ordinal), found);
        let code = value.as_ref().and_then(|value| expected.iter().position(|name| name == value));
        assert_eq!(column.code(ordinal).map(|code| code as usize), code);
    }
}

fn assert_whole(path: &Path) {
    let report = verify(path, &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
    assert_eq!(report.damaged, 0);
}

fn texts() -> impl Strategy<Value = Vec<Option<String>>> {
    let text = prop_oneof![4 => "[a-c]", 1 => "[a-z\u{f6}]{0,3}", 1 => Just(String::new())];
    prop::collection::vec(prop::option::weighted(0.8, text), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// CAT-1, CAT-2, CAT-3
    #[test]
    fn categories_come_back_from_several_segments_and_after_an_addition(
        first in texts(), second in texts(), segment_size in prop_oneof![Just(4700_u64), Just(1 << 30)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.grain");
        let samples = |values: &[Option<String>]| values.iter().map(|value| sample(value.as_deref(), Some("x"))).collect();
        let mut writer = DatasetWriter::create(&path, options(segment_size)).unwrap();
        writer.write_batch(samples(&first)).unwrap();
        writer.finish().unwrap();
        assert_whole(&path);
        assert_is(&Dataset::open(&path).unwrap(), "split", 0, &first);
        let mut writer = DatasetWriter::append(&path, AppendOptions { segment_size, ..AppendOptions::default() }).unwrap();
        writer.write_batch(samples(&second)).unwrap();
        writer.finish().unwrap();
        assert_whole(&path);
        let all: Vec<_> = first.iter().chain(&second).cloned().collect();
        let dataset = Dataset::open(&path).unwrap();
        assert_is(&dataset, "split", 0, &all);
        assert_is(&dataset, "source", 1, &vec![Some("x".to_owned()); all.len()]);
        let older = Dataset::open_with(&path, &OpenOptions { generation: Some(0), ..OpenOptions::default() }).unwrap();
        for ordinal in 0..older.sample_count() {
            prop_assert_eq!(older.attributes(ordinal).unwrap(), dataset.attributes(ordinal).unwrap());
        }
    }
}

/// CAT-3
#[test]
fn more_than_256_categories_take_two_bytes_in_the_index_that_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.grain");
    let values: Vec<Option<String>> = (0..300).map(|i| Some(format!("class {}", i * 7 % 290))).collect();
    let mut writer = DatasetWriter::create(&path, options(20_000)).unwrap();
    writer.write_batch(values.iter().map(|value| sample(value.as_deref(), None)).collect()).unwrap();
    writer.finish().unwrap();
    assert_whole(&path);
    assert_is(&Dataset::open(&path).unwrap(), "split", 0, &values);
    let segment = Dataset::open(path.join("00000.seg")).unwrap();
    assert_eq!(segment.column("split").unwrap().width, 1);
}

/// ATR-1, FLD-4
#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(65536);
    let mut writer = DatasetWriter::create(folder.path().join("a"), options(1 << 30)).unwrap();
    let error = writer.write(sample(Some(&long), None)).unwrap_err().to_string();
    assert!(error.contains("attribute \"split\" has 65536 bytes, a category at most 65535"), "{error}");
    let mut number = sample(None, None);
    number.attributes[1] = Some(AttributeValue::Int(3));
    assert!(writer.write(number).is_err());

    let array = FieldType::Array { element: AttributeType::Float16, shape: Shape::open(vec![3]) };
    let options = WriterOptions { metadata: metadata(array), ..options(1 << 30) };
    let mut writer = DatasetWriter::create(folder.path().join("b"), options).unwrap();
    let error = writer.write(sample(None, None)).unwrap_err().to_string();
    assert!(error.contains("field \"data\" has 100 bytes, its type is float16[,3]"), "{error}");
    writer.write(Sample { payload: vec![0; 96], ..sample(None, None) }).unwrap();
    writer.write(Sample { payload: vec![], ..sample(None, None) }).unwrap();
    writer.finish().unwrap();
    assert_whole(&folder.path().join("b"));
}

/// ATR-3
#[test]
fn a_dataset_of_a_newer_grainstore_is_not_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.grain");
    let newer = Attribute { name: "n".into(), kind: AttributeType::Opaque("int7".into()) };
    let data = Field { name: "data".into(), kind: FieldType::Bytes };
    let metadata = Metadata { schema: Schema::new(vec![newer], vec![data]).unwrap(), user: UserMetadata::default() };
    let error = DatasetWriter::create(&path, WriterOptions::with_metadata(metadata)).err().unwrap();
    assert!(error.to_string().contains("\"n\" has the type \"int7\""), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::Upgrade));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");

    let mut writer = DatasetWriter::create(&path, options(1 << 30)).unwrap();
    writer.write_batch(vec![sample(Some("a"), None); 20]).unwrap();
    writer.finish().unwrap();
    make_newer(&path);
    assert_eq!(Dataset::open(&path).unwrap().schema().fields()[0].kind, FieldType::Opaque("image".into()));
    assert_whole(&path);
    let error = DatasetWriter::append(&path, AppendOptions::default()).err().unwrap();
    assert!(error.to_string().contains("\"data\" has the type \"image\""), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::Upgrade));
}

/// Changes the type of the field `data` to one that nobody knows, in a dataset of one segment.
fn make_newer(path: &Path) {
    let mut bytes = std::fs::read(path.join("00000.seg")).unwrap();
    let len = bytes.len();
    let footer = Footer::decode(&bytes[len - 64..], len as u64).unwrap();
    let end = to_usize(footer.directory_offset());
    let old = Directory::decode(&bytes[end..end + to_usize(footer.directory_len().into())], &footer).unwrap();
    let mut sections = old.sections().to_vec();
    let metadata = sections.iter_mut().find(|section| section.kind == SectionKind::Metadata).unwrap();
    let start = to_usize(metadata.offset);
    let section = &mut bytes[start..start + to_usize(metadata.len)];
    let text = String::from_utf8(section.to_vec()).unwrap().replace("\"bytes\"", "\"image\"");
    section.copy_from_slice(text.as_bytes());
    let list = crc32fast::hash(section).to_le_bytes();
    metadata.checksums_crc = crc32fast::hash(&list);
    let list_at = to_usize(metadata.checksums_offset());
    bytes[list_at..list_at + 4].copy_from_slice(&list);
    let directory = Directory::new(*old.counts(), *old.geometry(), sections).unwrap().encode();
    bytes[end..end + directory.len()].copy_from_slice(&directory);
    let footer = Footer::new(footer.index_offset(), end as u64, &directory).unwrap().encode();
    bytes[len - 64..].copy_from_slice(&footer);
    std::fs::write(path.join("00000.seg"), &bytes).unwrap();
    let fingerprint = Fingerprint::of_directory(&directory);
    let segment = SegmentRef {
        kind: SegmentKind::Native,
        path: "00000.seg".into(),
        file_len: len as u64,
        sample_count: old.counts().sample_count,
        fingerprint,
    };
    let manifest = Manifest::new(IndexRef { file: "00000.seg".into(), fingerprint }, vec![segment], &[]).unwrap();
    std::fs::write(path.join("manifest.json"), manifest.encode().unwrap()).unwrap();
}
