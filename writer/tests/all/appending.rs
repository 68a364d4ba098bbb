//! Samples are added to an existing dataset: old ones stay where they are, each addition is a generation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{
    Attribute, AttributeType, ChecksumBuilder, Directory, Field, FieldType, FileKind, Fingerprint, Footer, Header,
    IndexRef, Manifest, Metadata, Schema, SectionKind, SectionRecord, SegmentKind, SegmentRef, UserMetadata,
    data_fingerprint, round_up,
};
use grainstore_store::{Dataset, OpenOptions, VerifyOptions, verify};
use grainstore_writer::{
    AppendOptions, Compression, DatasetWriter, DiskStorage, Sample, Storage, Summary, WriteError, WriterOptions,
    existing, rebuild_index,
};
use serde_json::json;

use crate::common::{assert_holds, files, rich_options, rich_samples};

fn create(target: &Path, samples: &[Sample]) -> Summary {
    let options = WriterOptions { overwrite: true, ..rich_options() };
    let mut writer = DatasetWriter::create(target, options).unwrap();
    writer.write_batch(samples.to_vec()).unwrap();
    writer.finish().unwrap()
}

fn options() -> AppendOptions {
    AppendOptions {
        segment_size: 40_000,
        compression: Compression::Lz4,
        memory_len: 1 << 16,
        ..AppendOptions::default()
    }
}

fn append(target: &Path, samples: &[Sample]) -> Result<Summary, WriteError> {
    let mut writer = DatasetWriter::append(target, options())?;
    writer.write_batch(samples.to_vec())?;
    assert_eq!(writer.taken(), samples.len() as u64);
    writer.finish()
}

/// `count` samples whose keys are those of ordinals `from` on.
fn samples(from: u64, count: u64, seed: u64) -> Vec<Sample> {
    let mut samples = rich_samples(count, seed);
    (from..).zip(&mut samples).for_each(|(ordinal, sample)| sample.key = format!("sample {ordinal}").into_bytes());
    samples
}

fn assert_whole(target: &Path) {
    let report = verify(target, &VerifyOptions::default(), &|damage| panic!("{damage}"), &|_| ()).unwrap();
    assert_eq!(report.damaged, 0);
}

fn manifest(target: &Path) -> Manifest {
    Manifest::decode(&std::fs::read(target.join("manifest.json")).unwrap()).unwrap()
}

/// GEN-1, GEN-2
#[test]
fn each_addition_is_a_generation_and_the_earlier_ones_still_open() {
    let folder = tempfile::tempdir().unwrap();
    for (counts, name) in [([3, 1, 2], "small"), ([60, 45, 70], "large")] {
        let target = folder.path().join(name);
        let (mut all, mut ends) = (samples(0, counts[0], 1), vec![counts[0] as usize]);
        create(&target, &all);
        for (seed, count) in [(2, counts[1]), (3, counts[2])] {
            let more = samples(all.len() as u64, count, seed);
            let before = files(&target);
            let summary = append(&target, &more).unwrap();
            assert_eq!(summary.samples, count);
            assert_eq!(summary.payload_bytes, more.iter().map(|sample| sample.payload.len() as u64).sum::<u64>());
            assert_eq!(summary.fingerprint, manifest(&target).fingerprint());
            all.extend(more);
            ends.push(all.len());
            assert_holds(&target, &all);
            assert_whole(&target);
            let after = files(&target);
            assert!(before.iter().all(|(name, bytes)| !name.ends_with(".seg") || after[name] == *bytes));
        }
        for (generation, &end) in ends.iter().enumerate() {
            let options = OpenOptions { generation: Some(generation), ..OpenOptions::default() };
            let dataset = Dataset::open_with(&target, &options).unwrap();
            assert_eq!(dataset.sample_count(), end as u64);
            assert_eq!(dataset.find(&all[end - 1].key).unwrap(), Some(end as u64 - 1));
            assert!(all.get(end).is_none_or(|later| dataset.find(&later.key).unwrap().is_none()));
        }
        let facts = existing(&target).unwrap();
        assert_eq!((facts.sample_count, facts.keyed), (all.len() as u64, true));
        assert_eq!(facts.segment_count, manifest(&target).segments().len() as u64);
        assert_eq!(facts.geometry, rich_options().geometry);
        assert_eq!(facts.metadata, rich_options().metadata);
        create(&target, &all[..2]);
        assert_holds(&target, &all[..2]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), if name == "small" { 1 } else { 2 });
    }
}

