//! The index of files that stay where they are: descriptions of samples and files are checked, segments are ordered by
//! their numbers, and the final name is absent or whole whatever the disk does. The tests of the readers compare what is
//! read from it with a native dataset.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{Field, FieldType, Fingerprint, Metadata, Schema, SegmentKind, UserMetadata};
use grainstore_store::{Dataset, VerifyOptions, verify};
use grainstore_writer::{
    ExternalFile, ExternalSample, ExternalSegment, ExternalWriter, FinishedExternal, Sample, Summary, WriteError,
    WriterOptions,
};
use tempfile::TempDir;

use crate::common::fake_disk::{FakeDisk, Image, Trouble, target};
use crate::common::{files, rich_options, rich_samples};

/// A keyed sample of one field.
fn sample(offset: u64, len: u64, key: &str) -> ExternalSample {
    ExternalSample { offset, len, key: key.into(), ..ExternalSample::default() }
}

fn file(file_len: u64) -> ExternalFile {
    ExternalFile { path: "../x.tar".into(), file_len, data_fingerprint: Fingerprint(1), modified_ns: 2 }
}

fn begun(folder: &TempDir) -> (ExternalWriter, PathBuf) {
    let path = folder.path().join("d.grain");
    (ExternalWriter::create(&path, WriterOptions::default()).unwrap(), path)
}

fn refusal<T>(result: Result<T, WriteError>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

/// ENT-4, SEG-3
#[test]
fn samples_that_overlap_or_lie_past_what_an_entry_holds_are_refused_and_others_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, path) = begun(&folder);
    let mut segment = writer.segment(0).unwrap();
    segment.push(&sample(5, 10, "a")).unwrap();
    segment.push(&sample(15, 0, "b")).unwrap();
    let before = "it starts at 14, the sample before it ends at 15";
    assert_eq!(refusal(segment.push(&sample(14, 9, "c"))), format!("sample 2 (key \"c\"): {before}"));
    for (offset, len) in [(1 << 44, 0), ((1 << 44) - 1, 2), (20, u64::MAX), (u64::MAX, 1)] {
        assert!(refusal(segment.push(&sample(offset, len, "c"))).ends_with("are past 2^44"), "{len} at {offset}");
    }
    assert!(refusal(segment.push(&sample(15, 9, ""))).contains("its key has 0 bytes"));
    let whole = ExternalSample { fields: vec![Some(1..9)], ..sample(15, 9, "c") };
    assert!(refusal(segment.push(&whole)).contains("the one field is not the whole payload"));
    segment.push(&sample((1 << 44) - 3, 3, "c")).unwrap();
    assert_eq!(segment.taken(), 3);
    let finished = segment.finish(file(1 << 44)).unwrap();
    writer.finish(vec![finished]).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let places: Vec<u64> = (0..3).map(|ordinal| dataset.locate(ordinal).unwrap().offset).collect();
    assert_eq!(places, [5, 15, (1 << 44) - 3]);
}

/// EXT-1
#[test]
fn files_that_cannot_hold_the_samples_or_be_named_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = begun(&folder);
    let finish = |number: usize, file: ExternalFile| {
        let mut segment = writer.segment(number).unwrap();
        segment.push(&sample(0, 10, "a")).unwrap();
        segment.finish(file)
    };
    assert_eq!(refusal(finish(3, file(9))), "external segment 3: its samples end at 10, its file at 9");
    assert!(refusal(finish(3, file((1 << 44) + 1))).ends_with("the limit is 2^44"));
    for path in ["", "a//b", "../a/../b", "/"] {
        assert!(refusal(finish(3, ExternalFile { path: path.into(), ..file(10) })).contains("external path"));
    }
    for (number, path) in ["a", "/a", "../../a"].into_iter().enumerate() {
        finish(number, ExternalFile { path: path.into(), ..file(10) }).unwrap();
    }
}

/// MAN-3
#[test]
fn segments_without_samples_are_skipped_and_the_others_are_in_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, path) = begun(&folder);
    let finish = |number: usize, count: u64| {
        let mut segment = writer.segment(number).unwrap();
        (0..count).for_each(|i| segment.push(&sample(i, 1, &format!("{number}/{i}"))).unwrap());
        segment.finish(ExternalFile { path: format!("../{number}.tar"), ..file(9) }).unwrap()
    };
    let finished = vec![finish(7, 2), finish(1, 0), finish(2, 3)];
    drop(writer.segment(4).unwrap());
    assert_eq!(refusal(writer.segment(7)), "external segment 7: it was started before");
    assert!(refusal(writer.segment(1 << 20)).contains("1048576 segments at most"));
    let Summary { samples, segments, .. } = writer.finish(finished).unwrap();
    assert_eq!((samples, segments), (5, 2));
    let manifest = std::fs::read(path.join("manifest.json")).unwrap();
    let manifest = grainstore_format::Manifest::decode(&manifest).unwrap();
    let names: Vec<(&str, &str)> = manifest.segments().iter().map(names_of).collect();
    assert_eq!(names, [("../2.tar", "00002.idx"), ("../7.tar", "00007.idx")]);
    assert_eq!(Dataset::open(&path).unwrap().find(b"7/1").unwrap(), Some(4));
}

