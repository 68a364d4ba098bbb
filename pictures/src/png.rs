//! PNG.

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Limits, Transformations};

use crate::crop::Region;
use crate::error::PictureError;
use crate::pixels::{Pixels, check_size, copy_row};

fn invalid(error: DecodingError) -> PictureError {
    match error {
        DecodingError::IoError(error) => PictureError::of_reading("PNG", &error),
        error => PictureError::Invalid { format: "PNG", reason: error.to_string() },
    }
}

/// Decodes the part that `choose` names, given width and height.
pub(crate) fn decode(
    bytes: &[u8],
    pixels_max: u64,
    choose: impl FnOnce(u32, u32) -> Region,
    to: &mut Pixels,
) -> Result<(), PictureError> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(invalid)?;
    check_size(header.width, header.height, pixels_max)?;
    let (width, height) = (header.width, header.height);
    // Rows, and whatever chunks hold, are bounded by the pixels: 8 bytes are the most that one has.
    let bound = u64::from(width) * u64::from(height) * 8 + (1 << 20);
    decoder.set_limits(Limits { bytes: usize::try_from(bound).unwrap_or(usize::MAX) });
    let mut reader = decoder.read_info().map_err(invalid)?;
    let is_clipped = reader.info().color_type == ColorType::Grayscale && reader.info().bit_depth == BitDepth::Sixteen;
    let is_interlaced = reader.info().interlaced;
    let (color, depth) = reader.output_color_type();
    let samples = color.samples();
    let region = choose(width, height);
    let row_len = region.width as usize * 3;
    let out = to.room(region.width, region.height)?;
    let mut narrow = Vec::new();
    let mut take = |row: &[u8], number: usize| {
        let Some(out) = out.chunks_exact_mut(row_len).nth(number) else { return };
        if depth == BitDepth::Sixteen {
            narrow.clear();
            narrow.extend(
                row.chunks_exact(2)
                    .map(|pair| if is_clipped && pair[0] > 0 { 255 } else { pair[usize::from(is_clipped)] }),
            );
            copy_row(&narrow, samples, region, out);
        } else {
            copy_row(row, samples, region, out);
        }
    };
    if is_interlaced {
        let len = reader.output_buffer_size().unwrap_or(usize::MAX);
        let mut whole = Vec::new();
        whole.try_reserve_exact(len).map_err(|_| PictureError::NoMemory { bytes: len })?;
        whole.resize(len, 0);
        let info = reader.next_frame(&mut whole).map_err(invalid)?;
        let rows = whole.chunks_exact(info.line_size).skip(region.top as usize);
        rows.take(region.height as usize).enumerate().for_each(|(number, row)| take(row, number));
        return reader.finish().map_err(invalid);
    }
    let (top, end) = (region.top as usize, region.top as usize + region.height as usize);
    for number in 0..end {
        let row = reader.next_row().map_err(invalid)?.ok_or(PictureError::Truncated)?;
        if number >= top {
            take(row.data(), number - top);
        }
    }
    // The checksums behind the last row; a part that ends above it has not read so far.
    if end == height as usize { reader.finish().map_err(invalid) } else { Ok(()) }
}
