//! Samples in external files are read like those of a native dataset: at odd offsets, with gaps, from the first byte of
//! a file to its last one, which does not end a block. They are read one by one, in batches and in every order; with
//! direct, buffered and mapped I/O; cached, chosen by an expression, and as a member of a collection. Changes of those
//! files are reported: other bytes, another length, another time.
//!
//! spec.md: EXT-1 to EXT-3, FIL-3, MAN-4.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use grainstore_format::{Alignment, to_usize};
use grainstore_reader::plan::OrderChoice;
use grainstore_reader::{EpochOptions, Expression, IoChoice, OnDamage, Reader, ReaderOptions};
use grainstore_store::{Dataset, VerifyOptions, verify};
use grainstore_writer::{DiskStorage, rebuild_index};

use crate::adopted::adopt;
use crate::common::{Made, ORDERS, Random, Shape};

const CHUNK: usize = 4096;
const IO: [IoChoice; 3] = [IoChoice::Direct, IoChoice::Buffered, IoChoice::Mapped];

/// The same samples twice: native, and in external files.
struct Pair {
    native: Made,
    adopted: Made,
}

/// `counts` samples in each file, with lengths around all limits.
fn pair(seed: u64, counts: &[usize]) -> Pair {
    let mut random = Random(seed);
    let edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5, 8 * CHUNK, 9 * CHUNK + 17];
    let len = |random: &mut Random| match random.below(3) {
        0 => edges[to_usize(random.below(8))],
        _ => to_usize(random.below(900)),
    };
    let payload_lens: Vec<usize> = (0..counts.iter().sum()).map(|_| len(&mut random)).collect();
    let shape = Shape {
        seed,
        keyed: !seed.is_multiple_of(3),
        several_fields: seed.is_multiple_of(2),
        attributes: true,
        alignment: Alignment::PACKED,
        segment_size: 60_000,
        ..Shape::plain(CHUNK as u64, payload_lens)
    };
    let native = shape.write();
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(native.path()).unwrap();
    let path = adopt(folder.path(), &native.samples, &dataset, counts, |number| format!("../{number}.bin"));
    let samples = native.samples.clone();
    Pair { native, adopted: Made { folder, path, samples } }
}

impl Pair {
    fn data(&self, number: usize) -> PathBuf {
        self.adopted.folder.path().join(format!("{number}.bin"))
    }

    fn n(&self) -> u64 {
        self.native.samples.len() as u64
    }
}

fn options(order: OrderChoice, batch_size: usize) -> EpochOptions {
    EpochOptions { order, batch_size: NonZeroUsize::new(batch_size).unwrap(), seed: 5, ..EpochOptions::default() }
}

/// Reads an epoch and compares it with its plan; returns the ordinals in ascending order.
fn check_epoch(made: &Made, reader: &Reader, options: &EpochOptions) -> Vec<u64> {
    let mut epoch = reader.epoch(options).unwrap();
    let expected: Vec<u64> = epoch.plan().ordinals_from(0).collect();
    let mut visited = Vec::new();
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        made.check(&batch);
        visited.extend_from_slice(batch.ordinals());
    }
    assert_eq!(visited, expected);
    visited.sort_unstable();
    visited
}

fn check_singles(pair: &Pair, io: IoChoice) {
    let (native, adopted) = (pair.native.reader(io), pair.adopted.reader(io));
    for ordinal in 0..pair.n() {
        let (one, other) = (native.get(ordinal).unwrap(), adopted.get(ordinal).unwrap());
        assert_eq!((&one.payload, one.fields()), (&other.payload, other.fields()), "sample {ordinal}, {io}");
        let key = native.collection().key(ordinal).unwrap();
        assert_eq!(adopted.collection().key(ordinal).unwrap(), key);
        if let Some(key) = key {
            assert_eq!(adopted.get_by_key(&key).unwrap().unwrap().ordinal, ordinal);
        }
        let attributes = |reader: &Reader| reader.collection().attributes(ordinal).unwrap();
        assert_eq!(attributes(&native), attributes(&adopted));
    }
}

fn check_all(pair: &Pair) {
    for io in IO {
        check_singles(pair, io);
        let reader = pair.adopted.reader(io);
        let mut random = Random(pair.n());
        let ordinals: Vec<u64> = (0..3 * pair.n()).map(|_| random.below(pair.n())).collect();
        pair.adopted.check(&reader.get_batch(&ordinals).unwrap());
        for order in ORDERS.map(OrderChoice::Fixed).into_iter().chain([OrderChoice::Auto]) {
            for batch_size in [1, 7, 64] {
                let visited = check_epoch(&pair.adopted, &reader, &options(order, batch_size));
                assert!(visited.into_iter().eq(0..pair.n()), "{order:?}, {io}");
            }
        }
    }
    assert_whole(pair);
}

