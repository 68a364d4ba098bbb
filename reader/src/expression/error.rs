//! What can be wrong with an expression, by itself and for a dataset.

use std::path::PathBuf;

use grainstore_format::shown_path;
use grainstore_store::StoreError;

use super::{MAX_DEPTH, MAX_LEN};
use crate::plan::SubsetError;

/// Why a text is no expression. Columns count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// Something else should stand there.
    #[error("expected {expected} at column {column}, found {found}")]
    Unexpected {
        /// What should stand there, and after what.
        expected: String,
        /// Where.
        column: usize,
        /// What stands there, and how it may have been meant.
        found: String,
    },
    /// A number, a string or a range that cannot be.
    #[error("{what} at column {column}")]
    Literal {
        /// What is wrong with it.
        what: String,
        /// Where it starts.
        column: usize,
    },
    /// Parentheses in parentheses, or `not` after `not`, without end.
    #[error("more than {MAX_DEPTH} levels of parentheses and `not` at column {column}")]
    TooDeep {
        /// Where the first level too many starts.
        column: usize,
    },
    /// A text that nobody would write.
    #[error("an expression has at most {MAX_LEN} bytes, found {len}")]
    TooLong {
        /// Its bytes.
        len: usize,
    },
}

/// Why an expression chose no samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The expression asks for what the dataset does not have, or compares what cannot be compared.
    #[error("{}: {name} at column {column}: {what}", shown_path(.path))]
    Unfit {
        /// The dataset.
        path: PathBuf,
        /// The name that it asks for, as it is written in an expression.
        name: String,
        /// Where, in characters counted from 1.
        column: usize,
        /// Found and expected.
        what: String,
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
    /// There is no such subset.
    #[error(transparent)]
    Subset(#[from] SubsetError),
}
