//! A record as the shape has it: its key, its attributes, and where its fields are.

use std::ops::Range;

use grainstore_format::{AttributeValue, MAX_KEY_LEN, Remedy, to_usize};

use super::payload::PayloadPiece;
use super::shape::{FieldForm, TfRecordShape, Use, Wanted, shown};
use super::wire::{self, Kind, List, ListValues, RecordBytes, WireError};
use crate::{Remark, WHOLE_LEN_MAX};

/// A record that fits.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    pub(super) key: Vec<u8>,
    pub(super) attributes: Vec<Option<AttributeValue>>,
    pub(super) fields: Vec<Option<PayloadPiece>>,
    /// Bytes that are not in the record as they are needed.
    made_len: u64,
}

/// Why a record does not fit.
#[derive(Debug)]
pub(super) struct Misfit(pub(super) Remark);

impl From<WireError> for Misfit {
    fn from(error: WireError) -> Self {
        Self(Remark::new(error.to_string(), Remedy::KeepWhole))
    }
}

impl TfRecordShape {
    /// Takes a record apart.
    pub(super) fn fit(&self, record: &mut dyn RecordBytes) -> Result<Fitted, Misfit> {
        let features = self.find(record)?;
        let schema = &self.metadata.schema;
        let mut fitted = Fitted {
            attributes: vec![None; schema.attributes().len()],
            fields: vec![None; schema.fields().len()],
            ..Fitted::default()
        };
        for (wanted, feature) in self.wanted.iter().zip(features) {
            let list = feature.map_or(Ok(None), |feature| wire::list(record, feature))?;
            match list {
                Some(list) => fitted.take(record, wanted, &list)?,
                None if self.is_key(wanted) => return Err(misfit(wanted, "is missing, it is the key")),
                None => {}
            }
        }
        // spec.md: FLD-1. One field is the whole payload, so it cannot be absent.
        match fitted.fields.as_slice() {
            [None] => Err(self.lacks_its_field()),
            _ => Ok(fitted),
        }
    }

    /// Where the wanted features are.
    fn find(&self, record: &mut dyn RecordBytes) -> Result<Vec<Option<Range<u64>>>, Misfit> {
        let mut found = vec![None; self.wanted.len()];
        let mut stranger = None;
        wire::for_each_feature(record, &mut |name, feature| match self.by_name.get(name) {
            Some(&at) => found[at] = Some(feature),
            None if self.left_out.as_ref().is_some_and(|left_out| !left_out.contains(name)) => {
                stranger.get_or_insert_with(|| shown(name));
            }
            None => {}
        })?;
        let unknown = |name| {
            let why = format!("it has a feature \"{name}\" that the first records do not have");
            Misfit(Remark::new(why, Remedy::MapOrKeepWhole))
        };
        stranger.map_or(Ok(found), |name| Err(unknown(name)))
    }

    fn is_key(&self, wanted: &Wanted) -> bool {
        self.is_keyed && wanted.uses.iter().any(|one| matches!(one, Use::Key))
    }

    fn lacks_its_field(&self) -> Misfit {
        let is_field = |wanted: &&Wanted| wanted.uses.iter().any(|one| matches!(one, Use::Field(_, _)));
        let missing = |wanted| misfit(wanted, "is missing, it is the only field");
        self.wanted.iter().find(is_field).map_or(Misfit("it has no field".into()), missing)
    }
}

impl Fitted {
    fn take(&mut self, record: &mut dyn RecordBytes, wanted: &Wanted, list: &List) -> Result<(), Misfit> {
        let values = wire::values(record, list)?;
        for one in &wanted.uses {
            match one {
                Use::Key => self.key = key(record, wanted, list, &values)?,
                Use::Attribute(at, kind) => {
                    expect(wanted, list, &values, *kind, &[0, 1])?;
                    self.attributes[*at] = number(record, list)?;
                }
                Use::Field(at, FieldForm::Bytes) => {
                    expect(wanted, list, &values, Kind::Bytes, &[0, 1])?;
                    self.fields[*at] = (values.count == 1).then(|| PayloadPiece::At(values.last.clone()));
                }
                Use::Field(at, FieldForm::Numbers(kind, count)) => {
                    expect(wanted, list, &values, *kind, &[count.unwrap_or(values.count)])?;
                    self.fields[*at] = Some(self.numbers(record, wanted, list, &values)?);
                }
            }
        }
        Ok(())
    }

    /// One run of floats is little-endian already, and anything else is made so.
    fn numbers(
        &mut self,
        record: &mut dyn RecordBytes,
        wanted: &Wanted,
        list: &List,
        values: &ListValues,
    ) -> Result<PayloadPiece, Misfit> {
        if values.run_count == 0 || (list.kind == Kind::Float && values.run_count == 1) {
            return Ok(PayloadPiece::At(values.last.clone()));
        }
        let len = values.count.saturating_mul(if list.kind == Kind::Float { 4 } else { 8 });
        self.made_len = self.made_len.saturating_add(len);
        if self.made_len > WHOLE_LEN_MAX {
            return Err(misfit(wanted, &format!("has {} values, more than fit into 64 MiB of numbers", values.count)));
        }
        let mut bytes = Vec::with_capacity(to_usize(len));
        wire::for_each_number(record, list, &mut |number| bytes.extend_from_slice(number))?;
        Ok(PayloadPiece::Made(bytes.into()))
    }
}

fn key(record: &mut dyn RecordBytes, wanted: &Wanted, list: &List, values: &ListValues) -> Result<Vec<u8>, Misfit> {
    expect(wanted, list, values, Kind::Bytes, &[1])?;
    let len = values.last.end - values.last.start;
    if !(1..=MAX_KEY_LEN as u64).contains(&len) {
        return Err(misfit(wanted, &format!("has {len} bytes, a key has 1 to {MAX_KEY_LEN}")));
    }
    Ok(record.bytes(values.last.clone())?.to_vec())
}

/// The number of a list that has one at most.
fn number(record: &mut dyn RecordBytes, list: &List) -> Result<Option<AttributeValue>, Misfit> {
    let mut found = None;
    wire::for_each_number(record, list, &mut |bytes| found = list.kind.attribute(bytes))?;
    Ok(found)
}

fn expect(wanted: &Wanted, list: &List, values: &ListValues, kind: Kind, counts: &[u64]) -> Result<(), Misfit> {
    if list.kind == kind && counts.contains(&values.count) {
        return Ok(());
    }
    let [found, expected] = [(list.kind, values.count), (kind, counts.last().copied().unwrap_or(values.count))]
        .map(|(kind, count)| format!("{count} {} {}", kind.name(), if count == 1 { "value" } else { "values" }));
    Err(misfit(wanted, &format!("has {found}, the first records have {expected}")))
}

fn misfit(wanted: &Wanted, what: &str) -> Misfit {
    let why = format!("feature \"{}\" {what}", shown(&wanted.name));
    Misfit(Remark::new(why, Remedy::MapOrKeepWhole))
}
