//! Trains one network for each order and seed, and measures it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ScopedJoinHandle};

use grainstore_benches::say;

use crate::Outcome;
use crate::data::{Points, Stores, Task};
use crate::feed::{BATCH_SIZE, Feed};
use crate::model::Network;
use crate::scale::Scale;
use crate::settings::{Setting, Stored};

/// The learning rates of the first step; the rate falls to 0 linearly. The first is the best of 0.005, 0.01, 0.02, 0.04
/// and 0.08 for the full order, with other seeds than those reported. With badly mixed batches one would take smaller
/// steps, so everything is also done with a quarter of it.
const LEARNING_RATES: [f32; 2] = [0.04, 0.01];

/// Consecutive batches whose classes are counted together.
const ROW_BATCHES: usize = 16;

/// Trains networks.
pub(crate) struct Trainer<'a> {
    pub(crate) scale: &'a Scale,
    pub(crate) task: &'a Task,
    pub(crate) stores: &'a Stores,
}

/// The results of the networks of one order.
pub(crate) struct Compared {
    pub(crate) setting: Setting,
    /// At the learning rate that is best for the full order, and at a quarter of it.
    pub(crate) accuracies: [Accuracies; 2],
    /// Mean number of different classes in a batch.
    pub(crate) classes_in_one: f64,
    /// Mean number of different classes in sixteen batches.
    pub(crate) classes_in_sixteen: f64,
}

/// For each seed, the share of the test points whose class the network predicts.
pub(crate) struct Accuracies(Vec<f64>);

/// A network to train, and the setting that its result belongs to.
#[derive(Clone, Copy)]
struct Job {
    setting: Setting,
    learning_rate: f32,
    seed: u64,
}

/// The result of one network.
struct Trained {
    job: Job,
    accuracy: f64,
    classes_in_one: f64,
    classes_in_sixteen: f64,
}

/// Counts different classes in batches, and in rows of sixteen.
#[derive(Default)]
struct ClassCount {
    batches: usize,
    in_batches: usize,
    in_rows: usize,
    row: HashSet<usize>,
}

impl Trainer<'_> {
    /// Trains all networks, as many at a time as there are cores.
    pub(crate) fn train_all(&self) -> Outcome<Vec<Compared>> {
        let settings = Setting::all(self.scale);
        let of_rate =
            |setting, learning_rate| (0..self.scale.seeds).map(move |seed| Job { setting, learning_rate, seed });
        let of_setting = |setting| LEARNING_RATES.into_iter().flat_map(move |rate| of_rate(setting, rate));
        let trained = self.train_jobs(settings.iter().copied().flat_map(of_setting))?;
        Ok(settings.into_iter().map(|setting| Compared::new(setting, &trained)).collect())
    }

    fn train_jobs(&self, jobs: impl Iterator<Item = Job> + Send) -> Outcome<Vec<Trained>> {
        let jobs = Mutex::new(jobs);
        let next = || jobs.lock().ok()?.next();
        let work = || std::iter::from_fn(next).map(|job| self.train(job)).collect::<Outcome<Vec<_>>>();
        let thread_count = thread::available_parallelism()?.get();
        let ends = thread::scope(|scope| {
            let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let mut trained = Vec::new();
        for end in ends {
            trained.extend(end.map_err(|_| "a training panicked")??);
        }
        // Sorted, so that sums do not depend on which network was done first.
        trained.sort_by_key(|trained| trained.job.seed);
        Ok(trained)
    }

    fn train(&self, job: Job) -> Outcome<Trained> {
        let reader = match job.setting.stored {
            Stored::ByClass => &self.stores.by_class,
            Stored::Shuffled => &self.stores.shuffled,
        };
        let mut network = Network::new(self.scale.classes, job.seed);
        let mut count = ClassCount::default();
        let steps = self.scale.epochs * (self.scale.samples() / BATCH_SIZE) as u64;
        let mut step: u64 = 0;
        for epoch in 0..self.scale.epochs {
            let feed = Feed { reader, order: job.setting.order, seed: job.seed, epoch };
            feed.each_batch(&mut |batch| {
                network.step(batch, job.learning_rate * (1.0 - step as f32 / steps as f32));
                count.add(batch);
                step += 1;
            })?;
        }
        let accuracy = network.accuracy(&self.task.test);
        say(&format!("{}, rate {}, seed {}: {:.1} %", job.setting, job.learning_rate, job.seed, 100.0 * accuracy));
        Ok(count.trained(job, accuracy))
    }
}

impl Compared {
    fn new(setting: Setting, trained: &[Trained]) -> Self {
        let of_setting: Vec<_> = trained.iter().filter(|trained| trained.job.setting == setting).collect();
        let mean_of = |number: fn(&Trained) -> f64| mean(of_setting.iter().map(|trained| number(trained)));
        let at_rate = |rate| {
            let of_rate = of_setting.iter().filter(|trained| trained.job.learning_rate == rate);
            Accuracies(of_rate.map(|trained| trained.accuracy).collect())
        };
        Self {
            setting,
            accuracies: LEARNING_RATES.map(at_rate),
            classes_in_one: mean_of(|trained| trained.classes_in_one),
            classes_in_sixteen: mean_of(|trained| trained.classes_in_sixteen),
        }
    }
}

impl Accuracies {
    pub(crate) fn mean(&self) -> f64 {
        mean(self.0.iter().copied())
    }

    /// The standard deviation.
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|accuracy| (accuracy - mean).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0)).sqrt()
    }
}

impl ClassCount {
    fn add(&mut self, batch: &Points) {
        self.batches += 1;
        self.in_batches += batch.labels.iter().collect::<HashSet<_>>().len();
        self.row.extend(&batch.labels);
        if self.batches.is_multiple_of(ROW_BATCHES) {
            self.in_rows += self.row.len();
            self.row.clear();
        }
    }

    fn trained(&self, job: Job, accuracy: f64) -> Trained {
        let mean = |sum: usize, count: usize| sum as f64 / count.max(1) as f64;
        Trained {
            job,
            accuracy,
            classes_in_one: mean(self.in_batches, self.batches),
            classes_in_sixteen: mean(self.in_rows, self.batches / ROW_BATCHES),
        }
    }
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    numbers.sum::<f64>() / count
}
