//! Whole runs of `grainstore convert`: what it makes, what it prints, and that it leaves nothing when it fails, when the
//! user stops it, and when the disk is full.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::place::SmallDisk;
use crate::common::{Run, finish, grainstore};

/// A folder `photos` in the shape of ImageNet, and room beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in [("cat/1.jpg", "meow"), ("cat/2.jpg", "purr"), ("dog/1.JPEG", "woof!")] {
            let path = place.path("photos").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `grainstore convert photos DST FLAGS...` with paths and times filtered.
    fn convert(&self, destination: &str, flags: &[&str]) -> Run {
        let run = finish(self.command(destination, flags));
        Run { status: run.status, stdout: self.filtered(&run.stdout), stderr: self.filtered(&run.stderr) }
    }

    fn command(&self, destination: &str, flags: &[&str]) -> Command {
        let mut command = grainstore();
        command.arg("convert").arg(self.path("photos")).arg(self.path(destination)).args(flags);
        command
    }

    fn json(&self, destination: &str, flags: &[&str]) -> Value {
        let run = finish(self.command(destination, &[flags, &["--json"]].concat()));
        assert_eq!((run.status, run.stderr.as_str()), (0, ""));
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// What `grainstore COMMAND DST REST...` prints.
    fn ask(&self, command: &str, destination: &str, rest: &[&str]) -> String {
        let mut process = grainstore();
        process.arg(command).arg(self.path(destination)).args(rest);
        let run = finish(process);
        assert_eq!(run.status, 0, "{run:?}");
        run.stdout
    }

    fn keys(&self, destination: &str) -> Vec<String> {
        let listing = self.ask("ls", destination, &[]);
        listing.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect()
    }

    fn filtered(&self, text: &str) -> String {
        let text = text.replace(&*self.folder.path().to_string_lossy(), "[PATH]");
        let lines = text.lines().map(|line| match line.split_once(" B in ") {
            Some((size, _)) if line.starts_with("packed ") => format!("{size} B in [TIME]\n"),
            _ => format!("{line}\n"),
        });
        lines.collect()
    }

    fn names(&self) -> Vec<OsString> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_becomes_a_dataset_that_is_whole_and_gives_back_its_files() {
    let place = Place::new();
    let run = place.convert("photos.grain", &[]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "[PATH]/photos.grain: 3 samples, 1 segment, 13 B\n"));
    assert_eq!(run.stderr, "labels: 2 classes (the folders)\npacked 13 B in [TIME]\n");
    assert_eq!(place.ask("get", "photos.grain", &["dog/1.JPEG"]), "woof!");
    assert!(place.ask("verify", "photos.grain", &["--quiet"]).ends_with(": ok\n"));
    let document: Value = serde_json::from_str(&place.ask("inspect", "photos.grain", &["--json"])).unwrap();
    assert_eq!(document["samples"], 3);
}

