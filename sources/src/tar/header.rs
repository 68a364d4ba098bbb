//! Parses one block of 512 bytes, and the records of a PAX header.

use ::tar::Header as RawHeader;

/// Bytes of a block.
pub(super) const BLOCK_LEN: u64 = 512;

/// A block at an offset where a header may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderBlock {
    /// The end of an archive.
    Zeros,
    /// A header whose checksum is right.
    Header(TarHeader),
    /// Neither, and why.
    Damaged(&'static str),
}

/// The header of a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarHeader {
    pub(super) name: Vec<u8>,
    pub(super) kind: MemberKind,
    /// Bytes of payload that follow.
    pub(super) len: u64,
    /// Whether blocks with more of a sparse member's map follow.
    pub(super) has_sparse_map: bool,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    File,
    Folder,
    /// A volume's label or a global PAX header: not a member, not part of a sample.
    Ignored,
    /// GNU: the payload is the next member's name.
    LongName,
    /// GNU: the payload is the target of the next member, a link.
    LongLink,
    /// PAX: the payload is records about the next member.
    Pax,
    /// What cannot be part of a sample.
    Unusable(&'static str),
}

impl HeaderBlock {
    pub(super) fn parse(block: &[u8; 512]) -> Self {
        if block.iter().all(|&byte| byte == 0) {
            return Self::Zeros;
        }
        let mut raw = RawHeader::new_old();
        raw.as_mut_bytes().copy_from_slice(block);
        if !is_sum_right(&raw) {
            return Self::Damaged("there is no tar header here: its checksum is wrong");
        }
        match TarHeader::of(&raw) {
            Some(header) => Self::Header(header),
            None => Self::Damaged("there is a tar header here, but its size is not a number"),
        }
    }
}

impl TarHeader {
    fn of(raw: &RawHeader) -> Option<Self> {
        let kind = MemberKind::of(raw.entry_type().as_byte());
        let is_link = matches!(raw.entry_type().as_byte(), b'1' | b'2');
        // GNU sets this byte where more blocks of the map follow.
        let has_sparse_map = raw.as_bytes()[156] == b'S' && raw.as_bytes()[482] == 1;
        let mut name = raw.path_bytes().into_owned();
        strip_root(&mut name);
        // Links have no payload, whatever their size field holds.
        Some(Self { name, kind, len: if is_link { 0 } else { payload_len(raw)? }, has_sparse_map })
    }
}

impl MemberKind {
    fn of(flag: u8) -> Self {
        match flag {
            0 | b'0' | b'7' => Self::File,
            b'5' | b'D' => Self::Folder,
            b'V' | b'g' => Self::Ignored,
            b'L' => Self::LongName,
            b'K' => Self::LongLink,
            b'x' | b'X' => Self::Pax,
            b'1' => Self::Unusable("a hard link"),
            b'2' => Self::Unusable("a symbolic link"),
            b'3' | b'4' => Self::Unusable("a device"),
            b'6' => Self::Unusable("a pipe"),
            b'S' => Self::Unusable("a sparse file"),
            b'M' => Self::Unusable("the rest of a file that begins in another volume"),
            _ => Self::Unusable("of a type that is not known"),
        }
    }
}

/// Whether the checksum is right: the sum of all bytes, with spaces for the checksum itself. Some old writers summed
/// signed bytes.
fn is_sum_right(raw: &RawHeader) -> bool {
    let Ok(expected) = raw.cksum() else { return false };
    let mut bytes = *raw.as_bytes();
    bytes[148..156].fill(b' ');
    let unsigned: u32 = bytes.iter().map(|&byte| u32::from(byte)).sum();
    let signed: i32 = bytes.iter().map(|&byte| i32::from(byte.cast_signed())).sum();
    expected == unsigned || i64::from(expected) == i64::from(signed)
}

/// The size: octal digits, or a number of 64 bits after `80 00 00 00`.
fn payload_len(raw: &RawHeader) -> Option<u64> {
    let size = &raw.as_bytes()[124..136];
    let is_too_large = size[0] & 0x80 != 0 && size[..4] != [0x80, 0, 0, 0];
    raw.entry_size().ok().filter(|_| !is_too_large)
}

/// `./a` is `a`.
pub(super) fn strip_root(name: &mut Vec<u8>) {
    if name.starts_with(b"./") {
        name.drain(..2);
    }
}

/// The records of a PAX header that are used here. They apply to the next member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) len: Option<u64>,
    pub(super) is_sparse: bool,
}

impl Pax {
    /// Parses records `LEN KEY=VALUE\n`, where LEN is the length of the whole record; `None` where they are malformed.
    pub(super) fn parse(mut records: &[u8]) -> Option<Self> {
        let mut pax = Self::default();
        while !records.is_empty() && records[0] != 0 {
            let space = records.iter().take(20).position(|&byte| byte == b' ')?;
            let len: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
            let record = records.get(space + 1..len)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|&byte| byte == b'=')?;
            pax.take(&record[..equals], &record[equals + 1..])?;
            records = &records[len..];
        }
        Some(pax)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"size" => self.len = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            _ => self.is_sparse |= key.starts_with(b"GNU.sparse."),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(size: [u8; 12]) -> [u8; 512] {
        let mut raw = RawHeader::new_gnu();
        raw.set_path("./a/b.jpg").unwrap();
        raw.as_mut_bytes()[124..136].copy_from_slice(&size);
        raw.set_cksum();
        *raw.as_bytes()
    }

    #[test]
    fn sizes_are_octal_or_numbers_of_64_bits() {
        let len = |size| match HeaderBlock::parse(&raw(size)) {
            HeaderBlock::Header(header) => Some(header.len),
            _ => None,
        };
        assert_eq!(len(*b"00000000017\0"), Some(15));
        assert_eq!(len([0x80, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]), Some(1 << 60));
        assert_eq!(len([0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(len([0xff; 12]), None);
        assert_eq!(len(*b"0000000018x\0"), None);
    }

    #[test]
    fn every_flipped_byte_of_a_header_is_noticed() {
        let good = raw(*b"00000000017\0");
        for at in 0..512 {
            let mut bytes = good;
            bytes[at] ^= 0x10;
            // A zero before the sum's digits may as well be a space.
            assert!(at == 148 || matches!(HeaderBlock::parse(&bytes), HeaderBlock::Damaged(_)), "byte {at}");
        }
    }

    #[test]
    fn records_of_pax_are_measured_and_may_hold_line_feeds() {
        let pax = Pax::parse(b"13 path=a\nb.c\n13 size=12345\n").map(|pax| (pax.path, pax.len));
        assert_eq!(pax, None, "a length that is wrong by one");
        let pax = Pax::parse(b"14 path=a\nb.c\n14 size=12345\n32 mtime=1.5 and some more text\n").unwrap();
        assert_eq!((pax.path.as_deref(), pax.len, pax.is_sparse), (Some(&b"a\nb.c"[..]), Some(12345), false));
        assert!(Pax::parse(b"22 GNU.sparse.major=1\n").unwrap().is_sparse);
        for bad in [&b"x"[..], b"5 a=b\n", b"999999999999999999999 a=b\n", b"6 a=b", b"6 abc\n", b"0 a=b\n"] {
            assert_eq!(Pax::parse(bad), None);
        }
    }
}
