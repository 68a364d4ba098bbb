//! Reads the first bytes of a stream, then replays them.

use std::io::{self, Cursor, Read};

/// Records what is read of a stream, up to a bound, where the stream seems to end.
pub(super) struct Recorder {
    stream: Box<dyn Read + Send>,
    kept: Vec<u8>,
    room: usize,
    /// The error with which the stream ended: the stream need not return it again.
    error: Option<io::Error>,
}

/// The error that a stream ended with.
struct Failing(Option<io::Error>);

impl Recorder {
    pub(super) fn new(stream: Box<dyn Read + Send>, room: usize) -> Self {
        Self { stream, kept: Vec::new(), room, error: None }
    }

    /// The whole stream, from its start.
    pub(super) fn replay(self) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(self.kept).chain(Failing(self.error)).chain(self.stream))
    }
}

impl Read for Recorder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = &self.error {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        let len = buffer.len().min(self.room);
        match self.stream.read(&mut buffer[..len]) {
            Ok(found) => {
                self.room -= found;
                self.kept.extend_from_slice(&buffer[..found]);
                Ok(found)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let copy = io::Error::new(error.kind(), error.to_string());
                self.error = Some(error);
                Err(copy)
            }
        }
    }
}

impl Read for Failing {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::InvalidData, "broken"))
        }
    }

    #[test]
    fn recorded_bytes_are_replayed_and_then_what_follows() {
        let mut recorder = Recorder::new(Box::new(&b"abcdefgh"[..]), 5);
        let mut looked = Vec::new();
        recorder.read_to_end(&mut looked).unwrap();
        assert_eq!(looked, b"abcde");
        let mut all = Vec::new();
        recorder.replay().read_to_end(&mut all).unwrap();
        assert_eq!(all, b"abcdefgh");
    }

    #[test]
    fn an_error_is_replayed_too() {
        let mut recorder = Recorder::new(Box::new((&b"abc"[..]).chain(Broken)), 100);
        let mut looked = Vec::new();
        assert!(recorder.read_to_end(&mut looked).is_err());
        let mut all = Vec::new();
        assert_eq!(recorder.replay().read_to_end(&mut all).unwrap_err().to_string(), "broken");
        assert_eq!((looked, all), (b"abc".to_vec(), b"abc".to_vec()));
    }
}
