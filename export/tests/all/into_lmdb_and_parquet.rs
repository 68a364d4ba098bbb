//! Exports to LMDB and Parquet: read back with the formats' own libraries.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::Path;

use ::parquet::basic::Type as Physical;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use grainstore_export::{ExportOptions, Format};
use grainstore_format::{AttributeType, AttributeValue, FieldType, UserMetadata, nearest_bfloat16, nearest_float16};
use grainstore_writer::{Sample, WriterOptions};
use serde_json::{Value, json};

use crate::common::{self, Made, image, options, rich, rich_sample};

/// All keys and values, in LMDB's order.
#[allow(unsafe_code, reason = "heed opens files by an unsafe function")]
fn entries(folder: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    use heed::types::Bytes;
    use heed::{CommitOrAbort, EnvOpenOptions};
    // SAFETY: nobody else has this file, which a test has just made.
    let env = unsafe { EnvOpenOptions::new().read_txn_without_tls().open(folder) }.unwrap();
    let opened = env.open_databases_and_commit(env.read_txn().unwrap(), |opener, transaction| {
        opener.open_database::<Bytes, Bytes>(transaction, None).map(CommitOrAbort::<_, heed::Error>::Commit)
    });
    let CommitOrAbort::Commit(Some(database)) = opened.unwrap() else { panic!("there is no database") };
    let transaction = env.read_txn().unwrap();
    let entries = database.iter(&transaction).unwrap().map(|entry| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    });
    entries.collect()
}

#[test]
fn lmdb_has_every_payload_under_its_key() {
    let samples: Vec<(Vec<u8>, Vec<u8>)> =
        (0..20_000_u64).map(|number| (format!("{:x}", number * 7919 % 20_011).into_bytes(), image(number))).collect();
    let borrowed: Vec<(&[u8], &[u8])> = samples.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
    let made = Made::keyed(&borrowed);
    let summary = made.export("out", Format::Lmdb).unwrap();
    assert_eq!((summary.samples, summary.files), (20_000, 1));
    let mut expected = samples;
    expected.sort();
    assert!(entries(&made.out("out")) == expected);
    assert_eq!(made.place.names(), ["out"]);
}

#[test]
fn lmdb_without_keys_has_ordinals_and_long_keys_are_refused() {
    let made = Made::keyless(&[b"zero", b"one", b""], "data");
    made.export("out", Format::Lmdb).unwrap();
    let expected = [("000000000", &b"zero"[..]), ("000000001", b"one"), ("000000002", b"")];
    assert_eq!(entries(&made.out("out")), expected.map(|(key, value)| (key.into(), value.to_vec())));
    let made = Made::keyed(&[(&[b'k'; 511], b"1"), (&[b'k'; 512], b"2")]);
    let error = made.refusal("out", Format::Lmdb);
    assert!(error.ends_with("): its key has 512 bytes, LMDB holds 511 at most"), "{error}");
    made.export_some("out", Format::Lmdb, &[0]).unwrap();
}

#[test]
fn lmdb_values_of_several_fields_are_examples() {
    let made = rich(30);
    made.export("lmdb", Format::Lmdb).unwrap();
    let found = entries(&made.out("lmdb"));
    assert_eq!(found.len(), 30);
    // The contents of an Example are tested with TFRecord; here there is no key, but all fields.
    let (key, value) = &found[3];
    assert_eq!(key, b"part/00003");
    let has = |bytes: &[u8]| value.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(&image(3)) && has(b"caption 3") && has(b"weight") && !has(b"part/00003"));
}

fn rows(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect())
        .collect()
}

#[test]
fn parquet_has_a_row_for_every_sample_with_nulls_where_something_is_missing() {
    let made = rich(40);
    made.export("out.parquet", Format::Parquet).unwrap();
    let rows = rows(&made.out("out.parquet"));
    assert_eq!(rows.len(), 40);
    for (number, row) in (0..).zip(rows) {
        let sample = rich_sample(number);
        let number_of = |value: Option<AttributeValue>| match value {
            None => Field::Null,
            Some(AttributeValue::Int(value)) => Field::Long(value),
            Some(AttributeValue::Float32(value)) => Field::Float(value),
            Some(AttributeValue::Bool(value)) => Field::Bool(value),
            Some(other) => panic!("{other:?}"),
        };
        let text = if number % 11 == 10 { Field::Null } else { Field::Str(format!("caption {number}")) };
        let expected = [
            ("key", Field::Str(format!("part/{number:05}"))),
            ("label", number_of(sample.attributes[0].clone())),
            ("weight", number_of(sample.attributes[1].clone())),
            ("good", number_of(sample.attributes[2].clone())),
            ("jpg", Field::Bytes(image(number).into())),
            ("txt", text),
        ];
        assert_eq!(row, expected.map(|(name, field)| (name.to_owned(), field)));
    }
}

