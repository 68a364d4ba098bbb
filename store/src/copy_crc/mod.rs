//! A copy and its CRC-32 in one pass: each line of memory is folded into the checksum while it is in registers for the
//! copy, so that the checksum is computed while the processor waits for the next line.
//!
//! A CRC does not change if a message is folded: 128 bytes are multiplied by a power of x, 16 at a time, and added to the
//! next 128. What is left in the end is 128 bytes and the rest of the message; crc32fast does these. The method: V. Gopal
//! et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.

use std::mem::MaybeUninit;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
mod x86;

/// Bytes that are folded at a time.
#[cfg(target_arch = "x86_64")]
const FOLD_LEN: usize = 128;
/// Fewer bytes are not worth it.
#[cfg(target_arch = "x86_64")]
const FOLDED_LEN_MIN: usize = 4 * FOLD_LEN;
/// From this length on the copy is written past the caches, by whole lines of memory: whoever uses so much, of a batch or a
/// list of samples, finds most of it in no cache anyway.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86-64 streams; tests use it everywhere"))]
const STREAMED_LEN_MIN: usize = 16 << 10;
/// Bytes of a line of memory.
#[cfg(target_arch = "x86_64")]
const LINE_LEN: usize = 64;
/// Bytes that are copied and then checked, where there is no instruction that folds: they stay in the fastest cache.
const BLOCK_LEN: usize = 16 << 10;

/// Copies `from` to `to`, and returns the copy and the CRC-32 of it. Only the bytes that were copied are in the checksum,
/// even if somebody changes `from` meanwhile.
///
/// # Panics
/// If the lengths differ.
pub fn copy_with_crc<'t>(from: &[u8], to: &'t mut [MaybeUninit<u8>]) -> (&'t mut [u8], u32) {
    assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
    let (folded_len, mut hasher) = fold(from, to);
    let (from, rest) = (&from[folded_len..], &mut to[folded_len..]);
    for (from, to) in from.chunks(BLOCK_LEN).zip(rest.chunks_mut(BLOCK_LEN)) {
        hasher.update(copy(from, to));
    }
    // SAFETY: `fold` wrote the first bytes, and the loop all others.
    (unsafe { &mut *(&raw mut *to as *mut [u8]) }, hasher.finalize())
}

/// Copies `from` to `to`, which is as long, and returns the copy.
fn copy<'t>(from: &[u8], to: &'t mut [MaybeUninit<u8>]) -> &'t [u8] {
    assert_eq!(from.len(), to.len());
    // SAFETY: both are valid for their length, which is the same, and do not overlap: one is borrowed mutably.
    unsafe { to.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    // SAFETY: it has just been written.
    unsafe { &*(&raw const *to as *const [u8]) }
}

/// Copies `from` to `to`, as [`copy_with_crc`] does: what is large past the caches.
///
/// # Panics
/// If the lengths differ.
pub fn copy_large<'t>(from: &[u8], to: &'t mut [MaybeUninit<u8>]) -> &'t [u8] {
    assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
    let streamed = stream(from, to);
    copy(&from[streamed.end..], &mut to[streamed.end..]);
    copy(&from[..streamed.start], &mut to[..streamed.start]);
    // SAFETY: all three parts have just been written.
    unsafe { &*(&raw const *to as *const [u8]) }
}

/// Copies whole lines past the caches, if there are many. Returns which bytes.
#[cfg(target_arch = "x86_64")]
fn stream(from: &[u8], to: &mut [MaybeUninit<u8>]) -> Range<usize> {
    let Some(stream_copy) = x86::stream_copy().filter(|_| from.len() >= STREAMED_LEN_MIN) else { return 0..0 };
    let start = before_line(to);
    let (from, to) = (&from[start..], &mut to[start..]);
    let len = from.len() / FOLD_LEN * FOLD_LEN;
    // SAFETY: `x86::stream_copy` returned it for this processor; both pointers are valid for `len` bytes, whole folds and
    // at least one, what is written to does not overlap what is read, and starts at a line.
    unsafe { stream_copy(from.as_ptr(), to.as_mut_ptr().cast(), len) };
    start..start + len
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(_from: &[u8], _to: &mut [MaybeUninit<u8>]) -> Range<usize> {
    0..0
}

/// Bytes before the first line of memory that starts in `to`.
#[cfg(target_arch = "x86_64")]
fn before_line(to: &[MaybeUninit<u8>]) -> usize {
    to.as_ptr().addr().wrapping_neg() % LINE_LEN
}

/// [`copy_with_crc`] to memory that was written before. On return all of it is the copy.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy_over_with_crc(from: &[u8], to: &mut [u8]) -> u32 {
    // SAFETY: `copy_with_crc` writes bytes only, so all stay initialised.
    copy_with_crc(from, unsafe { &mut *(&raw mut *to as *mut [MaybeUninit<u8>]) }).1
}

