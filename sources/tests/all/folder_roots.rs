//! Several folders as one dataset: keys begin with the folder's name, `split` is the number of the folder, and classes
//! are those of all folders. One folder has neither prefix nor `split`.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, Remedy};
use grainstore_sources::folder::{FolderLabels, FolderOptions, FolderSource};
use grainstore_sources::{Blocks, Layout, Source, SourceError, SourceSample};

fn place(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    folder
}

fn open(place: &Path, roots: &[&str], labels: Option<&str>) -> Result<FolderSource, SourceError> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| place.join(root)).collect();
    let options = FolderOptions { labels: labels.map(|labels| place.join(labels)), ..FolderOptions::default() };
    FolderSource::open_all(&roots, &options)
}

/// Key, attributes, and the file's content, part after part.
fn rows(source: &FolderSource) -> Vec<(String, Vec<Option<i64>>, String)> {
    let int = |value: &Option<AttributeValue>| match value {
        Some(AttributeValue::Int(number)) => Some(*number),
        _ => None,
    };
    let mut rows = Vec::new();
    for part in 0..source.description().parts.len() {
        let mut samples = source.open(part, 0, Layout::Packed).unwrap();
        while let Some(SourceSample::Whole { sample, .. }) = samples.next().unwrap() {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            rows.push((text(sample.key), sample.attributes.iter().map(int).collect(), text(sample.payload)));
        }
    }
    rows
}

fn row(key: &str, attributes: &[i64], content: &str) -> (String, Vec<Option<i64>>, String) {
    (key.into(), attributes.iter().map(|&number| Some(number)).collect(), content.into())
}

#[test]
fn classes_are_numbered_over_all_folders() {
    let place = place(&["train/cat/1.jpg", "train/elk/2.jpg", "val/ant/1.jpg", "val/cat/9.jpg"]);
    let source = open(place.path(), &["val", "train/"], None).unwrap();
    let names: Vec<&str> =
        source.description().metadata.schema.attributes().iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["label", "split"]);
    assert_eq!(source.description().metadata.schema.fields()[0].name, "image");
    assert_eq!(
        source.description().metadata.user.member("class_names"),
        Ok(Some(serde_json::json!(["ant", "cat", "elk"])))
    );
    assert_eq!(source.description().metadata.user.member("split_names"), Ok(Some(serde_json::json!(["val", "train"]))));
    let expected = [
        row("val/ant/1.jpg", &[0, 0], "val/ant/1.jpg"),
        row("val/cat/9.jpg", &[1, 0], "val/cat/9.jpg"),
        row("train/cat/1.jpg", &[1, 1], "train/cat/1.jpg"),
        row("train/elk/2.jpg", &[2, 1], "train/elk/2.jpg"),
    ];
    assert_eq!(rows(&source), expected);
    assert_eq!((source.blocks(0).unwrap(), source.blocks(1).unwrap()), (Some(Blocks::Each(2)), Some(Blocks::Each(2))));
    assert_eq!(source.description().origins.len(), 2);
}

#[test]
fn one_folder_without_classes_has_no_labels_if_they_are_not_wanted() {
    let place = place(&["a/x/1", "b/2"]);
    let roots = [place.path().join("a"), place.path().join("b")];
    let options = FolderOptions { folder_labels: FolderLabels::Ignored, ..FolderOptions::default() };
    let source = FolderSource::open_all(&roots, &options).unwrap();
    assert_eq!(rows(&source), [row("a/x/1", &[0], "a/x/1"), row("b/2", &[1], "b/2")]);
    assert_eq!(source.class_count(), None);
    let error = open(place.path(), &["a", "b"], None).unwrap_err();
    assert_eq!(error.remedy(), Some(Remedy::PackWithoutLabels));
    let why = "1 of 2 files are not at CLASS/FILE, so there are no labels: 2";
    assert!(error.to_string().ends_with(why), "{error}");
}

#[test]
fn files_beside_and_below_the_class_folders_are_named() {
    let names: Vec<String> = (0..9).map(|number| format!("all/cat/more/{number}")).collect();
    let mut files: Vec<&str> = names.iter().map(String::as_str).collect();
    files.extend(["all/cat/1", "all/README.txt"]);
    let place = place(&files);
    let error = open(place.path(), &["all"], None).unwrap_err().to_string();
    assert!(error.contains("10 of 11 files are not at CLASS/FILE"), "{error}");
    assert!(error.contains(": README.txt, cat/more/0, cat/more/1, cat/more/2, cat/more/3 and 5 more"), "{error}");
}

