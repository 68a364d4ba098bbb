//! Every query of a dataset, on datasets with known contents.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop here")]
#![allow(clippy::cast_possible_truncation, reason = "hosts of another width do not compile")]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use grainstore_format::{Alignment, AttributeType, AttributeValue, Remedy};
use grainstore_store::{Dataset, Encoding, OpenOptions, OpenedFile, StoreError};

use crate::common::{Built, DatasetModel, ModelSample, assert_reported, read, seen, use_all, verify};

/// Opens, reads everything with every accessor, verifies.
#[track_caller]
fn assert_whole(model: &DatasetModel, built: &Built) {
    let all = use_all(&built.path).unwrap();
    let expected: Vec<_> = model.samples().into_iter().map(|sample| seen(model, sample)).collect();
    assert_eq!(all, expected);
    let (report, damage) = verify(&built.path).unwrap();
    assert_eq!(damage, vec![]);
    assert_eq!((report.samples, report.segments), (expected.len() as u64, model.segments.len() as u64));
}

/// FIL-2, ATR-1, ATR-2, FLD-1, FLD-2, FLD-3, KEY-7, RD-1, SMP-2
#[test]
fn one_segment_of_every_alignment_answers_as_its_model() {
    let alignments = [
        Alignment::PACKED,
        Alignment::multiple_of(8).unwrap(),
        Alignment::multiple_of(64).unwrap(),
        Alignment::multiple_of(4096).unwrap(),
        Alignment::NoEdges,
    ];
    for alignment in alignments {
        let mut model = DatasetModel::rich(&[23]);
        model.geometry = DatasetModel::geometry(alignment);
        assert_whole(&model, &model.write());
    }
}

/// FIL-3, ENT-1, SEG-1, MAN-4, EXT-1, EXT-2
#[test]
fn several_segments_native_and_external_are_one_dataset() {
    let mut model = DatasetModel::rich(&[3, 130, 1, 40]);
    assert_whole(&model, &model.write());
    model.segments[1].1 = true;
    model.segments[3].1 = true;
    let built = model.write();
    assert_whole(&model, &built);
    let dataset = Dataset::open(&built.path).unwrap();
    let external: Vec<bool> = dataset.segments().iter().map(|segment| segment.is_external()).collect();
    assert_eq!(external, [false, true, false, true]);
    assert_eq!(dataset.segments()[1].ordinals(), 3..133);
    assert_eq!(dataset.locate(3).unwrap().offset, 0, "an external sample may start at 0");
}

/// FIL-3, EXT-1
#[test]
fn one_external_segment_is_a_dataset() {
    let mut model = DatasetModel::rich(&[12]);
    model.segments[0].1 = true;
    assert_whole(&model, &model.write());
}

/// FIL-2, FPR-2
#[test]
fn a_lone_native_segment_opens() {
    let model = DatasetModel::rich(&[20]);
    let built = model.write();
    let lone = built.path.join("00000.seg");
    assert_eq!(use_all(&lone).unwrap(), use_all(&built.path).unwrap());
    assert_eq!(verify(&lone).unwrap().1, vec![]);
    let (lone, whole) = (Dataset::open(&lone).unwrap(), Dataset::open(&built.path).unwrap());
    assert_eq!(lone.fingerprint(), whole.fingerprint());
    let second = OpenOptions { generation: Some(1), ..OpenOptions::default() };
    assert!(matches!(Dataset::open_with(lone.path(), &second), Err(StoreError::NoSuchGeneration { count: 1, .. })));
}

/// FLD-1
#[test]
fn a_single_field_without_sections_is_the_whole_payload() {
    let model = DatasetModel::plain(&[b"hello".to_vec(), vec![], vec![7; 9000]]);
    let built = model.write();
    assert_whole(&model, &built);
    let dataset = Dataset::open(&built.path).unwrap();
    assert_eq!(dataset.fields(2, 9000).unwrap(), vec![Some(0..9000)]);
    assert!(!dataset.is_keyed());
    assert_eq!((dataset.key(0).unwrap(), dataset.find(b"hello").unwrap()), (None, None));
}