/// [`copy_with_crc`] to the end of a vector.
pub(crate) fn append_with_crc(from: &[u8], to: &mut Vec<u8>) -> u32 {
    to.reserve(from.len());
    let (_, crc) = copy_with_crc(from, &mut to.spare_capacity_mut()[..from.len()]);
    // SAFETY: these bytes were reserved, and have just been written.
    unsafe { to.set_len(to.len() + from.len()) };
    crc
}

/// Copies bytes from the start, at least all whole folds but one, and returns how many that are, with their checksum.
#[cfg(target_arch = "x86_64")]
fn fold(from: &[u8], to: &mut [MaybeUninit<u8>]) -> (usize, crc32fast::Hasher) {
    let mut hasher = crc32fast::Hasher::new();
    let streams = from.len() >= STREAMED_LEN_MIN;
    let Some(fold_copy) = x86::fold_copy(streams).filter(|_| from.len() >= FOLDED_LEN_MIN) else {
        return (0, hasher);
    };
    let head_len = if streams { before_line(to) } else { 0 };
    hasher.update(copy(&from[..head_len], &mut to[..head_len]));
    let (from, to) = (&from[head_len..], &mut to[head_len..]);
    let len = from.len() / FOLD_LEN * FOLD_LEN;
    // SAFETY: `x86::fold_copy` returned it for this processor; both pointers are valid for `len` bytes, whole folds and
    // at least one, and what is written to does not overlap what is read. If it streams, it starts at a line.
    let left = unsafe { fold_copy(from.as_ptr(), to.as_mut_ptr().cast(), len, !hasher.finalize()) };
    // The register is in the folded bytes already.
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    hasher.update(&left);
    (head_len + len, hasher)
}

#[cfg(not(target_arch = "x86_64"))]
fn fold(_from: &[u8], _to: &mut [MaybeUninit<u8>]) -> (usize, crc32fast::Hasher) {
    (0, crc32fast::Hasher::new())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_the_checksum_of_crc32fast_for_every_length_and_alignment() {
        let bytes: Vec<u8> = (0..2000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        let mut out = vec![0; 2000];
        for start in 0..20 {
            for len in 0..1200 {
                let from = &bytes[start..start + len];
                assert_eq!(copy_over_with_crc(from, &mut out[..len]), crc32fast::hash(from), "{start}, {len}");
                assert_eq!(&out[..len], from);
            }
        }
    }

    #[test]
    fn from_where_copies_are_aligned_on_every_alignment_gives_the_same() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[1]).collect();
        let mut out = vec![0; 20_000];
        for start in 0..64 {
            for len in [STREAMED_LEN_MIN - 1, STREAMED_LEN_MIN, STREAMED_LEN_MIN + 127 + start] {
                let from = &bytes[7..7 + len];
                let to = &mut out[start..start + len];
                assert_eq!(copy_over_with_crc(from, to), crc32fast::hash(from), "{start}, {len}");
                assert_eq!(to, from);
                let mut to = vec![MaybeUninit::new(0); 20_000];
                assert_eq!(copy_large(from, &mut to[start..start + len]), from, "{start}, {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_copied_and_checked(from in proptest::collection::vec(any::<u8>(), 0..70_000), kept in 0..100_usize) {
            let mut to = vec![7; kept];
            prop_assert_eq!(append_with_crc(&from, &mut to), crc32fast::hash(&from));
            prop_assert_eq!(&to[kept..], &from[..]);
            prop_assert!(to[..kept].iter().all(|byte| *byte == 7));
        }
    }
}
