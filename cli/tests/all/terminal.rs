//! Names that come from data never reach a terminal raw: a file, key, column or archive member whose name contains an
//! escape sequence is printed escaped, by every command, on stdout and on stderr.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;

use grainstore_writer::{Sample, WriterOptions};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::Run;
use crate::common::flip_byte;
use crate::common::place::{Place, numbered, records};

/// A name that would colour the terminal red, rename its window and ring its bell. `\u{9b}` starts a sequence too.
const NAME: &str = "e\x1b[31m\x1b]0;x\x07\u{9b}1m";

/// A place, and a check of everything that commands print in it.
struct Terminal {
    place: Place,
}

impl Terminal {
    fn new() -> Self {
        Self { place: Place::new() }
    }

    /// Runs a line in which `N` is replaced by [`NAME`], wherever it is a letter by itself or starts a file name (`N.tar`).
    fn run(&self, line: &str) -> Run {
        let line = named(line);
        let run = self.place.run(&line);
        assert_plain(&line, &run);
        run
    }

    /// A run that fails and names what is wrong, escaped.
    fn assert_refused(&self, line: &str) {
        let run = self.run(line);
        assert_eq!(run.status, 2, "{line}: {run:?}");
        assert!(run.stderr.contains(r"\u{1b}[31m"), "{line} names nothing: {run:?}");
    }

    /// A run that succeeds.
    fn run_ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.status, 0, "{line}: {run:?}");
        run
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.place.put(&named(name), bytes);
    }

    /// A dataset of 20 samples.
    fn dataset(&self, name: &str) {
        self.place.dataset(&named(name), numbered(20, 3000));
    }

    /// A dataset of one sample with [`NAME`] as its key.
    fn dataset_with_escape_key(&self, name: &str) {
        let path = self.place.path(&named(name));
        let mut writer = grainstore_writer::DatasetWriter::create(&path, WriterOptions::default()).unwrap();
        writer.write(Sample::new(NAME, vec![b'x'; 5000])).unwrap();
        writer.finish().unwrap();
    }
}

fn named(line: &str) -> String {
    line.replace('N', NAME)
}

fn assert_plain(line: &str, run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        // JSON is for programs: its standard escapes fewer characters than a terminal interprets.
        let is_json = line.contains("--json");
        let is_control = |character: char| if is_json { character.is_ascii_control() } else { character.is_control() };
        let raw = text.chars().find(|&character| is_control(character) && !matches!(character, '\n' | '\t'));
        assert_eq!(raw, None, "{line:?} prints a control character on {stream}: {text:?}");
    }
}

#[test]
fn sources_that_cannot_be_read() {
    let terminal = Terminal::new();
    let place = &terminal.place;
    terminal.assert_refused("convert N d"); // no such file
    terminal.assert_refused("convert N/N d");
    terminal.assert_refused("convert N.csv d --from list");
    fs::create_dir(place.path(NAME)).unwrap();
    terminal.assert_refused("convert N d"); // an empty folder
    terminal.put("N/good", "1");
    symlink("nowhere", place.path(&named("N/Nlink"))).unwrap();
    terminal.assert_refused("convert N d");
    let run = terminal.run_ok("convert N d --skip-bad");
    assert!(run.stderr.contains(r"\u{1b}[31m"), "{run:?}");
    terminal.run_ok("convert N e --skip-bad --json");
    mknodat(CWD, place.path(&named("N/Npipe")), FileType::Fifo, Mode::RUSR, 0).unwrap();
    terminal.run("convert N f");
    terminal.run("convert N g --skip-bad");
    for format in ["tar", "tfrecord", "lmdb", "parquet", "list", "stream"] {
        terminal.put("Nbad", vec![0x41; 5000]);
        terminal.run(&format!("convert Nbad h --from {format}"));
        terminal.run(&format!("convert Nbad h --from {format} --skip-bad"));
        terminal.run(&format!("convert N h --from {format}"));
        terminal.run(&format!("adopt Nbad i --from {format}"));
        assert!(!place.path("h").exists(), "{format}");
    }
    terminal.assert_refused("convert Nbad N h");
    terminal.assert_refused("adopt Nmissing i");
    // With its bracket the name is a pattern, and one that matches nothing adds nothing.
    assert!(terminal.run_ok("append Nmissing d").stderr.contains(r"\u{1b}[31m"));
}

