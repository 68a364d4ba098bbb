//! Lists as a source: a row is a sample in any file, and a row that is not valid is reported with its line.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::path::PathBuf;

use grainstore_format::AttributeValue::{Bool, Float64, Int};
use grainstore_sources::list::ListSource;
use grainstore_sources::{Format, From, Layout, Source, SourceError, SourceOptions, open_source};
use proptest::prelude::*;

use crate::shelf::Shelf;
use crate::tar_support::{Got, read, read_blocks};

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251).try_into().unwrap()).collect()
}

fn open(list: PathBuf) -> Result<ListSource, SourceError> {
    ListSource::open(&[list])
}

fn good(source: &ListSource) -> Vec<Got> {
    read(source, Layout::Packed).into_iter().map(Result::unwrap).collect()
}

/// Why a list with this content is refused.
fn refusal(text: &str) -> String {
    let shelf = Shelf::new();
    let error = open(shelf.put("list.csv", text)).unwrap_err();
    let is_empty = text.lines().count() == 1 && error.is_empty_source();
    assert!(is_empty || matches!(error, SourceError::Refused { .. }), "{error}");
    error.to_string().split_once("list.csv: ").unwrap().1.to_owned()
}

#[test]
fn a_row_is_the_bytes_that_it_names_in_every_form_of_a_list() {
    let shelf = Shelf::new();
    shelf.put("lists/data/a.bin", content(1000));
    shelf.put("lists/b.bin", content(50));
    let csv = "key,offset,length,path,score,label,flag\n\
               k0,10,20,data/a.bin,0.5,dog,true\nk1,0,50,b.bin,,cat,false\nk2,5,0,./data/a.bin,2,dog,\n";
    let json = ["data/a.bin,10,20,k0,0.5,dog,true", "b.bin,0,50,k1,null,cat,false", "data/a.bin,5,0,k2,2,dog,null"];
    let json = json.map(|row| {
        let [path, offset, length, key, score, label, flag] = row.split(',').collect::<Vec<_>>().try_into().unwrap();
        format!(
            "{{\"path\": \"{path}\", \"offset\": {offset}, \"length\": {length}, \"key\": \"{key}\", \
             \"score\": {score}, \"label\": \"{label}\", \"flag\": {flag}}}\n"
        )
    });
    let lists = [("a.csv", csv.to_owned()), ("a.tsv", csv.replace(',', "\t")), ("a.jsonl", json.concat())];
    for (name, text) in lists {
        let source = open(shelf.put(&format!("lists/{name}"), text)).unwrap();
        let found = good(&source);
        let of = |got: &Got| (got.key.clone(), got.attributes.clone(), got.payload.clone());
        let data = content(1000);
        assert_eq!(
            of(&found[0]),
            ("k0".into(), vec![Some(Float64(0.5)), Some(Int(1)), Some(Bool(true))], data[10..30].to_vec())
        );
        assert_eq!(of(&found[1]), ("k2".into(), vec![Some(Float64(2.0)), Some(Int(1)), None], vec![]));
        assert_eq!(of(&found[2]), ("k1".into(), vec![None, Some(Int(0)), Some(Bool(false))], data[..50].to_vec()));
        assert_eq!(
            source.description().metadata.user.member("class_names"),
            Ok(Some(serde_json::json!(["cat", "dog"])))
        );
        assert_eq!(source.description().metadata.schema.fields()[0].name, "data");
        let parts: Vec<_> =
            source.description().parts.iter().map(|part| (part.path.clone(), part.sample_count)).collect();
        assert_eq!(parts, [(shelf.path("lists/data/a.bin"), Some(2)), (shelf.path("lists/b.bin"), Some(1))]);
    }
}

#[test]
fn rows_of_a_file_stay_in_the_order_of_the_list_and_may_overlap() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(100));
    let source = open(shelf.put("list.csv", "path,offset,length\na.bin,50,10\na.bin,0,100\na.bin,50,10\n")).unwrap();
    assert!(!source.description().is_keyed);
    let found = good(&source);
    assert_eq!(found.iter().map(|got| got.payload.len()).collect::<Vec<_>>(), [10, 100, 10]);
    let in_place: Vec<u64> = read(&source, Layout::InPlace).into_iter().map(|got| got.unwrap().offset).collect();
    assert_eq!(in_place, [50, 0, 50]);
}

