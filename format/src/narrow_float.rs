//! Numbers rounded to the floating-point types of 16 bits, once and correctly. `half` rounds twice on some processors.

use half::{bf16, f16};

/// A binary floating-point type narrower than `f64`.
struct NarrowFloat {
    /// Bits after the binary point.
    fraction_bits: i32,
    /// The exponent of the smallest number with all its bits.
    exponent_min: i32,
    max: f64,
}

const FLOAT16: NarrowFloat = NarrowFloat { fraction_bits: 10, exponent_min: -14, max: 65504.0 };
const BFLOAT16: NarrowFloat =
    NarrowFloat { fraction_bits: 7, exponent_min: -126, max: f64::from_bits(0x47EF_E000_0000_0000) };

/// The `float16` nearest to `value`: ties to even, infinity beyond the largest.
pub fn nearest_float16(value: f64) -> f16 {
    f16::from_f64(FLOAT16.nearest(value))
}

/// The `bfloat16` nearest to `value`: ties to even, infinity beyond the largest.
pub fn nearest_bfloat16(value: f64) -> bf16 {
    bf16::from_f64(BFLOAT16.nearest(value))
}

impl NarrowFloat {
    fn nearest(&self, value: f64) -> f64 {
        if !value.is_finite() || value == 0.0 {
            return value;
        }
        let last_bit = exponent(value).max(self.exponent_min) - self.fraction_bits;
        let unit = power_of_two(last_bit);
        let nearest = (value / unit).round_ties_even() * unit;
        if nearest.abs() > self.max { f64::INFINITY.copysign(value) } else { nearest }
    }
}

/// The exponent of a finite number, at least -1023.
fn exponent(value: f64) -> i32 {
    let [.., low, high] = value.to_le_bytes();
    let biased = i32::from(high & 0x7F) << 4 | i32::from(low >> 4);
    biased - 1023
}

/// 2 to the power of -1022 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent), "the exponent of a normal number");
    f64::from_bits(u64::from(exponent.wrapping_add(1023).cast_unsigned()) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks rounding at, below and above each value and each middle between two of them, which ascend.
    fn check(values: &[f64], nearest: impl Fn(f64) -> f64) {
        let around = |value: f64| [value.next_down(), value, value.next_up()].map(&nearest);
        for pair in values.windows(2) {
            let [low, high] = *pair else { continue };
            let middle = low + (high - low) / 2.0;
            assert_eq!(around(low), [low; 3], "{low:e}");
            let [below, at, above] = around(middle);
            assert_eq!((below, above), (low, high), "{middle:e}");
            assert!(at == low || at == high);
            assert_eq!(nearest(-middle), -at);
        }
    }

    /// SUB-7
    #[test]
    fn numbers_round_to_the_nearest_value_of_16_bits() {
        let float16 = |value| nearest_float16(value).to_f64();
        let bfloat16 = |value| nearest_bfloat16(value).to_f64();
        check(&(0..0x7C00).map(|bits| f16::from_bits(bits).to_f64()).collect::<Vec<_>>(), float16);
        check(&(0..0x7F80).map(|bits| bf16::from_bits(bits).to_f64()).collect::<Vec<_>>(), bfloat16);
        // Ties go to the value whose last bit is zero.
        assert_eq!((float16(2049.0), float16(2051.0)), (2048.0, 2052.0));
        assert_eq!((bfloat16(257.0), bfloat16(259.0)), (256.0, 260.0));
        assert_eq!((FLOAT16.max, BFLOAT16.max), (f16::MAX.to_f64(), bf16::MAX.to_f64()));
        assert_eq!((float16(65519.9), float16(-65520.0)), (65504.0, f64::NEG_INFINITY));
        assert_eq!((bfloat16(f64::MAX), float16(f64::MIN_POSITIVE)), (f64::INFINITY, 0.0));
        assert!(float16(f64::NAN).is_nan() && float16(-0.0).is_sign_negative());
    }
}
