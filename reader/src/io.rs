//! The choice between direct, buffered and mapped I/O, and its reason.

use std::fmt;
use std::str::FromStr;

use grainstore_host::FreeMemory;

use crate::engine::IoMode;

/// The caller's choice how files of samples are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IoChoice {
    /// Mapped if the files are in memory already, on a local file system; else buffered if they fit in half of the free
    /// memory or that is not known, else direct. Decided when the reader is made; what is buffered is mapped later if the
    /// files have come into memory by then. Where many single samples or batches are read from a device of this machine,
    /// a thread brings the files into memory: it takes no more time than callers have waited for their reads.
    /// A file that refuses direct reads is read through the page cache.
    #[default]
    Auto,
    /// Past the page cache.
    Direct,
    /// Through the page cache.
    Buffered,
    /// Straight from the page cache: segments are mapped into memory, which many processes share. The fastest choice if
    /// the dataset is in memory, a slow one if it is not: small samples are read one by one, when they are touched.
    /// A segment that is truncated while it is mapped, or a device that fails, gives an error, as with the other choices.
    /// A segment that is written to may yield bytes that fail no checksum.
    ///
    /// Requested, it maps the index, too, which is checked once when `Reader::open` opens the dataset. **An index that is
    /// truncated while it is mapped ends the process** by the signal `SIGBUS`. `Auto` never maps it.
    Mapped,
}

/// How files of samples are read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// The mode.
    pub mode: IoMode,
    /// The reason: a sentence without a capital and a full stop.
    pub why: String,
}

/// An unknown name of a choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("io is {found:?}, expected auto, direct, buffered or mapped")]
pub struct ParseIoError {
    found: String,
}

impl Io {
    /// What `choice` means for files of `data_len` bytes.
    pub(crate) fn decide(
        choice: IoChoice,
        data_len: u64,
        memory: impl FnOnce() -> FreeMemory,
        is_resident: impl FnOnce() -> bool,
    ) -> Self {
        match choice {
            IoChoice::Direct => Self { mode: IoMode::Direct, why: "it was requested".into() },
            IoChoice::Buffered => Self { mode: IoMode::Buffered, why: "it was requested".into() },
            IoChoice::Mapped => Self { mode: IoMode::Mapped, why: "it was requested".into() },
            IoChoice::Auto if is_resident() => {
                Self { mode: IoMode::Mapped, why: "the segments are in memory, on a local file system".into() }
            }
            IoChoice::Auto => Self::fitting(data_len, memory()),
        }
    }

    fn fitting(data_len: u64, memory: FreeMemory) -> Self {
        let Some(usable) = memory.usable() else {
            return Self { mode: IoMode::Buffered, why: "the amount of free memory is not known".into() };
        };
        // Half, so that the samples do not push everything else out of memory.
        let (mode, verb) =
            if data_len <= usable / 2 { (IoMode::Buffered, "fit") } else { (IoMode::Direct, "do not fit") };
        Self { mode, why: format!("{data_len} bytes of segments {verb} in half of {usable} bytes of free memory") }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mode.name(), self.why)
    }
}

impl fmt::Display for IoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Mapped => "mapped",
        })
    }
}

impl FromStr for IoChoice {
    type Err = ParseIoError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "direct" => Ok(Self::Direct),
            "buffered" => Ok(Self::Buffered),
            "mapped" => Ok(Self::Mapped),
            _ => Err(ParseIoError { found: name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(data_len: u64, available: u64, limit: Option<u64>) -> Io {
        Io::decide(IoChoice::Auto, data_len, || FreeMemory { available: Some(available), limit }, || false)
    }

    #[test]
    fn auto_maps_what_is_in_memory() {
        let io = Io::decide(IoChoice::Auto, 1 << 60, FreeMemory::default, || true);
        assert_eq!(io.to_string(), "mapped: the segments are in memory, on a local file system");
        for choice in [IoChoice::Direct, IoChoice::Buffered] {
            assert_ne!(Io::decide(choice, 0, FreeMemory::default, || true).mode, IoMode::Mapped);
        }
    }

    #[test]
    fn auto_is_buffered_up_to_half_of_free_memory() {
        assert_eq!(
            auto(50, 100, None).to_string(),
            "buffered: 50 bytes of segments fit in half of 100 bytes of free memory"
        );
        assert_eq!(
            auto(51, 100, None).to_string(),
            "direct: 51 bytes of segments do not fit in half of 100 bytes of free memory"
        );
    }

    #[test]
    fn auto_respects_the_limit_of_the_control_group() {
        assert_eq!(auto(50, 1000, Some(99)).mode, IoMode::Direct);
        assert_eq!(auto(50, 1000, Some(100)).mode, IoMode::Buffered);
        assert_eq!(Io::decide(IoChoice::Auto, 1 << 60, FreeMemory::default, || false).mode, IoMode::Buffered);
    }

    #[test]
    fn a_choice_is_kept_and_every_name_is_read_back() {
        assert_eq!(Io::decide(IoChoice::Direct, 0, FreeMemory::default, || false).mode, IoMode::Direct);
        assert_eq!(
            Io::decide(IoChoice::Mapped, 0, FreeMemory::default, || false).to_string(),
            "mapped: it was requested"
        );
        for name in ["auto", "direct", "buffered", "mapped"] {
            assert_eq!(name.parse::<IoChoice>().unwrap().to_string(), name);
        }
        let error = "mmap".parse::<IoChoice>().unwrap_err();
        assert_eq!(error.to_string(), "io is \"mmap\", expected auto, direct, buffered or mapped");
    }
}
