//! The one `hint:` line below an error: a flag or a command to try.
//!
//! A command attaches its own hint with [`WithHint::hint`]; errors of the libraries get theirs here.

use std::fmt;

use grainstore_format::FormatError;
use grainstore_reader::ReadError;
use grainstore_store::StoreError;

use crate::printer::on_one_line;

/// An error with a hint. It shows its whole chain itself, so it is the last link of the chain around it.
#[derive(Debug)]
struct Hinted {
    error: anyhow::Error,
    hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&on_one_line(&self.error))
    }
}

impl std::error::Error for Hinted {}

/// Attaches a hint to an error.
pub(crate) trait WithHint<T> {
    /// The same, and where it is an error the line `hint: ...` is printed below it.
    ///
    /// # Errors
    /// The error that it was.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithHint<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| Hinted { error: error.into(), hint: hint.into() }.into())
    }
}

/// The hint for an error, if there is one.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|link| {
        if let Some(hinted) = link.downcast_ref::<Hinted>() {
            return Some(hinted.hint.clone());
        }
        if let Some(FormatError::TooNew { .. } | FormatError::UnknownFeature { .. }) = link.downcast_ref() {
            return Some("upgrade grainstore".to_owned());
        }
        // A transparent error hides what it wraps from the chain.
        if let Some(ReadError::NoMemory { .. }) = link.downcast_ref() {
            return Some("a batch is held whole: a smaller `--batch-size` needs less".to_owned());
        }
        let store = match link.downcast_ref() {
            Some(ReadError::Store(store)) => Some(store),
            _ => link.downcast_ref(),
        };
        store.and_then(hint_of_store)
    })
}

fn hint_of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::NoSuchOrdinal { sample_count, .. } if *sample_count > 0 => {
            Some(format!("ordinals go from 0 to {}", sample_count - 1))
        }
        StoreError::NotFound { path } | StoreError::Format { path, .. } | StoreError::Mismatch { path, .. }
            if path.extension().is_some_and(|end| end == "idx") =>
        {
            Some("`grainstore rebuild-index` makes the index again from the segments".to_owned())
        }
        StoreError::Sample { .. } => Some("`grainstore verify` lists everything that is damaged".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_hint_is_found_through_context_and_the_text_stays_whole() {
        let error =
            Err::<(), _>(anyhow!("inner").context("outer")).hint("try --this").context("outermost").unwrap_err();
        assert_eq!(format!("{error:#}"), "outermost: outer: inner");
        assert_eq!(hint_of(&error).as_deref(), Some("try --this"));
    }

    #[test]
    fn an_ordinal_out_of_range_is_answered_with_the_range() {
        let error = StoreError::NoSuchOrdinal { ordinal: 9, sample_count: 4 }.into();
        assert_eq!(hint_of(&error).as_deref(), Some("ordinals go from 0 to 3"));
    }

    #[test]
    fn most_errors_have_no_hint() {
        assert_eq!(hint_of(&anyhow!("no")), None);
    }
}
