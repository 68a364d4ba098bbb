//! Parquet files that pyarrow wrote, as samples; and files that are not Parquet, or are damaged, as errors with the
//! location.
//!
//! The files of `fixtures/parquet` have 20 rows (`all`: every type, null in row 3, 4, ... of one column after the
//! other) and the codec, encoding or problem in their name; `tests/peers/test_parquet.py` writes such files again.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::AttributeValue::{self, Bool, Float32, Float64, Int, Uint};
use grainstore_format::{FieldType, Remedy, Schema, to_usize};
use grainstore_sources::parquet::{ParquetOptions, ParquetSource, recognises};
use grainstore_sources::{Bad, Chosen, Layout, Reach, Source, SourceError, SourceSample};
use half::f16;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet").join(name)
}

fn open(files: &[PathBuf], map: &str) -> Result<ParquetSource, SourceError> {
    let map = if map.is_empty() { Default::default() } else { map.parse().unwrap() };
    ParquetSource::open(files, &ParquetOptions { map, ..ParquetOptions::default() })
}

fn open_fixture(name: &str, map: &str) -> ParquetSource {
    open(&[fixture(name)], map).unwrap()
}

fn refusal(name: &str, map: &str) -> String {
    let text = open(&[fixture(name)], map).unwrap_err().to_string();
    text.replace(&format!("{}: ", fixture(name).display()), "")
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    key: String,
    attributes: Vec<Option<AttributeValue>>,
    fields: Vec<Option<Vec<u8>>>,
}

/// The rows of a part, and what ended or interrupted them.
fn read(source: &ParquetSource, part: usize) -> (Vec<Row>, Vec<Bad>) {
    let (mut rows, mut bads) = (Vec::new(), Vec::new());
    let mut samples = match source.open(part, 0, Layout::Packed) {
        Ok(samples) => samples,
        Err(bad) => return (rows, vec![bad]),
    };
    loop {
        match samples.next() {
            Ok(None) => return (rows, bads),
            Ok(Some(SourceSample::Whole { sample, .. })) => {
                let field = |range: &Option<std::ops::Range<u64>>| {
                    range.clone().map(|range| sample.payload[to_usize(range.start)..to_usize(range.end)].to_vec())
                };
                let fields = match &sample.fields[..] {
                    [] => vec![Some(sample.payload.clone())],
                    ranges => ranges.iter().map(field).collect(),
                };
                let key = String::from_utf8_lossy(&sample.key).into_owned();
                rows.push(Row { key, attributes: sample.attributes, fields });
            }
            Ok(Some(SourceSample::Long { .. } | SourceSample::LeftOut)) => {
                unreachable!("no sample of these is long or left out")
            }
            Err(bad) => {
                let ends = bad.reach == Reach::Rest;
                bads.push(bad);
                if ends {
                    assert!(samples.next().unwrap().is_none());
                    return (rows, bads);
                }
            }
        }
    }
}

fn all_rows(source: &ParquetSource) -> Vec<Row> {
    let parts = (0..source.description().parts.len()).map(|part| {
        let (rows, bads) = read(source, part);
        assert_eq!(bads, []);
        assert_eq!(source.description().parts[part].sample_count, Some(rows.len() as u64));
        assert_eq!(source.blocks(part), Ok(None), "row groups are streamed");
        rows
    });
    parts.flatten().collect()
}

fn schema(schema: &Schema) -> String {
    let attributes = schema.attributes().iter().map(|item| format!("{}: {}", item.name, item.kind.name()));
    let fields = schema.fields().iter().map(|item| format!("{}: {}", item.name, item.kind.name()));
    attributes.chain(["|".into()]).chain(fields).collect::<Vec<_>>().join(" ")
}

fn text(row: i64) -> Option<Vec<u8>> {
    match row {
        8 => None,
        9 => Some(Vec::new()),
        _ => Some(format!("té{}", row % 3).into_bytes()),
    }
}