/// GEN-3
#[test]
fn the_index_of_the_generation_before_stays_until_the_next_addition() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    create(&target, &samples(0, 60, 1));
    let first = manifest(&target).index().file.clone();
    let opened = Dataset::open(&target).unwrap();
    append(&target, &samples(60, 5, 2)).unwrap();
    assert!(target.join(&first).exists());
    assert_eq!(opened.find(b"sample 59").unwrap(), Some(59), "a reader continues with the generation that it opened");
    assert_eq!(opened.sample_count(), 60);
    std::fs::write(target.join("notes.txt"), "mine").unwrap();
    for name in ["00077.seg", "00078.seg.tmp", "00079.seg.spill.tmp", "progress.json"] {
        std::fs::write(target.join(name), "of a writer that was interrupted").unwrap();
    }
    assert_whole(&target);
    let second = manifest(&target).index().file.clone();
    append(&target, &samples(65, 5, 3)).unwrap();
    let third = manifest(&target);
    let mut expected: Vec<String> = third.segments().iter().map(|segment| segment.path.clone()).collect();
    expected.extend([second, third.index().file.clone(), "manifest.json".into(), "notes.txt".into()]);
    expected.sort();
    assert_eq!(files(&target).into_keys().collect::<Vec<_>>(), expected);
}

/// GEN-2
#[test]
fn a_key_that_the_dataset_has_is_named_with_both_samples_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    create(&target, &samples(0, 60, 1));
    let before = files(&target);
    let mut more = samples(60, 60, 2);
    more[45].key = b"sample 17".to_vec();
    let error = append(&target, &more).unwrap_err();
    assert_eq!(error.to_string(), "duplicate key \"sample 17\": samples 17 and 105 both have it");
    assert_eq!(files(&target), before);
    more[45].key = more[44].key.clone();
    let error = append(&target, &more).unwrap_err().to_string();
    assert!(error.ends_with("samples 104 and 105 both have it"), "{error}");
    let mut writer = DatasetWriter::append(&target, options()).unwrap();
    let wrong = writer.write(Sample::new("x", vec![])).unwrap_err().to_string();
    assert!(wrong.contains("sample 60"), "{wrong}");
    assert!(matches!(writer.finish(), Err(WriteError::Empty)));
    let mut dropped = DatasetWriter::append(&target, options()).unwrap();
    dropped.write_batch(samples(60, 60, 4)).unwrap();
    drop(dropped);
    assert_eq!(files(&target), before);
    assert_holds(&target, &samples(0, 60, 1));
}

/// GEN-4, MET-1
#[test]
fn user_metadata_may_grow_and_a_rebuilt_index_has_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    create(&target, &samples(0, 60, 1));
    let mut metadata = existing(&target).unwrap().metadata;
    metadata.user = metadata.user.with_member("class_names", &json!(["a", "b", "c"])).unwrap();
    let mut writer =
        DatasetWriter::append(&target, AppendOptions { metadata: Some(metadata.clone()), ..options() }).unwrap();
    writer.write_batch(samples(60, 20, 2)).unwrap();
    writer.finish().unwrap();
    assert_eq!(Dataset::open(&target).unwrap().user_metadata(), &metadata.user);
    assert_eq!(existing(&target).unwrap().metadata, metadata);
    append(&target, &samples(80, 3, 3)).unwrap();
    assert_eq!(existing(&target).unwrap().metadata, metadata, "it stays");
    let before = files(&target);
    std::fs::remove_file(target.join(&manifest(&target).index().file)).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    rebuild_index(&storage, &target, 1 << 16).unwrap();
    assert_eq!(files(&target), before);
    assert_eq!(manifest(&target).generations().len(), 3);
}

