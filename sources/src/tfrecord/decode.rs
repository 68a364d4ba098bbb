//! Decodes a record: its key, its attributes, and where its fields are.

use std::ops::{Range, RangeInclusive};

use grainstore_format::{AttributeValue, MAX_KEY_LEN, Remedy, to_usize};

use super::payload::PayloadPiece;
use super::shape::{FieldForm, TfRecordShape, Use, Wanted, shown};
use super::wire::{self, Kind, List, ListValues, RecordBytes, WireError};
use crate::{Remark, SourceError, WHOLE_LEN_MAX};

/// A record that matches the shape.
#[derive(Debug, Default)]
pub(super) struct DecodedRecord {
    pub(super) key: Vec<u8>,
    pub(super) attributes: Vec<Option<AttributeValue>>,
    pub(super) fields: Vec<Option<PayloadPiece>>,
    /// Bytes of fields that had to be converted, so they are not ranges of the record.
    converted_len: u64,
}

/// Why a record does not match the shape.
#[derive(Debug)]
pub(super) struct Mismatch(pub(super) Remark);

impl From<WireError> for Mismatch {
    fn from(error: WireError) -> Self {
        Self(Remark::new(error.to_string(), Remedy::KeepWhole))
    }
}

impl TfRecordShape {
    /// Decodes a record.
    pub(super) fn decode(&self, record: &mut dyn RecordBytes) -> Result<DecodedRecord, Mismatch> {
        let features = self.find(record)?;
        let schema = &self.metadata.schema;
        let mut decoded = DecodedRecord {
            attributes: vec![None; schema.attributes().len()],
            fields: vec![None; schema.fields().len()],
            ..DecodedRecord::default()
        };
        for (wanted, feature) in self.wanted.iter().zip(features) {
            let list = feature.map_or(Ok(None), |feature| wire::list(record, feature))?;
            match list {
                Some(list) => decoded.take(record, wanted, &list)?,
                None if self.is_key(wanted) => return Err(mismatch(wanted, "is missing, it is the key")),
                None => {}
            }
        }
        // spec.md: FLD-1. One field is the whole payload, so it cannot be absent.
        match decoded.fields.as_slice() {
            [None] => Err(self.lacks_its_field()),
            _ => Ok(decoded),
        }
    }

    /// Where the wanted features are.
    fn find(&self, record: &mut dyn RecordBytes) -> Result<Vec<Option<Range<u64>>>, Mismatch> {
        let mut found = vec![None; self.wanted.len()];
        let mut stranger = None;
        wire::for_each_feature(record, &mut |name, feature| match self.by_name.get(name) {
            Some(&at) => found[at] = Some(feature),
            None if self.ignored.as_ref().is_some_and(|ignored| !ignored.contains(name)) => {
                stranger.get_or_insert_with(|| shown(name));
            }
            None => {}
        })?;
        let unknown = |name| {
            let why = format!("it has a feature \"{name}\" that the first records do not have");
            Mismatch(Remark::new(why, Remedy::MapOrKeepWhole))
        };
        stranger.map_or(Ok(found), |name| Err(unknown(name)))
    }

    fn is_key(&self, wanted: &Wanted) -> bool {
        self.is_keyed && wanted.uses.iter().any(|one| matches!(one, Use::Key))
    }

    fn lacks_its_field(&self) -> Mismatch {
        let is_field = |wanted: &&Wanted| wanted.uses.iter().any(|one| matches!(one, Use::Field(_, _)));
        match self.wanted.iter().find(is_field) {
            Some(wanted) => mismatch(wanted, "is missing, it is the only field"),
            None => Mismatch(SourceError::bug("no feature is wanted for the only field").to_string().into()),
        }
    }
}

impl DecodedRecord {
    fn take(&mut self, record: &mut dyn RecordBytes, wanted: &Wanted, list: &List) -> Result<(), Mismatch> {
        let values = wire::values(record, list)?;
        for one in &wanted.uses {
            match one {
                Use::Key => self.key = key(record, wanted, list, &values)?,
                Use::Attribute(at, kind) => {
                    expect(wanted, list, &values, *kind, 0..=1)?;
                    self.attributes[*at] = number(record, list)?;
                }
                Use::Field(at, FieldForm::Bytes) => {
                    expect(wanted, list, &values, Kind::Bytes, 0..=1)?;
                    self.fields[*at] = (values.count == 1).then(|| PayloadPiece::At(values.last.clone()));
                }
                Use::Field(at, FieldForm::Numbers(kind, count)) => {
                    let count = count.unwrap_or(values.count);
                    expect(wanted, list, &values, *kind, count..=count)?;
                    self.fields[*at] = Some(self.numbers(record, wanted, list, &values)?);
                }
            }
        }
        Ok(())
    }

    /// A field of numbers, little-endian. One packed list of floats is that already; anything else is converted.
    fn numbers(
        &mut self,
        record: &mut dyn RecordBytes,
        wanted: &Wanted,
        list: &List,
        values: &ListValues,
    ) -> Result<PayloadPiece, Mismatch> {
        if values.run_count == 0 || (list.kind == Kind::Float && values.run_count == 1) {
            return Ok(PayloadPiece::At(values.last.clone()));
        }
        let len = values.count.saturating_mul(if list.kind == Kind::Float { 4 } else { 8 });
        self.converted_len = self.converted_len.saturating_add(len);
        if self.converted_len > WHOLE_LEN_MAX {
            return Err(mismatch(
                wanted,
                &format!("has {} values, more than fit into 64 MiB of numbers", values.count),
            ));
        }
        let mut bytes = Vec::with_capacity(to_usize(len));
        wire::for_each_number(record, list, &mut |number| bytes.extend_from_slice(number))?;
        Ok(PayloadPiece::Made(bytes.into()))
    }
}

fn key(record: &mut dyn RecordBytes, wanted: &Wanted, list: &List, values: &ListValues) -> Result<Vec<u8>, Mismatch> {
    expect(wanted, list, values, Kind::Bytes, 1..=1)?;
    let len = values.last.end - values.last.start;
    if !(1..=MAX_KEY_LEN as u64).contains(&len) {
        return Err(mismatch(wanted, &format!("has {len} bytes, a key has 1 to {MAX_KEY_LEN}")));
    }
    Ok(record.bytes(values.last.clone())?.to_vec())
}

/// The number of a list that has one at most.
fn number(record: &mut dyn RecordBytes, list: &List) -> Result<Option<AttributeValue>, Mismatch> {
    let mut found = None;
    wire::for_each_number(record, list, &mut |bytes| found = list.kind.attribute(bytes))?;
    Ok(found)
}

fn expect(
    wanted: &Wanted,
    list: &List,
    values: &ListValues,
    kind: Kind,
    counts: RangeInclusive<u64>,
) -> Result<(), Mismatch> {
    if list.kind == kind && counts.contains(&values.count) {
        return Ok(());
    }
    let found = counted(values.count, list.kind);
    let expected = counted(*counts.end(), kind);
    let mut mismatch = mismatch(wanted, &format!("has {found}, the first records have {expected}"));
    if list.kind == kind && kind != Kind::Bytes {
        mismatch.0.remedy = Some(Box::new(Remedy::MapAnyLength));
    }
    Err(mismatch)
}

fn counted(count: u64, kind: Kind) -> String {
    format!("{count} {} {}", kind.name(), if count == 1 { "value" } else { "values" })
}

fn mismatch(wanted: &Wanted, what: &str) -> Mismatch {
    let why = format!("feature \"{}\" {what}", shown(&wanted.name));
    Mismatch(Remark::new(why, Remedy::MapOrKeepWhole))
}
