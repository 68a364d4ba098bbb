//! A number of an expression, exactly as written: a decimal of any length up to a bound. order.md: SUB-4, SUB-6, SUB-9.
//!
//! It meets integers through a [`IntegerCut`], which is exact; it meets floating-point values as the nearest `f64`.

use std::cmp::Ordering;
use std::fmt;

/// Most digits of a number, and its largest exponent.
const MAX_DIGITS: usize = 400;

/// Integers of more digits are written with an exponent.
const PLAIN_DIGITS: i32 = 20;

/// 0.d1 d2 d3 ... times 10 to the power of `point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    negative: bool,
    /// 0 to 9 each, the first and the last not 0; none for zero.
    digits: Vec<u8>,
    point: i32,
}

/// The position of a number among the integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerCut {
    /// The largest integer that is at most the number.
    floor: i128,
    /// The number is that integer.
    exact: bool,
}

impl IntegerCut {
    /// The largest integer below the number.
    pub(super) fn last_below(self) -> i128 {
        if self.exact { self.floor.saturating_sub(1) } else { self.floor }
    }

    /// The largest integer that is the number or below it.
    pub(super) fn last_at_most(self) -> i128 {
        self.floor
    }

    /// The smallest integer above the number.
    pub(super) fn first_above(self) -> i128 {
        self.floor.saturating_add(1)
    }

    /// The smallest integer that is the number or above it.
    pub(super) fn first_at_least(self) -> i128 {
        self.last_below().saturating_add(1)
    }

    /// A position further from zero than all integers that are compared, so it need not be exact.
    fn far(negative: bool) -> Self {
        Self { floor: if negative { i128::MIN } else { i128::MAX }, exact: true }
    }

    /// The position of a number with the integer part `whole`, and a fraction if `rest`; below zero if `negative`.
    fn at(whole: i128, rest: bool, negative: bool) -> Self {
        let floor = if negative { -whole - i128::from(rest) } else { whole };
        Self { floor, exact: !rest }
    }
}

impl Number {
    /// The number of a text of the form `-12.5e-3`; sign, fraction and exponent may be absent.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.parse::<i32>().ok().filter(|exponent| exponent.unsigned_abs() as usize <= MAX_DIGITS);
        let (Some(exponent), true) = (exponent, whole.len() + fraction.len() <= MAX_DIGITS) else {
            return Err(format!("number of more than {MAX_DIGITS} digits, or with an exponent above {MAX_DIGITS},"));
        };
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let point = digit_count(whole.len()) + exponent;
        Ok(Self::of(negative, &digits, point))
    }

    fn of(negative: bool, digits: &[u8], point: i32) -> Self {
        let Some(first) = digits.iter().position(|&digit| digit != 0) else {
            return Self { negative: false, digits: Vec::new(), point: 0 };
        };
        let last = digits.iter().rposition(|&digit| digit != 0).unwrap_or(first);
        let point = point - digit_count(first);
        Self { negative, digits: digits[first..=last].to_vec(), point }
    }

    /// Its position among the integers.
    pub(super) fn cut(&self) -> IntegerCut {
        let whole_len = usize::try_from(self.point).unwrap_or(0);
        let mut whole = 0_i128;
        for digit in self.digits.iter().copied().chain(std::iter::repeat(0)).take(whole_len) {
            match whole.checked_mul(10).and_then(|whole| whole.checked_add(digit.into())) {
                Some(longer) => whole = longer,
                None => return IntegerCut::far(self.negative),
            }
        }
        IntegerCut::at(whole, self.digits.len() > whole_len, self.negative)
    }

    /// The position of 2^64 times the number among the integers.
    pub(super) fn cut_of_fraction(&self) -> IntegerCut {
        let Ok(zeros) = usize::try_from(-self.point) else {
            return IntegerCut::far(self.negative);
        };
        let mut fraction = vec![0; zeros];
        fraction.extend(&self.digits);
        let whole = (0..64).fold(0_i128, |whole, _| whole << 1 | i128::from(double(&mut fraction)));
        IntegerCut::at(whole, fraction.iter().any(|&digit| digit != 0), self.negative)
    }

    /// The nearest `f64`.
    pub(super) fn nearest(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let nearest = format!("{sign}0.0{}e{}", shown(&self.digits), self.point + 1).parse();
        debug_assert!(nearest.is_ok(), "digits with an exponent are a number");
        nearest.unwrap_or(f64::NAN)
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        let zero = |number: &Self| number.digits.is_empty();
        match (zero(self), zero(other)) {
            (false, false) => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
            (zero, other_zero) => other_zero.cmp(&zero),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (negative, other_negative) => other_negative.cmp(&negative),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = digit_count(self.digits.len());
        let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
        formatter.write_str(if self.negative { "-" } else { "" })?;
        let split = |at: i32| self.digits.split_at(usize::try_from(at.min(len)).unwrap_or(0));
        match self.point {
            _ if len == 0 => formatter.write_str("0"),
            point @ 1..=PLAIN_DIGITS if point >= len => {
                write!(formatter, "{}{}", shown(&self.digits), zeros(point - len))
            }
            point @ 1..=PLAIN_DIGITS => {
                let (whole, fraction) = split(point);
                write!(formatter, "{}.{}", shown(whole), shown(fraction))
            }
            point @ -5..=0 => write!(formatter, "0.{}{}", zeros(-point), shown(&self.digits)),
            point => {
                let (whole, fraction) = split(1);
                let dot = if fraction.is_empty() { "" } else { "." };
                write!(formatter, "{}{dot}{}e{}", shown(whole), shown(fraction), point - 1)
            }
        }
    }
}

