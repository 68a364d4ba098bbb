//! JPEG, by libjpeg-turbo: only the rows and columns of the part are decoded.

mod library_unsafe;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use library_unsafe::Library;

use crate::crop::Region;
use crate::error::PictureError;
use crate::pixels::{Pixels, check_size, room};

/// What the library's callbacks unwind with.
enum Failure {
    Truncated,
    Other(String),
}

impl From<Failure> for PictureError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Truncated => Self::Truncated,
            Failure::Other(reason) => Self::Invalid { format: "JPEG", reason },
        }
    }
}

/// The part of a JPEG that is wanted.
pub(crate) struct Wanted {
    pub(crate) region: Region,
    /// 1, 2, 4 or 8: every side is decoded to this fraction.
    pub(crate) reduce: u32,
}

/// Columns that are decoded beside the part, as the colour of a pixel is mixed from its neighbours'.
const MARGIN: u32 = 32;

/// Decodes the part that `choose` names, given width and height. It returns where in the decoded pixels the part begins
/// and ends: left, top, width, height, which are not whole numbers if the picture is reduced.
pub(crate) fn decode(
    bytes: &[u8],
    pixels_max: u64,
    choose: impl FnOnce(u32, u32) -> Wanted,
    (row, to): (&mut Vec<u8>, &mut Pixels),
) -> Result<[f64; 4], PictureError> {
    // The library's errors unwind through its C, which is compiled for that.
    let decoded = catch_unwind(AssertUnwindSafe(|| decode_unwinding(bytes, pixels_max, choose, row, to)));
    decoded.unwrap_or_else(|payload| match payload.downcast::<Failure>() {
        Ok(failure) => Err((*failure).into()),
        Err(payload) => resume_unwind(payload),
    })
}

fn decode_unwinding(
    bytes: &[u8],
    pixels_max: u64,
    choose: impl FnOnce(u32, u32) -> Wanted,
    row: &mut Vec<u8>,
    to: &mut Pixels,
) -> Result<[f64; 4], PictureError> {
    let mut library = Library::new(bytes);
    let (width, height) = library.read_header();
    check_size(width, height, pixels_max)?;
    let Wanted { region, reduce } = choose(width, height);
    let is_cmyk = library.start(reduce);
    let (out_width, out_height) = library.output_size();
    let left = (region.left / reduce).min(out_width - 1);
    let top = (region.top / reduce).min(out_height - 1);
    let width = (region.left + region.width).div_ceil(reduce).min(out_width) - left;
    let height = (region.top + region.height).div_ceil(reduce).min(out_height) - top;
    // Whole blocks are decoded: the row begins at or before the column that was asked for.
    let first = left.saturating_sub(MARGIN);
    let end = (left + width + MARGIN).min(out_width);
    let (first, row_width) =
        if first > 0 || end < out_width { library.crop(first, end - first) } else { (0, out_width) };
    library.skip(top);
    let samples = if is_cmyk { 4 } else { 3 };
    room(row, row_width as usize * samples)?;
    let row = &mut row[..row_width as usize * samples];
    let skipped = (left - first) as usize * samples;
    let out = to.room(width, height)?;
    for out in out.chunks_exact_mut(width as usize * 3) {
        library.read_row(row);
        let from = &row[skipped..][..width as usize * samples];
        if is_cmyk {
            from.chunks_exact(4).zip(out.chunks_exact_mut(3)).for_each(|(ink, out)| mix_inks(ink, out));
        } else {
            out.copy_from_slice(from);
        }
    }
    let scale = f64::from(reduce);
    let start = [f64::from(region.left) / scale - f64::from(left), f64::from(region.top) / scale - f64::from(top)];
    let len = [f64::from(region.width) / scale, f64::from(region.height) / scale];
    Ok([start[0], start[1], len[0].min(f64::from(width) - start[0]), len[1].min(f64::from(height) - start[1])])
}

/// Inks as Adobe stores them, inverted, as Pillow makes colours of them.
fn mix_inks(ink: &[u8], out: &mut [u8]) {
    let &[cyan, magenta, yellow, key] = ink else { return };
    for (out, ink) in out.iter_mut().zip([cyan, magenta, yellow]) {
        let product = u32::from(255 - ink) * u32::from(key) + 128;
        let shade = ((product >> 8) + product) >> 8;
        *out = key.saturating_sub(u8::try_from(shade).unwrap_or(u8::MAX));
    }
}
