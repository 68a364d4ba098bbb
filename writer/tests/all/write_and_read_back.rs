//! Samples go in, a dataset comes out: by ordinal, by key, in one segment or many, on disk or spilled, whatever the number of jobs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_store::{Dataset, Encoding, VerifyOptions, verify};
use grainstore_writer::{
    Compression, DatasetWriter, DiskStorage, Sample, Storage, StreamError, StreamedSample, WriteError, WriterOptions,
    rebuild_index,
};
use proptest::prelude::*;

use crate::common::{self, Random, assert_holds, files, payload, rich_options, rich_samples};

fn write(target: &Path, options: WriterOptions, samples: &[Sample]) {
    let mut writer = DatasetWriter::create(target, options).unwrap();
    writer.write_batch(samples.to_vec()).unwrap();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.samples, samples.len() as u64);
    assert_eq!(summary.payload_bytes, samples.iter().map(|sample| sample.payload.len() as u64).sum::<u64>());
}

fn assert_whole(target: &Path) {
    let report = verify(target, &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
    assert_eq!(report.damaged, 0);
}

/// WR-3
#[test]
fn the_number_of_jobs_and_the_size_of_batches_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let samples = rich_samples(300, 1);
    let mut seen = Vec::new();
    for (jobs, memory_len) in [(1, 1 << 28), (2, 1 << 28), (8, 1 << 28), (3, 1 << 16)] {
        let target = folder.path().join(format!("{jobs}-{memory_len}"));
        write(&target, WriterOptions { jobs: NonZeroUsize::new(jobs), memory_len, ..rich_options() }, &samples);
        seen.push(files(&target));
    }
    assert!(seen[0].len() > 4, "several segments, an index and a manifest");
    assert!(seen.iter().all(|files| *files == seen[0]));
    assert_holds(&folder.path().join("8-268435456"), &samples);
}

/// FIL-2, MAN-4
#[test]
fn one_segment_is_its_own_index_and_opens_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (target, samples) = (folder.path().join("set"), rich_samples(50, 2));
    write(&target, WriterOptions { segment_size: 1 << 30, ..rich_options() }, &samples);
    assert_eq!(files(&target).keys().collect::<Vec<_>>(), ["00000.seg", "manifest.json"]);
    assert_holds(&target, &samples);
    assert_holds(&target.join("00000.seg"), &samples);
    assert_eq!(
        Dataset::open(&target).unwrap().fingerprint(),
        Dataset::open(target.join("00000.seg")).unwrap().fingerprint()
    );
}

/// SMP-1, RAW-1
#[test]
fn lz4_is_used_only_where_it_saves_a_sixteenth() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let noise = Random(5).bytes(10_000);
    let mut slightly = noise.clone();
    slightly[..400].fill(0); // saves less than a sixteenth
    let mut enough = noise.clone();
    enough[..1000].fill(0);
    let samples: Vec<Sample> = [noise, slightly, enough, vec![7; 10_000], vec![], vec![9]]
        .into_iter()
        .enumerate()
        .map(|(i, payload)| Sample::new(format!("{i}"), payload))
        .collect();
    write(&target, WriterOptions { compression: Compression::Lz4, ..WriterOptions::default() }, &samples);
    assert_holds(&target, &samples);
    assert_whole(&target);
    let dataset = Dataset::open(&target).unwrap();
    let lz4: Vec<bool> = (0..6).map(|i| matches!(dataset.locate(i).unwrap().encoding, Encoding::Lz4 { .. })).collect();
    assert_eq!(lz4, [false, false, true, true, false, false]);
}

