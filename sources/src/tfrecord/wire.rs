//! Finds the values in a serialised `tf.train.Example`. Only numbers are copied.
//!
//! ```text
//! Example       1: Features
//! Features      1: entry, any number          a SequenceExample has a 2 beside its 1
//! entry         1: name   2: Feature
//! Feature       one of 1: BytesList   2: FloatList   3: Int64List
//! list          1: value, any number          float and int64: also many values in one run ("packed")
//! ```
//!
//! All ranges are relative to the record. What no writer of Examples does, such as two lists in one feature, is
//! refused; `protobuf` would merge them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grainstore_format::to_usize;
use prost::encoding::{WireType, decode_varint};

/// Longer names are refused: 64 KiB.
const NAME_LEN_MAX: u64 = 64 << 10;
/// Numbers are read in pieces of this length.
const PIECE_LEN: u64 = 64 << 10;
/// The longest varint.
const VARINT_LEN_MAX: u64 = 10;

/// Why a record is not understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("it is not a tf.train.Example: byte {at} of it: {what}")]
    Malformed { at: u64, what: &'static str },
    #[error("it is not a tf.train.Example, or one without features")]
    Empty,
    #[error("it is a tf.train.SequenceExample, which is not taken apart")]
    Sequence,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The bytes of a record, wherever they are.
pub(super) trait RecordBytes {
    fn len(&self) -> u64;

    /// The bytes at `range`, which is short and inside the record.
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], WireError>;
}

impl RecordBytes for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], WireError> {
        self.get(to_usize(range.start)..to_usize(range.end))
            .ok_or(malformed(range.start, "a value ends past the record"))
    }
}

/// A record too long to be held, read by position.
pub(super) struct InFile {
    file: Arc<File>,
    offset: u64,
    len: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl InFile {
    pub(super) fn new(file: Arc<File>, offset: u64, len: u64) -> Self {
        Self { file, offset, len, window: Vec::new(), window_at: 0 }
    }
}

impl RecordBytes for InFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], WireError> {
        if range.start > range.end || range.end > self.len {
            return Err(malformed(range.start, "a value ends past the record"));
        }
        let window_end = self.window_at + self.window.len() as u64;
        if range.start < self.window_at || range.end > window_end {
            let len = (range.end - range.start).max(4096).min(self.len - range.start);
            self.window.resize(to_usize(len), 0);
            self.window_at = range.start;
            self.file.read_exact_at(&mut self.window, self.offset + range.start)?;
        }
        let at = |place: u64| to_usize(place - self.window_at);
        Ok(&self.window[at(range.start)..at(range.end)])
    }
}

/// The type of a feature's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bytes,
    Float,
    Int64,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Float => "float",
            Self::Int64 => "int64",
        }
    }
}

/// The list of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) kind: Kind,
    range: Range<u64>,
}

/// The values of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListValues {
    pub(super) count: u64,
    /// Number of values of bytes, or of runs of packed numbers.
    pub(super) run_count: u64,
    /// The last of them.
    pub(super) last: Range<u64>,
}

/// Calls `visit` with the name and the range of every feature. Of two with the same name the last one counts.
pub(super) fn for_each_feature(
    record: &mut dyn RecordBytes,
    visit: &mut dyn FnMut(&str, Range<u64>),
) -> Result<(), WireError> {
    let mut example = ProtoFields::of(0..record.len());
    let mut is_empty = true;
    while let Some(item) = example.next(record)? {
        match item.number {
            1 => is_empty &= !for_each_entry(record, item.message()?, visit)?,
            2 => return Err(WireError::Sequence),
            _ => {}
        }
    }
    if is_empty { Err(WireError::Empty) } else { Ok(()) }
}

