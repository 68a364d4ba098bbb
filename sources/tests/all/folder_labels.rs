//! A table of labels beside a folder: every column becomes what it should, and a table that does not match the files is
//! refused with the line or the name.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::path::PathBuf;

use grainstore_format::AttributeValue::{Bool, Float64, Int, Uint};
use grainstore_format::{AttributeValue, Schema, to_usize};
use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_sources::{Layout, Source, SourceSample, WHOLE_LEN_MAX};
use proptest::prelude::*;

/// A folder `src` of files whose contents are their paths, and a table beside it.
struct LabelledFolder {
    folder: tempfile::TempDir,
    table: PathBuf,
}

impl LabelledFolder {
    fn of(files: &[&str], name: &str, table: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join("src").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let path = folder.path().join(name);
        fs::write(&path, table).unwrap();
        Self { folder, table: path }
    }

    fn open(&self) -> Result<FolderSource, String> {
        let options = FolderOptions { labels: Some(self.table.clone()), ..FolderOptions::default() };
        FolderSource::open(&self.folder.path().join("src"), &options)
            .map_err(|error| error.to_string().replace(&format!("{}: ", self.table.display()), ""))
    }
}

/// Key, attributes and fields.
type Row = (String, Vec<Option<AttributeValue>>, Vec<Option<String>>);

fn rows(source: &FolderSource) -> Vec<Row> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut samples = source.open(0, 0, Layout::Packed).unwrap();
    let mut rows = Vec::new();
    while let Some(SourceSample::Whole { sample, .. }) = samples.next().unwrap() {
        let field = |range: &Option<std::ops::Range<u64>>| {
            range.clone().map(|range| text(&sample.payload[to_usize(range.start)..to_usize(range.end)]))
        };
        let fields = match &sample.fields[..] {
            [] => vec![Some(text(&sample.payload))],
            ranges => ranges.iter().map(field).collect(),
        };
        rows.push((text(&sample.key), sample.attributes, fields));
    }
    rows
}

fn schema(schema: &Schema) -> String {
    let attributes = schema.attributes().iter().map(|item| format!("{}: {}", item.name, item.kind.name()));
    let fields = schema.fields().iter().map(|item| format!("{}: {}", item.name, item.kind.name()));
    attributes.chain(["|".into()]).chain(fields).collect::<Vec<_>>().join(" ")
}

fn row(key: &str, attributes: &[Option<AttributeValue>], texts: &[Option<&str>]) -> Row {
    let texts = texts.iter().map(|text| text.map(str::to_owned));
    (key.into(), attributes.to_vec(), [Some(key.to_owned())].into_iter().chain(texts).collect())
}

const FILES: [&str; 3] = ["a.jpg", "b.jpg", "sub/c.jpg"];

#[test]
fn every_column_becomes_what_its_cells_are() {
    let table = "file_name,label,score,ok,caption,void\n\
                 sub/c.jpg,3,1e-3,true,\"a cat, \"\"grey\"\"\nasleep\",\n\
                 ./a.jpg,-1,2,False,,\n\
                 b.jpg,,,,007,\n";
    let place = LabelledFolder::of(&FILES, "x.csv", table.as_bytes());
    let source = place.open().unwrap();
    assert_eq!(
        schema(&source.description().metadata.schema),
        "label: int64 score: float64 ok: bool | image: bytes caption: str"
    );
    let expected = [
        row("a.jpg", &[Some(Int(-1)), Some(Float64(2.0)), Some(Bool(false))], &[None]),
        row("b.jpg", &[None, None, None], &[Some("007")]),
        row("sub/c.jpg", &[Some(Int(3)), Some(Float64(0.001)), Some(Bool(true))], &[Some("a cat, \"grey\"\nasleep")]),
    ];
    assert_eq!(rows(&source), expected);
    assert_eq!(source.description().notes, ["column \"void\" of the labels is empty and was ignored".into()]);
}