#[test]
fn keys_that_stand_twice_are_named_with_both_samples() {
    let folder = tempfile::tempdir().unwrap();
    for (segment_size, memory_len) in [(1 << 30, 1 << 28), (30_000, 1 << 28), (30_000, 1 << 14), (1 << 30, 1 << 14)] {
        let target = folder.path().join("set");
        let mut samples: Vec<Sample> = (0..3000).map(|i| Sample::new(format!("key {i}"), vec![0; 100])).collect();
        samples[2900].key = b"key 17".to_vec();
        let mut writer =
            DatasetWriter::create(&target, WriterOptions { segment_size, memory_len, ..WriterOptions::default() })
                .unwrap();
        let error = writer.write_batch(samples).and_then(|()| writer.finish().map(|_| ())).unwrap_err();
        assert_eq!(error.to_string(), "duplicate key \"key 17\": samples 17 and 2900 both have it");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}

/// Two keys whose top 48 bits of XXH64 are equal with seed 7, found by search.
///
/// KEY-6
#[test]
fn different_keys_with_the_same_hash_are_both_found() {
    let (one, other) = common::colliding_keys();
    assert_eq!(grainstore_format::hash48(&one, 7), grainstore_format::hash48(&other, 7));
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let geometry = Geometry { hash_seed: 7, ..WriterOptions::default().geometry };
    let mut samples: Vec<Sample> = (0..200).map(|i| Sample::new(format!("{i}"), vec![i as u8; 9])).collect();
    samples.insert(20, Sample::new(other.clone(), b"other".to_vec()));
    write(&target, WriterOptions { geometry, ..WriterOptions::default() }, &samples);
    assert_eq!(Dataset::open(&target).unwrap().find(&one).unwrap(), None, "absent, though its hash is there");
    samples.insert(90, Sample::new(one, b"one".to_vec()));
    write(&folder.path().join("both"), WriterOptions { geometry, ..WriterOptions::default() }, &samples);
    assert_holds(&folder.path().join("both"), &samples);
    assert_whole(&folder.path().join("both"));
}

/// WR-1
#[test]
fn an_existing_destination_is_refused_or_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (target, old, new) = (folder.path().join("set"), rich_samples(5, 6), rich_samples(9, 7));
    write(&target, rich_options(), &old);
    assert!(matches!(DatasetWriter::create(&target, rich_options()), Err(WriteError::DestinationExists { .. })));
    let overwrite = || WriterOptions { overwrite: true, ..rich_options() };
    let mut unfinished = DatasetWriter::create(&target, overwrite()).unwrap();
    unfinished.write_batch(new.clone()).unwrap();
    assert!(matches!(DatasetWriter::create(&target, overwrite()), Err(WriteError::Locked { .. })));
    drop(unfinished);
    assert_holds(&target, &old);
    write(&target, overwrite(), &new);
    assert_holds(&target, &new);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the old one is gone");
}

#[test]
fn what_grainstore_did_not_write_is_never_replaced_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let overwrite = || WriterOptions { overwrite: true, ..rich_options() };
    let refused = |target: &Path| DatasetWriter::create(target, overwrite()).err().unwrap().to_string();
    let target = folder.path().join("set");
    std::fs::write(&target, "mine").unwrap();
    assert!(refused(&target).contains("not a dataset's directory"));
    std::fs::remove_file(&target).unwrap();
    write(&target, rich_options(), &rich_samples(5, 8));
    std::fs::write(target.join("notes.txt"), "mine").unwrap();
    assert!(refused(&target).contains("\"notes.txt\""));
    std::fs::rename(&target, folder.path().join("other.partial")).unwrap();
    assert!(refused(&folder.path().join("other")).contains("\"notes.txt\""));
    assert_eq!(std::fs::read(folder.path().join("other.partial/notes.txt")).unwrap(), b"mine");
    std::os::unix::fs::symlink("/", &target).unwrap();
    assert!(refused(&target).contains("not a dataset's directory"));
}

#[test]
fn a_dataset_without_samples_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let writer = DatasetWriter::create(folder.path().join("set"), WriterOptions::default()).unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Empty)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn samples_that_do_not_fit_the_schema_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(folder.path().join("set"), rich_options()).unwrap();
    let good = rich_samples(1, 9).remove(0);
    let mut text = |change: &dyn Fn(&mut Sample)| {
        let mut sample = good.clone();
        change(&mut sample);
        writer.write(sample).unwrap_err().to_string()
    };
    assert!(text(&|s| s.key.clear()).contains("its key has 0 bytes"));
    assert!(text(&|s| s.key = vec![b'k'; 65536]).contains("its key has 65536 bytes"));
    assert!(
        text(&|s| {
            s.attributes.pop();
        })
        .contains("1 attributes, the schema has 2")
    );
    assert!(
        text(&|s| s.attributes[1] = Some(grainstore_format::AttributeValue::Int(1))).contains("attribute \"weight\"")
    );
    assert!(text(&|s| s.fields.clear()).contains("0 fields, the schema has 2"));
    assert!(text(&|s| s.fields[0] = Some(0..1 << 40)).contains("is not inside"));
    assert!(text(&|s| s.fields[0] = Some(std::ops::Range { start: 5, end: 4 })).contains("is not inside"));
    assert_eq!(writer.taken(), 0);
    writer.write(good).unwrap();
    assert_eq!(writer.finish().unwrap().samples, 1);
}