fn byte(row: i64) -> u8 {
    u8::try_from(row).unwrap()
}

fn data(row: i64) -> Option<Vec<u8>> {
    Some(vec![byte(row); usize::from(byte(row))])
}

/// What the script that wrote `all.parquet` put into row `i`.
fn expected(i: i64) -> Row {
    let unless = |null: i64, value| (i != null).then_some(value);
    let signed = |bits: u32| {
        let max = i64::MAX >> (64 - bits);
        unless(3, Int([-max - 1, max].get(usize::from(byte(i))).copied().unwrap_or(i)))
    };
    let unsigned = |bits: u32| unless(4, Uint(if i == 1 { u64::MAX >> (64 - bits) } else { i as u64 }));
    let attributes = vec![
        signed(8),
        unsigned(8),
        signed(16),
        unsigned(16),
        signed(32),
        unsigned(32),
        signed(64),
        unsigned(64),
        unless(5, Float32(i as f32 / 2.0)),
        unless(6, Float64(i as f64 / 4.0)),
        unless(7, Bool(i % 2 == 0)),
        Some(Int(i * 1000)),
    ];
    Row { key: format!("k{i:02}"), attributes, fields: vec![text(i), data(i), Some(vec![byte(i); 4])] }
}

#[test]
fn every_type_comes_back_with_its_nulls() {
    let source = open_fixture("all.parquet", "");
    assert_eq!(
        schema(&source.description().metadata.schema),
        "i8: int8 u8: uint8 i16: int16 u16: uint16 i32: int32 u32: uint32 i64: int64 u64: uint64 f32: float32 \
         f64: float64 yes: bool when: int64 | text: str data: bytes four: bytes"
    );
    assert_eq!(
        source.description().parts.iter().map(|part| part.sample_count).collect::<Vec<_>>(),
        [Some(7), Some(7), Some(6)]
    );
    assert_eq!(all_rows(&source), (0..20).map(expected).collect::<Vec<_>>());
    assert!(source.description().is_keyed);
    let notes = &source.description().notes;
    assert!(notes[0].text.starts_with("column \"key\" is the key"), "{notes:?}");
    assert_eq!(notes[1..], ["\"when\" is a date or a time, kept as its integer: micros".into()]);
}

#[test]
fn codecs_encodings_and_page_versions_make_no_difference() {
    for name in ["none", "gzip", "zstd", "lz4", "v2", "checksums"] {
        let source = open_fixture(&format!("{name}.parquet"), "");
        let expected = (0..20).map(|i| {
            let all = expected(i);
            let attributes = vec![all.attributes[6].clone(), all.attributes[10].clone()];
            Row { key: all.key, attributes, fields: vec![text(i), data(i)] }
        });
        assert_eq!(all_rows(&source), expected.collect::<Vec<_>>(), "{name}");
    }
    assert!(refusal("brotli.parquet", "").contains("row group 0, column \"key\": it is compressed with brotli"));
}

#[test]
fn a_mapping_chooses_renames_and_makes_keys_of_integers() {
    let source = open_fixture("all.parquet", "key=u64,payload=data,n=i8,again=data");
    assert_eq!(schema(&source.description().metadata.schema), "n: int8 | payload: bytes again: bytes");
    let (rows, bads) = read(&source, 0);
    let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["0", "18446744073709551615", "2", "3", "5", "6"]);
    assert_eq!(rows[2], Row { key: "2".into(), attributes: vec![Some(Int(2))], fields: vec![data(2), data(2)] });
    assert_eq!((bads[0].location.record, bads[0].reach), (Some(4), Reach::Sample));
    assert_eq!(bads[0].why.text, "row group 0: its key is null");

    let keyless = open_fixture("none.parquet", "data");
    assert!(!keyless.description().is_keyed);
    assert_eq!(all_rows(&keyless).len(), 20);
    let keyed = open_fixture("none.parquet", "key=key");
    assert_eq!(schema(&keyed.description().metadata.schema), "i64: int64 yes: bool | text: str data: bytes");
}