#[test]
fn another_schema_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    create(&target, &samples(0, 5, 1));
    let before = files(&target);
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let refused = |attributes, fields| {
        let metadata = Metadata { schema: Schema::new(attributes, fields).unwrap(), user: UserMetadata::default() };
        let refused =
            DatasetWriter::append(&target, AppendOptions { metadata: Some(metadata), ..options() }).err().unwrap();
        assert!(matches!(refused, WriteError::NotExtendable { .. }));
        refused.to_string()
    };
    let (label, weight) = (attribute("label", AttributeType::Int64), attribute("weight", AttributeType::Float64));
    let text = refused(vec![label.clone(), weight], vec![field("image"), field("caption")]);
    let expected = "another schema: it has attribute \"weight\" (float32), the new samples do not; the new samples have \
                    attribute \"weight\" (float64), it does not";
    assert!(text.ends_with(expected), "{text}");
    let weight = attribute("weight", AttributeType::Float32);
    let text = refused(vec![label.clone(), weight.clone()], vec![field("image")]);
    assert!(text.ends_with("it has field \"caption\" (bytes), the new samples do not"), "{text}");
    let text = refused(vec![label, weight], vec![field("caption"), field("image")]);
    assert!(
        text.contains("field \"image\" (bytes), field \"caption\" (bytes); the new samples have attribute"),
        "{text}"
    );
    assert_eq!(files(&target), before);
}

#[test]
fn only_a_datasets_directory_can_grow_and_only_by_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    create(&target, &samples(0, 60, 1));
    let why = |path: PathBuf| DatasetWriter::append(&path, options()).err().unwrap().to_string();
    assert!(why(target.join("00000.seg")).contains("only a dataset's directory can change"));
    assert!(why(folder.path().join("absent")).contains("does not exist"));
    assert!(why(folder.path().to_owned()).contains("no manifest.json"));
    assert!(existing(&target.join("00000.seg")).is_err());
    std::os::unix::fs::symlink(&target, folder.path().join("link")).unwrap();
    assert!(why(folder.path().join("link")).contains("not a directory"));
    let held = DatasetWriter::append(&target, options()).unwrap();
    assert!(matches!(DatasetWriter::append(&target, options()), Err(WriteError::Locked { .. })));
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    assert!(matches!(rebuild_index(&storage, &target, 1 << 16), Err(WriteError::Locked { .. })));
    let mut other = DatasetWriter::create(&target, WriterOptions { overwrite: true, ..rich_options() }).unwrap();
    other.write_batch(samples(0, 3, 2)).unwrap();
    assert!(matches!(other.finish(), Err(WriteError::Locked { .. })));
    drop(held);
    append(&target, &samples(60, 3, 2)).unwrap();
    let mut bytes = std::fs::read(target.join("00001.seg")).unwrap();
    let len = bytes.len();
    bytes.truncate(len - 1);
    std::fs::write(target.join("00001.seg"), bytes).unwrap();
    assert!(why(target.clone()).contains("00001.seg"), "damage is found before anything is written");
}

#[test]
fn names_that_segments_have_already_are_not_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let (target, all) = (folder.path().join("set"), samples(0, 4, 1));
    create(&target, &all[..2]);
    let old = manifest(&target);
    std::fs::rename(target.join("00000.seg"), target.join("00001.seg")).unwrap();
    let (mut index, mut segment) = (old.index().clone(), old.segments()[0].clone());
    (index.file, segment.path) = ("00001.seg".into(), "00001.seg".into());
    let renamed = Manifest::new(index, vec![segment], &[]).unwrap();
    std::fs::write(target.join("manifest.json"), renamed.encode().unwrap()).unwrap();
    append(&target, &all[2..]).unwrap();
    assert_holds(&target, &all);
    assert_eq!(manifest(&target).segments()[1].path, "00002.seg");
}

#[test]
fn datasets_without_keys_and_of_one_field_grow_too() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let all: Vec<Sample> = (0..40).map(|i| Sample::new("", vec![i; 3000])).collect();
    let mut writer =
        DatasetWriter::create(&target, WriterOptions { keyed: false, ..WriterOptions::default() }).unwrap();
    writer.write_batch(all[..10].to_vec()).unwrap();
    writer.finish().unwrap();
    append(&target, &all[10..]).unwrap();
    assert_holds(&target, &all);
    assert_whole(&target);
    assert!(!existing(&target).unwrap().keyed);
}

