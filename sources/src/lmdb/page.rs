//! Pages of a tree: a header, offsets of nodes growing up, nodes growing down. Nothing in them is trusted.
//!
//! ```text
//! branch node: page low u16, page mid u16, page high u16, key length u16, key
//! leaf node:   value length u32, flags u16, key length u16, key, value (or the number of its first overflow page)
//! ```

use std::ops::Range;

/// Length of a page's header.
pub(super) const HEADER_LEN: usize = 16;

const NODE_LEN: usize = 8;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const KINDS: u16 = 0x6f;

const BIG_DATA: u16 = 0x01;
const SUB_DATA: u16 = 0x02;
const DUP_DATA: u16 = 0x04;

/// A branch or leaf page whose header is sound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    bytes: &'a [u8],
    upper: usize,
    node_count: usize,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node<'a> {
    pub(super) key: &'a [u8],
    pub(super) content: NodeContent,
}

/// What is under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeContent {
    /// A value in this range of the page.
    Inline(Range<usize>),
    /// A value on overflow pages.
    Overflow {
        /// The first of them.
        page: u64,
        /// Its length in bytes.
        len: u64,
    },
    /// The record of a named database, in this range of the page.
    Database(Range<usize>),
}

impl NodeContent {
    /// Length in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Inline(range) | Self::Database(range) => range.len() as u64,
            Self::Overflow { len, .. } => *len,
        }
    }
}

impl<'a> Page<'a> {
    /// The branch page in `bytes`.
    pub(super) fn branch(bytes: &'a [u8]) -> Result<Self, String> {
        let page = Self::of_kind(bytes, BRANCH, "a branch")?;
        if page.node_count == 0 { Err("a branch page without children".into()) } else { Ok(page) }
    }

    /// The leaf page in `bytes`.
    pub(super) fn leaf(bytes: &'a [u8]) -> Result<Self, String> {
        Self::of_kind(bytes, LEAF, "a leaf")
    }

    fn of_kind(bytes: &'a [u8], kind: u16, name: &str) -> Result<Self, String> {
        let flags = u16_at(bytes, 10).unwrap_or(0);
        if flags & KINDS != kind {
            return Err(format!("page flags are {flags:04x}, expected those of {name} page ({kind:04x})"));
        }
        let bound = |at| usize::from(u16_at(bytes, at).unwrap_or(0));
        let lower = bound(12);
        let upper = bound(14);
        if lower < HEADER_LEN || !lower.is_multiple_of(2) || lower > upper || upper > bytes.len() {
            return Err(format!("free space of a page of {} bytes is {lower}..{upper}", bytes.len()));
        }
        Ok(Self { bytes, upper, node_count: (lower - HEADER_LEN) / 2 })
    }

    /// Number of nodes.
    pub(super) fn node_count(&self) -> usize {
        self.node_count
    }

    /// The page numbers of all children of a branch page, no two of them the same.
    pub(super) fn children(&self) -> Result<Vec<u64>, String> {
        let children: Vec<u64> = (0..self.node_count).map(|index| self.child(index)).collect::<Result<_, _>>()?;
        let mut sorted = children.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("page {} is in a branch page twice", pair[0])),
            None => Ok(children),
        }
    }

    /// The page number of a child of a branch page.
    pub(super) fn child(&self, index: usize) -> Result<u64, String> {
        let node = self.node(index)?;
        let [low, mid, high] = [0, 2, 4].map(|at| u64::from(u16_at(node, at).unwrap_or(0)));
        Ok(low | mid << 16 | high << 32)
    }

    /// The key of a node.
    pub(super) fn key(&self, index: usize) -> Result<&'a [u8], String> {
        let node = self.node(index)?;
        let len = usize::from(u16_at(node, 6).unwrap_or(0));
        let key = node.get(NODE_LEN..NODE_LEN + len);
        key.ok_or_else(|| format!("the key of node {index}, of {len} bytes, ends past its page"))
    }

    /// A node of a leaf page.
    pub(super) fn entry(&self, index: usize) -> Result<Node<'a>, String> {
        let node = self.node(index)?;
        let key = self.key(index)?;
        if key.is_empty() {
            return Err(format!("the key of node {index} is empty"));
        }
        let len = u32_at(node, 0).unwrap_or(0);
        let flags = u16_at(node, 4).unwrap_or(0);
        let start = self.bytes.len() - node.len() + NODE_LEN + key.len();
        let content = match flags {
            0 => NodeContent::Inline(self.value(index, start, len)?),
            SUB_DATA => NodeContent::Database(self.value(index, start, len)?),
            BIG_DATA => {
                let page =
                    u64_at(self.bytes, start).ok_or("the number of an overflow page is past the end of its page")?;
                NodeContent::Overflow { page, len: len.into() }
            }
            flags if flags & DUP_DATA != 0 => return Err(format!("node {index} has several values")),
            flags => return Err(format!("node {index} has flags {flags:04x}, which are unknown")),
        };
        Ok(Node { key, content })
    }

    fn value(&self, index: usize, start: usize, len: u32) -> Result<Range<usize>, String> {
        let range = start..start + grainstore_format::to_usize(len.into());
        match self.bytes.get(range.clone()) {
            Some(_) => Ok(range),
            None => Err(format!("the value of node {index}, of {len} bytes, ends past its page")),
        }
    }

    /// From the start of a node to the end of the page, a node's header at least.
    fn node(&self, index: usize) -> Result<&'a [u8], String> {
        let at = if index < self.node_count { u16_at(self.bytes, HEADER_LEN + 2 * index) } else { None };
        let at = usize::from(at.ok_or_else(|| format!("there is no node {index}"))?);
        let node = self.bytes.get(at..).filter(|node| at >= self.upper && node.len() >= NODE_LEN);
        node.ok_or_else(|| format!("node {index} is at {at}, expected {}..{}", self.upper, self.bytes.len()))
    }
}

/// The number of overflow pages that begin with `header`.
pub(super) fn overflow_page_count(header: &[u8]) -> Result<u64, String> {
    let flags = u16_at(header, 10).unwrap_or(0);
    if flags & KINDS != OVERFLOW {
        return Err(format!("page flags are {flags:04x}, expected those of an overflow page ({OVERFLOW:04x})"));
    }
    Ok(u32_at(header, 12).unwrap_or(0).into())
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