#[test]
fn columns_that_cannot_be_taken_are_refused_by_name() {
    let error = open(&[fixture("decimal.parquet")], "").unwrap_err();
    let why = "column \"price\" is a decimal number with digits after the point, which no type holds exactly";
    assert!(error.to_string().contains(why), "{error}");
    assert!(matches!(error.remedy(), Some(Remedy::MapColumns)), "{:?}", error.remedy());
    assert!(refusal("decimal.parquet", "data,price").contains("column \"price\" is a decimal number"));
    assert_eq!(all_rows(&open_fixture("list.parquet", "data")).len(), 1);
    assert!(refusal("numbers.parquet", "").contains("no column of bytes, text or lists"));
    assert_eq!(refusal("null.parquet", "nothing"), "no column \"nothing\"; it has \"data\", \"n\"");
    assert!(refusal("all.parquet", "key=f32,data").contains("column \"f32\" is float32, which cannot be a key"));
    assert!(refusal("all.parquet", "a=data,b=data,a.x=nope").contains("no column \"nope\""));
}

/// What the script that wrote `lists.parquet` put into row `i`.
fn lists_of(i: i64) -> Row {
    let f32s = |numbers: [f32; 3]| Some(numbers.map(f32::to_le_bytes).concat());
    let number = f32::from(byte(i));
    let boxes = i64::from(byte(i) % 3);
    let half = f16::from_f32(number / 2.0).to_le_bytes();
    let fields = vec![
        data(i),
        f32s([number, number + 0.5, 0.0 - number]),
        Some([i.to_le_bytes(), (i + 1).to_le_bytes()].concat()),
        (i != 5).then(|| (0..i16::from(byte(i) % 4)).flat_map(i16::to_le_bytes).collect()),
        Some([half, half].concat()),
        Some((0..boxes).flat_map(|_| f64::from(number).to_le_bytes()).collect()),
        Some((0..byte(i) % 3).collect()),
    ];
    let whole = i * 1_000_000_000_000;
    let attributes = [
        AttributeValue::Float16(f16::from_f32(number / 4.0)),
        Int(whole),
        AttributeValue::Timestamp(i * 1_000_003_000),
    ];
    Row { key: String::new(), attributes: attributes.map(Some).into(), fields }
}

#[test]
fn lists_of_numbers_are_arrays_fixed_where_all_have_one_length() {
    let source = open_fixture("lists.parquet", "");
    let expected = "f16: float16 whole: int64 at: timestamp | data: bytes fixed: float32[3] same: int64[2] open: int16[] \
                    half: float16[2] boxes.x: float64[] boxes.y: uint8[]";
    assert_eq!(schema(&source.description().metadata.schema), expected);
    assert_eq!(all_rows(&source), (0..20).map(lists_of).collect::<Vec<_>>());
    let mapped = open_fixture("lists.parquet", "vector=fixed,x=boxes.x");
    assert_eq!(schema(&mapped.description().metadata.schema), "| vector: float32[3] x: float64[]");
    assert_eq!(all_rows(&mapped)[4].fields, [lists_of(4).fields[1].clone(), lists_of(4).fields[5].clone()]);
}

#[test]
fn texts_that_arrow_keeps_in_a_dictionary_are_categories() {
    let source = open_fixture("categories.parquet", "");
    assert_eq!(schema(&source.description().metadata.schema), "split: category codes: int16 | text: str");
    let split = |i: usize| (i != 3).then(|| AttributeValue::Category(["train", "val", "größe", "val"][i % 4].into()));
    let rows = all_rows(&source);
    assert_eq!(rows.len(), 20);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!((row.key.as_str(), &row.attributes[0]), (format!("k{i}").as_str(), &split(i)));
    }
    // Where there is nothing else, it is the field that a dataset needs.
    let only = open_fixture("categories.parquet", "key=key,split=split");
    assert_eq!(schema(&only.description().metadata.schema), "| split: str");
    assert_eq!(read(&only, 0).0[2].fields, [Some("größe".as_bytes().to_vec())]);
}

