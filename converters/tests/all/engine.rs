//! Conversions of an artificial source: the same bytes with any number of threads, and every sample once, also with
//! bad, long and duplicate samples.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use grainstore_converters::{
    ConvertError, ConvertOptions, ConvertSummary, Events, NoEvents, OnBad, OnDuplicate, OnKept, Order, Progress,
    convert,
};
use grainstore_sources::{
    Bad, BlockBuilder, Blocks, Description, Layout, Reach, RecordLocation, SampleReader, Source, SourcePart,
    SourceSample, WHOLE_LEN_MAX, stamp_of_parts,
};
use grainstore_writer::{Sample, StreamedSample, WriterOptions};
use proptest::prelude::*;

use crate::common::{files, samples, small};

/// A sample of the artificial source.
#[derive(Clone, Debug, PartialEq)]
enum Made {
    Sample {
        key: u16,
        len: u32,
    },
    Bad,
    /// The rest of the part is lost.
    End,
}

struct MadeSource {
    parts: Vec<Vec<Made>>,
    description: Description,
    seekable: bool,
}

impl MadeSource {
    fn new(parts: Vec<Vec<Made>>, seekable: bool) -> Self {
        let info = |number| SourcePart { path: format!("part-{number}").into(), len: 0, sample_count: None };
        let infos = (0..parts.len()).map(info).collect();
        let metadata = WriterOptions::plain_metadata().unwrap();
        let description = Description {
            not_adoptable: Some("it is made up".into()),
            ascends: true,
            ..Description::new("made-up", vec!["/nowhere/at/all".into()], metadata, infos)
        };
        Self { parts, description, seekable }
    }
}

impl Source for MadeSource {
    fn description(&self) -> &Description {
        &self.description
    }
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        let mut builder = BlockBuilder::default();
        for (number, made) in self.parts[part].iter().enumerate() {
            builder.push(number as u64, if let Made::Sample { len, .. } = made { u64::from(*len) } else { 0 });
            if *made == Made::End {
                break;
            }
        }
        Ok(self.seekable.then(|| builder.finish()))
    }
    fn open(&self, part: usize, position: u64, _layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let rest = &self.parts[part][usize::try_from(position).unwrap()..];
        Ok(Box::new(MadeSamples { path: self.description.parts[part].path.clone(), rest, long: Box::new(io::empty()) }))
    }
    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}

struct MadeSamples<'a> {
    path: PathBuf,
    rest: &'a [Made],
    long: Box<dyn Read>,
}

fn key_of(key: u16) -> Vec<u8> {
    format!("key {key}").into_bytes()
}

fn payload_of(key: u16, len: u32) -> Vec<u8> {
    let mut payload = vec![key.to_le_bytes()[0]; len as usize];
    payload.extend(key.to_le_bytes());
    payload
}

