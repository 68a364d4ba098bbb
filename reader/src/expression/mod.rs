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
use std::path::Path;
use std::str::FromStr;

use grainstore_format::memory::reserve;
use grainstore_format::{Categories, Remedy, escape_bytes, shown_names};
use grainstore_store::{Collection, Dataset, StoreError};

use crate::plan::{Subset, SubsetError};

mod column;
mod compile;
mod error;
mod evaluate;
mod floats;
mod integers;
mod names;
mod number;
mod parse;
mod token;
mod tree;

pub use self::error::{ExpressionError, SelectError};

use self::column::GROUP;
use self::compile::{Compiled, UnknownCategory, compile};
use self::evaluate::Evaluator;
use self::tree::{Name, Node};

/// Longest text of an expression, in bytes.
const MAX_LEN: usize = 1 << 16;

/// Categories, or names of numbers, that an error shows.
const SHOWN_NAMES: usize = 10;

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
    /// Checks that `dataset` has what the expression names, of types that it can compare. Reads no column.
    ///
    /// # Errors
    /// [`SelectError::Unfit`] if it does not; if categories cannot be read.
    pub fn check(&self, dataset: &Dataset) -> Result<(), SelectError> {
        check_categories(&compile(&self.0, dataset)?, dataset.path(), |attribute| dataset.categories(attribute))
    }

    /// The samples of `dataset` that meet the expression.
    ///
    /// # Errors
    /// As [`check`](Self::check); if a compared value is missing; if a column or a key cannot be read.
    pub fn select(&self, dataset: &Dataset) -> Result<Subset, SelectError> {
        self.check(dataset)?;
        let mut words = Vec::new();
        self.evaluate_into(dataset, 0, &mut words)?;
        Ok(Subset::from_words(dataset.sample_count(), words)?)
    }

    /// The samples that meet the expression, of what a reader reads: one dataset, or several end to end.
    ///
    /// # Errors
    /// As [`select`](Self::select), and if a dataset cannot be opened.
    pub fn select_from(&self, collection: &Collection) -> Result<Subset, SelectError> {
        let first = collection.member(0)?;
        // A string that the first has need not be a category of the others.
        check_categories(&compile(&self.0, first)?, first.path(), |attribute| collection.categories(attribute))?;
        let mut words = Vec::new();
        for (member, dataset) in collection.members().enumerate() {
            self.evaluate_into(dataset?, collection.member_ordinals(member).start, &mut words)?;
        }
        Ok(Subset::from_words(collection.sample_count(), words)?)
    }

    /// Appends the samples of `dataset` that meet the expression to a bitmap in which its first sample is bit
    /// `first_ordinal`, and which holds that many bits so far: `ordinal` means the sample's position in the whole
    /// bitmap. For several datasets, one after the other, and then [`Subset::from_words`]. A string that is no category
    /// of `dataset` is equal to none of its values.
    ///
    /// # Errors
    /// As [`select`](Self::select), except that. The bitmap is then unfinished.
    pub fn evaluate_into(
        &self,
        dataset: &Dataset,
        first_ordinal: u64,
        words: &mut Vec<u64>,
    ) -> Result<(), SelectError> {
        let compiled = compile(&self.0, dataset)?;
        let mut evaluator = Evaluator::new(dataset, first_ordinal, &compiled)?;
        let sample_count = dataset.sample_count();
        let words_len = (first_ordinal + sample_count).div_ceil(GROUP) + 2;
        let lack = |error| SelectError::Subset(SubsetError::NoMemory(error));
        reserve(words, words_len.saturating_sub(words.len() as u64)).map_err(lack)?;
        for group in 0..sample_count.div_ceil(GROUP) {
            append(words, first_ordinal + group * GROUP, evaluator.group(group)?);
        }
        words.resize(grainstore_format::to_usize((first_ordinal + sample_count).div_ceil(GROUP)), 0);
        Ok(())
    }
}

/// Refuses a string that is compared with a category and is none. order.md: SUB-8.
fn check_categories<'a>(
    compiled: &Compiled,
    path: &Path,
    categories: impl Fn(&str) -> Result<&'a Categories, StoreError>,
) -> Result<(), SelectError> {
    for UnknownCategory { attribute, column, text } in &compiled.unknown {
        let known = categories(attribute)?;
        if std::str::from_utf8(text).ok().and_then(|text| known.code_of(text)).is_none() {
            let names: Vec<String> = known.iter().take(SHOWN_NAMES).map(str::to_owned).collect();
            let more = if known.len() > SHOWN_NAMES { ", ..." } else { "" };
            let there_are = shown_names(&names);
            return Err(SelectError::Unfit {
                path: path.to_owned(),
                name: Name::Attribute(attribute.clone()).to_string(),
                column: *column,
                what: format!("no category \"{}\" (there are: {there_are}{more})", escape_bytes(text)),
                remedy: Remedy::ListAttributes,
            });
        }
    }
    Ok(())
}

/// Adds 64 bits to a bitmap that has `first` bits so far, or fewer words.
fn append(words: &mut Vec<u64>, first: u64, bits: u64) {
    let word = grainstore_format::to_usize(first / GROUP);
    let shift = first % GROUP;
    words.resize(word + 2, 0);
    words[word] |= bits << shift;
    words[word + 1] = if shift > 0 { bits >> (GROUP - shift) } else { 0 };
}
