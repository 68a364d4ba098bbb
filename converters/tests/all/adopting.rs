//! A dataset of adopted files has what a copy would have, as long as the files are complete and do not change; else
//! nothing is left.

#![allow(clippy::single_range_in_vec_init, reason = "a list of parts, of which there may be one")]
#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use grainstore_converters::{AdoptOptions, AdoptSummary, ConvertError, Events, NoEvents, OnBad, Progress, adopt};
use grainstore_format::{ChunkSize, Remedy};
use grainstore_reader::{Reader, ReaderOptions};
use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_sources::list::ListSource;
use grainstore_sources::lmdb::{LmdbOptions, LmdbSource};
use grainstore_sources::parquet::{ParquetOptions, ParquetSource};
use grainstore_sources::tar::{TarOptions, TarSource};
use grainstore_sources::tfrecord::example::Feature;
use grainstore_sources::tfrecord::{TfRecordOptions, TfRecordSource};
use grainstore_sources::{Source, SourceOptions, WHOLE_LEN_MAX, open_source};

use crate::foreign::{archive, example, framed, gzip};
use crate::stored::{self, Shelf, Stored, check_all, pack, stored};

fn small() -> AdoptOptions {
    AdoptOptions { chunk_size: ChunkSize::new(4096).unwrap(), ..AdoptOptions::default() }
}

fn skipping() -> AdoptOptions {
    AdoptOptions { on_bad: OnBad::Skip, ..small() }
}

fn try_adopt(source: &dyn Source, shelf: &Shelf, options: &AdoptOptions) -> Result<AdoptSummary, ConvertError> {
    adopt(source, &shelf.path("adopted.grain"), options, &NoEvents)
}

/// Adopts a source and packs it: both hold the same, and what is adopted can be read.
fn adopted_is_packed(shelf: &Shelf, source: &dyn Source) -> Vec<Stored> {
    let (adopted, packed) = (shelf.path("adopted.grain"), shelf.path("packed.grain"));
    let summary = adopt(source, &adopted, &small(), &NoEvents).unwrap();
    pack(source, &packed).unwrap();
    let (mut found, mut expected) = (stored(&adopted), stored(&packed));
    assert_eq!((summary.written.samples, summary.skipped), (found.len() as u64, vec![]));
    if source.description().kind == "LMDB" {
        found.sort_by(|a, b| a.key.cmp(&b.key));
        expected.sort_by(|a, b| a.key.cmp(&b.key));
    }
    assert!(found == expected, "{found:?}\n{expected:?}");
    let of = |path: &Path| {
        let reader = stored::reader(path);
        (reader.collection().schema().clone(), reader.collection().user_metadata().clone())
    };
    assert_eq!(of(&adopted), of(&packed));
    check_all(&adopted);
    found
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((seed * 31 + i * 7) % 256).try_into().unwrap()).collect()
}

fn tf_record(number: usize) -> Vec<u8> {
    let one = |bytes: Vec<u8>| Feature::bytes(vec![Bytes::from(bytes)]);
    let mut features = vec![
        ("id", one(format!("id-{number:04}").into_bytes())),
        ("image", one(bytes(number, 100 + number * 3))),
        ("label", Feature::int64(vec![number as i64 % 7])),
    ];
    if number % 3 != 1 {
        features.push(("text", one(format!("caption {number}").into_bytes())));
    }
    example(&features)
}

