//! Whole runs of `grainstore bench`: it measures any dataset, however small, and reports what it could not compare with a
//! limit. No test checks how fast anything was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use grainstore_writer::{Sample, WriterOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{Fixture, finish, flip_byte, grainstore};

const SHORT: [&str; 2] = ["--seconds", "0.02"];
const WAYS: [&str; 12] = [
    "epoch_chunked_direct",
    "epoch_chunked_buffered_cold",
    "epoch_chunked_buffered_warm",
    "epoch_chunked_mapped_warm",
    "epoch_full_direct",
    "epoch_full_buffered_warm",
    "epoch_sequential_direct",
    "get_batch_direct",
    "get_batch_buffered_warm",
    "get_direct",
    "get_buffered_warm",
    "get_mapped_warm",
];

fn measured(fixture: &Fixture) -> Value {
    let (status, document) = fixture.json("bench", SHORT);
    assert_eq!(status, 0, "{document}");
    document
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

#[test]
fn json_has_the_limits_and_every_way() {
    let fixture = Fixture::keyless(3000);
    let document = measured(&fixture);
    for (key, value) in [
        ("samples", json!(3000)),
        ("payload_bytes", json!(30_000)),
        ("stored_bytes", json!(30_000)),
        ("mean_extent_bytes", json!(30_000)),
        ("mean_sample_bytes", json!(10)),
        ("batch_size", json!(256)),
        ("seed", json!(0)),
        ("limit_s", json!(0.02)),
    ] {
        assert_eq!(document[key], value, "{key}");
    }
    assert!(is_positive(&document["elapsed_s"]) && document["engine"].as_str().is_some_and(|name| !name.is_empty()));
    assert!(document["file_system"]["kind"].is_string() && document["direct"].is_boolean());

    let device = document["device"].as_array().unwrap();
    let limits: Vec<_> = device.iter().map(|row| (&row["limit"], &row["request_bytes"], &row["depth"])).collect();
    assert_eq!(
        limits,
        [
            (&json!("extents"), &json!(32_768), &json!(256)),
            (&json!("samples"), &json!(4096), &json!(256)),
            (&json!("one_sample"), &json!(4096), &json!(1)),
        ]
    );
    for row in device {
        for key in ["reads_per_s", "mb_per_s", "before_mb_per_s", "after_mb_per_s"] {
            assert!(is_positive(&row[key]), "{key}: {row}");
        }
        assert!(row["drift"].is_number() && row["cpu_s_per_gb"].is_number(), "{row}");
    }
}

#[test]
fn every_way_delivers_and_only_cold_ones_have_a_share() {
    let document = measured(&Fixture::keyless(3000));
    let ways = document["ways"].as_array().unwrap();
    assert_eq!(ways.iter().map(|row| &row["name"]).collect::<Vec<_>>(), WAYS);
    for row in ways {
        for key in ["samples", "payload_bytes", "elapsed_s", "samples_per_s", "mb_per_s"] {
            assert!(is_positive(&row[key]), "{key}: {row}");
        }
        assert_eq!(row["payload_bytes"].as_u64().unwrap(), 10 * row["samples"].as_u64().unwrap(), "{row}");
        assert!(row["cpu_s_per_gb"].is_number(), "{row}");
        let has_limit = row["cache"] == "cold" && document["direct"] == true;
        assert_eq!((is_positive(&row["share_of_limit"]), row["limit"].is_string()), (has_limit, has_limit), "{row}");
        let name = row["name"].as_str().unwrap();
        assert_eq!(row["mean_request_bytes"].is_null(), name.starts_with("get_batch_"), "{row}");
        let is_get = name.starts_with("get_") && !name.starts_with("get_batch_");
        assert_eq!(is_positive(&row["latency"]["p50_us"]) && is_positive(&row["latency"]["p99_us"]), is_get, "{row}");
    }
    let expected_io = |name: &str| match name {
        _ if name.contains("mapped") => "mapped",
        _ if name.contains("direct") && document["direct"] == true => "direct",
        _ => "buffered",
    };
    assert!(ways.iter().all(|row| row["io"] == expected_io(row["name"].as_str().unwrap())), "{document}");
}

#[test]
fn a_table_is_printed_and_before_it_how_long_it_takes() {
    let fixture = Fixture::small();
    let run = fixture.run("bench", SHORT);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stderr.ends_with("takes about [TIME] s\n") && !run.stderr.contains('\r'), "{}", run.stderr);
    assert!(run.stdout.starts_with("[PATH]/data.grain: 5 samples, 10.3 kB, 2.1 kB each\non "), "{}", run.stdout);
    for row in ["A  ", "B  ", "C  ", "epoch chunked", "epoch full", "epoch sequential", "get_batch, ", "get, "] {
        assert!(run.stdout.contains(&format!("\n{row}")), "{row}: {}", run.stdout);
    }
    assert_eq!(run.stdout.matches("from memory").count() >= 2, run.stdout.contains("device: direct reads"));
}

