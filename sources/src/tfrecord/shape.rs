//! How each feature is used: as the key, an attribute or a field, or ignored.
//!
//! One number is an attribute. Bytes are a field. A list of numbers is an array, of a fixed length if all first records
//! have one. Without a mapping every feature is used, and those of ImageNet's records that have known meanings get short
//! names. Only what the user has chosen is left out.

use std::collections::{HashMap, HashSet};

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Categories, Field, FieldType, FormatError, Metadata, Remedy, Schema,
    Shape, UserMetadata, escape_bytes,
};

use super::infer::{FILENAME, FirstRecords, KEY, SeenFeature};
use super::wire::Kind;
use crate::{Chosen, Mapping, Remark};

/// In ImageNet's records, what begins so is a list for each picture, however many values the first ones have.
const OBJECTS: &str = "image/object/";
/// In a mapping, what the name of a feature ends with whose lists have any length, whatever the first records have.
const ANY_LENGTH: &str = "[]";
const ENCODED: &str = "image/encoded";
const LABEL: &str = "image/class/label";
/// Features of ImageNet's records, by the names that they get.
const NAMED: [(&str, &str); 2] = [("image", ENCODED), ("label", LABEL)];
/// Names that are listed in a message.
const SHOWN_MAX: usize = 30;

/// The schema, and the feature of each attribute and field.
#[derive(Debug)]
pub(super) struct TfRecordShape {
    pub(super) metadata: Metadata,
    pub(super) is_keyed: bool,
    pub(super) notes: Vec<Remark>,
    pub(super) wanted: Vec<Wanted>,
    /// For each feature, its index in `wanted`.
    pub(super) by_name: HashMap<String, usize>,
    /// Where every feature is used: the exceptions. A feature that is in neither is then an error.
    pub(super) ignored: Option<HashSet<String>>,
}

/// A feature, and how it is used.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) uses: Vec<Use>,
}

/// How a feature is used. The numbers are indexes of attributes and fields.
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

/// Collects how the features are used.
struct ShapeBuilder {
    key: Option<String>,
    /// Names in the dataset and names of features.
    targets: Vec<(String, String)>,
    notes: Vec<Remark>,
    takes_all: bool,
    ignored: HashSet<String>,
}

