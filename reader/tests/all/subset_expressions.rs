//! Compares expressions with an evaluator that takes one sample after the other and computes with integers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::cmp::Ordering;
use std::sync::LazyLock;

use grainstore_format::{AttributeType, AttributeValue, nearest_bfloat16, nearest_float16};
use grainstore_reader::{Expression, SelectError, Subset};
use half::{bf16, f16};
use proptest::prelude::*;
use proptest::sample::select;
use xxhash_rust::xxh64::xxh64;

use crate::columns::{Columns, Row, columns};

/// Every type once, and a name that must be quoted. Samples may lack the values of those that start with `m`.
const ATTRIBUTES: [(&str, AttributeType); 15] = [
    ("label", AttributeType::Int64),
    ("tiny", AttributeType::Int8),
    ("m_short", AttributeType::Int16),
    ("int", AttributeType::Int32),
    ("byte", AttributeType::Uint8),
    ("ordinal", AttributeType::Uint16),
    ("m not", AttributeType::Uint32),
    ("big", AttributeType::Uint64),
    ("m_half", AttributeType::Float32),
    ("ratio", AttributeType::Float64),
    ("m_flag", AttributeType::Bool),
    ("m_time", AttributeType::Timestamp),
    ("half16", AttributeType::Float16),
    ("brain", AttributeType::Bfloat16),
    ("m_split", AttributeType::Category),
];

/// The last is the category of no sample.
const SPLITS: [&str; 4] = ["train", "te's\\t", "", "validation"];

/// What texts are searched for.
const PARTS: [&str; 9] = ["2/", "2/é1", "", "9", "t", "'s\\", "\\", "it's", "do"];

const CLASSES: [&str; 4] = ["cat", "dog", "it's \"odd\" \\", "cat"];

/// Two groups of 64 and a bit.
const SAMPLES: u64 = 150;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| (0..SAMPLES).map(row).collect());
static DATASET: LazyLock<Columns> = LazyLock::new(|| columns(&ATTRIBUTES, &CLASSES, &ROWS));

fn draw(ordinal: u64, what: &str) -> u64 {
    xxh64(what.as_bytes(), ordinal)
}

fn row(ordinal: u64) -> Row {
    let value = |(name, kind): &(&str, AttributeType)| {
        let draw = draw(ordinal, name);
        (!name.starts_with('m') || draw >> 60 > 3).then(|| value(kind, draw))
    };
    let key = format!("{}/é{ordinal}'", draw(ordinal, "key") % 4);
    (key.into_bytes(), ATTRIBUTES.iter().map(value).collect())
}

/// Mostly small values, and the limits of the types.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a draw is any value")]
fn value(kind: &AttributeType, draw: u64) -> AttributeValue {
    let (small, edge) = ((draw % 9) as i64 - 4, draw >> 32 & 7);
    match kind {
        AttributeType::Bool => AttributeValue::Bool(draw & 1 == 1),
        AttributeType::Category => AttributeValue::Category(SPLITS[(draw % 3) as usize].into()),
        AttributeType::Float16 => {
            let value = [0.1, f32::NAN, -0.0, f32::INFINITY, small as f32 / 4.0][(edge % 5) as usize];
            AttributeValue::Float16(f16::from_f32(value))
        }
        AttributeType::Bfloat16 => {
            let value = [0.1, f32::NAN, -0.0, 1e30, small as f32 / 4.0][(edge % 5) as usize];
            AttributeValue::Bfloat16(bf16::from_f32(value))
        }
        AttributeType::Float32 | AttributeType::Float64 => {
            let value = [0.1, f64::NAN, -0.0, 1e30, small as f64, small as f64, small as f64 / 4.0, small as f64]
                [edge as usize];
            if *kind == AttributeType::Float32 {
                AttributeValue::Float32(value as f32)
            } else {
                AttributeValue::Float64(value)
            }
        }
        AttributeType::Uint8 | AttributeType::Uint16 | AttributeType::Uint32 | AttributeType::Uint64 => {
            let max = u64::MAX >> (64 - 8 * kind.width().unwrap());
            AttributeValue::Uint(if edge == 0 { max } else { draw % 9 })
        }
        _ => {
            let max = i64::MAX >> (64 - 8 * kind.width().unwrap());
            let value = [max, -max - 1, small, small, small, small, small, small][edge as usize];
            if *kind == AttributeType::Timestamp {
                AttributeValue::Timestamp(value)
            } else {
                AttributeValue::Int(value)
            }
        }
    }
}

