//! Tar archives as a source: what their members become, wherever reading begins.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::io::Write;

use grainstore_format::AttributeValue::{Bool, Float64, Int};
use grainstore_format::to_usize;
use grainstore_sources::tar::{TarOptions, TarSource, recognises};
use grainstore_sources::{BlockBuilder, Layout, Source};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::tar_support::{archive, file, good, mapped, raw_member, read, read_blocks, read_tar};

fn open(bytes: &[u8], options: &TarOptions) -> (tempfile::TempDir, TarSource) {
    let (folder, path) = file(bytes);
    (folder, TarSource::open(&[path], options).unwrap())
}

/// Names and types of attributes, and names of fields.
fn schema(source: &dyn Source) -> (Vec<String>, Vec<String>) {
    let schema = &source.description().metadata.schema;
    let attributes = schema.attributes().iter().map(|one| format!("{}:{}", one.name, one.kind.name())).collect();
    (attributes, schema.fields().iter().map(|field| field.name.clone()).collect())
}

fn schema_of(members: &[(&str, &[u8])]) -> (Vec<String>, Vec<String>) {
    schema(&open(&archive(members), &TarOptions::default()).1)
}

fn pair(attributes: &[&str], fields: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    (owned(attributes), owned(fields))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

#[test]
fn what_systems_keep_beside_files_is_no_sample() {
    let bytes_of = archive(&[
        ("._a", b"of macOS"),
        ("a/.DS_Store", b"of Finder"),
        ("a/._1.jpg", b"of macOS"),
        ("a/1.jpg", b"one"),
        ("a/._1.cls", b"of macOS"),
        ("a/1.cls", b"7"),
        ("__MACOSX/a/1.jpg", b"of macOS"),
    ]);
    let (_folder, source) = open(&bytes_of, &TarOptions::default());
    assert_eq!(schema(&source), pair(&["label:int64"], &["jpg"]));
    let all: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*one.key, &one.attributes[..], one.parts()), ("a/1", &[Some(Int(7))][..], vec![bytes("one")]));
}

#[test]
fn members_of_one_stem_are_a_sample() {
    let bytes_of = archive(&[
        ("./a/1.cls", b"7"),
        ("a/1.JPG", b"one"),
        ("a/1.seg.png", b"mask"),
        ("a/2.jpg", b"two"),
        ("a/2.cls", b" 3\n"),
    ]);
    let (_folder, source) = open(&bytes_of, &TarOptions::default());
    assert_eq!(schema(&source), pair(&["label:int64"], &["jpg", "seg.png"]));
    let all: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
    assert_eq!(all[0].key, "a/1");
    assert_eq!((&all[0].attributes[..], all[0].parts()), (&[Some(Int(7))][..], vec![bytes("one"), bytes("mask")]));
    assert_eq!((&all[1].attributes[..], all[1].parts()), (&[Some(Int(3))][..], vec![bytes("two"), None]));
    assert_eq!(all.len(), 2);
}

#[test]
fn scalars_of_documents_are_attributes_and_the_rest_keeps_the_document() {
    let scalars: &[(&str, &[u8])] =
        &[("1.jpg", b"x"), ("1.json", b"{\"w\": 1, \"ok\": true}"), ("2.jpg", b"y"), ("2.json", b"{\"s\": 0.5}")];
    assert_eq!(schema_of(scalars), pair(&["ok:bool", "s:float64", "w:int64"], &["jpg"]));
    let all = good(&archive(scalars));
    assert_eq!(all[0].attributes, [Some(Bool(true)), None, Some(Int(1))]);
    assert_eq!(all[1].attributes, [None, Some(Float64(0.5)), None]);
    let nested: &[(&str, &[u8])] = &[("1.jpg", b"x"), ("1.json", b"{\"w\": 1, \"text\": \"a\"}")];
    assert_eq!(schema_of(nested), pair(&["w:int64"], &["jpg", "json"]));
    assert_eq!(good(&archive(nested))[0].parts()[1], bytes("{\"w\": 1, \"text\": \"a\"}"));
}

