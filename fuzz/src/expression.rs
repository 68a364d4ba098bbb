//! Expressions that choose samples: they are written as they parse, and mean the same.

use std::sync::LazyLock;

use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_reader::{Expression, SelectError};
use grainstore_store::Dataset;
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

/// Two groups of 64 and a bit.
const SAMPLES: u64 = 130;
/// Longer ones are written as what may be too long to parse.
const MAX_LEN: usize = 4096;

static DATASET: LazyLock<Dataset> = LazyLock::new(dataset);

/// SUB-2 to SUB-10: any text.
pub fn subset_expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(expression) = text.parse::<Expression>() else { return };
    let written = expression.to_string();
    if text.len() <= MAX_LEN {
        assert_eq!(written.parse::<Expression>().as_ref(), Ok(&expression), "{written}");
        check_opposite(&expression, &written);
    }
}

/// A sample meets an expression or its opposite, never both. Where a value is missing, it is for both.
fn check_opposite(expression: &Expression, written: &str) {
    // One level more may be one too many.
    let Ok(opposite) = format!("not ({written})").parse::<Expression>() else { return };
    match (expression.select(&DATASET), opposite.select(&DATASET)) {
        (Ok(met), Ok(others)) => {
            assert_eq!(met.sample_count(), SAMPLES);
            assert!((0..SAMPLES).all(|ordinal| met.contains(ordinal) != others.contains(ordinal)), "{written}");
        }
        (Err(SelectError::Missing { ordinal, .. }), Err(SelectError::Missing { ordinal: other, .. })) => {
            assert_eq!(ordinal, other, "{written}");
        }
        (Err(SelectError::Unfit { .. }), Err(SelectError::Unfit { .. })) => {}
        (one, other) => panic!("{written}: {one:?}, its opposite: {other:?}"),
    }
}

/// A label with classes, a width and a split that some samples lack, a float, a bool and a time.
fn dataset() -> Dataset {
    let attribute = |(name, kind): (&str, AttributeType)| Attribute { name: name.into(), kind };
    let attributes = [
        ("label", AttributeType::Int64),
        ("width", AttributeType::Uint16),
        ("half", AttributeType::Float32),
        ("flag", AttributeType::Bool),
        ("split", AttributeType::Category),
        ("time", AttributeType::Timestamp),
    ];
    let fields = vec![Field { name: "data".into(), kind: FieldType::Bytes }];
    let schema = Schema::new(attributes.map(attribute).to_vec(), fields).unwrap();
    let user = UserMetadata::default().with_member("class_names", &serde_json::json!(["cat", "dog"])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns.grain");
    let mut writer = DatasetWriter::create(&path, WriterOptions::with_metadata(Metadata { schema, user })).unwrap();
    (0..SAMPLES).for_each(|ordinal| writer.write(sample(ordinal)).unwrap());
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    // What an expression may ask for is loaded before the folder goes.
    for ordinal in 0..SAMPLES {
        dataset.key(ordinal).unwrap();
    }
    for attribute in dataset.schema().attributes() {
        dataset.column(&attribute.name).unwrap();
    }
    dataset
}

fn sample(ordinal: u64) -> Sample {
    let label = (ordinal % 3) as i64 - 1;
    let attributes = vec![
        Some(AttributeValue::Int(label)),
        (ordinal % 5 > 0).then_some(AttributeValue::Uint(ordinal * 500)),
        Some(AttributeValue::Float32(if ordinal == 7 { f32::NAN } else { ordinal as f32 / 4.0 })),
        Some(AttributeValue::Bool(ordinal.is_multiple_of(2))),
        (ordinal % 7 > 0).then(|| AttributeValue::Category(["train", "test", ""][(ordinal % 3) as usize].into())),
        Some(AttributeValue::Timestamp(label)),
    ];
    Sample { key: format!("n{ordinal}").into_bytes(), attributes, ..Sample::default() }
}
