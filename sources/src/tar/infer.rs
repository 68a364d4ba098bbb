//! Infers the schema of an archive from its first 1,000 samples.

use std::collections::BTreeSet;
use std::io::Read;

use grainstore_format::{Attribute, AttributeType, Field, FieldType, Metadata, Schema, UserMetadata, escape_bytes};

use super::bytes::{Bytes, StreamBytes, read_range};
use super::cls;
use super::json::{self, JsonDocuments};
use super::members::{TarMember, TarMembers, unreadable};
use super::shape::{Grouping, MemberSlot, SlotAttributes, Takes, TarShape, is_meta, is_picture, split};
use super::source::TarOptions;
use crate::{Mapping, Remark};

/// Samples that are examined.
const SAMPLES_MAX: usize = 1000;
/// Members that are examined, whether they belong to a sample or not.
const MEMBERS_MAX: usize = 20_000;
/// With more extensions than this they are not fields, but parts of names that have dots in them.
const EXTENSIONS_MAX: usize = 64;

/// Extensions that a message names.
const SHOWN_MAX: usize = 20;

/// A name in the dataset, and the extensions that are mapped to it.
type MappedName = (String, Vec<Vec<u8>>);

/// What was seen in the first samples.
#[derive(Debug)]
pub(super) struct FirstSamples {
    mapped: Vec<MappedName>,
    /// For each sample, its members' extensions as indexes into `extensions`.
    groups: Vec<Vec<usize>>,
    stem: Vec<u8>,
    extensions: Vec<Vec<u8>>,
    member_count: usize,
    has_bare_names: bool,
    /// Whether all names are CLASS/FILE.
    are_in_classes: bool,
    are_labels: bool,
    json: JsonDocuments,
    /// Why the examination ended early.
    damage: Option<String>,
    /// Some of the extensions that are not mapped.
    others: BTreeSet<Vec<u8>>,
}

/// Infers the schema of a tar stream from its first samples.
pub(crate) fn infer_from_stream(stream: &mut dyn Read, options: &TarOptions) -> Result<TarShape, Remark> {
    let mut first_samples = FirstSamples::new(&options.map)?;
    first_samples.read_archive(StreamBytes::new(stream));
    first_samples.shape_of(&options.chosen)
}

impl FirstSamples {
    pub(super) fn new(mapping: &Mapping) -> Result<Self, Remark> {
        Ok(Self {
            mapped: targets(mapping)?,
            groups: Vec::new(),
            stem: Vec::new(),
            extensions: Vec::new(),
            member_count: 0,
            has_bare_names: false,
            are_in_classes: true,
            are_labels: true,
            json: JsonDocuments::default(),
            damage: None,
            others: BTreeSet::new(),
        })
    }

    /// Examines an archive, as far as it can be read.
    pub(super) fn read_archive(&mut self, bytes: impl Bytes) {
        let mut members = TarMembers::new(bytes, 0);
        let ended = loop {
            match members.next() {
                Ok(Some(member)) if self.member_count < MEMBERS_MAX => match self.add(&member, members.bytes()) {
                    Ok(true) => {}
                    Ok(false) => break None,
                    Err(why) => break Some(why),
                },
                Ok(_) => break None,
                Err(damage) => break Some(format!("at byte {}: {}", damage.offset, damage.why)),
            }
        };
        if ended.is_some() && self.groups.len() > 1 {
            // The last sample may have lost members.
            self.groups.pop();
        }
        self.damage = self.damage.take().or(ended);
    }

    /// Forgets members of these extensions.
    pub(super) fn forget(&mut self, extensions: &[Vec<u8>]) {
        let gone = |number: &usize| self.extensions.get(*number).is_some_and(|one| extensions.contains(one));
        for group in &mut self.groups {
            group.retain(|number| !gone(number));
        }
        self.groups.retain(|group| !group.is_empty());
        if extensions.iter().any(|one| one == b"json") {
            self.json = JsonDocuments::default();
        }
        let stays: Vec<bool> = self.extensions.iter().map(|one| !extensions.contains(one)).collect();
        let new: Vec<usize> = stays
            .iter()
            .scan(0, |next, &stays| {
                let number = *next;
                *next += usize::from(stays);
                Some(number)
            })
            .collect();
        for number in self.groups.iter_mut().flatten() {
            *number = new[*number];
        }
        let mut stays = stays.into_iter();
        self.extensions.retain(|_| stays.next().unwrap_or(true));
    }