/// A source of `len` zeros.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.min(bytes.len() as u64) as usize;
        bytes[..count].fill(0);
        self.0 -= count as u64;
        Ok(count)
    }
}

#[test]
fn a_source_that_shrinks_or_grows_is_rolled_back_and_other_samples_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let mut writer = DatasetWriter::create(&target, WriterOptions::default()).unwrap();
    let streamed = |key: &str, len| StreamedSample { key: key.into(), len, ..StreamedSample::default() };
    writer.write(Sample::new("a", b"first".to_vec())).unwrap();
    for (key, given, has, what) in
        [("b", 3 << 20, (3 << 20) - 1, "shrank"), ("c", 3 << 20, (3 << 20) + 1, "grew"), ("d", 0, 1, "grew")]
    {
        let error = writer.write_stream(&streamed(key, given), &mut Zeros(has)).unwrap_err();
        assert!(matches!(&error, StreamError::Source(error) if error.to_string().contains(what)), "{error}");
    }
    writer.write_stream(&streamed("e", 3 << 20), &mut Zeros(3 << 20)).unwrap();
    writer.write_stream(&streamed("f", 0), &mut Zeros(0)).unwrap();
    writer.write(Sample::new("g", b"last".to_vec())).unwrap();
    writer.finish().unwrap();
    let zeros = vec![0; 3 << 20];
    assert_holds(
        &target,
        &[("a", &b"first"[..]), ("e", &zeros), ("f", b""), ("g", b"last")]
            .map(|(key, payload)| Sample::new(key, payload.to_vec())),
    );
    assert_whole(&target);
}

#[test]
fn a_segment_in_which_the_only_sample_failed_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let options = WriterOptions { segment_size: 8192, ..WriterOptions::default() };
    let mut writer = DatasetWriter::create(&target, options).unwrap();
    writer.write(Sample::new("a", vec![1; 4096])).unwrap();
    let streamed = StreamedSample { key: b"b".to_vec(), len: 4096, ..StreamedSample::default() };
    assert!(matches!(writer.write_stream(&streamed, &mut Zeros(5)), Err(StreamError::Source(_))));
    writer.finish().unwrap();
    assert_eq!(files(&target).keys().collect::<Vec<_>>(), ["00000.seg", "manifest.json"]);
}

/// A source that panics after some bytes.
struct Panics(u64);

impl Read for Panics {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        assert!(self.0 > 0, "as planned");
        self.0 -= 1;
        Ok(bytes.len().min(1000))
    }
}

#[test]
fn after_a_source_that_panics_the_writer_refuses_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(folder.path().join("set"), WriterOptions::default()).unwrap();
    let streamed = StreamedSample { key: b"b".to_vec(), len: 1 << 20, ..StreamedSample::default() };
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.write_stream(&streamed, &mut Panics(3))));
    assert!(panicked.is_err());
    assert!(matches!(writer.write(Sample::new("c", vec![])), Err(WriteError::Failed)));
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
}

