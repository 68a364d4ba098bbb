//! What becomes of each feature: the key, an attribute, a field, or nothing.
//!
//! One number is an attribute; bytes are a field; a fixed count of numbers is an array; a list whose length
//! differs is a field of bytes, little-endian. Without a mapping, ImageNet's layout is recognised, and of other records
//! every feature is taken.

use std::collections::{HashMap, HashSet};

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, FormatError, Metadata, Remedy, Schema, escape_bytes,
};
use serde_json::Map;

use super::look::{FILENAME, KEY, Looked, SeenFeature};
use super::wire::Kind;
use crate::{Mapping, Remark};

const ENCODED: &str = "image/encoded";
const LABEL: &str = "image/class/label";
/// Names that are listed in a message.
const SHOWN_MAX: usize = 30;

/// The schema, and the feature of each attribute and field.
#[derive(Debug)]
pub(super) struct TfRecordShape {
    pub(super) metadata: Metadata,
    pub(super) is_keyed: bool,
    pub(super) notes: Vec<Remark>,
    pub(super) warnings: Vec<Remark>,
    pub(super) wanted: Vec<Wanted>,
    /// Where a feature is among those wanted.
    pub(super) by_name: HashMap<String, usize>,
    /// Where every feature is taken: those that are not. A feature that was never seen is then an error.
    pub(super) left_out: Option<HashSet<String>>,
}

/// A feature, and what becomes of it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) uses: Vec<Use>,
}

/// What becomes of a feature. The numbers are those of attributes and fields.
#[derive(Clone, Debug)]
pub(super) enum Use {
    Key,
    Attribute(usize, Kind),
    Field(usize, FieldForm),
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldForm {
    Bytes,
    /// A fixed count of numbers, or any count.
    Numbers(Kind, Option<u64>),
}

/// What is wanted of the records.
struct ShapeBuilder {
    key: Option<String>,
    /// Names in the dataset and names of features.
    targets: Vec<(String, String)>,
    notes: Vec<Remark>,
    warnings: Vec<Remark>,
    takes_all: bool,
    left_out: HashSet<String>,
}

impl TfRecordShape {
    /// The shape of records such as these; or a text that explains why there is none.
    pub(super) fn of(looked: &Looked, mapping: &Mapping) -> Result<Self, Remark> {
        let mut plan = if mapping.is_empty() { ShapeBuilder::found(looked) } else { ShapeBuilder::mapped(mapping) };
        plan.leave_out_lists_of_bytes(looked);
        plan.build(looked)
    }

    /// Why the files cannot be used in place.
    pub(super) fn not_in_place(&self) -> Option<Remark> {
        let is_varint = |wanted: &&Wanted| {
            wanted.uses.iter().any(|one| matches!(one, Use::Field(_, FieldForm::Numbers(Kind::Int64, _))))
        };
        let wanted = self.wanted.iter().find(is_varint)?;
        let name = escape_bytes(wanted.name.as_bytes());
        let why = format!("the int64 values of feature \"{name}\" have no fixed width in the file");
        Some(Remark::new(why, Remedy::MapOrKeepWhole))
    }
}

impl ShapeBuilder {
    fn mapped(mapping: &Mapping) -> Self {
        Self {
            key: mapping.key().map(str::to_owned),
            targets: mapping.targets().to_vec(),
            notes: Vec::new(),
            warnings: Vec::new(),
            takes_all: false,
            left_out: HashSet::new(),
        }
    }

    fn found(looked: &Looked) -> Self {
        if is_imagenet(looked) { Self::imagenet(looked) } else { Self::all(looked) }
    }

    fn all(looked: &Looked) -> Self {
        let key = (looked.features.len() > 1 && looked.tells_apart(KEY)).then(|| KEY.to_owned());
        let others = looked.features.keys().filter(|name| Some(*name) != key.as_ref());
        let targets = others.map(|name| (name.clone(), name.clone())).collect();
        let note = |name| Remark::new(format!("feature \"{name}\" is the key"), Remedy::MapOtherKey);
        let notes = key.iter().map(note).collect();
        Self { key, targets, notes, warnings: Vec::new(), takes_all: true, left_out: HashSet::new() }
    }

