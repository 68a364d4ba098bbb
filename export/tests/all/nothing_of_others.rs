//! An export creates its own files and touches nothing else: an existing output is refused, and an export that failed or
//! was stopped leaves nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_export::{Events, ExportError, ExportOptions, Format, Progress, Selection, export};
use grainstore_reader::{OnDamage, Reader, ReaderOptions};
use grainstore_writer::{Sample, WriterOptions};

use crate::common::{Made, rich, tree};

#[test]
fn an_output_that_exists_is_refused_and_not_changed() {
    for format in Format::ALL {
        let made = rich(5);
        let out = made.out("out");
        fs::create_dir(&out).unwrap();
        assert!(matches!(made.export("out", format), Err(ExportError::Exists { .. })));
        fs::remove_dir(&out).unwrap();
        symlink("nowhere", &out).unwrap();
        assert!(matches!(made.export("out", format), Err(ExportError::Exists { .. })));
        fs::remove_file(&out).unwrap();
        let partial = made.out("out.partial");
        fs::write(&partial, "somebody's").unwrap();
        let error = made.export("out", format).unwrap_err();
        assert!(matches!(error, ExportError::PartialExists { .. }) && error.to_string().ends_with(", remove it"));
        assert_eq!((fs::read_to_string(&partial).unwrap().as_str(), made.place.names().len()), ("somebody's", 1));
    }
}

#[test]
fn nothing_is_put_into_the_dataset_itself() {
    let made = rich(5);
    let there = || fs::read_dir(made.out("data.grain")).unwrap().count();
    let before = there();
    for format in Format::ALL {
        let error = made.export("data.grain/x", format).unwrap_err();
        assert!(error.to_string().contains("it would be inside the dataset "), "{error}");
    }
    assert_eq!(there(), before);
}

#[test]
fn a_slash_after_the_name_is_ignored() {
    for format in Format::ALL {
        let made = rich(5);
        made.export("out/", format).unwrap();
        assert!(made.out("out").exists());
    }
}

/// Stops after some samples, or creates something under the name of the output.
struct After<F: Fn() + Sync> {
    samples: u64,
    written: AtomicU64,
    then: F,
    stops: bool,
}

impl<F: Fn() + Sync> Events for After<F> {
    fn on_progress(&self, progress: Progress) {
        self.written.fetch_max(progress.samples, Ordering::Relaxed);
        if progress.samples >= self.samples {
            (self.then)();
        }
    }

    fn cancelled(&self) -> bool {
        self.stops && self.written.load(Ordering::Relaxed) >= self.samples
    }
}

#[test]
fn an_export_that_is_stopped_leaves_nothing() {
    for format in Format::ALL {
        let made = Made::of(
            WriterOptions::default(),
            (0..60_u8).map(|number| Sample::new([number + 65], vec![number; 1 << 20])),
        );
        let events = After { samples: 1, written: AtomicU64::new(0), then: || {}, stops: true };
        let all = Selection::all(&made.reader);
        let error = export(&made.reader, &all, &made.out("out"), &ExportOptions::to(format), &events).unwrap_err();
        assert!(matches!(error, ExportError::Interrupted), "{error}");
        assert!(made.place.names().is_empty(), "{:?}", made.place.names());
    }
}

#[test]
fn what_appears_under_the_name_in_the_meantime_is_not_replaced() {
    for (format, name) in [(Format::Folder, "out"), (Format::Tar, "out.tar"), (Format::Lmdb, "out")] {
        let made = rich(5);
        let out = made.out(name);
        let then = || fs::write(&out, "somebody's").unwrap();
        let events = After { samples: 5, written: AtomicU64::new(0), then, stops: false };
        let all = Selection::all(&made.reader);
        let error = export(&made.reader, &all, &out, &ExportOptions::to(format), &events).unwrap_err();
        assert!(matches!(error, ExportError::Exists { .. }), "{error}");
        assert_eq!((fs::read_to_string(&out).unwrap().as_str(), made.place.names().len()), ("somebody's", 1));
    }
}

/// A dataset of `lens`, with one byte of sample `damaged` changed.
fn damaged(lens: &[usize], damaged: u64) -> Made {
    let sample = |(number, len): (u8, &usize)| Sample::new([b'a' + number], vec![number + 1; *len]);
    let made = Made::of(WriterOptions::default(), (0..).zip(lens).map(sample));
    let location = made.reader.collection().locate(damaged).unwrap();
    let path = made.reader.collection().segment_path(location.segment).to_owned();
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset + location.stored_len / 2).unwrap()] ^= 1;
    fs::write(&path, bytes).unwrap();
    let reader = Reader::open(made.place.path("data.grain"), ReaderOptions::default()).unwrap();
    Made { reader, ..made }
}

#[test]
fn a_damaged_sample_ends_the_export_or_is_skipped_and_reported() {
    // The last one streams.
    for number in [1, 3] {
        let made = damaged(&[10, 20, 30, 20 << 20], number);
        for format in Format::ALL {
            let error = made.refusal("out", format);
            assert!(error.contains(&format!("sample {number} (key")) && error.contains("CRC-32"), "{error}");
            let options = ExportOptions { on_damage: OnDamage::Skip, ..ExportOptions::to(format) };
            let summary = made.export_with("out", &options).unwrap();
            assert_eq!((summary.samples, summary.skipped.len(), summary.skipped[0].ordinal), (3, 1, number));
            if format == Format::Folder {
                let names: Vec<String> = tree(&made.out("out")).into_keys().collect();
                assert_eq!(names, if number == 1 { ["a", "c", "d"] } else { ["a", "b", "c"] });
            }
            fs::remove_dir_all(made.out("out")).unwrap();
        }
    }
}

#[test]
fn long_samples_stream_into_every_format() {
    let long: Vec<u8> = (0..30_000_019_u32).map(|place| (place % 253).to_le_bytes()[0]).collect();
    let made = Made::keyed(&[(b"a", b"short"), (b"long", &long), (b"z", b"short")]);
    for format in Format::ALL {
        let summary = made.export("out", format).unwrap();
        assert_eq!(summary.payload_bytes, 30_000_029);
        let files = tree(&made.out("out"));
        let holds_it = |file: &Vec<u8>| {
            let start = file.windows(64).position(|window| window == &long[..64]);
            start.is_some_and(|start| file[start..].starts_with(&long))
        };
        assert!(files.values().any(holds_it), "{format}");
        fs::remove_dir_all(made.out("out")).unwrap();
    }
}
