//! The language that chooses samples by their attributes and keys: `label in 3, 7 and width >= 64`.
//!
//! An [`Expression`] is parsed once, then evaluated on datasets. It reads columns, and keys if it names them, never
//! payloads. order.md defines it ("Subsets", SUB-1 to SUB-10).
//!
//! ```
//! use grainstore_reader::Expression;
//!
//! let train: Expression = "label IN (3, 7..9) and not (key_hash >= 0.90)".parse()?;
//! assert_eq!(train.to_string(), "label in 3, 7..9 and not key_hash >= 0.9");
//!
//! let error = "label in and width > 3".parse::<Expression>().unwrap_err();
//! assert_eq!(error.to_string(), "expected a value after `in` at column 10, found `and`");
//! # Ok::<(), grainstore_reader::ExpressionError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use grainstore_store::{Collection, Dataset};

use crate::plan::Subset;

mod column;
mod compile;
mod error;
mod evaluate;
mod floats;
mod integers;
mod number;
mod parse;
mod token;
mod tree;

pub use self::error::{ExpressionError, SelectError};

use self::column::GROUP;
use self::compile::compile;
use self::evaluate::Evaluator;
use self::tree::Node;

/// Longest text of an expression, in bytes.
const MAX_LEN: usize = 1 << 16;

/// The most levels of parentheses and `not`: they are parsed and evaluated by recursion.
const MAX_DEPTH: usize = 100;

/// A condition that a sample must meet to be visited. [`Display`](fmt::Display) writes it in one spelling, which parses
/// again.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text).map(Self)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Expression {
    /// Checks that `dataset` has what the expression names, of types that it can compare. Reads nothing.
    ///
    /// # Errors
    /// [`SelectError::Unfit`] if it does not.
    pub fn check(&self, dataset: &Dataset) -> Result<(), SelectError> {
        compile(&self.0, dataset).map(drop)
    }

    /// The samples of `dataset` that meet the expression.
    ///
    /// # Errors
    /// As [`check`](Self::check); if a compared value is missing; if a column or a key cannot be read.
    pub fn select(&self, dataset: &Dataset) -> Result<Subset, SelectError> {
        let mut words = Vec::new();
        self.evaluate_into(dataset, 0, &mut words)?;
        Ok(Subset::from_words(dataset.sample_count(), words)?)
    }

    /// The samples that meet the expression, of what a reader reads: one dataset, or several end to end.
    ///
    /// # Errors
    /// As [`select`](Self::select), and if a dataset cannot be opened.
    pub fn select_from(&self, collection: &Collection) -> Result<Subset, SelectError> {
        let mut words = Vec::new();
        for (member, dataset) in collection.members().enumerate() {
            self.evaluate_into(dataset?, collection.member_ordinals(member).start, &mut words)?;
        }
        Ok(Subset::from_words(collection.sample_count(), words)?)
    }

    /// Appends the samples of `dataset` that meet the expression to a bitmap in which its first sample is bit
    /// `first_ordinal`, and which holds that many bits so far: `ordinal` means the sample's position in the whole
    /// bitmap. For several datasets, one after the other, and then [`Subset::from_words`].
    ///
    /// # Errors
    /// As [`select`](Self::select). The bitmap is then unfinished.
    pub fn evaluate_into(
        &self,
        dataset: &Dataset,
        first_ordinal: u64,
        words: &mut Vec<u64>,
    ) -> Result<(), SelectError> {
        let compiled = compile(&self.0, dataset)?;
        let mut evaluator = Evaluator::new(dataset, first_ordinal, &compiled)?;
        let sample_count = dataset.sample_count();
        for group in 0..sample_count.div_ceil(GROUP) {
            append(words, first_ordinal + group * GROUP, evaluator.group(group)?);
        }
        words.resize(grainstore_format::to_usize((first_ordinal + sample_count).div_ceil(GROUP)), 0);
        Ok(())
    }
}

/// Adds 64 bits to a bitmap that has `first` bits so far, or fewer words.
fn append(words: &mut Vec<u64>, first: u64, bits: u64) {
    let word = grainstore_format::to_usize(first / GROUP);
    let shift = first % GROUP;
    words.resize(word + 2, 0);
    words[word] |= bits << shift;
    words[word + 1] = if shift > 0 { bits >> (GROUP - shift) } else { 0 };
}
