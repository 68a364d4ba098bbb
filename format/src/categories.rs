//! Section CATEGORIES: the texts that the codes of an attribute of type `category` number. spec.md: CAT-1, CAT-2.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::error::ensure;
use crate::memory::{NoMemory, check_room, push};
use crate::varint::{push_varint, split_varint};
use crate::{FormatError, to_usize};

const WHAT: &str = "categories";

/// Sections from this many bytes on are refused if little memory is left after them.
const LONG_LEN: usize = 1 << 20;

/// The categories of an attribute, in the order of their codes: all different.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Categories {
    text: String,
    /// Where each category ends in the text.
    ends: Vec<u32>,
}

impl Categories {
    /// Most categories of an attribute.
    pub const MAX_COUNT: u64 = 1 << 20;
    /// Most bytes of the section: 64 MiB.
    pub const MAX_LEN: u64 = 64 << 20;
    /// Most bytes of a category.
    pub const MAX_NAME_LEN: usize = 65535;

    /// No categories.
    pub const fn none() -> Self {
        Self { text: String::new(), ends: Vec::new() }
    }

    /// These categories, in the order of their codes.
    ///
    /// # Errors
    /// If there are too many, one is too long, or two are the same.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, FormatError> {
        let mut bytes = Vec::new();
        for name in names {
            push_category(&mut bytes, name)?;
        }
        Self::decode(&bytes)
    }

    /// The categories of several sections together, each once, in the order of first appearance; and for each section,
    /// the code here of each of its own codes. The limits of a section do not hold: no section has these.
    ///
    /// # Errors
    /// If they are too long together, or there is no memory for them.
    pub fn merged(sections: &[&Self]) -> Result<(Self, Vec<Vec<u32>>), FormatError> {
        let text_len: u64 = sections.iter().map(|section| section.text.len() as u64).sum();
        let count: u64 = sections.iter().map(|section| section.len() as u64).sum();
        if text_len + count >= LONG_LEN as u64 {
            // The text, and for each category a code, an end and its entry in the map below.
            check_room(2 * text_len + 64 * count).map_err(FormatError::no_memory(WHAT))?;
        }
        let mut all = Self::default();
        let mut code_of = HashMap::new();
        let mut codes = Vec::with_capacity(sections.len());
        for section in sections {
            let mut of_section = Vec::with_capacity(section.len());
            for name in section.iter() {
                let code = match code_of.entry(name) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => *entry.insert(all.push(name)?),
                };
                of_section.push(code);
            }
            codes.push(of_section);
        }
        Ok((all, codes))
    }

    /// Appends a category; returns its code.
    fn push(&mut self, name: &str) -> Result<u32, FormatError> {
        let len = self.text.len() as u64 + name.len() as u64;
        let limit = u64::from(u32::MAX);
        let too_long =
            |_| FormatError::Limit { what: "length of all categories of several datasets", found: len, limit };
        let end = u32::try_from(len).map_err(too_long)?;
        let code = u32::try_from(self.ends.len()).map_err(too_long)?;
        self.text.push_str(name);
        self.ends.push(end);
        Ok(code)
    }

    /// Reads the section.
    ///
    /// # Errors
    /// If a rule of the section is broken, or there is no memory.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        ensure(bytes.len() as u64 <= Self::MAX_LEN, WHAT, || {
            format!("{} bytes, the limit is {}", bytes.len(), Self::MAX_LEN)
        })?;
        let lack_of = |len: usize| move |_| FormatError::NoMemory { what: WHAT, source: NoMemory { len: len as u64 } };
        let mut all = Self::default();
        // The text is shorter than the section.
        all.text.try_reserve_exact(bytes.len()).map_err(lack_of(bytes.len()))?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let code = all.ends.len();
            ensure((code as u64) < Self::MAX_COUNT, WHAT, || format!("more than {}", Self::MAX_COUNT))?;
            let wrong = |what: &str| FormatError::damaged(WHAT, format!("category {code} {what}"));
            let (len, after) = split_varint(rest).map_err(|_| wrong("has no valid length"))?;
            ensure(len <= Self::MAX_NAME_LEN, WHAT, || format!("category {code} has {len} bytes"))?;
            let (name, after) = after.split_at_checked(len).ok_or_else(|| wrong("is cut short"))?;
            all.text.push_str(std::str::from_utf8(name).map_err(|_| wrong("is not UTF-8"))?);
            // The text is shorter than the section, so its length fits 32 bits.
            let end = u32::try_from(all.text.len()).map_err(|_| wrong("is past 2^32 bytes"))?;
            push(&mut all.ends, end).map_err(FormatError::no_memory(WHAT))?;
            rest = after;
        }
        let mut seen: HashSet<&str> = HashSet::new();
        seen.try_reserve(all.ends.len()).map_err(lack_of(all.ends.len() * size_of::<&str>()))?;
        if bytes.len() >= LONG_LEN {
            check_room(0).map_err(FormatError::no_memory(WHAT))?;
        }
        let twice = all.iter().find(|name| !seen.insert(*name)).map(str::to_owned);
        match twice {
            Some(name) => {
                let shown = crate::escape_bytes(name.as_bytes());
                Err(FormatError::damaged(WHAT, format!("\"{shown}\" is there twice")))
            }
            None => Ok(all),
        }
    }

    /// The smallest width of the codes of so many categories, in bytes.
    pub const fn code_width(count: usize) -> u32 {
        match count {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }

    /// The category with this code.
    pub fn get(&self, code: u32) -> Option<&str> {
        let index = to_usize(u64::from(code));
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(to_usize(u64::from(start))..to_usize(u64::from(end)))
    }

    /// The code of this category. Looks at all of them.
    #[expect(clippy::cast_possible_truncation, reason = "different texts of 2^32 bytes at most are fewer")]
    pub fn code_of(&self, name: &str) -> Option<u32> {
        self.iter().position(|known| known == name).map(|code| code as u32)
    }

    /// The categories, in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..).map_while(|code| self.get(code))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Appends a category as the section holds it.
///
/// # Errors
/// If it is too long.
pub fn push_category(bytes: &mut Vec<u8>, name: &str) -> Result<(), FormatError> {
    if name.len() > Categories::MAX_NAME_LEN {
        let (found, limit) = (name.len() as u64, Categories::MAX_NAME_LEN as u64);
        return Err(FormatError::Limit { what: "length of a category", found, limit });
    }
    push_varint(bytes, name.len());
    bytes.extend_from_slice(name.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAT-1
    #[test]
    fn categories_are_lengths_and_texts() {
        let bytes = b"\x03cat\x00\x06h\xc3\xa9ros";
        let all = Categories::decode(bytes).unwrap();
        assert_eq!(all.iter().collect::<Vec<_>>(), ["cat", "", "h\u{e9}ros"]);
        assert_eq!((all.get(1), all.get(3), all.len()), (Some(""), None, 3));
        assert_eq!((all.code_of("h\u{e9}ros"), all.code_of("dog")), (Some(2), None));
        assert_eq!(Categories::new(["cat", "", "h\u{e9}ros"]).unwrap(), all);
        let long = "x".repeat(65535);
        assert_eq!(Categories::new([long.as_str()]).unwrap().get(0), Some(long.as_str()));
    }

    /// PLN-8
    #[test]
    fn sections_together_may_have_more_than_one_can() {
        let names = |range: std::ops::Range<u32>| -> Vec<String> { range.map(|i| format!("{i:x}")).collect() };
        let section = |range| Categories::new(names(range).iter().map(String::as_str)).unwrap();
        let (first, second) = (section(0..600_000), section(599_999..1_200_000));
        let (all, codes) = Categories::merged(&[&first, &second, &Categories::none()]).unwrap();
        assert!(all.iter().eq(names(0..1_200_000)));
        assert_eq!(codes, [(0..600_000).collect(), (599_999..1_200_000).collect(), vec![]]);
        assert_eq!(all.code_of("124f7f"), Some(0x12_4f7f));
    }

    /// CAT-1
    #[test]
    fn refuses_what_is_no_list_of_different_texts() {
        let cases: [(&[u8], &str); 6] = [
            (b"\x03ca", "category 0 is cut short"),
            (b"\x01a\x83\x00cat", "category 1 has no valid length"),
            (b"\x80", "category 0 has no valid length"),
            (b"\x01\xff", "category 0 is not UTF-8"),
            (b"\x80\x80\x04", "category 0 has 65536 bytes"),
            (b"\x01a\x01b\x01a", "\"a\" is there twice"),
        ];
        for (bytes, expected) in cases {
            let error = Categories::decode(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Categories::new(["x".repeat(65536).as_str()]).is_err());
        let many: Vec<String> = (0..=1 << 20).map(|i: u32| format!("{i:x}")).collect();
        assert!(Categories::new(many.iter().map(String::as_str)).is_err());
        assert!(Categories::new(many.iter().skip(1).map(String::as_str)).is_ok());
    }
}
