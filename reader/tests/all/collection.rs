//! Several datasets read as one: every way of reading returns the samples of all members, and the plan is that of the
//! members' extents end to end. The datasets have several chunk sizes and segments; one is given twice.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{Alignment, DatasetFingerprint, to_usize};
use grainstore_reader::plan::{ExtentsBuilder, Order, Plan, PlanSpec};
use grainstore_reader::{EpochOptions, IoChoice, Reader, ReaderOptions};
use grainstore_store::{Collection, Dataset, OpenOptions};
use proptest::prelude::*;

use crate::common::{Made, ORDERS, Random, Shape, epoch_options};

const CHUNK: usize = 4096;

/// Lengths around the limits for chunks of 4, 8 and 16 KiB: a sample that is an extent by itself in one dataset is none
/// in another.
fn payload_len() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, CHUNK, 3 * CHUNK + 5, 8 * CHUNK, 16 * CHUNK + 1, 32 * CHUNK]);
    prop_oneof![8 => 0..900_usize, 2 => edge]
}

/// Datasets with the same schema.
fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let own = (any::<u64>(), 0_u32..3, prop::collection::vec(payload_len(), 1..40), 20_000_u64..90_000, any::<bool>());
    (prop::collection::vec(own, 1..4), any::<(bool, bool)>()).prop_map(|(members, (keyed, several_fields))| {
        let shape = |(seed, log2, payload_lens, segment_size, lz4)| Shape {
            seed,
            chunk_size: (CHUNK as u64) << log2,
            payload_lens,
            keyed,
            lz4,
            several_fields,
            attributes: true,
            alignment: Alignment::PACKED,
            segment_size,
        };
        members.into_iter().map(shape).collect()
    })
}

fn options(io: IoChoice) -> ReaderOptions {
    ReaderOptions { io, threads: 2, ..ReaderOptions::default() }
}

fn paths(made: &[Made]) -> Vec<&Path> {
    made.iter().map(Made::path).collect()
}

/// The payloads of all members, end to end.
fn payloads(made: &[Made]) -> Vec<&[u8]> {
    made.iter().flat_map(|made| made.samples.iter().map(|sample| sample.payload.as_slice())).collect()
}

fn check_samples(made: &[Made], reader: &Reader, random: &mut Random) {
    let payloads = payloads(made);
    let samples: Vec<_> = made.iter().flat_map(|made| &made.samples).collect();
    let collection = reader.collection();
    for (ordinal, sample) in (0..).zip(&samples) {
        let found = reader.get(ordinal).unwrap();
        assert_eq!((found.ordinal, &found.payload), (ordinal, &sample.payload));
        assert!(sample.fields.is_empty() || found.fields() == sample.fields);
        assert_eq!(collection.attributes(ordinal).unwrap(), sample.attributes);
        let first = samples.iter().position(|other| other.key == sample.key).filter(|_| collection.is_keyed());
        let by_key = reader.get_by_key(&sample.key).unwrap().map(|sample| sample.ordinal);
        assert_eq!(by_key, first.map(|place| place as u64));
    }
    for len in [0, 1, 100] {
        let ordinals: Vec<u64> = (0..len).map(|_| random.below(samples.len() as u64)).collect();
        let batch = reader.get_batch(&ordinals).unwrap();
        assert!(batch.payloads().eq(ordinals.iter().map(|&ordinal| payloads[to_usize(ordinal)])));
    }
}

fn check_epoch(made: &[Made], reader: &Reader, options: &EpochOptions) {
    let (payloads, mut visited) = (payloads(made), Vec::new());
    let mut epoch = reader.epoch(options).unwrap();
    let plan = epoch.plan().clone();
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        assert!(batch.payloads().eq(batch.ordinals().iter().map(|&ordinal| payloads[to_usize(ordinal)])));
        visited.extend_from_slice(batch.ordinals());
    }
    assert!(visited.iter().copied().eq((0..plan.len()).map(|position| plan.at(position))));
    visited.sort_unstable();
    assert!(visited.into_iter().eq(0..payloads.len() as u64), "each sample once");
    let payload_bytes = payloads.iter().map(|payload| payload.len() as u64).sum::<u64>();
    let stats = epoch.stats();
    assert_eq!((stats.payload_bytes, stats.stored_bytes), (payload_bytes, reader.collection().stored_bytes().unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn every_way_of_reading_gives_the_samples_of_all_members(shapes in shapes(), twice in any::<bool>()) {
        let mut made: Vec<Made> = shapes.iter().map(Shape::write).collect();
        if twice {
            made.push(shapes[0].write());
        }
        let mut random = Random(shapes[0].seed);
        for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
            let reader = Reader::open_all(&paths(&made), options(io)).unwrap();
            check_samples(&made, &reader, &mut random);
            for order in ORDERS {
                let window_len = 16 * CHUNK as u64 * (1 + random.below(20));
                let batch_size = std::num::NonZeroUsize::new(1 + to_usize(random.below(30))).unwrap();
                check_epoch(&made, &reader, &EpochOptions { window_len, batch_size, ..epoch_options(order) });
            }
        }
    }
}

