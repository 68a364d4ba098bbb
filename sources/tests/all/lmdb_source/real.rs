//! Files of the real library.

use grainstore_format::AttributeValue;
use grainstore_sources::lmdb::{LmdbOptions, LmdbSource, recognises};
use grainstore_sources::{Layout, NotPacked, Source};

use super::{LmdbFolder, all, check_blocks, check_in_place, fixture, keys_and_payloads, mapped, raw, stream};

fn value(i: usize) -> Vec<u8> {
    (0..[3, 0, 40, 5000, 300][i % 5]).map(|j| ((i * 7 + j) % 251) as u8).collect()
}

/// `plain`: `key000` to `key038` in three overlapping commits, then every fourth of the first 36 deleted.
#[test]
fn values_of_all_lengths_are_read_after_many_commits_and_deletes() {
    let place = LmdbFolder::fixture("plain");
    let source = place.open(&LmdbOptions::default()).unwrap();
    let expected = (0..39).filter(|i| *i >= 36 || i % 4 != 0);
    let expected: Vec<_> = expected.map(|i| (format!("key{i:03}").into_bytes(), value(i))).collect();
    assert_eq!(keys_and_payloads(&source), expected);
    assert_eq!(source.description().metadata.schema.fields()[0].name, "data");
    check_blocks(&source);
    check_in_place(&place, &source);
    let by_folder = LmdbSource::open(&[place.folder()], &LmdbOptions::default()).unwrap();
    assert_eq!(keys_and_payloads(&by_folder), expected);
}

#[test]
fn several_environments_follow_each_other() {
    let place = LmdbFolder::fixture("plain");
    let source = LmdbSource::open(&[place.file(), place.file()], &LmdbOptions::default()).unwrap();
    assert_eq!((source.description().parts.len(), all(&source).len()), (2, 60));
}

#[test]
fn excluded_keys_are_not_samples() {
    let place = LmdbFolder::fixture("plain");
    let options = LmdbOptions { exclude: vec![b"key001".to_vec(), b"absent".to_vec()], ..mapped("x=value") };
    let source = place.open(&options).unwrap();
    assert_eq!(all(&source)[0].key, b"key002");
    assert_eq!((all(&source).len(), source.description().metadata.schema.fields()[0].name.as_str()), (29, "x"));
    check_blocks(&source);
}

/// `named`: databases `train` (a = 1, b = 2) and `val` (a = 3), and nothing else.
#[test]
fn named_databases_are_asked_for_and_read() {
    let place = LmdbFolder::fixture("named");
    let why = place.refusal(&LmdbOptions::default());
    assert_eq!(why, "holds no values itself, only named databases (train, val)");
    let named = |name: &str| LmdbOptions { database: Some(name.into()), ..LmdbOptions::default() };
    let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(keys_and_payloads(&place.open(&named("train")).unwrap()), [pair(b"a", b"1"), pair(b"b", b"2")]);
    assert_eq!(keys_and_payloads(&place.open(&named("val")).unwrap()), [pair(b"a", b"3")]);
    assert_eq!(place.refusal(&named("test")), "has no named database \"test\"");
}

/// `dupsort`: `plain` = value in the main database, and `d` with several values for a key.
#[test]
fn several_values_for_a_key_are_refused_and_other_databases_are_read() {
    let place = LmdbFolder::fixture("dupsort");
    let source = place.open(&LmdbOptions::default()).unwrap();
    assert_eq!(keys_and_payloads(&source), [(b"plain".to_vec(), b"value".to_vec())]);
    assert!(source.description().notes[0].text.ends_with("holds named databases too, which are not read: d"));
    let named = LmdbOptions { database: Some("d".into()), ..LmdbOptions::default() };
    assert!(place.refusal(&named).starts_with("it has several values for one key (MDB_DUPSORT)"));
}

/// `datum`: 3x2x2 bytes in a leaf page, 3x60x50 bytes on overflow pages, and a picture; labels -1, 0, 1.
#[test]
fn a_datum_becomes_a_picture_and_attributes() {
    let place = LmdbFolder::fixture("datum");
    let source = place.open(&LmdbOptions::default()).unwrap();
    let names: Vec<&str> =
        source.description().metadata.schema.attributes().iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["label", "channels", "height", "width", "encoded"]);
    assert_eq!(source.description().metadata.schema.fields()[0].name, "image");
    let samples = all(&source);
    assert_eq!(samples[0].payload, (0..12).collect::<Vec<u8>>());
    assert_eq!(samples[1].payload, (0..9000).map(|i| i as u8).collect::<Vec<u8>>());
    assert_eq!(samples[2].payload, b"\xff\xd8\xff not really");
    let int = |number| Some(AttributeValue::Int(number));
    assert_eq!(samples[0].attributes, [int(-1), int(3), int(2), int(2), None]);
    assert_eq!(samples[2].attributes, [int(1), int(0), int(0), int(0), Some(AttributeValue::Bool(true))]);
    check_blocks(&source);
    check_in_place(&place, &source);
    assert_eq!(source.description().not_adoptable.clone(), None);
}

