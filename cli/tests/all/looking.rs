//! Looking into a dataset: `inspect` and `ls`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use grainstore_format::{Attribute, AttributeType, AttributeValue, Metadata, Schema};
use grainstore_writer::Sample;
use serde_json::{Value, json};

use crate::common::{Fixture, WILD_KEY, small_options, small_samples, without_values};

#[test]
fn inspect_prints_what_there_is() {
    let run = Fixture::small().run("inspect", [""; 0]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(
        without_values(&run.stdout, &["files", "index", "fingerprint"]),
        "\
[PATH]/data.grain
  samples      5, with keys
  payload      10.3 kB
  stored       10.3 kB, not compressed
  files        ...
  index        ...
  segments     2
  chunks       6 of 4K
  edges        2 samples over a chunk boundary (40.0 %)
  alignment    1 (samples are back to back)
  attributes   label int64, weight float32
  fields       image bytes, caption str
  classes      2: 0 cat, 1 dog
  generations  1
  fingerprint  ...

payload sizes
  8 to 16          1  ####################
  16 to 32         0
  32 to 64         0
  64 to 128        0
  128 to 256       0
  256 to 512       0
  512 to 1K        0
  1K to 2K         1  ####################
  2K to 4K         2  ########################################
  4K to 8K         1  ####################
"
    );
}

#[test]
fn inspect_shows_empty_and_compressed_samples() {
    use grainstore_writer::{Compression, Sample, WriterOptions};
    let options = WriterOptions { compression: Compression::Lz4, ..WriterOptions::default() };
    let samples = [Sample::new("a", vec![]), Sample::new("b", vec![b'b'; 5000])];
    let run = Fixture::write(options, samples).run("inspect", [""; 0]);
    assert!(run.stdout.contains(", 1 sample as LZ4\n"), "{}", run.stdout);
    assert!(run.stdout.contains("  empty            1  ####"), "{}", run.stdout);
    assert!(run.stdout.contains("  4K to 8K         1  ####"), "{}", run.stdout);
    assert!(!run.stdout.contains("classes"), "{}", run.stdout);
}

#[test]
fn inspect_prints_one_json_document() {
    let fixture = Fixture::small();
    let (status, document) = fixture.json("inspect", [""; 0]);
    assert_eq!(status, 0);
    for (key, value) in [
        ("samples", json!(5)),
        ("segments", json!(2)),
        ("external_segments", json!(0)),
        ("keyed", json!(true)),
        ("payload_bytes", json!(10 * 1024 + 5 * 9)),
        ("stored_bytes", json!(10 * 1024 + 5 * 9)),
        ("chunk_size", json!(4096)),
        ("long_samples", json!(0)),
        ("lz4_samples", json!(0)),
        ("alignment", json!("1")),
        ("attributes", json!([{ "name": "label", "type": "int64" }, { "name": "weight", "type": "float32" }])),
        ("fields", json!([{ "name": "image", "type": "bytes" }, { "name": "caption", "type": "str" }])),
        ("classes", json!(2)),
        ("generations", json!(1)),
    ] {
        assert_eq!(document[key], value, "{key}");
    }
    for key in ["file_bytes", "index_bytes", "chunks", "edge_samples"] {
        assert!(document[key].as_u64().is_some_and(|number| number > 0), "{key}: {}", document[key]);
    }
    assert!(document["index_bytes_per_sample"].is_f64());
    let len_of_files: u64 =
        std::fs::read_dir(&fixture.path).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(document["file_bytes"], json!(len_of_files));
    let fingerprint = grainstore_store::Dataset::open(&fixture.path).unwrap().fingerprint().to_string();
    assert_eq!(document["fingerprint"], json!(fingerprint));
    let bins = document["payload_len_histogram"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin["samples"].as_u64().unwrap()).sum::<u64>(), 5);
    assert_eq!(bins[0], json!({ "from_len": 8, "to_len": 15, "samples": 1 }));
}

#[test]
fn ls_lists_ordinal_key_length_and_attributes() {
    let run = Fixture::small().run("ls", [""; 0]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(
        run.stdout,
        "0\tcat/0.jpg\t9\t-1\t0\n\
         1\tcat/1.jpg\t1033\t0\t0.1\n\
         2\tcat/2.jpg\t2057\t1\t0.2\n\
         3\tcat/3.jpg\t3081\t2\t0.3\n\
         4\twild\\t\\xff\t4105\t\t0.4\n"
    );
}

#[test]
fn ls_of_a_dataset_without_keys_leaves_the_key_empty() {
    let run = Fixture::keyless(3).run("ls", ["--limit", "2"]);
    assert_eq!(run.stdout, "0\t\t10\n1\t\t10\n");
}

#[test]
fn ls_prints_one_json_object_a_line() {
    let run = Fixture::small().run("ls", ["--json"]);
    let rows: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 5);
    assert_eq!(
        rows[1],
        json!({
            "schema_version": 1, "ordinal": 1, "key": "cat/1.jpg", "payload_len": 1033, "stored_len": 1033,
            "attributes": { "label": 0, "weight": 0.1 }
        })
    );
    let hex: String = WILD_KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&rows[4]["key_hex"], &rows[4]["attributes"]["label"]), (&json!(hex), &Value::Null));
    assert_eq!(rows[4].get("key"), None);
}

