//! An epoch shared by processes and resumed by others: `epoch --world --rank --tail --state`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use grainstore_format::{Manifest, to_usize};
use grainstore_reader::{EpochOptions, ReadError, Reader, ReaderOptions, StateError};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::common::{self, Fixture, Run, finish, grainstore, ordinals};

/// With 24 lanes, every rank owns whole lanes only if the world is 24 or a divisor of it.
const LANES: [&str; 4] = ["--order", "chunked", "--lanes", "24"];

/// Runs all ranks of a world at the same time.
fn ranks(fixture: &Fixture, world: u64, batch_size: u64, rest: impl Fn(u64) -> Vec<String>) -> Vec<Run> {
    let start = |rank: u64| {
        let mut process = grainstore();
        process.arg("epoch").arg(&fixture.path).args(["--engine", "pread", "--io", "buffered", "--print-ordinals"]);
        process.args(["--world", &world.to_string(), "--rank", &rank.to_string()]);
        process.args(["--batch-size", &batch_size.to_string()]).args(rest(rank));
        process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..world).map(start).collect();
    let ended = children.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    });
    ended.collect()
}

fn sorted(ordinals: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut sorted: Vec<u64> = ordinals.into_iter().collect();
    sorted.sort_unstable();
    sorted
}

/// RNK-1
#[test]
fn every_number_of_processes_reads_the_same_global_batches() {
    const GLOBAL_BATCH: u64 = 840;
    let fixture = Fixture::labelled(2000);
    let whole = ordinals(&fixture.run("plan", LANES).stdout);
    let batches: Vec<Vec<u64>> = whole.chunks(840).map(|batch| sorted(batch.iter().copied())).collect();
    for world in [1, 2, 3, 4, 5, 7, 8, 24] {
        let batch_size = to_usize(GLOBAL_BATCH / world);
        let runs = ranks(&fixture, world, GLOBAL_BATCH / world, |_| LANES.map(str::to_owned).to_vec());
        let shares: Vec<Vec<u64>> = runs.iter().map(|run| ordinals(&run.stdout)).collect();
        for (number, batch) in batches.iter().enumerate() {
            let of_rank = |share: &Vec<u64>| share.chunks(batch_size).nth(number).unwrap().to_vec();
            assert_eq!(sorted(shares.iter().flat_map(of_rank)), *batch, "world {world}, batch {number}");
        }
        for run in runs {
            assert_eq!(run.status, 0, "{}", run.stderr);
            let warned = run.stderr.contains(&format!("24 lanes cannot be divided among {world} ranks"));
            assert_eq!(warned, 24 % world != 0, "{}", run.stderr);
        }
    }
}

/// Files of the ranks' states, all with the same content.
struct States(tempfile::TempDir);

impl States {
    fn path(&self, rank: u64) -> PathBuf {
        self.0.path().join(format!("rank{rank}.json"))
    }

    /// The state that all ranks have left.
    fn common(&self, world: u64) -> String {
        let texts: Vec<String> = (0..world).map(|rank| fs::read_to_string(self.path(rank)).unwrap()).collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        texts[0].clone()
    }

    fn spread(&self, text: &str, world: u64) {
        (0..world).for_each(|rank| fs::write(self.path(rank), text).unwrap());
    }
}