#[test]
fn lists_of_several_folders_name_files_of_their_own() {
    let shelf = Shelf::new();
    shelf.put("1/x.bin", b"first");
    shelf.put("2/x.bin", b"second");
    let lists = [
        shelf.put("1/list.csv", "path,offset,length,n\nx.bin,0,5,1\n"),
        shelf.put("2/list.csv", "n,length,offset,path,m\n2.5,6,0,x.bin,7\n"),
        shelf.put("1/more.csv", "path,offset,length\nx.bin,1,2\n"),
    ];
    let source = ListSource::open(&lists).unwrap();
    let found: Vec<_> = good(&source).into_iter().map(|got| (got.payload, got.attributes)).collect();
    let expected = [
        (b"first".to_vec(), vec![Some(Float64(1.0)), None]),
        (b"ir".to_vec(), vec![None, None]),
        (b"second".to_vec(), vec![Some(Float64(2.5)), Some(Int(7))]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_row_outside_its_file_is_bad_and_the_others_are_not() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(100));
    let list = "path,offset,length,key\na.bin,90,10,a\na.bin,90,11,b\na.bin,101,0,c\na.bin,9000000000000000000,1,d\na.bin,100,0,e\n";
    let source = open(shelf.put("list.csv", list)).unwrap();
    let said: Vec<_> =
        read(&source, Layout::Packed).into_iter().filter_map(Result::err).map(|bad| bad.to_string()).collect();
    let (file, list) = (shelf.path("a.bin"), shelf.path("list.csv"));
    let (file, list) = (file.display(), list.display());
    assert_eq!(said[0], format!("{file}: at byte 90: line 3 of {list} names bytes 90..101, the file has 100 bytes"));
    assert_eq!((said.len(), said[1].contains("line 4"), said[2].contains("line 5")), (3, true, true));
}

#[test]
fn a_row_without_a_valid_byte_range_is_refused_with_its_line() {
    assert_eq!(refusal("path,offset\na,0\n"), "no column is called length; a list has path, offset and length");
    let why =
        "line 1: no column is called path; one with the files' paths is expected (there are: file, offset, length)";
    assert_eq!(refusal("file,offset,length\na,0,1\n"), why);
    assert_eq!(refusal("path,offset,length\n"), "it has no rows");
    let expected = "a number of bytes is expected";
    for (cell, quoted) in [("x", "\"x\""), ("-1", "\"-1\""), ("+1", "\"+1\""), ("1.0", "\"1.0\""), ("", "\"\"")] {
        let why = refusal(&format!("path,offset,length\na,0,1\na,{cell},1\n"));
        assert_eq!(why, format!("line 3: its offset is {quoted}; {expected}"));
        let why = refusal(&format!("path,offset,length\na,0,{cell}\n"));
        assert_eq!(why, format!("line 2: its length is {quoted}; {expected}"));
    }
    let why = refusal("path,offset,length\na,99999999999999999999999,1\n");
    assert!(why.contains(expected), "{why}");
    let why = refusal("path,offset,length\na,18446744073709551615,1\n");
    assert_eq!(why, "line 2: no file has 1 bytes at 18446744073709551615");
    assert_eq!(
        refusal("path,offset,length,key\na,0,1,k\na,1,1,\n"),
        "line 3: its key is empty: every row needs one, or leave out the column"
    );
    let why = refusal(&format!("path,offset,length,key\na,0,1,{}\n", "k".repeat(65_536)));
    assert_eq!(why, "line 2: its key has 65536 bytes; keys have 65535 at most");
    let why = refusal("path,offset,length,caption\na,0,1,a dog\n");
    assert!(why.starts_with("column \"caption\" is text;"), "{why}");
    assert!(ListSource::open(&[]).is_err());
}

#[test]
fn a_key_is_the_text_of_its_cell_even_where_it_is_a_number() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(9));
    let list = "path,offset,length,key\na.bin,0,1,007\na.bin,1,1,18446744073709551616\na.bin,2,1,true\n";
    let found = good(&open(shelf.put("list.csv", list)).unwrap());
    assert_eq!(found.iter().map(|got| got.key.as_str()).collect::<Vec<_>>(), ["007", "18446744073709551616", "true"]);
}

#[test]
fn a_table_is_a_list_only_where_the_user_names_the_format() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(9));
    let list = shelf.put("list.csv", "path,offset,length,none\na.bin,0,9,\n");
    assert!(open_source(std::slice::from_ref(&list), &SourceOptions::default()).is_err());
    let options = SourceOptions { from: From::Format(Format::List), ..SourceOptions::default() };
    let source = open_source(std::slice::from_ref(&list), &options).unwrap();
    assert_eq!((source.description().kind, source.description().notes.len()), ("list", 1));
    let mapped = SourceOptions { map: "key=x".parse().unwrap(), ..options };
    assert!(
        open_source(&[list], &mapped).err().unwrap().to_string().contains("the columns of a list have names already")
    );
}

/// A list with other rows is another source, even where its files are the same.
#[test]
fn another_list_has_another_stamp() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(9));
    let stamp = |text: &str| open(shelf.put("list.csv", text)).unwrap().stamp();
    let first = stamp("path,offset,length\na.bin,0,4\na.bin,4,5\n");
    assert_eq!(first, stamp("path,offset,length\na.bin,0,4\na.bin,4,5\n"));
    assert_ne!(first, stamp("path,offset,length\na.bin,4,5\na.bin,0,4\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Against slices of the files; streamed and by blocks.
    #[test]
    fn any_rows_are_slices_of_their_files(
        rows in proptest::collection::vec((0..3_usize, 0..300_000_usize, prop_oneof![0..200_usize, 0..200_000_usize]), 1..60),
    ) {
        let shelf = Shelf::new();
        let data = content(500_000);
        let mut list = "path,offset,length,key\n".to_owned();
        for (number, (file, offset, len)) in rows.iter().enumerate() {
            shelf.put(&format!("{file}.bin"), &data[*file..]);
            list += &format!("{file}.bin,{offset},{len},{number}\n");
        }
        let source = open(shelf.put("list.csv", list)).unwrap();
        let found = read(&source, Layout::Packed);
        prop_assert_eq!(found.len(), rows.len());
        prop_assert!(found == read_blocks(&source, Layout::Packed));
        for got in found.into_iter().map(Result::unwrap) {
            let (file, offset, len) = rows[got.key.parse::<usize>().unwrap()];
            prop_assert!(got.payload == data[file + offset..file + offset + len]);
        }
    }
}
