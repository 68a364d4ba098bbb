//! A tree of pages: iterates over it from any position, and searches it.
//!
//! A twig is a branch page whose children are leaf pages. A position is three indexes: of a twig in the tree's order,
//! of a leaf page in the twig, and of a node in the leaf page. Only the page numbers of twigs are in memory: eight
//! bytes for some hundred leaf pages. No twig is there twice, and no child is twice in its twig, so iterating ends even
//! in a damaged file. Keys may be in any order.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

use super::file::{DataFile, Fault, StoredValue};
use super::meta::Record;
use super::page::{Node, NodeContent, Page};
use super::window::Window;
use crate::Reach;

/// A tree, with the page numbers of its twigs.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    record: Record,
    twigs: Twigs,
    twig_count: u32,
}

#[derive(Clone, Debug)]
enum Twigs {
    /// The root is the only leaf page. It is treated as the child of a twig.
    Root(u64),
    /// Branch pages.
    Pages(Vec<u64>),
}

/// A position in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) twig: u32,
    pub(super) child: u16,
    pub(super) node: u16,
}

impl Spot {
    /// The position as a number, in the same order.
    pub(super) fn position(self) -> u64 {
        u64::from(self.twig) << 32 | u64::from(self.child) << 16 | u64::from(self.node)
    }

    /// The position from such a number.
    pub(super) fn at(position: u64) -> Self {
        let [a, b, c, d, twig @ ..] = position.to_le_bytes();
        Self { twig: u32::from_le_bytes(twig), child: u16::from_le_bytes([c, d]), node: u16::from_le_bytes([a, b]) }
    }
}

impl Tree {
    /// Reads the pages above the twigs.
    pub(super) fn open(file: &DataFile, record: Record) -> Result<Self, Fault> {
        if record.is_empty() {
            return Ok(Self { record, twigs: Twigs::Pages(Vec::new()), twig_count: 0 });
        }
        if record.depth == 1 {
            return Ok(Self { record, twigs: Twigs::Root(record.root), twig_count: 1 });
        }
        let mut level = vec![record.root];
        for _ in 2..record.depth {
            level = level_below(file, &level)?;
        }
        let too_many =
            || format!("its tree has {} branch pages above leaf pages, expected {} at most", level.len(), u32::MAX);
        let twig_count = u32::try_from(level.len()).map_err(|_| file.fault(record.root, too_many()))?;
        Ok(Self { record, twigs: Twigs::Pages(level), twig_count })
    }

    /// Number of its pages of all kinds, from its record.
    pub(super) fn page_count(&self) -> u64 {
        self.record.page_count
    }

    /// Whether its keys can be searched.
    pub(super) fn is_ordered_by_bytes(&self) -> bool {
        self.record.is_ordered_by_bytes()
    }

    /// Number of twigs.
    pub(super) fn twig_count(&self) -> u32 {
        self.twig_count
    }

    /// Number of leaf pages below a twig; an error where [`Tree::children`] is one.
    pub(super) fn child_count(&self, file: &DataFile, twig: u32) -> Result<u16, Fault> {
        match &self.twigs {
            Twigs::Root(_) => Ok(1),
            Twigs::Pages(pages) => {
                let page = twig_page(pages, twig)?;
                let mut bytes = Vec::new();
                file.read_page(page, &mut bytes)?;
                let branch = Page::branch(&bytes).map_err(|why| file.fault(page, why))?;
                branch.children().map_err(|why| file.fault(page, why))?;
                Ok(branch.node_count())
            }
        }
    }

    /// The leaf pages below a twig, in order.
    pub(super) fn children(&self, file: &DataFile, twig: u32) -> Result<Vec<u64>, Fault> {
        match &self.twigs {
            Twigs::Root(page) => Ok(vec![*page]),
            Twigs::Pages(pages) => children(file, twig_page(pages, twig)?, &mut Vec::new()),
        }
    }

    /// Iterates over the nodes of a range.
    pub(super) fn entries<'a>(&'a self, file: &'a DataFile, range: Range<Spot>) -> Entries<'a> {
        let Range { start, end } = range;
        let window = Window::default();
        Entries {
            tree: self,
            file,
            at: start,
            end,
            children: None,
            page: 0,
            leaf: Vec::new(),
            node_count: None,
            window,
        }
    }

    /// The range of all nodes.
    pub(super) fn whole(&self) -> Range<Spot> {
        Spot::default()..Spot { twig: self.twig_count(), ..Spot::default() }
    }

    /// The content of `key`, and its value; `None` where there is no such key.
    pub(super) fn find(&self, file: &DataFile, key: &[u8]) -> Result<Option<(NodeContent, StoredValue)>, Fault> {
        if self.record.is_empty() {
            return Ok(None);
        }
        let mut page = self.record.root;
        let mut bytes = Vec::new();
        for _ in 1..self.record.depth {
            file.read_page(page, &mut bytes)?;
            page =
                Page::branch(&bytes).and_then(|branch| child_for(&branch, key)).map_err(|why| file.fault(page, why))?;
        }
        file.read_page(page, &mut bytes)?;
        let found = Page::leaf(&bytes).and_then(|leaf| node_of(&leaf, key)).map_err(|why| file.fault(page, why))?;
        let Some(node) = found else { return Ok(None) };
        let value = file.value(page, &bytes, &node.content, &mut Window::default())?;
        Ok(Some((node.content, value)))
    }
}