/// Returns whether there are any.
fn for_each_entry(
    record: &mut dyn RecordBytes,
    features: Range<u64>,
    visit: &mut dyn FnMut(&str, Range<u64>),
) -> Result<bool, WireError> {
    let mut features = ProtoFields::of(features);
    let mut found = false;
    while let Some(item) = features.next(record)? {
        if item.number != 1 {
            continue;
        }
        let (name, feature) = entry(record, item.message()?)?;
        if name.end - name.start > NAME_LEN_MAX {
            return Err(malformed(name.start, "a feature's name is longer than 65536 bytes"));
        }
        let at = name.start;
        let name =
            std::str::from_utf8(record.bytes(name)?).map_err(|_| malformed(at, "a feature's name is not UTF-8"))?;
        visit(name, feature);
        found = true;
    }
    Ok(found)
}

fn entry(record: &mut dyn RecordBytes, entry: Range<u64>) -> Result<(Range<u64>, Range<u64>), WireError> {
    let nothing = entry.start..entry.start;
    let mut name = None;
    let mut feature = None;
    let mut items = ProtoFields::of(entry);
    while let Some(item) = items.next(record)? {
        let part = match item.number {
            1 => &mut name,
            2 => &mut feature,
            _ => continue,
        };
        if part.replace(item.message()?).is_some() {
            return Err(malformed(item.at, "an entry has two names or two features"));
        }
    }
    Ok((name.unwrap_or(nothing.clone()), feature.unwrap_or(nothing)))
}

/// The list of a feature; `None` where it has none.
pub(super) fn list(record: &mut dyn RecordBytes, feature: Range<u64>) -> Result<Option<List>, WireError> {
    let mut found = None;
    let mut items = ProtoFields::of(feature);
    while let Some(item) = items.next(record)? {
        let kind = match item.number {
            1 => Kind::Bytes,
            2 => Kind::Float,
            3 => Kind::Int64,
            _ => continue,
        };
        if found.replace(List { kind, range: item.message()? }).is_some() {
            return Err(malformed(item.at, "a feature has two lists"));
        }
    }
    Ok(found)
}

/// How many values a list has, and where.
pub(super) fn values(record: &mut dyn RecordBytes, list: &List) -> Result<ListValues, WireError> {
    let nowhere = list.range.start..list.range.start;
    let mut values = ListValues { count: 0, run_count: 0, last: nowhere };
    for_each_run(record, list, &mut |record, run| {
        values.count += match list.kind {
            Kind::Bytes => 1,
            Kind::Float => (run.end - run.start) / 4,
            Kind::Int64 => varint_count(record, run.clone())?,
        };
        values.run_count += 1;
        values.last = run;
        Ok(())
    })?;
    Ok(values)
}

/// Calls `each` for every number, as its little-endian bytes.
pub(super) fn for_each_number(
    record: &mut dyn RecordBytes,
    list: &List,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), WireError> {
    for_each_run(record, list, &mut |record, run| match list.kind {
        Kind::Bytes => Ok(()),
        Kind::Float => for_each_piece(record, run, &mut |piece| each(piece)),
        Kind::Int64 => for_each_varint(record, run, each),
    })
}

type VisitRange<'a> = dyn FnMut(&mut dyn RecordBytes, Range<u64>) -> Result<(), WireError> + 'a;

fn for_each_run(record: &mut dyn RecordBytes, list: &List, visit: &mut VisitRange<'_>) -> Result<(), WireError> {
    let mut items = ProtoFields::of(list.range.clone());
    while let Some(item) = items.next(record)? {
        if item.number != 1 {
            continue;
        }
        let is_run = match (list.kind, item.wire) {
            (Kind::Bytes, WireType::LengthDelimited) | (Kind::Float, WireType::ThirtyTwoBit) => true,
            (Kind::Float, WireType::LengthDelimited) => (item.value.end - item.value.start).is_multiple_of(4),
            (Kind::Int64, WireType::LengthDelimited | WireType::Varint) => true,
            _ => false,
        };
        if !is_run {
            return Err(malformed(item.at, "a value is not of its list's type"));
        }
        visit(record, item.value)?;
    }
    Ok(())
}

fn for_each_piece(record: &mut dyn RecordBytes, run: Range<u64>, each: &mut dyn FnMut(&[u8])) -> Result<(), WireError> {
    let mut at = run.start;
    while at < run.end {
        let end = run.end.min(at + PIECE_LEN);
        each(record.bytes(at..end)?);
        at = end;
    }
    Ok(())
}

