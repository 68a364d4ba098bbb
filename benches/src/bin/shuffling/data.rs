//! The task: points around a few centres for each class, and datasets of them.
//!
//! A class is a mixture of normal distributions in 128 dimensions, so that no plane separates it from the others, and
//! the network must learn each centre separately. With this noise, a network that is trained from a full shuffle is
//! wrong about one time in six, so a worse order can be seen.

use std::path::Path;

use grainstore_benches::{Random, directory};
use grainstore_format::{
    Attribute, AttributeType, AttributeValue, ChunkSize, Field, FieldType, Geometry, Metadata, Schema, UserMetadata,
};
use grainstore_reader::{Reader, ReaderOptions};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

use crate::Outcome;
use crate::scale::Scale;

/// Numbers of a sample: 512 bytes.
pub(crate) const FEATURES: usize = 128;
/// Centres of a class.
const CENTRES: usize = 5;
/// Standard deviation of the noise around a centre; that of the centres' coordinates is 1.
const NOISE: f32 = 1.2;
/// Decides centres and noise.
const SEED: u64 = 11;

/// Points and their classes, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Points {
    /// `FEATURES` for each point.
    pub(crate) features: Vec<f32>,
    /// One for each point.
    pub(crate) labels: Vec<usize>,
}

/// The data that the network learns.
pub(crate) struct Task {
    chunk_size: u64,
    /// Class by class.
    training: Points,
    /// Points that are not used for training.
    pub(crate) test: Points,
}

/// The dataset in both stored orders.
pub(crate) struct Stores {
    pub(crate) by_class: Reader,
    pub(crate) shuffled: Reader,
    _directory: TempDir,
}

impl Points {
    /// Adds one point.
    pub(crate) fn push(&mut self, features: impl IntoIterator<Item = f32>, label: usize) {
        self.features.extend(features);
        self.labels.push(label);
    }

    /// The points with their classes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[f32], usize)> {
        self.features.chunks_exact(FEATURES).zip(self.labels.iter().copied())
    }

    /// Removes all points.
    pub(crate) fn clear(&mut self) {
        self.features.clear();
        self.labels.clear();
    }
}

impl Task {
    /// Draws centres, points to train from and points to test with.
    pub(crate) fn new(scale: &Scale) -> Self {
        let mut random = Random::new(SEED);
        let (mut training, mut test) = (Points::default(), Points::default());
        for label in 0..scale.classes {
            let centres: Vec<f32> = (0..CENTRES * FEATURES).map(|_| normal(&mut random)).collect();
            let mut draw = |points: &mut Points, count| {
                for number in 0..count {
                    let centre = centres.chunks_exact(FEATURES).cycle().nth(number % CENTRES).unwrap_or_default();
                    points.push(centre.iter().map(|mean| mean + NOISE * normal(&mut random)), label);
                }
            };
            draw(&mut training, scale.samples_per_class);
            draw(&mut test, scale.tests_per_class);
        }
        Self { chunk_size: scale.chunk_size, training, test }
    }

    /// Writes the points to train from as two datasets and opens them.
    pub(crate) fn pack(&self) -> Outcome<Stores> {
        let directory = directory();
        let count = self.training.labels.len() as u64;
        let by_class = self.pack_in_order(&directory.path().join("by-class.grain"), 0..count)?;
        let order = Random::new(SEED).shuffled(count);
        let shuffled = self.pack_in_order(&directory.path().join("shuffled.grain"), order)?;
        Ok(Stores { by_class, shuffled, _directory: directory })
    }

    fn pack_in_order(&self, target: &Path, order: impl IntoIterator<Item = u64>) -> Outcome<Reader> {
        let points: Vec<_> = self.training.iter().collect();
        let defaults = WriterOptions::with_metadata(metadata()?);
        let geometry = Geometry { chunk_size: ChunkSize::new(self.chunk_size)?, ..defaults.geometry };
        let mut writer = DatasetWriter::create(target, WriterOptions { geometry, keyed: false, ..defaults })?;
        for number in order {
            let (features, label) = points[grainstore_format::to_usize(number)];
            let payload = features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
            let attributes = vec![Some(AttributeValue::Uint(label as u64))];
            writer.write(Sample { attributes, ..Sample::new([], payload) })?;
        }
        writer.finish()?;
        Ok(Reader::open(target, ReaderOptions::default())?)
    }
}

fn metadata() -> Outcome<Metadata> {
    let label = Attribute { name: "label".into(), kind: AttributeType::Uint16 };
    let point = Field { name: "point".into(), kind: FieldType::Bytes };
    Ok(Metadata { schema: Schema::new(vec![label], vec![point])?, user: UserMetadata::default() })
}

/// A draw from the normal distribution (Box, Muller 1958).
pub(crate) fn normal(random: &mut Random) -> f32 {
    let mut uniform = || (random.next_u64() >> 40) as f32 / (1_u64 << 24) as f32;
    // 1 minus a number below 1 is never 0, which has no logarithm.
    let (radius, turn) = ((-2.0 * (1.0 - uniform()).ln()).sqrt(), uniform());
    radius * (turn * std::f32::consts::TAU).cos()
}