#[test]
fn the_same_table_may_be_written_in_several_ways() {
    let csv = "path,label,caption\na.jpg,1,x\nb.jpg,2,\nsub/c.jpg,3,z\n";
    let json = "{\"file_name\": \"b.jpg\", \"label\": 2}\n\n\
                {\"label\": 3, \"caption\": \"z\", \"file_name\": \"sub/c.jpg\"}\r\n\
                {\"file_name\": \"a.jpg\", \"label\": 1, \"caption\": \"x\"}";
    let bom = format!("\u{feff}{csv}");
    let ways = [
        ("x.csv", csv.to_owned()),
        ("bom.csv", bom.clone()),
        ("bom.txt", bom),
        ("crlf.csv", csv.replace('\n', "\r\n")),
        ("x.tsv", csv.replace(',', "\t")),
        ("tabs", csv.replace(',', "\t")),
        ("x.jsonl", json.to_owned()),
        ("x.txt", json.to_owned()),
        ("first-column.csv", csv.replace("path", "whatever")),
        ("moved.csv", "label,caption,filename\n1,x,a.jpg\n2,,b.jpg\n3,z,sub/c.jpg".to_owned()),
    ];
    for (name, table) in ways {
        let place = LabelledFolder::of(&FILES, name, table.as_bytes());
        let source = place.open().unwrap();
        let expected = [
            row("a.jpg", &[Some(Int(1))], &[Some("x")]),
            row("b.jpg", &[Some(Int(2))], &[None]),
            row("sub/c.jpg", &[Some(Int(3))], &[Some("z")]),
        ];
        assert_eq!(rows(&source), expected, "{name}");
    }
}

#[test]
fn numbers_that_would_change_are_refused_with_their_line() {
    let refused = |table: &str| LabelledFolder::of(&FILES, "x.csv", table.as_bytes()).open().unwrap_err().to_string();
    let rounded = refused("path,id\na.jpg,0.5\nb.jpg,9007199254740993\nsub/c.jpg,3\n");
    assert!(
        rounded.ends_with(
            "line 3: \"9007199254740993\" of column \"id\", which has fractions, too, is no float64 exactly"
        ),
        "{rounded}"
    );
    let renumbered = refused("path,label\na.jpg,10\nb.jpg,5\nsub/c.jpg,n/a\n");
    let why = "line 4: \"n/a\" of column \"label\" is text, and other cells are numbers, which as names of classes would get \
               other numbers: make all of them numbers, or none";
    assert!(renumbered.ends_with(why), "{renumbered}");
}

#[test]
fn json_keeps_its_types_and_what_has_no_column_type_stays_json() {
    let table = br#"{"path": "a.jpg", "id": "7", "wide": 0.5, "boxes": [[1, 2], [3]], "flag": true, "mixed": 1}
{"path": "b.jpg", "id": "", "wide": 9007199254740992, "boxes": {"b": 1}, "flag": false, "mixed": "x"}
{"path": "sub/c.jpg", "id": null}"#;
    let place = LabelledFolder::of(&FILES, "x.jsonl", table);
    let source = place.open().unwrap();
    let types = "wide: float64 flag: bool | image: bytes id: str boxes: str mixed: str";
    assert_eq!(schema(&source.description().metadata.schema), types);
    let expected = [
        row("a.jpg", &[Some(Float64(0.5)), Some(Bool(true))], &[Some("7"), Some("[[1,2],[3]]"), Some("1")]),
        row(
            "b.jpg",
            &[Some(Float64(9_007_199_254_740_992.0)), Some(Bool(false))],
            &[Some(""), Some("{\"b\":1}"), Some("x")],
        ),
        row("sub/c.jpg", &[None, None], &[None, None, None]),
    ];
    assert_eq!(rows(&source), expected);
}

#[test]
fn integers_too_large_for_a_sign_have_none() {
    let table = "path,id\na.jpg,18446744073709551615\nb.jpg,0\nsub/c.jpg,\n";
    let place = LabelledFolder::of(&FILES, "x.csv", table.as_bytes());
    let source = place.open().unwrap();
    assert_eq!(schema(&source.description().metadata.schema), "id: uint64 | image: bytes");
    let ids: Vec<_> = rows(&source).into_iter().map(|(_, attributes, _)| attributes).collect();
    assert_eq!(ids, [[Some(Uint(u64::MAX))], [Some(Uint(0))], [None]]);
}