/// ATR-1
#[test]
fn attributes_of_every_type_round_trip() {
    use AttributeValue::{Bool, Float32, Float64, Int, Uint};
    let kinds = [
        ("a", AttributeType::Bool, Bool(true)),
        ("b", AttributeType::Int8, Int(-1)),
        ("c", AttributeType::Int16, Int(-2)),
        ("d", AttributeType::Int32, Int(-3)),
        ("e", AttributeType::Int64, Int(i64::MIN)),
        ("f", AttributeType::Uint8, Uint(255)),
        ("g", AttributeType::Uint16, Uint(65535)),
        ("h", AttributeType::Uint32, Uint(7)),
        ("i", AttributeType::Uint64, Uint(u64::MAX)),
        ("j", AttributeType::Float32, Float32(0.5)),
        ("k", AttributeType::Float64, Float64(-0.25)),
        ("l", AttributeType::Float16, AttributeValue::Float16(half::f16::from_f32(-0.5))),
        ("m", AttributeType::Bfloat16, AttributeValue::Bfloat16(half::bf16::from_f32(3.0))),
        ("n", AttributeType::Timestamp, AttributeValue::Timestamp(-1)),
        ("o", AttributeType::Category, AttributeValue::Category("train".into())),
    ];
    let mut model = DatasetModel::plain(&[b"x".to_vec(), b"y".to_vec()]);
    model.attributes = kinds.iter().map(|(name, kind, _)| (*name, kind.clone())).collect();
    model.segments[0].0[0].attributes = kinds.iter().map(|kind| Some(kind.2.clone())).collect();
    model.segments[0].0[1].attributes = vec![None; kinds.len()];
    let built = model.write();
    assert_whole(&model, &built);
    let dataset = Dataset::open(&built.path).unwrap();
    let column = dataset.column("g").unwrap();
    assert_eq!((column.width, column.bytes, column.len), (2, &[255, 255, 0, 0][..], 2));
    assert_eq!(column.validity.unwrap().count_ones(), 1);
    assert_eq!(column.get(2), None);
    let error = dataset.column("z").unwrap_err().to_string();
    assert!(error.contains("no attribute \"z\""), "{error}");
}

/// GEN-1
#[test]
fn an_older_generation_sees_its_own_segments_only() {
    let mut model = DatasetModel::rich(&[7, 13, 70]);
    model.earlier = vec![1, 2];
    let built = model.write();
    assert_whole(&model, &built);
    for (generation, samples) in [(0, 7), (1, 20), (2, 90)] {
        let older =
            Dataset::open_with(&built.path, &OpenOptions { generation: Some(generation), ..OpenOptions::default() })
                .unwrap();
        let mut cut = model.clone();
        cut.segments.truncate(generation + 1);
        cut.earlier.truncate(generation);
        let alone = cut.write();
        let alone = Dataset::open(&alone.path).unwrap();
        assert_eq!(older.sample_count(), samples);
        assert_eq!(older.segments().len(), generation + 1);
        assert_eq!(older.fingerprint(), alone.fingerprint(), "the generation was once the dataset");
        assert_eq!(older.generation_of(alone.fingerprint()), Some(generation));
        assert_eq!(alone.generation_of(older.fingerprint()), Some(generation));
        for (ordinal, sample) in (0..samples).zip(cut.samples()) {
            assert_eq!(read(&older, ordinal).unwrap(), seen(&cut, sample));
        }
        assert_eq!(older.chunks().unwrap().len(), alone.chunks().unwrap().len());
        let edges = |dataset: &Dataset| dataset.chunks().unwrap().edge_samples().collect::<Vec<_>>();
        assert_eq!(edges(&older), edges(&alone));
        assert_eq!(older.stored_bytes().unwrap(), alone.stored_bytes().unwrap());
        assert_eq!(older.payload_bytes().unwrap(), alone.payload_bytes().unwrap());
        assert!(matches!(older.locate(samples), Err(StoreError::NoSuchOrdinal { .. })));
        assert!(older.key(samples).is_err() && older.attributes(samples).is_err() && older.fields(samples, 1).is_err());
        assert_eq!(older.find(format!("key/{samples}").as_bytes()).unwrap(), None);
        let column = older.column("label").unwrap();
        assert_eq!((column.len, column.bytes.len() as u64, column.get(samples)), (samples, 8 * samples, None));
        assert_eq!(
            column.validity.unwrap().count_ones(),
            alone.column("label").unwrap().validity.unwrap().count_ones()
        );
        assert_eq!((older.facts().unwrap().generations, older.facts().unwrap().samples), (3, samples));
    }
    let missing = Dataset::open_with(&built.path, &OpenOptions { generation: Some(3), ..OpenOptions::default() });
    assert!(matches!(missing, Err(StoreError::NoSuchGeneration { generation: 3, count: 3, .. })));
}