/// A file of plain texts, without what Arrow declares: `split` and `note`, a number, and bytes unless there are none.
fn file_of_texts(path: &Path, splits: &[&str]) {
    let schema = "message t { required int32 number; required binary split (STRING); required binary note (STRING); \
                  required binary data; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut number = group.next_column().unwrap().unwrap();
    number.typed::<Int32Type>().write_batch(&vec![7; splits.len()], None, None).unwrap();
    number.close().unwrap();
    for _ in 0..3 {
        let texts: Vec<ByteArray> = splits.iter().map(|text| ByteArray::from(*text)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn columns_of_text_become_categories_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
    file_of_texts(&paths[0], &["train", "val"]);
    file_of_texts(&paths[1], &["größe"]);
    let open = |map: &str, names: &[&str]| {
        let map = if map.is_empty() { Default::default() } else { map.parse().unwrap() };
        let categories = names.iter().map(|name| (*name).to_owned()).collect();
        ParquetSource::open(&paths, &ParquetOptions { map, categories, ..ParquetOptions::default() })
    };
    let schema_of = |source: &ParquetSource| schema(&source.description().metadata.schema);
    assert_eq!(schema_of(&open("", &[]).unwrap()), "number: int32 | split: str note: str data: bytes");
    let source = open("", &["split"]).unwrap();
    assert_eq!(schema_of(&source), "number: int32 split: category | note: str data: bytes");
    let found: Vec<_> = all_rows(&source).into_iter().map(|row| row.attributes[1].clone()).collect();
    assert_eq!(found, ["train", "val", "größe"].map(|text| Some(AttributeValue::Category(text.into()))));
    for name in ["subset", "split"] {
        assert_eq!(schema_of(&open("subset=split,data", &[name]).unwrap()), "subset: category | data: bytes");
    }
    for (map, name, why) in [
        ("", "number", "column \"number\" is int32, and only texts become categories"),
        ("", "data", "column \"data\" is bytes, and only texts become categories"),
        ("", "splat", "no column \"splat\" is taken; its columns of text are: split, note"),
        ("data,note", "split", "no column \"split\" is taken; its columns of text are: note"),
        ("split,number", "split", "among those taken besides the categories; a dataset needs a field"),
    ] {
        let error = open(map, &[name]).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}

#[test]
fn a_null_inside_a_list_is_a_bad_row_and_the_next_one_is_read() {
    let (rows, bads) = read(&open_fixture("holes.parquet", ""), 0);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1].fields[1], Some([4_i32, 5].map(i32::to_le_bytes).concat()));
    let why = "row group 0: column \"holes\": element 0 of its list is null; arrays have no nulls";
    assert_eq!((bads[0].why.text.as_str(), bads[0].reach, bads[0].location.record), (why, Reach::Sample, Some(1)));
}

#[test]
fn columns_are_left_out_by_name_and_a_struct_with_its_members() {
    let choose = |only: &[&str], exclude: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = Chosen { only: names(only), exclude: names(exclude) };
        ParquetSource::open(&[fixture("lists.parquet")], &ParquetOptions { chosen, ..ParquetOptions::default() })
    };
    let source = choose(&[], &["boxes", "same", "half", "f16", "at"]).unwrap();
    assert_eq!(
        schema(&source.description().metadata.schema),
        "whole: int64 | data: bytes fixed: float32[3] open: int16[]"
    );
    assert_eq!(all_rows(&source).len(), 20);
    let source = choose(&["boxes.x", "whole"], &[]).unwrap();
    assert_eq!(schema(&source.description().metadata.schema), "whole: int64 | boxes.x: float64[]");
    let why = choose(&[], &["box"]).unwrap_err().to_string();
    assert!(why.contains("there is no column \"box\" to choose (there are: at, boxes, boxes.x, "), "{why}");
}

