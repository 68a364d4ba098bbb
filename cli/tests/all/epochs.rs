//! Reading an epoch: `epoch`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use grainstore_reader::{EpochOptions, Reader, ReaderOptions};
use serde_json::{Value, json};

use crate::common::{self, Fixture, without_values};

#[test]
fn an_epoch_is_reported_as_text() {
    let run = Fixture::small().run("epoch", ["--io", "buffered", "--order", "sequential", "--engine", "pread"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(
        without_values(&run.stdout, &["time", "memory"]),
        "\
[PATH]/data.grain: 5 samples, 10.3 kB in [TIME] s: [RATE], [RATE]
  time         ...
  cpu          [TIME] s, [TIME] s for each GB
  read         10.3 kB in 2 reads of 5.1 kB, 1.000 for each stored byte
  io           buffered, by pread: it was requested
  order        sequential, seed 0, epoch 0
  memory       ...
  first batch  after [TIME] s, and [TIME] s to open
"
    );
    let time = run.stdout.lines().find(|line| line.starts_with("  time ")).unwrap();
    assert!(time.starts_with("  time         [TIME] s waiting for reads, [TIME] s verifying, [TIME] s copying, on "));
}

/// The document's keys: programs that parse it rely on all of them. `document.rs` documents each.
const KEYS: [&str; 49] = [
    "batch_size",
    "batches",
    "check_threads",
    "complete",
    "cpu_s",
    "cpu_s_per_gb",
    "dataset_samples",
    "dont_cache",
    "elapsed_s",
    "engine",
    "engine_remarks",
    "epoch",
    "epoch_samples",
    "first_batch_s",
    "group",
    "held_bytes_max",
    "io",
    "io_why",
    "lanes",
    "mb_per_s",
    "mean_request_bytes",
    "open_s",
    "order",
    "padded_samples",
    "paths",
    "payload_bytes",
    "position",
    "queue_bytes",
    "rank",
    "rank_batches",
    "rank_samples",
    "read_amplification",
    "read_bytes",
    "registered_bytes",
    "requests",
    "samples",
    "samples_per_s",
    "schema_version",
    "seed",
    "skipped",
    "slab_bytes",
    "stages",
    "state",
    "stored_bytes",
    "subset",
    "tail",
    "wait_s",
    "window_bytes",
    "world",
];

#[test]
fn an_epoch_is_reported_as_json() {
    let fixture = Fixture::keyless(1000);
    let options = ["--batch-size", "300", "--seed", "7", "--io", "buffered", "--dont-cache", "--queue", "1M"];
    let (status, document) = fixture.json("epoch", options);
    assert_eq!(status, 0);
    assert_eq!(keys(&document), KEYS);
    for (key, value) in [
        ("complete", json!(true)),
        ("samples", json!(1000)),
        ("dataset_samples", json!(1000)),
        ("epoch_samples", json!(1000)),
        ("rank_samples", json!(1000)),
        ("batches", json!(4)),
        ("rank_batches", json!(4)),
        ("padded_samples", json!(0)),
        ("skipped", json!([])),
        ("position", json!(1000)),
        ("state", json!(null)),
        ("subset", json!(null)),
        ("world", json!(1)),
        ("rank", json!(0)),
        ("tail", json!("short")),
        ("payload_bytes", json!(10_000)),
        ("stored_bytes", json!(10_000)),
        ("order", json!("chunked")),
        ("lanes", json!(1)),
        ("group", json!(1)),
        ("seed", json!(7)),
        ("epoch", json!(0)),
        ("window_bytes", json!(256 << 20)),
        ("queue_bytes", json!(1 << 20)),
        ("batch_size", json!(300)),
        ("io", json!("buffered")),
        ("dont_cache", json!(true)),
    ] {
        assert_eq!(document[key], value, "{key}");
    }
    let times =
        ["open_s", "elapsed_s", "first_batch_s", "wait_s", "cpu_s", "cpu_s_per_gb", "samples_per_s", "mb_per_s"];
    for key in times.into_iter().chain(["read_amplification"]) {
        assert!(document[key].as_f64().is_some_and(|number| number >= 0.0), "{key}: {}", document[key]);
    }
    for key in ["read_bytes", "requests", "mean_request_bytes", "check_threads", "held_bytes_max", "slab_bytes"] {
        assert!(document[key].as_u64().is_some_and(|number| number > 0), "{key}: {}", document[key]);
    }
    assert!(document["first_batch_s"].as_f64() <= document["elapsed_s"].as_f64());
    assert!(["io_uring", "pread"].contains(&document["engine"].as_str().unwrap()));
    assert!(document["io_why"].is_string() && document["engine_remarks"].is_array());
    let stages = &document["stages"];
    assert_eq!(keys(stages), ["copy_s", "post_s", "prepare_s", "verify_s", "wait_for_caller_s", "wait_for_reads_s"]);
    assert!(keys(stages).iter().all(|key| stages[*key].as_f64().is_some_and(|seconds| seconds >= 0.0)), "{stages}");
}

#[test]
fn mapped_files_are_read_in_every_order_with_no_other_engine() {
    let fixture = Fixture::small();
    for order in ["full", "chunked", "sequential"] {
        let (status, document) = fixture.json("epoch", ["--io", "mapped", "--order", order]);
        assert_eq!((status, &document["samples"], &document["complete"]), (0, &json!(5), &json!(true)));
        assert_eq!((&document["io"], &document["engine"]), (&json!("mapped"), &json!("mapped")));
    }
    let run = fixture.run("epoch", ["--io", "mapped"]);
    assert!(run.stdout.contains("\n  io           mapped: it was requested\n"), "{}", run.stdout);
}

#[test]
fn each_engine_reads_where_it_is_asked_for() {
    let fixture = Fixture::small();
    for io in ["direct", "buffered"] {
        let (status, document) = fixture.json("epoch", ["--io", io, "--engine", "pread"]);
        assert_eq!((status, &document["engine"], &document["samples"]), (0, &json!("pread"), &json!(5)));
    }
}

fn keys(document: &Value) -> Vec<&str> {
    document.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn ordinals_are_printed_in_the_order_of_the_plan_and_nothing_else() {
    let fixture = Fixture::keyless(500);
    let run = fixture.run("epoch", ["--print-ordinals", "--order", "full", "--seed", "3", "--epoch", "2"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let printed: Vec<u64> = run.stdout.lines().map(|line| line.parse().unwrap()).collect();
    let reader = Reader::open(&fixture.path, ReaderOptions::default()).unwrap();
    let order = "full".parse().unwrap();
    let epoch = reader.epoch(&EpochOptions { order, seed: 3, epoch: 2, ..EpochOptions::default() }).unwrap();
    assert_eq!(printed, epoch.plan().ordinals_from(0).collect::<Vec<_>>());
    assert!(run.stderr.contains("500 samples"), "{}", run.stderr);
}

#[test]
fn a_limit_of_no_seconds_stops_after_one_batch_and_reports_it() {
    let fixture = Fixture::keyless(100);
    let options = ["--limit-seconds", "0", "--batch-size", "10"];
    let (status, document) = fixture.json("epoch", options);
    assert_eq!((status, &document["complete"], &document["samples"]), (0, &json!(false), &json!(10)));
    let run = fixture.run("epoch", options);
    assert!(run.stdout.contains("  stopped      after 10 of 100 samples, by --limit-seconds\n"), "{}", run.stdout);
}

#[test]
fn a_damaged_sample_is_skipped_and_listed_on_request() {
    let fixture = Fixture::small();
    let dataset = grainstore_store::Dataset::open(&fixture.path).unwrap();
    common::flip_byte(dataset.segments()[0].path(), dataset.locate(1).unwrap().offset);
    assert_eq!(fixture.run("epoch", [""; 0]).status, 2);
    let (status, document) = fixture.json("epoch", ["--skip-damaged"]);
    assert_eq!((status, &document["samples"], &document["complete"]), (0, &json!(4), &json!(true)));
    let skipped = &document["skipped"];
    assert_eq!((skipped.as_array().unwrap().len(), &skipped[0]["ordinal"]), (1, &json!(1)));
    let run = fixture.run("epoch", ["--skip-damaged", "--quiet", "--print-ordinals"]);
    let messages: Vec<&str> = run.stderr.lines().collect();
    assert_eq!((run.status, messages.len(), messages[0]), (0, 2, "grainstore: 1 sample skipped as damaged"));
    assert!(messages[1].contains("sample 1 (key \"cat/1.jpg\")") && messages[1].contains("CRC-32"), "{messages:?}");
    let run = fixture.run("epoch", ["--skip-damaged"]);
    assert!(run.stdout.contains("\n  skipped      1 sample, damaged: named on stderr\n"), "{}", run.stdout);
}

#[test]
fn of_many_damaged_samples_the_first_twenty_are_named() {
    let fixture = Fixture::labelled(50);
    let dataset = grainstore_store::Dataset::open(&fixture.path).unwrap();
    for ordinal in 10..33 {
        common::flip_byte(dataset.segments()[0].path(), dataset.locate(ordinal).unwrap().offset);
    }
    let run = fixture.run("epoch", ["--skip-damaged", "--quiet", "--json"]);
    let messages: Vec<&str> = run.stderr.lines().collect();
    assert_eq!((run.status, messages.len(), messages[0]), (0, 22, "grainstore: 23 samples skipped as damaged"));
    assert_eq!(messages[21], "grainstore: and 3 more: `--json` lists all");
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["skipped"].as_array().unwrap().len(), 23);
}

#[test]
fn several_datasets_are_read_end_to_end() {
    let (first, second) = (Fixture::labelled(30), Fixture::labelled(12));
    let path = second.path.to_str().unwrap();
    let run = first.run("epoch", [path, "--print-ordinals", "--order", "sequential"]);
    assert_eq!((run.status, common::ordinals(&run.stdout)), (0, (0..42).collect()));
    assert!(run.stderr.starts_with("[PATH]/data.grain and 1 more: 42 samples"), "{}", run.stderr);
    let (_, document) = first.json("epoch", [path, "--subset", "ordinal >= 29 and label in 0, 9"]);
    assert_eq!((&document["samples"], document["paths"].as_array().unwrap().len()), (&json!(4), 2));
}

#[test]
fn the_window_decides_the_lanes() {
    let samples = (0..64_u8).map(|n| grainstore_writer::Sample::new(vec![n + 1], vec![n; 4000]));
    let fixture = Fixture::write(
        grainstore_writer::WriterOptions {
            geometry: common::small_options().geometry,
            ..grainstore_writer::WriterOptions::default()
        },
        samples,
    );
    let lanes = |window: &str| fixture.json("epoch", ["--order", "chunked", "--window", window]).1["lanes"].clone();
    assert_eq!((lanes("16K"), lanes("1MiB")), (json!(3), json!(24)));
}

#[test]
fn samples_without_bytes_have_no_amplification() {
    let samples = ["a", "b"].map(|key| grainstore_writer::Sample::new(key, vec![]));
    let (status, document) =
        Fixture::write(grainstore_writer::WriterOptions::default(), samples).json("epoch", [""; 0]);
    assert_eq!((status, &document["samples"]), (0, &json!(2)));
    assert!(document["read_amplification"].is_null());
    assert!(document["cpu_s_per_gb"].is_null());
}
