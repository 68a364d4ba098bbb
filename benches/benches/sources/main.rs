//! Claims: a folder is packed as fast as `tar cf` copies it; TFRecord and tar files at 0.8 or more of `cp`'s speed; an
//! LMDB as fast as a cursor writes its values to one file; files are adopted at 0.9 of the speed of reading them once;
//! datasets are exported at 0.8 of the speed at which `cp` copies the output (`cp -r` for a folder); an adopted file is
//! read at 0.95 of a native dataset's speed.
//!
//! All cases are cold, and everything that is written is synced at its end, also the copies. Beside each claim is the
//! ratio to a copy that is not synced, like a user's `cp`.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod map;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use grainstore_benches::{
    Dataset, Fixture, Lengths, Report, Row, Target, bracketed, directory, drop_caches, epoch_options, is_selected,
    open_direct_at, scaled,
};
use grainstore_converters::{AdoptOptions, ConvertOptions, NoEvents, Order, adopt, convert};
use grainstore_export::{ExportOptions, Format, Selection, export};
use grainstore_reader::{Reader, ReaderOptions, plan};
use grainstore_sources::{SourceOptions, open_source};

/// The time of a copy: until its command ends, and until its bytes are on the device.
#[derive(Clone, Copy)]
struct Copied {
    s: f64,
    synced_s: f64,
}

fn main() {
    let mut report = Report::new("sources");
    for (name, payload_len, count) in [("110KB", 110_000, 8192), ("3KB", 3073, 100_000)] {
        let fixture = Fixture { keyed: true, ..Fixture::noise(scaled(count), Lengths::Same(payload_len)) };
        if ["folder", "tar", "tfrecord", "lmdb", "export", "epoch"]
            .iter()
            .any(|part| is_selected(&format!("{name}/{part}")))
        {
            Bench { name, dataset: fixture.build(), place: directory() }.run(&mut report);
        }
    }
    report.finish();
}

struct Bench {
    name: &'static str,
    dataset: Dataset,
    place: tempfile::TempDir,
}