#[test]
fn facts_add_up_to_the_files_on_disk() {
    let mut model = DatasetModel::rich(&[30, 12]);
    model.segments[1].1 = true;
    let built = model.write();
    let facts = Dataset::open(&built.path).unwrap().facts().unwrap();
    let on_disk: u64 = std::fs::read_dir(&built.path).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(facts.file_bytes, on_disk);
    assert!(facts.index_bytes > 0 && facts.index_bytes < on_disk);
    let payload: usize = model.samples().iter().map(|sample| sample.payload().len()).sum();
    assert_eq!((facts.payload_bytes, facts.samples, facts.segments), (payload as u64, 42, 2));
    assert!(facts.stored_bytes < facts.payload_bytes, "some samples are LZ4");
    assert_eq!((facts.external_segments, facts.generations, facts.keyed), (1, 1, true));
    assert_eq!(facts.lz4_samples, model.samples().iter().filter(|sample| sample.lz4).count() as u64);
    assert!(facts.edge_samples > 0);
    assert_eq!((facts.long_samples, facts.attributes, facts.fields, facts.chunk_size), (0, 4, 2, 4096));
}

#[test]
fn after_load_nothing_is_read_to_locate_a_sample() {
    let model = DatasetModel::rich(&[5000]);
    let built = model.write();
    let dataset = Dataset::open(&built.path).unwrap();
    let opened = dataset.index_bytes_read();
    assert!(opened <= 128 << 10, "opening read {opened} bytes");
    dataset.load().unwrap();
    let loaded = dataset.index_bytes_read();
    for ordinal in 0..5000 {
        let location = dataset.locate(ordinal).unwrap();
        assert_eq!(matches!(location.encoding, Encoding::Lz4 { .. }), ordinal % 5 == 3);
    }
    dataset.load().unwrap();
    assert_eq!(dataset.index_bytes_read(), loaded);
}

#[test]
fn a_clone_shares_what_was_loaded_and_works_in_other_threads() {
    let built = DatasetModel::rich(&[100]).write();
    let dataset = Dataset::open(&built.path).unwrap();
    dataset.load().unwrap();
    let read_before = dataset.index_bytes_read();
    let threads = (0..4).map(|_| {
        let dataset = dataset.clone();
        std::thread::spawn(move || (0..100).map(|o| dataset.locate(o).unwrap().stored_len).sum::<u64>())
    });
    for thread in threads.collect::<Vec<_>>() {
        assert_eq!(thread.join().unwrap(), dataset.stored_bytes().unwrap());
    }
    assert_eq!(dataset.index_bytes_read(), read_before);
}

#[test]
fn a_path_that_is_not_a_dataset_is_refused_with_a_reason() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    assert!(matches!(Dataset::open(at("nothing")), Err(StoreError::NotFound { .. })));
    std::fs::create_dir(at("empty")).unwrap();
    std::fs::create_dir(at("x.grain.partial")).unwrap();
    std::fs::write(at("text"), "hello").unwrap();
    for (name, what) in [
        ("empty", "not a dataset: the directory has no manifest.json"),
        ("x.grain.partial", "\"x.grain.partial\" is what an interrupted command left"),
        ("x.grain", "\"x.grain.partial\" is what an interrupted command left"),
    ] {
        let error = Dataset::open(at(name)).unwrap_err();
        let is_interrupted = what.ends_with("interrupted command left");
        assert_eq!(matches!(error, StoreError::Unfinished { .. }), is_interrupted, "{error}");
        assert_eq!(error.remedy(), is_interrupted.then_some(Remedy::Resume));
        assert!(error.to_string().ends_with(what), "{error}");
        assert!(verify(&at(name)).is_err());
    }
    assert!(Dataset::open(at("text")).is_err() && verify(&at("text")).is_err());
    let built = DatasetModel::rich(&[2, 2]).write();
    let error = Dataset::open(built.path.join("index.idx")).unwrap_err().to_string();
    assert!(error.contains("holds no samples"), "{error}");
}

