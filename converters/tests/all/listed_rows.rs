//! The rows of a list become samples of a dataset, in any order; bad rows are skipped, and nothing is replaced.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::path::PathBuf;

use grainstore_converters::{ConvertError, ConvertOptions, NoEvents, OnBad, Order, convert};
use grainstore_sources::SourceError;
use grainstore_sources::list::ListSource;
use proptest::prelude::*;

use crate::stored::{self, Shelf, in_order, pack, stored};

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251).try_into().unwrap()).collect()
}

fn open(list: PathBuf) -> Result<ListSource, SourceError> {
    ListSource::open(&[list])
}

#[test]
fn a_row_outside_its_file_stops_the_conversion_or_is_skipped() {
    let shelf = Shelf::new();
    shelf.put("a.bin", content(100));
    let list = "path,offset,length,key\na.bin,90,10,a\na.bin,90,11,b\na.bin,101,0,c\na.bin,9000000000000000000,1,d\na.bin,100,0,e\n";
    let source = open(shelf.put("list.csv", list)).unwrap();
    let dataset = shelf.path("x.grain");
    assert!(pack(&source, &dataset).unwrap_err().is_skippable());
    let skipping = ConvertOptions { on_bad: OnBad::Skip, ..in_order() };
    assert_eq!(convert(&source, &dataset, &skipping, &NoEvents).unwrap().skipped.len(), 3);
    assert_eq!(stored::keys(&dataset), ["a", "e"]);
}

#[test]
fn the_list_and_its_files_are_not_replaced_by_the_dataset() {
    let shelf = Shelf::new();
    shelf.put("x/a.bin", content(9));
    let list = shelf.put("list.csv", "path,offset,length\nx/a.bin,0,9\n");
    let source = open(list).unwrap();
    let overwriting = ConvertOptions { overwrite: true, ..in_order() };
    let error = convert(&source, &shelf.path("x"), &overwriting, &NoEvents).unwrap_err();
    assert!(matches!(error, ConvertError::SourceInsideDestination { .. }), "{error}");
    assert_eq!(fs::read(shelf.path("x/a.bin")).unwrap(), content(9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_rows_are_packed_as_slices_of_their_files(
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
        let dataset = shelf.path("x.grain");
        let shuffled = ConvertOptions { order: Order::Shuffled { seed: 4 }, ..in_order() };
        convert(&source, &dataset, &shuffled, &NoEvents).unwrap();
        for sample in stored(&dataset) {
            let (file, offset, len) = rows[sample.key.unwrap().parse::<usize>().unwrap()];
            prop_assert!(sample.fields == [Some(data[file + offset..file + offset + len].to_vec())]);
        }
    }
}