#[test]
fn labels_that_are_names_are_numbered_and_replace_those_of_folders() {
    let table = "path,label\nx/1,dog\nx/2,\ny/3,cat\n";
    let place = LabelledFolder::of(&["x/1", "x/2", "y/3"], "x.csv", table.as_bytes());
    let source = place.open().unwrap();
    assert_eq!(source.description().metadata.user.member("class_names"), Ok(Some(serde_json::json!(["cat", "dog"]))));
    let labels: Vec<_> = rows(&source).into_iter().map(|(_, attributes, _)| attributes).collect();
    assert_eq!(labels, [[Some(Int(1))], [None], [Some(Int(0))]]);
    assert_eq!(source.class_count(), None);
    assert!(
        source.description().notes[0].text.contains("not from the folders' names"),
        "{:?}",
        source.description().notes
    );
}

#[test]
fn labels_of_folders_are_used_where_the_table_has_other_columns() {
    let place = LabelledFolder::of(&["x/1", "y/2"], "t.csv", b"path,width\nx/1,640\ny/2,480\n");
    let source = place.open().unwrap();
    assert_eq!(schema(&source.description().metadata.schema), "label: int64 width: int64 | data: bytes");
    let attributes: Vec<_> = rows(&source).into_iter().map(|(_, attributes, _)| attributes).collect();
    assert_eq!(attributes, [[Some(Int(0)), Some(Int(640))], [Some(Int(1)), Some(Int(480))]]);
}

#[test]
fn a_table_inside_the_folder_is_not_a_sample() {
    let place = LabelledFolder::of(&["a.jpg", "b.jpg"], "src/metadata.csv", b"file_name,text\na.jpg,x\nb.jpg,y\n");
    let source = place.open().unwrap();
    assert_eq!(rows(&source), [row("a.jpg", &[], &[Some("x")]), row("b.jpg", &[], &[Some("y")])]);
    assert_eq!(source.description().parts[0].sample_count, Some(2));
}

#[test]
fn a_table_that_does_not_match_is_refused_with_the_line() {
    let ok = "a.jpg,1\nb.jpg,2\nsub/c.jpg,3\n";
    let cases: &[(&str, &[u8], &str)] = &[
        ("x.csv", b"path,label\na.jpg,1\nsub/c.jpg,3\n", "1 files have no row, the first of them \"b.jpg\"; each row"),
        (
            "x.csv",
            b"path,label\na.jpg,1\nA.jpg,1\nb.jpg,2\nsub/c.jpg,3\nz,1\n",
            "2 rows have no file, the first of them \"A.jpg\"",
        ),
        ("x.csv", ok.as_bytes(), "1 files have no row, the first of them \"a.jpg\""),
        ("x.csv", b"path,label\na.jpg,1\na.jpg,1\nb.jpg,2\nsub/c.jpg,3\n", "\"a.jpg\" has two rows"),
        ("x.csv", b"path,label\na.jpg,1\nb.jpg\n", "line 3: 1 cells, 2 expected"),
        ("x.csv", b"path,label\na.jpg,1,2\n", "line 2: 3 cells, 2 expected"),
        (
            "x.csv",
            b"path,label\na.jpg,9223372036854775808\nb.jpg,-1\nsub/c.jpg,1\n",
            "line 2: \"9223372036854775808\" of column \"label\" does not fit an int64",
        ),
        ("x.csv", b"path,text\na.jpg,\"x\ny\"\nb.jpg,\xff\n", "line 4: \"\\xff\" is not UTF-8"),
        ("x.csv", b"path,\xff\na.jpg,x\n", "line 1: \"\\xff\" is not UTF-8"),
        ("x.csv", b"path,a,a\n", "line 1: two columns are named \"a\""),
        ("x.csv", b",path\n0,a.jpg\n", "line 1: a column has no name"),
        ("x.csv", b"path,label\n,1\n", "line 2: the row names no file"),
        ("x.csv", b"path,label\n", "it has no rows"),
        ("x.csv", b"", "it is empty"),
        ("x.csv", b"\xef\xbb\xbf\r\n", "it is empty"),
        ("x.csv", b"\x1f\x8b\x08\x00", "it is compressed with gzip"),
        ("x.csv", b"PAR1\0\0", "it is not text"),
        ("x.json", b"[{\"path\": \"a.jpg\"}]", "it is one JSON list"),
        ("x.jsonl", b"{\"path\": \"a.jpg\"}\n{\"path\": \n", "line 2: one JSON object is expected"),
        ("x.jsonl", b"{\"path\": \"a.jpg\"} {}\n", "line 1: one JSON object is expected: trailing"),
        ("x.jsonl", b"{\"path\": \"a.jpg\"}\n[1]\n", "line 2: one JSON object is expected"),
        ("x.jsonl", b"{\"path\": \"a.jpg\"}\n{\"label\": 1}\n", "line 2: \"path\" is not a text"),
        ("x.jsonl", b"{\"path\": 1}\n", "line 1: \"path\" is not a text"),
        ("x.jsonl", b"{}\n", "line 1: the row names no file"),
        ("x.jsonl", b"{\"path\": \"a.jpg\", \"x\": 1, \"x\": 2}\n", "line 1: \"x\" is there twice"),
        ("x.jsonl", b"{\"path\": \"a\xff\"}\n", "line 1: one JSON object is expected"),
        ("x.csv", b"path,image\na.jpg,x\nb.jpg,y\nsub/c.jpg,z\n", "name \"image\" is used twice"),
    ];
    for (name, table, expected) in cases {
        let error = LabelledFolder::of(&FILES, name, table).open().unwrap_err();
        assert!(error.contains(expected), "{}: {error}", String::from_utf8_lossy(table));
    }
    let deep = [b"{\"path\": \"a.jpg\", \"x\": ".as_slice(), &[b'['; 100_000]].concat();
    assert!(LabelledFolder::of(&FILES, "x.jsonl", &deep).open().unwrap_err().contains("line 1"));
    let missing = LabelledFolder { table: "/nowhere/labels.csv".into(), ..LabelledFolder::of(&FILES, "x.csv", b"") };
    assert!(missing.open().unwrap_err().starts_with("cannot be read"));
}

