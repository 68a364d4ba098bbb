//! Decoded pixels: red, green and blue, 8 bits each.

use crate::crop::Region;
use crate::error::PictureError;

/// Pixels in memory that is used again for the next picture.
#[derive(Default)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Makes room for `width` x `height` pixels, and returns it.
    pub(crate) fn room(&mut self, width: u32, height: u32) -> Result<&mut [u8], PictureError> {
        let len = width as usize * height as usize * 3;
        room(&mut self.bytes, len)?;
        (self.width, self.height) = (width, height);
        Ok(&mut self.bytes[..len])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.width as usize * self.height as usize * 3]
    }

    /// Memory that one large picture needed is not kept for the small ones.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.bytes);
    }
}

/// Bytes that are kept from one picture to the next.
const KEPT_MAX: usize = 32 << 20;

pub(crate) fn shrink(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEPT_MAX {
        *bytes = Vec::new();
    }
}

/// Makes `bytes` at least `len` long.
pub(crate) fn room(bytes: &mut Vec<u8>, len: usize) -> Result<(), PictureError> {
    if bytes.len() < len {
        bytes.try_reserve_exact(len - bytes.len()).map_err(|_| PictureError::NoMemory { bytes: len })?;
        bytes.resize(len, 0);
    }
    Ok(())
}

/// Checks a size that a picture's header claims, before any memory is requested for it.
pub(crate) fn check_size(width: u32, height: u32, max: u64) -> Result<(), PictureError> {
    if width == 0 || height == 0 {
        return Err(PictureError::Empty { width, height });
    }
    if u64::from(width) * u64::from(height) > max {
        return Err(PictureError::TooLarge { width, height, max });
    }
    Ok(())
}

/// Copies the columns of `region` of one row, whose pixels have `samples` values of 8 bits: 1 or 2 are grey, 3 or 4 colours.
pub(crate) fn copy_row(row: &[u8], samples: usize, region: Region, to: &mut [u8]) {
    let from = row.chunks_exact(samples).skip(region.left as usize);
    for (pixel, out) in from.zip(to.chunks_exact_mut(3)) {
        match *pixel {
            [grey] | [grey, _] => out.fill(grey),
            [red, green, blue, ..] => out.copy_from_slice(&[red, green, blue]),
            [] => {}
        }
    }
}
