//! The network: 128 numbers, one hidden layer of 64, a class; trained by stochastic gradient descent with momentum.
//!
//! No part of it compensates for badly mixed batches, and no part depends on them more than the gradient does (batch
//! normalisation would: its means are those of a batch).

use std::ops::Range;

use grainstore_benches::Random;

use crate::data::{FEATURES, Points, normal};

/// Neurons of the hidden layer.
const HIDDEN: usize = 64;
/// The share of the last step's direction that the next step keeps.
const MOMENTUM: f32 = 0.9;

/// A network and the direction that it moves in.
pub(crate) struct Network {
    classes: usize,
    weights: Vec<f32>,
    gradient: Vec<f32>,
    direction: Vec<f32>,
}

/// The positions of the layers among the weights: `rows` of the input for each, then one row that is added to all.
struct Layer {
    width: usize,
    weights: Range<usize>,
    bias: Range<usize>,
}

/// The activations of the network for a point.
struct Activity {
    hidden: Vec<f32>,
    output: Vec<f32>,
}

impl Network {
    /// Random weights (He et al. 2015), biases 0.
    pub(crate) fn new(classes: usize, seed: u64) -> Self {
        let (mut random, count) = (Random::new(seed), Self::second(classes).bias.end);
        let mut network =
            Self { classes, weights: vec![0.0; count], gradient: vec![0.0; count], direction: vec![0.0; count] };
        for (layer, inputs) in [(Self::first(), FEATURES), (Self::second(classes), HIDDEN)] {
            let deviation = (2.0 / inputs as f32).sqrt();
            network.weights[layer.weights].fill_with(|| deviation * normal(&mut random));
        }
        network
    }

    /// One step against the mean gradient of the batch.
    pub(crate) fn step(&mut self, batch: &Points, learning_rate: f32) {
        self.gradient.fill(0.0);
        let mut activity = self.activity();
        for (point, label) in batch.iter() {
            self.run(point, &mut activity);
            self.add_gradient(point, label, &mut activity);
        }
        let scale = learning_rate / batch.labels.len().max(1) as f32;
        for ((weight, direction), gradient) in self.weights.iter_mut().zip(&mut self.direction).zip(&self.gradient) {
            *direction = MOMENTUM * *direction - scale * gradient;
            *weight += *direction;
        }
    }

    /// The share of the points whose class it predicts.
    pub(crate) fn accuracy(&self, points: &Points) -> f64 {
        let mut activity = self.activity();
        let is_right = |(point, label): (&[f32], usize)| {
            self.run(point, &mut activity);
            let best = activity.output.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            best.is_some_and(|(class, _)| class == label)
        };
        points.iter().map(is_right).filter(|&right| right).count() as f64 / points.labels.len() as f64
    }

    fn run(&self, point: &[f32], activity: &mut Activity) {
        Self::first().run(&self.weights, point, &mut activity.hidden);
        activity.hidden.iter_mut().for_each(|neuron| *neuron = neuron.max(0.0));
        Self::second(self.classes).run(&self.weights, &activity.hidden, &mut activity.output);
    }

    /// Adds the gradient of the cross-entropy; the output becomes its own part of it.
    fn add_gradient(&mut self, point: &[f32], label: usize, activity: &mut Activity) {
        let Activity { hidden, output } = activity;
        softmax(output);
        output[label] -= 1.0;
        let second = Self::second(self.classes);
        second.add_gradient(&mut self.gradient, hidden, output);
        for (neuron, row) in hidden.iter_mut().zip(self.weights[second.weights].chunks_exact(second.width)) {
            *neuron = if *neuron > 0.0 { dot(row, output) } else { 0.0 };
        }
        Self::first().add_gradient(&mut self.gradient, point, hidden);
    }

    fn activity(&self) -> Activity {
        Activity { hidden: vec![0.0; HIDDEN], output: vec![0.0; self.classes] }
    }

    fn first() -> Layer {
        Layer::at(0, FEATURES, HIDDEN)
    }

    fn second(classes: usize) -> Layer {
        Layer::at(Self::first().bias.end, HIDDEN, classes)
    }
}

impl Layer {
    fn at(start: usize, inputs: usize, width: usize) -> Self {
        let end = start + inputs * width;
        Self { width, weights: start..end, bias: end..end + width }
    }

    fn run(&self, weights: &[f32], input: &[f32], output: &mut [f32]) {
        output.copy_from_slice(&weights[self.bias.clone()]);
        for (row, &number) in weights[self.weights.clone()].chunks_exact(self.width).zip(input) {
            add_scaled(output, row, number);
        }
    }

    fn add_gradient(&self, gradient: &mut [f32], input: &[f32], output: &[f32]) {
        add_scaled(&mut gradient[self.bias.clone()], output, 1.0);
        for (row, &number) in gradient[self.weights.clone()].chunks_exact_mut(self.width).zip(input) {
            add_scaled(row, output, number);
        }
    }
}

fn softmax(output: &mut [f32]) {
    let largest = output.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    output.iter_mut().for_each(|number| *number = (*number - largest).exp());
    let sum: f32 = output.iter().sum();
    output.iter_mut().for_each(|number| *number /= sum);
}

fn add_scaled(target: &mut [f32], row: &[f32], scale: f32) {
    for (target, number) in target.iter_mut().zip(row) {
        *target += scale * number;
    }
}

/// A dot product in eight sums, so that the compiler can add eight numbers at a time.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Points {
        let mut random = Random::new(3);
        let mut points = Points::default();
        for label in 0..3 {
            let features: Vec<f32> = (0..FEATURES).map(|_| normal(&mut random)).collect();
            points.push(features, label);
        }
        points
    }

    fn loss(network: &Network, points: &Points) -> f32 {
        let mut activity = network.activity();
        let mut of_point = |(point, label): (&[f32], usize)| {
            network.run(point, &mut activity);
            softmax(&mut activity.output);
            -activity.output[label].ln()
        };
        points.iter().map(&mut of_point).sum::<f32>() / 3.0
    }

    #[test]
    fn a_small_step_lowers_the_loss_as_the_gradient_says() {
        let (points, learning_rate) = (points(), 1e-4);
        let mut network = Network::new(3, 5);
        let before = loss(&network, &points);
        network.step(&points, learning_rate);
        let squares: f32 = network.gradient.iter().map(|part| (part / 3.0).powi(2)).sum();
        let (found, expected) = (before - loss(&network, &points), learning_rate * squares);
        assert!((found / expected - 1.0).abs() < 0.02, "{found} against {expected}");
    }

    #[test]
    fn it_learns_three_points_by_heart() {
        let points = points();
        let mut network = Network::new(3, 5);
        (0..100).for_each(|_| network.step(&points, 0.01));
        assert!(loss(&network, &points) < 0.01 && network.accuracy(&points) > 0.99);
    }
}