fn tf_records(numbers: std::ops::Range<usize>) -> Vec<u8> {
    let records: Vec<Vec<u8>> = numbers.map(tf_record).collect();
    framed(&records.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn tf_source(paths: &[PathBuf], map: &str) -> TfRecordSource {
    let options = match map {
        "" => TfRecordOptions { raw: true, ..TfRecordOptions::default() },
        map => TfRecordOptions { map: map.parse().unwrap(), ..TfRecordOptions::default() },
    };
    TfRecordSource::open(paths, &options).unwrap()
}

const MAP: &str = "key=id,image,label,text";

fn tar_of(numbers: std::ops::Range<usize>) -> Vec<u8> {
    let members: Vec<(String, Vec<u8>)> = numbers
        .flat_map(|n| {
            let text = (n % 3 != 1).then(|| (format!("{n:04}.txt"), bytes(n, n)));
            let image = (format!("{n:04}.jpg"), bytes(n + 1, 300 + n * 5));
            [Some((format!("{n:04}.cls"), n.to_string().into_bytes())), Some(image), text]
        })
        .flatten()
        .collect();
    archive(&members.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect::<Vec<_>>())
}

fn tar_source(paths: &[PathBuf]) -> TarSource {
    TarSource::open(paths, &TarOptions::default()).unwrap()
}

#[test]
fn tfrecord_files_hold_what_a_copy_would() {
    for ranges in [[0..60].to_vec(), vec![0..40, 40..41, 41..90]] {
        for map in ["", MAP] {
            let shelf = Shelf::new();
            let put = |range: &std::ops::Range<usize>| {
                shelf.put(&format!("{}.tfrecord", range.start), tf_records(range.clone()))
            };
            let paths: Vec<PathBuf> = ranges.iter().map(put).collect();
            let found = adopted_is_packed(&shelf, &tf_source(&paths, map));
            assert_eq!(found.len(), ranges.last().unwrap().end);
        }
    }
}

#[test]
fn tar_files_hold_what_a_copy_would() {
    for ranges in [[0..60].to_vec(), vec![0..40, 40..41, 41..90]] {
        let shelf = Shelf::new();
        let put = |range: &std::ops::Range<usize>| shelf.put(&format!("{}.tar", range.start), tar_of(range.clone()));
        let paths: Vec<PathBuf> = ranges.iter().map(put).collect();
        let found = adopted_is_packed(&shelf, &tar_source(&paths));
        assert_eq!(found.len(), ranges.last().unwrap().end);
        assert_eq!(found[1].fields, [Some(bytes(2, 305)), None]);
    }
    let shelf = Shelf::new();
    let single = shelf.put("s.tar", archive(&[("a/1.jpg", b"one"), ("a/2.jpg", b""), ("b/1.jpg", &[7; 9000])]));
    assert_eq!(adopted_is_packed(&shelf, &tar_source(&[single])).len(), 3);
}

/// A database in one file has its lock file beside it, and lists or read-me files are among shards of any format. The
/// source does not depend on them.
#[test]
fn an_lmdb_beside_a_file_that_is_ignored_is_adopted_in_the_order_of_its_bytes() {
    for fixture in ["plain", "ocr", "datum"] {
        let shelf = Shelf::new();
        shelf.put_fixture(&format!("lmdb/{fixture}.mdb"), "shards/x.mdb");
        shelf.put("shards/x.mdb-lock", b"");
        shelf.put("shards/README", b"which words are on the pictures");
        let source = open_source(&[shelf.path("shards")], &SourceOptions::default()).unwrap();
        assert_eq!(source.description().warnings.len(), 1, "{:?}", source.description().warnings);
        adopted_is_packed(&shelf, source.as_ref());
    }
}

#[test]
fn lmdb_files_hold_what_a_copy_would() {
    for (fixture, count) in [("plain", 30), ("datum", 3)] {
        let shelf = Shelf::new();
        let path = shelf.put_fixture(&format!("lmdb/{fixture}.mdb"), "data.mdb");
        let source = LmdbSource::open(&[path], &LmdbOptions::default()).unwrap();
        assert_eq!(adopted_is_packed(&shelf, &source).len(), count);
    }
    let shelf = Shelf::new();
    let paths = [
        shelf.put_fixture("lmdb/plain.mdb", "1.mdb"),
        shelf.put_fixture("lmdb/shorter_than_its_last_page.mdb", "2.mdb"),
    ];
    let source = LmdbSource::open(&paths, &LmdbOptions::default()).unwrap();
    assert!(adopted_is_packed(&shelf, &source).len() > 30);
}

/// Rows in any order: adopted, samples are in the order of the file.
#[test]
fn listed_files_hold_what_a_copy_would() {
    let shelf = Shelf::new();
    shelf.put("data/a.bin", bytes(1, 5000));
    shelf.put("data/b.bin", bytes(2, 300));
    let list = shelf.put(
        "list.csv",
        "path,offset,length,key,x\ndata/a.bin,10,90,k1,1\ndata/b.bin,0,300,k2,2\ndata/a.bin,100,4000,k3,3\n",
    );
    let found = adopted_is_packed(&shelf, &ListSource::open(&[list]).unwrap());
    assert_eq!(found.iter().map(|sample| sample.key.clone().unwrap()).collect::<Vec<_>>(), ["k1", "k3", "k2"]);
    assert_eq!(found[1].fields, [Some(bytes(1, 5000)[100..4100].to_vec())]);
    let shelf = Shelf::new();
    shelf.put("a.bin", bytes(1, 5000));
    symlink("a.bin", shelf.path("alias.bin")).unwrap();
    let list = shelf.put(
        "list.csv",
        "path,offset,length,key\na.bin,4000,1000,k1\nalias.bin,5,95,k2\na.bin,100,0,k3\na.bin,100,7,k4\n",
    );
    let summary = try_adopt(&ListSource::open(&[list]).unwrap(), &shelf, &small()).unwrap();
    assert_eq!((summary.written.samples, summary.written.segments), (4, 1), "one file has one index");
    assert_eq!(stored::keys(&shelf.path("adopted.grain")), ["k2", "k3", "k4", "k1"]);
    check_all(&shelf.path("adopted.grain"));
}

#[test]
fn samples_of_a_list_that_overlap_are_named_and_not_adopted() {
    let shelf = Shelf::new();
    shelf.put("a.bin", bytes(1, 100));
    let list = shelf.put("list.csv", "path,offset,length\na.bin,50,50\na.bin,0,10\na.bin,9,5\n");
    let source = ListSource::open(std::slice::from_ref(&list)).unwrap();
    let error = try_adopt(&source, &shelf, &small()).unwrap_err().to_string();
    let list = list.display();
    assert!(
        error.ends_with(&format!("two of its samples overlap (line 3 of {list}: 0..10; line 4 of {list}: 9..14)")),
        "{error}"
    );
    pack(&source, &shelf.path("packed.grain")).unwrap();
    assert_eq!(stored(&shelf.path("packed.grain"))[2].fields, [Some(bytes(1, 100)[9..14].to_vec())]);
}

#[test]
fn several_files_at_once_have_the_rows_of_each() {
    let shelf = Shelf::new();
    let paths: Vec<PathBuf> = (0..6).map(|n| shelf.put(&format!("{n}.tar"), tar_of(n * 20..n * 20 + 20))).collect();
    let mut one_by_one = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let dataset = shelf.path(&format!("{number}.grain"));
        adopt(&tar_source(std::slice::from_ref(path)), &dataset, &small(), &NoEvents).unwrap();
        one_by_one.extend(stored(&dataset));
    }
    for jobs in [1, 2, 7] {
        let dataset = shelf.path(&format!("all-{jobs}.grain"));
        let options = AdoptOptions { jobs: std::num::NonZeroUsize::new(jobs), ..small() };
        let summary = adopt(&tar_source(&paths), &dataset, &options, &NoEvents).unwrap();
        assert_eq!(summary.written.segments, 6);
        assert!(stored(&dataset) == one_by_one, "{jobs}");
    }
}

#[test]
fn samples_that_are_not_byte_ranges_of_files_are_refused_with_the_reason() {
    let shelf = Shelf::new();
    let why = |source: &dyn Source| {
        let error = try_adopt(source, &shelf, &small()).unwrap_err();
        assert!(matches!(error, ConvertError::Refused { .. }), "{error}");
        (error.to_string(), error.remedy())
    };
    let path = shelf.put("a.tfrecord.gz", gzip(&tf_records(0..3)));
    assert!(why(&tf_source(&[path], MAP)).0.contains("is compressed (gzip)"));
    let path = shelf.put("a.tar.gz", gzip(&tar_of(0..3)));
    assert!(why(&tar_source(&[path])).0.contains("compressed"));
    let path = shelf.put_fixture("parquet/hf.parquet", "a.parquet");
    let parquet = ParquetSource::open(&[path], &ParquetOptions::default()).unwrap();
    assert!(why(&parquet).0.contains("cannot be adopted"));
    shelf.put("folder/cat/1.jpg", b"x");
    let folder = FolderSource::open(&shelf.path("folder"), &FolderOptions::default()).unwrap();
    assert_eq!(why(&folder).1, Some(Remedy::Convert));
    assert_eq!(shelf.names(), ["a.parquet", "a.tar.gz", "a.tfrecord.gz", "folder"]);
}

#[test]
fn files_outside_the_folder_of_the_dataset_are_adopted_only_where_that_is_allowed() {
    let (shelf, away) = (Shelf::new(), Shelf::new());
    let path = away.put("a.tar", tar_of(0..5));
    let source = tar_source(std::slice::from_ref(&path));
    let error = try_adopt(&source, &shelf, &small()).unwrap_err();
    assert!(matches!(&error, ConvertError::Outside { path: found, .. } if *found == path), "{error}");
    assert!(shelf.names().is_empty());
    try_adopt(&source, &shelf, &AdoptOptions { allow_external: true, ..small() }).unwrap();
    assert!(
        Reader::open(shelf.path("adopted.grain"), ReaderOptions::default()).and_then(|reader| reader.get(0)).is_err()
    );
    assert_eq!(stored(&shelf.path("adopted.grain")).len(), 5);
    check_all(&shelf.path("adopted.grain"));
}

#[test]
fn links_are_followed_to_the_file() {
    let (shelf, away) = (Shelf::new(), Shelf::new());
    shelf.put("deep/a.tar", tar_of(0..5));
    away.put("b.tar", tar_of(5..9));
    symlink("deep/a.tar", shelf.path("link.tar")).unwrap();
    symlink(away.path("b.tar"), shelf.path("out.tar")).unwrap();
    let error = try_adopt(&tar_source(&[shelf.path("out.tar")]), &shelf, &small()).unwrap_err();
    assert!(matches!(error, ConvertError::Outside { .. }), "{error}");
    try_adopt(&tar_source(&[shelf.path("link.tar")]), &shelf, &small()).unwrap();
    fs::remove_file(shelf.path("link.tar")).unwrap();
    assert_eq!(stored(&shelf.path("adopted.grain")).len(), 5, "the link is not what the dataset names");
    // The dataset and its files may be moved together, and be reached by a link.
    let moved = shelf.path("moved");
    fs::create_dir(&moved).unwrap();
    for name in ["deep", "adopted.grain"] {
        fs::rename(shelf.path(name), moved.join(name)).unwrap();
    }
    assert_eq!(stored(&moved.join("adopted.grain")).len(), 5);
}

/// Does something at the first sample.
struct Meanwhile<F>(Cell<Option<F>>);

impl<F: FnOnce()> Events for Meanwhile<F> {
    fn on_progress(&self, _progress: Progress) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

#[test]
fn a_file_that_is_written_to_meanwhile_is_refused_and_nothing_is_left() {
    let append = |path: &Path| File::options().append(true).open(path).unwrap().write_all(&[0; 512]).unwrap();
    let rewrite = |path: &Path| fs::write(path, tar_of(20..40)).unwrap();
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let acts: [&dyn Fn(&Path); 3] = [&append, &rewrite, &remove];
    for act in acts {
        let shelf = Shelf::new();
        let path = shelf.put("a.tar", tar_of(0..20));
        let events = Meanwhile(Cell::new(Some(|| act(&path))));
        for options in [small(), skipping()] {
            let source = tar_source(&[shelf.put("b.tar", tar_of(0..20))]);
            try_adopt(&source, &shelf, &options).unwrap();
            fs::remove_dir_all(shelf.path("adopted.grain")).unwrap();
        }
        let source = tar_source(std::slice::from_ref(&path));
        let error = adopt(&source, &shelf.path("adopted.grain"), &skipping(), &events).unwrap_err().to_string();
        assert!(error.contains("a.tar: it was written to while it was adopted"), "{error}");
        assert!(!shelf.names().iter().any(|name| name.starts_with("adopted")), "{:?}", shelf.names());
    }
}

#[test]
fn a_damaged_record_is_an_error_with_its_location_or_skipped_and_listed() {
    for ranges in [[0..20].to_vec(), vec![0..20, 20..30]] {
        let shelf = Shelf::new();
        let put =
            |range: &std::ops::Range<usize>| shelf.put(&format!("{}.tfrecord", range.start), tf_records(range.clone()));
        let paths: Vec<PathBuf> = ranges.iter().map(put).collect();
        let mut damaged = fs::read(&paths[0]).unwrap();
        let offset: usize = (0..7).map(|n| tf_record(n).len() + 16).sum();
        damaged[offset + 50] ^= 1;
        fs::write(&paths[0], damaged).unwrap();
        let source = tf_source(&paths, MAP);
        let error = try_adopt(&source, &shelf, &small()).unwrap_err();
        assert!(error.is_skippable());
        let error = error.to_string();
        assert!(
            error.starts_with(&paths[0].display().to_string()) && error.contains(&format!("at byte {offset}")),
            "{error}"
        );
        assert!(!shelf.names().iter().any(|name| name.starts_with("adopted")));
        let summary = try_adopt(&source, &shelf, &skipping()).unwrap();
        let total = ranges.last().unwrap().end as u64;
        assert_eq!((summary.written.samples, summary.skipped.len()), (total - 1, 1));
        assert!(
            summary.skipped[0].path == paths[0] && summary.skipped[0].why.text.contains(&format!("at byte {offset}"))
        );
        let keys = stored::keys(&shelf.path("adopted.grain"));
        assert!(!keys.contains(&"id-0007".into()) && keys.contains(&"id-0008".into()));
        check_all(&shelf.path("adopted.grain"));
    }
}

#[test]
fn a_file_that_is_cut_off_is_reported_with_the_location_and_its_front_can_be_adopted() {
    let shelf = Shelf::new();
    let whole = tf_records(0..20);
    let offset: usize = (0..19).map(|n| tf_record(n).len() + 16).sum();
    let record = shelf.put("a.tfrecord", &whole[..whole.len() - 9]);
    let archived = tar_of(0..20);
    let tar = shelf.put("a.tar", &archived[..archived.len() / 2]);
    let sources: [(Box<dyn Source>, &Path, String); 2] = [
        (Box::new(tf_source(std::slice::from_ref(&record), MAP)), &record, format!("at byte {offset}")),
        (Box::new(tar_source(std::slice::from_ref(&tar))), &tar, "at byte ".into()),
    ];
    for (source, path, place) in sources {
        let error = try_adopt(source.as_ref(), &shelf, &small()).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains(&place), "{error}");
        let summary = try_adopt(source.as_ref(), &shelf, &skipping()).unwrap();
        assert_eq!(summary.skipped.len(), 1, "{:?}", summary.skipped);
        check_all(&shelf.path("adopted.grain"));
        fs::remove_dir_all(shelf.path("adopted.grain")).unwrap();
    }
}

#[test]
fn a_missing_file_is_skipped_only_where_the_options_allow_it() {
    let shelf = Shelf::new();
    shelf.put("a.bin", b"hello world");
    let list = shelf.put("list.csv", "path,offset,length\ngone.bin,0,5\na.bin,0,5\na.bin,6,50\n");
    let source = ListSource::open(&[list]).unwrap();
    let error = try_adopt(&source, &shelf, &small()).unwrap_err().to_string();
    assert!(error.contains("gone.bin") && error.contains("No such file"), "{error}");
    let summary = try_adopt(&source, &shelf, &skipping()).unwrap();
    assert_eq!((summary.written.samples, summary.skipped.len()), (1, 2));
    assert!(summary.skipped[0].path.ends_with("gone.bin"));
    assert!(
        summary.skipped[1].why.text.contains("list.csv names bytes 6..56, the file has 11 bytes"),
        "{:?}",
        summary.skipped
    );
    fs::remove_file(shelf.path("a.bin")).unwrap();
    let error = adopt(&source, &shelf.path("other.grain"), &skipping(), &NoEvents).unwrap_err();
    assert!(matches!(error, ConvertError::NothingReadable { count: 2, .. }), "{error}");
}

#[test]
fn samples_that_no_dataset_can_have_are_named_with_their_file() {
    let shelf = Shelf::new();
    let twice = shelf.put("twice.tar", archive(&[("0.jpg", b"x"), ("1.jpg", b"x"), ("2.jpg", b"y"), ("1.jpg", b"z")]));
    let other = shelf.put("other.tar", archive(&[("8.jpg", b"x"), ("9.jpg", b"y")]));
    for paths in [vec![twice.clone()], vec![other.clone(), twice.clone()]] {
        let error = try_adopt(&tar_source(&paths), &shelf, &small()).unwrap_err().to_string();
        assert!(error.starts_with(&twice.display().to_string()) && error.contains("duplicate key \"1\""), "{error}");
    }
    let error = try_adopt(&tar_source(&[other.clone(), other.clone()]), &shelf, &small()).unwrap_err().to_string();
    assert!(
        error.starts_with(&other.display().to_string()) && error.contains("the sample before it ends at"),
        "{error}"
    );
    assert_eq!(shelf.names(), ["other.tar", "twice.tar"]);
}

/// Stops after a number of samples.
struct StopsAfter(u64, Cell<u64>);

impl Events for StopsAfter {
    fn on_progress(&self, progress: Progress) {
        self.1.set(progress.samples);
    }
    fn cancelled(&self) -> bool {
        self.1.get() >= self.0
    }
}

#[test]
fn an_interrupted_adoption_leaves_nothing() {
    let shelf = Shelf::new();
    let paths = [shelf.put("a.tar", tar_of(0..50)), shelf.put("b.tar", tar_of(50..99))];
    for (paths, count) in [(&paths[..1], 20), (&paths[..], 0)] {
        let events = StopsAfter(count, Cell::new(0));
        let error = adopt(&tar_source(paths), &shelf.path("adopted.grain"), &small(), &events).unwrap_err();
        assert!(matches!(error, ConvertError::Interrupted), "{error}");
        assert_eq!(shelf.names(), ["a.tar", "b.tar"]);
    }
}

/// An existing dataset is replaced when the new one is complete, and not before.
#[test]
fn a_dataset_is_replaced_only_by_a_whole_one() {
    let shelf = Shelf::new();
    let path = shelf.put("a.tar", tar_of(0..5));
    try_adopt(&tar_source(std::slice::from_ref(&path)), &shelf, &small()).unwrap();
    assert!(try_adopt(&tar_source(std::slice::from_ref(&path)), &shelf, &small()).is_err());
    let overwriting = AdoptOptions { overwrite: true, ..small() };
    let bad = shelf.put("bad.tar", &tar_of(5..9)[..3000]);
    assert!(try_adopt(&tar_source(&[bad]), &shelf, &overwriting).is_err());
    assert_eq!(stored(&shelf.path("adopted.grain")).len(), 5);
    let other = shelf.put("b.tar", tar_of(5..9));
    try_adopt(&tar_source(&[other]), &shelf, &overwriting).unwrap();
    assert_eq!(stored(&shelf.path("adopted.grain")).len(), 4);
}

#[test]
fn samples_that_are_not_held_in_memory_are_adopted_in_place() {
    let big = bytes(3, grainstore_format::to_usize(WHOLE_LEN_MAX) + (1 << 20));
    let small_files = [("0.cls", &b"4"[..]), ("0.jpg", b"before")];
    let tar = [&small_files[..], &[("1.cls", b"5"), ("1.jpg", &big), ("2.cls", b"6"), ("2.jpg", b"behind")]].concat();
    let tar_bytes = archive(&tar);
    let record_bytes = framed(&[b"before", &big, b"behind"]);
    for several in [false, true] {
        let shelf = Shelf::new();
        let mut paths = vec![shelf.put("a.tar", &tar_bytes)];
        if several {
            paths.push(shelf.put("b.tar", archive(&[("7.cls", b"1"), ("7.jpg", b"x")])));
        }
        adopted_has(&shelf, &tar_source(&paths), &big);
        let mut paths = vec![shelf.put("a.tfrecord", &record_bytes)];
        if several {
            paths.push(shelf.put("b.tfrecord", framed(&[b"x"])));
        }
        adopted_has(&shelf, &tf_source(&paths, ""), &big);
        let list = format!("path,offset,length\na.tfrecord,12,6\na.tfrecord,{},{}\n", 12 + 6 + 4 + 12, big.len());
        let list = shelf.put("list.csv", list + if several { "b.tfrecord,12,1\n" } else { "" });
        adopted_has(&shelf, &ListSource::open(&[list]).unwrap(), &big);
    }
}

/// The second sample is the long one.
fn adopted_has(shelf: &Shelf, source: &dyn Source, long: &[u8]) {
    try_adopt(source, shelf, &small()).unwrap();
    let dataset = shelf.path("adopted.grain");
    let found = stored(&dataset);
    assert!(found[1].fields == [Some(long.to_vec())], "{}", source.description().kind);
    assert_eq!(found[0].fields, [Some(b"before".to_vec())]);
    check_all(&dataset);
    fs::remove_dir_all(dataset).unwrap();
}
