//! Conversions that end early: the finished part is kept, and `--resume` completes it to the same bytes as an
//! uninterrupted conversion.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::place::{Place, SmallDisk, gzip, numbered, records, until_there, wait};

/// 60 segments of 64 KiB, each of which takes a while to be durable.
const COUNT: u64 = 120;
const LEN: usize = 30_000;

/// Kills a conversion once it has finished a segment, the first one being 0, and is far from done.
fn kill_behind(place: &Place, line: &str, segment: u64) {
    let mut child = place.spawn(line, Stdio::null());
    until_there(&place.path(&format!("d.partial/{segment:05}.seg")), &mut child);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "it ended before it was killed");
}

/// Kills it twice and resumes each time.
fn check_killed_conversions(place: &Place, source: &str) {
    for order in ["shuffled", "source"] {
        let line = format!("convert {source} --segment-size 64K --order {order}");
        place.run_ok(&format!("{line} expected"));
        kill_behind(place, &format!("{line} d"), 1);
        assert!(!place.path("d").exists());
        kill_behind(place, &format!("{line} d --resume"), 25);
        let document = place.json(&format!("{line} d --resume"));
        assert!(document["resumed_samples"].as_u64().unwrap() >= 50, "{order}: {document}");
        assert_eq!(document["samples"], COUNT, "{order}");
        assert!(place.files("d") == place.files("expected"), "{source}, {order}");
        fs::remove_dir_all(place.path("d")).unwrap();
        fs::remove_dir_all(place.path("expected")).unwrap();
    }
}

#[test]
fn a_killed_conversion_of_a_folder_resumes_to_the_same_bytes() {
    let place = Place::new();
    place.export("folder", "photos", numbered(COUNT, LEN));
    check_killed_conversions(&place, "photos");
}

#[test]
fn a_killed_conversion_of_tars_resumes_to_the_same_bytes() {
    let place = Place::new();
    for (name, samples) in [("a.tar", 0..70), ("b.tar", 70..COUNT)] {
        let (first, count) = (usize::try_from(samples.start).unwrap(), samples.end - samples.start);
        place.export("tar", name, numbered(COUNT, LEN).skip(first).take(usize::try_from(count).unwrap()));
    }
    check_killed_conversions(&place, "a.tar b.tar");
}

#[test]
fn a_killed_conversion_of_a_compressed_tar_resumes_to_the_same_bytes() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(COUNT, LEN));
    place.put("a.tar.gz", gzip(&place.read("a.tar")));
    check_killed_conversions(&place, "a.tar.gz");
}

#[test]
fn a_killed_conversion_of_tfrecord_resumes_to_the_same_bytes() {
    let place = Place::new();
    place.export("tfrecord", "a.tfrecord", numbered(COUNT, LEN));
    check_killed_conversions(&place, "a.tfrecord");
}

/// A conversion of a stream that has come so far that segments are finished, and waits for more of it.
fn waiting(place: &Place, line: &str, stream: &[u8]) -> (std::process::Child, std::process::ChildStdin) {
    let mut child = place.spawn(line, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(stream).unwrap();
    until_there(&place.path("d.partial/00004.seg"), &mut child);
    (child, stdin)
}

/// The writer takes batches of 16384 samples, so one of these three is written when two have come.
const STREAM_COUNT: u64 = 50_000;
const STREAM_LINE: &str = "convert - --from stream --order source --segment-size 256K d";

/// A stream cannot be read again, so nothing is kept to resume from.
#[test]
fn ctrl_c_ends_a_conversion_of_a_silent_stream_and_leaves_nothing() {
    let place = Place::new();
    let stream = records(numbered(STREAM_COUNT, 100));
    let (child, stdin) = waiting(&place, STREAM_LINE, &stream[..stream.len() / 10 * 9]);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = wait(child);
    drop(stdin);
    assert_eq!((run.status, run.stdout.as_str()), (130, ""));
    assert_eq!(run.stderr, "grainstore: interrupted\n");
    assert_eq!(place.names(), [""; 0]);

    let refused = place.run_with_stdin(&format!("{STREAM_LINE} --resume"), &stream);
    assert_eq!(refused.status, 2);
    assert!(
        refused.stderr.contains("-: a stream is read once, so a conversion of it cannot be resumed"),
        "{refused:?}"
    );
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn ctrl_c_before_the_first_segment_leaves_nothing() {
    let place = Place::new();
    let mut child = place.spawn(STREAM_LINE, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&records(numbered(5_000, 100))).unwrap();
    until_there(&place.path("d.partial"), &mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = wait(child);
    drop(stdin);
    assert_eq!((run.status, run.stderr.as_str()), (130, "grainstore: interrupted\n"));
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn ctrl_c_while_a_silent_stream_is_looked_at_ends_it() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(1, 8 << 20));
    let mut child = place.spawn("convert - d", Stdio::piped());
    // More than a pipe holds: what has been taken has been looked at.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&place.read("a.tar")[..4 << 20]).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = wait(child);
    drop(stdin);
    assert_eq!((run.status, run.stderr.as_str()), (130, "grainstore: interrupted\n"));
    assert_eq!(place.names(), ["a.tar"]);
}

#[test]
fn other_options_and_other_data_are_refused_by_what_differs() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(COUNT, LEN));
    let line = "convert a.tar d --segment-size 64K";
    kill_behind(&place, line, 1);
    let before = place.files("d.partial");
    for (flags, message) in [
        ("--limit 5", "d.partial: cannot be resumed: it was started with \"limit: none\", now \"limit: 5\""),
        ("--order source", "it was started with \"order: shuffled by seed 0\", now \"order: that of the source\""),
        ("--on-duplicate first", "it was started with \"duplicate keys: error\", now \"duplicate keys: first\""),
        ("--dedupe", "it was started with \"duplicate content: kept\", now \"duplicate content: skipped\""),
        ("--chunk-size 64K", "chunk size: it was started with 262144, now 65536"),
        ("--align 64", "alignment: it was started with 1, now 64"),
        ("--compress lz4", "compression: it was started with none, now lz4"),
        ("--seed 1", "hash seed: it was started with "),
    ] {
        let printed = place.error_of(&format!("{line} --resume {flags}"));
        assert!(printed.contains(message), "{flags}: {printed}");
        assert!(printed.ends_with("--restart discards it and starts over\n"), "{printed}");
    }
    let segments = place.error_of("convert a.tar d --segment-size 128K --resume");
    assert!(segments.contains("segment size: it was started with 65536, now 131072"), "{segments}");
    let tar = File::options().write(true).open(place.path("a.tar")).unwrap();
    tar.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let touched = place.error_of(&format!("{line} --resume"));
    assert!(touched.contains("it was started with \"source: tar, names and lengths and times "), "{touched}");
    assert!(place.files("d.partial") == before, "it stays as it is");

    let neither = place.error_of(line);
    assert!(
        neither.contains(
            "d.partial: segments that an interrupted conversion finished are here\nhint: the same command with --resume"
        ),
        "{neither}"
    );
    assert!(place.files("d.partial") == before, "it stays as it is");
    let restarted = place.json(&format!("{line} --restart"));
    assert_eq!((&restarted["resumed_samples"], &restarted["samples"]), (&0.into(), &COUNT.into()));
    assert_eq!(place.names(), ["a.tar", "d"]);
}

