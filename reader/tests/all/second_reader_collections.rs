//! Several datasets as one, and how well an order mixes: the Python reader that was written from spec.md and order.md alone plans
//! what the reader plans, and reports the same numbers.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::{Alignment, AttributeType, AttributeValue, UserMetadata, to_usize};
use grainstore_reader::plan::{Mixing, Order, OrderChoice};
use grainstore_reader::{EpochOptions, Expression, IoChoice, Reader, ReaderOptions, Subset};
use grainstore_store::Collection;
use serde_json::{Value, json};

use crate::columns::{Columns, Row, columns, columns_with, with_names};
use crate::common::Random;
use crate::second::{Packed, Python, Question, Recipe};

const ORDERS: [OrderChoice; 4] = [
    OrderChoice::Auto,
    OrderChoice::Fixed(Order::Full),
    OrderChoice::Fixed(Order::Chunked),
    OrderChoice::Fixed(Order::Sequential),
];

fn open(paths: &[PathBuf]) -> Reader {
    let options = ReaderOptions { io: IoChoice::Buffered, threads: 1, ..ReaderOptions::default() };
    Reader::open_all(paths, options).unwrap()
}

fn question(command: &str, paths: &[PathBuf]) -> Question {
    let more = paths.iter().skip(1);
    more.fold(Question::new(command, &paths[0]), |question, path| question.word(path.as_os_str().as_encoded_bytes()))
}

/// Ordinals of a rank's batches, and the state after the first, from the second reader.
fn second_epoch(python: &mut Python, paths: &[PathBuf], options: &EpochOptions) -> (Vec<Vec<u64>>, String) {
    let order = json!({
        "name": options.order.to_string(), "seed": options.seed, "window": options.window_len,
        "group": options.group.map_or(1, NonZeroU32::get),
    });
    let batches = json!({ "world": options.world, "rank": options.rank, "batch_size": options.batch_size });
    let asked = json!({ "order": order, "batches": batches }).to_string();
    let reported: Value = serde_json::from_slice(&python.ask(&question("epoch", paths).word(asked)).success()).unwrap();
    (serde_json::from_value(reported["steps"].clone()).unwrap(), reported["states"][1].as_str().unwrap().to_owned())
}

/// PLN-8, PLN-6, PLN-7, STA-1
#[test]
fn both_readers_plan_several_datasets_as_one() {
    let lens = |len: usize, count: usize| (0..count).map(|i| (len + 977 * i) % (2 * len)).collect::<Vec<_>>();
    let packed = [
        Recipe::plain("small", 4096, lens(700, 90)),
        Recipe {
            alignment: Alignment::multiple_of(64).unwrap(),
            ..Recipe::plain("larger chunks", 65_536, lens(9000, 40))
        },
        Recipe { segment_size: 100_000, ..Recipe::plain("several segments", 16_384, lens(5000, 60)) },
        Recipe::plain("long", 4096, vec![200_000, 40_000, 1, 0, 300_000]),
    ]
    .map(|recipe| recipe.pack());
    let (mut python, mut random) = (Python::start(), Random(8));
    for turn in 0..60 {
        let count = 1 + turn % 4;
        let paths: Vec<_> = (0..count).map(|_| packed[to_usize(random.below(4))].path().to_owned()).collect();
        let reader = open(&paths);
        let world = 1 + random.below(4);
        let options = EpochOptions {
            order: ORDERS[to_usize(random.below(4))],
            seed: random.next(),
            group: NonZeroU32::new([0, 1, 2, 5, 100][to_usize(random.below(5))]),
            window_len: [1 << 18, 1 << 20, 1 << 28][to_usize(random.below(3))],
            world,
            rank: random.below(world),
            batch_size: 10.try_into().unwrap(),
            ..EpochOptions::default()
        };
        let plan = reader.plan(&options).unwrap();
        let (steps, state) = second_epoch(&mut python, &paths, &options);
        assert!(plan.steps(0).map(|step| step.ordinals).eq(steps), "{options:?} of {paths:?}");
        assert_eq!(plan.state_after(1).to_string(), state);
    }
}

