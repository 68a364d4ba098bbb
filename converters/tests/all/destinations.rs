//! Where a dataset may be written, what it may replace, and that a conversion which ends early leaves nothing.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use grainstore_converters::{ConvertError, ConvertOptions, Events, NoEvents, Progress, check_destination, convert};
use grainstore_sources::ListingError;
use grainstore_sources::SourceError;
use grainstore_sources::folder::FolderSource;
use grainstore_writer::WriteError;

use crate::common::{BY_PATH, FolderCase, keys, small};

fn refusal(source: &Path, destination: &Path, overwrite: bool) -> ConvertError {
    check_destination(source, destination, overwrite).unwrap_err()
}

#[test]
fn a_dataset_inside_its_source_is_refused_before_anything_is_written() {
    let place = FolderCase::with(&[("a/1", "x")]);
    let source = place.source();
    symlink(&source, place.path("link")).unwrap();
    for destination in [source.join("x.grain"), source.join("a/x.grain"), source.clone(), place.path("link/x.grain")] {
        let error = refusal(&source, &destination, false);
        assert!(matches!(&error, ConvertError::DestinationInsideSource { .. }), "{error}");
        let folder = FolderSource::open(&source, &BY_PATH.folder()).unwrap();
        assert!(convert(&folder, &destination, &small(), &NoEvents).is_err());
    }
    assert_eq!(fs::read_dir(source.join("a")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&source).unwrap().count(), 1);
}

#[test]
fn a_source_inside_what_would_be_replaced_or_emptied_is_refused() {
    let place = FolderCase::with(&[("a", "x")]);
    for name in ["outer", "outer.partial"] {
        fs::create_dir_all(place.path(name).join("data")).unwrap();
        fs::write(place.path(name).join("data/1"), "x").unwrap();
        let error = refusal(&place.path(name).join("data"), &place.path("outer"), true);
        assert!(matches!(&error, ConvertError::SourceInsideDestination { .. }), "{error}");
    }
}

#[test]
fn a_name_that_only_begins_like_the_source_is_fine() {
    let place = FolderCase::with(&[("a", "x")]);
    place.pack("src.grain", &BY_PATH).unwrap();
    assert_eq!(place.names(), ["src", "src.grain"]);
}

#[test]
fn an_existing_path_is_replaced_only_if_asked_and_only_if_it_is_a_dataset() {
    let place = FolderCase::with(&[("a", "x")]);
    place.pack("x.grain", &BY_PATH).unwrap();
    fs::write(place.source().join("b"), "y").unwrap();
    let error = place.pack("x.grain", &BY_PATH).unwrap_err();
    assert!(matches!(&error, ConvertError::Write(WriteError::DestinationExists { .. })), "{error}");
    assert_eq!(keys(&place.path("x.grain")), ["a"]);

    let replacing = ConvertOptions { overwrite: true, ..small() };
    place.pack_with("x.grain", &BY_PATH, &replacing).unwrap();
    assert_eq!(keys(&place.path("x.grain")), ["a", "b"]);

    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/notes"), "keep me").unwrap();
    let error = place.pack_with("mine", &BY_PATH, &replacing).unwrap_err();
    assert!(matches!(&error, ConvertError::Write(WriteError::NotReplaceable { .. })), "{error}");
    assert_eq!(fs::read_to_string(place.path("mine/notes")).unwrap(), "keep me");
    assert_eq!(place.names(), ["mine", "src", "x.grain"]);
}

#[test]
fn missing_empty_and_wrong_sources_and_missing_folders_have_errors_of_their_own() {
    let place = FolderCase::with(&[("a", "x")]);
    let open = |name: &str| FolderSource::open(&place.path(name), &BY_PATH.folder()).unwrap_err();
    fs::create_dir(place.path("empty")).unwrap();
    assert!(matches!(open("nothing"), SourceError::Listing(ListingError::MissingRoot { .. })));
    assert!(matches!(open("src/a"), SourceError::Listing(ListingError::NotAFolder { .. })));
    assert!(matches!(open("empty"), SourceError::Listing(ListingError::NoFiles { .. })));
    let error = place.pack("no/such/x.grain", &BY_PATH).unwrap_err();
    assert!(error.to_string().contains("no/such: cannot write into this folder"), "{error}");
    assert!(place.pack("..", &BY_PATH).is_err());
    assert_eq!(place.names(), ["empty", "src"]);
}

/// Stops after a number of samples, or in the middle of a long one.
struct Stops {
    after_bytes: u64,
    seen: Cell<u64>,
}

impl Events for Stops {
    fn on_progress(&self, progress: Progress) {
        self.seen.set(progress.bytes);
    }

    fn cancelled(&self) -> bool {
        self.seen.get() >= self.after_bytes
    }
}

#[test]
fn a_conversion_that_is_stopped_at_any_point_leaves_nothing() {
    let place = FolderCase::of(&(0..30).map(|number| (vec![b'a' + number], vec![number; 10_000])).collect());
    fs::File::create(place.source().join("~long")).unwrap().set_len(65 << 20).unwrap();
    // Before the first sample, among the small ones, in the middle of the long one, after the last. A segment that is
    // finished by then would be kept.
    let options = ConvertOptions { segment_size: 1 << 40, ..BY_PATH.options(&small()) };
    for after_bytes in [0, 1, 100_000, 300_000 + (5 << 20), 300_000 + (65 << 20)] {
        let source = FolderSource::open(&place.source(), &BY_PATH.folder()).unwrap();
        let events = Stops { after_bytes, seen: Cell::new(0) };
        let error = convert(&source, &place.path("x.grain"), &options, &events).unwrap_err();
        assert!(matches!(error, ConvertError::Interrupted), "{error}");
        assert_eq!(place.names(), ["src"], "stopped after {after_bytes} bytes");
    }
}
