//! The orders of an epoch as order.md defines them, line by line: slow, obvious, and without any code of the crate. The
//! hard-coded epochs in `model.rs` were computed independently of this code.
#![allow(dead_code, clippy::unwrap_used, reason = "a fuzz target uses its part; a test may fail")]

use std::collections::HashMap;

pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

pub(crate) fn key(parts: &[u64]) -> u64 {
    let mut h = 0;
    for part in parts {
        h = mix(h ^ part);
    }
    h
}

pub(crate) fn below(k: u64, i: u64, n: u64) -> u64 {
    u64::try_from((u128::from(key(&[k, i])) * u128::from(n)) >> 64).unwrap()
}

pub(crate) fn shuffled(k: u64, n: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    for i in (1..n).rev() {
        let j = below(k, i, i + 1);
        order.swap(usize(i), usize(j));
    }
    order
}

/// The first ordinals of the extents, from the (sample count, last stored length) of every chunk.
pub(crate) fn first(chunks: &[(u64, u64)], chunk_size: u64) -> Vec<u64> {
    let mut ranges = Vec::new();
    let mut a = 0;
    for &(sample_count, last_stored_len) in chunks {
        let b = a + sample_count;
        if b > a && last_stored_len >= 8 * chunk_size {
            ranges.push(a..b - 1);
            ranges.push(b - 1..b);
        } else {
            ranges.push(a..b);
        }
        a = b;
    }
    let mut first = vec![0];
    for range in ranges {
        for ordinal in range.clone() {
            if ordinal > range.start && (ordinal - range.start) % 65_536 == 0 {
                first.push(ordinal);
            }
        }
        if !range.is_empty() {
            first.push(range.end);
        }
    }
    first
}

/// The ordinal at every position of the full order.
pub(crate) fn full(n: u64, seed: u64, epoch: u64, fingerprint: u64) -> Vec<u64> {
    feistel(n, key(&[seed, epoch, fingerprint]), 8)
}

/// The full order with another number of rounds, to show the effect of fewer rounds.
pub(crate) fn feistel(n: u64, k: u64, rounds: u64) -> Vec<u64> {
    let mut b = 6;
    while 1 << b < n {
        b += 2;
    }
    let h = b / 2;
    let pass = |x: u64| {
        let (mut left, mut right) = (x >> h, x % (1 << h));
        for i in 0..rounds {
            (left, right) = (right, left ^ (mix(key(&[k, 6, i]) ^ right) >> (64 - h)));
        }
        (left << h) | right
    };
    let at = |p| {
        let mut x = pass(p);
        while x >= n {
            x = pass(x);
        }
        x
    };
    (0..n).map(at).collect()
}

/// The extents of every unit, of members with these numbers of extents.
pub(crate) fn units(members: &[usize], group: usize) -> Vec<Vec<usize>> {
    let mut units = Vec::new();
    let mut number = 0;
    for &extent_count in members {
        for e in 0..extent_count {
            if e % group == 0 {
                units.push(Vec::new());
            }
            units.last_mut().unwrap().push(number);
            number += 1;
        }
    }
    units
}

/// What a subset has of extents and units: extents of indices, without empty ones, numbered again.
pub(crate) fn within(first: &[u64], units: &[Vec<usize>], wanted: &[u64]) -> (Vec<u64>, Vec<Vec<usize>>) {
    let mut first_of_subset = vec![0];
    let mut units_of_subset = Vec::new();
    for unit in units {
        let mut extents = Vec::new();
        for &e in unit {
            let count = wanted.iter().filter(|&&ordinal| first[e] <= ordinal && ordinal < first[e + 1]).count();
            if count > 0 {
                extents.push(first_of_subset.len() - 1);
                first_of_subset.push(first_of_subset.last().unwrap() + count as u64);
            }
        }
        if !extents.is_empty() {
            units_of_subset.push(extents);
        }
    }
    (first_of_subset, units_of_subset)
}

/// The chunked order. Signed numbers, so that a shift may be negative.
pub(crate) struct Lanes {
    first: Vec<i64>,
    n: i64,
    lanes: i64,
    k: u64,
    /// The extents in the order of the ring.
    ring: Vec<usize>,
    start: Vec<i64>,
    pub(crate) turn: i64,
    order_of_piece: HashMap<i64, Vec<u64>>,
}

impl Lanes {
    /// Every extent is a unit.
    pub(crate) fn new(first: &[u64], seed: u64, epoch: u64, fingerprint: u64, lanes: u64) -> Self {
        let units: Vec<Vec<usize>> = (0..first.len() - 1).map(|e| vec![e]).collect();
        Self::of_units(first, &units, key(&[seed, epoch, fingerprint]), lanes)
    }

    pub(crate) fn of_units(first: &[u64], units: &[Vec<usize>], k: u64, lanes: u64) -> Self {
        let n = *first.last().unwrap();
        let first: Vec<i64> = first.iter().map(|&ordinal| signed(ordinal)).collect();
        let shuffled_units = shuffled(key(&[k, 1]), units.len() as u64);
        let ring: Vec<usize> = shuffled_units.into_iter().flat_map(|i| units[usize(i)].clone()).collect();
        let mut start = vec![0];
        for &e in &ring {
            start.push(start.last().unwrap() + first[e + 1] - first[e]);
        }
        let turn = signed(below(key(&[k, 2]), 0, n));
        Self { first, n: signed(n), lanes: signed(lanes), k, ring, start, turn, order_of_piece: HashMap::new() }
    }

    fn lane(&self, l: i64) -> (i64, i64, i64) {
        let (q, x) = (self.n / self.lanes, self.n % self.lanes);
        let a = l * q + l.min(x);
        let b = a + q + i64::from(l < x);
        (a, b, a + signed(below(key(&[self.k, 3]), l as u64, (b - a) as u64)))
    }

    pub(crate) fn at(&mut self, p: u64) -> u64 {
        let p = signed(p);
        let (a, b, begin) = self.lane(p % self.lanes);
        let place = a + (begin - a + p / self.lanes) % (b - a);
        let on_ring = (place + self.turn) % self.n;
        let rank = self.start.iter().position(|&start| start > on_ring).unwrap() - 1;
        let shift = place - on_ring;
        let (mut low, mut high) = (a.max(self.start[rank] + shift), b.min(self.start[rank + 1] + shift));
        if low < begin && begin < high {
            (low, high) = if place < begin { (low, begin) } else { (begin, high) };
        }
        let k = self.k;
        let order =
            self.order_of_piece.entry(low).or_insert_with(|| shuffled(key(&[k, 4, low as u64]), (high - low) as u64));
        let e = self.ring[rank];
        let size = self.first[e + 1] - self.first[e];
        let within = low - shift - self.start[rank] + signed(order[usize((place - low) as u64)]);
        let rotation = signed(below(key(&[self.k, 5]), e as u64, size as u64));
        (self.first[e] + (within + rotation) % size) as u64
    }
}

pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap()
}

fn usize(value: u64) -> usize {
    usize::try_from(value).unwrap()
}