#[test]
fn json_is_one_document_with_units_in_its_keys() {
    let place = Place::new();
    let document = place.json("photos.grain", &[]);
    let expected = json!({
        "samples": 3, "segments": 1, "payload_bytes": 13, "stored_bytes": 13, "classes": 2, "fields": ["image"],
        "attributes": ["label"], "keyed": true, "order": "shuffled", "skipped": 0, "skipped_samples": [], "duplicates": 0,
        "resumed_samples": 0, "notes": ["labels: 2 classes (the folders)"], "warnings": [],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key}");
    }
    for key in ["elapsed_s", "mb_per_s"] {
        assert!(document[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert_eq!(document["fingerprint"].as_str().unwrap().len(), 16);
    assert!(document["path"].as_str().unwrap().ends_with("photos.grain"));
}

#[test]
fn the_seed_and_the_options_decide_every_byte_and_the_jobs_none() {
    let place = Place::new();
    let fingerprint = |name: &str, flags: &[&str]| place.json(name, flags)["fingerprint"].clone();
    let first = fingerprint("a", &[]);
    assert_eq!(first, fingerprint("b", &["--jobs", "1", "--seed", "0"]));
    for (name, flags) in [
        ("c", &["--seed", "1"][..]),
        ("d", &["--chunk-size", "4K"]),
        ("e", &["--align", "no-edges"]),
        ("f", &["--limit", "2"]),
    ] {
        assert_ne!(first, fingerprint(name, flags), "{flags:?}");
    }
    let document = place.json("g", &["--segment-size", "1", "--compress", "lz4", "--from", "folder"]);
    assert_eq!(document["segments"], 3);
}

#[test]
fn source_order_is_by_path_and_a_limit_takes_the_first() {
    let place = Place::new();
    place.convert("a", &["--order", "source"]);
    place.convert("b", &["--order", "source", "--limit", "2"]);
    assert_eq!(place.keys("a"), ["cat/1.jpg", "cat/2.jpg", "dog/1.JPEG"]);
    assert_eq!(place.keys("b"), ["cat/1.jpg", "cat/2.jpg"]);
}

#[test]
fn a_file_that_grows_is_named_with_the_flag_that_continues_without_it() {
    let place = Place::new();
    symlink("/proc/self/status", place.path("photos/dog/2.jpg")).unwrap();
    let run = place.convert("photos.grain", &[]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert_eq!(
        run.stderr,
        "grainstore: [PATH]/photos/dog/2.jpg: cannot be packed: it grew while it was read: 0 bytes when opened, more \
         than 0 read\nhint: --skip-bad continues without what cannot be read, and lists it\n"
    );
    assert_eq!(place.names(), ["photos"]);
}

#[test]
fn what_is_skipped_is_counted_and_the_first_ten_are_named_and_json_names_all() {
    let place = Place::new();
    for number in 10..22 {
        symlink("nowhere", place.path("photos/cat").join(number.to_string())).unwrap();
    }
    assert!(place.convert("photos.grain", &[]).stderr.contains("hint: --skip-bad"));
    let run = place.convert("photos.grain", &["--skip-unreadable"]);
    assert_eq!((run.status, run.stdout.as_str()), (0, "[PATH]/photos.grain: 3 samples, 1 segment, 13 B, 12 skipped\n"));
    assert!(run.stderr.contains("grainstore: skipped [PATH]/photos/cat/19: No such file or directory"), "{run:?}");
    assert!(!run.stderr.contains("photos/cat/20"), "{run:?}");
    assert!(run.stderr.contains("grainstore: skipped 2 more; --json lists them all\n"), "{run:?}");
    let document = place.json("again.grain", &["--skip-unreadable"]);
    assert_eq!(document["skipped"], 12);
    let last = &document["skipped_samples"][11];
    assert_eq!(last["path"], place.path("photos/cat/21").to_str().unwrap());
    assert_eq!(last["why"], "No such file or directory (os error 2)");
}

#[test]
fn a_failure_is_reported_on_one_line_with_a_hint() {
    let place = Place::new();
    place.convert("photos.grain", &[]);
    for (destination, flags, message) in [
        ("photos.grain", &[][..], "photos.grain: already exists\nhint: --overwrite replaces it"),
        ("photos/x.grain", &[], "photos/x.grain: is inside [PATH]/photos, which is to be packed\nhint: choose a DST"),
        ("photos", &["--overwrite"], "photos: is inside [PATH]/photos, which is to be packed\nhint: choose"),
        ("no/x.grain", &[], "no: cannot write into this folder: No such file or directory (os error 2)\nhint: create"),
    ] {
        let run = place.convert(destination, flags);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(message), "{run:?}");
        assert_eq!(run.stderr.lines().count(), 2, "{run:?}");
    }
    assert_eq!(place.names(), ["photos", "photos.grain"]);
    assert_eq!(names(&place.path("photos")), ["cat", "dog"]);
}

#[test]
fn sources_that_are_no_folders_of_files_have_their_sentences() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    for (source, message) in [
        ("nothing", "nothing: there is no such file or folder, and nothing matches it as a pattern\n"),
        (
            "photos/cat/1.jpg",
            "1.jpg: it is not a tar, TFRecord, LMDB or Parquet file, compressed or not, and not a folder\nhint: --from names the format\n",
        ),
        (
            "empty",
            "empty: no files in it or below it (other things ignored: 0)\nhint: SRC is a folder with files in it",
        ),
    ] {
        let mut command = grainstore();
        command.arg("convert").arg(place.path(source)).arg(place.path("x.grain"));
        let run = finish(command);
        assert_eq!(run.status, 2);
        assert!(run.stderr.contains(message), "{run:?}");
    }
    assert_eq!(place.names(), ["empty", "photos"]);
}

#[test]
fn overwrite_replaces_a_dataset_and_nothing_else() {
    let place = Place::new();
    place.convert("photos.grain", &[]);
    assert_eq!(place.convert("photos.grain", &["--overwrite", "--limit", "1"]).status, 0);
    assert_eq!(place.keys("photos.grain").len(), 1);
    fs::write(place.path("mine"), "keep me").unwrap();
    assert_eq!(place.convert("mine", &["--overwrite"]).status, 2);
    assert_eq!(fs::read(place.path("mine")).unwrap(), b"keep me");
}

#[test]
fn flags_out_of_range_are_refused_before_anything_is_done() {
    let place = Place::new();
    for flags in [
        ["--chunk-size", "3K"],
        ["--segment-size", "0"],
        ["--align", "7"],
        ["--compress", "zstd"],
        ["--jobs", "0"],
        ["--order", "random"],
        ["--from", "zip"],
    ] {
        let run = place.convert("x.grain", &flags);
        assert_eq!(run.status, 2, "{flags:?}");
        assert!(run.stderr.contains(flags[0]), "{run:?}");
    }
    assert_eq!(place.names(), ["photos"]);
}

#[test]
fn the_help_explains_when_a_secret_seed_is_needed() {
    let mut command = grainstore();
    command.args(["convert", "--help"]);
    let help = finish(command).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("if keys come from strangers, pass a secret --seed"), "{help}");
    for flag in ["--from", "--order", "--limit", "--overwrite", "--resume", "--skip-bad", "--json", "--quiet"] {
        assert!(help.contains(flag), "{flag}");
    }
}

/// Interrupts a conversion that has begun to write samples and is far from done.
fn interrupt_in_the_middle(place: &Place, flags: &[&str]) -> Run {
    for number in 0..100 {
        // Files of 1 GB that take no space; what is written of them until the interrupt does.
        let path = place.path("photos/dog").join(format!("huge{number}"));
        File::create(path).unwrap().set_len(1 << 30).unwrap();
    }
    let mut command = place.command("photos.grain", flags);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let segment = place.path("photos.grain.partial/00000.seg.tmp");
    while fs::metadata(&segment).map_or(0, |metadata| metadata.len()) < 4 << 20 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn an_interrupt_in_the_middle_leaves_nothing() {
    let place = Place::new();
    let run = interrupt_in_the_middle(&place, &[]);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (130, "", "grainstore: interrupted\n"));
    assert_eq!(place.names(), ["photos"]);
}

#[test]
fn an_interrupt_leaves_the_dataset_that_was_to_be_replaced() {
    let place = Place::new();
    place.convert("photos.grain", &[]);
    let before = fs::read(place.path("photos.grain/00000.seg")).unwrap();
    assert_eq!(interrupt_in_the_middle(&place, &["--overwrite"]).status, 130);
    assert_eq!(place.names(), ["photos", "photos.grain"]);
    assert_eq!(fs::read(place.path("photos.grain/00000.seg")).unwrap(), before);
}

#[test]
fn a_full_disk_is_reported_and_everything_written_is_removed() {
    let place = Place::new();
    for number in 0..40 {
        fs::write(place.path("photos/cat").join(format!("big{number}")), vec![number; 1 << 20]).unwrap();
    }
    let Some(disk) = SmallDisk::mount(place.path("disk")) else { return };
    let run = place.convert("disk/photos.grain", &[]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("No space left on device"), "{run:?}");
    assert!(run.stderr.contains("\nhint: the disk is full: free space or choose a DST on another disk"), "{run:?}");
    assert!(disk.is_empty());
}

#[test]
fn labels_are_lost_only_on_request_and_what_is_skipped_is_reported() {
    let place = Place::new();
    fs::write(place.path("photos/.DS_Store"), "x").unwrap();
    fs::write(place.path("photos/README.txt"), "x").unwrap();
    std::os::unix::fs::symlink(place.path("photos/cat"), place.path("photos/lynx")).unwrap();
    let run = place.convert("photos.grain", &["--quiet"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("files are not at CLASS/FILE, so there are no labels: README.txt\n"), "{}", run.stderr);
    assert!(run.stderr.contains("or pack all files without labels by --no-labels"), "{}", run.stderr);
    let run = place.convert("photos.grain", &["--no-labels"]);
    assert_eq!(run.status, 0);
    assert!(run.stderr.contains("junk such as .DS_Store and Thumbs.db, ignored: 1"), "{}", run.stderr);
    assert!(run.stderr.contains("1 link to folders NOT packed"), "{}", run.stderr);
}
