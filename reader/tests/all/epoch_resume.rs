//! An epoch resumes where it stopped: from one line of JSON, at any batch, with any number of ranks, and without
//! reading again what was returned before.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_reader::plan::{Order, OrderChoice, PlanError, Tail};
use grainstore_reader::{EpochOptions, EpochState, IoChoice, ReadError, Reader, StateError, Subset};

use crate::common::{self, Made, ORDERS, Random, Shape};

fn made() -> Made {
    let mut random = Random(17);
    let payload_lens = (0..700).map(|_| to_usize(random.below(400))).collect();
    Shape { segment_size: 50_000, ..Shape::plain(4096, payload_lens) }.write()
}

fn options(order: Order, rank: u64, world: u64, batch_size: usize) -> EpochOptions {
    let batch_size = NonZeroUsize::new(batch_size).unwrap();
    let group = NonZeroU32::new(3);
    EpochOptions { lanes: Some(12), group, rank, world, batch_size, ..common::epoch_options(order) }
}

/// Positions and ordinals of `batch_count` batches of all ranks, and the state that each rank then has.
fn run(
    made: &Made,
    reader: &Reader,
    batch_count: usize,
    of_rank: &dyn Fn(u64) -> EpochOptions,
) -> (Vec<(u64, u64)>, EpochState) {
    let (mut samples, mut states) = (Vec::new(), Vec::new());
    for rank in 0..of_rank(0).world {
        let mut epoch = reader.epoch(&of_rank(rank)).unwrap();
        for batch in epoch.by_ref().take(batch_count) {
            let batch = batch.unwrap();
            made.check(&batch);
            samples.extend(batch.positions().iter().copied().zip(batch.ordinals().iter().copied()));
        }
        states.push(epoch.state());
    }
    assert!(states.iter().all(|state| *state == states[0]), "the state is the same on every rank");
    samples.sort_unstable();
    (samples, states.remove(0))
}

/// STA-3
#[test]
fn an_epoch_stopped_at_any_batch_resumes_with_the_next_sample_for_any_world() {
    let made = made();
    let subset = Arc::new(Subset::from_ordinals(700, (0..700).filter(|ordinal| ordinal % 7 < 3)).unwrap());
    for order in ORDERS {
        for subset in [None, Some(&subset)] {
            let with = |rank, world, batch_size, resume| EpochOptions {
                subset: subset.cloned(),
                resume,
                ..options(order, rank, world, batch_size)
            };
            let reader = made.reader(IoChoice::Buffered);
            let whole: Vec<u64> = reader.plan(&with(0, 1, 1, None)).unwrap().plan().ordinals_from(0).collect();
            let whole: Vec<(u64, u64)> = (0..).zip(whole).collect();
            let (mut left, mut state) = (0, None);
            for (world, batch_size) in [(2, 15), (3, 20), (5, 7), (1, 41), (4, 3), (24, 1)].into_iter().cycle() {
                let text = state.as_ref().map(EpochState::to_string);
                let resume: Option<EpochState> = text.map(|text| text.parse().unwrap());
                let (samples, next) = run(&made, &reader, 1, &|rank| with(rank, world, batch_size, resume.clone()));
                let expected_len = whole.len().min(left + to_usize(world) * batch_size) - left;
                assert_eq!(samples, whole[left..left + expected_len], "{order}, from {left}, world {world}");
                left += expected_len;
                assert_eq!(next.position(), left as u64);
                state = Some(next);
                if left == whole.len() {
                    break;
                }
            }
            // A finished epoch has no batch left.
            let done = with(0, 2, 10, state);
            assert_eq!((reader.epoch(&done).unwrap().len(), reader.epoch(&done).unwrap().count()), (0, 0));
        }
    }
}

#[test]
fn a_state_counts_batches_returned_and_not_those_made_ahead() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    let mut epoch = reader.epoch(&options(Order::Chunked, 0, 2, 10)).unwrap();
    for taken in 0..=35 {
        assert_eq!(epoch.state().position(), taken * 20);
        assert!(epoch.is_ready_within(std::time::Duration::from_secs(60)));
        assert_eq!(epoch.next_batch().is_some(), taken < 35);
    }
    assert_eq!(epoch.state().position(), 700);
}

