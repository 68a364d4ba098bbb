//! The tree is what make.py writes, and the second reader agrees with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::root;

/// The files of the corpus that make.py writes, by their paths.
fn made_files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> = ["valid", "invalid", "newer"].map(|name| root.join(name)).into();
    let mut files: Vec<_> = ["expected.json", "orders.json"].map(|name| root.join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    for file in files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        found.insert(name, std::fs::read(file).unwrap());
    }
    found
}

fn python(arguments: &[&Path]) -> std::process::Output {
    let mut command = Command::new("python3");
    command.args(arguments).env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().unwrap()
}

#[test]
fn the_corpus_is_what_its_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let output = python(&[&root().join("make.py"), folder.path()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (made, stored) = (made_files(folder.path()), made_files(root()));
    assert_eq!(made.keys().collect::<Vec<_>>(), stored.keys().collect::<Vec<_>>(), "run corpus/make.py");
    for (name, bytes) in &made {
        assert!(bytes == &stored[name], "{name} is another one than corpus/make.py writes: run it");
    }
}

#[test]
fn the_second_reader_answers_as_the_corpus_expects() {
    let program = Path::new(crate::second::REFERENCE).join("check_corpus.py");
    let output = python(&[&program, root()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
