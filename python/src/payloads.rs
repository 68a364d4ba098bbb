//! The Python type of payloads: the argument `payload` of `open`.

use std::str::FromStr;

/// The Python type of payloads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payloads {
    Bytes,
    MemoryView,
    Numpy,
}

impl FromStr for Payloads {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "bytes" => Ok(Self::Bytes),
            "memoryview" => Ok(Self::MemoryView),
            "numpy" => Ok(Self::Numpy),
            _ => Err(format!("payload is {name:?}, expected bytes, memoryview or numpy")),
        }
    }
}

impl Payloads {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::MemoryView => "memoryview",
            Self::Numpy => "numpy",
        }
    }
}