/// STA-3
#[test]
fn an_epoch_that_is_stopped_again_and_again_is_resumed_by_any_number_of_processes() {
    let fixture = Fixture::labelled(300);
    let flags = ["--order", "chunked", "--lanes", "6", "--seed", "5", "--subset", "label != 3"];
    let whole = ordinals(&fixture.run("plan", flags).stdout);
    assert_eq!(whole.len(), 270);
    let states = States(tempfile::tempdir().unwrap());
    let mut left = 0;
    for (world, batch_size) in [(2, 10), (3, 12), (1, 7), (5, 9)].into_iter().cycle() {
        let rest = |rank| {
            let state = states.path(rank).to_str().unwrap().to_owned();
            let stop = ["--limit-seconds", "0", "--state"].map(str::to_owned);
            flags.map(str::to_owned).into_iter().chain(stop).chain([state]).collect()
        };
        let runs = ranks(&fixture, world, batch_size, rest);
        assert!(runs.iter().all(|run| run.status == 0), "{runs:?}");
        let end = whole.len().min(left + to_usize(world * batch_size));
        let read = sorted(runs.iter().flat_map(|run| ordinals(&run.stdout)));
        assert_eq!(read, sorted(whole[left..end].iter().copied()), "world {world} from {left}");
        left = end;
        let state = states.common(world);
        assert!(state.ends_with(&format!("\"position\":{left}}}\n")), "{state}");
        if left == whole.len() {
            break;
        }
        states.spread(&state, 5);
    }
    let state = states.path(0);
    let again = flags.into_iter().chain(["--state", state.to_str().unwrap()]);
    let run = fixture.run("epoch", again.clone());
    assert_eq!(
        (run.status, run.stdout.as_str()),
        (0, "[PATH]/data.grain: epoch 0 is complete: nothing is left to read\n")
    );
    assert_eq!(run.stderr, "hint: `--epoch 1` reads the next one; without the file this one starts over\n");
    let (status, document) = fixture.json("epoch", again);
    assert_eq!((status, &document["complete"], &document["read_bytes"]), (0, &json!(true), &json!(0)));
    assert_eq!((&document["position"], &document["samples"]), (&json!(270), &json!(0)));
}

