//! Which columns there are, and their batches: one for each member that has rows of the selection, in its order.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::AttributeType;
use grainstore_format::memory::NoMemory;
use grainstore_store::{Collection, Dataset, StoreError};

use crate::interface::{Array, ArrowSchema, ArrowStream, Batches, Field};
use crate::values::{Conversion, MemberColumn, MemberRows, Texts, field_of, has_missing, texts};

/// Most rows of a batch of chosen rows, which are copied. Batches of ranges are whole: nothing is copied.
const ROWS_MAX: usize = 1 << 20;

/// Why columns cannot be given.
#[derive(Debug)]
pub enum ColumnError {
    /// The index cannot be read, or is damaged.
    Store(StoreError),
    /// There is no memory for a copy.
    NoMemory(NoMemory),
    /// Our own bookkeeping contradicts itself.
    Bug(&'static str),
}

impl From<StoreError> for ColumnError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NoMemory> for ColumnError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error)
    }
}

impl std::fmt::Display for ColumnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NoMemory(error) => error.fmt(f),
            Self::Bug(what) => write!(f, "internal error: {what}; please report it"),
        }
    }
}

impl std::error::Error for ColumnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::NoMemory(_) | Self::Bug(_) => None,
        }
    }
}

/// Which samples are the rows, by their ordinals in the collection.
#[derive(Debug, Clone)]
pub enum Rows {
    /// Consecutive samples: nothing is copied that need not be.
    Range(Range<u64>),
    /// These samples, in this order.
    List(Arc<[u64]>),
}

/// The columns of a collection: its keys, if it has any, and its attributes.
#[derive(Debug)]
pub struct Columns {
    collection: Collection,
    rows: Rows,
    /// The name and the Arrow type of the keys' column.
    keys: Option<(String, &'static str)>,
    attributes: Vec<Attribute>,
    /// The next member of a range, or the next row of a list.
    next: usize,
}

#[derive(Debug)]
struct Attribute {
    name: String,
    kind: AttributeType,
    conversion: Conversion,
    is_nullable: bool,
}

impl Columns {
    /// The columns of these rows. This loads the attributes, and reads the keys once: they are text if all of them are
    /// UTF-8, else bytes. The column is called `key`, with underscores around it where an attribute has that name.
    ///
    /// # Errors
    /// If the index cannot be read, or is damaged.
    pub fn new(collection: &Collection, rows: Rows) -> Result<Self, ColumnError> {
        Self::of_some(collection, rows, |_| true)
    }

    /// The keys, and the attributes for whose names `takes` is true.
    ///
    /// # Errors
    /// As in [`Self::new`].
    pub fn of_some(collection: &Collection, rows: Rows, takes: impl Fn(&str) -> bool) -> Result<Self, ColumnError> {
        let mut attributes = Vec::new();
        for attribute in collection.schema().attributes().iter().filter(|attribute| takes(&attribute.name)) {
            let column = collection.column(&attribute.name)?;
            let width = column.parts().first().map_or(1, |(_, part)| part.width);
            let conversion = match attribute.kind {
                AttributeType::Bool => Conversion::Bits,
                AttributeType::Bfloat16 => Conversion::Widened,
                AttributeType::Category => {
                    Conversion::Codes(width_of_codes(collection.categories(&attribute.name)?.len()))
                }
                _ => Conversion::Same(width),
            };
            let is_nullable = column.parts().iter().any(|(_, part)| has_missing(part.validity));
            attributes.push(Attribute {
                name: attribute.name.clone(),
                kind: attribute.kind.clone(),
                conversion,
                is_nullable,
            });
        }
        let keys = match collection.is_keyed() {
            true => Some((key_name(&attributes), if keys_are_text(collection)? { "U" } else { "Z" })),
            false => None,
        };
        Ok(Self { collection: collection.clone(), rows, keys, attributes, next: 0 })
    }

    /// The type of the batches, for a consumer in another language.
    #[must_use]
    pub fn schema(&self) -> ArrowSchema {
        ArrowSchema::new(self.all())
    }

    /// The batches, for a consumer in another language.
    #[must_use]
    pub fn stream(self) -> ArrowStream {
        ArrowStream::new(Box::new(self))
    }

    fn all(&self) -> Field {
        let key = self.keys.iter().map(|(name, format)| Field {
            name: name.clone(),
            format: (*format).to_owned(),
            ..Field::default()
        });
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|one| field_of(&one.name, &one.kind, &one.conversion, one.is_nullable));
        Field { format: "+s".to_owned(), children: key.chain(attributes).collect(), ..Field::default() }
    }

    fn batch(&mut self) -> Result<Option<Array>, ColumnError> {
        while let Some((member, rows)) = self.next_rows()? {
            if rows.len() > 0 {
                return self.batch_of(member, &rows).map(Some);
            }
        }
        Ok(None)
    }

