//! TFRecord files as a source: what TensorFlow writes is read, in any order and in place; what is damaged, cut or in
//! another format is reported and never guessed.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use grainstore_format::AttributeValue::{Float32, Int};
use grainstore_format::Remedy;
use grainstore_sources::tfrecord::example::Feature;
use grainstore_sources::tfrecord::framing::frame;
use grainstore_sources::{Blocks, Layout, Reach, Remark, Source};
use proptest::prelude::*;

use crate::tfrecord::{
    self, Files, Row, by_blocks, example, fixture, framed, i64s, records, refusal, streamed, streamed_layout,
    whole_rows, without_number,
};

fn row(key: &str, attributes: &[Option<grainstore_format::AttributeValue>], fields: &[Option<&[u8]>]) -> Row {
    let fields = fields.iter().map(|field| field.map(<[u8]>::to_vec)).collect();
    Row { key: key.into(), attributes: attributes.to_vec(), fields }
}

#[test]
fn the_layout_of_imagenet_is_recognised_by_itself() {
    let source = fixture("imagenet.tfrecord").open("").unwrap();
    let image = |byte: u8, len: usize| [&[255, 216][..], &vec![byte; len]].concat();
    let expected = [("n0.JPEG", 1, image(0, 20)), ("n1.JPEG", 301, image(1, 21)), ("n2.JPEG", 601, image(2, 22))];
    let rows = whole_rows(&source);
    for (row, (key, label, image)) in rows.iter().zip(expected) {
        assert_eq!((row.key.as_str(), &row.attributes[0], &row.fields[0]), (key, &Some(Int(label)), &Some(image)));
    }
    assert_eq!(rows.len(), 3);
    let note = "these are ImageNet's records: image=image/encoded, label=image/class/label, key=image/filename; other \
                features keep their names";
    assert_eq!(source.description().notes, [Remark::from(note)]);
    assert!(source.description().is_keyed);
}

#[test]
fn the_other_features_of_imagenet_come_along_and_boxes_are_lists_of_any_length() {
    let source = fixture("imagenet.tfrecord").open("").unwrap();
    assert_eq!(
        names(&*source),
        ["label: int64", "image/height: int64", "image: bytes", "image/object/bbox/xmin: float32[]"]
    );
    assert_eq!(source.description().not_adoptable, None);
    let in_place = streamed_layout(&source, 0, Layout::InPlace);
    assert_eq!(in_place.into_iter().map(|item| item.unwrap().row()).collect::<Vec<_>>(), whole_rows(&source));

    let record = |key: &'static str, xmin: &[f32]| {
        let bytes = |text: &'static str| Feature::bytes(vec![text.into()]);
        example(&[
            ("image/encoded", bytes("jpeg")),
            ("image/class/label", Feature::int64(vec![1])),
            ("image/filename", bytes(key)),
            ("image/class/text", bytes("tench")),
            ("image/object/bbox/xmin", Feature::float(xmin.to_vec())),
        ])
    };
    let files =
        Files::of(&[&framed(&[&record("a", &[0.5]), &record("b", &[0.25])]), &framed(&[&record("c", &[1.0, 2.0])])]);
    let source = files.open("").unwrap();
    assert_eq!(
        names(&*source),
        ["label: int64", "image: bytes", "image/class/text: bytes", "image/object/bbox/xmin: float32[]"]
    );
    let boxes: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let third = streamed(&source, 1).remove(0).unwrap().row();
    assert_eq!(third, row("c", &[Some(Int(1))], &[Some(b"jpeg"), Some(b"tench"), Some(&boxes)]));
}

#[test]
fn a_feature_that_is_mapped_as_a_list_has_any_length() {
    let record = |numbers: &[f32]| {
        example(&[("key", Feature::bytes(vec!["x".into()])), ("box", Feature::float(numbers.to_vec()))])
    };
    let files = Files::of(&[&framed(&[&record(&[0.5, 1.0])]), &framed(&[&record(&[1.0])])]);
    let fixed = files.open("box=box").unwrap();
    assert_eq!(names(&*fixed), ["box: float32[2]"]);
    let bad = streamed(&fixed, 1).remove(0).map(|_| ()).unwrap_err();
    assert_eq!(bad.why.text, "feature \"box\" has 1 float value, the first records have 2 float values");
    assert_eq!(bad.why.remedy.as_deref(), Some(&Remedy::MapAnyLength));
    let open = files.open("box=box[]").unwrap();
    assert_eq!(names(&*open), ["box: float32[]"]);
    assert_eq!(streamed(&open, 1).remove(0).unwrap().row(), row("", &[], &[Some(&1.0_f32.to_le_bytes())]));
}

