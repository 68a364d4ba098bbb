//! Categories and types that this version does not know.
#![allow(clippy::unwrap_used, reason = "a test may stop here")]

use grainstore_format::{AttributeType, AttributeValue, FieldType, SectionKind};
use grainstore_store::{Collection, Dataset, StoreError};

use crate::common::{DatasetModel, DatasetParts, use_all, verify};

fn category(name: &str) -> Option<AttributeValue> {
    Some(AttributeValue::Category(name.into()))
}

/// A dataset of one attribute, and an empty payload for each value.
fn model(kind: AttributeType, segments: &[&[Option<AttributeValue>]]) -> DatasetModel {
    let mut model = DatasetModel::plain(&[]);
    model.attributes = vec![("a", kind)];
    let rows = |values: &[Option<AttributeValue>]| {
        let mut rows = DatasetModel::plain(&vec![b"x".to_vec(); values.len()]).segments.remove(0).0;
        rows.iter_mut().zip(values).for_each(|(row, value)| row.attributes = vec![value.clone()]);
        (rows, false)
    };
    model.segments = segments.iter().map(|values| rows(values)).collect();
    model
}

fn damage(parts: &DatasetParts) -> Vec<String> {
    let built = parts.write();
    let (_, damage) = verify(&built.path).unwrap();
    damage.iter().map(ToString::to_string).collect()
}

/// CAT-1, CAT-2
#[test]
fn categories_are_read_from_every_segment_and_from_the_merged_index() {
    let first = [category("b"), None, category("a"), category("b")];
    let second = [category("a"), category("c")];
    let model = model(AttributeType::Category, &[&first, &second]);
    let built = model.write();
    let (report, found) = verify(&built.path).unwrap();
    assert_eq!((report.damaged, found.len()), (0, 0));
    let dataset = Dataset::open(&built.path).unwrap();
    assert_eq!(dataset.categories("a").unwrap().iter().collect::<Vec<_>>(), ["b", "a", "c"]);
    for (ordinal, value) in (0..).zip(first.iter().chain(&second)) {
        assert_eq!(dataset.attributes(ordinal).unwrap(), std::slice::from_ref(value));
        assert_eq!(dataset.column("a").unwrap().get(ordinal), *value);
        assert!(dataset.cached_attribute(0, ordinal).is_none_or(|found| found == *value));
    }
    let codes: Vec<_> = (0..7).map(|ordinal| dataset.column("a").unwrap().code(ordinal)).collect();
    assert_eq!(codes, [Some(0), None, Some(1), Some(0), Some(1), Some(2), None]);
    let lone = Dataset::open(built.path.join("00001.seg")).unwrap();
    assert_eq!(lone.categories("a").unwrap().iter().collect::<Vec<_>>(), ["a", "c"]);
    assert!(matches!(dataset.categories("z"), Err(StoreError::NoSuchAttribute { .. })));

    let both = Collection::of(vec![lone, dataset]).unwrap();
    let merged = both.merged_categories("a").unwrap();
    assert_eq!(merged.categories.iter().collect::<Vec<_>>(), ["a", "c", "b"]);
    assert_eq!(*merged.codes, [vec![0, 1], vec![2, 0, 1]]);
    assert_eq!(both.column("a").unwrap().get(2), category("b"));
    let again = both.merged_categories("a").unwrap();
    assert!(std::ptr::eq(merged.categories, again.categories), "merged once");
    assert!(std::ptr::eq(merged.categories, both.categories("a").unwrap()));
    assert!(matches!(both.categories("z"), Err(StoreError::NoSuchAttribute { .. })));
}

/// CAT-2
#[test]
fn an_attribute_that_no_sample_has_needs_no_categories() {
    let model = model(AttributeType::Category, &[&[None, None]]);
    let built = model.write();
    assert!(use_all(&built.path).is_ok());
    let dataset = Dataset::open(&built.path).unwrap();
    assert!(dataset.categories("a").unwrap().is_empty());
    assert_eq!(dataset.attributes(1).unwrap(), [None]);
    let mut parts = model.parts();
    parts.segments[0].index.sections.remove(&(SectionKind::Validity, 0));
    assert_eq!(damage(&parts).len(), 2, "each sample has a code without a category");
}

