//! Orders, the batches of ranks, subsets and mixing of the corpus's datasets.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::{Arc, Mutex};

use grainstore_format::to_usize;
use grainstore_reader::plan::{Mixing, Share, ShareSpec};
use grainstore_reader::{EpochOptions, EpochPlan, Expression, Reader, Subset};
use serde_json::{Value, json};

use super::{lines, members, reader_options, shown, table};

/// The reader of a line's datasets.
pub(super) fn open(line: &Value) -> Reader {
    let generation = line.get("generation").map(|generation| to_usize(generation.as_u64().unwrap()));
    Reader::open_all(&members(line), reader_options(generation, false)).unwrap()
}

/// The samples of an expression, with as many spaces at its end as the line asks for.
fn select(reader: &Reader, line: &Value, member: &str) -> Result<Subset, String> {
    let text = padded(line, member);
    let expression: Expression = text.parse().map_err(|error: grainstore_reader::ExpressionError| error.to_string())?;
    expression.select_from(reader.collection()).map_err(|error| error.to_string())
}

pub(super) fn padded(line: &Value, member: &str) -> String {
    let spaces = line.get("spaces").map_or(0, |spaces| to_usize(spaces.as_u64().unwrap()));
    format!("{}{}", line[member].as_str().unwrap(), " ".repeat(spaces))
}

/// The options of the epoch that a line specifies.
pub(super) fn options(reader: &Reader, line: &Value) -> EpochOptions {
    let number = |name: &str| line.get(name).and_then(Value::as_u64);
    EpochOptions {
        order: line["order"].as_str().unwrap().parse().unwrap(),
        seed: number("seed").unwrap_or_default(),
        epoch: number("epoch").unwrap_or_default(),
        lanes: number("lanes"),
        group: number("group").map(|group| NonZeroU32::new(group.try_into().unwrap()).unwrap()),
        window_len: number("window").unwrap_or(EpochOptions::DEFAULT_WINDOW_LEN),
        subset: line.get("subset").map(|_| Arc::new(select(reader, line, "subset").unwrap())),
        ..EpochOptions::default()
    }
}

fn plan(reader: &Reader, line: &Value) -> EpochPlan {
    let shown = line.to_string();
    let shown = &shown[..shown.len().min(300)];
    reader.plan(&options(reader, line)).unwrap_or_else(|error| panic!("{shown}: {error}"))
}

pub(super) fn ordinals(plan: &EpochPlan) -> Vec<u64> {
    plan.plan().ordinals_from(0).collect()
}

pub(super) fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// PLN-1 to PLN-9, FPR-2
#[test]
fn the_orders_of_the_corpus_are_the_expected_ones() {
    let table = table("orders.json");
    for line in lines(&table, "orders") {
        let reader = open(line);
        let plan = plan(&reader, line);
        let expect = &line["expect"];
        let subset = options(&reader, line).subset.map(|subset| format!("{:016x}", subset.hash()));
        let found = json!({
            "order": plan.order().to_string(),
            "lanes": plan.lanes(),
            "group": plan.group(),
            "fingerprint": reader.collection().fingerprint().to_string(),
            "subset_hash": subset,
            "n": plan.plan().len(),
            "ordinals": ordinals(&plan),
        });
        assert_eq!(&found, expect, "{line}");
    }
}

fn share_spec(line: &Value, rank: u64) -> ShareSpec {
    let number = |name: &str| line[name].as_u64().unwrap();
    ShareSpec {
        rank,
        world: number("world"),
        batch_size: NonZeroUsize::new(to_usize(number("batch_size"))).unwrap(),
        start: number("begin"),
        tail: line["tail"].as_str().unwrap().parse().unwrap(),
    }
}

/// RNK-1 to RNK-3, STA-3
#[test]
fn the_batches_of_every_rank_are_the_expected_ones() {
    let table = table("orders.json");
    for line in lines(&table, "batches") {
        let reader = open(line);
        let plan = plan(&reader, line);
        for (rank, expected) in (0..).zip(line["ranks"].as_array().unwrap()) {
            let share = Share::new(plan.plan(), share_spec(line, rank)).unwrap();
            let found: Vec<_> = share.steps(plan.plan(), 0).map(|batch| batch.ordinals).collect();
            assert_eq!(&json!(found), expected, "rank {rank} of {line}");
            let positions: Vec<_> = (0..=share.batch_count()).map(|k| share.position_after(k)).collect();
            assert_eq!(json!(positions), line["positions_after"], "{line}");
        }
    }
}

/// PLN-5, PLN-7 to PLN-9, RNK-3
#[test]
fn invalid_epochs_and_unlike_datasets_are_refused() {
    let table = table("orders.json");
    for line in lines(&table, "refused") {
        // The type of the option holds no other group.
        let group =
            line.get("group").map(|group| u32::try_from(group.as_u64().unwrap()).ok().and_then(NonZeroU32::new));
        if group == Some(None) {
            continue;
        }
        let planned = Reader::open_all(&members(line), reader_options(None, false))
            .and_then(|reader| reader.plan(&options(&reader, line)));
        let refused = match (&planned, line.get("world")) {
            (Ok(plan), Some(_)) => Share::new(plan.plan(), share_spec(line, 0)).is_err(),
            (planned, _) => planned.is_err(),
        };
        assert!(refused, "{}", line["about"]);
    }
}

/// MIX-1, MIX-2
#[test]
fn orders_are_as_mixed_as_expected() {
    let table = table("orders.json");
    for line in lines(&table, "mixing") {
        let reader = open(line);
        let plan = plan(&reader, line);
        let size = NonZeroU64::new(line["batch_size"].as_u64().unwrap()).unwrap();
        let column = reader.collection().column(line["class"].as_str().unwrap()).unwrap();
        let numbers = Mutex::new(HashMap::new());
        let class_of = |ordinal| {
            let value = shown::attribute(Some(&column.get(ordinal)?)).to_string();
            let mut numbers = numbers.lock().unwrap();
            let next = numbers.len() as u64;
            Some(*numbers.entry(value).or_insert(next))
        };
        let found = Mixing::measure(plan.plan(), size, Some(&class_of), Mixing::PLACES);
        let both = [("1", &found.one, &found.full_one), ("16", &found.sixteen, &found.full_sixteen)];
        for (count, looked, full) in both {
            let expected = |of: &str| line["mixing"][format!("{of}_{count}")].clone();
            assert_close(&[looked.parts, full.parts], &expected("parts"), line);
            assert_close(&[looked.classes.unwrap(), full.classes.unwrap()], &expected("classes"), line);
        }
    }
}

fn assert_close(found: &[f64], expected: &Value, line: &Value) {
    for (found, expected) in found.iter().zip(expected.as_array().unwrap()) {
        let expected = expected.as_f64().unwrap();
        assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{found}, not {expected}: {line}");
    }
}

/// SUB-1 to SUB-10
#[test]
fn subsets_have_the_expected_samples() {
    let table = table("orders.json");
    let mut wrong = vec![];
    for line in lines(&table, "subsets") {
        let reader = open(line);
        let found = select(&reader, line, "expression");
        let shown = match &found {
            Ok(subset) => json!({
                "ordinals": subset.ordinals_in(0..subset.sample_count()).collect::<Vec<_>>(),
                "hash": format!("{:016x}", subset.hash()),
            }),
            Err(_) => json!({ "error": true }),
        };
        if shown.as_object().unwrap().iter().any(|(name, value)| line.get(name) != Some(value)) {
            wrong.push(format!("{}: {shown}, {:?}", line["expression"], found.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
