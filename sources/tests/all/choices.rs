//! What is taken of a source by name, and what is left out: of every format, by request alone.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::path::PathBuf;

use grainstore_format::AttributeValue::{Bool, Int};
use grainstore_format::Remedy;
use grainstore_sources::{Format, From, Layout, Source, SourceOptions, open_source};

use crate::shelf::Shelf;
use crate::tar_support::{Got, archive, read, read_blocks};

/// The source that takes these names, and leaves out those after a minus.
fn open(paths: &[PathBuf], names: &[&str]) -> Result<Box<dyn Source>, String> {
    opened(paths, names, SourceOptions::default())
}

fn opened(paths: &[PathBuf], names: &[&str], options: SourceOptions) -> Result<Box<dyn Source>, String> {
    let (exclude, only): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.starts_with('-'));
    let exclude = exclude.iter().map(|name| name[1..].to_owned()).collect();
    let only = only.into_iter().map(str::to_owned).collect();
    open_source(paths, &SourceOptions { only, exclude, ..options }).map_err(|error| error.to_string())
}

fn names(source: &dyn Source) -> String {
    let schema = &source.description().metadata.schema;
    let attributes = schema.attributes().iter().map(|one| one.name.as_str());
    let fields = schema.fields().iter().map(|one| one.name.as_str());
    format!("{} | {}", attributes.collect::<Vec<_>>().join(" "), fields.collect::<Vec<_>>().join(" "))
}

fn good(source: &dyn Source) -> Vec<Got> {
    read(source, Layout::Packed).into_iter().map(Result::unwrap).collect()
}

