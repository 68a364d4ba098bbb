//! The schema of a dataset that is made of archives, and how each member is used.

use std::ops::Range;

use grainstore_format::{Attribute, AttributeValue, MAX_KEY_LEN, Metadata, Remedy, escape_bytes};

use super::groups::ByteRange;
use super::{cls, json};
use crate::Remark;
use crate::junk::{is_junk_file, is_junk_folder};

/// How the members of an archive become samples.
#[derive(Debug)]
pub(crate) struct TarShape {
    pub(super) metadata: Metadata,
    pub(super) grouping: Grouping,
    /// A member goes into the first slot that takes it.
    pub(super) slots: Vec<MemberSlot>,
    /// Whether the user named the extensions that matter; members of others are ignored.
    pub(super) is_mapped: bool,
    /// Extensions whose members the user wants left out.
    pub(super) ignored: Vec<Vec<u8>>,
    pub(super) notes: Vec<Remark>,
}

/// Which members are one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Neighbours with the same stem, which is the key.
    Stems,
    /// Each member is a sample; its name is the key.
    Names,
}

/// A slot for one member of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberSlot {
    pub(super) takes: Takes,
    /// The field that the member's bytes are.
    pub(super) field: Option<usize>,
    /// The attributes that are in it.
    pub(super) values: SlotAttributes,
}

/// Which members a slot is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Those of these extensions, in lower case.
    Extensions(Vec<Vec<u8>>),
    /// Pictures, by their extension.
    Pictures,
    Anything,
}

/// The attributes that are in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotAttributes {
    None,
    /// One integer, attribute 0.
    Label,
    /// Scalars of a JSON document, and the index of the first attribute.
    Document(Vec<Attribute>, usize),
    /// Likewise, of a document that has more, which the user wants left out.
    PartOfDocument(Vec<Attribute>, usize),
}

/// Where a member belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placed<'a> {
    Ignored,
    In {
        key: &'a [u8],
        slot: usize,
    },
    /// In no slot, and why.
    Stray {
        key: &'a [u8],
        why: Remark,
    },
}

/// Extensions of picture files, in lower case.
const PICTURES: [&[u8]; 10] = [b"jpg", b"jpeg", b"png", b"gif", b"bmp", b"webp", b"tif", b"tiff", b"ppm", b"pgm"];

impl TarShape {
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn notes(&self) -> &[Remark] {
        &self.notes
    }

    /// The byte range of each field of the schema; `None` where the sample has no such member.
    ///
    /// # Errors
    /// Where the only field is missing: a dataset of one field cannot store that.
    pub(super) fn field_ranges(&self, runs: &[Option<ByteRange>]) -> Result<Vec<Option<ByteRange>>, String> {
        let fields = self.metadata.schema.fields();
        let run = |field| runs.get(self.slots.iter().position(|slot| slot.field == Some(field))?).copied().flatten();
        let found: Vec<_> = (0..fields.len()).map(run).collect();
        if found == [None] {
            let name = escape_bytes(fields[0].name.as_bytes());
            return Err(format!("its sample has no \"{name}\", the only field, so nothing would be stored of it"));
        }
        Ok(found)
    }

    /// The ranges of the fields when they are stored one after the other, and their total length.
    pub(super) fn packed(&self, runs: &[Option<ByteRange>]) -> (Vec<Option<Range<u64>>>, u64) {
        let mut len: u64 = 0;
        let range_of = |run: &Option<ByteRange>| {
            let run = (*run)?;
            let start = len;
            len = len.saturating_add(run.len);
            Some(start..len)
        };
        let ranges: Vec<_> = runs.iter().map(range_of).collect();
        (self.stored_ranges(ranges), len)
    }

    /// A single field is the whole payload, so its range is not stored.
    pub(super) fn stored_ranges(&self, ranges: Vec<Option<Range<u64>>>) -> Vec<Option<Range<u64>>> {
        if self.metadata.schema.fields().len() == 1 { Vec::new() } else { ranges }
    }

    /// Where the member `name` belongs.
    pub(super) fn place<'a>(&self, name: &'a [u8]) -> Placed<'a> {
        let split = split(name);
        let key = split.as_ref().filter(|_| self.grouping == Grouping::Stems).map_or(name, |(stem, _)| stem);
        let extension = split.map(|(_, extension)| extension);
        let slot = self.slots.iter().position(|slot| slot.takes.takes(extension.as_deref()));
        match slot {
            _ if is_meta(name) || extension.as_ref().is_some_and(|one| self.ignored.contains(one)) => Placed::Ignored,
            _ if key.is_empty() || key.len() > MAX_KEY_LEN => Placed::Stray {
                key,
                why: format!("its key has {} bytes; keys have 1 to {MAX_KEY_LEN}", key.len()).into(),
            },
            Some(slot) => Placed::In { key, slot },
            None if self.is_mapped => Placed::Ignored,
            None => Placed::Stray { key, why: self.stray(extension) },
        }
    }

    fn stray(&self, extension: Option<Vec<u8>>) -> Remark {
        let fields = self.metadata.schema.fields().iter().map(|field| escape_bytes(field.name.as_bytes()));
        let fields = fields.take(20).collect::<Vec<_>>().join(", ");
        let Some(extension) = extension else {
            return format!("its name has no extension, so its field is unknown ({fields})").into();
        };
        let extension = escape_bytes(&extension[..extension.len().min(256)]);
        let why = format!("its extension \"{extension}\" is not one of those of the first samples ({fields})");
        Remark::new(why, Remedy::MapExtension(extension))
    }

    pub(super) fn no_attributes(&self) -> Vec<Option<AttributeValue>> {
        vec![None; self.metadata.schema.attributes().len()]
    }
}

