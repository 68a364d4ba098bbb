//! Ranks, subsets and states: the Python reader that was written from spec.md and order.md alone plans the same batches as the
//! reader, for every rank of every world, and each resumes an epoch from the other's state.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_reader::plan::{Order, OrderChoice, Tail};
use grainstore_reader::{EpochOptions, EpochPlan, EpochState, IoChoice, Reader, ReaderOptions, Subset, Weights};
use serde_json::{Value, json};

use crate::common::Random;
use crate::second::{self, Packed, Python, Question, Recipe};

const WORLDS: [u64; 8] = [1, 2, 3, 4, 5, 7, 8, 24];
/// `None` is 1.
const GROUPS: [Option<u32>; 6] = [None, Some(1), Some(2), Some(3), Some(17), Some(u32::MAX)];
const TAILS: [Tail; 3] = [Tail::Drop, Tail::Short, Tail::Pad];
const ORDERS: [OrderChoice; 4] = [
    OrderChoice::Auto,
    OrderChoice::Fixed(Order::Full),
    OrderChoice::Fixed(Order::Chunked),
    OrderChoice::Fixed(Order::Sequential),
];

/// Samples of no bytes, of many chunks, and of 8 chunks, which are extents by themselves.
const EDGES: [usize; 12] = [0, 1, 4095, 4097, 40_960, 3, 8191, 0, 32_768, 5, 12_293, 700];

fn recipes() -> Vec<Recipe> {
    vec![
        Recipe::plain("one", 262_144, vec![5]),
        Recipe::plain("two", 4096, vec![0, 5000]),
        Recipe::plain("mean of 64 KiB", 4096, vec![65_535, 65_537, 0, 131_072, 70_000]),
        Recipe::plain("edges", 4096, EDGES.repeat(8)),
        Recipe::rich("several segments", 400),
    ]
}

/// A dataset, its reader, and the second reader.
struct Both {
    packed: Packed,
    reader: Reader,
    python: Python,
    /// Weights and number of draws that the second reader is given.
    weights: Option<(Vec<f64>, u64)>,
}

/// The second reader's answer about a rank's share of an epoch.
struct Reported {
    steps: Vec<Vec<u64>>,
    positions: Vec<Vec<u64>>,
    repeats: Vec<Vec<u64>>,
    /// The states after each number of batches.
    states: Vec<String>,
}

impl Both {
    fn of(recipe: &Recipe) -> Self {
        let packed = recipe.pack();
        let reader = open(packed.path());
        Self { packed, reader, python: Python::start(), weights: None }
    }

    fn sample_count(&self) -> u64 {
        self.reader.collection().sample_count()
    }

    /// The second reader's answer, or its error.
    fn ask(&mut self, options: &EpochOptions, ordinals: Option<&[u64]>) -> Result<Reported, String> {
        let mut asked = asked(options, ordinals);
        if let Some((weights, samples)) = &self.weights {
            asked["order"]["weights"] = json!(weights);
            asked["order"]["samples"] = json!(samples);
        }
        self.ask_for(&asked)
    }

    fn ask_for(&mut self, asked: &Value) -> Result<Reported, String> {
        let question = Question::new("epoch", self.packed.path()).word(asked.to_string());
        let answer = self.python.ask(&question);
        if answer.status == 2 {
            assert_eq!((answer.stdout.len(), answer.stderr.lines().count()), (0, 1), "{}", answer.stderr);
            return Err(answer.stderr);
        }
        let reported: Value = serde_json::from_slice(&answer.success()).unwrap();
        let numbers = |name: &str| serde_json::from_value(reported[name].clone()).unwrap();
        let states = serde_json::from_value(reported["states"].clone()).unwrap();
        Ok(Reported { steps: numbers("steps"), positions: numbers("positions"), repeats: numbers("repeats"), states })
    }