    /// The extensions that were seen.
    pub(super) fn extensions(&self) -> &[Vec<u8>] {
        &self.extensions
    }

    /// Whether no sample was found.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds a member; false where enough was seen.
    fn add(&mut self, member: &TarMember, bytes: &mut dyn Bytes) -> Result<bool, String> {
        self.member_count += 1;
        let (stem, extension) = match split(&member.name) {
            Some((stem, extension)) => (stem, Some(extension)),
            None => (&member.name[..], None),
        };
        if member.unusable.is_some() || member.name.is_empty() || is_meta(&member.name) {
            return Ok(true);
        }
        if !self.is_of_interest(extension.as_deref()) {
            if self.others.len() < SHOWN_MAX {
                self.others.extend(extension);
            }
            return Ok(true);
        }
        if (self.groups.is_empty() || stem != self.stem) && !self.begin(stem) {
            return Ok(false);
        }
        self.are_in_classes &= member.name.iter().filter(|&&byte| byte == b'/').count() == 1;
        match extension {
            Some(extension) => self.add_content(&extension, member, bytes).map(|()| self.add_extension(extension)),
            None => {
                self.has_bare_names = true;
                Ok(true)
            }
        }
    }

    fn is_of_interest(&self, extension: Option<&[u8]>) -> bool {
        let is_mapped = |extension| self.mapped.iter().flat_map(|(_, all)| all).any(|one| one == extension);
        self.mapped.is_empty() || extension.is_some_and(is_mapped)
    }

    fn begin(&mut self, stem: &[u8]) -> bool {
        let has_room = self.groups.len() < SAMPLES_MAX;
        if has_room {
            self.groups.push(Vec::new());
            self.stem = stem.to_vec();
        }
        has_room
    }

    fn add_extension(&mut self, extension: Vec<u8>) -> bool {
        let known = self.extensions.iter().position(|one| *one == extension);
        let number = known.unwrap_or_else(|| {
            self.extensions.push(extension);
            self.extensions.len() - 1
        });
        if let Some(group) = self.groups.last_mut().filter(|group| !group.contains(&number)) {
            group.push(number);
        }
        self.extensions.len() <= EXTENSIONS_MAX
    }

    fn add_content(&mut self, extension: &[u8], member: &TarMember, bytes: &mut dyn Bytes) -> Result<(), String> {
        let mut content = |len_max| match member.len {
            len if len > len_max => Ok(None),
            len => read_range(bytes, member.data, len).map(Some).map_err(|error| unreadable(&error)),
        };
        match extension {
            b"cls" => self.are_labels &= content(cls::LEN_MAX)?.is_some_and(|text| cls::parse(&text).is_some()),
            b"json" => self.json.add(content(json::LEN_MAX)?.as_deref()),
            _ => {}
        }
        Ok(())
    }

    /// The shape of a dataset that is made of such archives.
    pub(super) fn shape(&self) -> Result<TarShape, Remark> {
        if self.is_empty() {
            let (wanted, none) = if self.mapped.is_empty() {
                ("", "it holds no files")
            } else {
                (" with the extensions that are mapped", "it holds no such file")
            };
            let others: Vec<Vec<u8>> = self.others.iter().cloned().collect();
            let others = if others.is_empty() { String::new() } else { format!(" (there are: {})", listed(&others)) };
            let why = self.damage.as_deref().unwrap_or(none);
            return Err(format!("no tar archive with files{wanted}: {why}{others}").into());
        }
        let has_groups = self.groups.iter().any(|group| group.len() > 1);
        let shape = if !self.mapped.is_empty() {
            self.mapped_shape()
        } else if self.extensions.len() > EXTENSIONS_MAX
            || (!has_groups && (self.has_bare_names || self.extensions.len() > 1))
        {
            self.names_shape()
        } else {
            self.stems_shape()
        };
        shape.map_err(|error| error.to_string().into())
    }