/// CAT-1, CAT-2
#[test]
fn a_code_without_a_category_and_broken_categories_are_damage() {
    let values = [category("b"), None, category("a")];
    let mut parts = model(AttributeType::Category, &[&values]).parts();
    parts.segments[0].index.set(SectionKind::Attribute, 0, 2, 2);
    let found = damage(&parts);
    assert!(found.len() == 1 && found[0].contains("has code 2, there are 2 categories"), "{found:?}");
    let built = parts.write();
    let dataset = Dataset::open(&built.path).unwrap();
    assert_eq!(dataset.attributes(0).unwrap(), [category("b")], "the others can still be used");
    assert!(dataset.attributes(2).is_err());
    assert!(dataset.column("a").unwrap_err().to_string().contains("code 2 for sample 2"));

    let mut parts = model(AttributeType::Category, &[&values]).parts();
    *parts.segments[0].index.section(SectionKind::Categories, 0) = b"\x01b\x01b".to_vec();
    let found = damage(&parts);
    assert!(found.len() == 1 && found[0].contains("\"b\" is there twice"), "{found:?}");
    let built = parts.write();
    let dataset = Dataset::open(&built.path).unwrap();
    assert!(dataset.categories("a").is_err() && dataset.attributes(0).is_err());

    let mut parts = model(AttributeType::Uint32, &[&[Some(AttributeValue::Uint(0))]]).parts();
    parts.segments[0].index.put(SectionKind::Categories, 0, 0, b"\x01b".to_vec());
    assert!(Dataset::open(&parts.write().path).is_err(), "only categories have them");
}

/// CAT-3
#[test]
fn verify_compares_categories_by_their_texts() {
    let first = [category("b"), category("a")];
    let second = [category("a"), category("b")];
    let mut parts = model(AttributeType::Category, &[&first, &second]).parts();
    let merged = parts.merged.as_mut().unwrap();
    merged.set(SectionKind::Attribute, 0, 3, 1);
    let found = damage(&parts);
    assert!(found.len() == 1 && found[0].contains("disagree on its attribute \"a\""), "{found:?}");
}

/// ATR-3
#[test]
fn types_that_this_version_does_not_know_are_bytes() {
    for width in [1, 2, 4, 8, 16] {
        let mut parts = model(AttributeType::Uint8, &[&[Some(AttributeValue::Uint(7)), None]]).parts();
        let index = &mut parts.segments[0].index;
        let metadata = String::from_utf8(index.section(SectionKind::Metadata, 0).clone()).unwrap();
        let metadata = metadata.replace("uint8", "decimal(9)").replace("\"bytes\"", "\"jpeg[3]\"");
        index.put(SectionKind::Metadata, 0, 0, metadata.into_bytes());
        let value: Vec<u8> = (1..=width).collect();
        let column = [value.clone(), vec![0; usize::from(width)]].concat();
        index.put(SectionKind::Attribute, 0, width.into(), column.clone());
        let built = parts.write();
        let (report, found) = verify(&built.path).unwrap();
        assert_eq!((report.damaged, found.len()), (0, 0));
        let dataset = Dataset::open(&built.path).unwrap();
        let schema = dataset.schema();
        assert_eq!(schema.attributes()[0].kind, AttributeType::Opaque("decimal(9)".into()));
        assert_eq!(schema.fields()[0].kind, FieldType::Opaque("jpeg[3]".into()));
        assert_eq!(dataset.attributes(0).unwrap(), [Some(AttributeValue::Opaque(value.into()))]);
        assert_eq!(dataset.attributes(1).unwrap(), [None]);
        assert_eq!(
            (dataset.column("a").unwrap().width, dataset.column("a").unwrap().bytes),
            (width.into(), &column[..])
        );
        assert!(matches!(dataset.categories("a"), Err(StoreError::NotCategory { .. })));

        let index = &mut parts.segments[0].index;
        *index.section(SectionKind::Attribute, 0).last_mut().unwrap() = 1;
        assert!(damage(&parts)[0].contains("is absent, but its value is not 0"));
    }
}

/// PLN-8, ATR-3
#[test]
fn datasets_whose_unknown_types_have_other_widths_are_not_read_as_one() {
    let of_width = |width: u32| {
        let mut parts = model(AttributeType::Uint8, &[&[Some(AttributeValue::Uint(7))]]).parts();
        let index = &mut parts.segments[0].index;
        let metadata = String::from_utf8(index.section(SectionKind::Metadata, 0).clone()).unwrap();
        index.put(SectionKind::Metadata, 0, 0, metadata.replace("uint8", "decimal(9)").into_bytes());
        index.put(SectionKind::Attribute, 0, width, vec![1; usize::try_from(width).unwrap()]);
        parts.write()
    };
    let built = [of_width(4), of_width(8), of_width(4)];
    let open = |number: usize| Dataset::open(&built[number].path).unwrap();
    let error = Collection::of(vec![open(0), open(1)]).unwrap_err();
    let expected = r#"attribute 0 is "a" (decimal(9), width 4) in the first, "a" (decimal(9), width 8) in the second"#;
    assert!(matches!(&error, StoreError::Unlike { what, .. } if what == expected), "{error}");
    assert_eq!(Collection::of(vec![open(0), open(2)]).unwrap().sample_count(), 2);
}