#[test]
fn damaged_archives_and_strange_members() {
    let terminal = Terminal::new();
    terminal.place.fixture("tar/webdataset.tar", "whole");
    let whole = terminal.place.read("whole");
    terminal.put("N.tar", &whole[..3000]);
    terminal.assert_refused("convert N.tar d");
    terminal.run_ok("convert N.tar d --skip-bad");
    terminal.assert_refused("adopt N.tar e");
    terminal.place.fixture("tfrecord/features.tfrecord", "records");
    let mut records = terminal.place.read("records");
    records[200] = b'X';
    terminal.put("N.tfrecord", &records[..700]);
    terminal.assert_refused("convert N.tfrecord f");
    terminal.run_ok("convert N.tfrecord f --skip-bad");
    terminal.place.fixture("parquet/all.parquet", "columns");
    let columns = terminal.place.read("columns");
    terminal.put("N.parquet", &columns[..columns.len() / 2]);
    terminal.run("convert N.parquet g");
    terminal.put("N.parquet", &columns);
    terminal.run("convert N.parquet g --field N=bytes");
    terminal.place.fixture("lmdb/named.mdb", "lmdb");
    terminal.put("N.mdb", terminal.place.read("lmdb"));
    terminal.run("convert N.mdb h");
    terminal.put("N.mdb", &terminal.place.read("lmdb")[..8192]);
    terminal.run("convert N.mdb i");
    // Members of a tar and keys of a stream, with the name in them; twice, so that they are duplicates.
    terminal.dataset_with_escape_key("wild");
    terminal.run_ok("export wild Nwild.tar --to tar");
    terminal.run("convert Nwild.tar Nwild.tar k");
    terminal.run("adopt Nwild.tar Nwild.tar k");
    terminal.run_ok("convert Nwild.tar k");
    terminal.run("append k Nwild.tar");
    terminal.run_ok("ls k");
    let stream = records_of(&[NAME, NAME]);
    terminal.put("N.stream", stream);
    terminal.assert_refused("convert N.stream l --from stream");
    terminal.run("convert N.stream l --from stream --on-duplicate last");
}

fn records_of(keys: &[&str]) -> Vec<u8> {
    records(keys.iter().map(|key| ((*key).to_owned(), b"payload".to_vec())))
}

#[test]
fn lists_that_name_files() {
    let terminal = Terminal::new();
    terminal.put("list.csv", named("path,offset,length\nN,0,1\n"));
    terminal.assert_refused("adopt list.csv d --from list");
    for list in [
        "path,Ncolumn\nx,Nvalue\ny\n",
        "path,offset,length\nx,N,1\n",
        "path,offset,length,N\nx,0,1,N\nx,0,1,2\n",
        "path,offset,length,key\nx,0,1,N\nx,1,1,N\n",
        "path,offset,length,key\nx,0,1,N\nx,0,9,N\n",
        "{\"path\": \"x\", \"N\": 1}\n",
        "{\"path\": \"\\u001b[31m\", \"offset\": 0, \"length\": 1}\n",
        "{\"path\": \"x\", \"\\u001b[31m\": 1}\n{\"\\u001b\": \"\\u001b[31m\"}\n",
    ] {
        terminal.put("x", "12");
        terminal.put("N.list", named(list));
        terminal.put("N/class/x", "12");
        for line in [
            "adopt N.list d --from list",
            "adopt N.list d --from list --skip-bad",
            "convert N.list e --from list",
            "convert N f --labels N.list",
        ] {
            terminal.run(line);
        }
        for dataset in ["d", "d.partial", "e", "f"] {
            let _ = fs::remove_dir_all(terminal.place.path(dataset));
        }
    }
}

#[test]
fn folders_whose_names_are_classes() {
    let terminal = Terminal::new();
    for class in ["Na", "Nb"] {
        terminal.put(&format!("source/{class}/Nfile"), class);
    }
    terminal.put("Nlabels.csv", named("N,label\nx"));
    terminal.run("convert source d --labels Nlabels.csv");
    terminal.run("convert source d --labels Nmissing.csv");
    terminal.run_ok("convert source d");
    terminal.run_ok("convert source N.grain");
    for line in ["inspect N.grain", "ls N.grain", "plan N.grain", "epoch N.grain", "verify N.grain"] {
        terminal.run_ok(line);
    }
    terminal.run("inspect d");
    terminal.run("plan d");
    terminal.run_ok("get N.grain Na/Nfile");
    terminal.run("export N.grain Nout --to folder");
    terminal.run("export N.grain Nout --to folder");
}

#[test]
fn datasets_and_what_is_asked_of_them() {
    let terminal = Terminal::new();
    terminal.dataset("N");
    for line in [
        "inspect N",
        "inspect N --json",
        "ls N",
        "plan N",
        "verify N",
        "epoch N",
        "epoch N --print-ordinals",
        "epoch N --state Nstate",
        "plan N --state Nstate",
        "rebuild-index N",
        "get N s00003 -o Nout",
        "convert N packed",
        "export N Nout.tar --to tar",
        "export N Nout.folder --to folder",
    ] {
        terminal.run(line);
    }
    for line in [
        "convert N N",
        "append N N",
        "get N s00003 -o missing/N",
        "get N s00003 -o N",
        "get N s00003 -o N/N",
        "get N s00003 --field N",
        "get N N",
        "ls N --subset N",
        "epoch N --subset Nlabel=1",
        "plan N --subset label<'N'",
        "epoch N --state N",
        "epoch N --state Nout.tar",
        "epoch N --order N",
        "epoch Nmissing",
        "epoch N Nmissing",
        "inspect Nmissing",
        "inspect Nout.tar",
        "verify Nmissing",
        "verify Nout.tar",
        "ls Nmissing",
        "plan Nmissing",
        "get Nmissing x",
        "bench Nmissing",
        "rebuild-index Nmissing",
        "export N Nout.tar --to tar",
        "export N N/Nx.tar --to tar",
        "export N missing/N.tar --to tar",
        "export N Nout.folder --to folder",
        "export Nmissing Nx.tar --to tar",
        "export N Nx --to N",
        "demo --in Nmissing/N",
        "N",
        "inspect --N",
    ] {
        let run = terminal.run(line);
        assert!([1, 2].contains(&run.status), "{line}: {run:?}");
    }
}