#[test]
fn to_resume_what_was_never_begun_begins_it() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(3, 10));
    assert_eq!(place.json("convert a.tar d --resume")["samples"], 3);
    let there = place.error_of("convert a.tar d --resume");
    assert_eq!(
        there,
        "grainstore: d: already exists\nhint: --overwrite replaces it, once the new dataset is complete\n"
    );
}

#[test]
fn a_full_disk_keeps_what_is_done_and_the_conversion_resumes_when_there_is_room() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(COUNT, LEN));
    let Some(disk) = SmallDisk::mount(place.path("disk")) else { return };
    let line = "convert a.tar --segment-size 64K";
    let message = place.error_of(&format!("{line} disk/d"));
    assert!(message.contains("No space left on device"), "{message}");
    assert!(
        message.contains(
            "\nhint: the disk is full: free space; then the same command with --resume continues; the finished part "
        ),
        "{message}"
    );
    disk.grow();
    assert!(place.json(&format!("{line} disk/d --resume"))["resumed_samples"].as_u64().unwrap() > 0);
    place.run_ok(&format!("{line} expected"));
    assert!(place.files("disk/d") == place.files("expected"));
}

#[test]
fn what_stopped_at_a_bad_sample_resumes_without_it() {
    let place = Place::new();
    place.export("tar", "whole.tar", numbered(STREAM_COUNT, 100));
    let whole = place.read("whole.tar");
    // In the middle of the last member: behind it come two blocks of zeros.
    place.put("a.tar", &whole[..whole.len() - 1024 - 500]);
    let line = "convert a.tar d --order source --segment-size 256K";
    let refused = place.error_of(line);
    assert!(refused.contains("but the archive ends at byte "), "{refused}");
    assert!(refused.contains("\nhint: --resume --skip-bad continues without "), "{refused}");
    assert!(place.path("d.partial/00000.seg").exists());
    let document = place.json(&format!("{line} --resume --skip-bad"));
    assert!(document["resumed_samples"].as_u64().unwrap() > 10_000, "{document}");
    assert_eq!((&document["skipped"], &document["samples"]), (&1.into(), &(STREAM_COUNT - 1).into()));
}

#[test]
fn a_key_twice_after_finished_segments_has_advice_that_works() {
    let place = Place::new();
    place.put("blob", vec![7; 100_000]);
    let rows: String = (0..60).map(|row| format!("blob,{},1000,k{}\n", row * 1000, row % 50)).collect();
    place.put("list.csv", format!("path,offset,length,key\n{rows}"));
    let line = "convert list.csv d --from list --segment-size 8K --order source";
    let error = place.error_of(line);
    assert!(error.contains("--on-duplicate first") && error.contains("together with --restart"), "{error}");
    assert_eq!(place.json(&format!("{line} --on-duplicate first --restart"))["duplicates"], 10);
}
