//! The instructions of x86-64 that fold: 64 bytes at a time (AVX-512) or 32 (AVX2), multiplied without carry.

use std::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_clmulepi64_epi128, _mm256_loadu_si256,
    _mm256_set_epi64x, _mm256_storeu_si256, _mm256_stream_si256, _mm256_xor_si256, _mm512_clmulepi64_epi128,
    _mm512_loadu_si512, _mm512_set_epi64, _mm512_storeu_si512, _mm512_stream_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};
use std::array;

use super::{FOLD_LEN, LINE_LEN};

/// x^(1024 + 32) and x^(1024 - 32) modulo the polynomial, bits reversed: they move 16 bytes by 128.
const BY_FOLD: (i64, i64) = (0x0001_E88E_F372, 0x0001_4A7F_E880);
/// How far ahead memory is fetched: the next page, before which the processor's own prefetcher stops. To fetch within its
/// reach is slower than not to fetch.
const AHEAD_LEN: usize = 4096;
/// The truth table of a ^ b ^ c.
const XOR_OF_THREE: i32 = 0x96;

/// Copies bytes and returns 128 whose CRC from a register of 0 is theirs from the given one.
///
/// # Safety
/// - The first pointer is valid for reads and the second for writes of that many bytes, and they do not overlap.
/// - The number is a multiple of 128 and not 0.
/// - What streams writes to a multiple of 64.
/// - The processor has the instructions: [`fold_copy`] returned the function.
pub(super) type FoldCopy = unsafe fn(*const u8, *mut u8, usize, u32) -> [u8; FOLD_LEN];

/// The fastest one that this processor has. With registers of 16 bytes, two passes are faster than one. What streams
/// writes past the caches: the processor need not fetch a line before it writes all of it.
pub(super) fn fold_copy(streams: bool) -> Option<FoldCopy> {
    if !is_x86_feature_detected!("vpclmulqdq") {
        None
    } else if is_x86_feature_detected!("avx512f") {
        Some(if streams { fold_copy_512::<true> } else { fold_copy_512::<false> })
    } else if is_x86_feature_detected!("avx2") {
        Some(if streams { fold_copy_256::<true> } else { fold_copy_256::<false> })
    } else {
        None
    }
}

/// Copies bytes past the caches.
///
/// # Safety
/// As [`FoldCopy`], for one that streams.
pub(super) type StreamCopy = unsafe fn(*const u8, *mut u8, usize);

/// The one that this processor has.
pub(super) fn stream_copy() -> Option<StreamCopy> {
    is_x86_feature_detected!("avx").then_some(stream_copy_256 as StreamCopy)
}

/// Fetches the 128 bytes that are copied a few folds later, if there are that many: what follows a short sample in memory
/// is mostly not the next one.
fn fetch_ahead(from: *const u8, at: usize, len: usize) {
    if at + AHEAD_LEN >= len {
        return;
    }
    for line in 0..FOLD_LEN / LINE_LEN {
        // SAFETY: a prefetch reads nothing and cannot fail, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + AHEAD_LEN + LINE_LEN * line).cast()) };
    }
}

/// # Safety
/// As [`FoldCopy`].
#[target_feature(enable = "vpclmulqdq,avx512f")]
unsafe fn fold_copy_512<const STREAMS: bool>(
    from: *const u8,
    to: *mut u8,
    len: usize,
    register: u32,
) -> [u8; FOLD_LEN] {
    let copied = |at: usize| -> [__m512i; FOLD_LEN / 64] {
        array::from_fn(|i| {
            let at = at + 64 * i;
            // SAFETY: the 128 bytes from `at` on are within `len`, as both calls below have it, and so are these 64.
            let part = unsafe { _mm512_loadu_si512(from.wrapping_add(at).cast()) };
            let to = to.wrapping_add(at).cast();
            if STREAMS {
                // SAFETY: as above, and a copy that streams starts at a line.
                unsafe { _mm512_stream_si512(to, part) };
            } else {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(to, part) };
            }
            part
        })
    };
    let (low_by, high_by) = BY_FOLD;
    let by_fold = _mm512_set_epi64(high_by, low_by, high_by, low_by, high_by, low_by, high_by, low_by);
    let mut state = copied(0);
    state[0] = _mm512_xor_si512(state[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, i64::from(register)));
    for at in (FOLD_LEN..len).step_by(FOLD_LEN) {
        fetch_ahead(from, at, len);
        for (state, part) in state.iter_mut().zip(copied(at)) {
            let low = _mm512_clmulepi64_epi128::<0x00>(*state, by_fold);
            let high = _mm512_clmulepi64_epi128::<0x11>(*state, by_fold);
            *state = _mm512_ternarylogic_epi64::<XOR_OF_THREE>(low, high, part);
        }
    }
    if STREAMS {
        // Other threads may be told of the copy as soon as this returns.
        _mm_sfence();
    }
    let mut left = [0; FOLD_LEN];
    for (out, part) in left.chunks_exact_mut(64).zip(state) {
        // SAFETY: it has 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), part) };
    }
    left
}

