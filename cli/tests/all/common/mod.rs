//! What the tests of the command share: a small dataset that is always the same, and running the binary.
#![allow(unreachable_pub, reason = "what the tests share is public")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

pub mod place;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use grainstore_format::{
    Alignment, Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema,
    UserMetadata,
};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

/// A key that is neither UTF-8 nor fit for a terminal.
pub const WILD_KEY: &[u8] = b"wild\t\xff";

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A dataset in a directory that goes away with it.
pub struct Fixture {
    pub folder: TempDir,
    pub path: PathBuf,
}

impl Fixture {
    /// Five samples in two segments, two fields, two attributes with gaps; sample `i` has `i` KiB and a bit.
    pub fn small() -> Self {
        Self::write(small_options(), small_samples())
    }

    /// `count` samples without keys, 10 bytes each.
    pub fn keyless(count: u64) -> Self {
        let sample = |number: u64| Sample::new("", format!("{number:010}").into_bytes());
        Self::write(WriterOptions { keyed: false, ..WriterOptions::default() }, (0..count).map(sample))
    }

    /// `count` samples with keys and labels 0 to 9 in turn, about 100 bytes each, in chunks of 4 KiB.
    pub fn labelled(count: u64) -> Self {
        let label = Attribute { name: "label".into(), kind: AttributeType::Int64 };
        let weight = Attribute { name: "weight".into(), kind: AttributeType::Float32 };
        let schema =
            Schema::new(vec![label, weight], vec![Field { name: "data".into(), kind: FieldType::Bytes }]).unwrap();
        let metadata = Metadata { schema, user: UserMetadata::default() };
        let options = WriterOptions { geometry: small_options().geometry, ..WriterOptions::with_metadata(metadata) };
        let sample = |number: u64| Sample {
            attributes: vec![
                Some(AttributeValue::Int((number % 10).cast_signed())),
                Some(AttributeValue::Float32(0.5)),
            ],
            ..Sample::new(format!("key{number}"), vec![b'x'; 80 + usize::try_from(number % 41).unwrap()])
        };
        Self::write(options, (0..count).map(sample))
    }

    pub fn write(options: WriterOptions, samples: impl IntoIterator<Item = Sample>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.grain");
        let mut writer = DatasetWriter::create(&path, options).unwrap();
        samples.into_iter().for_each(|sample| writer.write(sample).unwrap());
        writer.finish().unwrap();
        Self { folder, path }
    }

    /// Runs `grainstore COMMAND DATASET REST...`. Paths and times in its output are replaced.
    pub fn run<S: AsRef<OsStr>>(&self, command: &str, rest: impl IntoIterator<Item = S>) -> Run {
        let run = self.run_unfiltered(command, rest);
        Run { status: run.status, stdout: self.filtered(&run.stdout), stderr: self.filtered(&run.stderr) }
    }

    pub fn run_unfiltered<S: AsRef<OsStr>>(&self, command: &str, rest: impl IntoIterator<Item = S>) -> Run {
        let mut process = grainstore();
        process.arg(command).arg(&self.path).args(rest);
        finish(process)
    }

    /// The document that `grainstore COMMAND DATASET REST... --json` prints, with its exit status.
    pub fn json<S: AsRef<OsStr>>(&self, command: &str, rest: impl IntoIterator<Item = S>) -> (i32, serde_json::Value) {
        let mut process = grainstore();
        process.arg(command).arg(&self.path).args(rest).arg("--json");
        let run = finish(process);
        let document = serde_json::from_str(&run.stdout);
        (run.status, document.unwrap_or_else(|error| panic!("{error}: {run:?}")))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn filtered(&self, text: &str) -> String {
        timeless(&text.replace(&*self.folder.path().to_string_lossy(), "[PATH]"))
    }
}

/// The numbers at the starts of the lines.
pub fn ordinals(stdout: &str) -> Vec<u64> {
    stdout.lines().map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect()
}

/// The binary, with nothing on stdin.
pub fn grainstore() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grainstore"));
    command.stdin(Stdio::null());
    command
}

/// Runs it and collects its output.
pub fn finish(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn small_options() -> WriterOptions {
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let field = |name: &str, kind| Field { name: name.into(), kind };
    let schema = Schema::new(
        vec![attribute("label", AttributeType::Int64), attribute("weight", AttributeType::Float32)],
        vec![field("image", FieldType::Bytes), field("caption", FieldType::Str)],
    )
    .unwrap();
    let user = UserMetadata::default().with_member("class_names", &serde_json::json!(["cat", "dog"])).unwrap();
    WriterOptions {
        geometry: Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment: Alignment::PACKED, hash_seed: 1 },
        segment_size: 12_000,
        ..WriterOptions::with_metadata(Metadata { schema, user })
    }
}

/// An image of `i` KiB of one letter and a caption; the last sample has no caption, no label, and a wild key.
pub fn small_samples() -> Vec<Sample> {
    let sample = |number: u8| {
        let (image_len, last) = (1024 * u64::from(number), number == 4);
        let mut payload = vec![b'a' + number; usize::from(number) * 1024];
        payload.extend_from_slice(format!("caption {number}").as_bytes());
        let payload_len = payload.len() as u64;
        Sample {
            key: if last { WILD_KEY.to_vec() } else { format!("cat/{number}.jpg").into_bytes() },
            attributes: vec![
                (!last).then_some(AttributeValue::Int(i64::from(number) - 1)),
                Some(AttributeValue::Float32(f32::from(number) / 10.0)),
            ],
            payload,
            fields: vec![Some(0..image_len), (!last).then_some(image_len..payload_len)],
        }
    };
    (0..5).map(sample).collect()
}

/// The same text without the values of some rows, which the test does not check.
pub fn without_values(text: &str, rows: &[&str]) -> String {
    let masked = |line: &str| match rows.iter().find(|row| line.starts_with(&format!("  {row:<12} "))) {
        Some(row) => format!("  {row:<12} ...\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(masked).collect()
}

/// Changes one byte of a file.
pub fn flip_byte(path: &Path, offset: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(offset).unwrap()] ^= 0x20;
    std::fs::write(path, bytes).unwrap();
}

/// `0.1 s` becomes `[TIME] s`, `3.2 MB/s` becomes `[RATE]`.
fn timeless(text: &str) -> String {
    text.lines().map(|line| timeless_line(line) + "\n").collect()
}

fn timeless_line(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for place in 1..words.len() {
        let unit = words[place].trim_end_matches([',', ':', ';']).to_owned();
        if words[place - 1].parse::<f64>().is_err() {
            continue;
        }
        if unit == "s" {
            words[place - 1] = "[TIME]".to_owned();
        } else if unit.ends_with("/s") {
            words[place] = words[place].replace(&unit, "[RATE]");
            words[place - 1] = String::new();
        }
    }
    words.join(" ").replace("  [RATE]", " [RATE]")
}
