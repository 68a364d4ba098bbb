//! The payload of a sample: its fields one after the other, or the byte range of the file that holds them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use grainstore_format::to_usize;

use crate::SourceError;

/// A part of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PayloadPiece {
    /// Bytes of the record.
    At(Range<u64>),
    /// Bytes that were converted from it.
    Made(Bytes),
}

impl PayloadPiece {
    fn len(&self) -> u64 {
        match self {
            Self::At(range) => range.end - range.start,
            Self::Made(bytes) => bytes.len() as u64,
        }
    }
}

/// What a payload consists of, before its bytes are copied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PayloadLayout {
    pub(super) pieces: Vec<PayloadPiece>,
    /// Where the fields are in the payload; empty where there is one, which is all of it.
    pub(super) fields: Vec<Option<Range<u64>>>,
    pub(super) len: u64,
    /// Where the payload begins in the record, if it is a byte range of it.
    pub(super) start: u64,
}

impl PayloadLayout {
    /// The fields back to back.
    pub(super) fn packed(fields: Vec<Option<PayloadPiece>>) -> Self {
        let mut len = 0;
        let mut range = |piece: &PayloadPiece| {
            let start = len;
            len += piece.len();
            start..len
        };
        let ranges: Vec<_> = fields.iter().map(|piece| piece.as_ref().map(&mut range)).collect();
        let pieces = fields.into_iter().flatten().collect();
        Self { pieces, fields: unless_one(ranges), len, start: 0 }
    }

    /// The smallest byte range of the record that holds all fields; `None` where a field had to be converted.
    pub(super) fn in_place(fields: &[Option<PayloadPiece>]) -> Option<Self> {
        let mut ranges = Vec::new();
        for piece in fields {
            ranges.push(match piece {
                Some(PayloadPiece::At(range)) => Some(range.clone()),
                Some(PayloadPiece::Made(_)) => return None,
                None => None,
            });
        }
        // Without any field, the payload is empty.
        let start = ranges.iter().flatten().map(|range| range.start).min().unwrap_or(0);
        let end = ranges.iter().flatten().map(|range| range.end).max().unwrap_or(start);
        let relative = |range: Range<u64>| range.start - start..range.end - start;
        let fields = unless_one(ranges.into_iter().map(|range| range.map(relative)).collect());
        Some(Self { pieces: vec![PayloadPiece::At(start..end)], fields, len: end - start, start })
    }

    /// Whether all pieces are inside a record of this length.
    pub(super) fn is_inside(&self, record_len: u64) -> bool {
        self.pieces.iter().all(|piece| match piece {
            PayloadPiece::At(range) => range.start <= range.end && range.end <= record_len,
            PayloadPiece::Made(_) => true,
        })
    }

    /// The payload of a record that is held. The pieces must be [inside](Self::is_inside) it.
    pub(super) fn gather(&self, record: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(to_usize(self.len));
        for piece in &self.pieces {
            payload.extend_from_slice(match piece {
                PayloadPiece::At(range) => &record[to_usize(range.start)..to_usize(range.end)],
                PayloadPiece::Made(bytes) => bytes,
            });
        }
        payload
    }

    /// The payload of a record of a file, where it begins at `offset`.
    pub(super) fn stream(&self, file: Arc<File>, offset: u64) -> PayloadReader {
        PayloadReader { file: Some((file, offset)), left: self.pieces.iter().cloned().collect() }
    }

    /// The payload of a record that is held, piece by piece, for fields that together are long. The pieces must be
    /// [inside](Self::is_inside) it.
    pub(super) fn stream_held(&self, record: Vec<u8>) -> PayloadReader {
        let record = Bytes::from(record);
        let held = |piece: &PayloadPiece| match piece {
            PayloadPiece::At(range) => PayloadPiece::Made(record.slice(to_usize(range.start)..to_usize(range.end))),
            PayloadPiece::Made(bytes) => PayloadPiece::Made(bytes.clone()),
        };
        PayloadReader { file: None, left: self.pieces.iter().map(held).collect() }
    }
}

/// One field needs no range. spec.md: FLD-1.
fn unless_one(fields: Vec<Option<Range<u64>>>) -> Vec<Option<Range<u64>>> {
    if fields.len() == 1 { Vec::new() } else { fields }
}

/// A payload that is read piece by piece.
#[derive(Debug, Default)]
pub(super) struct PayloadReader {
    file: Option<(Arc<File>, u64)>,
    left: VecDeque<PayloadPiece>,
}

impl Read for PayloadReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.left.front().is_some_and(|piece| piece.len() == 0) {
            self.left.pop_front();
        }
        match (self.left.front_mut(), &self.file) {
            (Some(PayloadPiece::Made(bytes)), _) => {
                let piece = bytes.split_to(into.len().min(bytes.len()));
                into[..piece.len()].copy_from_slice(&piece);
                Ok(piece.len())
            }
            (Some(PayloadPiece::At(range)), Some((file, offset))) => {
                let want = into.len().min(to_usize(range.end - range.start));
                let found = file.read_at(&mut into[..want], offset + range.start)?;
                if found == 0 && want > 0 {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the file became shorter while it was read",
                    ));
                }
                range.start += found as u64;
                Ok(found)
            }
            (Some(PayloadPiece::At(_)), None) => {
                Err(io::Error::other(SourceError::bug("a payload is in a file that was not opened")))
            }
            (None, _) => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Option<PayloadPiece>> {
        vec![Some(PayloadPiece::At(6..9)), None, Some(PayloadPiece::At(2..4)), Some(PayloadPiece::At(4..4))]
    }

    #[test]
    fn packed_fields_come_in_the_order_of_the_schema() {
        let arranged = PayloadLayout::packed(fields());
        assert_eq!(arranged.gather(b"0123456789"), b"67823");
        assert_eq!(arranged.fields, [Some(0..3), None, Some(3..5), Some(5..5)]);
    }

    #[test]
    fn in_place_is_the_smallest_range_that_holds_them() {
        let arranged = PayloadLayout::in_place(&fields()).unwrap();
        assert_eq!(arranged.gather(b"0123456789"), b"2345678");
        assert_eq!((arranged.start, arranged.len), (2, 7));
        assert_eq!(arranged.fields, [Some(4..7), None, Some(0..2), Some(2..2)]);
        assert_eq!(PayloadLayout::in_place(&[Some(PayloadPiece::Made(Bytes::new()))]), None);
    }

    #[test]
    fn streaming_and_gathering_return_the_same_bytes() {
        let mut fields = fields();
        fields.push(Some(PayloadPiece::Made(Bytes::from_static(b"made"))));
        let arranged = || PayloadLayout::packed(fields.clone());
        let mut read = Vec::new();
        arranged().stream_held(b"0123456789".to_vec()).read_to_end(&mut read).unwrap();
        assert_eq!(read, arranged().gather(b"0123456789"));
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"..0123456789").unwrap();
        read.clear();
        arranged().stream(Arc::new(file), 2).read_to_end(&mut read).unwrap();
        assert_eq!(read, arranged().gather(b"0123456789"));
    }
}