#[test]
fn labels_that_are_not_integers_and_lone_documents_are_fields() {
    let named = archive(&[("1.cls", b"cat"), ("1.jpg", b"x")]);
    let source = open(&named, &TarOptions::default()).1;
    assert_eq!(schema(&source), pair(&[], &["cls", "jpg"]));
    let notes: Vec<_> = source.description().notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("members .cls are not whole numbers")), "{notes:?}");
    assert_eq!(schema_of(&[("1.cls", b"1"), ("2.cls", b"2")]), pair(&[], &["cls"]));
    assert_eq!(schema_of(&[("1.json", b"{\"a\":1}")]), pair(&["a:int64"], &["json"]));
    assert_eq!(
        schema_of(&[("1.json", b"{\"label\":1}"), ("1.cls", b"1"), ("1.txt", b"")]),
        pair(&["label:int64"], &["json", "txt"])
    );
}

#[test]
fn archives_that_are_not_webdatasets_have_one_field() {
    let one = |members: &[(&str, &[u8])]| {
        let (_, fields) = schema_of(members);
        (fields.join(","), good(&archive(members)).into_iter().map(|got| got.key).collect::<Vec<_>>().join(" "))
    };
    let expect = |field: &str, keys: &str| (field.to_owned(), keys.to_owned());
    assert_eq!(one(&[("c/1.jpg", b"1"), ("d/2.jpg", b"2")]), expect("jpg", "c/1 d/2"));
    assert_eq!(one(&[("c/1.jpg", b"1"), ("d/2.PNG", b"2")]), expect("image", "c/1.jpg d/2.PNG"));
    assert_eq!(one(&[("c/1.jpg", b"1"), ("d/2.txt", b"2")]), expect("data", "c/1.jpg d/2.txt"));
    assert_eq!(one(&[("README", b"1"), ("d/2.txt", b"2"), (".x", b"")]), expect("data", "README d/2.txt .x"));
    let (_folder, source) = open(&archive(&[("c/1.jpg", b"1"), ("d/2.png", b"2")]), &TarOptions::default());
    assert!(
        source.description().notes.iter().any(|note| note.text.contains("CLASS/FILE")),
        "{:?}",
        source.description().notes
    );
}

#[test]
fn names_with_numbers_after_dots_are_not_a_thousand_fields() {
    let names: Vec<String> = (0..100).map(|i| format!("frame.{i:03}.jpg")).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    assert_eq!(schema_of(&members), pair(&[], &["image"]));
    assert_eq!(good(&archive(&members)).len(), 100);
}

#[test]
fn one_of_several_extensions_beside_a_label_is_one_field() {
    let members: &[(&str, &[u8])] = &[("1.cls", b"1"), ("1.jpg", b"x"), ("2.cls", b"2"), ("2.png", b"y")];
    assert_eq!(schema_of(members), pair(&["label:int64"], &["image"]));
    let all = good(&archive(members));
    assert_eq!(
        (all[1].key.as_str(), &all[1].payload[..], &all[1].attributes[..]),
        ("2", &b"y"[..], &[Some(Int(2))][..])
    );
}

#[test]
fn a_mapping_names_fields_and_ignores_the_rest() {
    let members = archive(&[
        ("1.cls", b"5"),
        ("1.jpeg", b"x"),
        ("1.txt", b"t"),
        ("2.png", b"y"),
        ("2.txt", b"u"),
        ("3.txt", b"v"),
        ("README", b""),
    ]);
    let options = mapped("image=jpeg;PNG,label=cls,caption=txt");
    let (_folder, source) = open(&members, &options);
    assert_eq!(schema(&source), pair(&["label:int64"], &["image", "caption"]));
    let all: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
    assert_eq!(all[1].parts(), [bytes("y"), bytes("u")]);
    assert_eq!((&all[2].attributes[0], all[2].parts()), (&None, vec![None, bytes("v")]));
    assert_eq!(all.len(), 3);
    let refused = |map: &str| TarSource::open(&[file(&members).1], &mapped(map)).unwrap_err().to_string();
    for map in ["key=txt,a=jpg", "a=jpg,b=jpg"] {
        let (_folder, path) = file(&members);
        assert!(TarSource::open(&[path], &mapped(map)).is_err(), "{map}");
    }
    assert!(refused("a=b").contains("x.tar"));
}

