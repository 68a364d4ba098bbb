//! Refuses pages that claim to hold more values than fit into them.
//!
//! The `parquet` crate allocates for as many dictionary entries, or lengths of byte arrays, as a page claims to have.
//! Such claims are checked here, before the crate decodes the page.
//!
//! ```text
//! lengths, delta-packed   block size | miniblocks in a block | count | first | blocks
//! block                   smallest delta | a bit width for each miniblock | miniblocks that are needed
//! ```

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// Lengths for each byte of a section. The densest packing of writers is 128 or 256 lengths in 5 bytes.
const LENGTHS_PER_BYTE: usize = 64;

/// Lengths in a page, whatever its size: writers end a page after some ten thousand rows.
const LENGTH_COUNT_MAX: usize = 1 << 22;

/// Elements of lists in a page, whose levels are decoded before their values.
const LISTED_COUNT_MAX: u32 = 1 << 26;

/// A reader of pages that refuses false claims.
pub(super) struct Guarded<R> {
    pub(super) pages: R,
    /// The level of a value that is not null.
    pub(super) max_level: i16,
    /// Whether cells are lists, so that a page also has levels of repetition.
    pub(super) has_lists: bool,
    /// Bytes that an entry of a dictionary has at least.
    pub(super) entry_len_min: usize,
}

/// Bytes that a value of a type has at least in a dictionary.
pub(super) fn entry_len_min(column: &ColumnDescriptor) -> usize {
    match column.physical_type() {
        Type::BOOLEAN => 1,
        // A byte array is stored after its length.
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).map_or(1, |len| len.max(1)),
    }
}

impl<R: PageReader> PageReader for Guarded<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let lies = || ParquetError::General("a page claims to have more values than fit into it".into());
            is_honest(page, self.max_level, self.has_lists, self.entry_len_min).then_some(()).ok_or_else(lies)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl<R: PageReader> Iterator for Guarded<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

fn is_honest(page: &Page, max_level: i16, has_lists: bool, entry_len_min: usize) -> bool {
    if has_lists && !page.is_dictionary_page() && page.num_values() > LISTED_COUNT_MAX {
        return false;
    }
    match page {
        Page::DictionaryPage { buf, num_values, .. } => *num_values as usize <= buf.len() / entry_len_min,
        Page::DataPage { buf, encoding, def_level_encoding, rep_level_encoding, .. } => {
            let repeated = || if has_lists { levels_len(buf, *rep_level_encoding) } else { Some(0) };
            let offset = || {
                let start = repeated()?;
                let rest = buf.get(start..).map(|rest| buf.slice_ref(rest))?;
                if max_level > 0 { levels_len(&rest, *def_level_encoding)?.checked_add(start) } else { Some(start) }
            };
            !has_lengths(*encoding) || has_honest_lengths(buf, offset(), *encoding)
        }
        Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let offset = (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize);
            !has_lengths(*encoding) || has_honest_lengths(buf, offset, *encoding)
        }
    }
}

fn has_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

/// Bytes of the levels before the values. Levels in another encoding are never written with this one.
fn levels_len(page: &Bytes, encoding: Encoding) -> Option<usize> {
    let len = page.first_chunk().map(|len| u32::from_le_bytes(*len))?;
    (encoding == Encoding::RLE).then_some(len as usize)?.checked_add(4)
}

/// In a page with shared prefixes, the lengths of the prefixes come before the lengths of the suffixes.
fn has_honest_lengths(page: &Bytes, offset: Option<usize>, encoding: Encoding) -> bool {
    let lengths = || {
        let section = page.get(offset?..)?;
        let end = end_of_lengths(section)?;
        if encoding == Encoding::DELTA_BYTE_ARRAY {
            end_of_lengths(section.get(end..)?)?;
        }
        Some(())
    };
    lengths().is_some()
}

/// Where delta-packed lengths end; `None` where there cannot be as many as the section claims.
fn end_of_lengths(section: &[u8]) -> Option<usize> {
    let mut at = 0;
    let block_size = varint(section, &mut at)?;
    let miniblock_count = varint(section, &mut at)?;
    let count = varint(section, &mut at)?;
    varint(section, &mut at)?;
    let per_miniblock = block_size.checked_div(miniblock_count).filter(|&values| values > 0)?;
    if count > section.len().saturating_mul(LENGTHS_PER_BYTE).min(LENGTH_COUNT_MAX) {
        return None;
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(section, &mut at)?;
        let widths = section.get(at..at.checked_add(miniblock_count)?)?;
        at += widths.len();
        for &width in widths {
            if left > 0 {
                at = at.checked_add(per_miniblock.checked_mul(width.into())? / 8)?;
                left = left.saturating_sub(per_miniblock);
            }
        }
    }
    (at <= section.len()).then_some(at)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return usize::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 128 values in a block, 4 miniblocks: header, and as many blocks as are needed, all of width 0.
    fn lengths(count: u8) -> Vec<u8> {
        let header = [0x80, 0x01, 4, count, 2];
        let blocks = [0, 0, 0, 0, 0].repeat(usize::from(count.saturating_sub(1)).div_ceil(128));
        [&header[..], &blocks].concat()
    }

    #[test]
    fn the_end_of_lengths_is_found() {
        for count in [0, 1, 2, 33, 127] {
            let section = lengths(count);
            let end = section.len();
            assert_eq!(end_of_lengths(&section), Some(end), "{count}");
            assert_eq!(end_of_lengths(&[&section[..], b"more"].concat()), Some(end), "{count}");
            assert_eq!(end_of_lengths(&section[..end - 1]), None, "{count}");
        }
        // 40 lengths of 3 bits: two miniblocks are needed, and the widths of the others do not count.
        let packed = [&[0x80, 0x01, 4, 40, 2, 0, 3, 3, 9, 9][..], &[7; 24]].concat();
        assert_eq!(end_of_lengths(&packed), Some(packed.len()));
    }

    #[test]
    fn a_page_cannot_have_more_values_than_it_has_room_for() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: Bytes::from_static(b"12345678"),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(is_honest(&dictionary(2), 0, false, 4));
        assert!(!is_honest(&dictionary(3), 0, false, 4));

        let data = |buf: Vec<u8>, encoding| Page::DataPage {
            buf: buf.into(),
            num_values: 1,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let huge = [0x80, 0x01, 4, 0xff, 0xff, 0xff, 0xff, 0x07, 2, 0, 0, 0, 0, 0].to_vec();
        assert!(is_honest(&data(lengths(3), Encoding::DELTA_LENGTH_BYTE_ARRAY), 0, false, 4));
        let levels = [2, 0, 0, 0, 9, 9];
        let leveled =
            |count: usize| data([&levels.repeat(count)[..], &lengths(3)].concat(), Encoding::DELTA_LENGTH_BYTE_ARRAY);
        assert!(is_honest(&leveled(1), 1, false, 4));
        assert!(is_honest(&leveled(2), 1, true, 4));
        assert!(!is_honest(&data(huge.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY), 0, false, 4));
        assert!(is_honest(&data(huge.clone(), Encoding::PLAIN), 0, false, 4));
        assert!(is_honest(&data(lengths(3).repeat(2), Encoding::DELTA_BYTE_ARRAY), 0, false, 4));
        assert!(!is_honest(&data([lengths(3), huge].concat(), Encoding::DELTA_BYTE_ARRAY), 0, false, 4));
    }
}