/// All but the line of the dataset's path.
#[test]
fn no_line_is_longer_than_100_columns() {
    let run = Fixture::small().run("bench", SHORT);
    let long = run.stdout.lines().skip(1).find(|line| line.chars().count() > 100);
    assert_eq!((run.status, long), (0, None));
}

#[test]
fn the_engine_that_is_asked_for_reads() {
    let fixture = Fixture::small();
    let (status, document) = fixture.json("bench", ["--seconds", "0", "--engine", "pread"]);
    assert_eq!((status, &document["engine"]), (0, &json!("pread")));
    assert!(document["device"].as_array().unwrap().iter().all(|row| row["engine"] == "pread"), "{document}");
    let run = fixture.run("bench", ["--engine", "aio"]);
    assert!(run.status == 2 && run.stderr.contains("expected auto, uring or pread"), "{}", run.stderr);
}

#[test]
fn bars_are_made_of_what_the_locale_knows() {
    let fixture = Fixture::small();
    for (locale, cell, other) in [("C", '#', '█'), ("C.UTF-8", '█', '#')] {
        let mut process = grainstore();
        process.arg("bench").arg(&fixture.path).args(SHORT).env("LC_ALL", locale);
        let run = finish(process);
        // The fastest of the device has a full bar.
        assert!(run.stdout.contains(&String::from(cell).repeat(16)) && !run.stdout.contains(other), "{}", run.stdout);
        assert!(!run.stdout.contains('\x1b'));
    }
}

#[test]
fn quiet_prints_nothing_but_the_result() {
    let run = Fixture::small().run("bench", ["--seconds", "0", "--quiet", "--json"]);
    let talk = run.stderr.lines().filter(|line| !line.starts_with("grainstore: ")).count();
    assert_eq!((run.status, talk), (0, 0), "{run:?}");
    assert!(run.stdout.starts_with('{') && run.stdout.ends_with("}\n"));
}

#[test]
fn one_sample_and_one_segment_are_enough() {
    let mut fixture = Fixture::write(WriterOptions::default(), [Sample::new("only", vec![7; 5000])]);
    assert_eq!(measured(&fixture)["batch_size"], 1);
    fixture.path = fixture.file("00000.seg");
    assert_eq!(measured(&fixture)["mean_extent_bytes"], 5000);
}

#[test]
fn samples_without_bytes_have_no_share() {
    let samples = ["a", "b"].map(|key| Sample::new(key, vec![]));
    let document = measured(&Fixture::write(WriterOptions::default(), samples));
    for row in document["ways"].as_array().unwrap() {
        assert!(is_positive(&row["samples_per_s"]), "{row}");
        assert!(row["share_of_limit"].is_null() && row["cpu_s_per_gb"].is_null(), "{row}");
    }
}

#[test]
fn a_missing_segment_is_named_before_anything_is_measured() {
    let fixture = Fixture::small();
    std::fs::remove_file(fixture.file("00001.seg")).unwrap();
    let run = fixture.run("bench", SHORT);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("00001.seg: no such file") && !run.stderr.contains("takes about"), "{}", run.stderr);
}

#[test]
fn a_damaged_sample_ends_it() {
    let fixture = Fixture::small();
    flip_byte(&fixture.file("00000.seg"), 4096 + 20);
    let run = fixture.run("bench", SHORT);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("CRC-32") && run.stderr.contains("grainstore verify"), "{}", run.stderr);
}

#[test]
fn ctrl_c_stops_it_at_once_with_130() {
    let fixture = Fixture::keyless(1000);
    let mut process = grainstore();
    process.arg("bench").arg(&fixture.path).args(["--seconds", "100000"]);
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("takes about") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    while stderr.read_line(&mut rest).unwrap() > 0 {}
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), rest.as_str()), (Some(130), "grainstore: interrupted\n"));
    assert!(output.stdout.is_empty());
}