impl MemberSlot {
    /// Parses the attributes in the slot's member and stores them among those of the sample.
    pub(super) fn read_values(&self, content: &[u8], attributes: &mut [Option<AttributeValue>]) -> Result<(), Remark> {
        match &self.values {
            SlotAttributes::None => {}
            SlotAttributes::Label => {
                let label =
                    cls::parse(content).ok_or("its .cls is not an integer, unlike those of the first samples")?;
                attributes[0] = Some(AttributeValue::Int(label));
            }
            SlotAttributes::Document(members, first) | SlotAttributes::PartOfDocument(members, first) => {
                let is_kept = self.field.is_some() || matches!(self.values, SlotAttributes::PartOfDocument(..));
                let found = json::values(content, members, is_kept)?;
                attributes[*first..][..found.len()].clone_from_slice(&found);
            }
        }
        Ok(())
    }
}

impl Takes {
    pub(super) fn takes(&self, extension: Option<&[u8]>) -> bool {
        match (self, extension) {
            (Self::Anything, _) => true,
            (Self::Extensions(extensions), Some(extension)) => extensions.iter().any(|one| one == extension),
            (Self::Pictures, Some(extension)) => is_picture(extension),
            (_, None) => false,
        }
    }
}

impl SlotAttributes {
    /// Whether there are attributes.
    pub(super) fn are_any(&self) -> bool {
        *self != Self::None
    }

    /// Whether a member of this many bytes can be parsed.
    pub(super) fn check_len(&self, len: u64) -> Result<(), String> {
        let (what, len_max) = match self {
            Self::Label if len > cls::LEN_MAX => (".cls", cls::LEN_MAX),
            Self::Document(..) | Self::PartOfDocument(..) if len > json::LEN_MAX => (".json", json::LEN_MAX),
            _ => return Ok(()),
        };
        Err(format!("its {what} has {len} bytes; attributes are read from {len_max} at most"))
    }
}

/// Splits a name at the first dot of its last component into stem and extension, the latter in lower case; `None` where
/// one of them would be empty.
pub(super) fn split(name: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let component = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = component + name[component..].iter().position(|&byte| byte == b'.')?;
    let stem = &name[..dot];
    let extension = &name[dot + 1..];
    let extension = match std::str::from_utf8(extension) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => extension.to_ascii_lowercase(),
    };
    (dot > component && !extension.is_empty()).then_some((stem, extension))
}

/// Whether the extension, or its last part, is that of a picture.
pub(super) fn is_picture(extension: &[u8]) -> bool {
    let last = extension.rsplit(|&byte| byte == b'.').next().unwrap_or(extension);
    PICTURES.contains(&last)
}

/// Whether it is no member of a sample: one of WebDataset itself, such as `__index__/3.txt`, or what a system keeps
/// beside files, such as `._1.jpg` in an archive that was made on macOS.
pub(super) fn is_meta(name: &[u8]) -> bool {
    let mut components = name.split(|&byte| byte == b'/');
    let file = components.next_back().unwrap_or(name);
    let first = components.clone().next().unwrap_or(file);
    let is_of_webdataset = first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__");
    is_of_webdataset || is_junk_file(file) || components.any(is_junk_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_of_the_last_component_separates_stem_and_extension() {
        let split = |name: &str| {
            let (stem, extension) = split(name.as_bytes())?;
            Some((String::from_utf8_lossy(stem).into_owned(), String::from_utf8_lossy(&extension).into_owned()))
        };
        let pair = |stem: &str, extension: &str| Some((stem.to_owned(), extension.to_owned()));
        assert_eq!(split("a/b.seg.PNG"), pair("a/b", "seg.png"));
        assert_eq!(split("a.d/b.jpg"), pair("a.d/b", "jpg"));
        assert_eq!(split("/../b.É"), pair("/../b", "é"));
        for name in ["a", "a.d/b", ".hidden", "x/.hidden.png", "a.", "", "/"] {
            assert_eq!(split(name), None, "{name}");
        }
    }

    #[test]
    fn members_about_the_archive_are_recognised() {
        assert!(is_meta(b"__dict__") && is_meta(b"__a__/b.jpg") && is_meta(b"____"));
        assert!(is_meta(b"a/._b.jpg") && is_meta(b".DS_Store") && is_meta(b"a/__MACOSX/b/c.jpg"));
        assert!(!is_meta(b"a/__b__.jpg") && !is_meta(b"__a__.jpg") && !is_meta(b"__") && !is_meta(b"___"));
    }
}