/// A varint ends with the first byte whose top bit is not set.
fn varint_count(record: &mut dyn RecordBytes, run: Range<u64>) -> Result<u64, WireError> {
    let mut count = 0;
    for_each_piece(record, run, &mut |piece| count += piece.iter().filter(|byte| **byte < 0x80).count() as u64)?;
    Ok(count)
}

fn for_each_varint(
    record: &mut dyn RecordBytes,
    run: Range<u64>,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), WireError> {
    let mut at = run.start;
    while at < run.end {
        let mut piece = record.bytes(at..run.end.min(at + PIECE_LEN))?;
        let is_last = at + piece.len() as u64 == run.end;
        // A varint that continues after the piece is read with the next piece.
        while !piece.is_empty() && (is_last || piece.len() as u64 >= VARINT_LEN_MAX) {
            let before = piece.len();
            let number = decode_varint(&mut piece).map_err(|_| malformed(at, "a number is cut or too long"))?;
            at += (before - piece.len()) as u64;
            each(&number.to_le_bytes());
        }
    }
    Ok(())
}

/// The items of a message, one after the other.
struct ProtoFields {
    at: u64,
    end: u64,
}

/// A numbered item of a message.
struct ProtoField {
    at: u64,
    number: u64,
    wire: WireType,
    value: Range<u64>,
}

impl ProtoFields {
    fn of(message: Range<u64>) -> Self {
        Self { at: message.start, end: message.end }
    }

    fn next(&mut self, record: &mut dyn RecordBytes) -> Result<Option<ProtoField>, WireError> {
        let at = self.at;
        if at >= self.end {
            return Ok(None);
        }
        let key = self.varint(record)?;
        let wire = WireType::try_from(key & 7).map_err(|_| malformed(at, "an unknown kind of item"))?;
        let number = key >> 3;
        if number == 0 || key > u64::from(u32::MAX) {
            return Err(malformed(at, "an item has no legal number"));
        }
        let value = self.value(record, at, wire)?;
        self.at = value.end;
        Ok(Some(ProtoField { at, number, wire, value }))
    }