fn names_of(segment: &grainstore_format::SegmentRef) -> (&str, &str) {
    let SegmentKind::External { index_file, .. } = &segment.kind else { panic!("{segment:?}") };
    (&segment.path, index_file)
}

#[test]
fn a_missing_or_unfinished_segment_is_reported_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = begun(&folder);
    let mut segment = writer.segment(2).unwrap();
    segment.push(&sample(0, 1, "a")).unwrap();
    let _lost = segment.finish(file(1)).unwrap();
    let missing = "external segment 2: it was started, but is not among the finished segments";
    assert_eq!(refusal(writer.finish(vec![])), missing);
    let (writer, _) = begun(&folder);
    let open = writer.segment(2).unwrap();
    assert_eq!(refusal(writer.finish(vec![])), missing);
    drop(open);
    let (writer, _) = begun(&folder);
    let empty = writer.segment(0).unwrap().finish(file(0)).unwrap();
    assert!(matches!(writer.finish(vec![empty]), Err(WriteError::Empty)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

/// KEY-1, WR-2
#[test]
fn a_key_that_appears_twice_is_refused_within_a_file_and_between_files() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = begun(&folder);
    let mut segment = writer.segment(0).unwrap();
    segment.push(&sample(0, 1, "a")).unwrap();
    segment.push(&sample(1, 1, "a")).unwrap();
    assert!(refusal(segment.finish(file(9))).starts_with("duplicate key \"a\": samples 0 and 1"));
    assert!(matches!(writer.segment(1).unwrap().push(&sample(0, 1, "b")), Err(WriteError::Failed)));
    assert!(matches!(writer.finish(vec![]), Err(WriteError::Failed)));
    let (writer, _) = begun(&folder);
    let finished = [0, 1].map(|number| {
        let mut segment = writer.segment(number).unwrap();
        segment.push(&sample(0, 1, "a")).unwrap();
        segment.finish(file(9)).unwrap()
    });
    assert!(refusal(writer.finish(finished.into())).starts_with("duplicate key \"a\": samples 0 and 1"));
}

/// WR-3
#[test]
fn threads_memory_and_the_order_of_finishing_change_no_byte() {
    let write = |memory_len: u64, jobs: usize, parallel: bool| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.grain");
        let jobs = std::num::NonZeroUsize::new(jobs);
        let writer = ExternalWriter::create(&path, WriterOptions { memory_len, jobs, ..rich_options() }).unwrap();
        let fill = |number: usize, mut segment: ExternalSegment| {
            fill(&mut segment, &own_samples(number, 3000));
            segment.finish(named(number)).unwrap()
        };
        let segments: Vec<_> = (0..3).map(|number| (number, writer.segment(number).unwrap())).collect();
        let mut finished: Vec<FinishedExternal> = match parallel {
            false => segments.into_iter().map(|(number, segment)| fill(number, segment)).collect(),
            true => std::thread::scope(|scope| {
                let threads: Vec<_> = segments.into_iter().map(|(n, s)| scope.spawn(move || fill(n, s))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            }),
        };
        finished.rotate_left(usize::from(parallel));
        writer.finish(finished).unwrap();
        files(&path)
    };
    let first = write(256 << 20, 1, false);
    assert_eq!(first.len(), 5, "three indexes, the merged one, the manifest");
    assert!(first == write(1 << 16, 4, true) && first == write(1 << 16, 1, false));
}

/// Samples of one file: their keys are no others'.
fn own_samples(number: usize, count: u64) -> Vec<Sample> {
    let mut samples = rich_samples(count, number as u64);
    samples.iter_mut().for_each(|sample| sample.key.extend_from_slice(format!(" of {number}").as_bytes()));
    samples
}

/// One behind the other, 3 bytes apart.
fn fill(segment: &mut ExternalSegment, samples: &[Sample]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Sample { key, attributes, payload, fields } in samples.iter().cloned() {
        bytes.extend_from_slice(b"...");
        let (offset, len, crc) = (bytes.len() as u64, payload.len() as u64, crc32fast::hash(&payload));
        bytes.extend_from_slice(&payload);
        if segment.push(&ExternalSample { offset, len, crc, key, attributes, fields }).is_err() {
            break;
        }
    }
    bytes
}

fn named(number: usize) -> ExternalFile {
    ExternalFile { path: format!("../{number}.bin"), ..file(1 << 40) }
}

/// Two files whose bytes are put beside each image of the disk; their descriptions are true.
fn write_on(disk: &FakeDisk, data: &Path, overwrite: bool) -> Result<(), WriteError> {
    let options = WriterOptions { overwrite, ..rich_options() };
    let writer = ExternalWriter::create_on(Arc::new(disk.clone()), &target(), options)?;
    let mut finished = Vec::new();
    for number in 0..2 {
        let mut segment = writer.segment(number)?;
        let bytes = fill(&mut segment, &own_samples(number, 20));
        let place = data.join(format!("{number}.bin"));
        std::fs::write(&place, bytes).unwrap();
        let file = ExternalFile::of(format!("../{number}.bin"), &std::fs::File::open(&place).unwrap()).unwrap();
        finished.push(segment.finish(file)?);
    }
    writer.finish(finished).map(|_| ())
}

/// Checks what is under the final name in a crash's image, beside the data: nothing, or the complete dataset.
fn check_image(disk: &FakeDisk, image: Image, data: &Path, place: &str) -> bool {
    let folder = disk.materialised(image);
    let path = folder.path().join(target());
    if !path.exists() {
        return false;
    }
    for number in 0..2 {
        let name = format!("{number}.bin");
        std::fs::copy(data.join(&name), path.parent().unwrap().join(name)).unwrap();
    }
    let report = verify(&path, &VerifyOptions::default(), &|damage| panic!("{place}: {damage}"), &|_| ()).unwrap();
    assert_eq!(report.samples, 40, "{place}");
    true
}

/// WR-1, WR-2
#[test]
fn stopped_or_failed_at_any_operation_the_name_is_absent_or_whole() {
    for trouble in [Trouble::Stop, Trouble::Fail] {
        for at in 0.. {
            let (disk, data) = (FakeDisk::new(Some((at, trouble))), tempfile::tempdir().unwrap());
            let result = write_on(&disk, data.path(), false);
            let place = format!("{trouble:?} at operation {at}");
            for image in Image::ALL {
                check_image(&disk, image, data.path(), &place);
            }
            if result.is_ok() {
                assert!(check_image(&disk, Image::Durable, data.path(), &place), "{place}: a crash would lose it");
            }
            if result.is_ok() && disk.operations() <= at {
                assert!(at > 30, "the run had only {at} operations");
                break;
            }
            disk.set_trouble(None);
            write_on(&disk, data.path(), true)
                .unwrap_or_else(|error| panic!("{place}: the next writer fails: {error}"));
            assert!(check_image(&disk, Image::Durable, data.path(), &place));
        }
    }
}

/// FLD-2, LNG-1: a sparse file, as an archive with a member that is a hole.
#[test]
fn fields_that_end_past_4_gib_are_verified_though_every_offset_and_length_is_below() {
    let folder = tempfile::tempdir().unwrap();
    let (first, len) = (3_u64 << 30, (4 << 30) + 5);
    let data = std::fs::File::create(folder.path().join("x.tar")).unwrap();
    data.set_len(len).unwrap();
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let schema = Schema::new(vec![], vec![field("a"), field("b")]).unwrap();
    let options = WriterOptions::with_metadata(Metadata { schema, user: UserMetadata::default() });
    let path = folder.path().join("d.grain");
    let writer = ExternalWriter::create(&path, options).unwrap();
    let mut segment = writer.segment(0).unwrap();
    let fields = vec![Some(0..first), Some(first..len)];
    segment.push(&ExternalSample { fields, crc: crc_of_zeros(len), ..sample(0, len, "a") }).unwrap();
    let zeros = |bytes: &mut [u8], _| -> std::io::Result<()> {
        bytes.fill(0);
        Ok(())
    };
    let data_fingerprint = grainstore_format::data_fingerprint_of(len, zeros).unwrap();
    let finished = segment.finish(ExternalFile { data_fingerprint, ..file(len) }).unwrap();
    writer.finish(vec![finished]).unwrap();
    let damage = std::sync::Mutex::new(Vec::new());
    verify(&path, &VerifyOptions::default(), &|one| damage.lock().unwrap().push(one.to_string()), &|_| ()).unwrap();
    assert_eq!(damage.into_inner().unwrap(), [""; 0]);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.fields(0, len).unwrap(), [Some(0..first), Some(first..len)]);
}

fn crc_of_zeros(len: u64) -> u32 {
    let hasher_of = |len: usize| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&vec![0; len]);
        hasher
    };
    let (block, mut all) = (hasher_of(1 << 20), hasher_of((len % (1 << 20)) as usize));
    (0..len >> 20).for_each(|_| all.combine(&block));
    all.finalize()
}