/// # Safety
/// As [`FoldCopy`].
#[target_feature(enable = "vpclmulqdq,avx2")]
unsafe fn fold_copy_256<const STREAMS: bool>(
    from: *const u8,
    to: *mut u8,
    len: usize,
    register: u32,
) -> [u8; FOLD_LEN] {
    let copied = |at: usize| -> [__m256i; FOLD_LEN / 32] {
        array::from_fn(|i| {
            let at = at + 32 * i;
            // SAFETY: the 128 bytes from `at` on are within `len`, as both calls below have it, and so are these 32.
            let part = unsafe { _mm256_loadu_si256(from.wrapping_add(at).cast()) };
            let to = to.wrapping_add(at).cast();
            if STREAMS {
                // SAFETY: as above, and a copy that streams starts at a line.
                unsafe { _mm256_stream_si256(to, part) };
            } else {
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(to, part) };
            }
            part
        })
    };
    let by_fold = _mm256_set_epi64x(BY_FOLD.1, BY_FOLD.0, BY_FOLD.1, BY_FOLD.0);
    let mut state = copied(0);
    state[0] = _mm256_xor_si256(state[0], _mm256_set_epi64x(0, 0, 0, i64::from(register)));
    for at in (FOLD_LEN..len).step_by(FOLD_LEN) {
        fetch_ahead(from, at, len);
        for (state, part) in state.iter_mut().zip(copied(at)) {
            let low = _mm256_clmulepi64_epi128::<0x00>(*state, by_fold);
            let high = _mm256_clmulepi64_epi128::<0x11>(*state, by_fold);
            *state = _mm256_xor_si256(_mm256_xor_si256(low, high), part);
        }
    }
    if STREAMS {
        // Other threads may be told of the copy as soon as this returns.
        _mm_sfence();
    }
    let mut left = [0; FOLD_LEN];
    for (out, part) in left.chunks_exact_mut(32).zip(state) {
        // SAFETY: it has 32 bytes.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), part) };
    }
    left
}

/// # Safety
/// As [`StreamCopy`].
#[target_feature(enable = "avx")]
unsafe fn stream_copy_256(from: *const u8, to: *mut u8, len: usize) {
    for at in (0..len).step_by(32) {
        if at.is_multiple_of(FOLD_LEN) {
            fetch_ahead(from, at, len);
        }
        // SAFETY: `len` is a multiple of 128, so the 32 bytes from `at` on are within it.
        let part = unsafe { _mm256_loadu_si256(from.wrapping_add(at).cast()) };
        // SAFETY: as above, and `to` starts at a line.
        unsafe { _mm256_stream_si256(to.wrapping_add(at).cast(), part) };
    }
    // Other threads may be told of the copy as soon as this returns.
    _mm_sfence();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processor of the tests uses the widest only, so each is called by itself.
    #[test]
    fn every_width_folds_to_the_checksum_of_crc32fast() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        let mut folders: Vec<FoldCopy> = Vec::new();
        if is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx2") {
            folders.extend([fold_copy_256::<false> as FoldCopy, fold_copy_256::<true>]);
        }
        if is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx512f") {
            folders.extend([fold_copy_512::<false> as FoldCopy, fold_copy_512::<true>]);
        }
        if folders.len() < 4 {
            eprintln!("this processor has {} of the 4 ways to fold: the others are not tested", folders.len());
        }
        for fold_copy in folders {
            for (start, folds) in [(0, 1), (1, 2), (33, 5), (7, 500)] {
                let from = &bytes[start..start + folds * FOLD_LEN];
                let mut room = vec![0; from.len() + LINE_LEN];
                let line = room.as_ptr().addr().wrapping_neg() % LINE_LEN;
                let to = &mut room[line..line + from.len()];
                // The register of what came before: nothing, or some bytes.
                let before = crc32fast::hash(&bytes[..start]);
                // SAFETY: the processor has the instructions, and both have that many bytes, whole folds, from a
                // line on.
                let left = unsafe { fold_copy(from.as_ptr(), to.as_mut_ptr(), from.len(), !before) };
                let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
                hasher.update(&left);
                let all = crc32fast::hash(&bytes[..start + from.len()]);
                assert_eq!(hasher.finalize(), all, "{start}, {folds}");
                assert_eq!(to, from);
            }
        }
    }
}
