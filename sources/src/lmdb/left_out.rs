//! Keys that a mapping leaves out: those that match no pattern, and those whose sample does not exist.

use grainstore_format::{escape_bytes, shown_path};

use super::file::{DataFile, Fault};
use super::page::NodeContent;
use super::pattern::Pattern;
use super::tree::Tree;
use crate::Remark;

/// What datasets of several keys keep beside their samples: how many there are, and which.
const COUNTS: [&[u8]; 7] = [b"num-samples", b"num_samples", b"nSamples", b"__len__", b"__keys__", b"length", b"len"];

/// Keys that are left out, and the first of them.
#[derive(Default)]
struct Keys {
    count: u64,
    first: Option<Vec<u8>>,
}

impl Keys {
    fn add(&mut self, key: &[u8]) {
        self.count += 1;
        self.first.get_or_insert_with(|| key.to_vec());
    }

    fn remark(&self, file: &DataFile, why: &str) -> Option<Remark> {
        let first = escape_bytes(self.first.as_ref()?);
        let path = shown_path(file.path());
        Some(format!("{path}: keys that {why} are NOT packed: {}, such as \"{first}\"", self.count).into())
    }
}

/// The number of the keys that no sample takes, and warnings about them. It reads all leaf pages. A fault ends the
/// search: packing reports it.
pub(super) fn left_out(file: &DataFile, tree: &Tree, patterns: &[Pattern]) -> (u64, Vec<Remark>) {
    let (mut unmatched, mut alone) = (Keys::default(), Keys::default());
    // What was found up to a fault is told.
    let _ = count(file, tree, patterns, (&mut unmatched, &mut alone));
    let key_count = unmatched.count + alone.count;
    let unmatched = unmatched.remark(file, "match no pattern of the mapping");
    let alone = alone.remark(file, "have no key of the first pattern beside them");
    (key_count, unmatched.into_iter().chain(alone).collect())
}

fn count(
    file: &DataFile,
    tree: &Tree,
    patterns: &[Pattern],
    (unmatched, alone): (&mut Keys, &mut Keys),
) -> Result<(), Fault> {
    let Some((first, others)) = patterns.split_first() else { return Ok(()) };
    let mut entries = tree.entries(file, tree.whole());
    while let Some((_, found)) = entries.next() {
        let node = found?.node;
        let is_database = matches!(node.content, NodeContent::Database(_));
        if is_database || first.stem(node.key).is_some() || COUNTS.contains(&node.key) {
            continue;
        }
        match others.iter().find_map(|pattern| pattern.stem(node.key)) {
            None => unmatched.add(node.key),
            Some(stem) if tree.find(file, &first.key(stem))?.is_none() => alone.add(node.key),
            Some(_) => {}
        }
    }
    Ok(())
}
