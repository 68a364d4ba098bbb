//! What becomes of a picture.

use crate::crop::Crop;
use crate::error::RecipeError;

/// How pixels are averaged, over all pixels that fall into one: with antialiasing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Filter {
    /// A triangle.
    #[default]
    Bilinear,
    /// A cubic spline.
    Bicubic,
}

/// The order of the bytes of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Rows of pixels of three bytes each: height, width, channel.
    #[default]
    Interleaved,
    /// All of the red, then green, then blue: channel, height, width.
    Planar,
}

/// What a recipe may say besides the size and the part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecipeOptions {
    /// The probability that a picture is mirrored.
    pub mirror: f64,
    /// How pixels are averaged.
    pub filter: Filter,
    /// The order of the bytes.
    pub layout: Layout,
    /// Whether a JPEG may be decoded to a half, a quarter or an eighth where that is still as large as the result.
    /// It is faster, and the pixels differ from those of a JPEG that is decoded whole.
    pub reduce: bool,
    /// How many pixels a picture may have before it is an error.
    pub pixels_max: u64,
}

impl Default for RecipeOptions {
    fn default() -> Self {
        Self {
            mirror: 0.0,
            filter: Filter::default(),
            layout: Layout::default(),
            reduce: false,
            pixels_max: 89_478_485, // Pillow's limit: a quarter of a gigabyte of pixels
        }
    }
}

/// What becomes of a picture: a part of it, scaled to one size. Checked when it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    pub(crate) height: u32,
    pub(crate) width: u32,
    pub(crate) crop: Crop,
    pub(crate) options: RecipeOptions,
}

/// The largest height and width of a result.
const SIDE_MAX: u32 = 16_384;

impl Recipe {
    /// A recipe for pictures of `height` x `width` pixels.
    ///
    /// # Errors
    /// If the numbers make no sense together.
    pub fn new(height: u32, width: u32, crop: Crop, options: RecipeOptions) -> Result<Self, RecipeError> {
        if [height, width].iter().any(|side| !(1..=SIDE_MAX).contains(side)) {
            return Err(RecipeError::Size { height, width, max: SIDE_MAX });
        }
        match crop {
            Crop::Whole => {}
            Crop::Center { resize } if resize > SIDE_MAX => {
                return Err(RecipeError::Size { height: resize, width: resize, max: SIDE_MAX });
            }
            Crop::Center { resize } if resize < height.max(width) => {
                return Err(RecipeError::Shorter { resize, height, width });
            }
            Crop::Center { .. } => {}
            Crop::RandomResized { scale, ratio } => {
                check_range("the area of a random part", scale, 1.0, ", neither above 1")?;
                check_range("the ratio of a random part", ratio, f64::MAX, "")?;
            }
        }
        if !(0.0..=1.0).contains(&options.mirror) {
            return Err(RecipeError::Probability(options.mirror));
        }
        Ok(Self { height, width, crop, options })
    }

    /// Rows of a result.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Columns of a result.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Bytes of a result.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.height as usize * self.width as usize * 3
    }

    /// What else it says.
    #[must_use]
    pub fn options(&self) -> &RecipeOptions {
        &self.options
    }
}

fn check_range(what: &'static str, (low, high): (f64, f64), max: f64, more: &'static str) -> Result<(), RecipeError> {
    if low > 0.0 && low <= high && high <= max { Ok(()) } else { Err(RecipeError::Range { what, low, high, more }) }
}
