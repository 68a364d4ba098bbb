//! The Python reader that was written from spec.md and order.md alone reads what the writer writes, and plans what the reader plans:
//! two programs that share only the specification. Where bits of a dataset are flipped, it returns the right bytes or
//! an error in a sentence.
//!
//! spec.md: CON-1 to CON-8, RD-1, PLN-1 to PLN-7 and the rules between them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroU32;
use std::path::Path;

use grainstore_format::{Alignment, to_usize};
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{EpochOptions, IoChoice, Reader, ReaderOptions};
use grainstore_store::Dataset;

use crate::common::Random;
use crate::second::{self, Packed, Python, Question, Recipe, listing};

/// Lengths around 4096, a sample of 10 chunks, and one of 8 chunks that is an extent by itself.
const EDGES: [usize; 14] = [0, 1, 4095, 4096, 4097, 40_960, 3, 8191, 0, 32_768, 32_767, 5, 12_293, 700];

fn recipes() -> Vec<Recipe> {
    let alignments = [
        Alignment::NoEdges,
        Alignment::multiple_of(8).unwrap(),
        Alignment::multiple_of(64).unwrap(),
        Alignment::multiple_of(4096).unwrap(),
    ];
    let names = ["no edges", "aligned to 8", "aligned to 64", "aligned to 4096"];
    let aligned = names
        .into_iter()
        .zip(alignments)
        .map(|(name, alignment)| Recipe { alignment, ..Recipe::plain(name, 4096, EDGES.repeat(4)) });
    let mut recipes: Vec<_> = aligned.collect();
    recipes.extend([
        Recipe::plain("one", 262_144, vec![5]),
        Recipe::plain("one of no bytes", 4096, vec![0]),
        Recipe::plain("edges", 4096, EDGES.repeat(10)),
        Recipe::plain("large chunks", 262_144, vec![100_000, 262_144, 7, 300_000, 0, 2_621_440, 1, 2_097_152]),
        Recipe::plain("mean of 64 KiB", 4096, vec![65_535, 65_537, 0, 131_072]),
        Recipe { lz4: true, keyed: false, ..Recipe::plain("keyless", 4096, EDGES.repeat(10)) },
        Recipe { attributes: true, segment_size: 1 << 40, ..Recipe::rich("rich in one segment", 300) },
        Recipe { keyed: false, ..Recipe::rich("rich without keys", 500) },
        Recipe::rich("small", 3000),
    ]);
    recipes
}

fn check_listing(python: &mut Python, packed: &Packed) {
    let listed = python.ask(&Question::new("ls", packed.path())).success();
    let expected = listing(packed, &packed.samples);
    let (listed, expected) = (String::from_utf8(listed).unwrap(), String::from_utf8(expected).unwrap());
    for (found, due) in listed.lines().zip(expected.lines()) {
        assert_eq!(found, due);
    }
    assert_eq!(listed.lines().count(), packed.samples.len());
}

fn check_singles(python: &mut Python, packed: &Packed) {
    let step = packed.samples.len().div_ceil(40);
    for (ordinal, sample) in packed.samples.iter().enumerate().step_by(step) {
        let question = Question::new("get", packed.path());
        let by_ordinal = python.ask(&question.clone().option("--ordinal", ordinal)).success();
        assert!(by_ordinal == sample.payload, "payload of sample {ordinal}");
        if !sample.key.is_empty() && !sample.key.contains(&b'\n') {
            let by_key = python.ask(&question.word(&sample.key)).success();
            assert!(by_key == sample.payload, "payload of the sample of key {:?}", sample.key);
        }
    }
    let absent = python.ask(&Question::new("get", packed.path()).word("no such key"));
    assert_eq!((absent.status, absent.stderr.as_str()), (1, "There is no such key.\n"));
    assert!(absent.stdout.is_empty());
}

fn check_fields(python: &mut Python, packed: &Packed) {
    let lines = python.ask(&Question::new("fields", packed.path())).lines();
    assert_eq!(lines.len(), packed.samples.len());
    for (line, sample) in lines.iter().zip(&packed.samples) {
        let whole = vec![Some(0..sample.payload.len() as u64)];
        let ranges = if sample.fields.is_empty() { &whole } else { &sample.fields };
        let parts = packed.schema.fields().iter().zip(ranges).map(|(field, range)| match range {
            None => format!("{}=none", field.name),
            Some(range) => {
                let part = &sample.payload[to_usize(range.start)..to_usize(range.end)];
                format!("{}={}:{:08x}", field.name, part.len(), second::crc32(part))
            }
        });
        assert_eq!(line, &parts.collect::<Vec<_>>().join(" "));
    }
}

