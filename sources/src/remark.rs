//! A message of a source: a sentence, and what the caller can do about it.

use std::fmt;

use grainstore_format::Remedy;

/// A sentence, or a part of one, about a source. It never names a flag or an argument: each front end shows the remedy
/// in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// What was found, and what was expected.
    pub text: String,
    /// What the caller can do about it.
    pub remedy: Option<Box<Remedy>>,
}

impl Remark {
    /// A sentence with what the caller can do about it.
    pub fn new(text: impl Into<String>, remedy: Remedy) -> Self {
        Self { text: text.into(), remedy: Some(Box::new(remedy)) }
    }

    /// The same remedy, and the sentence after `beginning`.
    pub fn after(self, beginning: impl fmt::Display) -> Self {
        Self { text: format!("{beginning}{}", self.text), ..self }
    }
}

impl From<String> for Remark {
    fn from(text: String) -> Self {
        Self { text, remedy: None }
    }
}

impl From<&str> for Remark {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
