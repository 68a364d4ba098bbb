//! Every sample is equally likely at every position, for `full` and for `chunked`, also in small datasets, where a weak
//! network or a missing rotation shows first.
//!
//! Over many epochs, the test counts how often each ordinal is at each position, and compares the counts with their
//! mean by a chi-squared sum. The epochs are fixed, so a run cannot fail by chance. Each test prints its figures as z:
//! how many standard deviations the sum is above its expectation.
//!
//! *Full* is compared with a uniform permutation, whose rows and columns of counts have fixed sums: all cells together,
//! times (n - 1) / n, have (n - 1)^2 degrees of freedom. By chance, z exceeds 4 once in 30,000 times.
//!
//! *Chunked* moves neighbours together, so its positions depend on each other and that variance does not apply. A
//! single position is a plain multinomial of n - 1 degrees of freedom, independent of this: the worst position is
//! printed. By chance, z exceeds 5 once in 3,000,000 times; there are about 1,000 positions here.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and prints what it measured")]

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_plan::{ExtentsBuilder, Order, Plan, PlanSpec};

use crate::naive;

const EPOCHS: u64 = 30_000;

/// How often each ordinal is at each position.
struct Counts {
    /// One row a position.
    rows: Vec<Vec<u32>>,
    expected: f64,
}

impl Counts {
    fn of(sample_count: u64, epoch: impl Fn(u64) -> Vec<u64>) -> Self {
        let side = usize::try_from(sample_count).unwrap();
        let mut rows = vec![vec![0; side]; side];
        for ordinals in (0..EPOCHS).map(epoch) {
            assert_eq!(ordinals.len(), side);
            for (row, ordinal) in rows.iter_mut().zip(ordinals) {
                row[usize::try_from(ordinal).unwrap()] += 1;
            }
        }
        Self { rows, expected: EPOCHS as f64 / sample_count as f64 }
    }

    fn side(&self) -> f64 {
        self.rows.len() as f64
    }

    fn chi_of_row(&self, row: &[u32]) -> f64 {
        row.iter().map(|&count| (f64::from(count) - self.expected).powi(2) / self.expected).sum()
    }

    /// z of the whole table, compared with epochs that are uniform permutations.
    fn z_of_permutations(&self) -> f64 {
        let chi: f64 = self.rows.iter().map(|row| self.chi_of_row(row)).sum();
        z(chi * (self.side() - 1.0) / self.side(), (self.side() - 1.0).powi(2))
    }

    /// The largest z of a single position.
    fn z_of_worst_position(&self) -> f64 {
        let z_of_row = |row: &Vec<u32>| z(self.chi_of_row(row), self.side() - 1.0);
        self.rows.iter().map(z_of_row).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The normal value of a chi-squared sum by Wilson and Hilferty: its cube root is nearly normal, even for few degrees
/// of freedom.
fn z(chi: f64, freedom: f64) -> f64 {
    let variance = 2.0 / (9.0 * freedom);
    ((chi / freedom).cbrt() - (1.0 - variance)) / variance.sqrt()
}

fn counts(order: Order, sizes: &[u64], lanes: u64, group: u32) -> Counts {
    let group = NonZeroU32::new(group).unwrap();
    let mut builder = ExtentsBuilder::new(4096);
    for &size in sizes {
        builder.chunk(size, 1).unwrap();
    }
    let extents = Arc::new(builder.finish());
    Counts::of(extents.sample_count(), |epoch| {
        let extents = Arc::clone(&extents);
        let spec = PlanSpec { extents, seed: 7, epoch, fingerprint: 5, order, lanes, group };
        Plan::new(spec).unwrap().ordinals_from(0).collect()
    })
}

/// PLN-4
#[test]
fn full_puts_every_sample_at_every_position_equally_often() {
    for sample_count in (2..=17).chain([33, 65, 100]) {
        let z = counts(Order::Full, &[sample_count], 1, 1).z_of_permutations();
        println!("full, {sample_count} samples: z = {z:.1}");
        assert!(z < 4.0, "{sample_count} samples: z = {z:.1}");
    }
}

/// PLN-4
#[test]
fn the_test_detects_that_four_rounds_are_not_enough() {
    for sample_count in [12, 17, 33] {
        let four_rounds = |epoch| naive::feistel(sample_count, naive::key(&[7, epoch, 5]), 4);
        let z = Counts::of(sample_count, four_rounds).z_of_permutations();
        println!("4 rounds, {sample_count} samples: z = {z:.1}");
        assert!(z > 6.0, "{sample_count} samples: z = {z:.1}");
    }
}

/// PLN-5
#[test]
fn chunked_puts_every_sample_at_every_position_equally_often() {
    let shapes: [&[u64]; 9] = [
        &[6],
        &[2, 4],
        &[1, 1, 1, 1, 1, 1],
        &[12],
        &[4, 4, 4],
        &[1, 10, 1],
        &[3, 2, 4, 1, 2],
        &[7; 5],
        &[40, 1, 1, 7, 15],
    ];
    for sizes in shapes {
        let sample_count = sizes.iter().sum();
        for lanes in [1, 2, 3, 5, 11, sample_count] {
            if lanes <= sample_count {
                let z = counts(Order::Chunked, sizes, lanes, 1).z_of_worst_position();
                println!("chunked, extents of {sizes:?}, {lanes} lanes: z = {z:.1}");
                assert!(z < 5.0, "extents of {sizes:?}, {lanes} lanes: z = {z:.1}");
            }
        }
    }
}

/// PLN-5
#[test]
fn chunked_puts_every_sample_at_every_position_equally_often_for_every_group() {
    let shapes: [(&[u64], u32); 7] = [
        (&[1, 1, 1, 1, 1, 1], 2),
        (&[1, 1, 1, 1, 1], 5),
        (&[4, 4, 4], 2),
        (&[3, 2, 4, 1, 2], 2),
        (&[3, 2, 4, 1, 2], u32::MAX),
        (&[7; 5], 3),
        (&[40, 1, 1, 7, 15], 4),
    ];
    for (sizes, group) in shapes {
        let sample_count = sizes.iter().sum();
        for lanes in [1, 2, 3, 5, 11, sample_count] {
            if lanes <= sample_count {
                let z = counts(Order::Chunked, sizes, lanes, group).z_of_worst_position();
                println!("chunked, extents of {sizes:?} in groups of {group}, {lanes} lanes: z = {z:.1}");
                assert!(z < 5.0, "extents of {sizes:?} in groups of {group}, {lanes} lanes: z = {z:.1}");
            }
        }
    }
}

/// PLN-5
#[test]
fn the_test_detects_a_ring_that_is_always_cut_at_an_extent() {
    // As many lanes as samples, so that no phase hides the missing rotation.
    let without_turn = |epoch| {
        let mut model = naive::Lanes::new(&[0, 1, 11, 12], 7, epoch, 5, 12);
        model.turn = 0;
        (0..12).map(|position| model.at(position)).collect()
    };
    let z = Counts::of(12, without_turn).z_of_worst_position();
    println!("no turn: z = {z:.1}");
    assert!(z > 10.0, "z = {z:.1}");
}
