//! The table of how well the chunked order mixes in theory: a dataset of the size of ImageNet at 64 x 64 pixels.
//!
//! No byte of it exists: only the locations of samples decide the order.

use std::fmt::Write;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use grainstore_benches::Random;
use grainstore_format::to_usize;
use grainstore_reader::plan::{
    ClassOf, Distinct, Extents, ExtentsBuilder, LaneBudget, Mixing, Order, Plan, PlanSpec, default_lanes,
};

use crate::Outcome;
use crate::report::{grouped, percent};

/// Red, green and blue of 64 x 64 pixels.
const SAMPLE_LEN: u64 = 12_288;
const HEADER_LEN: u64 = 4096;
const CHUNK_SIZE: u64 = 256 << 10;
const CLASSES: u64 = 1000;
/// Samples of a batch of all ranks together.
const BATCH_SIZE: NonZeroU64 = NonZeroU64::MIN.saturating_add(255);
/// Windows in MiB; the default is 256.
const WINDOWS: [u64; 6] = [256, 128, 64, 32, 8, 1];
/// Of the orders, and of the shuffled store.
const SEED: u64 = 7;

/// The dataset: the locations of its samples, and the class of each, stored class by class and shuffled.
struct Layout {
    samples: u64,
    extents: Arc<Extents>,
    shuffled_classes: Vec<u64>,
}

/// A row for each window, as Markdown.
pub(crate) fn table(samples: u64) -> Outcome<String> {
    let layout = Layout::new(samples)?;
    let mut table = format!(
        "{} samples of {} bytes, {CLASSES} classes, batches of {BATCH_SIZE}; by class / shuffled:\n\n\
         | order | window | of the dataset | 256ths in a batch | in sixteen | classes in a batch | in sixteen |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        grouped(samples),
        grouped(SAMPLE_LEN),
    );
    let full = layout.plan(Order::Full, 1)?;
    let mixing = layout.measure(&full);
    let expected = mixing.each_ref().map(|mixing| (mixing.full_one, mixing.full_sixteen));
    table.push_str(&row("a full shuffle, in expectation | |", &expected));
    table.push_str(&row("`full` | |", &found(&mixing)));
    for window in WINDOWS {
        let lanes = layout.lanes(window << 20);
        let mixing = layout.measure(&layout.plan(Order::Chunked, lanes)?);
        let share = percent((lanes * CHUNK_SIZE) as f64 / (samples * SAMPLE_LEN) as f64);
        let name = format!("`chunked`, {lanes} lane{} | {window} MiB | {share}", if lanes == 1 { "" } else { "s" });
        table.push_str(&row(&name, &found(&mixing)));
    }
    Ok(table)
}

impl Layout {
    fn new(samples: u64) -> Outcome<Self> {
        let mut shuffled_classes: Vec<u64> = (0..samples).map(|number| class_of(number, samples)).collect();
        let order = Random::new(SEED).shuffled(samples);
        for (number, place) in (0..samples).zip(order) {
            shuffled_classes[to_usize(place)] = class_of(number, samples);
        }
        Ok(Self { samples, extents: Arc::new(extents(samples)?), shuffled_classes })
    }

    fn plan(&self, order: Order, lanes: u64) -> Outcome<Plan> {
        let extents = Arc::clone(&self.extents);
        Ok(Plan::new(PlanSpec { extents, seed: SEED, epoch: 0, fingerprint: 1, order, lanes, group: NonZeroU32::MIN })?)
    }

    fn lanes(&self, window_len: u64) -> u64 {
        let (stored_bytes, extent_count) = (self.samples * SAMPLE_LEN, self.extents.count());
        default_lanes(LaneBudget {
            window_len,
            chunk_size: CHUNK_SIZE,
            stored_bytes,
            extent_count,
            unit_count: extent_count,
        })
    }

    /// Stored class by class, and shuffled.
    fn measure(&self, plan: &Plan) -> [Mixing; 2] {
        let by_class = |ordinal| Some(class_of(ordinal, self.samples));
        let shuffled = |ordinal| self.shuffled_classes.get(to_usize(ordinal)).copied();
        let of: [&ClassOf<'_>; 2] = [&by_class, &shuffled];
        of.map(|class_of| Mixing::measure(plan, BATCH_SIZE, Some(class_of), Mixing::PLACES))
    }
}

fn class_of(number: u64, samples: u64) -> u64 {
    number * CLASSES / samples
}

/// Samples back to back, after the header.
fn extents(samples: u64) -> Outcome<Extents> {
    let started = |chunk: u64| (chunk * CHUNK_SIZE).saturating_sub(HEADER_LEN).div_ceil(SAMPLE_LEN).min(samples);
    let mut builder = ExtentsBuilder::new(CHUNK_SIZE);
    for chunk in 0..(HEADER_LEN + samples * SAMPLE_LEN).div_ceil(CHUNK_SIZE) {
        builder.chunk(started(chunk + 1) - started(chunk), SAMPLE_LEN)?;
    }
    Ok(builder.finish())
}

fn found(mixing: &[Mixing; 2]) -> [(Distinct, Distinct); 2] {
    mixing.each_ref().map(|mixing| (mixing.one, mixing.sixteen))
}

fn row(name: &str, [by_class, shuffled]: &[(Distinct, Distinct); 2]) -> String {
    let mut row = format!("| {name} | {:.0} | {:.0} |", by_class.0.parts, by_class.1.parts);
    for (by_class, shuffled) in [(by_class.0, shuffled.0), (by_class.1, shuffled.1)] {
        let classes = |distinct: Distinct| distinct.classes.unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(row, " {:.0} / {:.0} |", classes(by_class), classes(shuffled));
    }
    row.push('\n');
    row
}
