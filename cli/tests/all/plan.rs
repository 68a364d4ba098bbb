//! The plan of an epoch, printed without reading data: `plan`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;

use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_reader::plan::{Mixing, Order, OrderChoice};
use grainstore_reader::{EpochOptions, Reader, ReaderOptions};
use grainstore_writer::{Sample, WriterOptions};
use serde_json::{Value, json};

use crate::common::{Fixture, ordinals};

#[test]
fn it_prints_what_an_epoch_reads_in_the_same_order() {
    let fixture = Fixture::labelled(200);
    for order in ["full", "chunked", "sequential"] {
        for tail in ["drop", "short", "pad"] {
            let flags =
                ["--order", order, "--tail", tail, "--seed", "4", "--epoch", "2", "--world", "3", "--rank", "1"];
            let flags = || flags.iter().chain(&["--batch-size", "16", "--subset", "label in 1, 4..8"]);
            let (plan, epoch) =
                (fixture.run("plan", flags()), fixture.run("epoch", flags().chain(&["--print-ordinals"])));
            assert_eq!((plan.status, plan.stdout), (0, epoch.stdout), "{order} {tail}");
        }
    }
}

#[test]
fn a_sentence_describes_it_beside_the_ordinals() {
    let fixture = Fixture::labelled(100);
    let run = fixture.run("plan", ["--order", "sequential", "--world", "2", "--rank", "1", "--batch-size", "30"]);
    assert_eq!(
        run.stderr,
        "[PATH]/data.grain: sequential, seed 0, epoch 0; rank 1 of 2: 50 samples in 2 batches of 30, tail short\n"
    );
    assert_eq!(ordinals(&run.stdout), (30..60).chain(80..100).collect::<Vec<_>>());
    let run = fixture.run("plan", ["--order", "chunked", "--lanes", "2", "--subset", "label = 1"]);
    assert_eq!(
        run.stderr,
        "[PATH]/data.grain (10 of 100 samples): chunked, seed 0, epoch 0, 2 lanes in a window of 256M; rank 0 of 1: \
         10 samples in 1 batch of 256, tail short\n"
    );
}

#[test]
fn a_step_is_that_batch_with_keys_where_they_are_asked_for() {
    let fixture = Fixture::labelled(100);
    let flags = ["--order", "full", "--world", "2", "--rank", "1", "--batch-size", "8"];
    let with = |rest: &[&'static str]| [&flags, rest].concat();
    let all = ordinals(&fixture.run("plan", flags).stdout);
    for (step, batch) in all.chunks(8).enumerate() {
        let step = step.to_string();
        let run = fixture.run("plan", flags.iter().copied().chain(["--step", &step]));
        assert_eq!((run.status, ordinals(&run.stdout)), (0, batch.to_vec()), "step {step}");
    }
    let run = fixture.run("plan", with(&["--step", "2", "--keys"]));
    let lines: Vec<String> = all[16..24].iter().map(|ordinal| format!("{ordinal}\tkey{ordinal}")).collect();
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), lines);
    let (_, document) = fixture.json("plan", with(&["--step", "2", "--keys"]));
    let step = &document["step"];
    assert_eq!((&step["number"], &step["ordinals"]), (&json!(2), &json!(all[16..24])));
    assert_eq!(step["positions"], json!((33..48).step_by(2).collect::<Vec<_>>()));
    assert_eq!(step["keys"][0], json!({ "key": format!("key{}", all[16]) }));
}

#[test]
fn padding_is_past_the_epochs_end() {
    let fixture = Fixture::labelled(10);
    let (_, document) = fixture.json("plan", ["--batch-size", "8", "--tail", "pad", "--step", "1"]);
    assert_eq!(document["step"]["positions"], json!([8, 9, 10, 11, 12, 13, 14, 15]));
    let whole = ordinals(&fixture.run("plan", [""; 0]).stdout);
    assert_eq!(document["step"]["ordinals"], json!([&whole[8..], &whole[..6]].concat()));
}

/// The segments are gone, and the index is sufficient.
#[test]
fn no_data_is_needed() {
    let fixture = Fixture::small();
    let flags = ["--mixing", "--step", "0", "--keys", "--subset", "weight < 0.35"];
    let before = fixture.run("plan", flags);
    assert_eq!(before.status, 0, "{}", before.stderr);
    fs::remove_file(fixture.file("00000.seg")).unwrap();
    fs::remove_file(fixture.file("00001.seg")).unwrap();
    let after = fixture.run("plan", flags);
    assert_eq!((after.status, after.stdout, after.stderr), (0, before.stdout, before.stderr));
    assert_eq!(fixture.run("epoch", [""; 0]).status, 2);
}