impl TfRecordShape {
    /// The shape of these records.
    ///
    /// # Errors
    /// Where no schema can be made of them.
    pub(super) fn of(records: &FirstRecords, mapping: &Mapping, chosen: &Chosen) -> Result<Self, Remark> {
        let mut builder = if mapping.is_empty() { ShapeBuilder::found(records) } else { ShapeBuilder::mapped(mapping) };
        builder.choose(chosen)?;
        builder.refuse_lists_of_bytes(records)?;
        builder.build(records)
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
            takes_all: false,
            ignored: HashSet::new(),
        }
    }

    fn found(records: &FirstRecords) -> Self {
        if is_imagenet(records) { Self::imagenet(records) } else { Self::all(records) }
    }

    fn all(records: &FirstRecords) -> Self {
        let key = (records.features.len() > 1 && records.is_distinct(KEY)).then(|| KEY.to_owned());
        let others = records.features.keys().filter(|name| Some(*name) != key.as_ref());
        let targets = others.map(|name| (name.clone(), name.clone())).collect();
        let note = |name| Remark::new(format!("feature \"{name}\" is the key"), Remedy::MapOtherKey);
        let mut notes: Vec<Remark> = key.iter().map(note).collect();
        if key.is_none() && records.features.len() > 1 && records.features.contains_key(KEY) {
            let why = "feature \"key\" is not the key, as it is no text, is missing in a record, or repeats: there are no keys";
            notes.push(Remark::new(why, Remedy::MapOtherKey));
        }
        Self { key, targets, notes, takes_all: true, ignored: HashSet::new() }
    }

    /// Short names for the picture, the class and the key; the other features keep theirs.
    fn imagenet(records: &FirstRecords) -> Self {
        let key = records.is_distinct(FILENAME).then(|| FILENAME.to_owned());
        let mut targets: Vec<(String, String)> =
            NAMED.map(|(name, feature)| (name.to_owned(), feature.to_owned())).into();
        let is_named = |name: &String| NAMED.iter().any(|(_, feature)| feature == name) || key.as_ref() == Some(name);
        let others = records.features.keys().filter(|name| !is_named(name));
        targets.extend(others.map(|name| (name.clone(), name.clone())));
        let mut note = format!("these are ImageNet's records: image={ENCODED}, label={LABEL}");
        note += &key.as_ref().map_or(", no key".into(), |key| format!(", key={key}"));
        if targets.len() > NAMED.len() {
            note += "; other features keep their names";
        }
        Self { key, targets, notes: vec![note.into()], takes_all: true, ignored: HashSet::new() }
    }

    /// Leaves out what the user wants left out. The key stays unless it is named there.
    fn choose(&mut self, chosen: &Chosen) -> Result<(), Remark> {
        let names = self.targets.iter().flat_map(|(target, feature)| [target.as_str(), feature.as_str()]);
        chosen.check("feature", names.chain(self.key.as_deref()))?;
        let (taken, left_out) =
            std::mem::take(&mut self.targets).into_iter().partition(|(target, name)| chosen.takes([target, name]));
        self.targets = taken;
        self.ignored = Vec::into_iter(left_out).map(|(_, name)| name).collect();
        if self.key.as_ref().is_some_and(|key| chosen.excludes_key(key)) {
            self.ignored.extend(self.key.take());
            self.notes.clear();
        }
        Ok(())
    }

    /// A field holds one value, so a list of bytes cannot be taken, and it is not left out without being asked.
    fn refuse_lists_of_bytes(&self, records: &FirstRecords) -> Result<(), Remark> {
        let is_list =
            |name: &str| records.features.get(name).is_some_and(|seen| seen.kind == Kind::Bytes && seen.count_max > 1);
        let lists = shown_list(self.targets.iter().map(|(_, name)| name.as_str()).filter(|name| is_list(name)));
        if !self.takes_all || lists.is_empty() {
            return Ok(());
        }
        let why = format!("these features have several values of bytes in a record, a field holds one: {lists}");
        Err(Remark::new(why, Remedy::MapOrKeepWhole))
    }

    fn build(self, records: &FirstRecords) -> Result<TfRecordShape, Remark> {
        let mut builder = Builder { notes: self.notes, ..Builder::default() };
        let taken = Self::uses(&self.targets, records, &mut builder.notes)?;
        for (target, feature, seen) in taken {
            builder.target(target, feature, seen)?;
        }
        if let Some(key) = &self.key {
            let seen = known(records, key)?;
            if seen.kind != Kind::Bytes || seen.count_max > 1 {
                let why = format!("feature \"{}\" cannot be the key: it is {}", shown(key), described(seen));
                return Err(why.into());
            }
            builder.add(key, Use::Key);
        }
        builder.finish(self.key.is_some(), self.takes_all.then_some(self.ignored))
    }

    /// The targets with how each is used. If none is a field, one of them becomes a field.
    fn uses<'a>(
        targets: &'a [(String, String)],
        records: &FirstRecords,
        notes: &mut Vec<Remark>,
    ) -> Result<Vec<(&'a str, &'a str, Taken)>, Remark> {
        let mut all = Vec::new();
        for (target, feature) in targets {
            let marked = feature.strip_suffix(ANY_LENGTH).filter(|_| !records.features.contains_key(feature));
            let feature = marked.unwrap_or(feature);
            let seen = known(records, feature)?;
            let is_list = marked.is_some() || feature.starts_with(OBJECTS) && is_imagenet(records);
            all.push((target.as_str(), feature, Taken::of(feature, seen, is_list)?));
        }
        if all.iter().any(|(_, _, taken)| matches!(taken, Taken::Field(_))) {
            return Ok(all);
        }
        let in_all = |name: &str| {
            records
                .features
                .get(name)
                .is_some_and(|seen| seen.record_count == records.record_count && seen.count_min == 1)
        };
        // One that every record has, or else the first.
        let chosen = all.iter().position(|(_, name, _)| in_all(name)).unwrap_or(0);
        let Some((target, _, taken)) = all.get_mut(chosen) else {
            return Err(Remark::new("no feature is left for a field", Remedy::MapFeature));
        };
        if let Taken::Attribute(kind) = *taken {
            *taken = Taken::Field(FieldForm::Numbers(kind, Some(1)));
            let target = shown(target);
            let note = format!(
                "there are only numbers: \"{target}\" is kept as an array of one, because a dataset has a field"
            );
            notes.push(note.into());
        }
        Ok(all)
    }
}

/// What a feature becomes.
enum Taken {
    Attribute(Kind),
    Field(FieldForm),
}