/// Makes the one segment of a dataset external: its file moves beside the dataset, and an index file of its own points
/// into it. `field_lens`: the index also gets columns for its one field.
fn make_external(target: &Path, field_lens: Option<&[u64]>) {
    let bytes = std::fs::read(target.join("00000.seg")).unwrap();
    let len = bytes.len() as u64;
    let footer = Footer::decode(&bytes[bytes.len() - 64..], len).unwrap();
    let (start, end) = (footer.index_offset() as usize, footer.directory_offset() as usize);
    let old = Directory::decode(&bytes[end..end + footer.directory_len() as usize], &footer).unwrap();
    let mut file = Header { kind: FileKind::Index }.encode().to_vec();
    file.extend_from_slice(&bytes[start..end]);
    let moved = |section: &SectionRecord| SectionRecord { offset: section.offset - start as u64 + 4096, ..*section };
    let mut sections: Vec<SectionRecord> = old.sections().iter().map(moved).collect();
    for (kind, lens) in [(SectionKind::FieldOffset, None), (SectionKind::FieldLen, field_lens)] {
        let Some(all) = field_lens else { continue };
        let column: Vec<u8> =
            lens.unwrap_or(&vec![0; all.len()]).iter().flat_map(|&len| (len as u32).to_le_bytes()).collect();
        let mut checksums = ChecksumBuilder::default();
        checksums.update(&column);
        let (offset, list) = (file.len() as u64, checksums.finish());
        let checksums_crc = crc32fast::hash(&list);
        sections.push(SectionRecord { kind, item: 0, width: 4, offset, len: column.len() as u64, checksums_crc });
        file.extend(column.into_iter().chain(list));
        file.resize(round_up(file.len() as u64, 4096) as usize, 0);
    }
    let directory = Directory::new(*old.counts(), *old.geometry(), sections).unwrap().encode();
    let footer = Footer::new(4096, file.len() as u64, &directory).unwrap();
    file.extend_from_slice(&directory);
    file.resize(footer.file_len() as usize - 64, 0);
    file.extend_from_slice(&footer.encode());
    std::fs::write(target.join("00000.idx"), file).unwrap();
    let path = format!("../{}.data", target.file_name().unwrap().to_string_lossy());
    std::fs::rename(target.join("00000.seg"), target.join(&path)).unwrap();
    let (fingerprint, near) = (Fingerprint::of_directory(&directory), bytes.len().min(65536));
    let data_fingerprint = data_fingerprint(&bytes[..near], &bytes[bytes.len() - near..], len);
    let kind = SegmentKind::External { index_file: "00000.idx".into(), data_fingerprint, modified_ns: 0 };
    let segment = SegmentRef { kind, path, file_len: len, sample_count: old.counts().sample_count, fingerprint };
    let manifest = Manifest::new(IndexRef { file: "00000.idx".into(), fingerprint }, vec![segment], &[]).unwrap();
    std::fs::write(target.join("manifest.json"), manifest.encode().unwrap()).unwrap();
}

/// GEN-2
#[test]
fn a_dataset_of_somebody_elses_files_grows_by_segments_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (target, all) = (folder.path().join("set"), samples(0, 50, 1));
    let mut writer = DatasetWriter::create(&target, WriterOptions { segment_size: 1 << 30, ..rich_options() }).unwrap();
    writer.write_batch(all[..20].to_vec()).unwrap();
    writer.finish().unwrap();
    make_external(&target, None);
    assert_holds(&target, &all[..20]);
    append(&target, &all[20..30]).unwrap();
    append(&target, &all[30..]).unwrap();
    assert_holds(&target, &all);
    assert_whole(&target);
    assert!(folder.path().join("set.data").exists());
}

/// FLD-1
#[test]
fn one_field_that_has_columns_in_the_dataset_gets_them_in_what_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let all: Vec<Sample> = (0..30).map(|i| Sample::new(format!("{i}"), vec![i; 10 * usize::from(i)])).collect();
    let mut writer = DatasetWriter::create(&target, WriterOptions::default()).unwrap();
    writer.write_batch(all[..10].to_vec()).unwrap();
    writer.finish().unwrap();
    let lens: Vec<u64> = all[..10].iter().map(|sample| sample.payload.len() as u64).collect();
    make_external(&target, Some(&lens));
    append(&target, &all[10..]).unwrap();
    assert_holds(&target, &all);
    assert_whole(&target);
    let dataset = Dataset::open(&target).unwrap();
    for (ordinal, sample) in (0..).zip(&all) {
        let len = sample.payload.len() as u64;
        assert_eq!(dataset.fields(ordinal, len).unwrap(), [Some(0..len)]);
    }
}
