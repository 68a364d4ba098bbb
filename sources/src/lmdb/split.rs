//! Splits a tree into ranges of about equal numbers of leaf pages, and checks that the file has all its pages.

use std::collections::BTreeSet;
use std::ops::Range;

use super::file::{DataFile, Fault};
use super::page::u64_at;
use super::tree::{Spot, Tree};

/// The largest number of parts of a database.
const PARTS_MAX: u64 = 64;
/// Leaf pages of a part, at least.
const LEAVES_MIN: u64 = 16;
/// With more twigs than this, their leaf pages are not counted: it is enough to split between twigs.
const TWIGS_COUNTED_MAX: u32 = 1024;
/// Bytes of a list of free pages that are read at once; a multiple of eight.
const LIST_PIECE_LEN: u64 = 64 << 10;

/// Splits a tree into ranges. They depend only on the file.
pub(super) fn split(file: &DataFile, tree: &Tree) -> Vec<Range<Spot>> {
    let twigs = tree.twig_count();
    let leaves: Vec<u16> = (0..twigs).map(|twig| leaf_count(file, tree, twig)).collect();
    let total: u64 = leaves.iter().map(|&count| u64::from(count)).sum();
    let part_count = (total / LEAVES_MIN).clamp(1, PARTS_MAX);
    let mut cuts = vec![Spot::default()];
    let mut before = 0;
    for (twig, count) in (0..twigs).zip(leaves) {
        for child in 0..count {
            let is_wanted = before == total * cuts.len() as u64 / part_count;
            if is_wanted && (cuts.len() as u64) < part_count {
                cuts.push(Spot { twig, child, node: 0 });
            }
            before += 1;
        }
    }
    cuts.push(tree.whole().end);
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Fails where pages are missing at the file's end.
///
/// A valid file may end before its last page: pages that were freed in the transaction that added them are never
/// written. The free database lists them.
pub(super) fn check_len(file: &DataFile) -> Result<(), String> {
    let mut needed = file.meta().last_page.saturating_add(1);
    if needed > file.page_count() {
        // Where the free database cannot be read, none of its pages is known to be free, so pages are missing.
        let free = free_pages(file).unwrap_or_default();
        while needed > file.page_count() && free.contains(&(needed - 1)) {
            needed -= 1;
        }
    }
    if needed <= file.page_count() {
        return Ok(());
    }
    let needed_len = needed.saturating_mul(file.page_len());
    Err(format!("has {} bytes, expected at least {needed_len}: it was cut off, so copy it again", file.len))
}

/// Leaf pages below a twig. A twig that cannot be read counts as one: reading its samples reports the error.
fn leaf_count(file: &DataFile, tree: &Tree, twig: u32) -> u16 {
    if tree.twig_count() > TWIGS_COUNTED_MAX {
        return 1;
    }
    tree.child_count(file, twig).unwrap_or(1)
}

/// The free pages after the file's end. A value of the free database is a list: the number of pages, then the pages.
fn free_pages(file: &DataFile) -> Result<BTreeSet<u64>, Fault> {
    let tree = Tree::open(file, file.meta().free)?;
    let mut entries = tree.entries(file, tree.whole());
    let mut free = BTreeSet::new();
    while let Some((_, found)) = entries.next() {
        let mut list = found?.value()?;
        while list.len > 0 {
            let piece = file.read_head(&list, LIST_PIECE_LEN)?;
            let numbers = piece.chunks_exact(8).filter_map(|number| u64_at(number, 0));
            free.extend(numbers.filter(|page| *page >= file.page_count()));
            list.offset += piece.len() as u64;
            list.len -= piece.len() as u64;
        }
    }
    Ok(free)
}
