//! Scaling, mirroring and the order of the bytes.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

use crate::error::PictureError;
use crate::pixels::Pixels;
use crate::recipe::Filter;

fn failed(error: &dyn std::fmt::Display) -> PictureError {
    PictureError::Invalid { format: "scaling", reason: error.to_string() }
}

/// Scales the `part` of `from` (left, top, width, height; all of it if `None`) to `width` x `height` pixels in `to`.
pub(crate) fn scale(
    resizer: &mut Resizer,
    from: &Pixels,
    part: Option<[f64; 4]>,
    filter: Filter,
    (width, height, to): (u32, u32, &mut [u8]),
) -> Result<(), PictureError> {
    // Typed: the one kind of pixel is compiled, not all of them.
    let source =
        TypedImageRef::<U8x3>::from_buffer(from.width, from.height, from.bytes()).map_err(|error| failed(&error))?;
    let mut target = TypedImage::<U8x3>::from_buffer(width, height, to).map_err(|error| failed(&error))?;
    let filter = match filter {
        Filter::Bilinear => FilterType::Bilinear,
        Filter::Bicubic => FilterType::CatmullRom,
    };
    let mut options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    if let Some([left, top, width, height]) = part {
        options = options.crop(left, top, width, height);
    }
    resizer.resize_typed(&source, &mut target, &options).map_err(|error| failed(&error))
}

/// Mirrors every row.
pub(crate) fn mirror(width: u32, bytes: &mut [u8]) {
    for row in bytes.chunks_exact_mut(width as usize * 3) {
        let (pixels, _) = row.as_chunks_mut::<3>();
        pixels.reverse();
    }
}

/// Writes the red, green and blue of `from` one after the other.
pub(crate) fn to_planes(from: &[u8], to: &mut [u8]) {
    let plane_len = to.len() / 3;
    let (pixels, _) = from.as_chunks::<3>();
    for (channel, plane) in to.chunks_exact_mut(plane_len).enumerate() {
        for (value, pixel) in plane.iter_mut().zip(pixels) {
            *value = pixel[channel];
        }
    }
}
