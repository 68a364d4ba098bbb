//! What every command keeps: help for each flag, usage errors, a closed pipe, Ctrl-C.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::common::place::{Place, numbered};
use crate::common::{self, Fixture, finish, grainstore};

#[test]
fn the_help_of_every_command_names_its_flags() {
    let flags: [(&str, &[&str]); 7] = [
        ("bench", &["<DATASET>", "--seconds <S>", "[default: 2]", "--seed <N>", "--engine <ENGINE>", "--json"]),
        ("inspect", &["<DATASET>", "--json"]),
        ("ls", &["<DATASET>", "--limit <N>", "--json", "key_hex"]),
        ("get", &["[KEY]", "--ordinal <N>", "--field <NAME>", "-o, --output <FILE>"]),
        ("verify", &["--jobs <N>", "--json", "Exits with 0 if the dataset is intact and with 1 if it is damaged"]),
        (
            "plan",
            &[
                "<DATASET>...",
                "--order <ORDER>",
                "--seed <N>",
                "--epoch <N>",
                "--window <SIZE>",
                "--lanes <N>",
                "--group <N>",
                "--batch-size <N>",
                "--world <W>",
                "--rank <R>",
                "--tail <TAIL>",
                "--subset <EXPR>",
                "--state <FILE>",
                "--step <N>",
                "--keys",
                "--mixing",
                "--class-attribute <NAME>",
                "--json",
            ],
        ),
        (
            "epoch",
            &[
                "--order <ORDER>",
                "--seed <N>",
                "--epoch <N>",
                "--window <SIZE>",
                "[default: 256M]",
                "--batch-size <N>",
                "--lanes <N>",
                "--group <N>",
                "--world <W>",
                "--rank <R>",
                "drop, pad or short",
                "--subset <EXPR>",
                "key_hash < 0.9",
                "--state <FILE>",
                "--skip-damaged",
                "--io <IO>",
                "direct, buffered, mapped or auto",
                "--engine <ENGINE>",
                "uring, pread or auto",
                "--queue <SIZE>",
                "[default: 8M]",
                "--dont-cache",
                "--timeout <S>",
                "[default: 120]",
                "--limit-seconds <S>",
                "--print-ordinals",
                "--json",
            ],
        ),
    ];
    for (command, expected) in flags {
        let mut process = grainstore();
        process.args([command, "--help"]);
        let run = finish(process);
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{command}");
        let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in expected.iter().chain(&["--quiet", "--allow-external"]) {
            assert!(words.contains(text), "{command} --help lacks {text}: {}", run.stdout);
        }
    }
}

#[test]
fn the_help_lists_the_commands_and_the_exit_statuses() {
    let mut process = grainstore();
    process.arg("--help");
    let run = finish(process);
    for command in [
        "convert", "inspect", "ls", "get", "verify", "epoch", "plan", "bench", "demo", "append", "delete", "adopt",
        "export",
    ] {
        assert!(run.stdout.contains(&format!("\n  {command} ")), "{}", run.stdout);
    }
    assert!(run.stdout.contains("Exit status: 0 done, 1 the answer is no"), "{}", run.stdout);
}

#[test]
fn a_usage_error_exits_with_2_and_leaves_stdout_empty() {
    let fixture = Fixture::small();
    for (command, rest, text) in [
        ("epoch", ["--window", "4KB"], "expected a size such as 4096, 256K, 1MiB or 4G"),
        ("epoch", ["--order", "random"], "expected auto, full, chunked or sequential"),
        ("epoch", ["--io", "mmap"], "expected auto, direct, buffered or mapped"),
        ("epoch", ["--limit-seconds", "soon"], "expected seconds such as 10 or 0.5"),
        ("epoch", ["--batch-size", "0"], "'--batch-size <N>': expected a number of samples, 1 or more"),
        ("epoch", ["--tail", "long"], "expected drop, short or pad"),
        ("plan", ["--subset", "label ="], "expected a value after `=` at column 8, found the end"),
        ("bench", ["--seconds", "soon"], "expected seconds such as 10 or 0.5"),
        ("verify", ["--jobs", "0"], "--jobs"),
        ("epoch", ["--json", "--print-ordinals"], "cannot be used with"),
    ] {
        let run = fixture.run(command, rest);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{command} {rest:?}");
        assert!(run.stderr.contains(text), "{command} {rest:?}: {}", run.stderr);
    }
    let run = fixture.run("get", [""; 0]);
    assert_eq!(run.status, 2, "a sample must be named");
}

