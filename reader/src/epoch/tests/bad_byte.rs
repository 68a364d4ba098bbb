//! One byte of a file that cannot be read, with a cache that reads whole extents for single samples, several ranks and
//! sparse subsets: only the sample that has it is lost.

use super::*;
use crate::OnDamage;
use crate::plan::Subset;

/// Number of lanes, number of ranks, and n: the subset has every n-th sample.
const SHAPES: [(u64, u64, u64); 6] = [(5, 1, 1), (50, 1, 1), (50, 3, 1), (5, 1, 8), (40, 3, 8), (50, 7, 3)];

#[test]
fn one_unreadable_byte_skips_only_its_sample_with_or_without_a_cache() {
    let made = MixedDataset::new(0);
    let dataset = Collection::from(made.dataset());
    let extents = Reader::new(dataset.clone(), ReaderOptions::default()).unwrap().extents().unwrap();
    let mut skipped_count = 0;
    for bad in [13, 100, 399] {
        let location = dataset.locate(bad).unwrap();
        let bad_byte = (dataset.segment_path(location.segment).to_owned(), location.offset + location.stored_len / 2);
        for order in ORDERS {
            for (lanes, world, every) in SHAPES {
                for seed in 0..8 {
                    let cache = (seed % 4 > 0).then(|| Arc::new(Cache::new(64 << 20, Arc::clone(&extents))));
                    let wanted = (bad % every..400).step_by(to_usize(every));
                    let options = EpochOptions {
                        seed,
                        lanes: Some(lanes),
                        world,
                        rank: seed % world,
                        subset: (every > 1).then(|| Arc::new(Subset::from_ordinals(400, wanted).unwrap())),
                        on_damage: OnDamage::Skip,
                        window_len: if seed % 2 == 0 { 70_000 } else { 1 << 20 },
                        ..options(order)
                    };
                    let (mut engine, _) = hostile(Trouble::None, to_usize(seed));
                    engine.bad_byte = Some(bad_byte.clone());
                    let mut epoch = made.epoch_with(IoMode::Buffered, &options, engine, LONG, cache);
                    for batch in epoch.by_ref() {
                        let batch = batch.unwrap();
                        made.check(epoch_plan(&options, &made).plan(), &batch);
                        for skipped in batch.skipped() {
                            assert_eq!(
                                skipped.ordinal, bad,
                                "{order}, {lanes} lanes, {world} ranks, 1 of {every}, {seed}"
                            );
                            skipped_count += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(skipped_count > 100, "{skipped_count}");
}

/// The plan of the epoch, without reading.
fn epoch_plan(options: &EpochOptions, made: &MixedDataset) -> EpochPlan {
    let reader = Reader::new(made.dataset(), ReaderOptions::default()).unwrap();
    reader.plan(options).unwrap()
}
