//! Decodes Caffe's `Datum`, a protocol buffer. Bytes are returned as ranges of the value, so that they are not copied.
//!
//! ```text
//! channels = 1, height = 2, width = 3: int32; data = 4: bytes; label = 5: int32; float_data = 6: repeated float;
//! encoded = 7: bool
//! ```

use std::ops::Range;

/// A `Datum`; fields that are absent are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Datum {
    pub(super) channels: Option<i32>,
    pub(super) height: Option<i32>,
    pub(super) width: Option<i32>,
    pub(super) label: Option<i32>,
    pub(super) encoded: Option<bool>,
    /// Where `data` is in the value.
    pub(super) data: Option<Range<usize>>,
    /// The numbers of `float_data`, little-endian.
    pub(super) float_data: Option<Vec<u8>>,
}

/// A reader over a value.
struct Wire<'a> {
    value: &'a [u8],
    at: usize,
}

impl Datum {
    /// The `Datum` in `value`. An unknown field is an error: then the value is something else.
    pub(super) fn decode(value: &[u8]) -> Result<Self, String> {
        let mut datum = Self::default();
        let mut wire = Wire { value, at: 0 };
        while wire.at < value.len() {
            let at = wire.at;
            let tag = wire.varint().ok_or_else(|| ends_early(at))?;
            datum
                .take(tag, &mut wire)
                .ok_or_else(|| format!("field tag {tag} at byte {at} does not belong to a Datum"))??;
        }
        Ok(datum)
    }

    /// Whether it holds as much data as its dimensions specify, or an encoded picture.
    pub(super) fn is_plausible(&self) -> bool {
        let side = |side: Option<i32>| u64::try_from(side.unwrap_or(0)).ok();
        let sides = [self.channels, self.height, self.width].map(side);
        let elements = sides.iter().try_fold(1, |product: u64, side| product.checked_mul((*side)?));
        let data_len = self.data.as_ref().map_or(0, Range::len) as u64;
        let float_count = self.float_data.as_ref().map_or(0, Vec::len) as u64 / 4;
        let is_picture = self.encoded == Some(true) && data_len > 0;
        is_picture || elements.is_some_and(|count| count > 0 && (count == data_len || count == float_count))
    }

    /// Takes one field; `None` where the tag is unknown.
    fn take(&mut self, tag: u64, wire: &mut Wire<'_>) -> Option<Result<(), String>> {
        let at = wire.at;
        let taken = match tag {
            0x08 => wire.int32().map(|number| self.channels = Some(number)),
            0x10 => wire.int32().map(|number| self.height = Some(number)),
            0x18 => wire.int32().map(|number| self.width = Some(number)),
            0x22 => wire.run().map(|run| self.data = Some(run)),
            0x28 => wire.int32().map(|number| self.label = Some(number)),
            0x32 => wire.run().filter(|run| run.len().is_multiple_of(4)).and_then(|run| self.floats(wire, run)),
            0x35 => wire.skip(4).and_then(|run| self.floats(wire, run)),
            0x38 => wire.varint().map(|number| self.encoded = Some(number != 0)),
            _ => return None,
        };
        Some(taken.ok_or_else(|| ends_early(at)))
    }

    fn floats(&mut self, wire: &Wire<'_>, run: Range<usize>) -> Option<()> {
        self.float_data.get_or_insert_default().extend_from_slice(wire.value.get(run)?);
        Some(())
    }
}

impl Wire<'_> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.value.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The low half of a varint, as in protocol buffers.
    fn int32(&mut self) -> Option<i32> {
        Some(i32::from_le_bytes(*self.varint()?.to_le_bytes().first_chunk()?))
    }

    fn run(&mut self) -> Option<Range<usize>> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.skip(len)
    }

    fn skip(&mut self, len: usize) -> Option<Range<usize>> {
        let run = self.at..self.at.checked_add(len)?;
        self.value.get(run.clone())?;
        self.at = run.end;
        Some(run)
    }
}

fn ends_early(at: usize) -> String {
    format!("the field at byte {at} ends past the value, or has an impossible length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datum_is_read_as_protocol_buffers_write_it() {
        let value = b"\x08\x01\x10\x02\x18\x02\x22\x04abcd\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x38\x00";
        let datum = Datum::decode(value).unwrap();
        assert_eq!((datum.channels, datum.height, datum.width), (Some(1), Some(2), Some(2)));
        assert_eq!((datum.label, datum.encoded), (Some(-1), Some(false)));
        assert_eq!(&value[datum.data.clone().unwrap()], b"abcd");
        assert!(datum.is_plausible());
    }

    #[test]
    fn numbers_are_gathered_whether_they_are_packed_or_not() {
        let datum = Datum::decode(b"\x08\x03\x10\x01\x18\x01\x35aaaa\x32\x08bbbbcccc").unwrap();
        assert_eq!(datum.float_data.as_deref(), Some(&b"aaaabbbbcccc"[..]));
        assert!(datum.is_plausible());
    }

    #[test]
    fn other_values_are_not_taken_for_a_datum() {
        assert!(Datum::decode(b"\x40\x01").is_err(), "unknown field");
        assert!(Datum::decode(b"\x22\x05abcd").is_err(), "cut off");
        assert!(Datum::decode(&[0xff; 12]).is_err(), "a number that does not end");
        assert!(!Datum::decode(b"").unwrap().is_plausible());
        assert!(!Datum::decode(b"\x08\x01\x10\x02\x18\x02\x22\x03abc").unwrap().is_plausible());
    }
}
