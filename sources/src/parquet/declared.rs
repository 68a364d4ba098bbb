//! Types that a file declares beside its columns: those of our own exports, and which columns of text Arrow, pandas and
//! polars keep as categories.

use std::collections::HashMap;

use grainstore_format::{Attribute, AttributeType, Field, FieldType, Schema};
use parquet::file::metadata::KeyValue;
use serde_json::{Map, Value};

use super::kind::ColumnKind;

/// What our exports write.
const OURS: &str = "grainstore";
/// What Arrow's libraries write: an IPC message with the schema, in base64.
const ARROW: &str = "ARROW:schema";

/// The types that a file declares, by the names of its columns.
#[derive(Debug, Default)]
pub(super) struct DeclaredTypes {
    kinds: HashMap<String, ColumnKind>,
    /// The schema and the user metadata of the dataset that was exported.
    pub(super) exported: Option<(Schema, Map<String, Value>)>,
}

impl DeclaredTypes {
    /// A declaration that cannot be parsed is ignored.
    pub(super) fn of(pairs: Option<&Vec<KeyValue>>) -> Self {
        let text = |key: &str| pairs?.iter().find(|pair| pair.key == key)?.value.as_deref();
        let mut declared = Self::default();
        let categories = text(ARROW).and_then(decode_base64).and_then(|message| dictionaries(&message));
        declared.kinds.extend(categories.unwrap_or_default().into_iter().map(|name| (name, ColumnKind::Category)));
        if let Some(Value::Object(ours)) = text(OURS).and_then(|text| serde_json::from_str(text).ok()) {
            declared.take_ours(&ours);
        }
        declared
    }

    /// Declares a column of text to be a category.
    pub(super) fn take_category(&mut self, name: &str) {
        self.kinds.insert(name.to_owned(), ColumnKind::Category);
    }

    /// What a column of this name becomes, that would be `found` without a declaration.
    pub(super) fn kind(&self, name: &str, found: ColumnKind) -> ColumnKind {
        match (&found, self.kinds.get(name)) {
            (ColumnKind::Text, Some(ColumnKind::Category))
            | (ColumnKind::Number(AttributeType::Float32), Some(ColumnKind::Number(AttributeType::Bfloat16)))
            | (ColumnKind::Bytes, Some(ColumnKind::Array(_))) => self.kinds[name].clone(),
            _ => found,
        }
    }

    fn take_ours(&mut self, ours: &Map<String, Value>) {
        let named = |list: &str| {
            let items = ours.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            items.iter().filter_map(|item| Some((item.get("name")?.as_str()?, item.get("type")?.as_str()?)))
        };
        for (name, kind) in named("attributes") {
            match AttributeType::from_name(kind) {
                Some(AttributeType::Category) => self.kinds.insert(name.to_owned(), ColumnKind::Category),
                Some(kind @ AttributeType::Bfloat16) => self.kinds.insert(name.to_owned(), ColumnKind::Number(kind)),
                _ => None,
            };
        }
        for (name, kind) in named("fields") {
            if let Some(kind @ FieldType::Array { .. }) = FieldType::from_name(kind) {
                self.kinds.insert(name.to_owned(), ColumnKind::Array(kind));
            }
        }
        let attributes = named("attributes").filter_map(|(name, kind)| {
            Some(Attribute { name: name.to_owned(), kind: AttributeType::from_name(kind)? })
        });
        let fields = named("fields").map(|(name, kind)| {
            let kind = FieldType::from_name(kind).unwrap_or(FieldType::Bytes);
            Field { name: name.to_owned(), kind }
        });
        let schema = Schema::new(attributes.collect(), fields.collect()).ok();
        self.exported = schema.zip(ours.get("user").and_then(Value::as_object).cloned());
    }
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut bit_count) = (0_u32, 0_u32);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}

/// The names of the columns that have a dictionary in an IPC message with a schema.
fn dictionaries(message: &[u8]) -> Option<Vec<String>> {
    // A marker and the length, before version 0.15 the length alone.
    let start = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let buffer = FlatBuffer(message.get(start..)?);
    let schema = buffer.follow(buffer.member(buffer.follow(0)?, MESSAGE_HEADER)?)?;
    let fields = buffer.follow(buffer.member(schema, SCHEMA_FIELDS)?)?;
    let count = usize::try_from(buffer.number(fields)?).ok()?;
    let mut names = Vec::new();
    // Every field takes four bytes of the vector, so a count that is too large ends at the end of the message.
    for at in (0..count).map(|index| fields.saturating_add(4).saturating_add(index.saturating_mul(4))) {
        let field = buffer.follow(at)?;
        if buffer.member(field, FIELD_DICTIONARY).is_some() {
            names.push(buffer.text(buffer.follow(buffer.member(field, FIELD_NAME)?)?)?);
        }
    }
    Some(names)
}

/// Places of members in Arrow's tables.
const MESSAGE_HEADER: usize = 2;
const SCHEMA_FIELDS: usize = 1;
const FIELD_NAME: usize = 0;
const FIELD_DICTIONARY: usize = 4;

/// A FlatBuffer; every access is checked.
struct FlatBuffer<'a>(&'a [u8]);

impl FlatBuffer<'_> {
    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// Where the offset at this place leads.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(self.number(at)?).ok()?)
    }

    /// Where a member of a table is; `None` where the table does not have it.
    fn member(&self, table: usize, index: usize) -> Option<usize> {
        let short = |at: usize| Some(usize::from(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?)));
        let back = i64::from(self.number(table)?.cast_signed());
        let vtable = usize::try_from(i64::try_from(table).ok()?.checked_sub(back)?).ok()?;
        let entry = 4 + 2 * index;
        if short(vtable)? < entry + 2 {
            return None;
        }
        let offset = short(vtable.checked_add(entry)?)?;
        if offset == 0 { None } else { table.checked_add(offset) }
    }

    fn text(&self, at: usize) -> Option<String> {
        let len = usize::try_from(self.number(at)?).ok()?;
        String::from_utf8(self.0.get(at.checked_add(4)?..)?.get(..len)?.to_vec()).ok()
    }
}