fn names(source: &impl Source) -> Vec<String> {
    let schema = &source.description().metadata.schema;
    let attributes =
        schema.attributes().iter().map(|attribute| format!("{}: {}", attribute.name, attribute.kind.name()));
    attributes.chain(schema.fields().iter().map(|field| format!("{}: {}", field.name, field.kind.name()))).collect()
}

#[test]
fn features_are_left_out_by_either_of_their_names_and_by_request_alone() {
    let files = fixture("imagenet.tfrecord");
    let box_alone = files.open_chosen(&[], &["image", "image/height", "label"]).unwrap();
    assert_eq!(names(&*box_alone), ["image/object/bbox/xmin: float32[]"]);
    let only = files.open_chosen(&["image/encoded", "label"], &[]).unwrap();
    assert_eq!(names(&*only), ["label: int64", "image: bytes"]);
    assert_eq!(whole_rows(&only).len(), 3);
    let why = refusal(files.open_chosen(&[], &["imag"]));
    assert!(why.contains("there is no feature \"imag\" to choose"), "{why}");
}

#[test]
fn without_a_map_every_feature_is_taken_under_its_name() {
    let source = fixture("features.tfrecord").open("").unwrap();
    let schema = &source.description().metadata.schema;
    let fields: Vec<_> = schema.fields().iter().map(|field| format!("{}: {}", field.name, field.kind.name())).collect();
    let expected =
        ["box: float32[4]", "empty: bytes", "ids: int64[3]", "name: bytes", "sometimes: bytes", "words: int64[]"];
    assert_eq!(fields, expected);
    let rows = whole_rows(&source);
    let box_2: Vec<u8> = [3.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let (ids, words) = (i64s(&[7, -1, 2 << 40]), i64s(&[0, 1]));
    let fields = [Some(&box_2[..]), Some(b""), Some(&ids), Some(b"sample 2"), None, Some(&words)];
    assert_eq!(rows[2], row("", &[Some(Int(-2)), Some(Float32(0.5))], &fields));
    assert_eq!(rows[1].fields[4].as_deref(), Some(&b"here"[..]));
    assert_eq!(rows.len(), 4);
    assert!(!source.description().is_keyed);
    assert_eq!(source.description().notes, []);
}

#[test]
fn compressed_files_hold_the_same_and_are_only_streamed() {
    let plain = whole_rows(&fixture("features.tfrecord").open("").unwrap());
    for name in ["features.tfrecord.gz", "features.tfrecord.zlib"] {
        let source = fixture(name).open("").unwrap();
        assert_eq!(whole_rows(&source), plain, "{name}");
        assert_eq!(source.blocks(0).unwrap(), None);
        assert!(source.description().not_adoptable.clone().unwrap().text.contains("is compressed"));
    }
    let zstd = zstd::encode_all(&std::fs::read(fixture("features.tfrecord").path(0)).unwrap()[..], 1).unwrap();
    assert_eq!(whole_rows(&Files::of(&[&zstd]).open("").unwrap()), plain);
}

#[test]
fn a_map_names_key_fields_and_attributes() {
    let source = fixture("features.tfrecord").open("key=name,n=count,text=name,f=box").unwrap();
    let boxed: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(whole_rows(&source)[0], row("sample 0", &[Some(Int(0))], &[Some(b"sample 0"), Some(&boxed)]));
    assert_eq!(source.description().not_adoptable.clone(), None);
}

#[test]
fn raw_records_are_what_the_file_holds() {
    let files = Files::of(&[&framed(&[b"abc", b"", b"not an Example"])]);
    let source = files.open_raw().unwrap();
    let expected = [&b"abc"[..], b"", b"not an Example"].map(|record| row("", &[], &[Some(record)]));
    assert_eq!(whole_rows(&source), expected);
    assert_eq!(source.description().metadata.schema.fields()[0].name, "record");
}

#[test]
fn in_place_payloads_are_the_files_bytes_with_the_same_fields() {
    let options = ["a=name", "key=name,a=name,b=empty,c=box,n=count,s=sometimes", "x=box,y=scale,z=name"];
    for map in options {
        let files = fixture("features.tfrecord");
        let source = files.open(map).unwrap();
        assert_eq!(source.description().not_adoptable.clone(), None, "{map}");
        let bytes = std::fs::read(files.path(0)).unwrap();
        let in_place = streamed_layout(&source, 0, Layout::InPlace);
        let packed = streamed(&source, 0);
        assert_eq!(in_place.len(), packed.len());
        for (there, packed) in in_place.into_iter().zip(packed) {
            let (there, packed) = (there.unwrap(), packed.unwrap());
            let at = usize::try_from(there.offset).unwrap();
            assert_eq!(there.payload, &bytes[at..at + there.payload.len()]);
            assert_eq!(there.row(), packed.row());
        }
    }
    let why = fixture("features.tfrecord").open("x=ids,y=name").unwrap().description().not_adoptable.clone().unwrap();
    assert!(why.text.contains("\"ids\"") && why.remedy.as_deref() == Some(&Remedy::MapOrKeepWhole), "{why}");
}

#[test]
fn only_numbers_make_one_of_them_an_array_of_one() {
    let record = |n: i64| example(&[("a", Feature::int64(vec![n])), ("b", Feature::float(vec![0.5]))]);
    let source = Files::of(&[&framed(&[&record(1), &record(2)])]).open("").unwrap();
    assert_eq!(source.description().metadata.schema.fields()[0].kind.name(), "int64[1]");
    assert_eq!(whole_rows(&source)[1], row("", &[Some(Float32(0.5))], &[Some(&i64s(&[2]))]));
    assert!(source.description().notes[0].text.contains("only numbers: \"a\""), "{:?}", source.description().notes);
}

#[test]
fn a_feature_named_key_is_the_key_where_it_is_distinct() {
    let record = |key: &'static str, x: &'static str| {
        example(&[("key", Feature::bytes(vec![key.into()])), ("x", Feature::bytes(vec![x.into()]))])
    };
    let source = Files::of(&[&framed(&[&record("a", "1"), &record("b", "2")])]).open("").unwrap();
    assert_eq!(whole_rows(&source), [row("a", &[], &[Some(b"1")]), row("b", &[], &[Some(b"2")])]);
    assert_eq!(source.description().notes, [Remark::new("feature \"key\" is the key", Remedy::MapOtherKey)]);
    for other in ["a", ""] {
        let source = Files::of(&[&framed(&[&record("a", "1"), &record(other, "2")])]).open("").unwrap();
        assert_eq!(
            (source.description().is_keyed, source.description().metadata.schema.fields().len()),
            (false, 2),
            "{other:?}"
        );
        let note =
            "feature \"key\" is not the key, as it is no text, is missing in a record, or repeats: there are no keys";
        assert_eq!(source.description().notes, [Remark::new(note, Remedy::MapOtherKey)]);
    }
}

#[test]
fn lists_of_bytes_are_refused_unless_they_are_left_out_by_name() {
    let record =
        example(&[("a", Feature::bytes(vec!["x".into(), "y".into()])), ("b", Feature::bytes(vec!["z".into()]))]);
    let files = Files::of(&[&framed(&[&record])]);
    let error = files.open("").unwrap_err();
    assert_eq!(error.remedy(), Some(Remedy::MapOrKeepWhole));
    assert!(error.to_string().ends_with("several values of bytes in a record, a field holds one: a"), "{error}");
    assert_eq!(whole_rows(&files.open_chosen(&[], &["a"]).unwrap()), [row("", &[], &[Some(b"z")])]);
    assert!(refusal(files.open("a")).contains("feature \"a\" is a list of 2 bytes values, a field holds one"));
}

#[test]
fn records_without_a_valid_schema_are_refused_with_a_remedy() {
    let bytes = |name: &str| example(&[(name, Feature::bytes(vec!["x".into()]))]);
    let int = example(&[("a", Feature::int64(vec![1]))]);
    let of = |records: &[&[u8]]| Files::of(&[&framed(records)]);
    let none = refusal(of(&[&bytes("a"), &bytes("b")]).open("x=c"));
    assert!(none.ends_with("none of the first 2 records has a feature \"c\"; they have a, b"), "{none}");
    assert!(refusal(of(&[&bytes("a"), &int]).open("")).contains("\"a\" is bytes in record 0 and int64 in record 1"));
    assert!(refusal(of(&[&int, &int]).open("key=a,b=a")).contains("\"a\" cannot be the key"));
    assert!(refusal(of(&[&bytes("a")]).open("key=a")).contains("no feature is left for a field"));
    for no_example in [&b"just text"[..], b"", b"\x0a\0"] {
        assert_eq!(of(&[no_example]).open("").unwrap_err().remedy(), Some(Remedy::KeepWhole));
        let why = refusal(of(&[no_example]).open(""));
        assert!(why.contains("record 0 at byte 0: it is not a tf.train.Example"), "{why}");
    }
    assert!(refusal(fixture("sequence.tfrecord").open("")).contains("SequenceExample"));
    assert!(refusal(Files::of(&[b"", b""]).open("")).contains("there is no record in it, nor in any file after it"));
}

#[test]
fn files_that_tensorflow_wrote_without_records_have_none() {
    for name in ["none.gz", "none.zlib"] {
        assert_eq!(streamed(&fixture(name).open_raw().unwrap(), 0), [], "{name}");
        assert!(refusal(fixture(name).open("")).contains("there is no record in it"));
    }
}

#[test]
fn an_empty_shard_among_others_is_legal() {
    let source =
        Files::of(&[b"", &framed(&[&example(&[("a", Feature::bytes(vec!["x".into()]))])]), b""]).open("").unwrap();
    assert_eq!(source.description().parts.len(), 3);
    assert_eq!(whole_rows(&source).len(), 1);
    assert_eq!(source.blocks(0).unwrap(), Some(Blocks::Runs(vec![])));
}

#[test]
fn a_record_that_does_not_fit_is_bad_and_the_next_one_is_read() {
    let good = |n: i64| example(&[("k", Feature::bytes(vec!["key".into()])), ("n", Feature::int64(vec![n, n]))]);
    let misfits = [
        (
            example(&[("k", Feature::bytes(vec!["key".into()])), ("n", Feature::int64(vec![1]))]),
            "\"n\" has 1 int64 value, the first records have 2 int64 values",
        ),
        (
            example(&[("k", Feature::bytes(vec!["key".into()])), ("n", Feature::float(vec![1.0, 2.0]))]),
            "\"n\" has 2 float values, the first records have 2 int64 values",
        ),
        (example(&[("n", Feature::int64(vec![1, 2]))]), "\"k\" is missing, it is the key"),
        (
            example(&[("k", Feature::bytes(vec!["".into()])), ("n", Feature::int64(vec![1, 2]))]),
            "\"k\" has 0 bytes, a key has 1 to 65535",
        ),
        (example(&[("k", Feature::bytes(vec!["key".into()]))]), "\"n\" is missing, it is the only field"),
        (b"\x0a\xff".to_vec(), "it is not a tf.train.Example"),
    ];
    for (misfit, expected) in misfits {
        let first = framed(&[&good(1)].repeat(1000).iter().map(|record| &record[..]).collect::<Vec<_>>());
        let files = Files::of(&[&first, &framed(&[&good(7), &misfit, &good(8)])]);
        let source = files.open("key=k,n").unwrap();
        let found = streamed(&source, 1);
        let bad = found[1].as_ref().unwrap_err();
        let remedies = [Remedy::MapOrKeepWhole, Remedy::MapAnyLength, Remedy::KeepWhole];
        let is_known = bad.why.remedy.as_deref().is_some_and(|remedy| remedies.contains(remedy));
        assert!(bad.why.text.contains(expected) && is_known, "{:?}", bad.why);
        assert_eq!((bad.reach, bad.location.record), (Reach::Sample, Some(1)));
        assert_eq!(found[2].as_ref().unwrap().row().fields, [Some(i64s(&[8, 8]))]);
    }
}

#[test]
fn a_feature_that_was_never_seen_is_reported() {
    let known = example(&[("a", Feature::bytes(vec!["x".into()]))]);
    let more = example(&[("a", Feature::bytes(vec!["x".into()])), ("b", Feature::int64(vec![1]))]);
    let files = Files::of(&[&framed(&[&known]), &framed(&[&more])]);
    let bad = streamed(&files.open("").unwrap(), 1).remove(0).unwrap_err();
    assert!(bad.why.text.contains("it has a feature \"b\" that the first records do not have"), "{}", bad.why);
    assert!(streamed(&files.open("a").unwrap(), 1)[0].is_ok());
}

fn three() -> Vec<u8> {
    framed(&[b"first", b"second record", b"third"])
}

#[test]
fn a_file_cut_at_any_length_returns_its_whole_records_and_then_the_reason() {
    let (bytes, ends) = (three(), [0, 21, 50, 71]);
    for len in 0..bytes.len() {
        let source = Files::of(&[&bytes[..len]]).open_raw().unwrap();
        let found = streamed(&source, 0);
        let whole = ends.iter().filter(|end| **end > 0 && **end <= len).count();
        assert_eq!(found.iter().filter(|item| item.is_ok()).count(), whole, "{len}");
        if ends.contains(&len) {
            assert_eq!(found.len(), whole);
        } else {
            let bad = found[whole].as_ref().unwrap_err();
            assert!(bad.why.text.ends_with("truncated, or not a TFRecord file"), "{}", bad.why);
            assert_eq!((bad.reach, bad.location.offset), (Reach::Rest, Some(ends[whole] as u64)));
        }
        assert_eq!(by_blocks(&source, 0, false), found.into_iter().map(without_number).collect::<Vec<_>>());
    }
}

#[test]
fn a_flipped_bit_loses_one_record_or_the_rest_and_never_changes_one() {
    let good: Vec<_> = streamed(&Files::of(&[&three()]).open_raw().unwrap(), 0);
    for bit in 0..three().len() * 8 {
        let mut bytes = three();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let source = Files::of(&[&bytes]).open_raw().unwrap();
        let found = streamed(&source, 0);
        let damaged = [21, 50, 71].iter().position(|end| bit / 8 < *end).unwrap();
        let in_frame = bit / 8 - [0, 21, 50][damaged] < 12;
        let bad = found[damaged].as_ref().unwrap_err();
        assert_eq!(bad.reach, if in_frame { Reach::Rest } else { Reach::Sample }, "bit {bit}");
        assert!(bad.why.text.contains("CRC-32C of the"), "{}", bad.why);
        assert_eq!(found.len(), if in_frame { damaged + 1 } else { 3 });
        for (at, item) in found.iter().enumerate().filter(|(at, _)| *at != damaged) {
            assert_eq!(item.as_ref().unwrap().payload, good[at].as_ref().unwrap().payload);
        }
        assert_eq!(by_blocks(&source, 0, false), found.into_iter().map(without_number).collect::<Vec<_>>());
    }
}

#[test]
fn damaged_and_cut_compressed_files_are_never_read_as_something_else() {
    for name in ["features.tfrecord.gz", "features.tfrecord.zlib"] {
        let whole = std::fs::read(fixture(name).path(0)).unwrap();
        let good = whole_rows(&fixture(name).open("").unwrap());
        for len in 1..whole.len() {
            let Ok(source) = Files::of(&[&whole[..len]]).open_raw() else { continue };
            assert!(streamed(&source, 0).iter().any(Result::is_err), "{name} cut at {len}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let Ok(source) = Files::of(&[&bytes]).open("") else { continue };
            let rows = streamed(&source, 0).into_iter().filter_map(Result::ok).map(|item| item.row());
            for row in rows {
                // A field of the schema may be missing, when the only record that showed it is damaged.
                assert!(good.iter().any(|good| row.fields.iter().all(|field| good.fields.contains(field))));
            }
        }
    }
}

#[test]
fn a_length_past_the_file_is_reported_and_nothing_is_allocated_for_it() {
    for len in [72_u64, 1 << 60, u64::MAX] {
        let mut bytes = framed(&[b"first"]);
        bytes.extend(header(len));
        bytes.extend([7; 75]);
        let source = Files::of(&[&bytes]).open_raw().unwrap();
        let bad = streamed(&source, 0).remove(1).unwrap_err();
        let why = format!("its length is {len} and 4 bytes more, 75 bytes are left: truncated, or not a TFRecord file");
        assert_eq!((bad.why.text, bad.reach), (why, Reach::Rest));
        assert_eq!((bad.location.record, bad.location.offset), (Some(1), Some(21)));
        let gzipped = tfrecord::gzip(&bytes);
        assert!(streamed(&Files::of(&[&gzipped]).open_raw().unwrap(), 0)[1].is_err());
    }
}

#[test]
fn a_file_that_shrinks_after_it_was_listed_is_reported() {
    let files = Files::of(&[&three()]);
    let source = files.open_raw().unwrap();
    std::fs::write(files.path(0), &three()[..50]).unwrap();
    let bad = source.open(0, 50, Layout::Packed).unwrap().next().unwrap_err();
    assert!(bad.why.text.contains("0 bytes are left"), "{}", bad.why);
    std::fs::remove_file(files.path(0)).unwrap();
    assert!(source.open(0, 0, Layout::Packed).is_err());
    assert!(source.blocks(0).is_err());
}

/// Longer than 64 MiB.
const LONG: usize = (64 << 20) + 1000;

#[test]
fn a_long_record_is_streamed_and_its_checksum_holds_back_the_end() {
    let long: Vec<u8> = (0..=250).cycle().take(LONG).collect();
    let mut bytes = framed(&[b"before", &long, b"behind"]);
    let check = |bytes: &[u8], is_right: bool| {
        let source = Files::of(&[bytes]).open_raw().unwrap();
        let found = streamed(&source, 0);
        assert_eq!(found[1].as_ref().is_ok_and(|item| item.payload == long), is_right);
        assert_eq!(found[2].as_ref().unwrap().payload, b"behind");
        let mut samples = source.open(0, 0, Layout::Packed).unwrap();
        for _ in 0..2 {
            samples.next().unwrap();
        }
        // Nothing of the long one is read.
        assert!(samples.next().unwrap().is_some());
    };
    check(&bytes, true);
    bytes[100] ^= 1;
    check(&bytes, false);
}

#[test]
fn a_long_example_is_decoded_without_being_held_in_memory() {
    let pixels: Vec<u8> = (0..=240).cycle().take(LONG).collect();
    let record = |n: i64, pixels: &[u8]| {
        let features = [
            ("a", Feature::int64(vec![n, n])),
            ("p", Feature::bytes(vec![pixels.to_vec().into()])),
            ("z", Feature::bytes(vec!["key".into()])),
        ];
        example(&features)
    };
    let bytes = framed(&[&record(1, b"short"), &record(2, &pixels), &record(3, b"end")]);
    let files = Files::of(&[&bytes]);
    let source = files.open("key=z,p,a").unwrap();
    let rows = whole_rows(&source);
    assert!(rows[1] == row("key", &[], &[Some(&pixels), Some(&i64s(&[2, 2]))]));
    assert_eq!(rows[2].fields[0].as_deref(), Some(&b"end"[..]));
    assert_eq!(whole_rows(&files.open("key=z,a").unwrap())[1].fields, [Some(i64s(&[2, 2]))]);
    let in_place = streamed_layout(&files.open("key=z,p").unwrap(), 0, Layout::InPlace).remove(1).unwrap();
    let at = usize::try_from(in_place.offset).unwrap();
    assert!(in_place.payload == bytes[at..at + LONG]);
    let mut damaged = bytes.clone();
    damaged[LONG / 2] ^= 1;
    let found = streamed(&Files::of(&[&damaged]).open("key=z,p").unwrap(), 0);
    assert_eq!(found[1].as_ref().unwrap_err().reach, Reach::Sample);
    assert!(found[2].is_ok());
}

fn header(len: u64) -> Vec<u8> {
    let crc = grainstore_sources::tfrecord::framing::masked_crc(&len.to_le_bytes());
    [&len.to_le_bytes()[..], &crc.to_le_bytes()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Records of all sizes, some of them damaged, and sometimes a wrong length.
    #[test]
    fn blocks_in_any_order_give_what_streaming_gives(
        lens in prop::collection::vec(prop_oneof![8 => 0_usize..300, 1 => 60_000_usize..70_000, 1 => 200_000_usize..400_000], 0..60),
        flip in prop::option::of(any::<prop::sample::Index>()),
        backwards: bool,
    ) {
        let mut bytes = records(&lens);
        if let (Some(flip), false) = (flip, bytes.is_empty()) {
            let at = flip.index(bytes.len());
            bytes[at] ^= 4;
        }
        let source = Files::of(&[&bytes]).open_raw().unwrap();
        let streamed: Vec<_> = streamed(&source, 0).into_iter().map(without_number).collect();
        prop_assert!(by_blocks(&source, 0, backwards) == streamed);
    }
}

#[test]
fn frames_made_for_writing_are_read() {
    let framed = frame(b"payload");
    let bytes = [&framed.header[..], b"payload", &framed.footer].concat();
    assert!(grainstore_sources::tfrecord::recognises(&bytes));
    assert_eq!(whole_rows(&Files::of(&[&bytes]).open_raw().unwrap()), [row("", &[], &[Some(b"payload")])]);
}
