//! Tables whose rows become attributes of the samples with the same keys.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::AttributeValue::{Bool, Category, Float32, Float64, Int, Timestamp};
use grainstore_format::Remedy;
use grainstore_sources::attributes::{AttributeTable, Attributed};
use grainstore_sources::{Layout, Source, SourceError, SourceOptions, open_source};

use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::shelf::Shelf;
use crate::tar_support::{archive, read, read_blocks};

const MEMBERS: &[(&str, &[u8])] =
    &[("a.jpg", b"picture a"), ("a.txt", b"first"), ("b.jpg", b"picture b"), ("b.txt", b"second"), ("c.jpg", b"c")];

fn attributed(source: &Path, table: &Path, key: &str) -> Result<Attributed, SourceError> {
    let source = open_source(&[source.to_owned()], &SourceOptions::default()).unwrap();
    Attributed::new(source, Arc::new(AttributeTable::read(table, key)?))
}

fn kinds(source: &dyn Source) -> Vec<String> {
    let attributes = source.description().metadata.schema.attributes();
    attributes.iter().map(|one| format!("{}: {}", one.name, one.kind.name())).collect()
}

fn refusal(made: Result<Attributed, SourceError>) -> String {
    made.err().unwrap().to_string().split_once(": ").unwrap().1.to_owned()
}

#[test]
fn rows_become_attributes_in_every_form_of_a_table() {
    let shelf = Shelf::new();
    let tar = shelf.put("a.tar", archive(MEMBERS));
    let csv = "split,key,score,wide,seen,none\nval,b,0.5,3,true,\ntrain,c,2,-4,false,\nval,z,1,1,true,\n";
    let json: String = ["b,val,0.5,3,true", "c,train,2,-4,false", "z,val,1,1,true"]
        .map(|row| {
            let [key, split, score, wide, seen] = row.split(',').collect::<Vec<_>>().try_into().unwrap();
            format!("{{\"split\": \"{split}\", \"key\": \"{key}\", \"score\": {score}, \"wide\": {wide}, \"seen\": {seen}}}\n")
        })
        .concat();
    let tables = [("t.csv", csv.to_owned()), ("t.tsv", csv.replace(',', "\t")), ("t.jsonl", json)];
    for (name, text) in tables {
        let source = attributed(&tar, &shelf.put(name, text), "key").unwrap();
        assert_eq!(kinds(&source), ["split: category", "score: float64", "wide: int64", "seen: bool"], "{name}");
        let found = read(&source, Layout::Packed).into_iter().map(Result::unwrap);
        let found: Vec<_> = found.map(|got| (got.key.clone(), got.attributes)).collect();
        let b = vec![Some(Category("val".into())), Some(Float64(0.5)), Some(Int(3)), Some(Bool(true))];
        let c = vec![Some(Category("train".into())), Some(Float64(2.0)), Some(Int(-4)), Some(Bool(false))];
        assert_eq!(found, [("a".into(), vec![None; 4]), ("b".into(), b), ("c".into(), c)], "{name}");
        let blocks = read_blocks(&source, Layout::Packed).into_iter().map(|got| got.unwrap().attributes);
        assert!(blocks.eq(found.into_iter().map(|(_, attributes)| attributes)), "{name}");
    }
}

#[test]
fn keys_are_taken_as_they_are() {
    let shelf = Shelf::new();
    let table = AttributeTable::read(&shelf.put("t.csv", "key,x\n./c,1\n007,2\n"), "key").unwrap();
    assert_eq!(table.keys().collect::<Vec<_>>(), [&b"./c"[..], b"007"]);
}

