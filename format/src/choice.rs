//! Names of choices, such as orders and compressions: spelled once, where the choice is defined.

use std::fmt;

/// A name that is not among the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.about("it"))]
pub struct UnknownName {
    /// The name that was given.
    pub found: String,
    /// The names that are known.
    pub known: &'static [&'static str],
}

impl UnknownName {
    /// The error as a sentence about `what`, such as an option: `order is "x", expected shuffled or source`.
    pub fn about(&self, what: &str) -> String {
        format!("{what} is {:?}, expected {}", self.found, Alternatives(self.known))
    }
}

/// Finds a choice by its name; `names` are those of `choices`, in the same order.
///
/// # Errors
/// [`UnknownName`] where no choice has it.
pub fn choice_of<T: Copy, const N: usize>(
    found: &str,
    names: &'static [&'static str; N],
    choices: [T; N],
) -> Result<T, UnknownName> {
    let known = names.iter().zip(choices).find(|(name, _)| **name == found);
    known.map(|(_, choice)| choice).ok_or_else(|| UnknownName { found: found.to_owned(), known: names })
}

/// Names in a sentence: `a, b or c`.
struct Alternatives(&'static [&'static str]);

impl fmt::Display for Alternatives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [only] => f.write_str(only),
            [before @ .., last] => write!(f, "{} or {last}", before.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["error", "first", "last"];

    #[test]
    fn a_choice_is_found_by_its_name() {
        assert_eq!(choice_of("first", &NAMES, [0, 1, 2]), Ok(1));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = choice_of("First", &NAMES, [0, 1, 2]).unwrap_err();
        assert_eq!(error.to_string(), "it is \"First\", expected error, first or last");
        assert_eq!(error.about("order"), "order is \"First\", expected error, first or last");
    }
}