#[test]
fn skipping_ahead_reads_nothing() {
    let made = Shape::plain(64 << 10, vec![3000; 3000]).write();
    for order in ORDERS {
        let reader = made.reader(IoChoice::Direct);
        let options = |resume| EpochOptions { resume, ..options(order, 0, 1, 100) };
        let run = |resume| {
            let mut epoch = reader.epoch(&options(resume)).unwrap();
            let samples: usize = epoch.by_ref().map(|batch| batch.unwrap().len()).sum();
            (samples, epoch.stats().read_bytes)
        };
        let whole = run(None);
        let state = reader.plan(&options(None)).unwrap().state_after(28);
        let (samples, read_bytes) = run(Some(state));
        assert_eq!(samples, 200);
        // The rest of each lane's extents, read with the gaps between samples where the gaps are shorter.
        assert!(read_bytes * 100 <= whole.1 * 14, "{order}: {read_bytes} of {}", whole.1);
    }
}

/// STA-2
#[test]
fn a_state_of_another_dataset_is_refused() {
    let made = made();
    let other = Shape::plain(4096, vec![100; 700]).write();
    let reader = made.reader(IoChoice::Buffered);
    let own = options(Order::Chunked, 0, 2, 10);
    let state = reader.plan(&own).unwrap().state_after(5);
    let refused = |reader: &Reader, options: EpochOptions| match reader.epoch(&options) {
        Err(ReadError::State(StateError::OfOtherDataset { .. })) => "dataset".to_owned(),
        Err(ReadError::State(StateError::OfOtherSubset { .. })) => "subset".to_owned(),
        Err(ReadError::State(StateError::OfOtherEpoch { setting, .. })) => setting.to_string(),
        other => panic!("{other:?}"),
    };
    let with = |options| EpochOptions { resume: Some(state.clone()), ..options };
    assert!(reader.epoch(&with(own.clone())).is_ok());
    assert_eq!(refused(&other.reader(IoChoice::Buffered), with(own.clone())), "dataset");
    assert_eq!(refused(&reader, with(EpochOptions { seed: 12, ..own.clone() })), "seed");
    assert_eq!(refused(&reader, with(EpochOptions { epoch: 4, ..own.clone() })), "epoch");
    assert_eq!(refused(&reader, with(EpochOptions { lanes: Some(6), ..own.clone() })), "lanes");
    assert_eq!(refused(&reader, with(EpochOptions { group: NonZeroU32::new(1), ..own.clone() })), "group");
    assert_eq!(refused(&reader, with(EpochOptions { order: OrderChoice::Fixed(Order::Full), ..own.clone() })), "order");
    let subset = Some(Arc::new(Subset::from_range(700, 0..699).unwrap()));
    assert_eq!(refused(&reader, with(EpochOptions { subset, ..own.clone() })), "subset");
    // Order, lanes and group need not be given: the state has them.
    let open = EpochOptions { order: OrderChoice::Auto, lanes: None, group: None, window_len: 1, ..own.clone() };
    let epoch = reader.epoch(&with(open)).unwrap();
    assert_eq!((epoch.lanes(), epoch.group()), (Some(12), NonZeroU32::new(3)));
    let past: EpochState = state.to_string().replace("\"position\":100", "\"position\":701").parse().unwrap();
    let error = reader.epoch(&EpochOptions { resume: Some(past), ..own }).unwrap_err();
    assert!(matches!(error, ReadError::Plan(PlanError::PositionOutOfRange { position: 701, len: 700 })), "{error}");
}

#[test]
fn the_epoch_after_a_resumed_one_begins_at_its_start() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    let first = EpochOptions { followed: true, tail: Tail::Drop, ..options(Order::Chunked, 1, 2, 16) };
    let state = reader.plan(&first).unwrap().state_after(20);
    assert_eq!(reader.epoch(&EpochOptions { resume: Some(state), ..first.clone() }).unwrap().count(), 1);
    let second = EpochOptions { epoch: first.epoch + 1, followed: false, ..first };
    let batches: Vec<Vec<u64>> =
        reader.epoch(&second).unwrap().map(|batch| batch.unwrap().ordinals().to_vec()).collect();
    let expected: Vec<Vec<u64>> = reader.plan(&second).unwrap().steps(0).map(|step| step.ordinals).collect();
    assert_eq!((batches.len(), batches), (21, expected));
}