/// A literal: its value in thousandths, and a way to write it.
#[derive(Clone, Debug)]
struct Literal {
    thousandths: i128,
    text: String,
}

/// An expression in a form that is simple to evaluate.
#[derive(Clone, Debug)]
enum Naive {
    Any(Vec<Naive>),
    All(Vec<Naive>),
    Not(Box<Naive>),
    Number(&'static str, &'static str, Literal),
    Among(&'static str, bool, Vec<(Literal, Option<Literal>)>),
    Bool(&'static str, bool, bool),
    Class(bool, Vec<&'static str>),
    Split(bool, Vec<&'static str>),
    Present(&'static str, bool),
    Key(bool, Vec<u64>),
    Search(&'static str, &'static str, &'static str),
}

/// The attribute that a sample lacks.
type Lacks = &'static str;

impl Naive {
    fn text(&self) -> String {
        let joined = |parts: &[Self], joint: &str| parts.iter().map(Self::text).collect::<Vec<_>>().join(joint);
        match self {
            Self::Any(parts) => format!("({})", joined(parts, " OR ")),
            Self::All(parts) => format!("({})", joined(parts, "  and\n")),
            Self::Not(part) => format!("not {}", part.text()),
            Self::Number(name, symbol, literal) => format!("{}{symbol}{}", shown(name), literal.text),
            Self::Among(name, negated, items) => {
                let range =
                    |end: &Option<Literal>| end.as_ref().map_or_else(String::new, |end| format!("..{}", end.text));
                let items: Vec<_> = items.iter().map(|(start, end)| format!("{}{}", start.text, range(end))).collect();
                format!("{} {} ({})", shown(name), if *negated { "Not In" } else { "in" }, items.join(","))
            }
            Self::Bool(name, equal, value) => format!("{} {} {value}", shown(name), if *equal { "=" } else { "!=" }),
            Self::Class(negated, classes) => {
                let classes: Vec<_> = classes.iter().map(|class| string(class)).collect();
                format!("label {} {}", if *negated { "not in" } else { "in" }, classes.join(", "))
            }
            Self::Split(negated, splits) => {
                let splits: Vec<_> = splits.iter().map(|split| string(split)).collect();
                format!("m_split {} ({})", if *negated { "not in" } else { "in" }, splits.join(", "))
            }
            Self::Present(name, present) => {
                format!("{} is {}", shown(name), if *present { "present" } else { "missing" })
            }
            Self::Key(equal, ordinals) => {
                let keys: Vec<_> = ordinals.iter().map(|ordinal| string(&key_of(*ordinal))).collect();
                format!("key {} {}", if *equal { "in" } else { "not in" }, keys.join(" , "))
            }
            Self::Search(name, relation, text) => format!("{name} {relation} {}", string(text)),
        }
    }

    fn meets(&self, ordinal: u64) -> Result<bool, Lacks> {
        match self {
            Self::Any(parts) => {
                for part in parts {
                    if part.meets(ordinal)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.meets(ordinal)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Not(part) => Ok(!part.meets(ordinal)?),
            Self::Number(name, symbol, literal) => {
                let order = compare(name, ordinal, literal)?;
                Ok(match *symbol {
                    "==" => order == Some(Ordering::Equal),
                    "!=" => order != Some(Ordering::Equal),
                    "<" => order == Some(Ordering::Less),
                    "<=" => order.is_some_and(Ordering::is_le),
                    ">" => order == Some(Ordering::Greater),
                    _ => order.is_some_and(Ordering::is_ge),
                })
            }
            Self::Among(name, negated, items) => {
                let mut found = false;
                for (start, end) in items {
                    let low = compare(name, ordinal, start)?;
                    found |= match end {
                        None => low == Some(Ordering::Equal),
                        Some(end) => {
                            low.is_some_and(Ordering::is_ge) && compare(name, ordinal, end)? == Some(Ordering::Less)
                        }
                    };
                }
                Ok(found != *negated)
            }
            Self::Bool(name, equal, value) => Ok((attribute(name, ordinal)? == AttributeValue::Bool(*value)) == *equal),
            Self::Class(negated, classes) => {
                let AttributeValue::Int(label) = attribute("label", ordinal)? else { unreachable!() };
                let class = usize::try_from(label).ok().and_then(|label| CLASSES.get(label));
                Ok(class.is_some_and(|class| classes.contains(class)) != *negated)
            }
            Self::Split(negated, splits) => {
                let AttributeValue::Category(split) = attribute("m_split", ordinal)? else { unreachable!() };
                Ok(splits.contains(&split.as_ref()) != *negated)
            }
            Self::Present(name, present) => Ok(attribute(name, ordinal).is_ok() == *present),
            Self::Key(equal, ordinals) => Ok(ordinals.contains(&ordinal) == *equal),
            Self::Search(name, relation, part) => {
                let text = match (*name, attribute(if *name == "key" { "label" } else { name }, ordinal)?) {
                    ("key", _) => Some(key_of(ordinal)),
                    (_, AttributeValue::Category(split)) => Some(split.to_string()),
                    (_, AttributeValue::Int(label)) => {
                        usize::try_from(label).ok().and_then(|label| CLASSES.get(label)).map(|&class| class.to_owned())
                    }
                    _ => unreachable!(),
                };
                Ok(text.is_some_and(
                    |text| if *relation == "contains" { text.contains(part) } else { text.starts_with(part) },
                ))
            }
        }
    }
}

fn key_of(ordinal: u64) -> String {
    String::from_utf8(row(ordinal).0).unwrap()
}

fn attribute(name: &'static str, ordinal: u64) -> Result<AttributeValue, Lacks> {
    let place = ATTRIBUTES.iter().position(|attribute| attribute.0 == name).unwrap();
    ROWS[usize::try_from(ordinal).unwrap()].1[place].clone().ok_or(name)
}

/// `#` means the ordinal, so that an attribute may have the name `ordinal`.
fn compare(name: &'static str, ordinal: u64, literal: &Literal) -> Result<Option<Ordering>, Lacks> {
    let integer = |value: i128| Ok(Some((value * 1000).cmp(&literal.thousandths)));
    match name {
        "#" => integer(ordinal.into()),
        "#hash" => {
            let hash = i128::from(xxh64(&row(ordinal).0, 0));
            Ok(Some((hash * 1000).cmp(&(literal.thousandths << 64))))
        }
        _ => match attribute(name, ordinal)? {
            AttributeValue::Int(value) | AttributeValue::Timestamp(value) => integer(value.into()),
            AttributeValue::Float16(value) => {
                Ok(value.to_f64().partial_cmp(&nearest_float16(literal.text.parse().unwrap()).to_f64()))
            }
            AttributeValue::Bfloat16(value) => {
                Ok(value.to_f64().partial_cmp(&nearest_bfloat16(literal.text.parse().unwrap()).to_f64()))
            }
            AttributeValue::Uint(value) => integer(value.into()),
            AttributeValue::Float32(value) => Ok(value.partial_cmp(&(nearest_f32(literal.text.parse().unwrap())))),
            AttributeValue::Float64(value) => Ok(value.partial_cmp(&literal.text.parse().unwrap())),
            AttributeValue::Bool(_) | AttributeValue::Category(_) | AttributeValue::Opaque(_) => unreachable!(),
        },
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the nearest one is wanted")]
fn nearest_f32(value: f64) -> f32 {
    value as f32
}

fn shown(name: &str) -> String {
    match name {
        "#" => "ordinal".to_owned(),
        "#hash" => "key_hash".to_owned(),
        "ordinal" | "m not" => format!("\"{name}\""),
        _ => name.to_owned(),
    }
}

fn string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('é', "\\xc3\\xa9"))
}

fn literal() -> impl Strategy<Value = Literal> {
    let whole = prop_oneof![6 => -6_i128..6, 2 => 0..i128::from(SAMPLES), 1 => select(vec![127, -128, 255, 65_535, i64::MAX.into(), i64::MIN.into(), u64::MAX.into()])];
    let fraction = prop_oneof![3 => Just(0), 1 => select(vec![-1, 1, 250, 500, 100])];
    (whole, fraction, 0..3).prop_map(|(whole, fraction, way)| written(whole * 1000 + fraction, way))
}

fn fraction() -> impl Strategy<Value = Literal> {
    (0..=1000_i128, 0..3).prop_map(|(thousandths, way)| written(thousandths, way))
}

fn written(thousandths: i128, way: i32) -> Literal {
    let (sign, size) = (if thousandths < 0 { "-" } else { "" }, thousandths.unsigned_abs());
    let text = match way {
        0 if size.is_multiple_of(1000) => format!("{sign}{}", size / 1000),
        1 => format!("{sign}{size}e-3"),
        _ => format!("{sign}{}.{:03}", size / 1000, size % 1000),
    };
    Literal { thousandths, text }
}

fn numbers() -> impl Strategy<Value = &'static str> {
    select(vec![
        "#", "label", "tiny", "m_short", "int", "byte", "ordinal", "m not", "big", "m_half", "ratio", "m_time",
        "half16", "brain",
    ])
}

fn items(literal: impl Strategy<Value = Literal> + 'static) -> impl Strategy<Value = Vec<(Literal, Option<Literal>)>> {
    let literal = literal.boxed();
    let item = (literal.clone(), proptest::option::of(literal)).prop_map(|(start, end)| match end {
        Some(end) if end.thousandths < start.thousandths => (end, Some(start)),
        Some(end) if end.thousandths == start.thousandths => (start, None),
        end => (start, end),
    });
    prop::collection::vec(item, 1..4)
}

fn test() -> impl Strategy<Value = Naive> {
    let symbol = || select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let optional = select(vec!["m_short", "m not", "m_half", "m_flag", "ratio", "m_time", "m_split", "brain"]);
    let splits = prop::collection::vec(select(SPLITS[..3].to_vec()), 1..3);
    let classes = prop::collection::vec(select(CLASSES.to_vec()), 1..3);
    prop_oneof![
        3 => (numbers(), symbol(), literal()).prop_map(|(name, symbol, literal)| Naive::Number(name, symbol, literal)),
        3 => (numbers(), any::<bool>(), items(literal())).prop_map(|(name, negated, items)| Naive::Among(name, negated, items)),
        1 => (symbol(), fraction()).prop_map(|(symbol, literal)| Naive::Number("#hash", symbol, literal)),
        1 => (any::<bool>(), items(fraction())).prop_map(|(negated, items)| Naive::Among("#hash", negated, items)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(equal, value)| Naive::Bool("m_flag", equal, value)),
        1 => (any::<bool>(), classes).prop_map(|(negated, classes)| Naive::Class(negated, classes)),
        1 => (any::<bool>(), splits).prop_map(|(negated, splits)| Naive::Split(negated, splits)),
        1 => (optional, any::<bool>()).prop_map(|(name, present)| Naive::Present(name, present)),
        1 => (any::<bool>(), prop::collection::vec(0..SAMPLES, 1..5)).prop_map(|(equal, keys)| Naive::Key(equal, keys)),
        2 => (select(vec!["key", "m_split", "label"]), select(vec!["starts with", "contains"]), select(PARTS.to_vec()))
            .prop_map(|(name, relation, part)| Naive::Search(name, relation, part)),
    ]
    .prop_map(guarded)
}

/// A test of a value that may be missing, with its guard; for `m_short` the guard is often left out, to see the error.
fn guarded(test: Naive) -> Naive {
    let name = match &test {
        Naive::Number(name, symbol, _) if *name != "m_short" || *symbol != "<" => name,
        Naive::Among(name, negated, _) if *name != "m_short" || *negated => name,
        Naive::Bool(name, ..) => name,
        Naive::Split(..) => &"m_split",
        Naive::Search(name, ..) => name,
        _ => return test,
    };
    match (name.starts_with('m'), &test) {
        (false, _) => test,
        (true, Naive::Among(_, true, _) | Naive::Split(true, _)) => Naive::Any(vec![Naive::Present(name, false), test]),
        (true, _) => Naive::All(vec![Naive::Present(name, true), test]),
    }
}

fn expression() -> impl Strategy<Value = Naive> {
    test().prop_recursive(4, 16, 4, |inner| {
        let parts = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts().prop_map(Naive::Any),
            parts().prop_map(Naive::All),
            inner.clone().prop_map(|part| Naive::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// SUB-2, SUB-4, SUB-5, SUB-6, SUB-7, SUB-8, SUB-9, SUB-10
    #[test]
    fn an_expression_chooses_the_samples_that_meet_it_one_by_one(naive in expression()) {
        let text = naive.text();
        let expression: Expression = text.parse().unwrap();
        let expected: Vec<_> = (0..SAMPLES).map(|ordinal| naive.meets(ordinal)).collect();
        match expression.select(&DATASET.dataset) {
            Ok(subset) => {
                let expected: Result<Vec<bool>, _> = expected.into_iter().collect();
                let expected = (0..).zip(expected.unwrap()).filter(|(_, meets)| *meets).map(|(ordinal, _)| ordinal);
                prop_assert_eq!(subset.ordinals_in(0..SAMPLES).collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{}", text);
            }
            Err(SelectError::Missing { ordinal, attribute, .. }) => {
                prop_assert_eq!(expected[usize::try_from(ordinal).unwrap()].map_err(shown), Err(attribute), "{}", text);
            }
            Err(other) => panic!("{text}: {other}"),
        }
    }

    /// SUB-2, SUB-3, SUB-4
    #[test]
    fn an_expression_is_written_so_that_it_parses_again(naive in expression()) {
        let expression: Expression = naive.text().parse().unwrap();
        let written = expression.to_string();
        prop_assert_eq!(written.parse::<Expression>().unwrap(), expression, "{}", &written);
        prop_assert_eq!(written.parse::<Expression>().unwrap().to_string(), written);
    }
}

/// SUB-6
#[test]
fn datasets_one_after_the_other_make_one_bitmap() {
    let expression: Expression = "ordinal in 3, 149..155, 300..302 or \"ordinal\" > 9".parse().unwrap();
    let one = expression.select(&DATASET.dataset).unwrap();
    let mut words = Vec::new();
    for first_ordinal in [0, SAMPLES, 2 * SAMPLES] {
        expression.evaluate_into(&DATASET.dataset, first_ordinal, &mut words).unwrap();
    }
    let all = Subset::from_words(3 * SAMPLES, words).unwrap();
    let wide = |ordinal: u64| attribute("ordinal", ordinal % SAMPLES).unwrap() == AttributeValue::Uint(65_535);
    let listed = |ordinal: u64| ordinal == 3 || (149..155).contains(&ordinal) || (300..302).contains(&ordinal);
    let expected = (0..3 * SAMPLES).filter(|&ordinal| wide(ordinal) || listed(ordinal));
    assert!(all.ordinals_in(0..u64::MAX).eq(expected));
    assert!(one.ordinals_in(0..u64::MAX).eq(all.ordinals_in(0..SAMPLES)));
}

/// SUB-8
#[test]
fn a_string_that_is_no_category_of_any_dataset_is_an_error() {
    let select = |text: &str| text.parse::<Expression>().unwrap().select(&DATASET.dataset).map(|subset| subset.len());
    let error = select("label > 3 and m_split in 'train', 'validation'").unwrap_err().to_string();
    assert!(error.contains("m_split at column 15: no category \"validation\" (there are: "), "{error}");
    assert!(error.contains("train") && error.contains("te's\\\\t"), "{error}");
    for text in ["m_split == 3", "m_split > 1", "m_split == true", "m_split in 1..2", "m_time == 'train'"] {
        assert!(matches!(select(text), Err(SelectError::Unfit { .. })), "{text}");
    }
}