#[test]
fn a_table_about_the_other_files_is_never_packed_as_one_of_them() {
    for (name, head) in [
        ("attributes.jsonl", "{\"path\":\"1.jpg\",\"label\":3}\n"),
        ("metadata.jsonl", "{\"file_name\": \"1.jpg\", \"label\": 3}\n"),
        ("metadata.csv", "file_name,label\n1.jpg,3\n"),
    ] {
        let place = place(&["all/1.jpg"]);
        let table = place.path().join("all").join(name);
        fs::write(&table, head).unwrap();
        let error = open(place.path(), &["all"], None).unwrap_err();
        assert_eq!(error.remedy(), Some(Remedy::ReadTable(table.clone())));
        assert_eq!(rows(&open(place.path(), &["all"], table.to_str()).unwrap()), [row("1.jpg", &[3], "all/1.jpg")]);
        let options = FolderOptions { folder_labels: FolderLabels::Ignored, ..FolderOptions::default() };
        let source = FolderSource::open_all(&[place.path().join("all")], &options).unwrap();
        assert_eq!(rows(&source), [row("1.jpg", &[], "all/1.jpg")]);
        assert_eq!((source.description().warnings.len(), source.description().not_packed.files), (1, 1));
        // As Hugging Face lays out several splits: the paths in the table are those from its own folder on.
        let error = open(place.path(), &["."], None).unwrap_err();
        assert!(
            error.remedy().is_none() && error.to_string().contains("convert each folder that has a table by itself")
        );
        // Any other file of the name is a sample.
        fs::write(&table, "a,b\n1,2\n").unwrap();
        assert_eq!(open(place.path(), &["all"], None).unwrap().listing().len(), 2);
    }
}

#[test]
fn a_table_is_known_by_whole_names_of_columns() {
    let folder = place(&["all/1.jpg"]);
    let table = folder.path().join("all/metadata.csv");
    fs::write(&table, "profile_name,age\nx,1\n").unwrap();
    assert_eq!(open(folder.path(), &["all"], None).unwrap().listing().len(), 2);
    // One that Hugging Face reads and this does not.
    fs::write(&table, "text,image_file_name\nx,1.jpg\n").unwrap();
    let error = open(folder.path(), &["all"], None).unwrap_err();
    assert!(error.remedy().is_none() && error.to_string().contains("it is a table about the other files"), "{error}");
}

#[test]
fn what_save_to_disk_wrote_is_refused() {
    for files in [&["s/state.json", "s/dataset_info.json", "s/data-00000-of-00001.arrow"][..], &["s/dataset_dict.json"]]
    {
        let error = open(place(files).path(), &["s"], None).unwrap_err().to_string();
        assert!(error.contains("save_to_disk") && error.contains("to_parquet"), "{error}");
    }
    assert!(open(place(&["s/state.json", "s/1.jpg"]).path(), &["s"], None).is_ok());
}

#[test]
fn junk_takes_no_labels_away_and_is_counted() {
    let junk = [".DS_Store", "cat/.DS_Store", "cat/._1.jpg", "cat/Thumbs.db", "@eaDir/cat/1.jpg", "dog/desktop.ini"];
    let mut files = vec!["cat/1.jpg", "dog/1.jpg", "dog/.hidden.jpg"];
    files.extend(junk);
    let place = place(&files);
    let source = FolderSource::open(place.path(), &FolderOptions::default()).unwrap();
    let found = rows(&source);
    let keys: Vec<&str> = found.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(keys, ["cat/1.jpg", "dog/.hidden.jpg", "dog/1.jpg"]);
    assert_eq!((source.class_count(), source.listing().skipped_junk()), (Some(2), 6));
    let notes = source.description().notes.iter().map(|note| note.text.as_str());
    assert!(notes.clone().any(|note| note == "junk such as .DS_Store and Thumbs.db, ignored: 6"));
}

#[test]
fn one_folder_keeps_its_keys_and_has_no_split() {
    let place = place(&["flat/b", "flat/a"]);
    let source = open(place.path(), &["flat"], None).unwrap();
    assert_eq!(rows(&source), [row("a", &[], "flat/a"), row("b", &[], "flat/b")]);
    assert!(source.description().metadata.schema.attributes().is_empty());
    assert_eq!(source.description().metadata.user.text(), "{}");
}

/// `a-b/` is before `a/` in the order of keys, and both before `c/`, whatever the order of folders.
#[test]
fn a_table_of_labels_is_joined_by_keys_whatever_the_order_of_folders() {
    let place = place(&["a/1", "a/2", "a-b/1", "c/1"]);
    fs::write(place.path().join("t.csv"), "path,n\nc/1,30\na/2,12\na-b/1,20\na/1,11\n").unwrap();
    for roots in [["a", "a-b", "c"], ["c", "a", "a-b"], ["a-b", "c", "a"]] {
        let source = open(place.path(), &roots, Some("t.csv")).unwrap();
        let mut found: Vec<(String, Option<i64>)> = rows(&source).into_iter().map(|row| (row.0, row.1[1])).collect();
        found.sort();
        let expected = [("a-b/1", 20), ("a/1", 11), ("a/2", 12), ("c/1", 30)];
        assert_eq!(found, expected.map(|(key, number)| (key.to_owned(), Some(number))), "{roots:?}");
    }
}

#[test]
fn folders_with_the_same_name_or_inside_each_other_are_refused() {
    let place = place(&["x/train/1", "y/train/1", "x/train/sub/1"]);
    let refused = |roots: &[&str]| open(place.path(), roots, None).unwrap_err().to_string();
    assert!(refused(&["x/train", "y/train"]).contains("has the same name as"));
    assert!(refused(&["x", "x/train"]).contains("is inside the other"));
    assert!(refused(&["x/train/sub", "x/train"]).contains("is inside the other"));
    assert!(refused(&["x/train", "x/train/../train"]).contains("has the same name as"));
    assert!(refused(&[]).contains("no folder was named"));
    assert!(refused(&["x", "nowhere"]).contains("no such folder"));
}
