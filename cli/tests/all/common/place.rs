//! A folder to work in: what the tests of `convert`, `append`, `adopt` and `export` share. The command runs in it, so
//! that it and the tests name files by their names.
#![allow(clippy::print_stderr, reason = "a test that was not run reports it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::{Run, finish, grainstore};

/// The folder; it goes away with it.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file here, in a folder if need be.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// A file that another program wrote, such as `tar/webdataset.tar`.
    pub fn fixture(&self, fixture: &str, name: &str) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sources/tests/fixtures");
        self.put(name, fs::read(fixtures.join(fixture)).unwrap());
    }

    /// A dataset, made by no command.
    pub fn dataset(&self, name: &str, samples: impl IntoIterator<Item = (String, Vec<u8>)>) {
        let mut writer = DatasetWriter::create(self.path(name), WriterOptions::default()).unwrap();
        samples.into_iter().for_each(|(key, payload)| writer.write(Sample::new(key, payload)).unwrap());
        writer.finish().unwrap();
    }

    /// These samples in files of another format: "tar", "tfrecord", "lmdb", "folder".
    pub fn export(&self, format: &str, name: &str, samples: impl IntoIterator<Item = (String, Vec<u8>)>) {
        self.dataset("exported.grain", samples);
        self.run_ok(&format!("export exported.grain {name} --to {format}"));
        fs::remove_dir_all(self.path("exported.grain")).unwrap();
    }

    /// `grainstore WORDS...` with the words of `line`, to be run here.
    pub fn command(&self, line: &str) -> Command {
        let mut command = grainstore();
        command.env_remove("GRAINSTORE_ALLOW_EXTERNAL").current_dir(self.folder.path()).args(line.split_whitespace());
        command
    }

    pub fn run(&self, line: &str) -> Run {
        finish(self.command(line))
    }

    /// A run that succeeds.
    pub fn run_ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.status, 0, "{line}: {run:?}");
        run
    }

    /// A run that fails with status 2: its messages.
    pub fn error_of(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{line}: {run:?}");
        run.stderr
    }

    /// The document of a run that succeeds and prints nothing else.
    pub fn json(&self, line: &str) -> Value {
        let run = self.run_ok(&format!("{line} --json"));
        assert_eq!(run.stderr, "", "{line}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// A run with these bytes on standard input.
    pub fn run_with_stdin(&self, line: &str, bytes: &[u8]) -> Run {
        let mut child = self.spawn(line, Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // The command may refuse before it has read all.
            scope.spawn(move || drop(stdin.write_all(bytes)));
            wait(child)
        })
    }

    /// Starts a run.
    pub fn spawn(&self, line: &str, stdin: Stdio) -> Child {
        self.command(line).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The files below a folder, by name.
    pub fn files(&self, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![self.path(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        let root = self.path(folder);
        found.into_iter().map(|(path, bytes)| (path.strip_prefix(&root).unwrap().to_owned(), bytes)).collect()
    }

    /// The names in this folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The rows of `ls`, sorted, without their ordinals.
    pub fn rows(&self, dataset: &str) -> Vec<String> {
        let listing = self.run_ok(&format!("ls {dataset}")).stdout;
        let mut rows: Vec<_> = listing.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect();
        rows.sort();
        rows
    }
}

/// Waits for a run.
pub fn wait(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Waits until `path` is there, while `child` runs.
pub fn until_there(path: &Path, child: &mut Child) {
    while !path.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {} was there", path.display());
        thread::yield_now();
    }
}

/// `count` samples of `len` bytes, each with different bytes.
pub fn numbered(count: u64, len: usize) -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..count).map(move |number| {
        let mut state = number + 1;
        let byte = std::iter::from_fn(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Some(state.to_le_bytes()[7])
        });
        (format!("s{number:05}"), byte.take(len).collect())
    })
}

/// A stream of records, as `--from stream` reads them.
pub fn records(samples: impl IntoIterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut stream = Vec::new();
    for (key, payload) in samples {
        stream.extend_from_slice(&u32::try_from(key.len()).unwrap().to_le_bytes());
        stream.extend_from_slice(key.as_bytes());
        stream.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        stream.extend_from_slice(&payload);
    }
    stream
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A separate small file system.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// One of 1 MiB; none where this user may not mount.
    pub fn mount(path: PathBuf) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let disk = Self::mounted("size=1m", &path).then(|| Self { path: path.clone() });
        if disk.is_none() {
            eprintln!("not tested: a full disk needs a user who may mount one");
        }
        disk
    }

    pub fn grow(&self) {
        assert!(Self::mounted("remount,size=64m", &self.path));
    }

    pub fn is_empty(&self) -> bool {
        fs::read_dir(&self.path).unwrap().next().is_none()
    }

    fn mounted(options: &str, path: &Path) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.path.display());
    }
}
