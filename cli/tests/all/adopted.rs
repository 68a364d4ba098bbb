//! A dataset whose samples are in an external file: read like any other if the file is beside the dataset, elsewhere only
//! with a flag or an environment variable that allows it; a file that was changed is reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grainstore_writer::{ExternalFile, ExternalSample, ExternalWriter, WriterOptions};
use tempfile::TempDir;

use crate::common::{Run, finish, grainstore};

/// Three samples with framing between them, in a file that the manifest names by its absolute path or beside it.
struct Adopted {
    _folder: TempDir,
    dataset: PathBuf,
    data: PathBuf,
}

fn adopt(is_absolute: bool) -> Adopted {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.tar");
    std::fs::write(&data, b"one|two|three").unwrap();
    let place = if is_absolute { folder.path().join("below") } else { folder.path().to_owned() };
    std::fs::create_dir_all(&place).unwrap();
    let dataset = place.join("a.grain");
    let writer = ExternalWriter::create(&dataset, WriterOptions::default()).unwrap();
    let mut segment = writer.segment(0).unwrap();
    for (offset, bytes) in [(0, &b"one"[..]), (4, b"two"), (8, b"three")] {
        let (len, crc) = (bytes.len() as u64, crc32(bytes));
        segment.push(&ExternalSample { offset, len, crc, key: bytes.to_vec(), ..Default::default() }).unwrap();
    }
    let name = if is_absolute { data.to_str().unwrap().to_owned() } else { "../data.tar".to_owned() };
    let finished = segment.finish(ExternalFile::of(name, &File::open(&data).unwrap()).unwrap()).unwrap();
    writer.finish(vec![finished]).unwrap();
    Adopted { _folder: folder, dataset, data }
}

/// spec.md, CON-2.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

fn run(command: &str, dataset: &Path, rest: &[&str], variable: Option<&str>) -> Run {
    let mut process = grainstore();
    process.env_remove("GRAINSTORE_ALLOW_EXTERNAL").arg(command).arg(dataset).args(rest);
    process.envs(variable.map(|value| ("GRAINSTORE_ALLOW_EXTERNAL", value)));
    finish(process)
}

const READING: [(&str, &[&str]); 7] = [
    ("get", &["two"]),
    ("ls", &[]),
    ("inspect", &[]),
    ("verify", &[]),
    ("epoch", &[]),
    ("plan", &[]),
    ("bench", &["--seconds", "0.01"]),
];

#[test]
fn a_file_beside_the_dataset_is_read_without_leave() {
    let adopted = adopt(false);
    let run_plain = |command, rest: &[&str]| run(command, &adopted.dataset, rest, None);
    assert_eq!(run_plain("get", &["three"]).stdout, "three");
    assert_eq!(run_plain("verify", &[]).status, 0);
    let inspected = run_plain("inspect", &[]);
    assert!(inspected.stdout.contains("1, 1 of them external"), "{}", inspected.stdout);
    assert!(inspected.stdout.contains("a.grain/../data.tar\n"), "{}", inspected.stdout);
    let document: serde_json::Value = serde_json::from_str(&run_plain("inspect", &["--json"]).stdout).unwrap();
    assert_eq!(document["external_files"].as_array().unwrap().len(), 1);
}

/// EXT-1
#[test]
fn a_file_elsewhere_is_read_by_no_command_unless_the_flag_or_the_environment_allows_it() {
    let adopted = adopt(true);
    for (command, rest) in READING {
        for variable in [None, Some("0"), Some("")] {
            let refused = run(command, &adopted.dataset, rest, variable);
            assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{command}: {}", refused.stderr);
            assert!(refused.stderr.contains(adopted.data.to_str().unwrap()), "{command}: {}", refused.stderr);
            assert!(refused.stderr.contains("hint: `--allow-external`"), "{command}: {}", refused.stderr);
        }
        if command == "bench" {
            continue; // measuring takes seconds; that it begins is what the flag does for all
        }
        let flag = run(command, &adopted.dataset, &[rest, &["--allow-external"]].concat(), None);
        let environment = run(command, &adopted.dataset, rest, Some("1"));
        assert_eq!((flag.status, environment.status), (0, 0), "{command}: {}", flag.stderr);
    }
    let mut before = grainstore();
    before.args(["--allow-external", "get"]).arg(&adopted.dataset).arg("one");
    assert_eq!(finish(before).stdout, "one");
}

/// EXT-3
#[test]
fn a_file_that_was_touched_is_reported_on_stderr_and_read() {
    let adopted = adopt(false);
    File::options().write(true).open(&adopted.data).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for (command, rest) in [("get", &["two"][..]), ("verify", &[]), ("epoch", &[])] {
        let touched = run(command, &adopted.dataset, rest, None);
        assert_eq!(touched.status, 0, "{command}: {}", touched.stderr);
        assert_eq!(touched.stderr.matches("modified since the dataset was made").count(), 1, "{}", touched.stderr);
    }
    let verified = run("verify", &adopted.dataset, &["--json"], None);
    let document: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!((document["ok"].as_bool(), document["notices"].as_array().map(Vec::len)), (Some(true), Some(1)));
}

#[test]
fn damage_of_the_index_is_reported_once_under_its_name_with_what_helps() {
    let adopted = adopt(false);
    let index = adopted.dataset.join("00000.idx");
    let whole = std::fs::read(&index).unwrap();
    std::fs::write(&index, [&whole[..], b"x"].concat()).unwrap();
    let verified = run("verify", &adopted.dataset, &[], None);
    assert_eq!(verified.status, 1, "{verified:?}");
    assert!(verified.stdout.contains("00000.idx") && !verified.stdout.contains("data.tar"), "{verified:?}");
    assert!(verified.stderr.contains("adopt --overwrite"), "{verified:?}");
    let json = run("verify", &adopted.dataset, &["--json"], None);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["damaged"], 1, "{json}");
    std::fs::remove_file(&index).unwrap();
    let listed = run("ls", &adopted.dataset, &[], None);
    assert!(listed.stderr.contains("adopt --overwrite"), "{listed:?}");
    assert!(!listed.stderr.contains("rebuild-index"), "{listed:?}");
}