/// The document's keys: programs that parse it rely on all of them. `document.rs` documents each.
const KEYS: [&str; 22] = [
    "batch_size",
    "batches",
    "dataset_samples",
    "epoch",
    "fingerprint",
    "group",
    "lanes",
    "mixing",
    "order",
    "paths",
    "piece_readers_max",
    "rank",
    "rank_samples",
    "samples",
    "schema_version",
    "seed",
    "start_position",
    "step",
    "subset",
    "tail",
    "window_bytes",
    "world",
];

#[test]
fn json_has_everything_that_decides_it() {
    let fixture = Fixture::labelled(100);
    let flags = [
        "--order", "chunked", "--lanes", "4", "--group", "3", "--seed", "9", "--epoch", "1", "--world", "6", "--rank",
        "5",
    ];
    let (status, document) =
        fixture.json("plan", flags.into_iter().chain(["--batch-size", "4", "--subset", "(label<5)"]));
    assert_eq!((status, keys(&document)), (0, KEYS.to_vec()));
    let reader = Reader::open(&fixture.path, ReaderOptions::default()).unwrap();
    let subset =
        "label < 5".parse::<grainstore_reader::Expression>().unwrap().select_from(reader.collection()).unwrap();
    for (key, value) in [
        ("fingerprint", json!(reader.collection().fingerprint().to_string())),
        ("dataset_samples", json!(100)),
        ("subset", json!({ "expression": "label < 5", "hash": format!("{:016x}", subset.hash()), "samples": 50 })),
        ("order", json!("chunked")),
        ("lanes", json!(4)),
        ("group", json!(3)),
        ("window_bytes", json!(256 << 20)),
        ("seed", json!(9)),
        ("epoch", json!(1)),
        ("world", json!(6)),
        ("rank", json!(5)),
        ("batch_size", json!(4)),
        ("tail", json!("short")),
        ("samples", json!(50)),
        ("start_position", json!(0)),
        ("rank_samples", json!(8)),
        ("batches", json!(3)),
        ("piece_readers_max", json!(3)),
        ("step", json!(null)),
        ("mixing", json!(null)),
    ] {
        assert_eq!(document[key], value, "{key}");
    }
}

fn keys(document: &Value) -> Vec<&str> {
    document.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_state_is_where_it_begins() {
    let fixture = Fixture::labelled(100);
    let path = fixture.folder.path().join("state");
    let state = ["--state", path.to_str().unwrap()];
    assert_eq!(fixture.run("epoch", state.iter().chain(&["--batch-size", "30", "--limit-seconds", "0"])).status, 0);
    let whole = ordinals(&fixture.run("plan", [""; 0]).stdout);
    let rest = fixture.run("plan", state);
    assert_eq!(ordinals(&rest.stdout), whole[30..]);
    assert!(rest.stderr.contains("; rank 0 of 1 from position 30 on: 70 samples"), "{}", rest.stderr);
    let second = fixture.run("plan", state.iter().chain(&["--batch-size", "7", "--step", "1"]));
    assert_eq!(ordinals(&second.stdout), whole[37..44]);
}

/// MIX-1, MIX-2
#[test]
fn mixing_is_reported_for_the_batches_of_all_ranks_beside_a_full_shuffle() {
    let fixture = Fixture::labelled(1000);
    let flags = ["--order", "chunked", "--lanes", "3", "--world", "2", "--batch-size", "4", "--mixing"];
    let (_, document) = fixture.json("plan", flags);
    let reader = Reader::open(&fixture.path, ReaderOptions::default()).unwrap();
    let options = EpochOptions { order: OrderChoice::Fixed(Order::Chunked), lanes: Some(3), ..EpochOptions::default() };
    let plan = reader.plan(&options).unwrap();
    let class_of = |ordinal: u64| Some(ordinal % 10);
    let mixing = Mixing::measure(plan.plan(), 8.try_into().unwrap(), Some(&class_of), Mixing::PLACES);
    let measured = &document["mixing"];
    assert_eq!((&measured["global_batch_size"], &measured["places"]), (&json!(8), &json!(11)));
    for (key, found, full) in
        [("one_batch", mixing.one, mixing.full_one), ("sixteen_batches", mixing.sixteen, mixing.full_sixteen)]
    {
        let expected = json!({
            "parts": found.parts,
            "full_shuffle_parts": full.parts,
            "classes": found.classes,
            "full_shuffle_classes": full.classes,
        });
        assert_eq!(measured[key], expected, "{key}");
    }
    let run = fixture.run("plan", flags);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", run.stdout);
    assert_eq!(lines[0], "distinct in                    1 batch  full shuffle    16 batches  full shuffle");
    let row = [mixing.one, mixing.full_one, mixing.sixteen, mixing.full_sixteen]
        .map(|distinct| format!("{:14.1}", distinct.parts));
    assert_eq!(lines[1], format!("256ths of stored order  {}", row.concat()));
    assert!(lines[2].starts_with("classes, by label "), "{}", lines[2]);
    assert_eq!(lines[3], "a batch is one of all ranks, 8 samples; means over 11 positions of the epoch");
}

#[test]
fn sixteen_batches_that_are_more_than_the_epoch_are_called_so() {
    let fixture = Fixture::labelled(160);
    let header = |batch_size: &'static str| {
        let run = fixture.run("plan", ["--mixing", "--batch-size", batch_size]);
        run.stdout
            .lines()
            .next()
            .unwrap()
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect::<Vec<_>>()
            .join("|")
    };
    assert_eq!(header("10"), "distinct in|1 batch|full shuffle|16 batches|full shuffle");
    assert_eq!(header("11"), "distinct in|1 batch|full shuffle|whole epoch|full shuffle");
    assert_eq!(header("161"), "distinct in|whole epoch|full shuffle|whole epoch|full shuffle");
}

