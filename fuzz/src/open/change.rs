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
    if action == 7 {
        return resize(bytes, at, input.byte());
    }
    let region = region(base, usize::from(place >> 3), at);
    let from = region.start + at % region.len().max(1);
    let value: &[u8] = match action {
        0 => &input.take::<1>(),
        1 => &input.take::<2>(),
        2 => &input.take::<4>(),
        3 => &input.take::<8>(),
        _ => &[],
    };
    let Some(place) = bytes.get_mut(from..) else { return };
    match action {
        4 => flip(place, input.byte()),
        5 => place.iter_mut().take(16).for_each(|byte| *byte = 0),
        6 => place.rotate_left(1.min(place.len())),
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

/// Header, directory, footer, samples, anywhere, or one of the sections with its checksums.
fn region(base: &BaseFile, number: usize, at: usize) -> Range<usize> {
    let whole = 0..base.bytes.len();
    if base.regions.is_empty() {
        return whole;
    }
    match number {
        // 16 bits do not reach all of a longer file.
        0 if at % 2 == 1 => base.bytes.len() / 2..base.bytes.len(),
        0 => whole,
        1 => 0..48,
        number => base.regions[(number - 2) % base.regions.len()].clone(),
    }
}