/// PLN-8
#[test]
fn the_second_reader_refuses_datasets_that_do_not_agree() {
    let plain = Recipe::plain("plain", 4096, vec![10; 20]);
    let mut python = Python::start();
    let path = |packed: &Packed| packed.path().to_owned();
    let first = plain.pack();
    for (other, expected) in [
        (Recipe { chunk_size: 8192, ..plain.clone() }, 0),
        (Recipe { keyed: false, ..plain.clone() }, 2),
        (Recipe { attributes: true, ..plain.clone() }, 2),
        (Recipe { several_fields: true, ..plain }, 2),
    ] {
        let other = other.pack();
        let answer = python.ask(&question("plan", &[path(&first), path(&other)]).option("--order", "full"));
        assert_eq!((answer.status, answer.stderr.lines().count()), (expected, usize::from(expected > 0)));
    }
}

#[test]
fn both_readers_refuse_datasets_whose_labels_mean_other_classes() {
    let members = [labelled(70, &["cat", "dog"]), labelled(33, &["dog", "cat"])];
    let paths = members.each_ref().map(|member| member.dataset.path().to_owned());
    let error = Collection::open(&paths, &Default::default()).unwrap_err().to_string();
    assert!(error.ends_with("class 0 is \"cat\" in the first, \"dog\" in the second"), "{error}");
    let answer = Python::start().ask(&question("plan", &paths).option("--order", "full"));
    assert_eq!(answer.status, 2);
    assert!(answer.stderr.contains("class_names"), "{}", answer.stderr);
}

/// PLN-8
#[test]
fn both_readers_refuse_datasets_whose_numbers_have_other_names() {
    let attributes = [("split", AttributeType::Int8), ("label", AttributeType::Int8), ("seen", AttributeType::Bool)];
    let rows: [Row; 1] = [(b"a".to_vec(), vec![None, None, None])];
    let made = |number: usize| {
        let user = UserMetadata::default();
        let user = match number {
            0 => with_names(user, "split_names", &["train", "val"]),
            1 => with_names(user, "split_names", &["val", "train"]),
            2 => with_names(with_names(user, "seen_names", &["no"]), "split_names", &["train", "val"]),
            3 => user,
            _ => user.with_member("split_names", &"train, val".into()).unwrap(),
        };
        columns_with(&attributes, user, &rows)
    };
    let members: Vec<Columns> = (0..5).map(made).collect();
    let mut python = Python::start();
    let unlike = "split_names: name 0 is \"train\" in the first, ";
    for (pair, expected) in [
        ([0, 1], Some(format!("{unlike}\"val\" in the second"))),
        ([0, 2], None), // only integers have names
        ([0, 3], Some(format!("{unlike}missing in the second"))),
        ([3, 4], None), // only lists are names
    ] {
        let paths = pair.map(|member: usize| members[member].dataset.path().to_owned());
        let error = Collection::open(&paths, &Default::default()).err().map(|error| error.to_string());
        match (&error, &expected) {
            (Some(error), Some(expected)) => assert!(error.ends_with(expected), "{error}"),
            (error, expected) => assert_eq!((error, expected), (&None, &None), "{pair:?}"),
        }
        let answer = python.ask(&question("plan", &paths).option("--order", "full"));
        assert_eq!(answer.status, if expected.is_some() { 2 } else { 0 }, "{}", answer.stderr);
        assert!(expected.is_none() || answer.stderr.contains("split_names"), "{}", answer.stderr);
    }
}

/// Labels 0 to 4; some samples have none.
fn labelled(count: i64, classes: &[&str]) -> Columns {
    let row = |ordinal: i64| -> Row {
        let label = (ordinal % 11 > 0).then_some(AttributeValue::Int(ordinal * 5 / count));
        (format!("{count}/{ordinal}").into_bytes(), vec![label])
    };
    columns(&[("label", AttributeType::Int16)], classes, &(0..count).map(row).collect::<Vec<_>>())
}