#[test]
fn a_long_file_is_streamed_with_its_text_after_it() {
    let place = LabelledFolder::of(&["big"], "x.csv", b"path,text\nbig,hello\n");
    fs::File::create(place.folder.path().join("src/big")).unwrap().set_len(WHOLE_LEN_MAX).unwrap();
    let source = place.open().unwrap();
    let mut samples = source.open(0, 0, Layout::Packed).unwrap();
    let Some(SourceSample::Long { sample, .. }) = samples.next().unwrap() else { unreachable!("a long sample") };
    assert_eq!(sample.len, WHOLE_LEN_MAX + 5);
    assert_eq!(sample.fields, [Some(0..WHOLE_LEN_MAX), Some(WHOLE_LEN_MAX..WHOLE_LEN_MAX + 5)]);
    let mut payload = Vec::new();
    samples.payload().read_to_end(&mut payload).unwrap();
    assert_eq!(payload.len() as u64, sample.len);
    assert!(payload.ends_with(b"\0hello"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Any texts that are written as CSV are read back unchanged.
    #[test]
    fn texts_come_back_as_they_were(texts in proptest::collection::vec("[a-c,\"\n\r\té ]{0,12}", 1..12)) {
        let names: Vec<String> = (0..texts.len()).map(|number| format!("{:02}", number * 7 % 97)).collect();
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let lines = names.iter().zip(&texts).map(|(name, text)| format!("{},{name},x\n", quoted(text)));
        let table = ["t,name,always\n".to_owned()].into_iter().chain(lines).collect::<String>();
        let files: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = LabelledFolder::of(&files, "x.csv", table.as_bytes());
        let source = place.open().unwrap();
        let has_texts = texts.iter().any(|text| !text.is_empty());
        let mut expected: Vec<Row> = names.iter().zip(&texts).map(|(name, text)| {
            let text = Some(text.as_str()).filter(|text| !text.is_empty());
            let both = [text, Some("x")];
            row(name, &[], if has_texts { &both } else { &both[1..] })
        }).collect();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(rows(&source), expected);
    }
}