/// The extents of each member by PLN-2, one after the other.
fn extents_end_to_end(made: &[Made]) -> Vec<std::ops::Range<u64>> {
    let (mut all, mut start) = (Vec::new(), 0);
    for made in made {
        let extents = made.reader(IoChoice::Buffered).extents().unwrap();
        all.extend((0..extents.count()).map(|extent| extents.samples(extent)).map(|e| e.start + start..e.end + start));
        start += extents.sample_count();
    }
    all
}

/// Datasets of different chunk sizes, with samples that are an extent by themselves in one and not in the other.
fn different_chunks() -> Vec<Made> {
    let lens = |count: usize| (0..count).map(|i| if i % 10 == 9 { 9 * CHUNK } else { 300 + i }).collect();
    [(1, 4096, 60), (2, 1 << 16, 500), (3, 8192, 90)]
        .map(|(seed, chunk_size, count)| Shape { seed, ..Shape::plain(chunk_size, lens(count)) }.write())
        .into()
}

/// PLN-8
#[test]
fn the_plan_is_that_of_the_extents_of_all_members_end_to_end() {
    let made = different_chunks();
    let reader = Reader::open_all(&paths(&made), options(IoChoice::Buffered)).unwrap();
    let extents = reader.extents().unwrap();
    let found: Vec<_> = (0..extents.count()).map(|extent| extents.samples(extent)).collect();
    assert_eq!(found, extents_end_to_end(&made));
    // Extents of these lengths: chunks that own this number of samples, none of them long.
    let mut builder = ExtentsBuilder::new(1 << 20);
    found.iter().for_each(|extent| builder.chunk(extent.end - extent.start, 0).unwrap());
    let mut chain = DatasetFingerprint::new();
    for made in &made {
        let dataset = Dataset::open(made.path()).unwrap();
        chain.push(dataset.fingerprint(), dataset.sample_count());
    }
    let spec = PlanSpec {
        extents: Arc::new(builder.finish()),
        seed: 11,
        epoch: 3,
        fingerprint: chain.get().0,
        order: Order::Chunked,
        // PLN-7 with chunks of 64 KiB: the window holds 5 of them. It would hold 6 extents of mean length.
        lanes: 3,
        group: NonZeroU32::MIN,
    };
    let plan = Plan::new(spec).unwrap();
    let options = EpochOptions { window_len: 5 << 16, ..epoch_options(Order::Chunked) };
    let epoch = reader.epoch(&options).unwrap();
    assert_eq!(epoch.lanes(), Some(3));
    assert!(epoch.plan().ordinals_from(0).eq(plan.ordinals_from(0)));
}

/// PLN-8
#[test]
fn one_dataset_has_the_same_order_alone_and_as_a_collection() {
    let made = Shape::plain(4096, vec![300; 400]).write();
    let dataset = Dataset::open(made.path()).unwrap();
    let options = || options(IoChoice::Buffered);
    let readers = [
        made.reader(IoChoice::Buffered),
        Reader::open_all(&[made.path()], options()).unwrap(),
        Reader::new(dataset.clone(), options()).unwrap(),
        Reader::new(Collection::of(vec![dataset.clone()]).unwrap(), options()).unwrap(),
    ];
    for order in ORDERS {
        let plans = readers.iter().map(|reader| reader.epoch(&epoch_options(order)).unwrap().plan().clone());
        let orders: HashSet<Vec<u64>> = plans.map(|plan| plan.ordinals_from(0).collect()).collect();
        assert_eq!(orders.len(), 1, "{order}");
    }
    let twice = Reader::new(Collection::of(vec![dataset.clone(), dataset]).unwrap(), options()).unwrap();
    let epoch = twice.epoch(&epoch_options(Order::Chunked)).unwrap();
    assert_eq!((epoch.plan().len(), epoch.count()), (800, 4));
}

