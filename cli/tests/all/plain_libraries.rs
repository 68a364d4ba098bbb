//! Libraries name no flag: an error carries a remedy, and only a front end knows its flags and arguments.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The folders that are not libraries: the front ends, and what only developers run.
const NOT_LIBRARIES: [&str; 6] = ["cli", "python", "benches", "fuzz", "target", "examples"];

#[test]
fn no_string_of_a_library_names_a_flag() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    let is_library = |name: &str| !NOT_LIBRARIES.contains(&name) && !name.starts_with('.');
    let sources = crates.filter(|entry| entry.file_name().to_str().is_some_and(is_library));
    let files: Vec<PathBuf> = sources.flat_map(|entry| rust_files(&entry.path().join("src"))).collect();
    assert!(files.len() > 100, "{} files", files.len());
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().zip(1..).filter(|(line, _)| !is_comment(line) && names_a_flag(line));
        found.extend(lines.map(|(line, number)| format!("{}:{number}: {}", file.display(), line.trim())));
    }
    assert!(found.is_empty(), "a library names a flag: give its error a `Remedy`\n{}", found.join("\n"));
}

#[test]
fn a_flag_is_found_anywhere_in_a_string() {
    for line in [
        "let a = \"--restart starts over\";",
        "    f(\"begin, with --restart\")",
        "  choose `--map` here \\",
        "\"(--x)\"",
    ] {
        assert!(names_a_flag(line), "{line}");
    }
    for line in ["let a = b - -c;", "a--b", "\"-----\"", "\"a -- b\""] {
        assert!(!names_a_flag(line), "{line}");
    }
}

/// Two dashes and a letter behind them, where a word begins. Code has no such thing, so strings are not looked for.
fn names_a_flag(line: &str) -> bool {
    line.match_indices("--").any(|(at, _)| {
        let begins_word = line[..at].chars().last().is_none_or(|before| !before.is_alphanumeric() && before != '-');
        begins_word && line[at + 2..].starts_with(|after: char| after.is_ascii_lowercase())
    })
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