#[test]
fn nothing_is_coloured_when_it_is_not_wanted() {
    let mut process = grainstore();
    process.args(["epoch", "/missing"]).env("NO_COLOR", "1");
    assert!(!finish(process).stderr.contains('\x1b'));
}

/// More output than a pipe holds, so that the command notices.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let fixture = Fixture::keyless(60_000);
    let rest: [(&str, &[&str]); 3] = [("ls", &[]), ("epoch", &["--print-ordinals"]), ("plan", &["--quiet"])];
    for (command, rest) in rest {
        let mut process = grainstore();
        process.arg(command).arg(&fixture.path).args(rest).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{command}");
        assert!(first.ends_with('\n'), "{command}");
    }
}

#[test]
fn a_full_disk_behind_stdout_is_an_error() {
    let fixture = Fixture::small();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut process = grainstore();
    process.arg("ls").arg(&fixture.path).stdout(full).stderr(Stdio::piped());
    let output = process.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "grainstore: cannot write to stdout: No space left on device (os error 28)\n");
}

#[test]
fn a_closed_pipe_does_not_hide_damage() {
    let fixture = Fixture::small();
    let dataset = grainstore_store::Dataset::open(&fixture.path).unwrap();
    common::flip_byte(dataset.segments()[0].path(), dataset.locate(2).unwrap().offset);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut process = grainstore();
    process.arg("verify").arg(&fixture.path).stdout(writer).stderr(Stdio::piped());
    assert_eq!(process.spawn().unwrap().wait().unwrap().code(), Some(1));
}

/// The command has filled the pipe and waits for its reader when the signal arrives, so most of the epoch is ahead.
#[test]
fn ctrl_c_stops_an_epoch_with_130() {
    let fixture = Fixture::keyless(60_000);
    let mut process = grainstore();
    process.arg("epoch").arg(&fixture.path).args(["--print-ordinals", "--batch-size", "1"]);
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "grainstore: interrupted\n");
    assert!(rest.iter().filter(|&&byte| byte == b'\n').count() < 60_000, "it read on to the end");
}

#[test]
fn a_payload_is_not_written_into_a_dataset() {
    let fixture = Fixture::small();
    let segment = fixture.file("00000.seg");
    let before = std::fs::read(&segment).unwrap();
    let run = fixture.run("get", ["--ordinal", "1", "--field", "image", "-o", segment.to_str().unwrap()]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("it would be inside a dataset"), "{}", run.stderr);
    assert_eq!(std::fs::read(&segment).unwrap(), before);
}

#[test]
fn more_threads_than_make_sense_are_refused() {
    for jobs in ["0", "100000", "-1x"] {
        let run = Fixture::small().run("verify", [format!("--jobs={jobs}")]);
        assert_eq!(run.status, 2);
        assert!(run.stderr.contains("the number of threads is 1 to 1024"), "{}", run.stderr);
    }
}

#[test]
fn a_url_is_named_as_such_wherever_a_path_is_given() {
    let place = Place::new();
    place.export("tar", "x.tar", numbered(5, 10));
    place.dataset("d", numbered(5, 10));
    for line in [
        "inspect s3://bucket/a.grain",
        "epoch gs://bucket/a.grain",
        "verify az://container/a.grain",
        "convert https://host/a.tar d2",
        "convert s3://bucket/{00..07}.tar d2",
        "convert x.tar s3://bucket/d2",
        "append s3://bucket/a.tar d",
        "append x.tar s3://bucket/a.grain",
        "export d s3://bucket/x.tar",
    ] {
        let error = place.error_of(line);
        assert!(
            error.contains(": URLs are not supported yet, only paths of this system\nhint: copy the data"),
            "{line}: {error}"
        );
    }
}

#[test]
fn what_the_libraries_report_is_printed_if_asked_for() {
    let place = Place::new();
    place.dataset("d", numbered(5, 10));
    assert_eq!(place.run_ok("epoch d --quiet").stderr, "");
    let run = place.run_ok("epoch d --quiet --log debug");
    for part in ["debug: open path=d", "info: epoch seed=0 epoch=0 order=", "epoch begins\n", "epoch ends batches="] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let mut command = place.command("epoch d --quiet");
    command.env("GRAINSTORE_LOG", "info");
    let run = finish(command);
    assert!(run.stderr.contains("epoch begins") && !run.stderr.contains("debug: "), "{}", run.stderr);
    let mut command = place.command("ls d");
    command.env("GRAINSTORE_LOG", "loud");
    let run = finish(command);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("expected error, warn, info or debug"), "{}", run.stderr);
}
