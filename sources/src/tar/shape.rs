//! What a dataset made of archives looks like, and what becomes of each member.

use std::ops::Range;

use grainstore_format::{Attribute, AttributeValue, MAX_KEY_LEN, Metadata, Remedy, escape_bytes};

use super::groups::ByteRange;
use super::{docs, labels};
use crate::Remark;

/// What is read where an archive's samples are grouped.
#[derive(Debug)]
pub(crate) struct TarShape {
    pub(super) metadata: Metadata,
    pub(super) grouping: Grouping,
    /// The first that takes a member has it.
    pub(super) slots: Vec<MemberSlot>,
    /// Whether the user named the extensions that matter; members of others are ignored.
    pub(super) is_mapped: bool,
    pub(super) notes: Vec<Remark>,
}

/// Which members are one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Those of one stem, which is the key.
    Stems,
    /// Each by itself; its name is the key.
    Names,
}

/// A place for one member of a sample.
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
    /// These scalars of a document; the number of the first attribute.
    Document(Vec<Attribute>, usize),
}

/// Where a member belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placed<'a> {
    Ignored,
    In {
        key: &'a [u8],
        slot: usize,
    },
    /// Into no sample, and why.
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

    /// The run of each field of the schema; `None` where a sample has no such member.
    ///
    /// # Errors
    /// Where the only field is missing: a dataset of one field cannot store that.
    pub(super) fn field_runs(&self, runs: &[Option<ByteRange>]) -> Result<Vec<Option<ByteRange>>, String> {
        let fields = self.metadata.schema.fields();
        let run = |field| runs.get(self.slots.iter().position(|slot| slot.field == Some(field))?).copied().flatten();
        let found: Vec<_> = (0..fields.len()).map(run).collect();
        if found == [None] {
            let name = escape_bytes(fields[0].name.as_bytes());
            return Err(format!("its sample has no \"{name}\", the only field, so nothing would be stored of it"));
        }
        Ok(found)
    }

    /// Where the fields are when they are stored one after the other, as a sample has them, and all their bytes.
    pub(super) fn packed(&self, runs: &[Option<ByteRange>]) -> (Vec<Option<Range<u64>>>, u64) {
        let mut len: u64 = 0;
        let place = |run: &Option<ByteRange>| {
            let run = (*run)?;
            let start = len;
            len = len.saturating_add(run.len);
            Some(start..len)
        };
        let ranges: Vec<_> = runs.iter().map(place).collect();
        (self.told(ranges), len)
    }

    /// A single field is the whole payload, so its range is not stored.
    pub(super) fn told(&self, ranges: Vec<Option<Range<u64>>>) -> Vec<Option<Range<u64>>> {
        if self.metadata.schema.fields().len() == 1 { Vec::new() } else { ranges }
    }

    /// Where the member `name` belongs.
    pub(super) fn place<'a>(&self, name: &'a [u8]) -> Placed<'a> {
        let split = split(name);
        let key = split.as_ref().filter(|_| self.grouping == Grouping::Stems).map_or(name, |(stem, _)| stem);
        let extension = split.map(|(_, extension)| extension);
        let slot = self.slots.iter().position(|slot| slot.takes.takes(extension.as_deref()));
        match slot {
            _ if is_meta(name) => Placed::Ignored,
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

    /// Puts the values that a slot's member holds among the sample's attributes.
    pub(super) fn read_values(
        &self,
        slot: usize,
        content: &[u8],
        attributes: &mut [Option<AttributeValue>],
    ) -> Result<(), Remark> {
        let Some(MemberSlot { values, field, .. }) = self.slots.get(slot) else { return Ok(()) };
        let (found, first) = match values {
            SlotAttributes::None => return Ok(()),
            SlotAttributes::Label => {
                let label =
                    labels::parse(content).ok_or("its .cls is not an integer, unlike those of the first samples")?;
                (vec![Some(AttributeValue::Int(label))], 0)
            }
            SlotAttributes::Document(members, first) => (docs::values(content, members, field.is_some())?, *first),
        };
        attributes.iter_mut().skip(first).zip(found).for_each(|(attribute, value)| *attribute = value);
        Ok(())
    }

    pub(super) fn no_attributes(&self) -> Vec<Option<AttributeValue>> {
        vec![None; self.metadata.schema.attributes().len()]
    }
}

impl Takes {
    fn takes(&self, extension: Option<&[u8]>) -> bool {
        match (self, extension) {
            (Self::Anything, _) => true,
            (Self::Extensions(extensions), Some(extension)) => extensions.iter().any(|one| one == extension),
            (Self::Pictures, Some(extension)) => is_picture(extension),
            (_, None) => false,
        }
    }
}

impl SlotAttributes {
    /// Whether there are any.
    pub(super) fn are_any(&self) -> bool {
        *self != Self::None
    }

    /// Whether a member of this many bytes can be parsed.
    pub(super) fn check_len(&self, len: u64) -> Result<(), String> {
        let (what, len_max) = match self {
            Self::Label if len > labels::LEN_MAX => (".cls", labels::LEN_MAX),
            Self::Document(..) if len > docs::LEN_MAX => (".json", docs::LEN_MAX),
            _ => return Ok(()),
        };
        Err(format!("its {what} has {len} bytes; attributes are read from {len_max} at most"))
    }
}

/// Stem and extension, the latter in lower case: the first dot of the last component is between them, and both are there.
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

/// WebDataset's own members, such as `__index__/3.txt`; no sample's.
pub(super) fn is_meta(name: &[u8]) -> bool {
    let component = name.split(|&byte| byte == b'/').next().unwrap_or(name);
    component.len() >= 4 && component.starts_with(b"__") && component.ends_with(b"__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_of_the_last_component_parts_stem_and_extension() {
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
    fn members_about_the_archive_are_known() {
        assert!(is_meta(b"__dict__") && is_meta(b"__a__/b.jpg") && is_meta(b"____"));
        assert!(!is_meta(b"a/__b__.jpg") && !is_meta(b"__a__.jpg") && !is_meta(b"__") && !is_meta(b"___"));
    }
}
