//! Changes of a dataset's files, read from the fuzzer's bytes.
//!
//! One change is 4 bytes and a value: which file, where in it (a region and 16 bits within), and what to do there.
//! Regions are those of the file as it was written, so that a few bytes reach any structure.

use std::ops::Range;

use super::base::BaseFile;
use super::fixture::Fixture;
use crate::input::Input;

const MAX_CHANGES: usize = 24;
/// A file never grows by more than this many bytes.
const MAX_GROWTH: usize = 16384;

// What a change does, in the low 3 bits of the byte after the file's number.
pub(super) const WRITE_1: u8 = 0;
pub(super) const WRITE_2: u8 = 1;
pub(super) const WRITE_4: u8 = 2;
pub(super) const WRITE_8: u8 = 3;
pub(super) const FLIP: u8 = 4;
pub(super) const CLEAR_16: u8 = 5;
pub(super) const ROTATE: u8 = 6;
pub(super) const RESIZE: u8 = 7;

// Where it does that, in the other bits of that byte. From `FOOTER` on: the regions of the file.
pub(super) const ANYWHERE: u8 = 0;
pub(super) const HEADER: u8 = 1;
pub(super) const FOOTER: u8 = 2;

pub(super) fn change(input: &mut Input<'_>, fixture: &Fixture, files: &mut [Vec<u8>]) {
    for _ in 0..MAX_CHANGES {
        if input.is_empty() {
            return;
        }
        let number = usize::from(input.byte()) % files.len();
        let (place, at) = (input.byte(), input.u16());
        change_one(input, &fixture.files[number], &mut files[number], (place, usize::from(at)));
    }
}

fn change_one(input: &mut Input<'_>, base: &BaseFile, bytes: &mut Vec<u8>, (place, at): (u8, usize)) {
    let action = place & 7;
    if action == RESIZE {
        return resize(bytes, at, input.byte());
    }
    let region = region(base, place >> 3, at);
    let from = region.start + at % region.len().max(1);
    let value: &[u8] = match action {
        WRITE_1 => &input.take::<1>(),
        WRITE_2 => &input.take::<2>(),
        WRITE_4 => &input.take::<4>(),
        WRITE_8 => &input.take::<8>(),
        _ => &[],
    };
    let Some(place) = bytes.get_mut(from..) else { return };
    match action {
        FLIP => flip(place, input.byte()),
        CLEAR_16 => place.iter_mut().take(16).for_each(|byte| *byte = 0),
        ROTATE => place.rotate_left(1.min(place.len())),
        _ => place.iter_mut().zip(value).for_each(|(byte, value)| *byte = *value),
    }
}

fn flip(place: &mut [u8], bits: u8) {
    if let Some(byte) = place.first_mut() {
        *byte ^= bits;
    }
}

fn resize(bytes: &mut Vec<u8>, at: usize, how: u8) {
    let blocks = usize::from(how & 3) * 4096;
    match how >> 2 & 3 {
        0 => bytes.truncate(bytes.len().saturating_sub(blocks.max(1))),
        1 => bytes.resize(bytes.len() + blocks.min(MAX_GROWTH), 0),
        2 => bytes.truncate(at),
        _ => bytes.extend_from_within(bytes.len() - blocks.min(bytes.len())..),
    }
}

/// Anywhere, the header, or one of [`BaseFile::regions`], by number.
fn region(base: &BaseFile, number: u8, at: usize) -> Range<usize> {
    let whole = 0..base.bytes.len();
    if base.regions.is_empty() {
        return whole;
    }
    match number {
        // 16 bits do not reach all of a longer file.
        ANYWHERE if at % 2 == 1 => base.bytes.len() / 2..base.bytes.len(),
        ANYWHERE => whole,
        HEADER => 0..48,
        number => base.regions[usize::from(number - FOOTER) % base.regions.len()].clone(),
    }
}