#[test]
fn a_lone_segment_is_listed_like_a_dataset() {
    let mut fixture = Fixture::small();
    fixture.path = fixture.file("00001.seg");
    let run = fixture.run("ls", [""; 0]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "0\twild\\t\\xff\t4105\t\t0.4\n"));
}

#[test]
fn ls_prints_the_chosen_columns_of_a_subset_under_a_header() {
    let fixture = Fixture::small();
    let run = fixture.run("ls", ["--subset", "weight > 0", "--columns", "weight,ordinal", "--header", "--limit", "2"]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "weight\tordinal\n0.1\t1\n0.2\t2\n"));
    let run = fixture.run("ls", ["--header", "--limit", "0"]);
    assert_eq!(run.stdout, "ordinal\tkey\tpayload_len\tlabel\tweight\n");
    let run = fixture.run("ls", ["--columns", "key,nothing"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    let known = "no column \"nothing\" (there are: ordinal, key, payload_len, stored_len, label, weight)";
    assert!(run.stderr.contains(known), "{}", run.stderr);
    let run = fixture.run("ls", ["--json", "--columns", "label,key", "--subset", "weight == 0.2"]);
    let row: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(row, json!({ "schema_version": 1, "key": "cat/2.jpg", "attributes": { "label": 1 } }));
}

#[test]
fn inspect_has_statistics_of_attributes_and_fields() {
    let fixture = Fixture::small();
    let (status, document) = fixture.json("inspect", ["--stats"]);
    assert_eq!(status, 0);
    let label = &document["stats"]["attributes"][0];
    for (member, value) in [
        ("name", json!("label")),
        ("present", json!(4)),
        ("missing", json!(1)),
        ("min", json!(-1)),
        ("max", json!(2)),
        ("distinct", json!(4)),
    ] {
        assert_eq!(label[member], value, "{member}");
    }
    assert_eq!(label["quantiles"]["50"], 0);
    assert_eq!(label["counts"][1], json!({ "value": 0, "class": "cat", "samples": 1 }));
    assert_eq!(document["stats"]["attributes"][1]["max"], json!(0.4));
    let image = &document["stats"]["fields"][0];
    assert_eq!((&image["total_bytes"], &image["max_bytes"]), (&json!(10240), &json!(4096)));
    assert_eq!(document["stats"]["fields"][1]["missing"], 1);
    let text = fixture.run("inspect", ["--stats"]).stdout;
    assert!(
        text.contains("\nstatistics\n  label int64: 4 present, 1 missing; -1 to 2, median 0; 4 different ("),
        "{text}"
    );
    assert!(text.contains("  caption str: 4 present, 1 missing; 9 to 9 bytes, median 9\n"), "{text}");
    assert!(fixture.json("inspect", [""; 0]).1.get("stats").is_none());
}

#[test]
fn numbers_of_any_attribute_have_names() {
    let mut options = small_options();
    let attribute = Attribute { name: "split".into(), kind: AttributeType::Uint8 };
    let schema = Schema::new(vec![attribute], options.metadata.schema.fields().to_vec()).unwrap();
    let user = options.metadata.user.with_member("split_names", &json!(["train", "val"])).unwrap();
    options.metadata = Metadata { schema, user };
    let sample =
        |(number, sample): (u64, Sample)| Sample { attributes: vec![Some(AttributeValue::Uint(number % 2))], ..sample };
    let fixture = Fixture::write(options, (0..).zip(small_samples()).map(sample));
    let run = fixture.run("inspect", ["--stats"]);
    assert!(run.stdout.contains("\n  names        split 2: 0 train, 1 val\n"), "{}", run.stdout);
    assert!(run.stdout.contains("2 different (0 train: 3, 1 val: 2)"), "{}", run.stdout);
    let run = fixture.run("ls", ["--columns", "ordinal", "--subset", "split == 'val'"]);
    assert_eq!((run.stdout.as_str(), run.status), ("1\n3\n", 0));
    let run = fixture.run("ls", ["--subset", "split == 'test'"]);
    assert!(run.stderr.contains("no \"test\" among the 2 split_names (there are: train, val)\n"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: `grainstore inspect --json` lists all names"), "{}", run.stderr);
}