#[test]
fn the_file_of_a_complete_epoch_serves_a_later_one_and_that_of_an_unfinished_one_does_not() {
    let fixture = Fixture::labelled(50);
    let state = fixture.folder.path().join("state");
    let run = |rest: &[&str]| fixture.run("epoch", ["--state", state.to_str().unwrap()].iter().chain(rest));
    assert_eq!(run(&["--batch-size", "20", "--limit-seconds", "0"]).status, 0);
    let refused = run(&["--epoch", "1"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    assert_eq!(
        refused.stderr,
        "grainstore: state is of epoch 0, not of 1\nhint: `--epoch 0` resumes the epoch; another `--state` file starts over\n"
    );
    assert!(run(&[]).stdout.contains(": 30 samples"));
    let next = run(&["--epoch", "1", "--print-ordinals"]);
    assert_eq!(ordinals(&next.stdout), ordinals(&fixture.run("plan", ["--epoch", "1"]).stdout));
    assert!(next.stderr.contains("  state        50 of the epoch's 50 samples, in [PATH]/state\n"), "{}", next.stderr);
    assert_eq!(run(&["--epoch", "0"]).status, 2, "it is of epoch 1 now");
}

#[test]
fn the_tail_is_dropped_shortened_or_padded() {
    let fixture = Fixture::labelled(10);
    let samples = |tail: &str| {
        let of_rank = |rank: u64| {
            let rank = rank.to_string();
            let flags = ["--world", "3", "--rank", &rank, "--batch-size", "2", "--tail", tail];
            let (status, document) = fixture.json("epoch", flags);
            assert_eq!(
                (status, &document["complete"], &document["rank"]),
                (0, &json!(true), &json!(rank.parse::<u64>().unwrap()))
            );
            assert_eq!(document["samples"], document["rank_samples"]);
            assert_eq!((&document["batches"], &document["tail"]), (&document["rank_batches"], &json!(tail)));
            ["batches", "samples", "padded_samples"].map(|key| document[key].as_u64().unwrap())
        };
        [0, 1, 2].map(of_rank)
    };
    assert_eq!(samples("drop"), [[1, 2, 0]; 3]);
    assert_eq!(samples("short"), [[2, 4, 0], [2, 3, 0], [2, 3, 0]]);
    assert_eq!(samples("pad"), [[2, 4, 0], [2, 4, 1], [2, 4, 1]]);
    let run = fixture.run("epoch", ["--world", "3", "--rank", "1", "--batch-size", "2", "--tail", "pad"]);
    assert!(run.stdout.contains("\n  rank         1 of 3, 2 batches of 2, tail pad\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\n  padded       the last 1 repeat the first of the epoch\n"), "{}", run.stdout);
    let run = fixture.run("epoch", ["--world", "6", "--rank", "0", "--batch-size", "2", "--tail", "drop"]);
    assert_eq!(run.status, 0);
    assert!(
        run.stdout.contains(": nothing to read: 10 samples left of epoch 0 do not fill a batch of every rank"),
        "{}",
        run.stdout
    );
}

/// Two processes that take the same share by mistake would train on half of the samples twice.
#[test]
fn one_of_several_ranks_must_say_which_it_is() {
    let fixture = Fixture::labelled(20);
    let error = "grainstore: --world is 4: specify which of them this is with --rank 0 to 3\n";
    for (command, rest) in
        [("epoch", &[][..]), ("epoch", &["--json"]), ("plan", &[]), ("plan", &["--step", "0", "--json"])]
    {
        let run = fixture.run(command, [&["--world", "4"], rest].concat());
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (2, "", error), "{command} {rest:?}");
    }
    for rest in [&["--mixing"][..], &["--json"]] {
        let run = fixture.run("plan", [&["--world", "4"], rest].concat());
        assert_eq!(run.status, 0, "{rest:?}: {}", run.stderr);
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence_with_a_hint() {
    let fixture = Fixture::labelled(20);
    for (flags, error, hint) in [
        (vec!["--world", "0"], "world is 0, expected 1 or more", "the default of `--world` is 1"),
        (
            vec!["--world", "3", "--rank", "3"],
            "rank is 3, expected 0 to 2 (world is 3)",
            "`--world` is the number of ranks",
        ),
        (vec!["--lanes", "21"], "number of lanes is 21, expected 1 to 20 (one sample a lane)", "without `--lanes`"),
        (vec!["--subset", "label > 9"], "subset has no samples, an epoch needs at least 1", "`grainstore ls` lists"),
        (
            vec!["--subset", "colour = 1"],
            "colour at column 1: no such attribute (there are: label, weight)",
            "`grainstore inspect`",
        ),
        (
            vec!["--tail", "pad", "--world", "90000000", "--rank", "0"],
            "all ranks' batches together have 23040000000 samples, expected at most 16777216 where they are padded",
            "`--tail short`",
        ),
        (
            vec!["--subset", "data contains 'a'"],
            "data at column 1: a field of the samples: expressions compare attributes, which are in the index",
            "only attributes can be compared",
        ),
        (vec!["--subset", "label = 1 and key_hash < 90"], "compared with 90, expected a number", "'key_hash < 0.9' is"),
        (vec!["--state", "/nowhere/state"], "/nowhere/state: cannot be written: No such file or directory", ""),
        (vec!["--state", "/proc"], "/proc: the state cannot be read: it is not a regular file", ""),
    ] {
        for command in ["epoch", "plan"] {
            if command == "plan" && hint.is_empty() {
                continue;
            }
            let run = fixture.run(command, &flags);
            assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{command} {flags:?}");
            assert!(run.stderr.contains(error), "{command} {flags:?}: {}", run.stderr);
            assert!(run.stderr.contains(&format!("\nhint: {hint}")) || hint.is_empty(), "{flags:?}: {}", run.stderr);
        }
    }
}

#[test]
fn a_state_of_anything_else_is_refused_and_left_as_it_is() {
    const CUT: &str = "the file is cut short, or not a state: delete it to start the epoch over";
    let fixture = Fixture::labelled(40);
    let state = fixture.folder.path().join("state");
    let flags = |rest: &[&'static str]| [&["--state", state.to_str().unwrap()], rest].concat();
    let begun = fixture.run("epoch", flags(&["--order", "chunked", "--batch-size", "8", "--limit-seconds", "0"]));
    assert_eq!(begun.status, 0, "{}", begun.stderr);
    let text = fs::read_to_string(&state).unwrap();
    let refused = |fixture: &Fixture, rest: &[&'static str], error: &str, hint: &str| {
        for command in ["epoch", "plan"] {
            let run = fixture.run(command, flags(rest));
            assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{command} {rest:?}");
            assert!(run.stderr.contains(error), "{command} {rest:?}: {}", run.stderr);
            assert!(run.stderr.contains(&format!("\nhint: {hint}")), "{command} {rest:?}: {}", run.stderr);
        }
    };
    refused(&fixture, &["--seed", "1"], "state is of seed 0, not of 1", "`--seed 0` resumes the epoch");
    refused(&fixture, &["--order", "full"], "state is of order chunked, not of full", "`--order chunked` resumes");
    refused(&fixture, &["--lanes", "2"], "state is of lanes 1, not of 2", "`--lanes 1` resumes the epoch");
    refused(&fixture, &["--group", "2"], "state is of group 1, not of 2", "`--group 1` resumes the epoch");
    refused(&fixture, &["--subset", "label < 5"], "not of ", "without `--subset` the epoch resumes");
    refused(&Fixture::labelled(3), &[], "state is of dataset ", "another `--state` file starts over");
    assert_eq!(fs::read_to_string(&state).unwrap(), text);
    for (content, error, hint) in [
        (text[..text.len() / 2].to_owned(), "/state: not a state of an epoch: EOF", CUT),
        (String::new(), "/state: not a state of an epoch: EOF", CUT),
        (" ".repeat((1 << 20) + 1), "/state: not a state of an epoch: it is longer than 1048576 bytes", CUT),
        (
            text.replace("\"mixture\":null", "\"mixture\":[]"),
            "/state: state is of a mixture, written by a newer",
            "upgrade",
        ),
        (
            text.replace("\"group\":1,\"mixture\":null,", ""),
            "/state: state has no member \"group\": a development version",
            "another `--state` file starts over",
        ),
        (r#"{"grainstore_state":0}"#.to_owned(), "/state: not a state of an epoch: it has no member", CUT),
        (
            r#"{"grainstore_state":2}"#.to_owned(),
            "/state: written by a newer grainstore: state version 2",
            "upgrade grainstore",
        ),
    ] {
        fs::write(&state, content).unwrap();
        refused(&fixture, &[], error, hint);
    }
    assert_eq!(names(fixture.folder.path()), ["data.grain", "state"]);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The command has filled the pipe and waits for its reader when the signal arrives, so most of the epoch is ahead.
#[test]
fn ctrl_c_leaves_a_state_that_counts_what_was_printed() {
    a_signal_leaves_a_state(Signal::INT);
}

/// As a cluster's scheduler sends it before it kills.
#[test]
fn so_does_sigterm() {
    a_signal_leaves_a_state(Signal::TERM);
}

fn a_signal_leaves_a_state(signal: Signal) {
    let fixture = Fixture::keyless(60_000);
    let state = fixture.folder.path().join("state");
    let flags = ["--print-ordinals", "--batch-size", "1", "--state", state.to_str().unwrap()];
    let mut process = grainstore();
    process.arg("epoch").arg(&fixture.path).args(flags);
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut printed = vec![0];
    stdout.read_exact(&mut printed).unwrap();
    assert!(!state.exists(), "nothing is written while the epoch runs");
    kill_process(Pid::from_child(&child), signal).unwrap();
    stdout.read_to_end(&mut printed).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = ordinals(&String::from_utf8(printed).unwrap());
    let (count, path) = (printed.len(), state.display());
    let messages = format!("state of position {count} of 60000 in {path}: the same command resumes from it\n");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), messages + "grainstore: interrupted\n");
    assert!(printed.len() < 60_000, "it read on to the end");
    let text = fs::read_to_string(&state).unwrap();
    assert!(text.ends_with(&format!("\"position\":{}}}\n", printed.len())), "{} lines, {text}", printed.len());
    let rest = ordinals(&fixture.run("epoch", flags).stdout);
    assert_eq!([printed, rest].concat(), ordinals(&fixture.run("plan", [""; 0]).stdout));
}

#[test]
fn a_damaged_sample_leaves_the_state_before_its_batch() {
    let fixture = Fixture::small();
    let dataset = grainstore_store::Dataset::open(&fixture.path).unwrap();
    common::flip_byte(dataset.segments()[0].path(), dataset.locate(2).unwrap().offset);
    let state = fixture.folder.path().join("state");
    let flags = ["--order", "sequential", "--batch-size", "1", "--state", state.to_str().unwrap()];
    let run = fixture.run("epoch", flags);
    let messages: Vec<&str> = run.stderr.lines().collect();
    assert_eq!((run.status, messages.len()), (2, 3), "{}", run.stderr);
    assert_eq!(messages[0], "state of position 2 of 5 in [PATH]/state: the same command resumes from it");
    assert!(
        messages[1].contains("CRC-32") && messages[2].starts_with("hint: `--skip-damaged` continues without it"),
        "{messages:?}"
    );
    assert!(fs::read_to_string(&state).unwrap().ends_with("\"position\":2}\n"));
    let run = fixture.run("epoch", flags.iter().chain(&["--skip-damaged", "--print-ordinals"]));
    assert_eq!((run.status, ordinals(&run.stdout)), (0, vec![3, 4]));
}

/// GEN-1
#[test]
fn a_state_from_before_samples_were_added_resumes_with_the_samples_of_that_time() {
    let fixture = Fixture::small();
    let manifest = Manifest::decode(&fs::read(fixture.file("manifest.json")).unwrap()).unwrap();
    let grown = Manifest::new(manifest.index().clone(), manifest.segments().to_vec(), &[1]).unwrap();
    fs::write(fixture.file("manifest.json"), grown.encode().unwrap()).unwrap();
    let open =
        |generation| Reader::open(&fixture.path, ReaderOptions { generation, ..ReaderOptions::default() }).unwrap();
    let older = open(Some(0));
    let samples = older.collection().sample_count();
    assert!((2..5).contains(&samples));
    let plan = older.plan(&EpochOptions { batch_size: 1.try_into().unwrap(), ..EpochOptions::default() }).unwrap();
    let path = fixture.folder.path().join("state");
    fs::write(&path, plan.state_after(1).to_string()).unwrap();

    let run = fixture.run("epoch", ["--print-ordinals", "--state", path.to_str().unwrap()]);
    assert_eq!((run.status, ordinals(&run.stdout)), (0, plan.plan().ordinals_from(1).collect()));
    assert!(
        run.stderr.starts_with(
            "[PATH]/data.grain: the state is of generation 0: samples that were added later are not read\n"
        ),
        "{}",
        run.stderr
    );
    assert_eq!(fixture.json("epoch", ["--epoch", "1", "--state", path.to_str().unwrap()]).1["samples"], json!(5));

    let resume = Some(plan.state_after(1));
    let error = open(None).plan(&EpochOptions { resume, ..EpochOptions::default() }).unwrap_err();
    assert!(matches!(error, ReadError::State(StateError::OfGeneration { found: 0, opened: 1 })), "{error}");
}

#[test]
fn a_pipe_that_nobody_reads_leaves_no_state() {
    let fixture = Fixture::keyless(60_000);
    let state = fixture.folder.path().join("state");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut process = grainstore();
    process.arg("epoch").arg(&fixture.path).args(["--print-ordinals", "--state"]).arg(&state).stdout(writer);
    assert_eq!(process.spawn().unwrap().wait().unwrap().code(), Some(0));
    assert!(!state.exists());
    let mut process = grainstore();
    process.arg("plan").arg(&fixture.path).arg("--state").arg(&state);
    let run = finish(process);
    assert!(run.status == 2 && run.stderr.contains("the state cannot be read: No such file"), "{}", run.stderr);
}
