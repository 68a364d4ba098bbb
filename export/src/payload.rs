//! The payload of one sample to be written: in memory, or streamed.

use std::io::{self, Read, Write};
use std::ops::Range;

use grainstore_format::to_usize;
use grainstore_reader::SampleStream;

use crate::error::{Stopped, io_bug};
use crate::job::ExportJob;

/// The number of bytes that are copied at a time.
const PIECE_LEN: usize = 1 << 18;

/// The payload of a sample.
pub(crate) enum Payload<'a> {
    /// In memory, checked.
    Held(&'a [u8]),
    /// Read while it is written.
    Streamed(Streamed<'a>),
}

/// A payload that is read while it is written. Its fields can be copied in any order; copying one that begins before
/// the current position reads the sample again from its start.
pub(crate) struct Streamed<'a> {
    job: &'a ExportJob<'a>,
    ordinal: u64,
    stream: Option<SampleStream<'a>>,
    position: u64,
    piece: Vec<u8>,
}

impl<'a> Payload<'a> {
    pub(crate) fn streamed(job: &'a ExportJob<'a>, ordinal: u64) -> Self {
        Self::Streamed(Streamed { job, ordinal, stream: None, position: 0, piece: vec![0; PIECE_LEN] })
    }

    /// Writes bytes of the payload. An error that comes from the sample holds a
    /// [`ReadError`](grainstore_reader::ReadError).
    pub(crate) fn copy(&mut self, range: &Range<u64>, out: &mut dyn Write) -> io::Result<()> {
        match self {
            // The store has checked that fields are inside the payload.
            Self::Held(bytes) => {
                let field = bytes.get(to_usize(range.start)..to_usize(range.end));
                out.write_all(field.ok_or_else(|| io_bug("a field is outside its payload"))?)
            }
            Self::Streamed(streamed) => streamed.copy(range, out),
        }
    }

    /// Reads the rest of a streamed payload: its checksum is known only at its end.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Held(_) => Ok(()),
            Self::Streamed(mut streamed) => streamed.drain(),
        }
    }
}

impl Streamed<'_> {
    fn copy(&mut self, range: &Range<u64>, out: &mut dyn Write) -> io::Result<()> {
        if self.stream.is_none() || range.start < self.position {
            self.drain()?;
            self.stream = Some(self.job.reader.stream(self.ordinal).map_err(io::Error::other)?);
            self.position = 0;
        }
        self.pass(range.start - self.position, &mut io::sink())?;
        self.pass(range.end.saturating_sub(range.start), out)
    }

    fn drain(&mut self) -> io::Result<()> {
        while self.stream.is_some() && self.step(PIECE_LEN as u64, &mut io::sink())? > 0 {}
        self.stream = None;
        Ok(())
    }

    fn pass(&mut self, mut len: u64, out: &mut dyn Write) -> io::Result<()> {
        while len > 0 {
            match self.step(len, out)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                step_len => len -= step_len,
            }
        }
        Ok(())
    }

    fn step(&mut self, len_max: u64, out: &mut dyn Write) -> io::Result<u64> {
        if self.job.is_stopped() {
            return Err(io::Error::other(Stopped));
        }
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let room_len = to_usize(len_max).min(self.piece.len());
        let (room, _) = self.piece.split_at_mut(room_len);
        let len = stream.read(room)?;
        out.write_all(room.get(..len).ok_or_else(|| io_bug("a stream returned more bytes than fit"))?)?;
        self.position += len as u64;
        Ok(len as u64)
    }
}