/// 0, the limits of a 64-bit number, and numbers between them, equally often.
fn number(random: &mut Random) -> u64 {
    [0, 1, random.next(), u64::MAX][to_usize(random.below(4))]
}

fn epoch_options(sample_count: u64, chunk_size: u64, random: &mut Random) -> EpochOptions {
    let orders = [
        OrderChoice::Auto,
        OrderChoice::Fixed(Order::Full),
        OrderChoice::Fixed(Order::Chunked),
        OrderChoice::Fixed(Order::Chunked),
        OrderChoice::Fixed(Order::Chunked),
        OrderChoice::Fixed(Order::Sequential),
    ];
    let lanes = [None, None, Some(1), Some(sample_count), Some(1 + random.below(sample_count))];
    // Not smaller than a chunk: both readers refuse that.
    let windows = [EpochOptions::DEFAULT_WINDOW_LEN, chunk_size, chunk_size << random.below(8)];
    EpochOptions {
        order: orders[to_usize(random.below(6))],
        seed: number(random),
        epoch: number(random),
        lanes: lanes[to_usize(random.below(5))],
        group: NonZeroU32::new([0, 1, 2, 3, 40][to_usize(random.below(5))]),
        window_len: windows[to_usize(random.below(3))],
        ..EpochOptions::default()
    }
}

fn check_plans(python: &mut Python, path: &Path, count: u32) {
    let reader =
        Reader::open(path, ReaderOptions { io: IoChoice::Buffered, threads: 1, ..ReaderOptions::default() }).unwrap();
    let sample_count = reader.collection().sample_count();
    let mut random = Random(sample_count);
    for _ in 0..count {
        let options = epoch_options(sample_count, reader.collection().chunk_size().bytes(), &mut random);
        let mut question = Question::new("plan", path)
            .option("--order", options.order)
            .option("--seed", options.seed)
            .option("--epoch", options.epoch)
            .option("--window", options.window_len);
        if let Some(lanes) = options.lanes {
            question = question.option("--lanes", lanes);
        }
        if let Some(group) = options.group {
            question = question.option("--group", group);
        }
        let found: Vec<u64> = python.ask(&question).lines().iter().map(|line| line.parse().unwrap()).collect();
        let expected: Vec<u64> = reader.epoch(&options).unwrap().plan().ordinals_from(0).collect();
        assert!(found == expected, "{options:?} of {}", path.display());
    }
}

