//! Reads the members of an archive from header to header, with the names that extension headers give them.

use std::io;

use grainstore_format::{escape_bytes, to_usize};

use super::bytes::{Bytes, read_range};
use super::header::{BLOCK_LEN, HeaderBlock, MemberKind, Pax, TarHeader, strip_root};

/// Longer extension headers are not parsed: no name is that long.
const EXTENSION_LEN_MAX: u64 = 1 << 20;
/// Bytes of zeros after the end of an archive that are searched for another archive.
const PADDING_LEN_MAX: u64 = 64 << 20;

/// A member that may be part of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TarMember {
    /// Offset of the first header that belongs to it.
    pub(super) start: u64,
    pub(super) name: Vec<u8>,
    /// Offset of its payload.
    pub(super) data: u64,
    /// Bytes of its payload.
    pub(super) len: u64,
    /// Why it cannot be used.
    pub(super) unusable: Option<String>,
}

/// The archive cannot be read beyond this point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// Reading that starts here meets the same damage again: the first header of the member.
    pub(super) position: u64,
    pub(super) offset: u64,
    /// The name of the damaged member, if known.
    pub(super) name: Option<Vec<u8>>,
    pub(super) why: String,
}

/// The members from a header on.
#[derive(Debug)]
pub(super) struct TarMembers<B> {
    bytes: B,
    state: MemberState,
}

#[derive(Clone, Copy, Debug)]
enum MemberState {
    /// The next header, or the end, is here.
    At(u64),
    /// Zeros are here.
    Zeros(u64),
    Done,
}

/// What extension headers specify for the next member.
#[derive(Debug, Default)]
struct ExtensionInfo {
    start: Option<u64>,
    long_name: Option<Vec<u8>>,
    pax: Pax,
    unusable: Option<String>,
}

impl<B: Bytes> TarMembers<B> {
    pub(super) fn new(bytes: B, position: u64) -> Self {
        Self { bytes, state: MemberState::At(position) }
    }

    pub(super) fn bytes(&mut self) -> &mut B {
        &mut self.bytes
    }