/// A number of digits, as the type of exponents.
fn digit_count(count: usize) -> i32 {
    debug_assert!(count <= MAX_DIGITS, "`parse` refuses more digits");
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most `MAX_DIGITS`")]
    let count = count as i32;
    count
}

/// Doubles the fraction 0.d1 d2 d3 ...; whether it reached 1, which is then taken off.
fn double(digits: &mut [u8]) -> bool {
    let carry = digits.iter_mut().rev().fold(0, |carry, digit| {
        let doubled = *digit * 2 + carry;
        *digit = doubled % 10;
        doubled / 10
    });
    carry == 1
}

fn shown(digits: &[u8]) -> String {
    digits.iter().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    /// SUB-6
    #[test]
    fn a_decimal_is_cut_between_integers_without_rounding() {
        let cut = |text: &str| {
            let cut = number(text).cut();
            (cut.floor, cut.exact)
        };
        assert_eq!([cut("0"), cut("-0.0"), cut("7"), cut("-7")], [(0, true), (0, true), (7, true), (-7, true)]);
        assert_eq!(
            [cut("2.5"), cut("-2.5"), cut("0.1"), cut("-0.001")],
            [(2, false), (-3, false), (0, false), (-1, false)]
        );
        assert_eq!([cut("1.50e1"), cut("25e-1"), cut("1200e-2")], [(15, true), (2, false), (12, true)]);
        // An f64 would take these for 2^64.
        assert_eq!(cut("18446744073709551615"), (u64::MAX.into(), true));
        assert_eq!(cut("18446744073709551615.0000000000000000000000001"), (u64::MAX.into(), false));
        assert_eq!([cut("1e39"), cut("-1e400")], [(i128::MAX, true), (i128::MIN, true)]);
    }

    /// SUB-9
    #[test]
    fn a_fraction_is_cut_between_the_hashes_without_rounding() {
        let cut = |text: &str| {
            let cut = number(text).cut_of_fraction();
            (cut.floor, cut.exact)
        };
        assert_eq!([cut("0"), cut("0.5"), cut("0.25")], [(0, true), (1 << 63, true), (1 << 62, true)]);
        assert_eq!(cut("0.9"), (16_602_069_666_338_596_454, false));
        assert_eq!(cut("0.1"), (1_844_674_407_370_955_161, false));
        assert_eq!(cut("1e-300"), (0, false));
        assert_eq!(cut("-0.5"), (-(1 << 63), true));
        assert!(cut("1").0 > u64::MAX.into() && cut("-3").0 < -1);
        // 2^-64, and a hair less.
        assert_eq!(cut("5.42101086242752217003726400434970855712890625e-20"), (1, true));
        assert_eq!(cut("5.42101086242752217003726400434970855712890624e-20"), (0, false));
    }

    #[test]
    fn numbers_are_shown_in_one_spelling() {
        for (text, expected) in [
            ("007", "7"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("0.0625", "0.0625"),
            ("1e3", "1000"),
            ("12e-9", "1.2e-8"),
            ("-3e25", "-3e25"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(number(text).to_string(), expected);
        }
        assert!(Number::parse("1e401").is_err() && Number::parse(&"1".repeat(401)).is_err());
        assert!(Number::parse("1e99999999999").is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back_and_keep_their_order(a in -1e25..1e25, b in -1e-6..1e-6, c: i64, d: u64) {
            let values = [format!("{a}"), format!("{b:e}"), format!("{c}"), format!("{d}.5")];
            for text in &values {
                let one = number(text);
                prop_assert_eq!(&number(&one.to_string()), &one);
                prop_assert_eq!(one.nearest(), text.parse::<f64>().unwrap());
                for other in &values {
                    let nearest = text.parse::<f64>().unwrap().partial_cmp(&other.parse().unwrap()).unwrap();
                    prop_assert!(nearest.is_eq() || one.cmp(&number(other)) == nearest);
                }
            }
        }
    }
}
