//! Header, footer and directory. What `decode` accepts, `encode` gives back byte for byte; only where compatible
//! features are set may bytes that this version ignores be lost.

use grainstore_format::{BLOCK_LEN, Directory, Footer, Header};

use crate::input::{seal, u32_at, u64_at};

/// Where version 0 keeps the compatible feature bits, in header and footer.
const COMPATIBLE_AT: usize = 16;
const RECORD_LEN: usize = 32;

/// HDR-1
pub fn header(data: &[u8]) {
    check_header(data);
    let mut block = vec![0; Header::LEN];
    let len = data.len().min(Header::LEN - 4);
    block[..len].copy_from_slice(&data[..len]);
    seal(&mut block, Header::LEN - 4);
    check_header(&block);
}

fn check_header(bytes: &[u8]) {
    let Ok(header) = Header::decode(bytes) else { return };
    let encoded = header.encode();
    assert_eq!(Header::decode(&encoded), Ok(header));
    assert!(u32_at(bytes, COMPATIBLE_AT) != 0 || encoded[..] == *bytes);
}

/// FTR-1, FTR-2: the first 64 bytes are a footer; its file has the length that stands there, or that follows.
pub fn footer(data: &[u8]) {
    check_footer(data, data.len() as u64);
    let Some((footer, more)) = data.split_at_checked(Footer::LEN) else { return };
    let mut footer = footer.to_vec();
    seal(&mut footer, Footer::LEN - 4);
    check_footer(&footer, u64_at(&footer, 40));
    if let Some(file_len) = more.first_chunk::<8>() {
        check_footer(&footer, u64::from_le_bytes(*file_len));
    }
}

fn check_footer(bytes: &[u8], file_len: u64) {
    let Ok(footer) = Footer::decode(bytes, file_len) else { return };
    assert_eq!(footer.file_len(), file_len);
    assert!(BLOCK_LEN <= footer.index_offset() && footer.index_offset() < footer.directory_offset());
    let end = footer.directory_offset() + u64::from(footer.directory_len()) + Footer::LEN as u64;
    assert!(end <= file_len && file_len - end < BLOCK_LEN);
    let encoded = footer.encode();
    assert_eq!(Footer::decode(&encoded, file_len), Ok(footer));
    assert!(u32_at(bytes, COMPATIBLE_AT) != 0 || encoded[..] == *bytes);
}

/// DIR-1 to DIR-5, DIR-7: the bytes are a directory, as they stand and with all sections put end to end.
pub fn directory(data: &[u8]) {
    check_directory(data);
    let mut placed = data.to_vec();
    place_sections(&mut placed);
    check_directory(&placed);
}

fn check_directory(bytes: &[u8]) {
    let records = || bytes.get(64..).unwrap_or_default().chunks_exact(RECORD_LEN);
    let index_offset = records().next().map_or(0, |record| u64_at(record, 8));
    let directory_offset = records().last().map_or(0, next_offset);
    let footer = Footer::new(index_offset, directory_offset, bytes).expect("no input is 4 GiB long");
    let Ok(directory) = Directory::decode(bytes, &footer) else { return };
    assert_eq!(directory.encode(), bytes);
    let mut offset = index_offset;
    for section in directory.sections() {
        assert_eq!(section.offset, offset, "{}", section.label());
        assert_eq!(directory.section(section.kind, section.item), Some(section));
        assert!(section.checksums_offset() + 4 * section.page_count() <= section.next_offset());
        offset = section.next_offset();
    }
    // What follows is ancillary.
    assert!(offset <= directory_offset);
}

fn place_sections(bytes: &mut [u8]) {
    let Some(records) = bytes.get_mut(64..) else { return };
    let mut offset = None;
    for record in records.chunks_exact_mut(RECORD_LEN) {
        let place = offset.unwrap_or(u64_at(record, 8));
        record[8..16].copy_from_slice(&place.to_le_bytes());
        offset = Some(next_offset(record));
    }
}

/// DIR-4, for any numbers: wrong ones give some number.
fn next_offset(record: &[u8]) -> u64 {
    let (offset, len) = (u128::from(u64_at(record, 8)), u128::from(u64_at(record, 16)));
    let storage = len.next_multiple_of(4) + 4 * len.div_ceil(65536);
    u64::try_from((offset + storage).next_multiple_of(u128::from(BLOCK_LEN))).unwrap_or(u64::MAX)
}
