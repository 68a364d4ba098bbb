//! WebP.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use crate::crop::Region;
use crate::error::PictureError;
use crate::pixels::{Pixels, check_size, copy_row, room};

fn invalid(error: DecodingError) -> PictureError {
    match error {
        DecodingError::IoError(error) => PictureError::of_reading("WebP", &error),
        error => PictureError::Invalid { format: "WebP", reason: error.to_string() },
    }
}

/// Decodes the picture, and takes the part of it that `choose` names, given width and height.
pub(crate) fn decode(
    bytes: &[u8],
    pixels_max: u64,
    choose: impl FnOnce(u32, u32) -> Region,
    to: &mut Pixels,
) -> Result<(), PictureError> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(invalid)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height, pixels_max)?;
    let samples = if decoder.has_alpha() { 4 } else { 3 };
    let len = width as usize * height as usize * samples;
    // What it decodes to, and as much again while it does so.
    decoder.set_memory_limit(len.saturating_mul(2).saturating_add(1 << 20));
    let mut whole = Vec::new();
    room(&mut whole, len)?;
    if decoder.is_animated() {
        decoder.read_frame(&mut whole).map_err(invalid)?;
    } else {
        decoder.read_image(&mut whole).map_err(invalid)?;
    }
    let region = choose(width, height);
    let out = to.room(region.width, region.height)?;
    let rows = whole.chunks_exact(width as usize * samples).skip(region.top as usize);
    for (row, out) in rows.zip(out.chunks_exact_mut(region.width as usize * 3)) {
        copy_row(row, samples, region, out);
    }
    Ok(())
}