    /// The next member, and rows of it.
    fn next_rows(&mut self) -> Result<Option<(usize, MemberRows)>, ColumnError> {
        match &self.rows {
            Rows::Range(range) => {
                let member = self.next;
                if member >= self.collection.member_count() {
                    return Ok(None);
                }
                self.next += 1;
                let all = self.collection.member_ordinals(member);
                let start = range.start.clamp(all.start, all.end) - all.start;
                let end = range.end.clamp(all.start, all.end) - all.start;
                Ok(Some((member, MemberRows::Range(start..end.max(start)))))
            }
            Rows::List(list) => {
                let rest = list.get(self.next..).unwrap_or_default();
                let Some(&first) = rest.first() else { return Ok(None) };
                let (member, _) = self.collection.locate_member(first)?;
                let all = self.collection.member_ordinals(member);
                let here = rest.iter().take(ROWS_MAX).take_while(|ordinal| all.contains(ordinal));
                let here: Vec<u64> = here.map(|ordinal| ordinal - all.start).collect();
                self.next += here.len();
                Ok(Some((member, MemberRows::List(here))))
            }
        }
    }

    fn batch_of(&self, member: usize, rows: &MemberRows) -> Result<Array, ColumnError> {
        let dataset = Arc::new(self.collection.member(member)?.clone());
        let mut children = Vec::new();
        if self.keys.is_some() {
            children.push(keys_of(&dataset, rows)?);
        }
        for attribute in &self.attributes {
            let (name, conversion) = (attribute.name.as_str(), &attribute.conversion);
            let mut array = match conversion {
                Conversion::Codes(_) => {
                    let merged = self.collection.merged_categories(name)?;
                    let codes = merged.codes.get(member).map(Vec::as_slice).unwrap_or_default();
                    let is_same = (0..).zip(codes).all(|(own, &code)| own == code);
                    let codes = (!is_same).then_some(codes);
                    let mut array = MemberColumn { dataset: &dataset, name, conversion, codes }.array(rows)?;
                    array.dictionary = Some(Box::new(texts(merged.categories)?));
                    array
                }
                _ => MemberColumn { dataset: &dataset, name, conversion, codes: None }.array(rows)?,
            };
            if !attribute.is_nullable {
                // It may be a bitmap of ones.
                if let Some(validity) = array.buffers.first_mut() {
                    *validity = None;
                }
            }
            children.push(array);
        }
        Ok(Array { len: rows.len().cast_signed(), buffers: vec![None], children, ..Array::default() })
    }
}

impl Batches for Columns {
    fn field(&mut self) -> Result<Field, String> {
        Ok(self.all())
    }

    fn next(&mut self) -> Result<Option<Array>, String> {
        self.batch().map_err(|error| error.to_string())
    }
}

fn width_of_codes(count: usize) -> u32 {
    match count {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

fn key_name(attributes: &[Attribute]) -> String {
    let taken: HashSet<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    let mut name = "key".to_owned();
    while taken.contains(name.as_str()) {
        name = format!("_{name}_");
    }
    name
}

/// Samples of a group of the key list. spec.md: KEY-7.
const GROUP_LEN: u64 = grainstore_format::KeyGroups::GROUP_LEN;

fn keys_are_text(collection: &Collection) -> Result<bool, ColumnError> {
    for dataset in collection.members() {
        let dataset = dataset?;
        let Some(mut scan) = dataset.key_scan()? else { continue };
        let mut is_text = true;
        for group in 0..dataset.sample_count().div_ceil(GROUP_LEN) {
            scan.group(group, |key| is_text &= std::str::from_utf8(key).is_ok())?;
            if !is_text {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn keys_of(dataset: &Dataset, rows: &MemberRows) -> Result<Array, ColumnError> {
    let mut keys = Texts::default();
    match rows {
        MemberRows::Range(range) => {
            let Some(mut scan) = dataset.key_scan()? else { return Ok(keys.array()?) };
            let mut room = Ok(());
            for group in range.start / GROUP_LEN..range.end.div_ceil(GROUP_LEN) {
                let mut ordinal = group * GROUP_LEN;
                scan.group(group, |key| {
                    if range.contains(&ordinal) && room.is_ok() {
                        room = keys.push(key);
                    }
                    ordinal += 1;
                })?;
                room?;
            }
        }
        MemberRows::List(list) => {
            for &ordinal in list {
                let key = dataset.key(ordinal)?;
                keys.push(&key.ok_or(ColumnError::Bug("a sample of a dataset with keys has none"))?)?;
            }
        }
    }
    Ok(keys.array()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_have_a_name_that_no_attribute_has() {
        let named = |names: &[&str]| -> Vec<Attribute> {
            let attribute = |name: &&str| Attribute {
                name: (*name).to_owned(),
                kind: AttributeType::Int8,
                conversion: Conversion::Same(1),
                is_nullable: false,
            };
            names.iter().map(attribute).collect()
        };
        assert_eq!(key_name(&named(&["label"])), "key");
        assert_eq!(key_name(&named(&["label", "key"])), "_key_");
        assert_eq!(key_name(&named(&["_key_", "key"])), "__key__");
    }
}