/// Files of a dataset that this process has open.
fn open_files(path: &Path) -> HashSet<PathBuf> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(path)).collect()
}

#[test]
fn samples_of_one_member_are_read_while_the_others_are_closed_or_missing() {
    let made = different_chunks();
    let collection = Collection::open(&paths(&made), &OpenOptions::default()).unwrap();
    let reader = Reader::new(collection, options(IoChoice::Buffered)).unwrap();
    let away: Vec<PathBuf> = [0, 2].iter().map(|&member: &usize| made[member].folder.path().join("away")).collect();
    for (away, member) in away.iter().zip([0, 2]) {
        std::fs::rename(made[member].path(), away).unwrap();
    }
    assert_eq!(reader.get(60).unwrap().payload, made[1].payload(0));
    assert_eq!(reader.get_batch(&[559, 61]).unwrap().payload(0), made[1].payload(499));
    let is_open: Vec<bool> = made.iter().map(|made| !open_files(made.folder.path()).is_empty()).collect();
    assert_eq!(is_open, [false, true, false]);
    let error = reader.get_batch(&[61, 600]).unwrap_err().to_string();
    assert_eq!(error, format!("{}: no such file or directory", made[2].path().display()));
    assert_eq!(
        reader.epoch(&epoch_options(Order::Full)).unwrap_err().to_string(),
        error.replace(made[2].path().to_str().unwrap(), made[0].path().to_str().unwrap(),)
    );
    for (away, member) in away.iter().zip([0, 2]) {
        std::fs::rename(away, made[member].path()).unwrap();
    }
    ORDERS.iter().for_each(|&order| check_epoch(&made, &reader, &epoch_options(order)));
}

#[test]
fn a_damaged_sample_is_reported_as_its_member_would_report_it() {
    let made = different_chunks();
    made[1].flip(7, 3);
    let alone = made[1].reader(IoChoice::Buffered).get(7).unwrap_err().to_string();
    assert!(alone.contains("made.grain/00000.seg: sample 7 (key \"class 1/7.jpg\")"), "{alone}");
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        let reader = Reader::open_all(&paths(&made), options(io)).unwrap();
        assert_eq!(reader.get(67).unwrap_err().to_string(), alone);
        assert_eq!(reader.get_batch(&[0, 67]).unwrap_err().to_string(), alone);
        for order in ORDERS {
            let last = reader.epoch(&epoch_options(order)).unwrap().last().unwrap();
            assert_eq!(last.unwrap_err().to_string(), alone, "{order}");
        }
    }
    let reader = Reader::open_all(&paths(&made), options(IoChoice::Buffered)).unwrap();
    assert_eq!(reader.get(650).unwrap_err().to_string(), "no sample 650: the dataset has 650, numbered from 0");
}

/// MET-3, PLN-8
#[test]
fn class_names_that_cannot_be_held_equal_no_others_and_end_no_other_use() {
    let schema = r#"{"attributes":[],"fields":[{"name":"data","type":"bytes"}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let with_classes = |(number, user): (usize, &str)| {
        let metadata =
            grainstore_format::Metadata::decode(format!(r#"{{"schema":{schema},"user":{{{user}}}}}"#).as_bytes())
                .unwrap();
        let path = folder.path().join(format!("{number}.grain"));
        let options = grainstore_writer::WriterOptions {
            keyed: false,
            ..grainstore_writer::WriterOptions::with_metadata(metadata)
        };
        let mut writer = grainstore_writer::DatasetWriter::create(&path, options).unwrap();
        writer.write(grainstore_writer::Sample::default()).unwrap();
        writer.finish().unwrap();
        path
    };
    let paths: Vec<std::path::PathBuf> =
        [r#""class_names":1e999"#, "", r#""class_names":1e999"#].into_iter().enumerate().map(with_classes).collect();
    for pair in [[0, 1], [1, 0], [0, 2]].map(|pair| pair.map(|number: usize| paths[number].clone())) {
        let error = grainstore_store::Collection::open(&pair, &grainstore_store::OpenOptions::default()).unwrap_err();
        assert!(error.to_string().contains("member \"class_names\" of the user's metadata cannot be held"), "{error}");
        assert_eq!(error.remedy(), None);
        grainstore_store::Collection::open(&pair[..1], &grainstore_store::OpenOptions::default()).unwrap();
    }
}