/// SUB-6, SUB-8
#[test]
fn both_readers_choose_the_same_samples_of_several_datasets() {
    let members = [70, 33, 150].map(|count| labelled(count, &["cat", "dog", "cat"]));
    let paths = members.each_ref().map(|member| member.dataset.path().to_owned());
    let mut python = Python::start();
    for text in [
        "ordinal in 65..80, 102..110",
        "label is present and label = 'cat'",
        "label is missing or label = 'dog' and not ordinal < 10",
        "key_hash < 0.3",
        "key starts with '33/1'",
    ] {
        let expression: Expression = text.parse().unwrap();
        let (mut words, mut first_ordinal) = (Vec::new(), 0);
        for member in &members {
            expression.evaluate_into(&member.dataset, first_ordinal, &mut words).unwrap();
            first_ordinal += member.dataset.sample_count();
        }
        let subset = Subset::from_words(first_ordinal, words).unwrap();
        let expected: Vec<_> = subset.ordinals_in(0..first_ordinal).map(|ordinal| ordinal.to_string()).collect();
        assert!(!expected.is_empty());
        let printed = python.ask(&question("subset", &paths).word(serde_json::to_string(text).unwrap())).lines();
        assert_eq!(printed[0].split_whitespace().collect::<Vec<_>>(), expected, "{text}");
    }
}

/// The numbers of the second reader's command line, in the order of those of [`first_numbers`].
fn second_numbers(python: &mut Python, columns: &Columns, options: &[(&str, String)]) -> Vec<f64> {
    let asked = Question::new("plan", columns.dataset.path()).word("--mixing").word("--json").option("--step", 0);
    let asked = options.iter().fold(asked, |question, (name, value)| question.option(name, value));
    let reported: Value = serde_json::from_slice(&python.ask(&asked).success()).unwrap();
    let numbers = |looked: &str| {
        let names = ["parts", "full_shuffle_parts", "classes", "full_shuffle_classes"];
        names.map(|name| reported["mixing"][looked][name].as_f64().unwrap())
    };
    ["one_batch", "sixteen_batches"].map(numbers).concat()
}

fn first_numbers(mixing: &Mixing) -> Vec<f64> {
    let pairs = [(mixing.one, mixing.full_one), (mixing.sixteen, mixing.full_sixteen)];
    let numbers = pairs.map(|(found, full)| [found.parts, full.parts, found.classes.unwrap(), full.classes.unwrap()]);
    numbers.concat()
}

/// MIX-1, MIX-2
#[test]
fn both_readers_report_the_same_mixing_of_an_order() {
    let columns = labelled(700, &[]);
    let labels: Vec<_> = (0..700).map(|ordinal| columns.dataset.attributes(ordinal).unwrap().remove(0)).collect();
    let class_of = |ordinal: u64| match labels[to_usize(ordinal)] {
        Some(AttributeValue::Int(label)) => Some(label.unsigned_abs()),
        _ => None,
    };
    let subset = Arc::new(Subset::from_range(700, 100..450).unwrap());
    let (mut python, reader) = (Python::start(), open(&[columns.dataset.path().to_owned()]));
    for (order, world, batch_size, subset) in [
        (Order::Full, 1, 16, None),
        (Order::Chunked, 3, 5, None),
        (Order::Sequential, 1, 64, None),
        (Order::Sequential, 2, 500, None),
        (Order::Full, 2, 8, Some(subset.clone())),
        (Order::Sequential, 1, 7, Some(subset)),
    ] {
        let mut arguments = vec![
            ("--order", order.to_string()),
            ("--world", world.to_string()),
            ("--batch-size", batch_size.to_string()),
        ];
        arguments.extend(subset.iter().map(|_| ("--subset", "ordinal in 100..450".to_owned())));
        let options = EpochOptions { order: order.into(), subset, ..EpochOptions::default() };
        let (plan, size) = (reader.plan(&options).unwrap(), NonZeroU64::new(world * batch_size).unwrap());
        let places = NonZeroU32::new(11).unwrap();
        let first = first_numbers(&Mixing::measure(plan.plan(), size, Some(&class_of), places));
        let second = second_numbers(&mut python, &columns, &arguments);
        assert_eq!(first.len(), second.len());
        for (first_number, second_number) in first.iter().zip(&second) {
            assert!((first_number - second_number).abs() < 1e-9 * first_number.max(1.0), "{first:?}, {second:?}");
        }
    }
}