#[test]
fn damaged_datasets() {
    let terminal = Terminal::new();
    terminal.dataset_with_escape_key("N");
    flip_byte(&terminal.place.path(&named("N/00000.seg")), 5000);
    let run = terminal.run("verify N");
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.contains(r"\u{1b}[31m"), "{run:?}");
    for line in
        ["epoch N", "epoch N --skip-damaged", "get N N", "ls N", "export N Nout.tar --to tar", "verify N --json"]
    {
        terminal.run(line);
    }
    let manifest = String::from_utf8(terminal.place.read(&named("N/manifest.json"))).unwrap();
    for (from, to) in
        [("00000.seg", NAME), ("\"format\"", "\"\u{1b}[31m\""), ("grainstore", "\\u001b[31m"), ("{", NAME)]
    {
        terminal.put("N/manifest.json", manifest.replace(from, to));
        for line in ["inspect N", "verify N", "epoch N", "ls N", "rebuild-index N"] {
            let run = terminal.run(line);
            assert!(run.status != 0, "{line}: {run:?}");
        }
    }
    terminal.put("N/manifest.json", &manifest);
    let segment = terminal.place.read(&named("N/00000.seg"));
    terminal.put("N/00000.seg", &segment[..segment.len() / 2]);
    for line in ["inspect N", "verify N", "epoch N", "ls N", "get N N", "rebuild-index N"] {
        assert!(terminal.run(line).status != 0, "{line}");
    }
    fs::remove_file(terminal.place.path(&named("N/00000.seg"))).unwrap();
    for line in ["inspect N", "verify N", "epoch N", "get N N", "rebuild-index N"] {
        assert!(terminal.run(line).status != 0, "{line}");
    }
}

#[test]
fn adopted_files_that_changed() {
    let terminal = Terminal::new();
    terminal.place.export("tar", &named("N.tar"), numbered(20, 700));
    terminal.run_ok("adopt N.tar N");
    for line in ["inspect N", "verify N", "epoch N", "ls N", "get N s00001 -o out"] {
        terminal.run(line);
    }
    let mut bytes = terminal.place.read(&named("N.tar"));
    bytes[600] ^= 1;
    terminal.put("N.tar", &bytes);
    for line in ["verify N", "epoch N", "get N s00000 -o out", "epoch N --skip-damaged"] {
        terminal.run(line);
    }
    terminal.put("N.tar", &bytes[..2000]);
    for line in ["inspect N", "verify N", "epoch N", "get N s00019 -o out"] {
        terminal.run(line);
    }
    fs::remove_file(terminal.place.path(&named("N.tar"))).unwrap();
    for line in ["inspect N", "verify N", "epoch N", "get N s00000 -o out", "append N Nother"] {
        terminal.run(line);
    }
}

#[test]
fn json_has_no_character_that_a_terminal_acts_on() {
    let terminal = Terminal::new();
    // JSON itself allows these in a string, without an escape.
    let wild = "C\u{9b}31m\u{7f}\u{202e}D";
    for class in [wild, "E"] {
        fs::create_dir_all(terminal.place.path(&format!("classes/{class}"))).unwrap();
        fs::write(terminal.place.path(&format!("classes/{class}/1")), "x").unwrap();
    }
    terminal.run_ok("convert classes set");
    for line in ["ls set --json", "inspect set --json", "plan set --step 0 --keys --json"] {
        let run = terminal.run_ok(line);
        assert!(run.stdout.contains(r"\u009b31m\u007f\u202eD"), "{line}: {run:?}");
        let keys: Vec<serde_json::Value> =
            serde_json::Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect();
        assert!(format!("{keys:?}").contains(&format!("{wild:?}").trim_matches('"').to_owned()), "{line}: {keys:?}");
    }
}

#[test]
fn what_an_interrupted_conversion_left() {
    let terminal = Terminal::new();
    terminal.dataset("d");
    terminal.run_ok("export d N.tar --to tar");
    for left in ["N", "N.partial"] {
        terminal.put(&format!("{left}/Nforeign"), "x");
        for line in ["convert N.tar N", "convert N.tar N --overwrite", "convert N.tar N --restart", "adopt N.tar N"] {
            terminal.run(line);
        }
    }
    terminal.put("Nfile.partial", "x");
    terminal.assert_refused("convert N.tar Nfile");
    terminal.assert_refused("export d Nfile --to tar");
    terminal.put("Njournal.partial/progress.json", named("{\"N\": 1}"));
    terminal.assert_refused("convert N.tar Njournal");
    terminal.run("convert N.tar missing/N");
}