/// MIX-1: parts are those of the samples that are visited.
#[test]
fn a_subset_has_256_parts_of_its_own() {
    let fixture = Fixture::labelled(1000);
    let flags = ["--subset", "label in 0, 2, 4, 6, 8", "--batch-size", "500", "--mixing"];
    let (_, document) = fixture.json("plan", flags);
    let batch = &document["mixing"]["one_batch"];
    assert_eq!((&batch["parts"], &batch["full_shuffle_parts"]), (&json!(256.0), &json!(256.0)));
    assert_eq!((&batch["classes"], &batch["full_shuffle_classes"]), (&json!(5.0), &json!(5.0)));
}

#[test]
fn classes_are_counted_where_there_are_any() {
    let keyless = Fixture::keyless(100).run("plan", ["--mixing"]);
    assert!(
        keyless.status == 0 && keyless.stdout.contains("\nclasses are not counted: no attribute \"label\"\n"),
        "{keyless:?}"
    );
    let fixture = Fixture::labelled(100);
    for (flags, error) in [
        (
            vec!["--mixing", "--class-attribute", "colour"],
            "no attribute \"colour\"\nhint: the samples have: label, weight",
        ),
        (vec!["--mixing", "--class-attribute", "weight"], "attribute \"weight\" is a float32, expected whole numbers"),
        (vec!["--class-attribute", "label"], "--mixing"),
        (vec!["--json", "--keys"], "--step is missing\nhint: without `--json`"),
        (vec!["--step", "1"], "no step 1: the rank has 1 batch\nhint: steps go from 0 to 0"),
    ] {
        let run = fixture.run("plan", &flags);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{flags:?}");
        assert!(run.stderr.contains(error), "{flags:?}: {}", run.stderr);
    }
    let run = Fixture::keyless(10).run("plan", ["--keys"]);
    assert!(run.status == 2 && run.stderr.contains("/data.grain: the samples have no keys\n"), "{}", run.stderr);
}

/// MIX-1: a class is a text, whatever its code is in each dataset.
#[test]
fn mixing_counts_a_category_once_that_two_datasets_number_differently() {
    let written = |splits: [&str; 2]| {
        let attributes = vec![Attribute { name: "split".into(), kind: AttributeType::Category }];
        let schema = Schema::new(attributes, vec![Field { name: "data".into(), kind: FieldType::Bytes }]).unwrap();
        let sample = |split: &str| {
            let attributes = vec![Some(AttributeValue::Category(split.into()))];
            Sample { attributes, ..Sample::new("", b"x".to_vec()) }
        };
        let metadata = Metadata { schema, user: UserMetadata::default() };
        Fixture::write(WriterOptions { keyed: false, ..WriterOptions::with_metadata(metadata) }, splits.map(sample))
    };
    let (first, second) = (written(["train", "test"]), written(["test", "valid"]));
    let other = second.path.as_os_str();
    let mut flags = ["--mixing", "--class-attribute", "split", "--batch-size", "4"].map(OsStr::new).to_vec();
    flags.push(other);
    let (status, document) = first.json("plan", flags);
    assert_eq!((status, &document["mixing"]["one_batch"]["classes"]), (0, &json!(3.0)));
}