#[test]
fn a_null_in_the_only_field_is_a_bad_row() {
    let (rows, bads) = read(&open_fixture("null.parquet", ""), 0);
    assert_eq!(rows.len(), 1);
    assert_eq!(bads[0].why.text, "row group 0: its only field is null; a sample needs one");
    assert_eq!((bads[0].location.record, bads[0].reach), (Some(1), Reach::Sample));
}

#[test]
fn pictures_of_hugging_face_are_bytes_with_their_path_as_the_key() {
    let source = open_fixture("hf.parquet", "");
    assert_eq!(schema(&source.description().metadata.schema), "label: int64 | image: bytes");
    assert_eq!(source.description().metadata.user.member("class_names"), Ok(Some(serde_json::json!(["cat", "dog"]))));
    let row = |key: &str, label, image: &str| Row {
        key: key.into(),
        attributes: vec![Some(Int(label))],
        fields: vec![Some(image.into())],
    };
    assert_eq!(all_rows(&source), [row("a.png", 1, "one"), row("b.png", 0, "two"), row("c.png", 1, "three")]);
    assert!(source.description().notes[0].text.contains("column \"image.path\" is the key"));

    let by_name = open_fixture("hf.parquet", "key=image.path,image,class=label");
    assert_eq!(schema(&by_name.description().metadata.schema), "class: int64 | image: bytes");
    assert_eq!(by_name.description().metadata.user.member("class_names"), Ok(Some(serde_json::json!(["cat", "dog"]))));

    let pathless = open_fixture("hf_null.parquet", "");
    assert!(!pathless.description().is_keyed);
    assert_eq!(schema(&pathless.description().metadata.schema), "label: int64 | image: bytes image.path: str");
    assert_eq!(all_rows(&pathless)[0].fields, [Some(b"one".to_vec()), None]);
    assert_eq!(pathless.description().metadata.schema.fields()[1].kind, FieldType::Str);
}

#[test]
fn files_of_one_dataset_have_the_same_columns() {
    let both = |a: &str, b: &str, map: &str| open(&[fixture(a), fixture(b)], map);
    let source = both("none.parquet", "zstd.parquet", "").unwrap();
    assert_eq!(source.description().parts.len(), 6);
    assert_eq!(all_rows(&source).len(), 40);
    let error = both("none.parquet", "all.parquet", "").unwrap_err().to_string();
    assert!(error.contains("all.parquet: column \"i8\" is not in ") && error.ends_with("none.parquet"), "{error}");
    assert_eq!(all_rows(&both("none.parquet", "all.parquet", "data,i64").unwrap()).len(), 40);
    let error = both("none.parquet", "hf.parquet", "data").unwrap_err().to_string();
    assert!(error.contains("hf.parquet: column \"data\" is not there, as it is in"), "{error}");
    assert!(open(&[], "").unwrap_err().to_string().contains("no file was named"));
}

#[test]
fn what_is_not_parquet_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    for (bytes, expected) in [
        (&b""[..], "not a Parquet file: 0 bytes"),
        (b"PK\x03\x04", "not a Parquet file: 4 bytes"),
        (b"PAR1", "damaged, or cut off: its footer cannot be read"),
        (b"PAR1\xff\xff\xff\xffPAR1", "damaged, or cut off"),
        (b"PAR1\0\0\0\0PAR1", "damaged, or cut off"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = open(std::slice::from_ref(&path), "").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(recognises(b"PAR1\x15") && !recognises(b"PAR") && !recognises(b"PARE...."));
    assert_eq!(
        open_fixture("none.parquet", "").description().not_adoptable.clone().unwrap().text.split(':').next(),
        Some("Parquet pages are encoded")
    );
}

#[test]
fn a_file_that_changed_after_it_was_opened_is_a_bad_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    fs::copy(fixture("none.parquet"), &path).unwrap();
    let source = open(std::slice::from_ref(&path), "").unwrap();
    fs::write(&path, b"PAR1").unwrap();
    let (rows, bads) = read(&source, 1);
    assert_eq!((rows.len(), bads[0].reach), (0, Reach::Rest));
    assert!(bads[0].why.text.contains("it has 4 bytes now"));
    fs::remove_file(&path).unwrap();
    assert_eq!(read(&source, 0).1[0].reach, Reach::Rest);
}

