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
    let rules: Vec<String> = heads.map(|(rule, _)| rule.to_owned()).collect();
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