    fn imagenet(looked: &Looked) -> Self {
        let key = looked.tells_apart(FILENAME).then(|| FILENAME.to_owned());
        let targets =
            [("image", ENCODED), ("label", LABEL)].map(|(name, feature)| (name.to_owned(), feature.to_owned()));
        let taken = |name: &&str| [ENCODED, LABEL].contains(name) || key.as_deref() == Some(*name);
        let others = shown_list(looked.features.keys().map(String::as_str).filter(|name| !taken(name)));
        let mut note = Remark::from(format!("these are ImageNet's records: image={ENCODED}, label={LABEL}"));
        note.text += &key.as_ref().map_or(", no key".into(), |key| format!(", key={key}"));
        if !others.is_empty() {
            note.text += &format!("; ignored: {others}");
            note.remedy = Some(Box::new(Remedy::MapMore));
        }
        Self {
            key,
            targets: targets.into(),
            notes: vec![note],
            warnings: Vec::new(),
            takes_all: false,
            left_out: HashSet::new(),
        }
    }

    /// A field has room for one value; where nobody has asked for this feature, it is not taken.
    fn leave_out_lists_of_bytes(&mut self, looked: &Looked) {
        if !self.takes_all {
            return;
        }
        let is_list =
            |name: &str| looked.features.get(name).is_some_and(|seen| seen.kind == Kind::Bytes && seen.count_max > 1);
        let (lists, targets) = std::mem::take(&mut self.targets).into_iter().partition(|(_, name)| is_list(name));
        self.targets = targets;
        self.left_out = Vec::into_iter(lists).map(|(_, name)| name).collect();
        if !self.left_out.is_empty() {
            let mut names: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
            names.sort_unstable();
            let names = shown_list(names.into_iter());
            let warning = format!("NOT packed, because they have several values of bytes in a record: {names}");
            self.warnings.push(warning.into());
        }
    }

    fn build(self, looked: &Looked) -> Result<TfRecordShape, Remark> {
        let mut builder = Builder { notes: self.notes, warnings: self.warnings, ..Builder::default() };
        let taken = Self::uses(&self.targets, looked, &mut builder.notes)?;
        for (target, feature, seen) in taken {
            builder.target(target, feature, seen)?;
        }
        if let Some(key) = &self.key {
            let seen = known(looked, key)?;
            if seen.kind != Kind::Bytes || seen.count_max > 1 {
                let why = format!("feature \"{}\" cannot be the key: it is {}", shown(key), described(seen));
                return Err(why.into());
            }
            builder.add(key, Use::Key);
        }
        builder.finish(self.key.is_some(), self.takes_all.then_some(self.left_out))
    }

    /// The targets with what was seen of them. Where no field is among them, the first becomes one.
    fn uses<'a>(
        targets: &'a [(String, String)],
        looked: &Looked,
        notes: &mut Vec<Remark>,
    ) -> Result<Vec<(&'a str, &'a str, Taken)>, Remark> {
        let mut all = Vec::new();
        for (target, feature) in targets {
            let seen = known(looked, feature)?;
            all.push((target.as_str(), feature.as_str(), Taken::of(feature, seen)?));
        }
        if all.iter().any(|(_, _, taken)| matches!(taken, Taken::Field(_, _))) {
            return Ok(all);
        }
        let in_all = |name: &str| {
            looked
                .features
                .get(name)
                .is_some_and(|seen| seen.record_count == looked.record_count && seen.count_min == 1)
        };
        let chosen = all.iter().position(|(_, name, _)| in_all(name)).unwrap_or(0);
        let Some((target, _, taken)) = all.get_mut(chosen) else {
            return Err(Remark::new("no feature is left for a field", Remedy::MapFeature));
        };
        if let Taken::Attribute(kind) = *taken {
            *taken = Taken::Field(FieldForm::Numbers(kind, Some(1)), None);
            let target = shown(target);
            let note = format!(
                "there are only numbers: \"{target}\" is kept as an array of one, because a dataset has a field"
            );
            notes.push(note.into());
        }
        Ok(all)
    }
}

/// What a feature is taken for, and what the user should know of it.
enum Taken {
    Attribute(Kind),
    Field(FieldForm, Option<Remark>),
}

impl Taken {
    fn of(name: &str, seen: &SeenFeature) -> Result<Self, Remark> {
        if let Some((other, [first, second])) = seen.other {
            let kind = seen.kind.name();
            let other = other.name();
            let name = shown(name);
            let why = format!("feature \"{name}\" is {kind} in record {first} and {other} in record {second}");
            return Err(Remark::new(why, Remedy::MapOrKeepWhole));
        }
        let field = |form| Ok(Self::Field(form, None));
        match (seen.kind, seen.count_min, seen.count_max) {
            (Kind::Bytes, _, 0 | 1) => field(FieldForm::Bytes),
            (Kind::Bytes, _, _) => {
                let why = format!("feature \"{}\" is {}, a field holds one", shown(name), described(seen));
                Err(Remark::new(why, Remedy::MapOrKeepWhole))
            }
            (kind, 0 | 1, 1) => Ok(Self::Attribute(kind)),
            (kind, least, most) if least == most && most > 0 => field(FieldForm::Numbers(kind, Some(most))),
            (kind, _, _) => {
                let note = format!(
                    "feature \"{}\" is {}: it is kept as bytes, {} little-endian values back to back",
                    shown(name),
                    described(seen),
                    element(kind).name()
                );
                Ok(Self::Field(FieldForm::Numbers(kind, None), Some(note.into())))
            }
        }
    }
}