    /// The shape where every member is a sample.
    fn names_shape(&self) -> Result<TarShape, grainstore_format::FormatError> {
        let are_pictures = !self.has_bare_names && self.extensions.iter().all(|extension| is_picture(extension));
        let (name, takes) = one_field(are_pictures);
        let slots = vec![MemberSlot { takes, field: Some(0), values: SlotAttributes::None }];
        let mut notes = vec![
            "members that follow each other do not share a stem, so every member is a sample; its whole name is the key"
                .into(),
        ];
        notes.extend(self.class_note());
        shape(Grouping::Names, vec![], vec![field(name.as_bytes())], slots, notes)
    }

    /// The shape where the members of one stem are a sample.
    fn stems_shape(&self) -> Result<TarShape, grainstore_format::FormatError> {
        let has = |extension: &[u8]| self.extensions.iter().any(|one| one == extension);
        let mut has_label = has(b"cls") && self.are_labels && !has(b"label");
        let is_free = |name: &str| {
            let is_taken = has(name.as_bytes()) || ["image", "data"].contains(&name);
            !is_taken && (name != "label" || !has_label)
        };
        let (attributes, is_all) = self.json.attributes(is_free);
        let is_field = |extension: &[u8]| match extension {
            b"cls" => !has_label,
            b"json" => !is_all,
            _ => true,
        };
        let mut fields: Vec<Vec<u8>> = self.extensions.iter().filter(|one| is_field(one)).cloned().collect();
        if fields.is_empty() {
            // A dataset has at least one field.
            fields.push(if has(b"json") { b"json".to_vec() } else { b"cls".to_vec() });
        }
        has_label &= !fields.iter().any(|one| one == b"cls");
        fields.sort();
        let slots = value_slots(has_label, &attributes);
        let attributes: Vec<_> = has_label.then(|| label("label")).into_iter().chain(attributes).collect();
        let mut notes = vec![format!("members of one stem are a sample; fields: {}", listed(&fields)).into()];
        if has(b"cls") && !self.are_labels {
            notes.push(
                "members .cls are not whole numbers, so they are a field, and there is no attribute label".into(),
            );
        }
        if !attributes.iter().any(|attribute| attribute.name == "label") {
            notes.extend(self.class_note());
        }
        if fields.len() > 1 && self.has_one_each(&fields) {
            return self.one_of_shape(&fields, attributes, slots, notes);
        }
        let (fields, slots) = with_fields(&fields, slots);
        shape(Grouping::Stems, attributes, fields, slots, notes)
    }

    /// Whether every sample has exactly one of the fields.
    fn has_one_each(&self, fields: &[Vec<u8>]) -> bool {
        let is_field = |number: &&usize| self.extensions.get(**number).is_some_and(|one| fields.contains(one));
        !self.has_bare_names && self.groups.iter().all(|group| group.iter().filter(is_field).count() == 1)
    }

    /// The shape with one field for several extensions: every sample has exactly one of them.
    fn one_of_shape(
        &self,
        fields: &[Vec<u8>],
        attributes: Vec<Attribute>,
        mut slots: Vec<MemberSlot>,
        mut notes: Vec<Remark>,
    ) -> Result<TarShape, grainstore_format::FormatError> {
        let (name, takes) = one_field(fields.iter().all(|one| is_picture(one)));
        let note = format!("every sample has exactly one of {}: they are one field, \"{name}\"", listed(fields));
        notes.push(note.into());
        slots.push(MemberSlot { takes, field: Some(0), values: SlotAttributes::None });
        shape(Grouping::Stems, attributes, vec![field(name.as_bytes())], slots, notes)
    }

    /// The shape that the user's mapping describes.
    fn mapped_shape(&self) -> Result<TarShape, grainstore_format::FormatError> {
        let is_label = |extensions: &[Vec<u8>]| {
            *extensions == [b"cls".to_vec()] && self.are_labels && self.extensions.contains(&extensions[0])
        };
        let mut fields = Vec::new();
        let mut slots = Vec::new();
        let mut attributes = Vec::new();
        for (target, extensions) in &self.mapped {
            let takes = Takes::Extensions(extensions.clone());
            if is_label(extensions) && self.mapped.len() > 1 {
                attributes.push(label(target));
                slots.push(MemberSlot { takes, field: None, values: SlotAttributes::Label });
            } else {
                slots.push(MemberSlot { takes, field: Some(fields.len()), values: SlotAttributes::None });
                fields.push(field(target.as_bytes()));
            }
        }
        let shape = shape(Grouping::Stems, attributes, fields, slots, Vec::new())?;
        Ok(TarShape { is_mapped: true, ..shape })
    }