#[test]
fn a_mapping_chooses_from_a_datum_and_raw_keeps_it_whole() {
    let place = LmdbFolder::fixture("datum");
    let source = place.open(&mapped("class=label,pixels=data")).unwrap();
    assert_eq!(all(&source)[1].attributes, [Some(AttributeValue::Int(0))]);
    assert_eq!(source.description().metadata.schema.fields()[0].name, "pixels");
    assert!(place.refusal(&mapped("x=picture")).starts_with("a Datum has no \"picture\""));
    let whole = all(&place.open(&raw()).unwrap());
    assert_eq!(whole[0].payload[..8], [8, 3, 16, 2, 24, 2, 34, 12]);
}

/// `ocr`: images 1 to 5 of 700 bytes more each, labels without the fourth, and `num-samples`.
#[test]
fn keys_that_belong_together_become_one_sample() {
    let place = LmdbFolder::fixture("ocr");
    let source = place.open(&mapped("image=image-*,label=label-*")).unwrap();
    let samples = all(&source);
    assert_eq!(samples.len(), 5);
    assert_eq!(samples[1].key, b"000000002");
    assert_eq!(samples[1].fields, [Some(0..1403), Some(1403..1408)]);
    assert_eq!(&samples[1].payload[1403..], b"word2");
    assert_eq!(samples[3].fields, [Some(0..2803), None]);
    check_blocks(&source);
    assert!(source.description().not_adoptable.is_some());
    // The number of samples is none.
    assert_eq!(source.description().warnings, []);
    let images = place.open(&mapped("image=image-*")).unwrap();
    check_in_place(&place, &images);
    let warnings = |map: &str| -> Vec<String> {
        let found = place.open(&mapped(map)).unwrap();
        found.description().warnings.iter().map(|one| one.text.split_once(": ").unwrap().1.to_owned()).collect()
    };
    let no_pattern = "keys that match no pattern of the mapping are NOT packed: ";
    assert_eq!(warnings("image=image-*"), [format!("{no_pattern}4, such as \"label-000000001\"")]);
    let alone = "keys that have no key of the first pattern beside them are NOT packed: ";
    let found = warnings("label=label-*,image=image-*");
    assert_eq!(found, [format!("{alone}1, such as \"image-000000004\"")]);
    for (map, keys) in [("image=image-*,label=label-*", 0), ("image=image-*", 4), ("label=label-*,image=image-*", 1)] {
        let found = place.open(&mapped(map)).unwrap();
        assert_eq!(found.description().not_packed, NotPacked { keys, files: 0 }, "{map}");
    }
    assert!(place.refusal(&mapped("image=image-*,label=label")).starts_with("\"label\": expected a key with one *"));
}

/// `shorter_than_its_last_page`: 60 pages by its meta page, 38 in the file, the others free.
#[test]
fn a_file_whose_missing_pages_are_free_is_whole() {
    let place = LmdbFolder::fixture("shorter_than_its_last_page");
    let read = keys_and_payloads(&place.open(&LmdbOptions::default()).unwrap());
    let keys: Vec<_> = read.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
    assert_eq!(keys, [(&b"keep0"[..], &b"w"[..]), (b"keep1", b"w"), (b"keep2", b"w")]);
}

#[test]
fn a_file_that_is_cut_at_any_page_is_refused_or_whole() {
    for name in ["plain", "datum", "shorter_than_its_last_page"] {
        let bytes = fixture(name);
        let whole = stream(&LmdbFolder::with(&bytes).open(&raw()).unwrap(), Layout::InPlace);
        let cut =
            |len: usize| LmdbFolder::with(&bytes[..len]).open(&raw()).map(|source| stream(&source, Layout::InPlace));
        let mut refused = 0;
        for len in (0..bytes.len()).step_by(2048) {
            match cut(len) {
                Ok(samples) => {
                    let unpath = |all: &[Result<super::Taken, _>]| -> Vec<_> {
                        all.iter().map(|one| one.as_ref().unwrap().clone()).collect()
                    };
                    assert_eq!(unpath(&samples), unpath(&whole), "{name} {len}");
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 2, "{name}");
    }
    let place = LmdbFolder::with(&fixture("datum")[..5 * 4096]);
    assert_eq!(place.refusal(&raw()), "has 20480 bytes, expected at least 24576: it was cut off, so copy it again");
}

#[test]
fn files_of_lmdb_are_recognised_and_no_others() {
    assert!(recognises(&fixture("plain")[..4096]));
    assert!(recognises(&fixture("plain")[..24]));
    assert!(!recognises(&fixture("plain")[..19]));
    assert!(!recognises(&fixture("plain")[8192..]));
    assert!(!recognises(b"\xde\xc0\xef\xbe"));
    let mut flagged = fixture("plain")[..24].to_vec();
    flagged[11] |= 0x22;
    assert!(recognises(&flagged), "what opens is recognised: other flags do not matter to liblmdb");
}