/// Iterates over the nodes of a range of a tree.
pub(super) struct Entries<'a> {
    tree: &'a Tree,
    file: &'a DataFile,
    at: Spot,
    end: Spot,
    children: Option<Vec<u64>>,
    /// The leaf page in `leaf`; valid where `node_count` is set.
    page: u64,
    leaf: Vec<u8>,
    node_count: Option<u16>,
    /// For values on overflow pages.
    window: Window,
}

/// A node and its page.
pub(super) struct FoundNode<'a> {
    pub(super) node: Node<'a>,
    file: &'a DataFile,
    page: u64,
    leaf: &'a [u8],
    /// Bytes after the values that were read before.
    pub(super) window: &'a mut Window,
}

impl FoundNode<'_> {
    /// Its value.
    pub(super) fn value(&mut self) -> Result<StoredValue, Fault> {
        self.file.value(self.page, self.leaf, &self.node.content, self.window)
    }
}

impl Entries<'_> {
    /// The next node and its position. A bad page counts as one bad node.
    pub(super) fn next(&mut self) -> Option<(Spot, Result<FoundNode<'_>, Fault>)> {
        match self.advance()? {
            (spot, Ok(())) => {
                let node = Page::leaf(&self.leaf).and_then(|leaf| leaf.entry(spot.node));
                let file = self.file;
                let page = self.page;
                let leaf = self.leaf.as_slice();
                let window = &mut self.window;
                let found = node.map(|node| FoundNode { node, file, page, leaf, window });
                Some((spot, found.map_err(|why| file.fault(page, why))))
            }
            (spot, Err(fault)) => {
                if fault.reach == Reach::Rest {
                    self.at = self.end;
                }
                Some((spot, Err(fault)))
            }
        }
    }

    /// Moves past a node, whose page is then in `leaf`, or past a bad page.
    fn advance(&mut self) -> Option<(Spot, Result<(), Fault>)> {
        while self.at < self.end {
            let spot = self.at;
            match self.load() {
                Err(fault) if self.children.is_none() => {
                    self.next_twig();
                    return Some((spot, Err(fault)));
                }
                Err(fault) => {
                    self.next_child();
                    return Some((spot, Err(fault)));
                }
                Ok(None) => self.next_twig(),
                Ok(Some(node_count)) if spot.node >= node_count => self.next_child(),
                Ok(Some(_)) => {
                    self.at.node += 1;
                    return Some((spot, Ok(())));
                }
            }
        }
        None
    }

    /// Loads the current leaf page, and returns its number of nodes; `None` after the last leaf page of a twig.
    fn load(&mut self) -> Result<Option<u16>, Fault> {
        if self.children.is_none() {
            self.children = Some(self.tree.children(self.file, self.at.twig)?);
        }
        let child = self.children.as_ref().and_then(|children| children.get(usize::from(self.at.child)));
        let Some(&page) = child else { return Ok(None) };
        if self.node_count.is_none() {
            self.page = page;
            self.file.read_page(page, &mut self.leaf)?;
            let leaf = Page::leaf(&self.leaf).map_err(|why| self.file.fault(page, why))?;
            self.node_count = Some(leaf.node_count());
        }
        Ok(self.node_count)
    }

    fn next_child(&mut self) {
        self.node_count = None;
        match self.at.child.checked_add(1) {
            Some(child) => self.at = Spot { child, node: 0, ..self.at },
            None => self.next_twig(),
        }
    }

    fn next_twig(&mut self) {
        self.children = None;
        self.node_count = None;
        self.at = Spot { twig: self.at.twig.saturating_add(1), child: 0, node: 0 };
    }
}

fn twig_page(pages: &[u64], twig: u32) -> Result<u64, Fault> {
    let page = pages.get(grainstore_format::to_usize(twig.into())).copied();
    page.ok_or_else(|| Fault::bug("a position in an LMDB is after the last twig"))
}

/// All children of a level of branch pages; one that appears twice is an error.
fn level_below(file: &DataFile, level: &[u64]) -> Result<Vec<u64>, Fault> {
    let mut below = Vec::new();
    let mut seen = HashSet::new();
    let mut bytes = Vec::new();
    for &page in level {
        for child in children(file, page, &mut bytes)? {
            if child >= file.page_count() || !seen.insert(child) {
                return Err(
                    file.fault(page, format!("its child {child} is not a page, or is the child of another page too"))
                );
            }
            below.push(child);
        }
    }
    Ok(below)
}

fn children(file: &DataFile, page: u64, bytes: &mut Vec<u8>) -> Result<Vec<u64>, Fault> {
    file.read_page(page, bytes)?;
    Page::branch(bytes).and_then(|branch| branch.children()).map_err(|why| file.fault(page, why))
}

/// The child that may contain `key`. The key of the first child is not compared: it counts as smaller than all others.
fn child_for(branch: &Page<'_>, key: &[u8]) -> Result<u64, String> {
    let mut low = 0;
    let mut high = branch.node_count().saturating_sub(1);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if branch.key(middle)? <= key { low = middle } else { high = middle - 1 }
    }
    branch.child(low)
}

fn node_of<'a>(leaf: &Page<'a>, key: &[u8]) -> Result<Option<Node<'a>>, String> {
    let mut low = 0;
    let mut high = leaf.node_count();
    while low < high {
        let middle = (low + high) / 2;
        match leaf.key(middle)?.cmp(key) {
            Ordering::Equal => return leaf.entry(middle).map(Some),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    Ok(None)
}
