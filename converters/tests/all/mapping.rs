//! Samples that pass through a function: in the place of the source's, left out, or refused.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use grainstore_converters::{ConvertError, ConvertOptions, MapSample, Mapped, NoEvents, OnBad, OnKept, Order, convert};
use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_sources::{Remark, Source};
use grainstore_writer::Sample;

use crate::common::{FolderCase, Tree, files, samples, small};

/// Leaves out every third sample and reverses the bytes of the others. While `fails` is set, it refuses one sample.
struct Function {
    fails: AtomicBool,
}

impl MapSample for Function {
    fn map(&self, mut sample: Sample) -> Result<Option<Sample>, Remark> {
        if sample.key == b"0200" && self.fails.load(Relaxed) {
            return Err("it is number 200".into());
        }
        sample.payload.reverse();
        Ok(Some(sample).filter(|sample| !is_left_out(&sample.key)))
    }
}

fn is_left_out(key: &[u8]) -> bool {
    std::str::from_utf8(key).unwrap().parse::<u32>().unwrap() % 3 == 0
}

fn made() -> Tree {
    let content = |number: u32| (0..3000).map(|place| (place * number % 251) as u8).collect();
    (0..300).map(|number| (format!("{number:04}").into_bytes(), content(number))).collect()
}

fn pack(case: &FolderCase, name: &str, function: &Function, options: &ConvertOptions) -> Result<u64, ConvertError> {
    let source = FolderSource::open(&case.source(), &FolderOptions::default())?;
    let metadata = source.description().metadata.clone();
    let mapped = Mapped::new(&source, metadata, function, 1);
    convert(&mapped, &case.path(name), options, &NoEvents).map(|summary| summary.left_out_count)
}

fn assert_is_the_mapped_tree(path: &Path) {
    let mut found = samples(path);
    found.sort();
    let turned = |(key, mut content): (Vec<u8>, Vec<u8>)| {
        content.reverse();
        (key, content)
    };
    let expected: Vec<_> = made().into_iter().filter(|(key, _)| !is_left_out(key)).map(turned).collect();
    assert!(found == expected);
}

#[test]
fn packs_what_the_function_makes_and_counts_what_it_leaves_out() {
    let case = FolderCase::of(&made());
    for order in [Order::Source, Order::Shuffled { seed: 5 }] {
        let function = Function { fails: AtomicBool::new(false) };
        let name = order.to_string();
        assert_eq!(pack(&case, &name, &function, &ConvertOptions { order, ..small() }).unwrap(), 100);
        assert_is_the_mapped_tree(&case.path(&name));
    }
}

#[test]
fn a_conversion_that_the_function_stopped_resumes_byte_for_byte() {
    let case = FolderCase::of(&made());
    let function = Function { fails: AtomicBool::new(false) };
    for order in [Order::Source, Order::Shuffled { seed: 5 }] {
        let options = ConvertOptions { order, on_kept: OnKept::Resume, ..small() };
        let (whole, pieces) = (format!("whole {order}"), format!("pieces {order}"));
        pack(&case, &whole, &function, &options).unwrap();
        function.fails.store(true, Relaxed);
        let error = pack(&case, &pieces, &function, &options).unwrap_err();
        assert!(error.to_string().ends_with("0200: \"0200\": it is number 200"), "{error}");
        function.fails.store(false, Relaxed);
        assert_eq!(pack(&case, &pieces, &function, &options).unwrap(), 100);
        assert!(files(&case.path(&whole)) == files(&case.path(&pieces)), "{order}");
    }
}

#[test]
fn a_sample_that_the_function_refuses_can_be_skipped() {
    let case = FolderCase::of(&made());
    let function = Function { fails: AtomicBool::new(true) };
    let options = ConvertOptions { on_bad: OnBad::Skip, ..small() };
    assert_eq!(pack(&case, "x", &function, &options).unwrap(), 100);
    assert_eq!(samples(&case.path("x")).len(), 199);
}