/// A Parquet file of three rows.
fn parquet_table(path: &Path) {
    let schema = "message t {
        required binary id (UTF8);
        optional int32 small (INTEGER(8,true));
        required float score;
        required int64 taken (TIMESTAMP(MILLIS,true));
        optional binary split (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut number = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| ByteArray::from(text)).collect::<Vec<_>>();
        let written = match number {
            0 => column.typed::<ByteArrayType>().write_batch(&texts(&["b", "c", "z"]), None, None).unwrap(),
            1 => column.typed::<Int32Type>().write_batch(&[-7, 9], Some(&[1, 0, 1]), None).unwrap(),
            2 => column.typed::<FloatType>().write_batch(&[0.1, f32::NEG_INFINITY, 0.0], None, None).unwrap(),
            3 => column.typed::<Int64Type>().write_batch(&[1, -2, 3], None, None).unwrap(),
            _ => column.typed::<ByteArrayType>().write_batch(&texts(&["", "val"]), Some(&[1, 0, 1]), None).unwrap(),
        };
        assert!(written >= 2);
        column.close().unwrap();
        number += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_parquet_table_keeps_its_types() {
    let shelf = Shelf::new();
    let tar = shelf.put("a.tar", archive(MEMBERS));
    let table = shelf.path("t.parquet");
    parquet_table(&table);
    let source = attributed(&tar, &table, "id").unwrap();
    assert_eq!(kinds(&source), ["small: int8", "score: float32", "taken: timestamp", "split: category"]);
    let found: Vec<_> = read(&source, Layout::Packed).into_iter().map(|got| got.unwrap().attributes).collect();
    let b = vec![Some(Int(-7)), Some(Float32(0.1)), Some(Timestamp(1_000_000)), Some(Category("".into()))];
    let c = vec![None, Some(Float32(f32::NEG_INFINITY)), Some(Timestamp(-2_000_000)), None];
    assert_eq!(found, [vec![None; 4], b, c]);
    let why = AttributeTable::read(&table, "key").unwrap_err().to_string();
    assert!(why.contains("no column is called key; one with the samples' keys is expected (there are: "), "{why}");
    let lists: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/parquet/all.parquet"].iter().collect();
    let why = AttributeTable::read(&lists, "id").unwrap_err().to_string();
    assert!(why.ends_with("is bytes, which no attribute holds: leave it out of the table"), "{why}");
}

#[test]
fn a_column_of_numbers_that_a_text_makes_one_of_text_is_noted() {
    let shelf = Shelf::new();
    let tar = shelf.put("a.tar", archive(MEMBERS));
    let table = shelf.put("t.csv", "key,score,split,flag\nb,1.5,x,true\nc,n/a,y,1\n");
    let source = attributed(&tar, &table, "key").unwrap();
    assert_eq!(kinds(&source), ["score: category", "split: category", "flag: category"]);
    let notes: Vec<String> = source.description().notes.iter().map(ToString::to_string).collect();
    let what = format!("column \"score\" of {} is text, not numbers: line 3 has \"n/a\"", table.display());
    assert_eq!(notes.iter().filter(|note| note.starts_with("column ")).collect::<Vec<_>>(), [&what]);
}

#[test]
fn tables_that_are_not_clear_are_refused() {
    let shelf = Shelf::new();
    let tar = shelf.put("a.tar", archive(MEMBERS));
    let of = |text: &str, key: &str| attributed(&tar, &shelf.put("t.csv", text), key);
    assert_eq!(refusal(of("key,x\nb,1\na,2\nb,3\n", "key")), "line 4: the key \"b\" is that of line 2 already");
    assert_eq!(
        refusal(of("name,x\nb,1\n", "key")),
        "line 1: no column is called key; one with the samples' keys is expected (there are: name, x)"
    );
    assert_eq!(of("name,x\nb,1\n", "key").err().unwrap().remedy(), Some(Remedy::NameKeyColumn));
    assert_eq!(
        refusal(of("key, x\nb, 1\n", "key")),
        "line 1: the name of column \" x\" begins or ends with a space: remove those beside the separators"
    );
    assert_eq!(refusal(of("key,x\n,1\n", "key")), "line 2: the row has no key");
    let error = of("key,txt\nb,1\n", "key").err().unwrap();
    assert!(error.to_string().contains("column \"txt\" has the name of what the samples of "), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::ExcludeNames));
    let names = shelf.put("a.bin", b"0123");
    let list = shelf.put("keyless.csv", format!("path,offset,length\n{},0,4\n", names.display()));
    let options = SourceOptions {
        from: grainstore_sources::From::Format(grainstore_sources::Format::List),
        ..SourceOptions::default()
    };
    let keyless = open_source(&[list], &options).unwrap();
    let table = Arc::new(AttributeTable::read(&shelf.put("t.csv", "key,x\na,1\n"), "key").unwrap());
    assert!(refusal(Attributed::new(keyless, table)).contains("these samples have none"));
}

#[test]
fn another_table_is_another_source() {
    let shelf = Shelf::new();
    let tar = shelf.put("a.tar", archive(MEMBERS));
    let stamp = |text: &str| attributed(&tar, &shelf.put("t.csv", text), "key").unwrap().stamp();
    assert_eq!(stamp("key,x\na,1\n"), stamp("key,x\na,1\n"));
    assert_ne!(stamp("key,x\na,1\n"), stamp("key,x\na,2\n"));
}
