//! Streams one part of a source: a separate thread reads it into a bounded queue.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use grainstore_sources::{Bad, Layout, Reach, SampleReader, Source, SourceSample};
use grainstore_writer::StreamedSample;

use super::{Entry, EntryContent, Id, LongSample, PATIENCE, check, memory_len};
use crate::{ConvertError, Events};

/// Approximate bytes of a batch of samples that is sent to the other thread.
const BATCH_LEN: u64 = 1 << 20;
/// Pieces of a long sample in flight, each of [`BATCH_LEN`] bytes at most.
const PIECES: usize = 4;

/// The consumer of a part's entries. The thread ends when it is dropped.
pub(super) struct PartStream {
    batches: Receiver<(Vec<Entry>, u64)>,
    queue: VecDeque<Entry>,
    room: Arc<Room>,
}

/// Bounds the bytes in flight between the two threads.
struct Room {
    held: Mutex<u64>,
    freed: Condvar,
    len_max: u64,
    gone: AtomicBool,
}

/// Reads the part and sends its entries.
struct Producer<'a> {
    samples: Box<dyn SampleReader + 'a>,
    part: usize,
    index: u64,
    batch: Vec<Entry>,
    batch_len: u64,
    batches: Sender<(Vec<Entry>, u64)>,
    room: Arc<Room>,
}

/// The consumer was dropped.
struct Gone;

impl PartStream {
    /// Begins to stream a part. `ahead_len` bytes are read ahead, or one sample.
    pub(super) fn open<'scope>(
        source: &'scope dyn Source,
        part: usize,
        layout: Layout,
        ahead_len: u64,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<Self, ConvertError> {
        let (sender, batches) = channel();
        let held = Mutex::default();
        let freed = Condvar::new();
        let gone = AtomicBool::new(false);
        let room = Arc::new(Room { held, freed, len_max: ahead_len, gone });
        let producing = Arc::clone(&room);
        let thread = thread::Builder::new().name(format!("part-{part}"));
        // If the consumer was dropped, nobody needs the error.
        let stream = move || drop(stream(source, part, layout, sender, producing));
        thread.spawn_scoped(scope, stream).map_err(|error| ConvertError::Threads(error.to_string()))?;
        Ok(Self { batches, queue: VecDeque::new(), room })
    }

    /// The next entry; `None` at the end of the part.
    pub(super) fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            if let Some(entry) = self.queue.pop_front() {
                return Ok(Some(entry));
            }
            match self.batches.recv_timeout(PATIENCE) {
                Ok((batch, len)) => {
                    self.room.free(len);
                    self.queue.extend(batch);
                }
                Err(RecvTimeoutError::Timeout) => check(events)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

impl Drop for PartStream {
    fn drop(&mut self) {
        self.room.gone.store(true, Relaxed);
        self.room.free(0);
    }
}

impl Room {
    /// Waits until `len` bytes fit, or nothing is in flight.
    fn reserve(&self, len: u64) -> Result<(), Gone> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |held: &mut u64| !self.gone.load(Relaxed) && *held > 0 && *held + len > self.len_max;
        *self.freed.wait_while(held, full).unwrap_or_else(PoisonError::into_inner) += len;
        if self.gone.load(Relaxed) { Err(Gone) } else { Ok(()) }
    }

    fn free(&self, len: u64) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) -= len;
        self.freed.notify_one();
    }
}

fn stream(
    source: &dyn Source,
    part: usize,
    layout: Layout,
    batches: Sender<(Vec<Entry>, u64)>,
    room: Arc<Room>,
) -> Result<(), Gone> {
    match source.open(part, 0, layout) {
        Ok(samples) => Producer { samples, part, index: 0, batch: Vec::new(), batch_len: 0, batches, room }.run(),
        Err(bad) => {
            let entry = Entry { id: Id { part, index: 0 }, content: EntryContent::Bad(bad) };
            batches.send((vec![entry], 0)).map_err(|_| Gone)
        }
    }
}

impl Producer<'_> {
    fn run(mut self) -> Result<(), Gone> {
        loop {
            match self.samples.next() {
                Ok(None) => return self.send(),
                Ok(Some(SourceSample::Whole { sample, offset })) => {
                    let len = memory_len(&sample);
                    self.push(EntryContent::Whole(sample, offset), len)?;
                }
                Ok(Some(SourceSample::Long { sample, offset })) => self.send_long(sample, offset)?,
                Ok(Some(SourceSample::LeftOut)) => self.push(EntryContent::LeftOut, size_of::<Entry>() as u64)?,
                Err(bad) => {
                    let last = bad.reach == Reach::Rest;
                    let len = bad_len(&bad);
                    self.push(EntryContent::Bad(bad), len)?;
                    if last {
                        return self.send();
                    }
                }
            }
        }
    }

    fn push(&mut self, content: EntryContent, len: u64) -> Result<(), Gone> {
        // Sends the batch first, so that a large sample is in a batch of its own.
        if self.batch_len + len > BATCH_LEN {
            self.send()?;
        }
        self.batch.push(Entry { id: Id { part: self.part, index: self.index }, content });
        self.batch_len += len;
        self.index += 1;
        Ok(())
    }

    fn send(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let len = std::mem::take(&mut self.batch_len);
        self.room.reserve(len)?;
        self.batches.send((std::mem::take(&mut self.batch), len)).map_err(|_| Gone)
    }

    /// Sends a long sample piece by piece.
    fn send_long(&mut self, sample: StreamedSample, offset: u64) -> Result<(), Gone> {
        let (pieces, taken) = sync_channel(PIECES);
        let payload = Box::new(StreamedPayload { taken, piece: Vec::new(), at: 0 });
        self.push(EntryContent::Long(LongSample::Streaming { sample, offset, payload }), 0)?;
        self.send()?;
        send_pieces(self.samples.payload(), &pieces, &self.room.gone)
    }
}

/// Sends a payload in pieces, until its end or until the part's consumer is dropped. If only the payload was dropped,
/// because the sample was skipped, the rest is still read, so that the next sample can be read.
fn send_pieces(
    payload: &mut dyn Read,
    pieces: &SyncSender<io::Result<Vec<u8>>>,
    gone: &AtomicBool,
) -> Result<(), Gone> {
    while !gone.load(Relaxed) {
        let mut piece = Vec::new();
        match payload.take(BATCH_LEN).read_to_end(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(_) => drop(pieces.send(Ok(piece))),
            Err(error) => {
                drop(pieces.send(Err(error)));
                return Ok(());
            }
        }
    }
    Err(Gone)
}

/// Approximate bytes of memory that an error takes.
fn bad_len(bad: &Bad) -> u64 {
    (size_of::<Entry>()
        + bad.why.text.len()
        + bad.path.as_os_str().len()
        + bad.location.name.as_ref().map_or(0, Vec::len)) as u64
}

/// The payload of a long sample, sent from one thread to another in pieces.
struct StreamedPayload {
    taken: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for StreamedPayload {
    /// Fails with `Interrupted` if nothing came for a while, so that the caller can check whether to stop, and read
    /// again.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            match self.taken.recv_timeout(PATIENCE) {
                Ok(piece) => {
                    self.piece = piece?;
                    self.at = 0;
                }
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::Interrupted.into()),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let len = (&self.piece[self.at..]).read(buffer)?;
        self.at += len;
        Ok(len)
    }
}