    /// Checks that both readers plan the same batches, and write the same state after each.
    fn check(&mut self, options: &EpochOptions, ordinals: Option<&[u64]>) {
        let reported = self.ask(options, ordinals).unwrap();
        let plan = self.plan(options, ordinals).unwrap();
        let steps: Vec<_> = plan.steps(0).collect();
        assert_eq!(reported.steps, steps.iter().map(|step| step.ordinals.clone()).collect::<Vec<_>>(), "{options:?}");
        let positions: Vec<Vec<u64>> = steps.iter().map(|step| step.positions.collect()).collect();
        assert_eq!(reported.positions, positions, "{options:?}");
        let repeat = |position: u64| plan.plan().repeat_at(position % plan.plan().len());
        let repeats: Vec<Vec<u64>> = steps.iter().map(|step| step.positions.map(repeat).collect()).collect();
        assert_eq!(reported.repeats, repeats, "{options:?}");
        let states: Vec<_> = (0..=steps.len() as u64).map(|count| plan.state_after(count).to_string()).collect();
        assert_eq!(reported.states, states, "{options:?}");
    }

    fn plan(&self, options: &EpochOptions, ordinals: Option<&[u64]>) -> Result<EpochPlan, String> {
        let subset = |list: &[u64]| Subset::with_repeats(self.sample_count(), list.iter().copied()).unwrap();
        let options = EpochOptions { subset: ordinals.map(subset).map(Arc::new), ..options.clone() };
        self.reader.plan(&options).map_err(|error| error.to_string())
    }
}

fn open(path: &Path) -> Reader {
    Reader::open(path, ReaderOptions { io: IoChoice::Buffered, threads: 1, ..ReaderOptions::default() }).unwrap()
}