fn fixture(name: &str) -> Vec<PathBuf> {
    vec![[env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()]
}

/// The error without its path.
fn refusal(opened: Result<Box<dyn Source>, String>) -> String {
    opened.err().unwrap().split_once(": ").unwrap().1.to_owned()
}

#[test]
fn members_of_a_tar_are_chosen_by_extension_and_by_the_names_of_what_they_become() {
    let shelf = Shelf::new();
    let members: &[(&str, &[u8])] = &[
        ("a.cls", b"7"),
        ("a.jpg", b"picture a"),
        ("a.json", br#"{"wide": 3, "tall": true, "text": "no attribute"}"#),
        ("a.txt", b"caption"),
        ("b.cls", b"8"),
        ("b.jpg", b"picture b"),
        ("b.json", br#"{"wide": 4}"#),
        ("b.txt", b""),
    ];
    let path = [shelf.put("a.tar", archive(members))];
    for (chosen, expected) in [
        (&[][..], "label tall wide | jpg json txt"),
        (&["-txt"], "label tall wide | jpg json"),
        (&["-json", "-cls"], " | jpg txt"),
        (&["jpg", "label"], "label | jpg"),
        (&["jpg", "cls"], "label | jpg"),
        (&["jpg", "wide"], "wide | jpg"),
        (&["json"], "tall wide | json"),
        (&["json", "-tall"], "wide | json"),
        (&["-label", "-tall", "-json", "wide", "txt"], " | txt"),
    ] {
        let source = open(&path, chosen).unwrap();
        assert_eq!(names(&*source), expected, "{chosen:?}");
        assert_eq!(good(&*source).len(), 2, "{chosen:?}");
    }
    let found = good(&*open(&path, &["jpg", "wide"]).unwrap());
    assert_eq!((&found[1].attributes, &found[1].payload), (&vec![Some(Int(4))], &b"picture b".to_vec()));
    let source = open(&path, &["jpg", "label", "txt"]).unwrap();
    assert_eq!(good(&*source)[0].payload, b"picture acaption");
    let in_place = read_blocks(&*source, Layout::InPlace).into_iter().map(Result::unwrap);
    assert_eq!(
        in_place.map(|got| got.parts()).collect::<Vec<_>>(),
        good(&*source).iter().map(Got::parts).collect::<Vec<_>>()
    );
    let unknown = "there is no member or attribute \"png\" to choose (there are: ";
    let why = refusal(open(&path, &["-png"]));
    assert!(why.starts_with(unknown) && why.contains("jpg") && why.contains("wide"), "{why}");
    assert_eq!(refusal(open(&path, &["-jpg", "-json", "-txt", "-cls"])), "every member is left out");
}

#[test]
fn what_is_left_out_of_a_tar_may_come_late() {
    let shelf = Shelf::new();
    let mut members: Vec<(String, &[u8])> = Vec::new();
    for number in 0..1100 {
        members.push((format!("{number}.jpg"), b"picture"));
        members.push((format!("{number}.txt"), b"text"));
    }
    members.push(("1099.npy".into(), b"late"));
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, content)| (name.as_str(), *content)).collect();
    let path = [shelf.put("a.tar", archive(&members))];
    let bad = |source: Box<dyn Source>| read(&*source, Layout::Packed).iter().filter(|got| got.is_err()).count();
    assert_eq!(bad(open(&path, &["-txt"]).unwrap()), 1, "nothing is left out without being asked");
    assert_eq!(bad(open(&path, &["jpg"]).unwrap()), 0);
}

#[test]
fn attributes_and_fields_of_a_caffe_lmdb_are_chosen() {
    let source = open(&fixture("lmdb/datum.mdb"), &["image", "label"]).unwrap();
    assert_eq!(names(&*source), "label | image");
    let all = open(&fixture("lmdb/datum.mdb"), &[]).unwrap();
    let (all, found) = (good(&*all), good(&*source));
    assert_eq!(found.len(), all.len());
    assert_eq!(found[0].attributes[..], all[0].attributes[..1]);
    let why = refusal(open(&fixture("lmdb/datum.mdb"), &["-picture"]));
    assert!(why.starts_with("there is no attribute or field \"picture\" to choose (there are: channels, "), "{why}");
    let why = refusal(open(&fixture("lmdb/datum.mdb"), &["label"]));
    assert_eq!(why, "no field is left of the samples, and a dataset needs one");
}

#[test]
fn attributes_and_texts_of_a_folder_are_chosen() {
    let shelf = Shelf::new();
    for name in ["photos/cat/1.jpg", "photos/dog/2.jpg"] {
        shelf.put(name, name);
    }
    let photos = [shelf.path("photos")];
    let unlabelled = open(&photos, &["-label"]).unwrap();
    assert_eq!(names(&*unlabelled), " | image");
    assert_eq!(unlabelled.description().metadata.user.text(), "{}");
    let labels = shelf.put("labels.csv", "path,caption,flag\ncat/1.jpg,first,true\ndog/2.jpg,,false\n");
    let options = || SourceOptions { labels: Some(labels.clone()), ..SourceOptions::default() };
    let without = opened(&photos, &["-caption"], options()).unwrap();
    assert_eq!(names(&*without), "label flag | image");
    let found = good(&*without);
    assert_eq!((&found[1].payload[..], &found[1].fields[..]), (&b"photos/dog/2.jpg"[..], &[][..]));
    assert_eq!(found[1].attributes, [Some(Int(1)), Some(Bool(false))]);
    // One that has no such text has nothing.
    let caption = opened(&photos, &["caption"], options()).unwrap();
    let found = read(&*caption, Layout::Packed);
    assert_eq!(found[0].as_ref().unwrap().payload, b"first");
    assert!(
        found[1]
            .as_ref()
            .unwrap_err()
            .to_string()
            .ends_with("it has no \"caption\", the only field, so nothing would be stored of it")
    );
}

#[test]
fn columns_of_a_list_are_chosen_and_its_key_only_goes_by_name() {
    let shelf = Shelf::new();
    shelf.put("a.bin", b"0123456789");
    let text = "path,offset,length,key,score,note\na.bin,0,3,x,1,some words\na.bin,3,4,y,2,more\n";
    let list = [shelf.put("list.csv", text)];
    let options = || SourceOptions { from: From::Format(Format::List), ..SourceOptions::default() };
    let error = open_source(&list, &options()).err().unwrap();
    assert!(matches!(error.remedy(), Some(Remedy::ExcludeColumn(name)) if name == "note"), "{error}");
    let source = opened(&list, &["-note"], options()).unwrap();
    assert_eq!((names(&*source).as_str(), source.description().is_keyed), ("score | data", true));
    assert_eq!(good(&*source)[1].payload, b"3456");
    let source = opened(&list, &["-note", "-key", "-score"], options()).unwrap();
    assert_eq!((names(&*source).as_str(), source.description().is_keyed), (" | data", false));
    assert!(opened(&list, &["score"], options()).unwrap().description().is_keyed);
    let why = refusal(opened(&list, &["-offset"], options()));
    assert_eq!(why, "there is no column \"offset\" to choose (there are: key, note, score)");
}

#[test]
fn a_column_or_feature_that_is_the_key_is_left_out_only_by_name() {
    let parquet = fixture("parquet/hf.parquet");
    let all = open(&parquet, &[]).unwrap();
    assert!(all.description().is_keyed);
    let only = open(&parquet, &["image"]).unwrap();
    assert_eq!((names(&*only).as_str(), only.description().is_keyed), (" | image", true));
    let keyless = open(&parquet, &["-image.path"]).unwrap();
    assert!(!keyless.description().is_keyed);
    assert_eq!(names(&*keyless), names(&*all));

    let records = fixture("tfrecord/imagenet.tfrecord");
    assert!(open(&records, &["image"]).unwrap().description().is_keyed);
    let keyless = open(&records, &["-image/filename"]).unwrap();
    assert!(!keyless.description().is_keyed);
    assert_eq!(good(&*keyless).len(), 3);
    let why = refusal(open(&records, &["-imag"]));
    assert!(why.starts_with("there is no feature \"imag\" to choose (there are: image, image/"), "{why}");
}

#[test]
fn options_with_other_lists_of_names_have_other_words() {
    let words = |names: &[&str]| {
        SourceOptions { only: names.iter().map(|&name| name.to_owned()).collect(), ..SourceOptions::default() }.words()
    };
    let lists: [&[&str]; 5] = [&["a", "b"], &["a, b"], &["a\\", "b"], &["a\\, b"], &["a\\\\", "b"]];
    let all: std::collections::BTreeSet<String> = lists.map(words).into();
    assert_eq!(all.len(), lists.len(), "{all:?}");
    assert!(words(&["a", "b"]).contains("only: a, b;"), "{}", words(&["a", "b"]));
}