impl SampleReader for MadeSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let Some((made, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let bad = |reach| Err(Bad::new(&self.path, RecordLocation::default(), "it is bad", reach));
        match *made {
            Made::Bad => bad(Reach::Sample),
            Made::End => bad(Reach::Rest),
            Made::Sample { key, len } if u64::from(len) > WHOLE_LEN_MAX => {
                let payload = payload_of(key, len);
                let len = payload.len() as u64;
                self.long = Box::new(io::Cursor::new(payload));
                Ok(Some(SourceSample::Long {
                    sample: StreamedSample { key: key_of(key), len, ..Default::default() },
                    offset: 0,
                }))
            }
            Made::Sample { key, len } => {
                Ok(Some(SourceSample::Whole { sample: Sample::new(key_of(key), payload_of(key, len)), offset: 0 }))
            }
        }
    }
    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

fn pack(source: &MadeSource, path: &Path, options: &ConvertOptions) -> Result<ConvertSummary, ConvertError> {
    convert(source, path, options, &NoEvents)
}

/// The samples that are packed, found in the simplest way, in the order of the source.
fn kept(source: &MadeSource, on_duplicate: OnDuplicate) -> Vec<(Vec<u8>, Vec<u8>)> {
    let reached = |part: &Vec<Made>| part.iter().take_while(|made| **made != Made::End).cloned().collect::<Vec<_>>();
    let all: Vec<(u16, u32)> = (source.parts.iter().flat_map(reached))
        .filter_map(|made| if let Made::Sample { key, len } = made { Some((key, len)) } else { None })
        .collect();
    let mut chosen = BTreeMap::new();
    for (number, (key, _)) in all.iter().enumerate() {
        match on_duplicate {
            OnDuplicate::Last => drop(chosen.insert(key, number)),
            _ => drop(chosen.entry(key).or_insert(number)),
        }
    }
    let is_kept = |&(number, (key, _)): &(usize, &(u16, u32))| chosen[key] == number;
    all.iter().enumerate().filter(is_kept).map(|(_, &(key, len))| (key_of(key), payload_of(key, len))).collect()
}

fn parts() -> impl Strategy<Value = Vec<Vec<Made>>> {
    let made = prop_oneof![
        20 => (0..400_u16, prop_oneof![9 => 0..2000_u32, 1 => 60_000..200_000_u32]).prop_map(|(key, len)| Made::Sample { key, len }),
        1 => Just(Made::Bad),
        1 => Just(Made::End),
    ];
    proptest::collection::vec(proptest::collection::vec(made, 0..60), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_sample_is_packed_once_and_the_bytes_do_not_depend_on_threads(
        parts in parts(), seekable in any::<bool>(), seed in proptest::option::of(any::<u64>()), last in any::<bool>(),
    ) {
        let source = MadeSource::new(parts, seekable);
        let folder = tempfile::tempdir().unwrap();
        let order = seed.map_or(Order::Source, |seed| Order::Shuffled { seed });
        let on_duplicate = if last { OnDuplicate::Last } else { OnDuplicate::First };
        let mut expected = kept(&source, on_duplicate);
        let bad: usize = source.parts.iter().map(|part| {
            let reached = part.iter().take_while(|made| **made != Made::End);
            reached.filter(|made| **made == Made::Bad).count() + usize::from(part.contains(&Made::End))
        }).sum();
        for jobs in [1, 3, 16] {
            let jobs = NonZeroUsize::new(jobs);
            let segment_size = 512 << 10;
            let options = ConvertOptions { order, on_duplicate, on_bad: OnBad::Skip, jobs, segment_size, ..small() };
            let path = folder.path().join(format!("{}.grain", jobs.unwrap()));
            let packed = pack(&source, &path, &options);
            if expected.is_empty() {
                prop_assert!(packed.is_err());
                return Ok(());
            }
            let summary = packed.unwrap();
            prop_assert_eq!(summary.skipped.len(), bad);
            prop_assert_eq!(summary.written.samples, expected.len() as u64);
        }
        let mut found = samples(&folder.path().join("1.grain"));
        if seed.is_some() {
            found.sort();
            expected.sort();
        }
        prop_assert_eq!(found, expected);
        let first = files(&folder.path().join("1.grain"));
        prop_assert!(first == files(&folder.path().join("3.grain")));
        prop_assert!(first == files(&folder.path().join("16.grain")));
    }
}

fn distinct(parts: u16, each: u16, len: u32) -> Vec<Vec<Made>> {
    (0..parts).map(|part| (0..each).map(|n| Made::Sample { key: part * each + n, len }).collect()).collect()
}

#[test]
fn a_bad_sample_stops_a_conversion_unless_the_options_skip_it() {
    let mut parts = distinct(3, 10, 100);
    parts[1][4] = Made::Bad;
    for seekable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let source = MadeSource::new(parts.clone(), seekable);
        let error = pack(&source, &folder.path().join("x"), &small()).unwrap_err();
        assert_eq!(error.to_string(), "part-1: it is bad");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_duplicate_key_is_an_error_that_names_it() {
    let mut parts = distinct(2, 10, 100);
    parts[1][3] = Made::Sample { key: 5, len: 7 };
    let folder = tempfile::tempdir().unwrap();
    let error = pack(&MadeSource::new(parts, true), &folder.path().join("x"), &small()).unwrap_err();
    assert!(error.to_string().contains("duplicate key \"key 5\""), "{error}");
}

/// A long sample is packed: from its position, and from a stream in the middle of others.
#[test]
fn long_samples_are_packed_in_every_order_from_streams_too() {
    let mut parts = distinct(3, 5, 10);
    let long = u32::try_from(WHOLE_LEN_MAX).unwrap() + 5;
    parts[1][2] = Made::Sample { key: 900, len: long };
    for (seekable, order) in
        [(false, Order::Source), (false, Order::Shuffled { seed: 1 }), (true, Order::Shuffled { seed: 1 })]
    {
        let folder = tempfile::tempdir().unwrap();
        let source = MadeSource::new(parts.clone(), seekable);
        pack(&source, &folder.path().join("x"), &ConvertOptions { order, ..small() }).unwrap();
        let mut found = samples(&folder.path().join("x"));
        found.sort();
        let mut expected = kept(&source, OnDuplicate::First);
        expected.sort();
        assert!(found == expected, "{seekable} {order:?}");
    }
}

/// Stops after a number of samples.
struct StopsAfter {
    count: u64,
    seen: Cell<u64>,
}

impl Events for StopsAfter {
    fn on_progress(&self, progress: Progress) {
        self.seen.set(progress.samples);
    }
    fn cancelled(&self) -> bool {
        self.seen.get() >= self.count
    }
}

/// Twice the same sample is one, so its key is no error.
#[test]
fn long_samples_with_one_content_are_packed_once() {
    let long = |key, more: u64| Made::Sample { key, len: u32::try_from(WHOLE_LEN_MAX + more).unwrap() };
    let parts = vec![vec![long(1, 1), long(2, 1), Made::Bad], vec![long(1, 1), Made::Sample { key: 3, len: 5 }]];
    for seekable in [false, true] {
        let source = MadeSource::new(parts.clone(), seekable);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let options = ConvertOptions { on_bad: OnBad::Skip, skip_same_content: true, order: Order::Source, ..small() };
        let summary = pack(&source, &path, &options).unwrap();
        assert_eq!((summary.written.samples, summary.same_content.samples, summary.skipped.len()), (3, 1, 1));
        assert!(samples(&path).into_iter().map(|(key, _)| key).eq([key_of(1), key_of(2), key_of(3)]));
    }
}

/// Interrupted again and again, every few samples: the result is the same.
#[test]
fn a_resumed_conversion_ends_byte_for_byte_as_an_uninterrupted_one() {
    let mut parts = distinct(7, 6000, 3000);
    parts[2][7] = Made::Bad;
    parts[2][8] = Made::Bad;
    parts[4][5000] = Made::End;
    for (seekable, order, skip_same_content) in [
        (false, Order::Source, false),
        (true, Order::Source, true),
        (false, Order::Shuffled { seed: 3 }, true),
        (true, Order::Shuffled { seed: 3 }, false),
    ] {
        // Sample 3 again, or another one with its key.
        parts[5][1] = Made::Sample { key: 3, len: if skip_same_content { 3000 } else { 9000 } };
        let on_duplicate = if skip_same_content { OnDuplicate::Error } else { OnDuplicate::First };
        let source = MadeSource::new(parts.clone(), seekable);
        let options = ConvertOptions {
            order,
            on_bad: OnBad::Skip,
            on_duplicate,
            skip_same_content,
            on_kept: OnKept::Resume,
            // 120 segments; each is flushed to the disk, and thousands would take minutes.
            segment_size: 1 << 20,
            ..small()
        };
        let folder = tempfile::tempdir().unwrap();
        let (whole, pieces) = (folder.path().join("whole"), folder.path().join("pieces"));
        let at_once = pack(&source, &whole, &options).unwrap();
        assert_eq!(at_once.resumed_count, 0);
        let mut resumed = 0;
        for count in (2500..).step_by(5000) {
            let events = StopsAfter { count, seen: Cell::new(0) };
            match convert(&source, &pieces, &options, &events) {
                Err(ConvertError::Interrupted) => {}
                Err(error) => panic!("{error}"),
                Ok(summary) => {
                    assert_eq!(summary.skipped, at_once.skipped);
                    assert_eq!(summary.written.samples, at_once.written.samples);
                    assert_eq!(summary.duplicate_count + summary.same_content.samples, 1);
                    resumed = summary.resumed_count;
                    break;
                }
            }
        }
        assert!(resumed > 20_000, "only {resumed} samples had been packed before the last run");
        assert!(files(&whole) == files(&pieces), "{seekable} {order:?}");
    }
}
