//! Steady write-back of a long file.
//!
//! The kernel keeps written bytes in memory until a sync, so one sync at the end of a long file waits for the device
//! while nothing else happens. Here a thread syncs what was written while more is written.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes written between two syncs. Below this, a file has no thread.
const STEP_LEN: u64 = 32 << 20;

/// A file that is written from start to end and then synced.
#[derive(Debug)]
pub struct SteadyFile {
    file: File,
    /// Bytes written since the last request for a sync.
    unsynced_len: u64,
    syncing: Option<Syncing>,
}

/// A thread that syncs on request, until it fails once.
#[derive(Debug)]
struct Syncing {
    requests: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl SteadyFile {
    /// Takes over `file`. Nobody may write to its other handles.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file, unsynced_len: 0, syncing: None }
    }

    /// The file itself, for everything except writing.
    #[must_use]
    pub fn get_ref(&self) -> &File {
        &self.file
    }

    /// Cuts the file at `len` bytes; the next write continues there.
    ///
    /// # Errors
    /// What the system reports.
    pub fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(len)).map(|_| ())
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// What the system reports, for an earlier sync too; then nothing is known of the bytes.
    pub fn sync(&mut self) -> io::Result<()> {
        self.end_syncing()?;
        self.file.sync_all()
    }

    /// Counts bytes that were written.
    fn count(&mut self, written: usize) -> io::Result<usize> {
        self.unsynced_len += written as u64;
        if self.unsynced_len >= STEP_LEN {
            self.begin_sync()?;
        }
        Ok(written)
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        self.unsynced_len = 0;
        if self.syncing.is_none() {
            self.syncing = Syncing::of(&self.file);
        }
        match self.syncing.as_ref().map(|syncing| syncing.requests.try_send(())) {
            Some(Err(TrySendError::Disconnected(()))) => self.end_syncing(),
            // A thread that is behind syncs these bytes with the next request.
            _ => Ok(()),
        }
    }

    /// The kernel reports a failed write once, and it may have reported it to the thread.
    fn end_syncing(&mut self) -> io::Result<()> {
        let Some(Syncing { requests, thread }) = self.syncing.take() else { return Ok(()) };
        drop(requests);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that syncs it panicked")))
    }
}

impl Write for SteadyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.count(written)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.file.write_vectored(slices)?;
        self.count(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SteadyFile {
    fn drop(&mut self) {
        // A caller that did not call `sync` ignores the result, but the thread has to end with the file.
        let _ = self.end_syncing();
    }
}

impl Syncing {
    /// `None` if no thread can be started: then the sync at the end writes everything.
    fn of(file: &File) -> Option<Self> {
        let file = file.try_clone().ok()?;
        let (requests, received) = sync_channel(1);
        let sync = move || received.into_iter().try_for_each(|()| file.sync_data());
        let thread = thread::Builder::new().name("grain-sync".into()).spawn(sync).ok()?;
        Some(Self { requests, thread })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[test]
    fn many_written_steps_and_a_cut_are_stored() {
        let mut file = SteadyFile::new(tempfile::tempfile().unwrap());
        let step = vec![7; 5 << 20];
        for _ in 0..30 {
            file.write_all(&step).unwrap();
        }
        file.truncate(3).unwrap();
        file.write_all(b"end").unwrap();
        file.sync().unwrap();
        let mut found = Vec::new();
        let mut file = file.get_ref();
        file.rewind().unwrap();
        file.read_to_end(&mut found).unwrap();
        assert_eq!(found, b"\x07\x07\x07end");
    }

    #[test]
    fn a_sync_that_fails_is_reported_by_the_next_step_or_the_end() {
        // A pipe can be written to, but not synced.
        let (mut reader, writer) = io::pipe().unwrap();
        let drained = thread::spawn(move || io::copy(&mut reader, &mut io::sink()).unwrap());
        let mut file = SteadyFile::new(File::from(std::os::fd::OwnedFd::from(writer)));
        let step = vec![7; 1 << 20];
        for _ in 0..32 {
            file.write_all(&step).unwrap();
        }
        file.end_syncing().unwrap_err();
        drop(file);
        assert_eq!(drained.join().unwrap(), 32 << 20);
    }
}
