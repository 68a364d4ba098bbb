//! Checks a footer before the `parquet` crate decodes it: whether the tree of columns is safe to build.
//!
//! The crate follows the tree to any depth and allocates for as many children as a column claims to have. Neither a
//! stack overflow nor a failed allocation can be caught. So the elements of the schema, which are in depth-first order,
//! are walked here first. This needs only a small part of thrift's compact protocol.

/// The deepest nesting of columns that is accepted.
const DEPTH_MAX: usize = 64;

/// The deepest nesting of thrift's structs and lists that is accepted.
const THRIFT_DEPTH_MAX: usize = 16;

/// Numbers of fields, in `FileMetaData` and in `SchemaElement`.
const SCHEMA: i64 = 2;
const CHILD_COUNT: i64 = 5;

/// Types of thrift's compact protocol.
const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Whether the crate can build the columns that a footer describes. The crate itself finds other damage.
pub(super) fn is_buildable(footer: &[u8]) -> bool {
    let mut thrift = Thrift { bytes: footer };
    thrift.fields(0, |thrift, id, kind| match (id, kind) {
        (SCHEMA, LIST) => thrift.schema(),
        _ => thrift.skip(kind, 0),
    }) == Some(())
}

/// What is left of a footer.
struct Thrift<'a> {
    bytes: &'a [u8],
}

impl Thrift<'_> {
    fn schema(&mut self) -> Option<()> {
        let (count, kind) = self.list()?;
        // For each open group, the number of children that are still to come.
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..count {
            let children = if kind == STRUCT { self.child_count()? } else { self.skip(kind, 0).map(|()| 0)? };
            if children > count || open.len() > DEPTH_MAX {
                return None;
            }
            if children > 0 {
                open.push(children);
                continue;
            }
            // The last child completes its group, which may be the last child of the group above.
            while let Some(left) = open.last_mut() {
                *left -= 1;
                if *left > 0 {
                    break;
                }
                open.pop();
            }
        }
        Some(())
    }

    fn child_count(&mut self) -> Option<u64> {
        let mut children = 0;
        self.fields(0, |thrift, id, kind| {
            if (id, kind) == (CHILD_COUNT, I32) {
                children = u64::try_from(thrift.zigzag()?).ok()?;
                return Some(());
            }
            thrift.skip(kind, 0)
        })?;
        Some(children)
    }

    /// Calls `each` with the number and the type of every field of a struct, to read its value.
    fn fields(&mut self, depth: usize, mut each: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut id = 0_i64;
        if depth > THRIFT_DEPTH_MAX {
            return None;
        }
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Some(());
            }
            id = match byte >> 4 {
                0 => self.zigzag()?,
                step => id.checked_add(step.into())?,
            };
            each(self, id, byte & 0x0f)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > THRIFT_DEPTH_MAX {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8),
            8 => self.varint().and_then(|len| self.take(len)),
            LIST | 10 => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth + 1))
            }
            11 => self.skip_map(depth),
            STRUCT => self.fields(depth, |thrift, _, kind| thrift.skip(kind, depth + 1)),
            13 => self.take(16),
            _ => None,
        }
    }

    /// In lists and maps, a boolean takes a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        self.skip(if kind <= 2 { 3 } else { kind }, depth)
    }

    fn skip_map(&mut self, depth: usize) -> Option<()> {
        let count = self.varint()?;
        if count == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        (0..count).try_for_each(|_| {
            self.skip_element(kinds >> 4, depth + 1)?;
            self.skip_element(kinds & 0x0f, depth + 1)
        })
    }

    /// Number and type of a list's elements.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
        Some((count, byte & 0x0f))
    }

    fn zigzag(&mut self) -> Option<i64> {
        let number = self.varint()?;
        let half = i64::try_from(number >> 1).ok()?;
        Some(if number & 1 == 0 { half } else { -half - 1 })
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn take(&mut self, len: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(len).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer of a schema alone, whose elements have this many children.
    fn footer(children: &[u32]) -> Vec<u8> {
        let mut footer = vec![0x15, 2, 0x19, 0xfc];
        push(&mut footer, u64::try_from(children.len()).unwrap());
        for &count in children {
            // repetition 1, name "x", children
            footer.extend([0x35, 2, 0x18, 1, b'x', 0x15]);
            push(&mut footer, u64::from(count) << 1);
            footer.push(0);
        }
        footer.push(0);
        footer
    }

    fn push(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        bytes.push(u8::try_from(number).unwrap());
    }

    #[test]
    fn wide_and_shallow_trees_are_built() {
        assert!(is_buildable(&footer(&[3, 0, 2, 0, 0, 0])));
        let wide: Vec<u32> = [10_000].into_iter().chain([0; 10_000]).collect();
        assert!(is_buildable(&footer(&wide)));
        let deep: Vec<u32> = [1; 60].into_iter().chain([0]).collect();
        assert!(is_buildable(&footer(&deep)));
    }

    #[test]
    fn trees_that_would_crash_the_process_are_not_built() {
        let deep: Vec<u32> = [1; 100_000].into_iter().chain([0]).collect();
        assert!(!is_buildable(&footer(&deep)));
        let slanted: Vec<u32> = [2, 0].repeat(100_000).into_iter().chain([0]).collect();
        assert!(!is_buildable(&footer(&slanted)));
        assert!(!is_buildable(&footer(&[u32::MAX >> 1, 0])));
        let good = footer(&[3, 0, 2, 0, 0, 0]);
        assert!((0..good.len()).all(|len| !is_buildable(&good[..len])));
        assert!(!is_buildable(&[0x1c; 1000]));
    }
}