/// Attributes and fields as they come.
#[derive(Default)]
struct Builder {
    attributes: Vec<Attribute>,
    fields: Vec<Field>,
    wanted: Vec<Wanted>,
    by_name: HashMap<String, usize>,
    notes: Vec<Remark>,
    warnings: Vec<Remark>,
}

impl Builder {
    fn target(&mut self, target: &str, feature: &str, taken: Taken) -> Result<(), Remark> {
        let name = target.to_owned();
        let wanted = match taken {
            Taken::Attribute(kind) => {
                self.attributes.push(Attribute { name, kind: element(kind) });
                Use::Attribute(self.attributes.len() - 1, kind)
            }
            Taken::Field(form, note) => {
                self.notes.extend(note);
                self.fields.push(Field { name, kind: form.field_type() });
                Use::Field(self.fields.len() - 1, form)
            }
        };
        self.add(feature, wanted);
        Ok(())
    }

    fn add(&mut self, feature: &str, new: Use) {
        let next = self.wanted.len();
        let at = *self.by_name.entry(feature.to_owned()).or_insert(next);
        if at == next {
            self.wanted.push(Wanted { name: feature.to_owned(), uses: Vec::new() });
        }
        if let Some(wanted) = self.wanted.get_mut(at) {
            wanted.uses.push(new);
        }
    }

    fn finish(self, is_keyed: bool, left_out: Option<HashSet<String>>) -> Result<TfRecordShape, Remark> {
        let Self { attributes, fields, wanted, by_name, notes, warnings } = self;
        let unfit = |error: FormatError| Remark::new(error.to_string(), Remedy::MapOrKeepWhole);
        let schema = Schema::new(attributes, fields).map_err(unfit)?;
        let metadata = Metadata { schema, user: Map::new() };
        Ok(TfRecordShape { metadata, is_keyed, notes, warnings, wanted, by_name, left_out })
    }
}

impl FieldForm {
    fn field_type(&self) -> FieldType {
        match *self {
            Self::Numbers(kind, Some(count)) => FieldType::Array { element: element(kind), shape: vec![count] },
            Self::Bytes | Self::Numbers(_, None) => FieldType::Bytes,
        }
    }
}

impl Kind {
    /// The attribute that these little-endian bytes are.
    pub(super) fn attribute(self, bytes: &[u8]) -> Option<AttributeValue> {
        element(self).decode(bytes)
    }
}

/// Numbers are taken as they are.
fn element(kind: Kind) -> AttributeType {
    if kind == Kind::Float { AttributeType::Float32 } else { AttributeType::Int64 }
}

/// Whether every record has a picture and a class.
fn is_imagenet(looked: &Looked) -> bool {
    let one_in_each = |name: &str, kind: Kind| {
        looked.features.get(name).is_some_and(|seen| {
            let one = (seen.count_min, seen.count_max) == (1, 1);
            seen.kind == kind && seen.other.is_none() && one && seen.record_count == looked.record_count
        })
    };
    one_in_each(ENCODED, Kind::Bytes) && one_in_each(LABEL, Kind::Int64)
}

fn known<'a>(looked: &'a Looked, name: &str) -> Result<&'a SeenFeature, Remark> {
    looked.features.get(name).ok_or_else(|| {
        let count = looked.record_count;
        let names = looked.names();
        format!("none of the first {count} records has a feature \"{}\"; they have {names}", shown(name)).into()
    })
}

fn described(seen: &SeenFeature) -> String {
    let SeenFeature { kind, count_min, count_max, .. } = seen;
    let counts = if count_min == count_max { count_min.to_string() } else { format!("{count_min} to {count_max}") };
    format!("a list of {counts} {} values", kind.name())
}

/// Names for a sentence.
pub(super) fn shown_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<String> = names.map(shown).collect();
    let more = all.len().saturating_sub(SHOWN_MAX);
    all.truncate(SHOWN_MAX);
    let list = all.join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

/// A name from a file, made safe for a terminal and short.
pub(super) fn shown(name: &str) -> String {
    let bytes = name.as_bytes();
    escape_bytes(&bytes[..bytes.len().min(256)])
}
