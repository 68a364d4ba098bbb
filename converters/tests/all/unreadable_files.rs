//! Files that cannot be read, or that change while they are read: the conversion stops and leaves nothing, or
//! continues without them and reports them.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use grainstore_converters::{ConvertError, ConvertOptions, Events, Progress, convert};
use grainstore_sources::ListingError;
use grainstore_sources::SourceError;
use grainstore_sources::folder::FolderSource;

use crate::common::{BY_PATH, FolderCase, How, SKIPPING, keys, small};

/// A regular file whose length is reported as 0 and that has bytes: it grows whenever it is read.
const GROWING: &str = "/proc/self/status";

#[test]
fn a_file_that_grows_while_it_is_read_stops_the_conversion_and_nothing_is_left() {
    let place = FolderCase::with(&[("a", "1"), ("c", "3")]);
    symlink(GROWING, place.source().join("b")).unwrap();
    let error = place.pack("x.grain", &BY_PATH).unwrap_err();
    let path = place.source().join("b");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: cannot be packed: it grew while it was read: 0 bytes when opened, more than 0 read",
            path.display()
        )
    );
    assert!(error.is_skippable());
    assert_eq!(place.names(), ["src"]);
}

#[test]
fn a_file_that_grows_is_skipped_where_unreadable_files_are() {
    let place = FolderCase::with(&[("a", "1"), ("c", "3")]);
    symlink(GROWING, place.source().join("b")).unwrap();
    let summary = place.pack("x.grain", &SKIPPING).unwrap();
    assert_eq!(keys(&place.path("x.grain")), ["a", "c"]);
    assert_eq!(summary.skipped.len(), 1);
    assert_eq!(summary.skipped[0].path, place.source().join("b"));
    assert!(summary.skipped[0].why.text.contains("it grew"));
}

#[test]
fn a_link_that_leads_nowhere_stops_the_listing_or_is_skipped() {
    let place = FolderCase::with(&[("a", "1")]);
    symlink("nowhere", place.source().join("b")).unwrap();
    let error = place.pack("x.grain", &BY_PATH).unwrap_err();
    assert!(
        matches!(&error, ConvertError::Source(SourceError::Listing(ListingError::Unreadable { count: 1, .. }))),
        "{error}"
    );
    assert!(error.is_skippable());
    let summary = place.pack("x.grain", &SKIPPING).unwrap();
    assert_eq!(keys(&place.path("x.grain")), ["a"]);
    assert_eq!(summary.skipped[0].path, place.source().join("b"));
}

#[test]
fn a_file_that_goes_away_after_it_was_listed_is_named() {
    let place = FolderCase::with(&[("a", "1"), ("b", "2")]);
    let source = FolderSource::open(&place.source(), &BY_PATH.folder()).unwrap();
    fs::remove_file(place.source().join("b")).unwrap();
    let error = convert(&source, &place.path("x.grain"), &BY_PATH.options(&small()), &grainstore_converters::NoEvents)
        .unwrap_err();
    assert!(matches!(&error, ConvertError::Source(SourceError::Bad(bad)) if bad.path.ends_with("b")), "{error}");
    assert_eq!(place.names(), ["src"]);
}

#[test]
fn the_skipped_files_are_reported_in_the_order_of_the_source() {
    let place = FolderCase::with(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let source = FolderSource::open(&place.source(), &SKIPPING.folder()).unwrap();
    for name in ["d", "b"] {
        fs::remove_file(place.source().join(name)).unwrap();
    }
    let summary =
        convert(&source, &place.path("x.grain"), &SKIPPING.options(&small()), &grainstore_converters::NoEvents)
            .unwrap();
    let paths: Vec<&Path> = summary.skipped.iter().map(|skipped| skipped.path.as_path()).collect();
    assert_eq!(paths, [place.source().join("b"), place.source().join("d")]);
    assert_eq!(summary.written.samples, 2);
}

#[test]
fn a_source_of_which_nothing_can_be_read_makes_no_dataset() {
    let place = FolderCase::with(&[("a", "1"), ("b", "2")]);
    let source = FolderSource::open(&place.source(), &SKIPPING.folder()).unwrap();
    for name in ["a", "b"] {
        fs::remove_file(place.source().join(name)).unwrap();
    }
    let error = convert(&source, &place.path("x.grain"), &SKIPPING.options(&small()), &grainstore_converters::NoEvents)
        .unwrap_err();
    assert!(error.to_string().ends_with("src: none of its 2 samples could be read"), "{error}");
    assert_eq!(place.names(), ["src"]);
}

/// Cuts or extends a file when the conversion has read a little of it.
struct Changes<'a> {
    path: &'a Path,
    len: u64,
}

impl Events for Changes<'_> {
    fn on_progress(&self, progress: Progress) {
        if (1 << 20..2 << 20).contains(&progress.bytes) {
            fs::File::options().write(true).open(self.path).unwrap().set_len(self.len).unwrap();
        }
    }
}

/// One segment, so that none is finished, and kept, before the file changes.
fn whole(how: &How) -> ConvertOptions {
    ConvertOptions { segment_size: 1 << 40, ..how.options(&small()) }
}

#[test]
fn a_streamed_file_that_changes_is_an_error_or_skipped_and_the_rest_is_whole() {
    const LEN: u64 = 66 << 20;
    for (new_len, change) in [(2 << 20, "shrank"), (LEN + 1, "grew")] {
        let place = FolderCase::with(&[("a", "1"), ("b", ""), ("c", "3")]);
        let path = place.source().join("b");
        let pack = |how: &How| {
            fs::File::create(&path).unwrap().set_len(LEN).unwrap();
            let source = FolderSource::open(&place.source(), &how.folder()).unwrap();
            convert(&source, &place.path("x.grain"), &whole(how), &Changes { path: &path, len: new_len })
        };
        let error = pack(&BY_PATH).unwrap_err();
        assert!(matches!(&error, ConvertError::Source(SourceError::Bad(bad)) if bad.path.ends_with("b")), "{error}");
        assert!(error.to_string().contains(change), "{error}");
        assert_eq!(place.names(), ["src"]);
        assert_eq!(pack(&SKIPPING).unwrap().skipped.len(), 1);
        assert_eq!(keys(&place.path("x.grain")), ["a", "c"]);
    }
}
