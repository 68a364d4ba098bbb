//! The categories of an attribute while its column is written. spec.md: CAT-1, CAT-3.

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::{Categories, FormatError, push_category};

/// Texts numbered in the order of their first appearance.
#[derive(Default)]
pub(crate) struct CategoryCodes {
    codes: HashMap<Arc<str>, u32>,
    section: Vec<u8>,
}

impl CategoryCodes {
    /// The code of `name`, which gets the next one if it is new. Fails if there are too many for `attribute`.
    pub(crate) fn code_of(&mut self, name: &Arc<str>, attribute: &str) -> Result<u32, FormatError> {
        if let Some(&code) = self.codes.get(name) {
            return Ok(code);
        }
        let next = self.codes.len() as u64;
        let code = u32::try_from(next).ok().filter(|_| next < Categories::MAX_COUNT);
        let code = code.ok_or_else(|| too_many(attribute))?;
        let len = self.section.len();
        push_category(&mut self.section, name)?;
        if self.section.len() as u64 > Categories::MAX_LEN {
            self.section.truncate(len);
            return Err(too_many(attribute));
        }
        self.codes.insert(Arc::clone(name), code);
        Ok(code)
    }

    /// Bytes per code: the smallest width that holds all codes.
    pub(crate) fn width(&self) -> u32 {
        Categories::code_width(self.codes.len())
    }

    /// The bytes of section CATEGORIES; empty if there is no category.
    pub(crate) fn section(&self) -> &[u8] {
        &self.section
    }
}

fn too_many(attribute: &str) -> FormatError {
    let name = grainstore_format::escape_bytes(attribute.as_bytes());
    let (count, mib) = (Categories::MAX_COUNT, Categories::MAX_LEN >> 20);
    FormatError::Invalid(format!(
        "attribute \"{name}\" has more than {count} categories, or {mib} MiB of them; texts that rarely repeat belong \
         in a field of type str"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAT-3
    #[test]
    fn codes_count_first_appearances_and_the_width_is_the_smallest() {
        let mut codes = CategoryCodes::default();
        assert_eq!((codes.width(), codes.section()), (1, &[][..]));
        let mut code = |name: &str| codes.code_of(&name.into(), "split").unwrap();
        assert_eq!([code("train"), code(""), code("train"), code("test")], [0, 1, 0, 2]);
        for (count, width) in [(256, 1), (257, 2), (65536, 2), (65537, 4)] {
            let mut codes = CategoryCodes::default();
            (0..count).for_each(|i| assert_eq!(codes.code_of(&i.to_string().into(), "x"), Ok(i)));
            assert_eq!(codes.width(), width, "{count}");
            assert_eq!(Categories::decode(codes.section()).unwrap().len(), count as usize);
        }
    }

    /// CAT-1
    #[test]
    fn refuses_more_categories_than_an_index_can_hold() {
        let mut codes = CategoryCodes::default();
        (0..1_u32 << 20).for_each(|i| assert_eq!(codes.code_of(&i.to_string().into(), "x"), Ok(i)));
        let error = codes.code_of(&"one more".into(), "x").unwrap_err();
        assert!(error.to_string().contains("attribute \"x\" has more than 1048576 categories"), "{error}");
        assert_eq!(codes.code_of(&"77".into(), "x"), Ok(77));
        let mut long = CategoryCodes::default();
        let name = |i: u32| Arc::from(format!("{i:065535}"));
        let stored = (0..2000).take_while(|&i| long.code_of(&name(i), "x").is_ok()).count();
        assert_eq!(stored, (64 << 20) / 65538);
        // The last name fills the section: its length takes 2 bytes, not 3.
        let rest = (64 << 20) - stored * 65538;
        let of_len = |len: usize| Arc::from("x".repeat(len));
        long.code_of(&of_len(rest - 3 - 202), "x").unwrap();
        assert!(long.code_of(&of_len(201), "x").is_err());
        assert!(long.code_of(&of_len(200), "x").is_ok());
        assert_eq!(long.section().len(), 64 << 20);
        assert!(Categories::decode(long.section()).is_ok());
    }
}