#[test]
fn a_missing_or_shorter_segment_is_named_when_it_is_used() {
    let built = DatasetModel::rich(&[4, 4]).write();
    let segment = built.path.join("00001.seg");
    std::fs::remove_file(&segment).unwrap();
    let dataset = Dataset::open(&built.path).unwrap();
    assert!(dataset.segment_file(0).is_ok());
    assert!(matches!(dataset.segment_file(1), Err(StoreError::NotFound { path }) if path == segment));
    assert!(dataset.segment_file(2).is_err());
    assert_reported(&built.path, "00001.seg: no such file");
    std::fs::write(&segment, "short").unwrap();
    assert!(dataset.segment_file(1).unwrap_err().to_string().contains("5 bytes, the manifest has"));
}

/// FPR-3
#[test]
fn a_file_is_compared_by_one_read_of_its_last_block_and_known_again_without_one() {
    let built = DatasetModel::rich(&[4, 4]).write();
    let dataset = Dataset::open(&built.path).unwrap();
    let reads_of = |path: &Path, with_descriptor: bool| {
        let file = File::open(path).unwrap();
        let len = file.metadata().unwrap().len();
        let mut reads = vec![];
        let opened = OpenedFile { len, fd: with_descriptor.then(|| file.as_fd()) };
        let checked: Result<(), StoreError> = dataset.check_opened_segment(1, opened, |bytes, offset| {
            reads.push((len - offset, bytes.len()));
            file.read_exact_at(bytes, offset).unwrap();
            Ok(())
        });
        (checked, reads)
    };
    let segment = built.path.join("00001.seg");
    for (with_descriptor, expected) in [(false, 1), (true, 1), (true, 0), (false, 1)] {
        let (checked, reads) = reads_of(&segment, with_descriptor);
        checked.unwrap();
        assert_eq!(reads, vec![(4096, 4096); expected]);
    }
    // Another file by the same path: a copy is compared and right, other bytes are not.
    let copy = built.path.join("copy");
    std::fs::copy(&segment, &copy).unwrap();
    std::fs::rename(&copy, &segment).unwrap();
    let (checked, reads) = reads_of(&segment, true);
    checked.unwrap();
    assert_eq!(reads.len(), 1);
    let (checked, _) = reads_of(&built.path.join("00000.seg"), true);
    assert!(matches!(checked, Err(StoreError::Mismatch { .. })), "{checked:?}");
}

#[test]
fn a_model_sample_without_fields_has_an_empty_payload() {
    let mut model = DatasetModel::rich(&[3]);
    model.segments[0].0[1] = ModelSample { fields: vec![None, None], ..model.segments[0].0[1].clone() };
    assert_whole(&model, &model.write());
}

/// ATR-1, ATR-2
#[test]
fn cached_attributes_are_those_that_are_read() {
    let model = DatasetModel::rich(&[3, 130]);
    let built = model.write();
    let dataset = Dataset::open(&built.path).unwrap();
    let (samples, attributes) = (dataset.sample_count(), dataset.schema().attributes().len());
    assert!(attributes > 1);
    for place in 0..attributes {
        assert_eq!(dataset.cached_attribute(place, 0), None, "nothing was read");
    }
    for attribute in dataset.schema().attributes() {
        dataset.column(&attribute.name).unwrap();
    }
    for ordinal in 0..samples {
        let read = dataset.attributes(ordinal).unwrap();
        let at_hand: Vec<_> = (0..attributes).map(|place| dataset.cached_attribute(place, ordinal).unwrap()).collect();
        assert_eq!(at_hand, read, "sample {ordinal}");
    }
    assert_eq!(dataset.cached_attribute(0, samples), None);
    assert_eq!(dataset.cached_attribute(attributes, 0), None);
}