#[test]
fn the_bytes_in_place_are_those_of_the_file() {
    let whole = archive(&[("1.cls", b"1"), ("1.jpg", &[7; 700]), ("1.txt", b"t"), ("2.txt", b"u"), ("2.cls", b"2")]);
    let (_folder, source) = open(&whole, &TarOptions::default());
    let all: Vec<_> = read(&source, Layout::InPlace).into_iter().map(Result::unwrap).collect();
    for got in &all {
        let at = to_usize(got.offset);
        assert_eq!(whole[at..at + got.payload.len()], got.payload);
    }
    assert_eq!((all[0].offset, all[0].payload.len()), (1536, 1024 + 512 + 1));
    assert_eq!(all[0].parts(), [Some(vec![7; 700]), bytes("t")]);
    assert_eq!(all[1].parts(), [None, bytes("u")]);
    assert_eq!(source.description().not_adoptable.clone(), None);
}

#[test]
fn compressed_archives_are_recognised_by_content_and_streamed() {
    let plain = archive(&[("1.cls", b"1"), ("1.jpg", &[7; 700]), ("2.cls", b"2"), ("2.jpg", b"y")]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    for compressed in [gz.finish().unwrap(), zstd::encode_all(&plain[..], 1).unwrap()] {
        let (_folder, source) = open(&compressed, &TarOptions::default());
        assert_eq!(source.blocks(0), Ok(None));
        assert!(source.description().not_adoptable.is_some());
        let all: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
        assert_eq!(all, good(&plain));
    }
}

#[test]
fn many_archives_have_the_schema_of_the_first_that_holds_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let shards = [vec![0; 1024], archive(&[("1.jpg", b"x")]), archive(&[("2.jpg", b"y")])];
    let paths: Vec<_> = (0..3).map(|i| folder.path().join(format!("{i}.tar"))).collect();
    for (path, shard) in paths.iter().zip(&shards) {
        fs::write(path, shard).unwrap();
    }
    let source = TarSource::open(&paths, &TarOptions::default()).unwrap();
    let keys: Vec<_> = read(&source, Layout::Packed).into_iter().map(|got| got.unwrap().key).collect();
    assert_eq!(keys, ["1", "2"]);
    assert_eq!(source.description().parts.len(), 3);
}

#[test]
fn folders_labels_and_members_about_the_archive_are_ignored() {
    let mut whole = raw_member(b"./", b'5', *b"00000000000\0", b"");
    whole.extend(raw_member(b"label", b'V', *b"00000000000\0", b""));
    whole.extend(raw_member(b"pax_global_header", b'g', *b"00000000016\0", b"14 comment=abc\n"));
    whole.extend(raw_member(b"old/", b'0', *b"00000000000\0", b""));
    whole.extend(raw_member(b"__index__.x/__a__", b'0', *b"00000000000\0", b""));
    whole.extend(archive(&[("__meta__/a.jpg", b"m"), ("a.jpg", b"x")]));
    assert_eq!(good(&whole).iter().map(|got| got.key.as_str()).collect::<Vec<_>>(), ["__index__.x/__a__", "a.jpg"]);
}

