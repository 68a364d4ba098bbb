//! What goes wrong with a picture, or with a recipe.

use thiserror::Error;

/// Why a picture cannot be decoded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The bytes begin like no format that is decoded.
    #[error("these are not the bytes of a JPEG, PNG or WebP picture: they begin with {head}")]
    UnknownFormat {
        /// The first bytes, in hexadecimal.
        head: String,
    },
    /// The picture has more pixels than are decoded.
    #[error("the picture has {width} x {height} pixels, and at most {max} are decoded")]
    TooLarge {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// How many pixels a picture may have.
        max: u64,
    },
    /// Scaled until its shorter side has the size of the recipe, the picture has more pixels than are made.
    #[error(
        "the picture has {width} x {height} pixels: with the shorter side scaled it would have {full_width} x \
         {full_height}, and at most {max} are made"
    )]
    TooThin {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// Its width when it is scaled.
        full_width: u32,
        /// Its height when it is scaled.
        full_height: u32,
        /// How many pixels a picture may have.
        max: u64,
    },
    /// The picture has no pixels.
    #[error("the picture has {width} x {height} pixels")]
    Empty {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// The bytes end inside the picture.
    #[error("the bytes end before the picture does")]
    Truncated,
    /// The format's library refuses it.
    #[error("{format}: {reason}")]
    Invalid {
        /// The format's name.
        format: &'static str,
        /// The library's words.
        reason: String,
    },
    /// There is no memory for its pixels.
    #[error("no memory for {bytes} bytes of pixels")]
    NoMemory {
        /// How many were requested.
        bytes: usize,
    },
}

/// A recipe that no picture can follow.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum RecipeError {
    /// The size has no pixels, or too many.
    #[error("the size is {height} x {width}, expected 1 to {max} each")]
    Size {
        /// The height.
        height: u32,
        /// The width.
        width: u32,
        /// The largest of either.
        max: u32,
    },
    /// A range is not one of positive numbers.
    #[error("{what} is {low} to {high}, expected two numbers above 0, the smaller one first{more}")]
    Range {
        /// What it is a range of.
        what: &'static str,
        /// Its first number.
        low: f64,
        /// Its last number.
        high: f64,
        /// A further condition, or nothing.
        more: &'static str,
    },
    /// A probability is not between 0 and 1.
    #[error("the probability of a mirrored picture is {0}, expected 0 to 1")]
    Probability(f64),
    /// The picture would be scaled to less than the part that is taken of it.
    #[error("the shorter side is scaled to {resize}, less than the part of {height} x {width} pixels")]
    Shorter {
        /// The shorter side.
        resize: u32,
        /// The part's height.
        height: u32,
        /// The part's width.
        width: u32,
    },
}

impl PictureError {
    /// What a library says of bytes in memory: their end is the only error of reading them.
    pub(crate) fn of_reading(format: &'static str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Invalid { format, reason: error.to_string() },
        }
    }
}
