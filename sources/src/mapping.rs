//! `--map key=image/filename,image=image/encoded`: which of the source's names become which of the dataset's.

use std::fmt;
use std::str::FromStr;

/// Names in the dataset and the corresponding names in the source, in the given order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    key: Option<String>,
    targets: Vec<(String, String)>,
}

/// Why a mapping cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MappingError(String);

impl Mapping {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.targets.is_empty()
    }

    /// The name in the source of what becomes the key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// (name in the dataset, name in the source) of each field and attribute, without the key.
    pub fn targets(&self) -> &[(String, String)] {
        &self.targets
    }
}

/// As it is parsed: `key=source,NAME=SOURCE`.
impl fmt::Display for Mapping {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.iter().map(|source| ("key", source));
        let targets = self.targets.iter().map(|(target, source)| (target.as_str(), source));
        for (number, (target, source)) in key.chain(targets).enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(out, "{comma}{target}={source}")?;
        }
        Ok(())
    }
}

impl FromStr for Mapping {
    type Err = MappingError;

    /// Comma-separated `NAME=SOURCE`; `NAME` alone is `NAME=NAME`.
    fn from_str(text: &str) -> Result<Self, MappingError> {
        let mut mapping = Self::default();
        for pair in text.split(',').map(str::trim) {
            let (target, source) = pair.split_once('=').unwrap_or((pair, pair));
            if target.is_empty() || source.is_empty() {
                return Err(MappingError(format!("\"{pair}\": a mapping is NAME=SOURCE, such as image=image/encoded")));
            }
            let twice = || MappingError(format!("\"{target}\" is mapped twice"));
            if target == "key" {
                if mapping.key.replace(source.to_owned()).is_some() {
                    return Err(twice());
                }
            } else if mapping.targets.iter().any(|(name, _)| name == target) {
                return Err(twice());
            } else {
                mapping.targets.push((target.to_owned(), source.to_owned()));
            }
        }
        Ok(mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_the_order_in_which_they_were_given() {
        let mapping: Mapping = "key=image/filename, image=image/encoded,label".parse().unwrap();
        assert_eq!(mapping.key(), Some("image/filename"));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(mapping.targets(), [pair("image", "image/encoded"), pair("label", "label")]);
    }

    #[test]
    fn empty_and_duplicate_names_are_refused() {
        for text in ["", "a=", "=a", "a,,b", "a=b,a=c", "key=a,key=b"] {
            assert!(text.parse::<Mapping>().is_err(), "{text}");
        }
    }
}
