//! What cannot be, or is not allowed here: options, io_uring, locked memory, mapped files. Each is answered with a
//! sentence and a hint, or done without.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use grainstore_writer::{Sample, WriterOptions};
use serde_json::{Value, json};

use crate::common::{Fixture, Run, finish};

/// The exit status of `restricted.py` if it cannot apply the restriction.
const CANNOT: i32 = 77;
const REFUSED: &str = "io_uring is blocked (seccomp or kernel.io_uring_disabled)";

#[test]
fn a_window_smaller_than_a_chunk_is_refused_with_both_lengths() {
    let fixture = Fixture::keyless(1000);
    let run = fixture.run("epoch", ["--order", "chunked", "--window", "1K"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert_eq!(
        run.stderr,
        "grainstore: window is 1024 bytes, expected 262144 or more: the size of a chunk\n\
         hint: the default of `--window` is 256M; `--order full` needs none\n"
    );
}

#[test]
fn a_queue_of_no_bytes_is_refused() {
    let run = Fixture::small().run("epoch", ["--queue", "0"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert_eq!(
        run.stderr,
        "grainstore: queue is 0 bytes, expected 1 or more: nothing would ever be read\n\
         hint: the default of `--queue` is 8M\n"
    );
}

#[test]
fn where_io_uring_is_blocked_threads_read_and_a_warning_is_printed_once() {
    let fixture = Fixture::small();
    let Some(run) = restricted("no-uring", &fixture, "epoch", &["--json", "--io", "buffered"]) else { return };
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(document(&run)["engine"], json!("pread"));
    assert_eq!(run.stderr, format!("grainstore: {REFUSED}; reading with 16 threads instead\n"));
}

/// Both buffered and direct, and both errors that sandboxes give.
#[test]
fn where_preadv2_is_refused_as_well_plain_reads_do_the_work() {
    let fixture = Fixture::small();
    for (errno, io) in [("ENOSYS", "buffered"), ("ENOSYS", "direct"), ("EPERM", "buffered")] {
        let what = format!("old-calls={errno}");
        let Some(run) = restricted(&what, &fixture, "epoch", &["--json", "--io", io]) else { return };
        let document = document(&run);
        assert_eq!((run.status, &document["samples"], &document["complete"]), (0, &json!(5), &json!(true)), "{run:?}");
        assert_eq!(document["engine"], json!("pread"), "{errno} {io}");
    }
}

#[test]
fn where_io_uring_is_blocked_and_asked_for_the_hint_names_the_engine_that_reads() {
    let fixture = Fixture::small();
    for command in ["epoch", "bench"] {
        let Some(run) = restricted("no-uring", &fixture, command, &["--engine", "uring", "--quiet"]) else { return };
        assert_eq!((run.status, run.stdout.as_str()), (2, ""));
        assert_eq!(run.stderr, format!("grainstore: {REFUSED}\nhint: `--engine auto` reads with threads instead\n"));
    }
}

#[test]
fn where_io_uring_is_blocked_the_bench_measures_threads() {
    let fixture = Fixture::small();
    let Some(run) = restricted("no-uring", &fixture, "bench", &["--seconds", "0", "--quiet", "--json"]) else { return };
    assert_eq!(run.status, 0, "{run:?}");
    let document = document(&run);
    let rows = document["device"].as_array().unwrap();
    assert!(document["engine"] == "pread" && rows.iter().all(|row| row["engine"] == "pread"), "{document}");
    assert_eq!(run.stderr.matches("reading with 16 threads instead").count(), 1, "{}", run.stderr);
}

/// The ring fits, the memory that reads land in does not.
#[test]
fn an_epoch_that_may_lock_little_memory_continues_and_reports_the_cost() {
    let fixture = Fixture::keyless(1000);
    open_to_all(&fixture);
    let what = "locked-memory=1000000";
    let Some(run) = restricted(what, &fixture, "epoch", &["--order", "chunked", "--json"]) else { return };
    assert_eq!(run.status, 0, "{run:?}");
    let document = document(&run);
    assert_eq!((&document["samples"], &document["registered_bytes"]), (&json!(1000), &json!(0)));
    if document["engine"] == "io_uring" {
        let remark = document["engine_remarks"][0].as_str().unwrap();
        assert!(remark.contains("RLIMIT_MEMLOCK allows a user 1000000 bytes"), "{remark}");
        let run = restricted(what, &fixture, "epoch", &["--order", "chunked"]).unwrap();
        assert!(run.stdout.contains(&format!("\n  remark       {remark}\n")), "{}", run.stdout);
    }
}

#[test]
fn where_not_even_a_ring_may_be_locked_the_samples_still_come() {
    let fixture = Fixture::small();
    open_to_all(&fixture);
    let Some(run) = restricted("locked-memory=0", &fixture, "epoch", &["--json"]) else { return };
    let document = document(&run);
    assert_eq!((run.status, &document["samples"], &document["complete"]), (0, &json!(5), &json!(true)));
    // Kernels differ in what they count.
    if document["engine"] == "pread" {
        assert!(
            run.stderr.contains("RLIMIT_MEMLOCK allows a user 0 bytes; reading with 16 threads instead"),
            "{run:?}"
        );
    }
}

/// The address space has room for the command, and none for the file.
#[test]
fn a_file_that_cannot_be_mapped_is_an_error_with_a_hint() {
    let samples = (0..128_u8).map(|number| Sample::new(vec![number + 1], vec![number; 1 << 20]));
    let fixture = Fixture::write(WriterOptions::default(), samples);
    let Some(run) = restricted("address-space=100000000", &fixture, "epoch", &["--io", "mapped"]) else { return };
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("cannot map the file into memory"), "{}", run.stderr);
    assert!(run.stderr.ends_with("\nhint: `--io buffered` reads without mapping files\n"), "{}", run.stderr);
}

#[test]
fn a_segment_that_was_cut_short_is_named_with_both_lengths() {
    let fixture = Fixture::small();
    let segment = fixture.file("00001.seg");
    let len = segment.metadata().unwrap().len();
    File::options().write(true).open(&segment).unwrap().set_len(len - 4096).unwrap();
    for command in ["epoch", "bench"] {
        let run = fixture.run(command, [""; 0]);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:?}");
        let what = format!("00001.seg: it has {} bytes, the manifest has {len}\n", len - 4096);
        assert!(run.stderr.ends_with(&what), "{}", run.stderr);
    }
}

/// Runs the command through `restricted.py`; `None`, after a message, if that is not possible here.
fn restricted(what: &str, fixture: &Fixture, command: &str, rest: &[&str]) -> Option<Run> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/common/restricted.py");
    let mut process = Command::new("python3");
    process.arg(script).args([what, env!("CARGO_BIN_EXE_grainstore"), command]).arg(&fixture.path).args(rest);
    process.stdin(Stdio::null());
    let run = finish(process);
    if run.status == CANNOT {
        say(&format!("{what} cannot be tested here: it needs a right that this user lacks"));
        return None;
    }
    Some(run)
}

#[expect(clippy::print_stderr, reason = "users who run the tests should know that one was skipped")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn document(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap()
}

fn open_to_all(fixture: &Fixture) {
    fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o755)).unwrap();
}
