//! The corpora in the tree: every file holds its property, on a build without a fuzzer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grainstore_fuzz::TARGETS;
use grainstore_fuzz::seeds::seeds;

/// The files of every target that are kept in the tree.
fn corpus() -> BTreeMap<&'static str, Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = |target: &str| {
        let entries = std::fs::read_dir(root.join(target)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "bin")).collect()
    };
    TARGETS.iter().map(|(target, _)| (*target, files(target))).collect()
}

#[test]
fn every_file_holds_its_property() {
    let corpus = corpus();
    for (target, property) in TARGETS {
        for path in &corpus[target] {
            eprintln!("{}", path.display());
            property(&std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_seed_is_in_the_tree_as_it_is_made() {
    let corpus = corpus();
    for seed in seeds() {
        let name = format!("{}.bin", seed.name);
        let path = corpus[seed.target].iter().find(|path| path.ends_with(&name));
        let path = path.unwrap_or_else(|| panic!("{}/{name} is missing", seed.target));
        assert_eq!(std::fs::read(path).unwrap(), seed.bytes, "{}/{name}", seed.target);
    }
    assert!(corpus.values().all(|files| !files.is_empty()));
}

#[test]
fn the_corpora_stay_small() {
    let lens = corpus().into_values().flatten().map(|path| std::fs::metadata(path).unwrap().len());
    let lens: Vec<u64> = lens.collect();
    // Archives of other programs are padded: a tar to 10 KiB.
    assert!(lens.iter().all(|len| *len <= 10 << 10));
    assert!(lens.iter().sum::<u64>() <= 200 << 10);
}
