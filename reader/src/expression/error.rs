//! Errors of an expression: in its text, and in its use on a dataset.

use std::path::PathBuf;

use grainstore_format::{Remedy, shown_path};
use grainstore_store::StoreError;

use super::{MAX_DEPTH, MAX_LEN};
use crate::plan::SubsetError;

/// Why a text is not an expression. Columns count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// Something else was expected.
    #[error("expected {expected} at column {column}, found {found}")]
    Unexpected {
        /// What was expected, and after what.
        expected: String,
        /// Where.
        column: usize,
        /// What was found, and a hint at what may have been meant.
        found: String,
    },
    /// An invalid number, string or range.
    #[error("{what} at column {column}")]
    Literal {
        /// What is wrong with it.
        what: String,
        /// Where it starts.
        column: usize,
    },
    /// Too many nested parentheses or `not`.
    #[error("more than {MAX_DEPTH} levels of parentheses and `not` at column {column}")]
    TooDeep {
        /// Where the first level above the limit starts.
        column: usize,
    },
    /// The text is too long.
    #[error("an expression has at most {MAX_LEN} bytes, found {len}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
}

/// Why an expression could not choose samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The expression names something that the dataset does not have, or compares values of different types.
    #[error("{}: {name} at column {column}: {what}", shown_path(.path))]
    Unfit {
        /// The dataset.
        path: PathBuf,
        /// The name, as it is written in an expression.
        name: String,
        /// Where, in characters counted from 1.
        column: usize,
        /// Found and expected.
        what: String,
        /// What the caller can do about it.
        remedy: Remedy,
    },
    /// A value that a sample does not have was compared.
    #[error("{}: sample {ordinal} has no {attribute}: write `{attribute} is present and ...` before what compares it", shown_path(.path))]
    Missing {
        /// The dataset.
        path: PathBuf,
        /// The attribute, as it is written in an expression.
        attribute: String,
        /// The first such sample that was compared.
        ordinal: u64,
    },
    /// A column or the keys cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The subset cannot be made.
    #[error(transparent)]
    Subset(#[from] SubsetError),
}

impl SelectError {
    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Unfit { remedy, .. } => Some(remedy.clone()),
            Self::Store(store) => store.remedy(),
            Self::Missing { .. } | Self::Subset(_) => None,
        }
    }
}
