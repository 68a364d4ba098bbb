//! One picture after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fast_image_resize::Resizer;

use crate::crop::{Crop, Region, middle, random, shorter_side};
use crate::draws::Draws;
use crate::error::PictureError;
use crate::finish;
use crate::jpeg::{self, Wanted};
use crate::kind::Kind;
use crate::pixels::{Pixels, room, shrink};
use crate::png;
use crate::recipe::{Layout, Recipe, RecipeOptions};
use crate::webp;

/// Memory for decoding that is used again for each picture: one per thread.
#[derive(Default)]
pub struct Decoder {
    pixels: Pixels,
    row: Vec<u8>,
    scaled: Vec<u8>,
    resizer: Resizer,
}

impl Decoder {
    /// A decoder without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes `bytes` into `to`, which has [`Recipe::byte_len`] bytes. `bits` decide what is random.
    ///
    /// # Errors
    /// If the bytes are not a picture that can be decoded; `to` then has arbitrary contents.
    ///
    /// # Panics
    /// If `to` has another length.
    pub fn decode(&mut self, recipe: &Recipe, bytes: &[u8], bits: u128, to: &mut [u8]) -> Result<(), PictureError> {
        assert_eq!(to.len(), recipe.byte_len(), "the memory is not of the recipe's size");
        let mut draws = Draws::new(bits);
        let is_mirrored = recipe.options.mirror > 0.0 && draws.uniform(0.0, 1.0) < recipe.options.mirror;
        let mut size = (0, 0);
        let mut choose = |width, height| {
            size = (width, height);
            match recipe.crop {
                Crop::RandomResized { scale, ratio } => random(&mut draws, width, height, scale, ratio),
                _ => Region { left: 0, top: 0, width, height },
            }
        };
        let max = recipe.options.pixels_max;
        let part = match Kind::of(bytes)? {
            Kind::Jpeg => {
                let wanted = |width, height| {
                    let region = choose(width, height);
                    Wanted { region, reduce: reduction(recipe, region) }
                };
                Some(jpeg::decode(bytes, max, wanted, (&mut self.row, &mut self.pixels))?)
            }
            Kind::Png => contained("PNG", &mut self.pixels, |pixels| png::decode(bytes, max, choose, pixels))?,
            Kind::WebP => contained("WebP", &mut self.pixels, |pixels| webp::decode(bytes, max, choose, pixels))?,
        };
        let done = self.finish(recipe, size, part, is_mirrored, to);
        self.pixels.shrink();
        shrink(&mut self.scaled);
        done
    }

    /// Decodes all of a picture, JPEG to an eighth of its size, to see whether that can be done.
    fn check(&mut self, bytes: &[u8]) -> Result<(), PictureError> {
        let pixels_max = RecipeOptions::default().pixels_max;
        let whole = |width, height| Region { left: 0, top: 0, width, height };
        let checked = match Kind::of(bytes)? {
            Kind::Jpeg => {
                let wanted = |width, height| Wanted { region: whole(width, height), reduce: 8 };
                jpeg::decode(bytes, pixels_max, wanted, (&mut self.row, &mut self.pixels)).map(Some)
            }
            Kind::Png => contained("PNG", &mut self.pixels, |pixels| png::decode(bytes, pixels_max, whole, pixels)),
            Kind::WebP => contained("WebP", &mut self.pixels, |pixels| webp::decode(bytes, pixels_max, whole, pixels)),
        };
        checked.map(drop)
    }

    fn finish(
        &mut self,
        recipe: &Recipe,
        (width, height): (u32, u32),
        part: Option<[f64; 4]>,
        is_mirrored: bool,
        to: &mut [u8],
    ) -> Result<(), PictureError> {
        // Where all decoded pixels are the part, nothing outside of it can be mixed in.
        let whole = [0.0, 0.0, f64::from(self.pixels.width), f64::from(self.pixels.height)];
        let part = part.filter(|part| part.iter().zip(whole).any(|(part, whole)| (part - whole).abs() > 0.0));
        let filter = recipe.options.filter;
        let (to_width, to_height) = (recipe.width, recipe.height);
        let is_planar = recipe.options.layout == Layout::Planar;
        if let Crop::Center { resize } = recipe.crop {
            let (full_width, full_height) = shorter_side(width, height, resize);
            let max = recipe.options.pixels_max;
            // Of a thin picture, little is left of much.
            if u64::from(full_width) * u64::from(full_height) > max {
                return Err(PictureError::TooThin { width, height, full_width, full_height, max });
            }
            let len = full_width as usize * full_height as usize * 3;
            room(&mut self.scaled, len)?;
            let scaled = &mut self.scaled[..len];
            finish::scale(&mut self.resizer, &self.pixels, part, filter, (full_width, full_height, scaled))?;
            let (left, top) = (middle(full_width, to_width) as usize, middle(full_height, to_height) as usize);
            let out = self.pixels.room(to_width, to_height)?;
            let rows = scaled.chunks_exact(full_width as usize * 3).skip(top);
            for (row, out) in rows.zip(out.chunks_exact_mut(to_width as usize * 3)) {
                out.copy_from_slice(&row[left * 3..][..to_width as usize * 3]);
            }
            if is_mirrored {
                finish::mirror(to_width, out);
            }
            if is_planar {
                finish::to_planes(out, to);
            } else {
                to.copy_from_slice(out);
            }
            return Ok(());
        }
        if is_planar {
            room(&mut self.scaled, recipe.byte_len())?;
            let scaled = &mut self.scaled[..recipe.byte_len()];
            finish::scale(&mut self.resizer, &self.pixels, part, filter, (to_width, to_height, scaled))?;
            if is_mirrored {
                finish::mirror(to_width, scaled);
            }
            finish::to_planes(scaled, to);
        } else {
            finish::scale(&mut self.resizer, &self.pixels, part, filter, (to_width, to_height, to))?;
            if is_mirrored {
                finish::mirror(to_width, to);
            }
        }
        Ok(())
    }
}

/// Checks that `bytes` are a picture that a [`Decoder`] decodes, with the default limit of its size. What a decoder repairs
/// without an error, such as a flipped bit in the middle of a JPEG, is not found.
///
/// # Errors
/// Those of [`Decoder::decode`].
pub fn check(bytes: &[u8]) -> Result<(), PictureError> {
    Decoder::new().check(bytes)
}

/// Decodes with a library that promises errors and not panics: one that panics nevertheless has met a broken picture.
fn contained(
    format: &'static str,
    pixels: &mut Pixels,
    decode: impl FnOnce(&mut Pixels) -> Result<(), PictureError>,
) -> Result<Option<[f64; 4]>, PictureError> {
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(pixels)));
    decoded.map(|decoded| decoded.map(|()| None)).unwrap_or_else(|_| {
        *pixels = Pixels::default();
        Err(PictureError::Invalid { format, reason: "it makes no sense to the decoder, which gave up".into() })
    })
}

/// The largest reduction that leaves the part at least as large as what it becomes.
fn reduction(recipe: &Recipe, region: Region) -> u32 {
    if !recipe.options.reduce {
        return 1;
    }
    let (width, height) = match recipe.crop {
        Crop::Center { resize } => shorter_side(region.width, region.height, resize),
        _ => (recipe.width, recipe.height),
    };
    let fits = |reduce: &u32| region.width / reduce >= width && region.height / reduce >= height;
    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}