fn assert_whole(pair: &Pair) {
    let report = verify(pair.adopted.path(), &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
    assert_eq!((report.samples, report.notices.len()), (pair.n(), 0));
}

/// EXT-1, EXT-2, FIL-3
#[test]
fn external_files_are_read_like_segments() {
    for seed in 0..8 {
        check_all(&pair(seed, &[20, 7, 0, 33, 1]));
    }
}

/// MAN-4
#[test]
fn one_file_is_a_dataset_whose_index_is_that_files_own() {
    let pair = pair(5, &[40]);
    check_all(&pair);
    let mut names: Vec<_> = std::fs::read_dir(pair.adopted.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["00000.idx", "manifest.json"]);
}

#[test]
fn a_file_that_ends_with_a_sample_inside_a_block_is_read_directly_to_its_last_byte() {
    for len in [1, 511, 512, 4095, 4096, 4097, 70_001] {
        let native = Shape::plain(CHUNK as u64, vec![100, len]).write();
        let folder = tempfile::tempdir().unwrap();
        let dataset = Dataset::open(native.path()).unwrap();
        let path = adopt(folder.path(), &native.samples, &dataset, &[2], |_| "../0.bin".into());
        let samples = native.samples.clone();
        let adopted = Made { folder, path, samples };
        for io in IO {
            let reader = adopted.reader(io);
            assert!(reader.get(1).unwrap().payload == native.samples[1].payload, "{len} bytes, {io}");
            adopted.check(&reader.get_batch(&[1, 0]).unwrap());
            check_epoch(&adopted, &reader, &options(OrderChoice::Auto, 2));
        }
    }
}

/// FIL-3
#[test]
fn a_lost_merged_index_is_rebuilt() {
    let pair = pair(4, &[30, 20]);
    let index = std::fs::read_dir(pair.adopted.path()).unwrap().map(|file| file.unwrap().path());
    let index = index.into_iter().find(|path| path.to_string_lossy().contains("index-")).unwrap();
    let before = std::fs::read(&index).unwrap();
    std::fs::remove_file(&index).unwrap();
    rebuild_index(&(Arc::new(DiskStorage) as _), pair.adopted.path(), 1 << 20).unwrap();
    assert!(std::fs::read(&index).unwrap() == before);
    assert_whole(&pair);
}

#[test]
fn a_cache_and_a_subset_work_on_external_files() {
    let pair = pair(1, &[40, 25]);
    for io in [IoChoice::Direct, IoChoice::Buffered] {
        let cached = ReaderOptions { io, cache_bytes: 64 << 20, ..ReaderOptions::default() };
        let reader = Reader::open(pair.adopted.path(), cached).unwrap();
        for order in ORDERS.map(OrderChoice::Fixed) {
            check_epoch(&pair.adopted, &reader, &options(order, 16));
        }
        let mut last = reader.epoch(&options(OrderChoice::Auto, 16)).unwrap();
        last.by_ref().for_each(|batch| pair.adopted.check(&batch.unwrap()));
        assert_eq!((last.stats().read_bytes, last.stats().cached_samples), (0, 65));
        let subset = |reader: &Reader| {
            let expression: Expression = "ordinal in 3..50 and label is present".parse().unwrap();
            expression.select_from(reader.collection()).unwrap()
        };
        let (subset, expected) = (subset(&reader), subset(&pair.native.reader(io)));
        assert_eq!(subset, expected);
        let chosen = EpochOptions { subset: Some(Arc::new(subset)), ..options(OrderChoice::Auto, 16) };
        let visited = check_epoch(&pair.adopted, &reader, &chosen);
        assert!(visited.into_iter().eq((0..65).filter(|ordinal| expected.contains(*ordinal))));
    }
}

/// PLN-8
#[test]
fn a_native_and_an_adopted_dataset_are_read_as_one() {
    let pair = pair(2, &[12, 20]);
    let paths = [pair.native.path(), pair.adopted.path(), pair.native.path()];
    for io in IO {
        let reader = Reader::open_all(&paths, ReaderOptions { io, threads: 2, ..ReaderOptions::default() }).unwrap();
        for order in ORDERS.map(OrderChoice::Fixed) {
            let mut visited = Vec::new();
            for batch in reader.epoch(&options(order, 9)).unwrap() {
                let batch = batch.unwrap();
                for (i, &ordinal) in batch.ordinals().iter().enumerate() {
                    assert!(batch.payload(i) == pair.native.payload(ordinal % 32), "sample {ordinal}, {io}");
                    visited.push(ordinal);
                }
            }
            visited.sort_unstable();
            assert!(visited.into_iter().eq(0..96));
        }
    }
}

/// ENT-5
#[test]
fn another_byte_in_a_sample_is_that_samples_error_and_no_others() {
    // Long, so that the flipped byte is in neither end of the file, which the fingerprint covers.
    let native = Shape { attributes: true, ..Shape::plain(CHUNK as u64, vec![3_000; 100]) }.write();
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(native.path()).unwrap();
    let path = adopt(folder.path(), &native.samples, &dataset, &[100], |_| "../0.bin".into());
    let adopted = Made { folder, path, samples: native.samples.clone() };
    adopted.flip(50, 1_234);
    for io in IO {
        let reader = adopted.reader(io);
        for ordinal in 0..100 {
            let found = reader.get(ordinal);
            assert_eq!(found.is_err(), ordinal == 50);
            if let Err(error) = found {
                let text = error.to_string();
                assert!(text.contains("0.bin: sample 50 (key ") && text.contains("CRC-32"), "{text}");
            }
        }
        let skipping = EpochOptions { on_damage: OnDamage::Skip, ..options(OrderChoice::Auto, 8) };
        let mut epoch = reader.epoch(&skipping).unwrap();
        let mut count = 0;
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            adopted.check(&batch);
            count += batch.len();
        }
        assert_eq!(count, 99, "{io}");
    }
    let damage = std::sync::Mutex::new(Vec::new());
    let report = |one: grainstore_store::Damage| damage.lock().unwrap().push(one.ordinal);
    verify(adopted.path(), &VerifyOptions::default(), &report, &|_| ()).unwrap();
    assert_eq!(damage.into_inner().unwrap(), [Some(50)]);
}