    fn class_note(&self) -> Option<Remark> {
        self.are_in_classes.then(|| {
            "names are CLASS/FILE, but classes are not numbered: that would need a look at all names first; to have a \
             label, unpack the archive and convert the folder"
                .into()
        })
    }
}

/// The targets of a mapping, and the extensions of each: `image=jpg;png`.
fn targets(mapping: &Mapping) -> Result<Vec<MappedName>, String> {
    if let Some(key) = mapping.key() {
        return Err(format!(
            "the key of a tar's sample is the stem of its members' names, so it cannot be mapped (key={key})"
        ));
    }
    let extensions = |source: &str| -> Vec<Vec<u8>> {
        source.split(';').map(|one| one.trim_start_matches('.').to_lowercase().into_bytes()).collect()
    };
    let targets: Vec<_> = mapping.targets().iter().map(|(name, source)| (name.clone(), extensions(source))).collect();
    let mut all: Vec<&Vec<u8>> = targets.iter().flat_map(|(_, extensions)| extensions).collect();
    all.sort();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("the extension \"{}\" is mapped twice", escape_bytes(pair[0]))),
        None => Ok(targets),
    }
}

/// Slots of members that hold attributes; [`with_fields`] makes fields of them where they are fields too.
fn value_slots(has_label: bool, attributes: &[Attribute]) -> Vec<MemberSlot> {
    let slot = |extension: &[u8], values| MemberSlot { takes: only(extension), field: None, values };
    let label = has_label.then(|| slot(b"cls", SlotAttributes::Label));
    let values = SlotAttributes::Document(attributes.to_vec(), usize::from(has_label));
    let document = (!attributes.is_empty()).then(|| slot(b"json", values));
    label.into_iter().chain(document).collect()
}

/// Adds a slot for every field, in order; a slot that is there for its attributes serves the field too.
fn with_fields(names: &[Vec<u8>], mut slots: Vec<MemberSlot>) -> (Vec<Field>, Vec<MemberSlot>) {
    for (number, name) in names.iter().enumerate() {
        let takes = only(name);
        match slots.iter_mut().find(|slot| slot.takes == takes) {
            Some(slot) => slot.field = Some(number),
            None => slots.push(MemberSlot { takes, field: Some(number), values: SlotAttributes::None }),
        }
    }
    (names.iter().map(|name| field(name)).collect(), slots)
}

fn shape(
    grouping: Grouping,
    attributes: Vec<Attribute>,
    fields: Vec<Field>,
    slots: Vec<MemberSlot>,
    notes: Vec<Remark>,
) -> Result<TarShape, grainstore_format::FormatError> {
    let metadata = Metadata { schema: Schema::new(attributes, fields)?, user: UserMetadata::default() };
    Ok(TarShape { metadata, grouping, slots, is_mapped: false, ignored: Vec::new(), notes })
}

fn one_field(are_pictures: bool) -> (&'static str, Takes) {
    if are_pictures { ("image", Takes::Pictures) } else { ("data", Takes::Anything) }
}

fn only(extension: &[u8]) -> Takes {
    Takes::Extensions(vec![extension.to_vec()])
}

fn label(name: &str) -> Attribute {
    Attribute { name: name.into(), kind: AttributeType::Int64 }
}

/// A field has the name of its extension; bytes that are not UTF-8 are escaped.
fn field(extension: &[u8]) -> Field {
    let name = std::str::from_utf8(extension).map_or_else(|_| escape_bytes(extension), str::to_owned);
    Field { name, kind: FieldType::Bytes }
}

fn listed(extensions: &[Vec<u8>]) -> String {
    extensions.iter().map(|one| escape_bytes(&one[..one.len().min(256)])).collect::<Vec<_>>().join(", ")
}