    /// Where the value of an item is; the item's number was read before.
    fn value(&mut self, record: &mut dyn RecordBytes, at: u64, wire: WireType) -> Result<Range<u64>, WireError> {
        let start = self.at;
        let len = match wire {
            WireType::Varint => {
                self.varint(record)?;
                return Ok(start..self.at);
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::LengthDelimited => self.varint(record)?,
            WireType::StartGroup | WireType::EndGroup => return Err(malformed(at, "a group")),
        };
        let end = self.at.checked_add(len).filter(|end| *end <= self.end);
        end.map(|end| self.at..end).ok_or(malformed(at, "an item ends past the end of its message"))
    }

    fn varint(&mut self, record: &mut dyn RecordBytes) -> Result<u64, WireError> {
        let at = self.at;
        let mut bytes = record.bytes(at..self.end.min(at.saturating_add(VARINT_LEN_MAX)))?;
        let before = bytes.len();
        let number = decode_varint(&mut bytes).map_err(|_| malformed(at, "a number is cut or too long"))?;
        self.at += (before - bytes.len()) as u64;
        Ok(number)
    }
}

impl ProtoField {
    /// The range of a value that has a length.
    fn message(&self) -> Result<Range<u64>, WireError> {
        let is_message = self.wire == WireType::LengthDelimited;
        is_message.then(|| self.value.clone()).ok_or(malformed(self.at, "an item of another type than an Example has"))
    }
}

fn malformed(at: u64, what: &'static str) -> WireError {
    WireError::Malformed { at, what }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use prost::Message;

    use super::super::example::{Example, Feature, Kind as Model};
    use super::*;

    type FoundFeatures = BTreeMap<String, (Kind, Vec<Vec<u8>>)>;

    /// Every feature that has a list, with its values.
    fn found(mut record: &[u8]) -> Result<FoundFeatures, WireError> {
        let mut features = BTreeMap::new();
        let mut found = FoundFeatures::new();
        for_each_feature(&mut record, &mut |name, feature| {
            features.insert(name.to_owned(), feature);
        })?;
        for (name, feature) in features {
            let Some(list) = list(&mut record, feature)? else { continue };
            let mut all = Vec::new();
            if list.kind == Kind::Bytes {
                for_each_run(&mut record, &list, &mut |record, run| {
                    all.push(record.bytes(run)?.to_vec());
                    Ok(())
                })?;
            } else {
                let width = if list.kind == Kind::Float { 4 } else { 8 };
                let mut add = |bytes: &[u8]| all.extend(bytes.chunks(width).map(<[u8]>::to_vec));
                for_each_number(&mut record, &list, &mut add)?;
            }
            assert_eq!(values(&mut record, &list)?.count, all.len() as u64);
            found.insert(name, (list.kind, all));
        }
        Ok(found)
    }

    /// The same, as `prost` understands it.
    fn expected(record: &[u8]) -> Option<FoundFeatures> {
        let features = Example::decode(record).ok()?.features.unwrap_or_default().feature;
        let values = |feature: Feature| {
            Some(match feature.kind? {
                Model::BytesList(list) => (Kind::Bytes, list.value.iter().map(|value| value.to_vec()).collect()),
                Model::FloatList(list) => (Kind::Float, list.value.iter().map(|v| v.to_le_bytes().to_vec()).collect()),
                Model::Int64List(list) => (Kind::Int64, list.value.iter().map(|v| v.to_le_bytes().to_vec()).collect()),
            })
        };
        Some(features.into_iter().filter_map(|(name, feature)| Some((name, values(feature)?))).collect())
    }

    fn feature() -> impl Strategy<Value = Feature> {
        let bytes = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20).prop_map(Into::into), 0..4);
        let ints = prop_oneof![any::<i64>(), -2..300_i64];
        prop_oneof![
            1 => Just(Feature::default()),
            3 => bytes.prop_map(Feature::bytes),
            3 => prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..6).prop_map(Feature::float),
            3 => prop::collection::vec(ints, 0..6).prop_map(Feature::int64),
        ]
    }

    proptest! {
        #[test]
        fn finds_what_prost_finds(
            features in prop::collection::btree_map("[a-zé/]{0,9}", feature(), 1..6),
            flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 0..3),
        ) {
            let mut record = Example::of(features).encode_to_vec();
            prop_assert_eq!(found(&record).unwrap(), expected(&record).unwrap());
            for (byte, bit) in flips {
                let len = record.len();
                record[byte.index(len)] ^= 1 << bit;
            }
            // Each refuses things that the other one takes; what both take is the same.
            if let (Ok(found), Some(expected)) = (found(&record), expected(&record)) {
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn many_numbers_are_read_across_pieces() {
        // Of every length that a number can have, so that pieces end in all of their bytes.
        let numbers = (0..60_000_u32).map(|i| (u64::MAX >> (i % 64)).cast_signed()).collect();
        let record = Example::of([("n".to_owned(), Feature::int64(numbers))]).encode_to_vec();
        assert_eq!(found(&record).unwrap(), expected(&record).unwrap());
    }

    #[test]
    fn numbers_that_are_not_packed_are_read_too() {
        let list = [&b"\x0a\x08\0\0\x80\x3f\0\0\0\x40"[..], b"\x0d\0\0\x40\x40"].concat();
        let feature = [&[0x12, 15][..], &list].concat();
        let entry = [&b"\x0a\x01f\x12\x11"[..], &feature].concat();
        let features = [&[0x0a, 22][..], &entry].concat();
        let record = [&[0x0a, 24][..], &features].concat();
        let found = found(&record).unwrap();
        assert_eq!(found["f"].1.len(), 3);
        assert_eq!(Some(found), expected(&record));
    }

    #[test]
    fn a_sequence_example_is_recognised_by_its_second_field() {
        assert!(matches!(found(b"\x0a\0\x12\0"), Err(WireError::Sequence)));
    }
}