#[test]
fn parquet_without_keys_has_the_rows_too() {
    let attributes = vec![("label", AttributeType::Int64)];
    let fields = vec![("a", FieldType::Bytes), ("b", FieldType::Bytes)];
    let options = WriterOptions { keyed: false, ..options(attributes, fields, UserMetadata::default()) };
    let sample = |number: i64| Sample {
        key: Vec::new(),
        attributes: vec![(number != 1).then_some(AttributeValue::Int(number))],
        payload: b"xyz".to_vec(),
        fields: vec![Some(0..1), (number != 2).then_some(1..3)],
    };
    let made = Made::of(options, (0..3).map(sample));
    made.export("out.parquet", Format::Parquet).unwrap();
    let bytes = |text: &str| Field::Bytes(text.as_bytes().to_vec().into());
    let row = |label, b| [("label", label), ("a", bytes("x")), ("b", b)].map(|(name, field)| (name.to_owned(), field));
    let expected = [row(Field::Long(0), bytes("yz")), row(Field::Null, bytes("yz")), row(Field::Long(2), Field::Null)];
    assert_eq!(rows(&made.out("out.parquet")), expected);
}

#[test]
fn parquet_keeps_exact_types_and_what_it_has_no_type_for_in_its_metadata() {
    let made = rich(3);
    made.export("out.parquet", Format::Parquet).unwrap();
    let reader = SerializedFileReader::new(File::open(made.out("out.parquet")).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let value = |key: &str| -> Value {
        let pairs = metadata.key_value_metadata().unwrap();
        let pair = pairs.iter().find(|pair| pair.key == key).unwrap();
        serde_json::from_str(pair.value.as_ref().unwrap()).unwrap()
    };
    let label = &value("huggingface")["info"]["features"]["label"];
    assert_eq!(label, &json!({ "_type": "ClassLabel", "names": ["cat", "dog", "emu"] }));
    assert_eq!(value("grainstore")["user"], json!({ "class_names": ["cat", "dog", "emu"] }));
    assert_eq!(value("grainstore")["attributes"][1], json!({ "name": "weight", "type": "float32" }));
    assert_eq!(metadata.schema_descr().column(2).physical_type(), Physical::FLOAT);
}

#[test]
fn parquet_keeps_the_names_of_any_numbers() {
    let attributes = vec![("split", AttributeType::Uint8), ("label", AttributeType::Int64)];
    let user = UserMetadata::default().with_member("split_names", &json!(["train", "val"])).unwrap();
    let made = Made::of(
        options(attributes, vec![("data", FieldType::Bytes)], user),
        [Sample { attributes: vec![Some(AttributeValue::Uint(1)), None], ..Sample::new("a", b"x".to_vec()) }],
    );
    made.export("out.parquet", Format::Parquet).unwrap();
    let reader = SerializedFileReader::new(File::open(made.out("out.parquet")).unwrap()).unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let theirs = pairs.iter().find(|pair| pair.key == "huggingface").unwrap().value.as_ref().unwrap();
    let features = &serde_json::from_str::<Value>(theirs).unwrap()["info"]["features"];
    assert_eq!(features["split"], json!({ "_type": "ClassLabel", "names": ["train", "val"] }));
    assert_eq!(features["label"], json!({ "_type": "Value", "dtype": "int64" }));
}

#[test]
fn parquet_declares_no_names_with_which_the_file_could_not_be_loaded() {
    let duplicate = "the numbers 0 and 2 have the same name \"a\"";
    let too_large = "sample 1 has the number 1, and the last with a name is 0";
    for (names, why) in [
        (json!(["a", "b", "a"]), Some(duplicate)),
        (json!(["a"]), Some(too_large)),
        (json!([]), Some("there are none")),
        (json!(["a", "b"]), None),
    ] {
        let attributes = vec![("label", AttributeType::Int64)];
        let user = UserMetadata::default().with_member("class_names", &names).unwrap();
        // Hugging Face takes -1 for a missing label.
        let sample = |number: i64| Sample {
            attributes: vec![Some(AttributeValue::Int([0, 1, -1][usize::try_from(number).unwrap()]))],
            ..Sample::new(format!("{number}"), b"x".to_vec())
        };
        let made = Made::of(options(attributes, vec![("data", FieldType::Bytes)], user), (0..3).map(sample));
        let notes = made.export("out.parquet", Format::Parquet).unwrap().notes;
        let reader = SerializedFileReader::new(File::open(made.out("out.parquet")).unwrap()).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(pairs.iter().any(|pair| pair.key == "huggingface"), why.is_none(), "{names}");
        let ours = pairs.iter().find(|pair| pair.key == "grainstore").unwrap().value.as_ref().unwrap();
        assert_eq!(serde_json::from_str::<Value>(ours).unwrap()["user"]["class_names"], names);
        let expected = why.map(|why| {
            format!(
                "the names of \"label\" are not declared for Hugging Face, whose library would refuse the file: {why}"
            )
        });
        assert_eq!(notes, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn parquet_keeps_the_ends_of_every_type() {
    let (half, brain) = (nearest_float16(0.1), nearest_bfloat16(0.1));
    let kinds = [
        ("a", AttributeType::Int8, AttributeValue::Int(-128), Field::Byte(-128)),
        ("b", AttributeType::Int16, AttributeValue::Int(-32768), Field::Short(-32768)),
        ("c", AttributeType::Int32, AttributeValue::Int(i32::MIN.into()), Field::Int(i32::MIN)),
        ("d", AttributeType::Int64, AttributeValue::Int(i64::MIN), Field::Long(i64::MIN)),
        ("e", AttributeType::Uint8, AttributeValue::Uint(255), Field::UByte(255)),
        ("f", AttributeType::Uint16, AttributeValue::Uint(65535), Field::UShort(65535)),
        ("g", AttributeType::Uint32, AttributeValue::Uint(u32::MAX.into()), Field::UInt(u32::MAX)),
        ("h", AttributeType::Uint64, AttributeValue::Uint(u64::MAX), Field::ULong(u64::MAX)),
        ("i", AttributeType::Float64, AttributeValue::Float64(0.1), Field::Double(0.1)),
        ("j", AttributeType::Float16, AttributeValue::Float16(half), Field::Float16(half)),
        ("k", AttributeType::Bfloat16, AttributeValue::Bfloat16(brain), Field::Float(brain.to_f32())),
        ("l", AttributeType::Timestamp, AttributeValue::Timestamp(i64::MIN), Field::Long(i64::MIN)),
        ("m", AttributeType::Category, AttributeValue::Category("gr\u{f6}".into()), Field::Str("gr\u{f6}".into())),
    ];
    let attributes = kinds.iter().map(|(name, kind, ..)| (*name, kind.clone())).collect();
    let options = options(attributes, vec![("data", FieldType::Bytes)], UserMetadata::default());
    let values = kinds.iter().map(|(_, _, value, _)| Some(value.clone())).collect();
    let made = Made::of(options, [Sample { attributes: values, ..Sample::new(*b"\xff", b"1".to_vec()) }]);
    made.export("out.parquet", Format::Parquet).unwrap();
    let row = rows(&made.out("out.parquet")).remove(0);
    assert_eq!(row[0], ("key".to_owned(), Field::Bytes(vec![0xff].into())), "keys that are not UTF-8 are bytes");
    for ((name, _, _, expected), found) in kinds.iter().zip(&row[1..]) {
        assert_eq!(found, &((*name).to_owned(), expected.clone()));
    }
}

#[test]
fn parquet_shards_are_the_same_for_any_number_of_threads_and_hold_long_pages() {
    let samples = (0..40_u64).map(|number| Sample::new(format!("{number:03}"), vec![7; 300_000]));
    let made = Made::of(options(vec![], vec![("data", FieldType::Bytes)], UserMetadata::default()), samples);
    let mut trees = Vec::new();
    for jobs in [1, 3] {
        let base = ExportOptions::to(Format::Parquet);
        let options = ExportOptions { jobs: jobs.try_into().ok(), shard_len: 4 << 20, ..base };
        made.export_with("out", &options).unwrap();
        trees.push(common::tree(&made.out("out")));
        fs::remove_dir_all(made.out("out")).unwrap();
    }
    assert_eq!(trees[0].len(), 4);
    assert!(trees[0] == trees[1]);
}