impl Taken {
    /// `is_list` where its numbers are a list of any length, whatever the first records have.
    fn of(name: &str, seen: &SeenFeature, is_list: bool) -> Result<Self, Remark> {
        if let Some((other, [first, second])) = seen.other {
            let kind = seen.kind.name();
            let other = other.name();
            let name = shown(name);
            let why = format!("feature \"{name}\" is {kind} in record {first} and {other} in record {second}");
            return Err(Remark::new(why, Remedy::MapOrKeepWhole));
        }
        Ok(match (seen.kind, seen.count_min, seen.count_max) {
            (Kind::Bytes, _, 0 | 1) => Self::Field(FieldForm::Bytes),
            (Kind::Bytes, _, _) => {
                let why = format!("feature \"{}\" is {}, a field holds one", shown(name), described(seen));
                return Err(Remark::new(why, Remedy::MapOrKeepWhole));
            }
            (kind, 0 | 1, 1) if !is_list => Self::Attribute(kind),
            (kind, least, most) if least == most && most > 0 && !is_list => {
                Self::Field(FieldForm::Numbers(kind, Some(most)))
            }
            (kind, _, _) => Self::Field(FieldForm::Numbers(kind, None)),
        })
    }
}

/// Attributes and fields, in the order in which they are added.
#[derive(Default)]
struct Builder {
    attributes: Vec<Attribute>,
    fields: Vec<Field>,
    wanted: Vec<Wanted>,
    by_name: HashMap<String, usize>,
    notes: Vec<Remark>,
}

impl Builder {
    fn target(&mut self, target: &str, feature: &str, taken: Taken) -> Result<(), Remark> {
        let name = target.to_owned();
        let wanted = match taken {
            Taken::Attribute(kind) => {
                self.attributes.push(Attribute { name, kind: element(kind) });
                Use::Attribute(self.attributes.len() - 1, kind)
            }
            Taken::Field(form) => {
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
        self.wanted[at].uses.push(new);
    }

    fn finish(self, is_keyed: bool, ignored: Option<HashSet<String>>) -> Result<TfRecordShape, Remark> {
        let Self { attributes, fields, wanted, by_name, notes } = self;
        let unfit = |error: FormatError| Remark::new(error.to_string(), Remedy::MapOrKeepWhole);
        let schema = Schema::new(attributes, fields).map_err(unfit)?;
        let metadata = Metadata { schema, user: UserMetadata::default() };
        Ok(TfRecordShape { metadata, is_keyed, notes, wanted, by_name, ignored })
    }
}

impl FieldForm {
    fn field_type(&self) -> FieldType {
        match *self {
            Self::Numbers(kind, Some(count)) => {
                FieldType::Array { element: element(kind), shape: Shape::fixed(vec![count]) }
            }
            Self::Numbers(kind, None) => FieldType::Array { element: element(kind), shape: Shape::open(Vec::new()) },
            Self::Bytes => FieldType::Bytes,
        }
    }
}

impl Kind {
    /// Decodes little-endian bytes as an attribute.
    pub(super) fn attribute(self, bytes: &[u8]) -> Option<AttributeValue> {
        element(self).decode(bytes, &Categories::none())
    }
}

/// The type of a number in the dataset: that of the record.
fn element(kind: Kind) -> AttributeType {
    if kind == Kind::Float { AttributeType::Float32 } else { AttributeType::Int64 }
}

/// Whether every record has a picture and a class, and the names that these get are free.
fn is_imagenet(records: &FirstRecords) -> bool {
    let one_in_each = |name: &str, kind: Kind| {
        records.features.get(name).is_some_and(|seen| {
            let one = (seen.count_min, seen.count_max) == (1, 1);
            seen.kind == kind && seen.other.is_none() && one && seen.record_count == records.record_count
        })
    };
    let is_free = NAMED.iter().all(|(name, _)| !records.features.contains_key(*name));
    is_free && one_in_each(ENCODED, Kind::Bytes) && one_in_each(LABEL, Kind::Int64)
}

fn known<'a>(records: &'a FirstRecords, name: &str) -> Result<&'a SeenFeature, Remark> {
    records.features.get(name).ok_or_else(|| {
        let count = records.record_count;
        let names = records.names();
        format!("none of the first {count} records has a feature \"{}\"; they have {names}", shown(name)).into()
    })
}

fn described(seen: &SeenFeature) -> String {
    let SeenFeature { kind, count_min, count_max, .. } = seen;
    let counts = if count_min == count_max { count_min.to_string() } else { format!("{count_min} to {count_max}") };
    format!("a list of {counts} {} values", kind.name())
}

/// Names for a message, with the number of those that are not shown.
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
