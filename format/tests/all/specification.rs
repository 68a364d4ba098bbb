//! spec.md, order.md and the tests agree: every rule is cited by a test, and no test cites a rule that does not exist.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Words like `FTR-4` in a text.
fn rules_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
        .filter(|word| {
            word.split_once('-').is_some_and(|(letters, digits)| {
                (2..=3).contains(&letters.len())
                    && letters.bytes().all(|b| b.is_ascii_uppercase())
                    && !digits.is_empty()
                    && digits.bytes().all(|b| b.is_ascii_digit())
            })
        })
        .map(str::to_owned)
        .collect()
}

/// The text of both pages.
fn pages() -> String {
    ["spec.md", "order.md"].map(|page| std::fs::read_to_string(root().join(page)).unwrap()).concat()
}

/// The rules that the pages define: `- **FTR-4** ...`.
fn defined() -> BTreeSet<String> {
    let pages = pages();
    let heads = pages.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    // Other lists have heads, too.
    let rules: Vec<String> =
        heads.map(|(rule, _)| rule.to_owned()).filter(|rule| rules_in(rule).contains(rule)).collect();
    let set: BTreeSet<String> = rules.iter().cloned().collect();
    assert_eq!(rules.len(), set.len(), "a rule is defined twice");
    set
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            rust_files(&path, into);
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

/// The rules in the documentation of tests, with the file that cites them.
fn cited() -> BTreeMap<String, PathBuf> {
    let mut files = Vec::new();
    let mut cited = BTreeMap::new();
    rust_files(&root(), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut documentation = String::new();
        for line in text.lines().map(str::trim_start) {
            if let Some(comment) = line.strip_prefix("///") {
                documentation.push_str(comment);
                documentation.push(' ');
            } else if line.starts_with("#[test]") {
                cited.extend(rules_in(&documentation).into_iter().map(|rule| (rule, file.clone())));
            } else if !line.starts_with("#[") {
                documentation.clear();
            }
        }
    }
    cited
}

#[test]
fn every_rule_is_cited_by_a_test() {
    let cited = cited();
    let missing: Vec<_> = defined().into_iter().filter(|rule| !cited.contains_key(rule)).collect();
    assert!(missing.is_empty(), "no test cites {missing:?}");
}

#[test]
fn every_rule_that_is_cited_exists() {
    let defined = defined();
    let unknown: Vec<_> = cited().into_iter().filter(|(rule, _)| !defined.contains(rule)).collect();
    assert!(unknown.is_empty(), "no page defines {unknown:?}");
}

#[test]
fn pages_refer_only_to_rules_that_they_define() {
    let defined = defined();
    let others = ["CRC-32", "UTF-8"].map(str::to_owned);
    let unknown: Vec<_> =
        rules_in(&pages()).into_iter().filter(|rule| !defined.contains(rule) && !others.contains(rule)).collect();
    assert!(unknown.is_empty(), "the pages refer to {unknown:?}");
}

/// The letters behind a rule's number, such as the `O` of `- **FTR-4** **[O]** ...`. Rules of procedure have none.
#[test]
fn every_rule_about_bytes_names_whom_it_binds() {
    let text = std::fs::read_to_string(root().join("spec.md")).unwrap();
    let definitions = [
        "CON-1", "CON-2", "CON-3", "CON-4", "CON-5", "CON-6", "CON-9", "CON-10", "KEY-2", "MET-3", "EXT-3", "SIZ-2",
        "VER-2", "GEN-2", "GEN-3", "GEN-4", "GEN-5", "WR-1", "WR-2", "WR-3", "WR-4", "WR-5",
    ];
    let mut without = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("- **")) {
        let Some((rule, rest)) = line.split_once("** ") else { continue };
        if !rule.contains('-') {
            continue; // An item of a list.
        }
        if !["**[O]** ", "**[R]** ", "**[V]** ", "**[W]** "].iter().any(|letter| rest.starts_with(letter)) {
            without.insert(rule.to_owned());
        }
    }
    assert_eq!(without, definitions.map(str::to_owned).into());
}

/// CON-9, CON-10: a fingerprint among bytes and in text, in the chain of FPR-2.
#[test]
fn fingerprints_are_little_endian_in_bytes_and_big_endian_in_text() {
    use grainstore_format::{DatasetFingerprint, Fingerprint};
    assert_eq!(Fingerprint(171).to_string(), "00000000000000ab");
    let mut chain = DatasetFingerprint::new();
    chain.push(Fingerprint(0x0102_0304_0506_0708), 3);
    let bytes = [&[0_u8; 8][..], &[8, 7, 6, 5, 4, 3, 2, 1], &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(chain.get(), Fingerprint(xxhash_rust::xxh64::xxh64(&bytes, 0)));
}