#[test]
fn a_page_that_fails_its_checksum_ends_its_row_group_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let mut bytes = fs::read(fixture("checksums.parquet")).unwrap();
    let needle = [14_u8; 14];
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at + 5] ^= 1;
    fs::write(&path, bytes).unwrap();
    let source = open(&[path], "").unwrap();
    let counts: Vec<(usize, usize)> = (0..3).map(|part| read(&source, part)).map(|(r, b)| (r.len(), b.len())).collect();
    assert_eq!(counts, [(8, 0), (0, 1), (4, 0)]);
    let bad = read(&source, 1).1.remove(0);
    assert_eq!((bad.location.record, bad.reach), (Some(8), Reach::Rest));
    assert!(bad.why.text.starts_with("row group 1: column \"data\": ") && bad.why.text.contains("CRC"), "{}", bad.why);
}

/// Reads all that can be read, with every column as it comes.
fn survives(path: &Path) {
    if let Ok(source) = open(&[path.to_owned()], "") {
        for part in 0..source.description().parts.len() {
            let _ = source.blocks(part);
            let (rows, _) = read(&source, part);
            assert!(rows.len() <= 1 << 16);
            let len: usize = rows.iter().flat_map(|row| row.fields.iter().flatten()).map(Vec::len).sum();
            assert!(len < 1 << 26, "{len}");
        }
    }
}

#[test]
fn a_flipped_bit_in_any_byte_and_every_cut_is_an_error_or_other_rows_but_never_worse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    for name in ["v2.parquet", "none.parquet", "hf.parquet"] {
        let bytes = fs::read(fixture(name)).unwrap();
        fs::write(&path, &bytes).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        for (at, &byte) in bytes.iter().enumerate() {
            file.write_all_at(&[byte ^ 1 << (at % 8)], at as u64).unwrap();
            survives(&path);
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        for len in (0..bytes.len()).rev() {
            file.set_len(len as u64).unwrap();
            assert!(open(std::slice::from_ref(&path), "").is_err(), "{name} cut at {len}");
        }
    }
}

/// A file of a column of bytes and one of type null, as pandas writes a column of `None`.
fn file_with_nulls_only(path: &Path) {
    let schema = "message t { required binary data; optional int32 nothing (UNKNOWN); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut data = group.next_column().unwrap().unwrap();
    data.typed::<ByteArrayType>().write_batch(&[ByteArray::from("x"), ByteArray::from("y")], None, None).unwrap();
    data.close().unwrap();
    let mut nothing = group.next_column().unwrap().unwrap();
    nothing.typed::<Int32Type>().write_batch(&[], Some(&[0, 0]), None).unwrap();
    nothing.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_column_of_nulls_alone_is_refused_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nulls.parquet");
    file_with_nulls_only(&path);
    let open = |chosen| {
        ParquetSource::open(std::slice::from_ref(&path), &ParquetOptions { chosen, ..ParquetOptions::default() })
    };
    let error = open(Chosen::default()).unwrap_err();
    assert!(error.to_string().ends_with("column \"nothing\" is of type null, which a dataset cannot hold"), "{error}");
    assert!(matches!(error.remedy(), Some(Remedy::MapColumns)), "{:?}", error.remedy());
    let source = open(Chosen { exclude: vec!["nothing".into()], ..Chosen::default() }).unwrap();
    assert_eq!(schema(&source.description().metadata.schema), "| data: bytes");
    assert_eq!(all_rows(&source).len(), 2);
}
