//! Standard input, read by a separate thread, so that waiting for input can be stopped.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The capacity of a pipe.
const BLOCK_LEN: usize = 64 << 10;
/// Blocks that wait to be taken.
const BLOCK_COUNT: usize = 16;
/// How often the caller is asked whether to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// A stream that fails when the caller wants to stop.
pub(crate) struct Stoppable {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
    stopped: fn() -> bool,
}

impl Stoppable {
    /// Begins to read `stream`. The reading thread ends with the stream, or when this value was dropped.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub(crate) fn new(stream: impl Read + Send + 'static, stopped: fn() -> bool) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(BLOCK_COUNT);
        thread::Builder::new().name("stdin".into()).spawn(move || pass_on(stream, &sender))?;
        Ok(Self { blocks, block: Vec::new(), at: 0, stopped })
    }

    /// The next block; empty at the end.
    fn wait(&self) -> io::Result<Vec<u8>> {
        loop {
            if (self.stopped)() {
                return Err(io::Error::other("interrupted"));
            }
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(block) => return block,
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Read for Stoppable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            self.block = self.wait()?;
            self.at = 0;
        }
        let len = (&self.block[self.at..]).read(buffer)?;
        self.at += len;
        Ok(len)
    }
}

fn pass_on(mut stream: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut block = vec![0; BLOCK_LEN];
        let read = match stream.read(&mut block) {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(len) => {
                block.truncate(len);
                Ok(block)
            }
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if sender.send(read).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_returned_and_then_the_end() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut stream = Stoppable::new(io::Cursor::new(bytes.clone()), || false).unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_silent_stream_is_not_waited_for_once_the_caller_wants_to_stop() {
        let (reader, _writer) = io::pipe().unwrap();
        let mut stream = Stoppable::new(reader, || true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().to_string(), "interrupted");
    }
}
