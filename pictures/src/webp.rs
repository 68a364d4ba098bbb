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

/// Refuses a lossy frame of another size than the header names: its decoder would first make all of its pixels.
fn check_frames(bytes: &[u8], canvas: (u32, u32)) -> Result<(), PictureError> {
    let mut chunks = bytes.get(12..).unwrap_or_default();
    while let Some((name, content, rest)) = chunk(chunks) {
        let frame = match name {
            b"VP8 " => Some((content, canvas)),
            // A frame of an animation: its place and size, 16 bytes, then chunks.
            b"ANMF" => {
                let side = |at: usize| {
                    Some(u32::from_le_bytes([*content.get(at)?, *content.get(at + 1)?, *content.get(at + 2)?, 0]) + 1)
                };
                let size = side(6).zip(side(9)).unwrap_or((0, 0));
                let mut inner = content.get(16..).unwrap_or_default();
                let mut lossy = None;
                while let Some((name, content, rest)) = chunk(inner) {
                    if name == b"VP8 " {
                        lossy = Some((content, size));
                    }
                    inner = rest;
                }
                lossy
            }
            _ => None,
        };
        if let Some((frame, (width, height))) = frame
            && let Some(found) = lossy_size(frame)
            && found != (width, height)
        {
            let reason = format!("a frame of {} x {} pixels, expected {width} x {height}", found.0, found.1);
            return Err(PictureError::Invalid { format: "WebP", reason });
        }
        chunks = rest;
    }
    Ok(())
}

/// The name of the first chunk, its content as far as it is there, and the bytes after it.
fn chunk(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (name, bytes) = bytes.split_first_chunk::<4>()?;
    let (len, bytes) = bytes.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let content = bytes.get(..len).unwrap_or(bytes);
    // Chunks have even lengths.
    Some((name, content, bytes.get(len.checked_add(len % 2)?..).unwrap_or_default()))
}

/// Width and height of a lossy frame, by its header: a tag of 3 bytes, 3 fixed ones, two numbers of 14 bits.
fn lossy_size(frame: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| Some(u32::from(u16::from_le_bytes([*frame.get(at)?, *frame.get(at + 1)?]) & 0x3FFF));
    side(6).zip(side(8))
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
    check_frames(bytes, (width, height))?;
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