/// EXT-2
#[test]
fn a_file_of_another_length_or_with_another_end_is_refused_by_name() {
    let pair = pair(2, &[30, 30]);
    let whole = std::fs::read(pair.data(1)).unwrap();
    let mut other_end = whole.clone();
    *other_end.last_mut().unwrap() ^= 1;
    let longer = [whole.as_slice(), b"x"].concat();
    for (bytes, what) in [
        (&whole[..whole.len() - 1], "bytes, the manifest has"),
        (&longer, "bytes, the manifest has"),
        (&other_end, "the data has changed"),
    ] {
        std::fs::write(pair.data(1), bytes).unwrap();
        for io in IO {
            let reader = pair.adopted.reader(io);
            assert!(reader.get(0).is_ok(), "the other file is whole");
            let error = reader.get(pair.n() - 1).unwrap_err().to_string();
            assert!(error.contains("1.bin: ") && error.contains(what), "{error}");
            let error = reader.epoch(&options(OrderChoice::Auto, 8)).unwrap().find_map(Result::err).unwrap();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}

/// EXT-3
#[test]
fn a_file_that_was_touched_is_read_and_the_reader_reports_it() {
    let pair = pair(2, &[10, 10]);
    std::fs::File::options().write(true).open(pair.data(1)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let reader = pair.adopted.reader(IoChoice::Buffered);
    reader.get(0).unwrap();
    assert!(reader.notices().is_empty(), "the other file was not needed yet");
    check_epoch(&pair.adopted, &reader, &options(OrderChoice::Auto, 8));
    check_epoch(&pair.adopted, &reader, &options(OrderChoice::Auto, 8));
    let notices = reader.notices();
    assert!(matches!(&notices[..], [one] if one.contains("1.bin: modified since the dataset was made")), "{notices:?}");
    let both = [pair.native.path(), pair.adopted.path()];
    let reader = Reader::open_all(&both, ReaderOptions::default()).unwrap();
    reader.get(39).unwrap();
    assert_eq!(reader.notices(), notices);
}

/// EXT-1
#[test]
fn files_elsewhere_are_read_where_the_options_allow_it() {
    let native = Shape::plain(CHUNK as u64, vec![700; 30]).write();
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = Dataset::open(native.path()).unwrap();
    let place = |number| elsewhere.path().join(format!("{number}.bin")).to_str().unwrap().to_owned();
    let path = adopt(folder.path(), &native.samples, &dataset, &[20, 10], place);
    (0..2).for_each(|number| {
        std::fs::copy(folder.path().join(format!("{number}.bin")), place(number)).unwrap();
    });
    let refused = Reader::open(&path, ReaderOptions::default()).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains(&place(0)) && refused.ends_with("outside the dataset's parent directory"), "{refused}");
    let options_of = |io| ReaderOptions { io, allow_external: true, ..ReaderOptions::default() };
    for io in IO {
        let made = Made { folder: tempfile::tempdir().unwrap(), path: path.clone(), samples: native.samples.clone() };
        let reader = Reader::open(&path, options_of(io)).unwrap();
        check_epoch(&made, &reader, &options(OrderChoice::Auto, 8));
        let several = Reader::open_all(&[native.path(), &path], options_of(io)).unwrap();
        assert!(several.get(59).unwrap().payload == native.samples[29].payload);
    }
}

#[test]
fn opening_accesses_none_of_many_files() {
    let native = Shape::plain(CHUNK as u64, vec![10; 1024]).write();
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(native.path()).unwrap();
    let path = adopt(folder.path(), &native.samples, &dataset, &[1; 1024], |number| format!("../{number}.bin"));
    let made = Made { folder, path, samples: native.samples.clone() };
    check_epoch(&made, &made.reader(IoChoice::Buffered), &options(OrderChoice::Auto, 100));
    (0..1024).for_each(|number| std::fs::remove_file(made.folder.path().join(format!("{number}.bin"))).unwrap());
    let reader = made.reader(IoChoice::Buffered);
    assert_eq!(reader.collection().find(b"class 2/1022.jpg").unwrap(), Some(1022));
    assert!(reader.plan(&options(OrderChoice::Auto, 8)).is_ok());
    assert!(reader.get(1022).unwrap_err().to_string().ends_with("1022.bin: no such file or directory"));
}
