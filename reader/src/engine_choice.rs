//! Which engine reads, by the name that a user gives it.

use std::fmt;
use std::str::FromStr;

/// The caller's choice of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineChoice {
    /// io_uring, or threads where the system refuses it.
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Threads that call `pread`.
    Pread,
}

/// An unknown name of an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("engine is {found:?}, expected auto, uring or pread")]
pub struct ParseEngineError {
    found: String,
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Pread => "pread",
        })
    }
}

impl FromStr for EngineChoice {
    type Err = ParseEngineError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "uring" | "io_uring" => Ok(Self::Uring),
            "pread" => Ok(Self::Pread),
            _ => Err(ParseEngineError { found: name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_an_engine_is_read_back() {
        for name in ["auto", "uring", "pread"] {
            assert_eq!(name.parse::<EngineChoice>().unwrap().to_string(), name);
        }
        assert_eq!("io_uring".parse::<EngineChoice>().unwrap(), EngineChoice::Uring, "its name in the statistics");
        let error = "aio".parse::<EngineChoice>().unwrap_err();
        assert_eq!(error.to_string(), "engine is \"aio\", expected auto, uring or pread");
    }
}
