//! Pages of a tree: a header, then the offsets of nodes, and the nodes at the end of the page. Everything is checked.
//!
//! ```text
//! branch node: page low u16, page mid u16, page high u16, key length u16, key
//! leaf node:   value length u32, flags u16, key length u16, key, value (or the number of its first overflow page)
//! ```

use std::ops::Range;

/// Where a page's header ends; bounds in a page are numbers of 16 bits.
const HEADER_END: u16 = 16;
/// Length of a page's header.
pub(super) const HEADER_LEN: usize = HEADER_END as usize;

const NODE_LEN: usize = 8;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const KINDS: u16 = 0x6f;

const BIG_DATA: u16 = 0x01;
const SUB_DATA: u16 = 0x02;
const DUP_DATA: u16 = 0x04;

/// A branch or leaf page whose header is valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    bytes: &'a [u8],
    upper: usize,
    node_count: u16,
}

/// The header of a node, and the bytes from there to the end of the page.
struct RawNode<'a> {
    header: [u8; NODE_LEN],
    rest: &'a [u8],
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node<'a> {
    pub(super) key: &'a [u8],
    pub(super) content: NodeContent,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeContent {
    /// A value in this range of the page.
    Inline(Range<usize>),
    /// A value on overflow pages.
    Overflow {
        /// The first of these pages.
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
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or("a page is shorter than its header")?;
        let flags = flags_of(header);
        if flags & KINDS != kind {
            return Err(format!("page flags are {flags:04x}, expected those of {name} page ({kind:04x})"));
        }
        let [.., lower_0, lower_1, upper_0, upper_1] = *header;
        let lower = u16::from_le_bytes([lower_0, lower_1]);
        let upper = usize::from(u16::from_le_bytes([upper_0, upper_1]));
        if lower < HEADER_END || !lower.is_multiple_of(2) || usize::from(lower) > upper || upper > bytes.len() {
            return Err(format!("free space of a page of {} bytes is {lower}..{upper}", bytes.len()));
        }
        Ok(Self { bytes, upper, node_count: (lower - HEADER_END) / 2 })
    }

    /// Number of nodes.
    pub(super) fn node_count(&self) -> u16 {
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
    pub(super) fn child(&self, index: u16) -> Result<u64, String> {
        // The low, middle and high 16 bits of the number.
        let [a, b, c, d, e, f, ..] = self.node(index)?.header;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// The key of a node.
    pub(super) fn key(&self, index: u16) -> Result<&'a [u8], String> {
        let node = self.node(index)?;
        let [.., len_0, len_1] = node.header;
        let len = usize::from(u16::from_le_bytes([len_0, len_1]));
        let key = node.rest.get(..len);
        key.ok_or_else(|| format!("the key of node {index}, of {len} bytes, ends past its page"))
    }

    /// A node of a leaf page.
    pub(super) fn entry(&self, index: u16) -> Result<Node<'a>, String> {
        let node = self.node(index)?;
        let key = self.key(index)?;
        if key.is_empty() {
            return Err(format!("the key of node {index} is empty"));
        }
        let [len_0, len_1, len_2, len_3, flags_0, flags_1, ..] = node.header;
        let len = u32::from_le_bytes([len_0, len_1, len_2, len_3]);
        let flags = u16::from_le_bytes([flags_0, flags_1]);
        let start = self.bytes.len() - node.rest.len() + key.len();
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

    fn value(&self, index: u16, start: usize, len: u32) -> Result<Range<usize>, String> {
        let range = start..start + grainstore_format::to_usize(len.into());
        match self.bytes.get(range.clone()) {
            Some(_) => Ok(range),
            None => Err(format!("the value of node {index}, of {len} bytes, ends past its page")),
        }
    }

    fn node(&self, index: u16) -> Result<RawNode<'a>, String> {
        let offset_at = HEADER_LEN + 2 * usize::from(index);
        let at = if index < self.node_count { u16_at(self.bytes, offset_at) } else { None };
        let at = usize::from(at.ok_or_else(|| format!("there is no node {index}"))?);
        let node = self.bytes.get(at..).filter(|_| at >= self.upper).and_then(|node| node.split_first_chunk());
        match node {
            Some((&header, rest)) => Ok(RawNode { header, rest }),
            None => Err(format!("node {index} is at {at}, expected {}..{}", self.upper, self.bytes.len())),
        }
    }
}

/// The flags in a page's header.
fn flags_of(header: &[u8; HEADER_LEN]) -> u16 {
    let [.., low, high, _, _, _, _] = *header;
    u16::from_le_bytes([low, high])
}

/// The number of overflow pages that begin with `header`.
pub(super) fn overflow_page_count(header: &[u8; HEADER_LEN]) -> Result<u64, String> {
    let flags = flags_of(header);
    if flags & KINDS != OVERFLOW {
        return Err(format!("page flags are {flags:04x}, expected those of an overflow page ({OVERFLOW:04x})"));
    }
    let [.., a, b, c, d] = *header;
    Ok(u32::from_le_bytes([a, b, c, d]).into())
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