/// The arguments of the second reader's functions.
fn asked(options: &EpochOptions, ordinals: Option<&[u64]>) -> Value {
    let EpochOptions { seed, epoch, window_len, lanes, group, world, rank, batch_size, .. } = options;
    let mut asked = json!({
        "order": {
            "name": options.order.to_string(), "seed": seed, "epoch": epoch, "window": window_len, "lanes": lanes,
            "group": group, "subset": ordinals, "state": options.resume.as_ref().map(EpochState::to_string),
        },
        "batches": { "world": world, "rank": rank, "batch_size": batch_size, "tail": options.tail.to_string() },
    });
    asked["order"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
    asked
}

/// A random item.
fn any<T: Copy>(of: &[T], random: &mut Random) -> T {
    of[to_usize(random.below(of.len() as u64))]
}

/// Random options for an epoch of `len` samples.
fn any_options(len: u64, random: &mut Random) -> EpochOptions {
    let world = any(&WORLDS, random);
    let batch_size = any(&[1, 2, 3, 10, 1 + random.below(len + 10)], random);
    EpochOptions {
        order: any(&ORDERS, random),
        seed: any(&[0, random.next(), u64::MAX], random),
        epoch: random.below(5),
        window_len: any(&[EpochOptions::DEFAULT_WINDOW_LEN, 1 << 18, 1 << 20], random),
        lanes: any(&[None, None, Some(1), Some(len), Some(1 + random.below(len))], random),
        group: any(&GROUPS, random).and_then(NonZeroU32::new),
        world,
        rank: random.below(world),
        batch_size: NonZeroUsize::new(to_usize(batch_size)).unwrap(),
        tail: any(&TAILS, random),
        ..EpochOptions::default()
    }
}

/// A random subset of the samples: many, few, neighbours, all, one.
fn any_ordinals(sample_count: u64, random: &mut Random) -> Vec<u64> {
    let one_of = any(&[1, 2, 2, 5, 30], random);
    let mut ordinals: Vec<u64> = (0..sample_count).filter(|_| random.below(one_of) == 0).collect();
    if random.below(3) == 0 {
        let from = random.below(sample_count);
        ordinals = (from..from + 1 + random.below(sample_count - from)).collect();
    }
    ordinals.push(random.below(sample_count));
    ordinals.sort_unstable();
    ordinals.dedup();
    ordinals
}

/// The state of an epoch after a random number of batches.
fn left_anywhere(both: &Both, options: &EpochOptions, ordinals: Option<&[u64]>, random: &mut Random) -> EpochState {
    let plan = both.plan(&EpochOptions { tail: Tail::Short, ..options.clone() }, ordinals).unwrap();
    plan.state_after(random.below(plan.share().batch_count() + 1))
}

/// RNK-1, RNK-2, RNK-3, STA-3
#[test]
fn the_second_reader_plans_the_same_batches_for_every_rank_of_every_world() {
    for recipe in recipes() {
        let mut both = Both::of(&recipe);
        let mut random = Random(both.sample_count());
        for world in WORLDS {
            for tail in TAILS {
                let options = EpochOptions { world, tail, ..any_options(both.sample_count(), &mut random) };
                for rank in 0..world {
                    both.check(&EpochOptions { rank, ..options.clone() }, None);
                }
            }
        }
    }
}

/// PLN-9, RNK-1, STA-1, STA-3
#[test]
fn the_second_reader_plans_the_same_epochs_over_subsets_and_from_anywhere() {
    for recipe in recipes() {
        let mut both = Both::of(&recipe);
        let mut random = Random(both.sample_count() + 1);
        for _ in 0..100 {
            let ordinals = any_ordinals(both.sample_count(), &mut random);
            let ordinals = (random.below(5) > 0).then_some(ordinals.as_slice());
            let len = ordinals.map_or(both.sample_count(), |ordinals| ordinals.len() as u64);
            let options = any_options(len, &mut random);
            both.check(&options, ordinals);
            let resume = left_anywhere(&both, &options, ordinals, &mut random);
            let open = random.below(2) == 0;
            let again = EpochOptions {
                seed: options.seed,
                epoch: options.epoch,
                order: if open { OrderChoice::Auto } else { OrderChoice::Fixed(resume.order()) },
                lanes: if open { None } else { resume.lanes() },
                group: if open { None } else { resume.group() },
                resume: Some(resume),
                ..any_options(len, &mut random)
            };
            both.check(&again, ordinals);
        }
    }
}

/// Weights for samples: equal, or of many sizes, some 0.
fn any_weights(count: u64, random: &mut Random) -> Vec<f64> {
    let sizes = any(&[1, 2, 1000], random);
    let mut weights: Vec<f64> = (0..count).map(|_| random.below(sizes) as f64 / 3.0).collect();
    weights[to_usize(random.below(count))] = any(&[1.0, 0.1, 1e-300, 1e300], random);
    weights
}

/// PLN-9, PLN-10, PLN-11, SUB-1, STA-1, STA-2, STA-3
#[test]
fn the_second_reader_plans_the_same_epochs_with_repeats_and_by_weights() {
    for recipe in recipes() {
        let mut both = Both::of(&recipe);
        let mut random = Random(both.sample_count() + 2);
        for _ in 0..40 {
            let mut ordinals = any_ordinals(both.sample_count(), &mut random);
            for _ in 0..random.below(30) {
                ordinals.push(any(&ordinals, &mut random));
            }
            let ordinals = (random.below(4) > 0).then_some(ordinals.as_slice());
            let from = ordinals.map_or(both.sample_count(), |ordinals| ordinals.len() as u64);
            let given = (random.below(3) > 0).then(|| any_weights(from, &mut random));
            let len = if given.is_some() { 1 + random.below(2 * from) } else { from };
            let weights = given.map(|given| (Arc::new(Weights::new(given.iter().copied(), len).unwrap()), given));
            both.weights = weights.as_ref().map(|(_, given)| (given.clone(), len));
            let weights = weights.map(|(weights, _)| weights);
            let options = EpochOptions { weights: weights.clone(), ..any_options(len, &mut random) };
            both.check(&options, ordinals);
            let resume = Some(left_anywhere(&both, &options, ordinals, &mut random));
            let EpochOptions { seed, epoch, .. } = options;
            let (order, lanes, group) = (OrderChoice::Auto, None, None);
            let again =
                EpochOptions { seed, epoch, order, lanes, group, resume, weights, ..any_options(len, &mut random) };
            both.check(&again, ordinals);
            if let Some((_, draws)) = &mut both.weights {
                *draws += 1;
                assert!(both.ask(&again, ordinals).is_err(), "a state of other weights");
            }
        }
    }
}

/// STA-3
#[test]
fn two_readers_that_take_turns_visit_every_sample_once() {
    let mut both = Both::of(&Recipe::rich("turns", 300));
    let mut random = Random(4);
    for order in ORDERS {
        let ordinals = any_ordinals(300, &mut random);
        let group = NonZeroU32::new(3);
        let whole = EpochOptions { order, lanes: Some(6), group, ..EpochOptions::default() };
        let expected: Vec<u64> = both.plan(&whole, Some(&ordinals)).unwrap().plan().ordinals_from(0).collect();
        let (mut visited, mut resume, mut turn) = (Vec::new(), None, 0);
        while visited.len() < expected.len() {
            let world = any(&WORLDS, &mut random);
            let batch_size = NonZeroUsize::new(any(&[1, 2, 7], &mut random)).unwrap();
            let mut samples = Vec::new();
            let mut left = None;
            for rank in 0..world {
                let options = EpochOptions {
                    world,
                    rank,
                    batch_size,
                    resume: resume.clone(),
                    tail: Tail::Short,
                    ..whole.clone()
                };
                let (positions, ordinals, state) = match turn % 2 {
                    0 => {
                        let reported = both.ask(&options, Some(&ordinals)).unwrap();
                        (reported.positions[0].clone(), reported.steps[0].clone(), reported.states[1].parse().unwrap())
                    }
                    _ => {
                        let plan = both.plan(&options, Some(&ordinals)).unwrap();
                        let step = plan.steps(0).next().unwrap();
                        (step.positions.collect(), step.ordinals, plan.state_after(1))
                    }
                };
                samples.extend(positions.into_iter().zip(ordinals));
                assert!(left.replace(state.clone()).is_none_or(|other| other == state), "a state for each rank");
            }
            samples.sort_unstable();
            visited.extend(samples.into_iter().map(|(_, ordinal)| ordinal));
            (resume, turn) = (left, turn + 1);
        }
        assert_eq!(visited, expected, "{order}");
    }
}

/// Whether each of the readers resumes from a state's text.
fn accepted(both: &mut Both, options: &EpochOptions, ordinals: Option<&[u64]>, text: &str) -> [bool; 2] {
    let mut asked = asked(options, ordinals);
    asked["order"]["state"] = text.into();
    let first = text.parse().is_ok_and(|resume| {
        let options = EpochOptions { resume: Some(resume), ..options.clone() };
        both.plan(&options, ordinals).is_ok()
    });
    [first, both.ask_for(&asked).is_ok()]
}

/// STA-1
#[test]
fn both_readers_refuse_invalid_states() {
    let mut both = Both::of(&Recipe::plain("states", 4096, vec![300; 90]));
    let options = EpochOptions {
        seed: 5,
        epoch: 2,
        lanes: Some(12),
        group: NonZeroU32::new(4),
        ..any_options(90, &mut Random(1))
    };
    let options = EpochOptions { order: OrderChoice::Fixed(Order::Chunked), ..options };
    let text = both.plan(&options, None).unwrap().state_after(0).to_string();
    for len in 0..text.len() {
        assert_eq!(accepted(&mut both, &options, None, &text[..len]), [false; 2], "{len} bytes");
    }
    for (old, new, expected) in [
        ("{", " {\n\t", true),
        (":", " : ", true),
        ("\"seed\":5,", "", false),
        ("\"subset\":null,", "", false),
        ("\"subset\":null", "\"subset\":\"0\"", false),
        ("\"subset\":null", "\"subset\":0", false),
        ("\"subset\":null", "\"subset\":[]", false),
        ("\"epoch\":2", "\"epoch\":2,\"rank\":0", false),
        ("\"epoch\":2", "\"epoch\":2.0", false),
        ("\"epoch\":2", "\"epoch\":2e0", false),
        ("\"epoch\":2", "\"epoch\":\"2\"", false),
        ("\"epoch\":2", "\"epoch\":true", false),
        ("\"epoch\":2", "\"epoch\":02", false),
        ("\"epoch\":2", "\"epoch\":-0", false),
        ("\"position\":0", "\"position\":-0", false),
        ("\"epoch\":2", "\"epoch\":[2]", false),
        ("\"position\":0", "\"position\":90", true),
        ("\"position\":0", "\"position\":91", false),
        ("\"position\":0", "\"position\":-1", false),
        ("\"position\":0", "\"position\":18446744073709551616", false),
        ("\"position\":0", "\"position\":null", false),
        ("_state\":1", "_state\":0", false),
        ("_state\":1", "_state\":2", false),
        ("_state\":1", "_state\":true", false),
        ("chunked", "auto", false),
        ("chunked", "sequential", false),
        ("\"lanes\":12", "\"lanes\":null", false),
        ("\"group\":4", "\"group\":null", false),
        ("\"group\":4", "\"group\":0", false),
        ("\"group\":4", "\"group\":4294967296", false),
        ("\"group\":4", "\"group\":\"4\"", false),
        ("\"group\":4,", "", false),
        ("\"mixture\":null,", "", false),
        ("\"group\":4,\"mixture\":null,", "", false),
        ("\"mixture\":null", "\"mixture\":0", false),
        ("\"mixture\":null", "\"mixture\":{}", false),
        ("\"mixture\":null", "\"mixture\":null,\"mixture\":null", false),
        ("}", "}}", false),
        ("}", "} ", true),
    ] {
        assert!(text.contains(old), "{old}");
        let changed = text.replace(old, new);
        assert_eq!(accepted(&mut both, &options, None, &changed), [expected; 2], "{changed}");
    }
    let padded = |len: usize| format!("{text}{}", " ".repeat(len - text.len()));
    assert_eq!(accepted(&mut both, &options, None, &padded(1 << 20)), [true; 2]);
    assert_eq!(accepted(&mut both, &options, None, &padded((1 << 20) + 1)), [false; 2]);
    for text in ["", "null", "[]", "{}", "1", "\"\"", &format!("[{text}]")] {
        assert_eq!(accepted(&mut both, &options, None, text), [false; 2], "{text}");
    }
}

/// STA-2
#[test]
fn both_readers_refuse_the_state_of_another_epoch() {
    let mut both = Both::of(&Recipe::plain("states", 4096, vec![300; 90]));
    let own = EpochOptions {
        order: OrderChoice::Fixed(Order::Chunked),
        lanes: Some(6),
        group: NonZeroU32::new(2),
        ..EpochOptions::default()
    };
    let (some, all): (Vec<u64>, Vec<u64>) = ((0..60).collect(), (0..90).collect());
    let text = both.plan(&own, Some(&some)).unwrap().state_after(0).to_string();
    let full = EpochOptions { order: OrderChoice::Fixed(Order::Full), ..own.clone() };
    for (options, ordinals, expected) in [
        (own.clone(), Some(&some[..]), true),
        // Order, lanes and group need not be given: the state has them.
        (EpochOptions { order: OrderChoice::Auto, lanes: None, group: None, ..own.clone() }, Some(&some), true),
        (EpochOptions { lanes: None, window_len: 1 << 20, ..own.clone() }, Some(&some), true),
        (EpochOptions { order: OrderChoice::Auto, lanes: Some(3), ..own.clone() }, Some(&some), false),
        (EpochOptions { lanes: Some(3), ..own.clone() }, Some(&some), false),
        (EpochOptions { group: NonZeroU32::new(1), ..own.clone() }, Some(&some), false),
        (EpochOptions { group: NonZeroU32::new(90), ..own.clone() }, Some(&some), false),
        (EpochOptions { seed: 1, ..own.clone() }, Some(&some), false),
        (EpochOptions { epoch: 1, ..own.clone() }, Some(&some), false),
        (full.clone(), Some(&some), false),
        (own.clone(), Some(&some[1..]), false),
        (own.clone(), Some(&all), false),
        (own.clone(), None, false),
    ] {
        assert_eq!(accepted(&mut both, &options, ordinals, &text), [expected; 2], "{options:?}");
    }
    let other = both.plan(&own, None).unwrap().state_after(0).to_string();
    assert_eq!(accepted(&mut both, &own, None, &other), [true; 2]);
    assert_eq!(accepted(&mut both, &own, Some(&all), &other), [false; 2], "a subset of all samples is a subset");
    let mut elsewhere = Both::of(&Recipe::plain("states", 4096, vec![301; 90]));
    assert_eq!(accepted(&mut elsewhere, &own, None, &other), [false; 2]);
}

/// PLN-9
#[test]
fn both_readers_refuse_invalid_ranks_and_empty_subsets() {
    let mut both = Both::of(&Recipe::plain("none", 4096, vec![10; 20]));
    let own = EpochOptions::default();
    let fits = |both: &mut Both, options: &EpochOptions, ordinals: Option<&[u64]>| {
        [both.plan(options, ordinals).is_ok(), both.ask(options, ordinals).is_ok()]
    };
    assert_eq!(fits(&mut both, &own, Some(&[19])), [true; 2]);
    assert_eq!(fits(&mut both, &own, Some(&[])), [false; 2]);
    assert_eq!(fits(&mut both, &EpochOptions { world: 0, ..own.clone() }, None), [false; 2]);
    assert_eq!(fits(&mut both, &EpochOptions { world: 3, rank: 3, ..own.clone() }, None), [false; 2]);
    let lanes = EpochOptions { order: OrderChoice::Fixed(Order::Chunked), lanes: Some(4), ..own };
    assert_eq!(fits(&mut both, &lanes, Some(&[0, 1, 5, 9])), [true; 2]);
    assert_eq!(fits(&mut both, &lanes, Some(&[0, 1, 5])), [false; 2]);
    assert!(both.ask(&EpochOptions::default(), Some(&[20])).is_err());
}

/// PLN-7
#[test]
fn both_readers_refuse_a_window_smaller_than_a_chunk_where_it_decides_the_lanes() {
    let mut both = Both::of(&Recipe::plain("window", 4096, vec![300; 90]));
    let chunked = EpochOptions { order: OrderChoice::Fixed(Order::Chunked), ..EpochOptions::default() };
    for (options, expected) in [
        (EpochOptions { window_len: 4096, ..chunked.clone() }, true),
        (EpochOptions { window_len: 4095, ..chunked.clone() }, false),
        (EpochOptions { window_len: 0, ..chunked.clone() }, false),
        (EpochOptions { window_len: 0, lanes: Some(3), ..chunked.clone() }, true),
        (EpochOptions { window_len: 0, order: OrderChoice::Fixed(Order::Full), ..chunked }, true),
    ] {
        assert_eq!(both.plan(&options, None).is_ok(), expected, "{options:?}");
        assert_eq!(both.ask(&options, None).is_ok(), expected, "{options:?}");
    }
}

/// A command line that prints a rank's batches.
fn plan_of(both: &Both, options: &EpochOptions) -> Question {
    Question::new("plan", both.packed.path())
        .option("--order", options.order)
        .option("--seed", options.seed)
        .option("--world", options.world)
        .option("--rank", options.rank)
        .option("--batch-size", options.batch_size)
        .option("--tail", options.tail)
}

fn printed(answer: second::Answer) -> Vec<u64> {
    answer.lines().iter().map(|line| line.parse().unwrap()).collect()
}

/// RNK-3
#[test]
fn the_command_line_prints_the_batches_of_a_rank_or_one_of_them() {
    let mut both = Both::of(&Recipe::plain("printed", 4096, vec![900; 25]));
    for order in ORDERS {
        // The last global batch has one sample: one rank has it.
        for (rank, tail) in (0..4).flat_map(|rank| TAILS.map(|tail| (rank, tail))) {
            let batch_size = NonZeroUsize::new(2).unwrap();
            let options = EpochOptions { order, seed: 3, world: 4, rank, batch_size, tail, ..EpochOptions::default() };
            let steps: Vec<_> = both.plan(&options, None).unwrap().steps(0).map(|step| step.ordinals).collect();
            assert_eq!(printed(both.python.ask(&plan_of(&both, &options))), steps.concat());
            for (number, step) in steps.iter().enumerate() {
                let question = plan_of(&both, &options).option("--step", number);
                assert_eq!(&printed(both.python.ask(&question)), step);
            }
            for number in [-1, i64::try_from(steps.len()).unwrap()] {
                let answer = both.python.ask(&plan_of(&both, &options).option("--step", number));
                assert_eq!((answer.status, answer.stdout.len(), answer.stderr.lines().count()), (2, 0, 1));
            }
            let resumed = both.plan(&options, None).unwrap().state_after(1);
            let resumed = EpochOptions { resume: Some(resumed), ..options };
            let steps: Vec<_> = both.plan(&resumed, None).unwrap().steps(0).map(|step| step.ordinals).collect();
            assert_eq!(printed(both.python.ask(&plan_of(&both, &resumed).option("--start", 8))), steps.concat());
        }
    }
}
