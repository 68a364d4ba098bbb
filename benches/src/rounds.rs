//! Rounds: a measurement between two baselines, several times, and the median.

use serde::Serialize;

use crate::is_test_run;

/// Rounds of a measured run.
const ROUNDS: usize = 5;

/// One measurement, and the baselines right before and after it.
#[derive(Debug)]
pub struct Round<B, T> {
    before: B,
    measured: T,
    after: B,
}

/// Rounds of one thing.
#[derive(Debug)]
pub struct Rounds<B, T>(Vec<Round<B, T>>);

/// The same number of several rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; of an even count the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All, in the order of the rounds.
    pub rounds: Vec<f64>,
}

/// The number of rounds to make.
#[must_use]
pub fn round_count() -> usize {
    let asked = std::env::var("GRAINSTORE_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok());
    if is_test_run() { 1 } else { asked.unwrap_or(ROUNDS).max(1) }
}

/// Measures round by round, `baseline` before the first and after each. `measure` receives the round's number.
pub fn bracketed<B: Clone, T>(mut baseline: impl FnMut() -> B, mut measure: impl FnMut(u64) -> T) -> Rounds<B, T> {
    let mut rounds = Vec::new();
    let mut before = baseline();
    for number in (0..).take(round_count()) {
        let measured = measure(number);
        let after = baseline();
        rounds.push(Round { before, measured, after: after.clone() });
        before = after;
    }
    Rounds(rounds)
}

impl<B, T> Rounds<B, T> {
    /// A number of the measured thing. `None` where a round lacks it.
    pub fn spread(&self, number: impl Fn(&T) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.0.iter().map(|round| number(&round.measured)))
    }

    /// A number of the measured thing, divided by the mean of the baselines before and after. `None` where a round
    /// lacks one of them.
    pub fn ratio(&self, number: impl Fn(&T) -> f64, device: impl Fn(&B) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.0.iter().map(|round| {
            let mean = f64::midpoint(device(&round.before)?, device(&round.after)?);
            Some(number(&round.measured) / mean)
        }))
    }

    /// A number of the baselines: first, then after each round.
    pub fn device(&self, number: impl Fn(&B) -> Option<f64>) -> Option<Spread> {
        let first = self.0.first().map(|round| &round.before);
        Spread::of(first.into_iter().chain(self.0.iter().map(|round| &round.after)).map(number))
    }

    /// The measurements, round by round.
    pub fn measured(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|round| &round.measured)
    }
}

impl Spread {
    /// The spread of these numbers; `None` if one is missing, or there are none.
    pub fn of(rounds: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let rounds: Vec<f64> = rounds.into_iter().collect::<Option<_>>()?;
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median, min, max, rounds })
    }

    /// The spread of one number.
    #[must_use]
    pub fn once(number: f64) -> Self {
        Self { median: number, min: number, max: number, rounds: vec![number] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(numbers: &[(f64, f64, f64)]) -> Rounds<f64, f64> {
        Rounds(numbers.iter().map(|&(before, measured, after)| Round { before, measured, after }).collect())
    }

    #[test]
    fn a_ratio_is_taken_to_the_mean_of_both_neighbours() {
        let rounds = rounds(&[(10.0, 9.0, 20.0), (20.0, 30.0, 20.0), (20.0, 20.0, 20.0)]);
        let ratio = rounds.ratio(|&measured| measured, |&device| Some(device)).unwrap();
        assert_eq!(ratio, Spread { median: 1.0, min: 0.6, max: 1.5, rounds: vec![0.6, 1.5, 1.0] });
        let device = rounds.device(|&device| Some(device)).unwrap();
        assert_eq!(device.rounds, [10.0, 20.0, 20.0, 20.0]);
    }

    #[test]
    fn a_round_without_a_number_gives_no_spread_of_the_others() {
        assert_eq!(Spread::of([Some(1.0), None, Some(3.0)]), None);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([Some(1.0), Some(4.0)]).unwrap().median, 2.5);
    }

    #[test]
    fn each_thing_is_measured_between_two_baselines() {
        let calls = std::cell::RefCell::new(Vec::new());
        let rounds = bracketed(|| calls.borrow_mut().push("baseline"), |_| calls.borrow_mut().push("measured"));
        assert_eq!(rounds.measured().count(), 1, "a test run makes one round");
        assert_eq!(*calls.borrow(), ["baseline", "measured", "baseline"]);
    }
}