#[test]
fn a_sample_over_64_mib_is_streamed_wherever_its_members_are() {
    let big = vec![9; (64 << 20) + 1];
    let whole = archive(&[
        ("1.cls", b"1"),
        ("1.jpg", &big),
        ("1.png", b"mask"),
        ("2.cls", b"2"),
        ("2.jpg", b"y"),
        ("2.png", b""),
    ]);
    let (_folder, source) = open(&whole, &TarOptions::default());
    let all: Vec<_> = read_blocks(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
    assert!(all[0].is_long && !all[1].is_long);
    assert_eq!(all[0].attributes, [Some(Int(1))]);
    assert_eq!(all[0].parts(), [Some(big.clone()), bytes("mask")]);
    let place = &read(&source, Layout::InPlace)[0];
    let place = place.as_ref().unwrap();
    assert!(place.is_long);
    assert_eq!(place.parts(), [Some(big), bytes("mask")]);
}

#[test]
fn archives_are_recognised_by_their_first_header() {
    let whole = archive(&[("1.jpg", b"x")]);
    assert!(recognises(&whole) && recognises(&whole[..512]));
    assert!(!recognises(&whole[..511]) && !recognises(&whole[512..]) && !recognises(&[0; 1024]) && !recognises(b""));
    assert!(!recognises(&[b' '; 1024]) && !recognises(&[b'0'; 1024]));
}

/// Files that GNU tar, Python's tarfile and webdataset wrote.
mod others {
    use super::*;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tar/");

    fn source(name: &str) -> TarSource {
        TarSource::open(&[format!("{FIXTURES}{name}").into()], &TarOptions::default()).unwrap()
    }

    #[test]
    fn a_shard_of_webdataset_has_its_labels_scalars_and_members() {
        for (name, is_compressed) in [("webdataset.tar", false), ("webdataset.tar.gz", true)] {
            let source = source(name);
            assert_eq!(
                schema(&source),
                pair(&["label:int64", "ok:bool", "score:float64", "w:int64"], &["jpg", "npy", "txt"])
            );
            let all: Vec<_> = read(&source, Layout::Packed).into_iter().map(Result::unwrap).collect();
            assert_eq!(all.len(), 3);
            for (i, got) in all.iter().enumerate() {
                assert_eq!(got.key, format!("d/s{i:03}"));
                let number = i as i64;
                let values = [Int(number * 10), Bool(i % 2 == 0), Float64(i as f64 + 0.5), Int(100 + number)];
                assert_eq!(got.attributes, values.map(Some));
                let parts = got.parts();
                assert_eq!(parts[0], Some(vec![u8::try_from(i).unwrap(); 100 * (i + 1)]));
                assert_eq!(parts[1].as_ref().unwrap()[..6], *b"\x93NUMPY");
                assert_eq!(parts[2], bytes(&format!("caption é {i}")));
            }
            assert_eq!(source.blocks(0).unwrap().is_none(), is_compressed);
        }
    }

    /// Names of 90 to 300 bytes in steps of 15: `d/d/.../xxx.bin`, the content is the name's length.
    #[test]
    fn long_names_in_every_variant_of_tar_are_whole() {
        for name in ["gnu_tar.tar.gz", "tarfile_gnu.tar.gz", "tarfile_pax.tar.gz", "tarfile_ustar.tar.gz"] {
            let all: Vec<_> = read(&source(name), Layout::Packed).into_iter().map(Result::unwrap).collect();
            let max = if name.contains("ustar") { 240 } else { 300 };
            let lens: Vec<usize> = all.iter().map(|got| got.key.len() + ".bin".len()).collect();
            assert_eq!(lens, (90..=max).step_by(15).collect::<Vec<_>>(), "{name}");
            for got in &all {
                assert_eq!(got.payload, (got.key.len() + 4).to_string().as_bytes(), "{name}");
                assert!(got.key.starts_with("folder/") && got.key.ends_with('x'), "{name} {}", got.key);
            }
        }
    }
}

/// Names, or extensions, and contents.
type Members = Vec<(String, Vec<u8>)>;

/// Members of a few stems and extensions, so that they meet.
fn members() -> impl Strategy<Value = Members> {
    let stem = prop::sample::select(vec!["a", "b", "c/a", "c/b", "d", "e"]);
    let extension = prop::sample::select(vec![".jpg", ".png", ".cls", ".json", ".txt", ""]);
    let content = prop_oneof![
        Just(b"7".to_vec()),
        Just(b"{\"a\": 1}".to_vec()),
        Just(b"{\"a\": 1.5, \"b\": \"x\"}".to_vec()),
        vec(any::<u8>(), 0..1500),
        Just(vec![1; 70_000]),
    ];
    let long = prop_oneof![9 => Just(String::new()), 1 => Just("l".repeat(150))];
    let member = (stem, extension, content, long);
    let name = |(stem, extension, content, long)| (format!("{long}{stem}{extension}"), content);
    vec(member.prop_map(name), 1..40)
}

fn packed(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    archive(&members.iter().map(|(name, content)| (name.as_str(), &content[..])).collect::<Vec<_>>())
}

/// Blocks and streaming agree in both layouts, and payloads in place are at their offsets.
fn check_agreement(bytes: &[u8]) {
    let (_folder, path) = file(bytes);
    let Ok(source) = TarSource::open(&[path], &TarOptions::default()) else { return };
    for layout in [Layout::Packed, Layout::InPlace] {
        let streamed = read(&source, layout);
        assert_eq!(read_blocks(&source, layout), streamed);
        for got in streamed.iter().flatten().filter(|_| layout == Layout::InPlace) {
            let at = to_usize(got.offset);
            assert_eq!(bytes[at..at + got.payload.len()], got.payload);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_in_any_order_give_what_streaming_gives(members in members()) {
        check_agreement(&packed(&members));
    }

    #[test]
    fn damaged_archives_give_the_same_reasons_by_blocks(
        members in members(),
        cut in any::<prop::sample::Index>(),
        flips in vec((any::<prop::sample::Index>(), 1_u8..), 0..4),
    ) {
        let mut bytes = packed(&members);
        for (at, mask) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        check_agreement(&bytes);
    }

    /// One by one, as webdataset's `group_by_keys` does it.
    #[test]
    fn samples_are_those_of_a_naive_reader(members in members()) {
        let members: Vec<_> = members.into_iter().filter(|(name, _)| name.contains('.')).collect();
        let mut expected: Vec<(String, Members)> = Vec::new();
        for (name, content) in &members {
            let (stem, extension) = name.split_once('.').unwrap();
            if expected.last().is_none_or(|(last, _)| last != stem) {
                expected.push((stem.into(), vec![]));
            }
            expected.last_mut().unwrap().1.push((extension.into(), content.clone()));
        }
        let map = mapped("jpg=jpg,png=png,txt=txt,json=json,data=cls");
        let Ok(all) = read_tar(&packed(&members), &map) else { return Ok(()) };
        prop_assert_eq!(all.len(), expected.len());
        for (got, (stem, parts)) in all.iter().zip(&expected) {
            let has_twice = parts.iter().enumerate().any(|(i, (name, _))| parts[..i].iter().any(|(one, _)| one == name));
            prop_assert_eq!(got.is_err(), has_twice && got.is_err());
            let Ok(got) = got else { continue };
            prop_assert_eq!(&got.key, stem);
            for (extension, content) in ["jpg", "png", "txt", "json"].iter().zip(got.parts()) {
                let there = parts.iter().find(|(name, _)| name == extension).map(|(_, content)| content.clone());
                prop_assert_eq!(content, there);
            }
        }
    }
}

#[test]
fn a_large_member_is_a_block_of_its_own() {
    let large = vec![1; to_usize(BlockBuilder::ALONE_LEN)];
    let bytes = archive(&[("1.jpg", b"x"), ("2.jpg", &large), ("3.jpg", b"y"), ("4.jpg", b"z")]);
    let (_folder, source) = open(&bytes, &TarOptions::default());
    let Some(grainstore_sources::Blocks::Runs(blocks)) = source.blocks(0).unwrap() else { panic!("no blocks") };
    let found: Vec<_> = blocks.iter().map(|block| (block.position, block.sample_count)).collect();
    assert_eq!(found, [(0, 1), (1024, 1), (1024 + 512 + 65536, 2)]);
}

/// The header holds the first 100 bytes of a long name, and those may end like a folder's.
#[test]
fn a_file_whose_long_name_is_cut_after_a_slash_is_not_a_folder() {
    let names = [98, 99, 100, 101].map(|len| format!("{}/{}.bin", "f".repeat(len), "x".repeat(120)));
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"content".as_slice())).collect();
    let keys: Vec<String> = good(&archive(&members)).into_iter().map(|got| got.key).collect();
    assert_eq!(keys, names.map(|name| name.trim_end_matches(".bin").to_owned()));
}