    /// Whether nothing follows. After the last member, [`Self::next`] returns `None`; called again, it searches after
    /// the zeros.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, MemberState::Done)
    }

    /// The next member. After damage there is none.
    pub(super) fn next(&mut self) -> Result<Option<TarMember>, Damage> {
        let found = match self.state {
            MemberState::At(offset) => self.member_at(offset),
            MemberState::Zeros(offset) => self.find_next_archive(offset),
            MemberState::Done => Ok(None),
        };
        if found.is_err() {
            self.state = MemberState::Done;
        }
        found
    }

    fn member_at(&mut self, mut offset: u64) -> Result<Option<TarMember>, Damage> {
        let mut info = ExtensionInfo::default();
        loop {
            let position = info.start.unwrap_or(offset);
            let damage = |why: &str| Damage { position, offset, name: None, why: why.into() };
            let header = match self.block(offset).map_err(|why| damage(&why))? {
                Some(HeaderBlock::Header(header)) => header,
                Some(HeaderBlock::Damaged(why)) => return Err(damage(why)),
                _ if info.start.is_some() => return Err(damage("a member was announced, but the archive ends")),
                Some(HeaderBlock::Zeros) => return Ok(self.end(MemberState::Zeros(offset))),
                None if offset == 0 => return Err(damage("the file is empty")),
                None => {
                    let why =
                        "the archive ends without the blocks of zeros that close one, so it may have been cut off";
                    return Err(damage(why));
                }
            };
            let kind = header.kind;
            let (member, next) = self.member(header, offset, position, &info)?;
            // Before tar had a flag for folders, a name that ends with a slash was a folder. Where an extension header
            // has the whole name, the name in this header does not count: it may be cut after any byte.
            let kind = if kind == MemberKind::File && member.name.ends_with(b"/") { MemberKind::Folder } else { kind };
            match kind {
                MemberKind::File | MemberKind::Unusable(_) => {
                    self.state = MemberState::At(next);
                    return Ok(Some(member));
                }
                MemberKind::Folder => info = ExtensionInfo::default(),
                MemberKind::Ignored => {}
                MemberKind::LongName | MemberKind::LongLink | MemberKind::Pax => {
                    info.start = Some(position);
                    self.read_extension(kind, &member, &mut info)?;
                }
            }
            offset = next;
        }
    }

    fn end(&mut self, state: MemberState) -> Option<TarMember> {
        self.state = state;
        None
    }

    /// The block at `offset`; `None` where the archive ends there.
    fn block(&mut self, offset: u64) -> Result<Option<HeaderBlock>, String> {
        let mut block = [0; 512];
        match self.bytes.read_at(offset, &mut block) {
            Ok(512) => Ok(Some(HeaderBlock::parse(&block))),
            Ok(found) => match self.bytes.len() {
                Some(len) if len < offset => Err(format!("the archive ends at byte {len}, inside the member before")),
                _ if found == 0 => Ok(None),
                _ => Err(format!("the archive ends after {found} of a header's 512 bytes")),
            },
            Err(error) => Err(format!("cannot be read: {error}")),
        }
    }

    /// The member of a header and where the next header is, checked against the file's end where that is known.
    fn member(
        &mut self,
        header: TarHeader,
        offset: u64,
        position: u64,
        info: &ExtensionInfo,
    ) -> Result<(TarMember, u64), Damage> {
        let uses_info = matches!(header.kind, MemberKind::File | MemberKind::Unusable(_));
        let len = info.pax.len.filter(|_| header.kind == MemberKind::File).unwrap_or(header.len);
        let name = info.long_name.clone().or_else(|| info.pax.path.clone()).filter(|_| uses_info);
        let name = name.unwrap_or(header.name);
        let unusable = match header.kind {
            MemberKind::Unusable(what) => Some(format!("it is {what}; samples are made of plain files")),
            _ if info.pax.is_sparse => Some("it is a sparse file; samples are made of plain files".into()),
            _ => info.unusable.clone(),
        };
        let damage = |why| Damage { position, offset, name: uses_info.then(|| name.clone()), why };
        let data = self.after_maps(offset + BLOCK_LEN, header.has_sparse_map).map_err(damage)?;
        let end = padded(data, len).ok_or_else(|| damage(format!("has {len} bytes, more than a file can have")))?;
        match self.bytes.len() {
            // Where only the zeros after the payload are missing, reading the next header reports it.
            Some(file_len) if file_len < end && file_len - data.min(file_len) < len => {
                Err(damage(format!("has {len} bytes from byte {data} on, but the archive ends at byte {file_len}")))
            }
            _ => Ok((TarMember { start: position, name, data, len, unusable }, end)),
        }
    }

    /// Where the payload begins: after the blocks that continue the map of a sparse member.
    fn after_maps(&mut self, mut offset: u64, mut has_map: bool) -> Result<u64, String> {
        let mut block = [0; 512];
        while has_map {
            let found = self.bytes.read_at(offset, &mut block).map_err(|error| format!("cannot be read: {error}"))?;
            if found < block.len() {
                return Err("the archive ends inside the map of a sparse file".into());
            }
            has_map = block[504] == 1;
            offset += BLOCK_LEN;
        }
        Ok(offset)
    }

    /// Reads an extension header into `info`.
    fn read_extension(
        &mut self,
        kind: MemberKind,
        extension: &TarMember,
        info: &mut ExtensionInfo,
    ) -> Result<(), Damage> {
        if extension.len > EXTENSION_LEN_MAX {
            info.unusable = Some(format!("the header with its name has {} bytes", extension.len));
            return Ok(());
        }
        let content = read_range(&mut self.bytes, extension.data, extension.len).map_err(|error| Damage {
            position: extension.start,
            offset: extension.data,
            name: None,
            why: unreadable(&error),
        })?;
        match kind {
            MemberKind::LongName => info.long_name = Some(long_name(content)),
            MemberKind::Pax => match Pax::parse(&content) {
                Some(pax) => info.pax = Pax { path: pax.path.map(long_name), ..pax },
                None => info.unusable = Some("its PAX header is malformed".into()),
            },
            _ => {}
        }
        Ok(())
    }

    /// Searches for another archive after the zeros at `offset`.
    fn find_next_archive(&mut self, offset: u64) -> Result<Option<TarMember>, Damage> {
        self.state = MemberState::Done;
        for after in (offset..offset.saturating_add(PADDING_LEN_MAX)).step_by(to_usize(BLOCK_LEN)).skip(1) {
            let damage = |why| Damage { position: offset, offset: after, name: None, why };
            let mut block = [0; 512];
            if self.bytes.read_at(after, &mut block).map_err(|error| damage(unreadable(&error)))? < block.len() {
                break;
            }
            match HeaderBlock::parse(&block) {
                HeaderBlock::Zeros => {}
                HeaderBlock::Header(header) => {
                    let name = escape_bytes(&header.name[..header.name.len().min(256)]);
                    let why = format!(
                        "the archive ends at byte {offset}, but a member \"{name}\" follows; archives cannot be joined \
                         end to end: give them one by one"
                    );
                    return Err(damage(why));
                }
                HeaderBlock::Damaged(_) => break,
            }
        }
        Ok(None)
    }
}

/// Why a payload cannot be read.
pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the archive ends inside it".into(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Where a payload ends, with the zeros that fill its last block.
fn padded(data: u64, len: u64) -> Option<u64> {
    len.checked_next_multiple_of(BLOCK_LEN)?.checked_add(data).filter(|&end| end <= i64::MAX.cast_unsigned())
}

/// A name ends at a zero.
fn long_name(mut name: Vec<u8>) -> Vec<u8> {
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    strip_root(&mut name);
    name
}
