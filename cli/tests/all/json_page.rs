//! docs/json.md lists the members of the documents that `--json` prints, and no others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::common::Fixture;
use crate::common::place::{Place, numbered};

/// The members that the page lists for each command, in the order of the page.
fn page() -> BTreeMap<String, BTreeSet<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let mut members = BTreeMap::<String, BTreeSet<String>>::new();
    let mut commands = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            commands = heading.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        } else if let Some(cell) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
            for command in &commands {
                let is_new = members.entry(command.clone()).or_default().insert(cell.to_owned());
                assert!(is_new, "docs/json.md lists {cell} of {command} twice");
            }
        }
    }
    members
}

pub(crate) fn assert_listed(command: &str, document: &Value) {
    let found: BTreeSet<String> = document.as_object().unwrap().keys().cloned().collect();
    assert_eq!(page()[command], found, "{command}: docs/json.md (left) and the document");
    assert_eq!(document["schema_version"], 1, "{command}");
}

#[test]
fn the_page_lists_the_members_of_what_packs_and_exports() {
    let place = Place::new();
    place.export("tar", "a.tar", numbered(20, 30));
    place.export("tar", "b.tar", numbered(30, 30).skip(20));
    for (command, line) in [
        ("convert", "convert a.tar d"),
        ("append", "append b.tar d"),
        ("delete", "delete d --subset ordinal<3"),
        ("adopt", "adopt a.tar e"),
        ("export", "export d c.tar"),
    ] {
        assert_listed(command, &place.json(line));
    }
    // The first member is the version, for programs that read no further.
    assert!(place.run_ok("inspect d --json").stdout.starts_with("{\n  \"schema_version\": 1,\n"));
}

#[test]
fn the_page_lists_the_members_of_what_reads() {
    let fixture = Fixture::small();
    for (command, rest) in [("inspect", &["--stats"][..]), ("verify", &[]), ("epoch", &[]), ("plan", &[])] {
        let (status, document) = fixture.json(command, rest);
        assert_eq!(status, 0, "{command}");
        assert_listed(command, &document);
    }
    let rows = fixture.run("ls", ["--json", "--limit", "1"]).stdout;
    assert_listed("ls", &serde_json::from_str(&rows).unwrap());
}

#[test]
fn the_page_lists_the_members_of_a_bench() {
    let (status, document) = Fixture::small().json("bench", ["--seconds", "0.05"]);
    assert_eq!(status, 0);
    assert_listed("bench", &document);
}
