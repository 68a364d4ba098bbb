//! The part of a sample that the index needs beside the location of its bytes, and its check against the schema.
//! spec.md: KEY-1, ATR-1, FLD-1, FLD-2, FLD-4.

use std::ops::Range;

use grainstore_format::{AttributeValue, Categories, MAX_KEY_LEN};

use crate::WriteError;
use crate::index::{IndexRow, IndexSpec};
use crate::options::{Sample, StreamedSample};

/// The most bytes of a key that an error about its length shows.
const SHOWN_KEY_LEN: usize = 64;

/// A sample without its payload.
#[derive(Clone, Copy)]
pub(crate) struct Described<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) attributes: &'a [Option<AttributeValue>],
    pub(crate) fields: &'a [Option<Range<u64>>],
}

impl Sample {
    pub(crate) fn described(&self) -> Described<'_> {
        Described { key: &self.key, attributes: &self.attributes, fields: &self.fields }
    }
}

impl StreamedSample {
    pub(crate) fn described(&self) -> Described<'_> {
        Described { key: &self.key, attributes: &self.attributes, fields: &self.fields }
    }
}

impl<'a> Described<'a> {
    /// The row of a raw sample.
    pub(crate) fn row(self, offset: u64, stored_len: u64, crc: u32) -> IndexRow<'a> {
        let Self { key, attributes, fields } = self;
        IndexRow { offset, stored_len, raw_len: stored_len, crc, lz4: false, key, attributes, fields }
    }

    /// Checks it against the schema; `ordinal` and the key identify it in the error.
    pub(crate) fn check(self, spec: &IndexSpec, ordinal: u64, payload_len: u64) -> Result<(), WriteError> {
        let key = self.key.get(..SHOWN_KEY_LEN).filter(|_| self.key.len() > MAX_KEY_LEN).unwrap_or(self.key);
        let wrong = |what: String| WriteError::Sample { ordinal, key: key.to_vec(), what };
        self.check_key(spec).map_err(wrong)?;
        self.check_attributes(spec).map_err(wrong)?;
        self.check_fields(spec, payload_len).map_err(wrong)
    }

    fn check_key(self, spec: &IndexSpec) -> Result<(), String> {
        let len = self.key.len();
        if spec.keyed && !(1..=MAX_KEY_LEN).contains(&len) {
            return Err(format!("its key has {len} bytes; keys have 1 to {MAX_KEY_LEN}"));
        }
        if !spec.keyed && len > 0 {
            return Err("it has a key, in a dataset without keys".into());
        }
        Ok(())
    }

    fn check_attributes(self, spec: &IndexSpec) -> Result<(), String> {
        let expected = spec.metadata.schema.attributes();
        if self.attributes.len() != expected.len() {
            return Err(format!("{} attributes, the schema has {}", self.attributes.len(), expected.len()));
        }
        for (attribute, value) in expected.iter().zip(self.attributes) {
            match value {
                Some(AttributeValue::Category(name)) if name.len() > Categories::MAX_NAME_LEN => {
                    let (len, most) = (name.len(), Categories::MAX_NAME_LEN);
                    return Err(format!("attribute \"{}\" has {len} bytes, a category at most {most}", attribute.name));
                }
                Some(value) if !attribute.kind.accepts(value) => {
                    return Err(format!("attribute \"{}\" is {value}, not {}", attribute.name, attribute.kind.name()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_fields(self, spec: &IndexSpec, payload_len: u64) -> Result<(), String> {
        let fields = self.fields;
        let expected = spec.metadata.schema.fields();
        if expected.len() == 1 {
            let whole = fields.is_empty() || fields == [Some(0..payload_len)];
            return match expected {
                _ if !whole => Err("the one field is not the whole payload".into()),
                [field] if !field.kind.allows_len(payload_len) => {
                    Err(format!("field \"{}\" has {payload_len} bytes, its type is {}", field.name, field.kind.name()))
                }
                _ => Ok(()),
            };
        }
        if fields.len() != expected.len() {
            return Err(format!("{} fields, the schema has {}", fields.len(), expected.len()));
        }
        let wrong_len = expected.iter().zip(fields).find_map(|(field, range)| {
            let len = range.as_ref().and_then(|range| range.end.checked_sub(range.start))?;
            (!field.kind.allows_len(len)).then_some((field, len))
        });
        if let Some((field, len)) = wrong_len {
            return Err(format!("field \"{}\" has {len} bytes, its type is {}", field.name, field.kind.name()));
        }
        let outside = fields.iter().flatten().find(|range| range.start > range.end || range.end > payload_len);
        outside.map_or(Ok(()), |range| Err(format!("field {range:?} is not inside its {payload_len} bytes")))
    }
}