impl Bench {
    fn run(&self, report: &mut Report) {
        let file = |format: Format, name: &str| {
            let out = self.path(name);
            self.export(&out, format);
            out
        };
        let (tar, tfrecord) = (file(Format::Tar, "in.tar"), file(Format::TfRecord, "in.tfrecord"));
        self.convert_case(report, "tar", &tar, Copy::Cp);
        self.convert_case(report, "tfrecord", &tfrecord, Copy::Cp);
        self.adopt_case(report, "tar", &tar);
        self.adopt_case(report, "tfrecord", &tfrecord);
        let lmdb = file(Format::Lmdb, "lmdb");
        self.convert_case(report, "lmdb", &lmdb, Copy::Walk);
        fs::remove_dir_all(&lmdb).unwrap();
        let folder = file(Format::Folder, "folder");
        self.convert_case(report, "folder", &folder, Copy::Tar);
        self.export_case(report, "tar", Format::Tar, &tar);
        self.export_case(report, "tfrecord", Format::TfRecord, &tfrecord);
        self.export_case(report, "folder", Format::Folder, &folder);
        fs::remove_dir_all(&folder).unwrap();
        self.epoch_case(report, "tar", &tar);
        self.epoch_case(report, "tfrecord", &tfrecord);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn selected(&self, case: &str) -> Option<String> {
        Some(format!("{}/{case}", self.name)).filter(|case| is_selected(case))
    }

    fn export(&self, out: &Path, format: Format) {
        let reader = Reader::open(self.dataset.path(), ReaderOptions::default()).unwrap();
        let selection = Selection::all(&reader);
        // One file, so that it can be copied by one command.
        let options = ExportOptions { shard_len: u64::MAX, ..ExportOptions::to(format) };
        export(&reader, &selection, out, &options, &grainstore_export::NoEvents).unwrap();
    }

    fn convert_case(&self, report: &mut Report, source: &str, path: &Path, copy: Copy) {
        for (order_name, order) in [("source", Order::Source), ("shuffled", Order::Shuffled { seed: 7 })] {
            let Some(case) = self.selected(&format!("{source}/{order_name}")) else { continue };
            let out = self.path("out.grain");
            let rounds = bracketed(
                || self.copy(copy, path),
                |_| {
                    self.cold();
                    let began = Instant::now();
                    let opened = open_source(&[path.to_owned()], &SourceOptions::default()).unwrap();
                    let how = ConvertOptions { order, ..ConvertOptions::default() };
                    let summary = convert(opened.as_ref(), &out, &how, &NoEvents).unwrap();
                    let elapsed_s = began.elapsed().as_secs_f64();
                    assert_eq!(summary.written.samples, self.dataset.fixture().samples);
                    fs::remove_dir_all(&out).unwrap();
                    elapsed_s
                },
            );
            self.add(report, &case, &rounds, copy.name(), Target::AtLeast(copy.target()));
        }
    }

    fn adopt_case(&self, report: &mut Report, source: &str, path: &Path) {
        let Some(case) = self.selected(&format!("{source}/adopt")) else { return };
        let out = self.path("adopted.grain");
        let rounds = bracketed(
            || self.read_once(path),
            |_| {
                self.cold();
                let began = Instant::now();
                let opened = open_source(&[path.to_owned()], &SourceOptions::default()).unwrap();
                adopt(opened.as_ref(), &out, &AdoptOptions::default(), &NoEvents).unwrap();
                let elapsed_s = began.elapsed().as_secs_f64();
                fs::remove_dir_all(&out).unwrap();
                elapsed_s
            },
        );
        self.add(report, &case, &rounds, "reading once", Target::AtLeast(0.9));
    }

    /// Compares an export with a copy of its output.
    fn export_case(&self, report: &mut Report, name: &str, format: Format, like: &Path) {
        let Some(case) = self.selected(&format!("export/{name}")) else { return };
        let out = self.path("out").with_extension(name);
        let copy = if like.is_dir() { Copy::CpFolder } else { Copy::Cp };
        let rounds = bracketed(
            || self.copy(copy, like),
            |_| {
                self.cold();
                let began = Instant::now();
                self.export(&out, format);
                let elapsed_s = began.elapsed().as_secs_f64();
                remove(&out);
                elapsed_s
            },
        );
        self.add(report, &case, &rounds, copy.name(), Target::AtLeast(0.8));
    }

    /// The same samples in the same order, in a native dataset and in an adopted file.
    fn epoch_case(&self, report: &mut Report, source: &str, path: &Path) {
        let (native, adopted) = (self.path("native.grain"), self.path("adopted.grain"));
        let open = || open_source(&[path.to_owned()], &SourceOptions::default()).unwrap();
        let how = ConvertOptions { order: Order::Source, ..ConvertOptions::default() };
        convert(open().as_ref(), &native, &how, &NoEvents).unwrap();
        adopt(open().as_ref(), &adopted, &AdoptOptions::default(), &NoEvents).unwrap();
        for (order_name, order) in [("chunked", plan::Order::Chunked), ("full", plan::Order::Full)] {
            let Some(case) = self.selected(&format!("epoch/{source}/{order_name}")) else { continue };
            let epoch = |path: &Path, number: u64| {
                self.cold();
                let reader = open_direct_at(path);
                let began = Instant::now();
                let epoch = reader.epoch(&epoch_options(order, number)).unwrap();
                let bytes: u64 = epoch.map(|batch| batch.unwrap().payload_bytes()).sum();
                assert_eq!(bytes, self.dataset.fixture().payload_bytes());
                let s = began.elapsed().as_secs_f64();
                Copied { s, synced_s: s }
            };
            let rounds = bracketed(|| epoch(&native, 1), |number| epoch(&adopted, number + 2).s);
            self.add(report, &case, &rounds, "native", Target::AtLeast(0.95));
        }
        fs::remove_dir_all(&native).unwrap();
        fs::remove_dir_all(&adopted).unwrap();
    }

    fn add(
        &self,
        report: &mut Report,
        case: &str,
        rounds: &grainstore_benches::Rounds<Copied, f64>,
        baseline: &str,
        target: Target,
    ) {
        let synced = rounds.ratio(|s| 1.0 / s, |copied| Some(1.0 / copied.synced_s));
        report.add(Row::claim(case, &format!("speed / {baseline}, as durable"), target, synced));
        let plain = rounds.ratio(|s| 1.0 / s, |copied| Some(1.0 / copied.s));
        report.add(Row::fact(case, &format!("speed / {baseline}, not synced"), plain));
        let bytes = self.dataset.fixture().payload_bytes() as f64;
        report.add(Row::fact(case, "MB/s", rounds.spread(|s| Some(bytes / 1e6 / s))));
    }

    /// Drops the bench's files from the page cache.
    fn cold(&self) {
        drop_caches(&self.dataset.path());
    }

    fn copy(&self, copy: Copy, path: &Path) -> Copied {
        self.cold();
        let out = self.path("copy");
        let began = Instant::now();
        match copy {
            Copy::Cp => run(Command::new("cp").arg(path).arg(&out)),
            Copy::CpFolder => run(Command::new("cp").arg("-r").arg(path).arg(&out)),
            Copy::Tar => run(Command::new("tar").arg("cf").arg(&out).arg("-C").arg(path).arg(".")),
            Copy::Walk => map::walk(path, &out),
        }
        let s = began.elapsed().as_secs_f64();
        // A folder is synced as an export does it: with its whole file system.
        run(Command::new("sync").args(out.is_dir().then_some("-f")).arg(&out));
        let synced_s = began.elapsed().as_secs_f64();
        remove(&out);
        Copied { s, synced_s }
    }

    fn read_once(&self, path: &Path) -> Copied {
        self.cold();
        let began = Instant::now();
        let (mut file, mut buffer) = (File::open(path).unwrap(), vec![0; 1 << 20]);
        while file.read(&mut buffer).unwrap() > 0 {}
        let s = began.elapsed().as_secs_f64();
        Copied { s, synced_s: s }
    }
}

/// The baseline of a conversion.
#[derive(Clone, Copy)]
enum Copy {
    Cp,
    CpFolder,
    Tar,
    Walk,
}

impl Copy {
    fn name(self) -> &'static str {
        match self {
            Self::Cp => "cp",
            Self::CpFolder => "cp -r",
            Self::Tar => "tar cf",
            Self::Walk => "a cursor walk",
        }
    }

    fn target(self) -> f64 {
        match self {
            Self::Cp | Self::CpFolder => 0.8,
            Self::Tar | Self::Walk => 1.0,
        }
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.unwrap();
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?} failed");
}