/// MET-3
#[test]
fn metadata_longer_than_a_reader_takes_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriterOptions::default();
    let long = serde_json::json!("x".repeat(64 << 20));
    options.metadata.user = options.metadata.user.with_member("long", &long).unwrap();
    let refused = DatasetWriter::create(folder.path().join("set"), options).err().unwrap();
    assert!(refused.to_string().contains("length of the metadata is 67108"), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// SIZ-1, SIZ-2: data <= 1.001 x stored payload plus the first block; the index <= 2 x (25 bytes + key + attributes + fields) a sample, plus the blocks that sections are rounded up to.
#[test]
fn little_is_wasted() {
    let folder = tempfile::tempdir().unwrap();
    for (segment_size, payload_len) in [(1 << 40, 512), (8 << 20, 512), (1 << 40, 20_000)] {
        let target = folder.path().join(format!("{segment_size}-{payload_len}"));
        let samples: Vec<Sample> = (0..20_000 * 512 / payload_len)
            .map(|i| Sample::new(format!("class_{:04}/{i:012}", i % 100), vec![1; payload_len]))
            .collect();
        write(&target, WriterOptions { segment_size, ..WriterOptions::default() }, &samples);
        let facts = Dataset::open(&target).unwrap().facts().unwrap();
        let key_len = samples[0].key.len() as u64;
        let per_sample = 2 * (25 + key_len) * facts.samples;
        let segments = facts.segments as u64;
        let blocks = 4096 * (12 * (segments + 1) + 4); // sections, directory, header of each index; the manifest
        assert!(facts.index_bytes <= per_sample + blocks, "{} > {per_sample} + {blocks}", facts.index_bytes);
        let waste = facts.file_bytes - facts.index_bytes - facts.stored_bytes;
        assert!(waste <= facts.stored_bytes / 1000 + segments * 8192 + 65536, "{waste}");
    }
}

/// The merged index is a function of the segments: lost, it comes back byte for byte.
#[test]
fn a_lost_index_is_rebuilt_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (target, samples) = (folder.path().join("set"), rich_samples(200, 12));
    write(&target, rich_options(), &samples);
    let before = files(&target);
    let index = before.keys().find(|name| name.ends_with(".idx")).unwrap();
    std::fs::remove_file(target.join(index)).unwrap();
    assert!(Dataset::open(&target).is_err());
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    rebuild_index(&storage, &target, 1 << 20).unwrap();
    assert_eq!(files(&target), before);
    assert_holds(&target, &samples);
}

/// A damaged segment is not made into an index.
#[test]
fn a_damaged_segment_is_named_when_the_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    write(&target, rich_options(), &rich_samples(200, 13));
    let path = target.join("00001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let footer_at = bytes.len() - 64;
    let index_offset = u64::from_le_bytes(bytes[footer_at + 32..footer_at + 40].try_into().unwrap()) as usize;
    bytes[index_offset + 4096] ^= 1; // the first entry
    std::fs::write(&path, bytes).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    let error = rebuild_index(&storage, &target, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("00001.seg") && error.contains("CRC-32"), "{error}");
}

fn any_samples() -> impl Strategy<Value = (Vec<usize>, WriterOptions, bool)> {
    let sizes = prop::sample::select(vec![0, 1, 5, 4095, 4096, 4097, 8192, 8193, 20_000, 40_000]);
    let alignment = prop::sample::select(vec!["1", "8", "64", "4096", "no-edges"]);
    let sizes = prop::collection::vec(sizes, 1..60);
    let segment_size = prop::sample::select(vec![5000, 30_000, 1 << 30]);
    let memory_len = prop::sample::select(vec![1 << 12, 1 << 20]);
    (sizes, alignment, segment_size, memory_len, any::<bool>(), any::<bool>()).prop_map(
        |(sizes, alignment, segment_size, memory_len, keyed, lz4)| {
            let alignment: Alignment = alignment.parse().unwrap();
            let geometry = Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment, hash_seed: 3 };
            let compression = if lz4 { Compression::Lz4 } else { Compression::None };
            (
                sizes,
                WriterOptions { geometry, segment_size, memory_len, keyed, compression, ..WriterOptions::default() },
                lz4,
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// FIL-1, SMP-1, SMP-2, KEY-1
    #[test]
    fn what_goes_in_comes_out((sizes, options, compressible) in any_samples()) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("set");
        let mut random = Random(sizes.len() as u64);
        let samples: Vec<Sample> = sizes.iter().enumerate().map(|(i, &len)| {
            let payload = if compressible && i % 2 == 0 { vec![i as u8; len] } else { random.bytes(len as u64) };
            let key = if options.keyed { format!("{i}").into_bytes() } else { Vec::new() };
            Sample { key, payload, ..Sample::default() }
        }).collect();
        write(&target, options, &samples);
        assert_holds(&target, &samples);
        assert_whole(&target);
        let whole_blocks = |file: &Vec<u8>| file.first() == Some(&0x7B) || file.len().is_multiple_of(4096);
        prop_assert!(files(&target).values().all(whole_blocks));
        prop_assert_eq!(payload(&Dataset::open(&target).unwrap(), 0), samples[0].payload.clone());
    }
}
