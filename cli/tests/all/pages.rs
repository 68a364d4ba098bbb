//! The pages for readers stay true: docs/cli.md lists the commands and flags that `--help` prints, no page links to a
//! file that does not exist, ARCHITECTURE.md names paths that exist, and no dependency needs a newer Rust than the
//! workspace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{finish, grainstore};

/// Bytes of the README at most: a page that is read at a glance.
const README_LEN_MAX: usize = 9216;

/// Flags by command; each flag with the name of its value, such as `--jobs N`.
type Flags = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn help_of(arguments: &[&str]) -> String {
    let mut process = grainstore();
    process.args(arguments).arg("--help");
    let run = finish(process);
    assert_eq!(run.status, 0, "{arguments:?}: {}", run.stderr);
    run.stdout
}

/// The commands of `grainstore --help`.
fn commands() -> BTreeSet<String> {
    let help = help_of(&[]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let first_words = names.filter_map(|line| line.split_whitespace().next());
    first_words.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The flags that `--help` of a command lists.
///
/// Their lines are indented by 2 or 6, and what explains them by more.
fn flags_in_help(command: &str) -> BTreeSet<String> {
    let help = help_of(&[command]);
    let is_flag = |line: &&str| line.starts_with("      --") || line.starts_with("  -");
    help.lines().filter(is_flag).map(|line| line.trim().replace(['<', '>'], "")).collect()
}

/// The commands that a heading of docs/cli.md is about, and none for a heading of another kind.
///
/// "`grainstore ls DATASET`" is about `ls`; "Flags of `epoch` and `plan`" is about both; "Flags of every command" is
/// about all of them.
fn commands_of_heading(heading: &str, all: &BTreeSet<String>) -> Vec<String> {
    if heading == "Flags of every command" {
        return all.iter().cloned().collect();
    }
    let quoted: Vec<&str> = heading.split('`').skip(1).step_by(2).collect();
    if heading.starts_with("Flags of ") {
        return quoted.into_iter().map(str::to_owned).collect();
    }
    let command = quoted.first().and_then(|text| text.strip_prefix("grainstore ")?.split(' ').next());
    command.map(str::to_owned).into_iter().collect()
}

/// The flags that docs/cli.md lists in the first columns of its tables, by command.
fn flags_in_page(all: &BTreeSet<String>) -> Flags {
    let mut flags = Flags::new();
    let mut about = Vec::new();
    for line in page("docs/cli.md").lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            about = commands_of_heading(heading, all);
            for command in &about {
                flags.entry(command.clone()).or_default();
            }
        } else if let Some(cell) = line.strip_prefix("| `-").and_then(|rest| rest.split('`').next()) {
            for command in &about {
                let is_new = flags.get_mut(command).unwrap().insert(format!("-{cell}"));
                assert!(is_new, "docs/cli.md lists -{cell} of {command} twice");
            }
        }
    }
    flags
}

#[test]
fn the_page_of_the_command_line_lists_the_commands_and_flags_of_the_help() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    let from_help: Flags = commands.iter().map(|name| (name.clone(), flags_in_help(name))).collect();
    let from_page = flags_in_page(&commands);
    let names = |flags: &Flags| flags.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&from_page), names(&from_help), "commands of docs/cli.md (left) and of --help (right)");
    for (command, in_help) in &from_help {
        let in_page = &from_page[command];
        let missing: Vec<_> = in_help.difference(in_page).collect();
        let unknown: Vec<_> = in_page.difference(in_help).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{command}: docs/cli.md lacks {missing:?}, --help {unknown:?}"
        );
    }
}

#[test]
fn the_readme_is_one_page() {
    let len = page("README.md").len();
    assert!(len <= README_LEN_MAX, "README.md has {len} bytes, more than {README_LEN_MAX}");
}

/// The pages at the root, in `docs` and in `docs/python`.
fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/python"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// The anchor of a heading, as GitHub makes it.
fn anchor_of(heading: &str) -> String {
    let kept = heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
    kept.replace(' ', "-")
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 10, "{pages:?}");
    let mut broken = Vec::new();
    for path in &pages {
        let text = std::fs::read_to_string(path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let is_there = if anchor.is_empty() {
                file.exists()
            } else {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                text.lines()
                    .any(|line| line.starts_with('#') && anchor_of(line.trim_start_matches(['#', ' '])) == anchor)
            };
            if !is_there {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Texts in backquotes that look like paths: they contain a slash or end in `.rs`, and nothing but letters of paths.
#[test]
fn every_path_of_the_architecture_exists() {
    let text = page("ARCHITECTURE.md");
    let outside_blocks: String = text.split("```").step_by(2).collect();
    let is_path = |text: &&str| {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        is_plain && text.contains('/') && !text.starts_with('/')
    };
    let paths: Vec<&str> = outside_blocks.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 30, "{paths:?}");
    let missing: Vec<_> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names paths that do not exist: {missing:?}");
}

/// `1.90` as a pair.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap_or(0))
}

#[test]
fn no_dependency_needs_a_newer_rust_than_the_workspace() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    cargo.args(["--filter-platform", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let needs = |package: &serde_json::Value| package["rust_version"].as_str().map(version);
    let ours = packages.iter().find(|package| package["name"] == "grainstore-cli").and_then(needs).unwrap();
    let newer = packages.iter().filter(|package| needs(package).is_some_and(|needed| needed > ours));
    let newer: Vec<_> = newer.map(|package| (package["name"].as_str(), package["rust_version"].as_str())).collect();
    assert!(newer.is_empty(), "these need a newer Rust than {ours:?}: {newer:?}");
}