fn flip(path: &Path, byte: usize, bit: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[byte] ^= 1 << bit;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn the_second_reader_lists_and_gets_what_was_written() {
    let mut python = Python::start();
    for recipe in recipes() {
        let packed = recipe.pack();
        check_listing(&mut python, &packed);
        check_singles(&mut python, &packed);
        check_fields(&mut python, &packed);
        assert_eq!(python.ask(&Question::new("verify", packed.path())).lines(), [""; 0], "{}", recipe.name);
    }
}

/// PLN-1 to PLN-7, FPR-1, FPR-2
#[test]
fn the_second_reader_plans_the_same_epochs() {
    let mut python = Python::start();
    for recipe in recipes() {
        check_plans(&mut python, recipe.pack().path(), 20);
    }
}

/// FIL-2, FPR-2
#[test]
fn the_second_reader_opens_one_segment_of_several() {
    let packed = Recipe::rich("several", 700).pack();
    let dataset = Dataset::open(packed.path()).unwrap();
    assert!(dataset.segments().len() > 2);
    assert!(dataset.stored_bytes().unwrap() < dataset.payload_bytes().unwrap(), "some samples are LZ4");
    let mut python = Python::start();
    for segment in dataset.segments() {
        let ordinals = segment.ordinals();
        let samples = &packed.samples[to_usize(ordinals.start)..to_usize(ordinals.end)];
        let listed = python.ask(&Question::new("ls", segment.path())).success();
        assert!(listed == listing(&packed, samples), "{}", segment.path().display());
        check_plans(&mut python, segment.path(), 5);
    }
}

/// PLN-5
#[test]
fn both_readers_refuse_more_lanes_than_samples() {
    let packed = Recipe::plain("lanes", 4096, vec![10; 5]).pack();
    let reader = Reader::open(packed.path(), ReaderOptions::default()).unwrap();
    for lanes in [0, 6] {
        let question = Question::new("plan", packed.path()).option("--order", "chunked").option("--lanes", lanes);
        let answer = Python::start().ask(&question);
        assert_eq!((answer.status, answer.stdout.len()), (2, 0));
        let options = EpochOptions { order: Order::Chunked.into(), lanes: Some(lanes), ..EpochOptions::default() };
        assert!(reader.epoch(&options).is_err());
    }
}

/// ENT-5, RD-1
#[test]
fn the_status_of_the_command_line_reports_what_it_found() {
    let packed = Recipe::plain("damaged", 4096, vec![900; 20]).pack();
    let first = Question::new("get", packed.path()).option("--ordinal", 0);
    assert_eq!(Python::run_alone(&first).success(), packed.samples[0].payload);
    let verify = Question::new("verify", packed.path());
    assert_eq!(Python::run_alone(&verify).success(), b"");

    let location = Dataset::open(packed.path()).unwrap().locate(7).unwrap();
    flip(&packed.path().join("00000.seg"), to_usize(location.offset), 3);
    let damaged = Python::run_alone(&verify);
    let found = String::from_utf8(damaged.stdout).unwrap();
    assert_eq!((damaged.status, found.as_str()), (1, "Sample 7 is damaged: its checksum does not match.\n"));
    let refused = Python::run_alone(&Question::new("get", packed.path()).option("--ordinal", 7));
    assert_eq!((refused.status, refused.stdout.len()), (2, 0));
    assert_eq!(refused.stderr, found);
    assert_eq!(Python::run_alone(&first).success(), packed.samples[0].payload);
    let absent = Python::run_alone(&Question::new("verify", &packed.path().join("absent.grain")));
    assert_eq!((absent.status, absent.stdout.len()), (2, 0));
}

/// Checks that the answer is complete and right, or ends with one sentence; the output before the sentence is right
/// too.
fn right_or_refused(python: &mut Python, question: &Question, expected: &[u8]) -> bool {
    let answer = python.ask(question);
    if answer.status == 0 {
        assert!(answer.stdout == expected, "{question:?} answers something else");
        return false;
    }
    assert_eq!(answer.status, 2, "{question:?}: {}", answer.stderr);
    assert!(expected.starts_with(&answer.stdout), "{question:?} answers something else before it fails");
    assert!(answer.stderr.ends_with(".\n") && answer.stderr.lines().count() == 1, "{question:?}: {}", answer.stderr);
    true
}

/// RD-1
#[test]
fn a_flipped_bit_never_makes_the_second_reader_give_other_bytes() {
    let packed = Recipe { segment_size: 8_000, ..Recipe::rich("flipped", 40) }.pack();
    let (last, path) = (packed.samples.last().unwrap(), packed.path());
    let mut python = Python::start();
    let plan = Question::new("plan", path).option("--order", "chunked").option("--seed", 3);
    let planned = python.ask(&plan).success();
    let questions = [
        (Question::new("ls", path), listing(&packed, &packed.samples)),
        (Question::new("get", path).word(&last.key), last.payload.clone()),
        (plan, planned),
    ];
    let mut random = Random(17);
    let files = packed.files();
    assert!(files.len() > 3, "a manifest, an index and segments");
    let mut noticed = 0;
    for turn in 0..300 {
        let file = &files[to_usize(random.below(files.len() as u64))];
        let bytes = std::fs::read(file).unwrap();
        // Most of a small dataset is padding: two of three flips are outside it.
        let places: Vec<_> = (0..bytes.len()).filter(|&place| turn % 3 == 0 || bytes[place] != 0).collect();
        let place = places[to_usize(random.below(places.len() as u64))];
        flip(file, place, random.below(8));
        let refused = questions.each_ref().map(|(question, due)| right_or_refused(&mut python, question, due));
        let verified = python.ask(&Question::new("verify", path));
        assert_ne!(verified.status, -1, "{}", verified.stderr);
        if refused.contains(&true) {
            noticed += 1;
            assert_ne!(verified.status, 0, "verify misses byte {place} of {}", file.display());
        }
        std::fs::write(file, bytes).unwrap();
    }
    assert!(noticed > 100, "only {noticed} of 300 flips were noticed");
    assert!(questions.iter().all(|(question, due)| !right_or_refused(&mut python, question, due)));
}
