//! Subsets by expression: the Python reader that was written from spec.md and order.md alone accepts and refuses the same
//! expressions as the reader, and chooses the same samples.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write as _;
use std::path::Path;

use grainstore_format::{AttributeType, AttributeValue, UserMetadata, to_usize};
use grainstore_reader::Expression;
use half::{bf16, f16};

use crate::columns::{Columns, Row, columns_with, with_names};
use crate::common::Random;
use crate::second::{Python, Question};

const ROW_COUNT: i64 = 40;

/// Attributes of every kind, with the limits of their types among the values; some samples have no width.
fn dataset() -> Columns {
    let attributes = [
        ("label", AttributeType::Int32),
        ("width", AttributeType::Uint16),
        ("deep", AttributeType::Int64),
        ("large", AttributeType::Uint64),
        ("half", AttributeType::Float32),
        ("ratio", AttributeType::Float64),
        ("flag", AttributeType::Bool),
        ("is", AttributeType::Int8),
        ("KEY", AttributeType::Int8),
        ("short", AttributeType::Float16),
        ("brain", AttributeType::Bfloat16),
        ("time", AttributeType::Timestamp),
        ("split", AttributeType::Category),
    ];
    let user = with_names(UserMetadata::default(), "class_names", &["cat", "dog", "größe", "cat"]);
    let user = with_names(with_names(user, "is_names", &["dog", "", "cat"]), "ratio_names", &["cat"]);
    columns_with(&attributes, user, &(0..ROW_COUNT).map(row).collect::<Vec<_>>())
}

fn row(ordinal: i64) -> Row {
    let wide = [0, 3, i64::MAX, i64::MIN, -1, 1000][to_usize((ordinal % 6).unsigned_abs())];
    let ratio = [0.1, 0.5, f64::NAN, f64::INFINITY, -2.5, 3.0, f64::NEG_INFINITY, f64::MAX, -0.0];
    let values = vec![
        Some(AttributeValue::Int(ordinal % 5)),
        (ordinal % 7 != 4).then(|| AttributeValue::Uint(ordinal.unsigned_abs() * 10)),
        Some(AttributeValue::Int(wide)),
        Some(AttributeValue::Uint(wide.cast_unsigned())),
        Some(AttributeValue::Float32([0.1, 16_777_216.0, f32::NAN, 2.5][to_usize((ordinal % 4).unsigned_abs())])),
        Some(AttributeValue::Float64(ratio[to_usize((ordinal % 9).unsigned_abs())])),
        Some(AttributeValue::Bool(ordinal % 3 == 0)),
        Some(AttributeValue::Int(ordinal % 4)),
        Some(AttributeValue::Int(ordinal % 2)),
        Some(AttributeValue::Float16(f16::from_f64(ratio[to_usize((ordinal % 9).unsigned_abs())]))),
        Some(AttributeValue::Bfloat16(bf16::from_f64(ratio[to_usize((ordinal % 9).unsigned_abs())]))),
        Some(AttributeValue::Timestamp(wide)),
        (ordinal % 11 != 5).then(|| {
            AttributeValue::Category(["cat", "", "größe", "n1", "cat"][to_usize((ordinal % 5).unsigned_abs())].into())
        }),
    ];
    (format!("n{ordinal}/größe").into_bytes(), values)
}

const NAMES: [&str; 19] = [
    "label", "width", "width", "deep", "large", "half", "ratio", "flag", "\"is\"", "\"KEY\"", "ordinal", "key",
    "key_hash", "none", "short", "brain", "time", "split", "split",
];
const NUMBERS: [&str; 30] = [
    "0",
    "1",
    "3",
    "-1",
    "2.5",
    "0.5",
    "0.1",
    "-0",
    "1000",
    "1e3",
    "5e-1",
    "120",
    "16777217",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "-1e400",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "0.1000000014901161193847656250",
    "0.99999999999999999999999",
    // Between numbers of 16 bits.
    "0.0999755859375",
    "0.10009765625",
    "0.100036621093750000000000001",
    "65519.999",
    "65520",
    "3.3961775292304e38",
];
/// Numbers that hashes are mostly compared with.
const FRACTIONS: [&str; 7] = ["0", "-0", "0.25", "5e-1", "0.75", "0.99999999999999999999999", "1.0"];
const STRINGS: [&str; 6] = ["'cat'", "'dog'", "'gr\\u{f6}\\xc3\\x9fe'", "'n3/größe'", "'n1'", "''"];

fn one_of<'t>(of: &[&'t str], random: &mut Random) -> &'t str {
    of[to_usize(random.below(of.len() as u64))]
}

fn any_value(random: &mut Random) -> &'static str {
    match random.below(12) {
        0 => one_of(&["true", "FALSE"], random),
        1 | 2 => one_of(&STRINGS, random),
        _ => one_of(&NUMBERS, random),
    }
}

fn any_item(name: &str, random: &mut Random) -> String {
    let numbers = if name == "key_hash" && random.below(8) > 0 { &FRACTIONS[..] } else { &NUMBERS[..] };
    match random.below(6) {
        0 | 1 => format!("{}..{}", one_of(numbers, random), one_of(numbers, random)),
        2 => any_value(random).into(),
        _ => one_of(numbers, random).into(),
    }
}

/// A random test, mostly one that is valid for its attribute.
fn any_test(random: &mut Random) -> String {
    let name = one_of(&NAMES, random);
    let value = match (name, random.below(8)) {
        (_, 0) => any_value(random),
        ("key" | "split", _) | ("label" | "\"is\"", 1..5) => one_of(&STRINGS, random),
        ("flag", _) => one_of(&["true", "False"], random),
        ("key_hash", _) => one_of(&FRACTIONS, random),
        _ => one_of(&NUMBERS, random),
    };
    match random.below(6) {
        0 => format!("{name} is {}", one_of(&["missing", "Present"], random)),
        1 => {
            let name = if random.below(4) == 0 { name } else { one_of(&["key", "split", "label", "\"is\""], random) };
            let relation = one_of(&["starts with", "CONTAINS"], random);
            format!("{name} {relation} {}", one_of(&[&STRINGS[..], &["'n'", "'t'", "'\\xc3'"]].concat(), random))
        }
        2 => {
            let items: Vec<_> = (0..random.below(3)).map(|_| any_item(name, random)).collect();
            let items = [items, vec![value.into()]].concat().join(", ");
            let (open, close) = if random.below(2) == 0 { ("(", ")") } else { ("", "") };
            format!("{name} {} {open}{items}{close}", one_of(&["in", "not in"], random))
        }
        _ => format!("{name} {} {value}", one_of(&["=", "==", "!=", "<", "<=", ">", ">="], random)),
    }
}

fn any_expression(depth: u64, random: &mut Random) -> String {
    if depth == 0 {
        return any_test(random);
    }
    match random.below(6) {
        0 => format!("not {}", any_expression(depth - 1, random)),
        1 => format!("({})", any_expression(depth - 1, random)),
        2 => format!("width is present and {}", any_expression(depth - 1, random)),
        3 => format!("{} Or {}", any_expression(depth - 1, random), any_expression(depth - 1, random)),
        4 => format!("{} and {}", any_expression(depth - 1, random), any_expression(depth - 1, random)),
        _ => any_test(random),
    }
}

/// The text with a character removed, doubled, inserted or moved.
fn spoilt(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let place = to_usize(random.below(characters.len() as u64));
    match random.below(3) {
        0 => drop(characters.remove(place)),
        1 => characters.insert(place, characters[place]),
        _ => characters.insert(
            place,
            one_of(&[" ", ".", "e", "\\", "'", "\"", "(", "-", "ß", "\n", "\t"], random).chars().next().unwrap(),
        ),
    }
    characters.into_iter().collect()
}

fn any_words(random: &mut Random) -> String {
    let words = [
        "label", "key", "starts", "with", "contains", "and", "or", "not", "in", "is", "present", "missing", "(", ")",
        ",", "..", "=", "!=", "<", "3", "-1.5", "'n1'", "true", "\"is\"", "ordinal",
    ];
    let mut text = String::new();
    for _ in 0..3 + random.below(6) {
        write!(text, "{}{}", one_of(&words, random), one_of(&["", " ", "\r\n"], random)).unwrap();
    }
    text
}

/// The samples that each of the readers chooses, or `None` where it refuses the expression.
fn chosen(python: &mut Python, columns: &Columns, text: &str) -> [Option<Vec<u64>>; 2] {
    let first = text.parse::<Expression>().ok().and_then(|expression| expression.select(&columns.dataset).ok());
    let first = first.map(|subset| subset.ordinals_in(0..subset.sample_count()).collect());
    [first, second_choice(python, columns.dataset.path(), text)]
}

fn second_choice(python: &mut Python, path: &Path, text: &str) -> Option<Vec<u64>> {
    let answer = python.ask(&Question::new("subset", path).word(serde_json::to_string(text).unwrap()));
    if answer.status == 2 {
        assert!(answer.stdout.is_empty() && answer.stderr.ends_with(".\n"), "{text}: {}", answer.stderr);
        assert_eq!(answer.stderr.lines().count(), 1, "{text}: {}", answer.stderr);
        return None;
    }
    let printed = answer.lines();
    Some(printed[0].split_whitespace().map(|ordinal| ordinal.parse().unwrap()).collect())
}

/// SUB-2 to SUB-10
#[test]
fn both_readers_choose_the_same_samples_by_any_expression() {
    let (columns, mut python, mut random) = (dataset(), Python::start(), Random(11));
    let mut understood = 0;
    for turn in 0..3000 {
        let text = any_expression(turn % 4, &mut random);
        let [first, second] = chosen(&mut python, &columns, &text);
        understood += u64::from(first.as_ref().is_some_and(|ordinals| !ordinals.is_empty()));
        assert_eq!(first, second, "{text}");
    }
    assert!(understood > 600, "only {understood} of 3000 chose any sample");
}

/// SUB-2, SUB-3, SUB-4
#[test]
fn both_readers_refuse_the_same_texts() {
    let (columns, mut python, mut random) = (dataset(), Python::start(), Random(12));
    for turn in 0..4000 {
        let text = match turn % 2 {
            0 => any_words(&mut random),
            _ => spoilt(&any_expression(turn % 3, &mut random), &mut random),
        };
        let [first, second] = chosen(&mut python, &columns, &text);
        assert_eq!(first, second, "{text:?}");
    }
}

/// SUB-2, SUB-3, SUB-4, SUB-8
#[test]
fn both_readers_have_the_same_limits() {
    let (columns, mut python) = (dataset(), Python::start());
    let digits = |count: usize| "1".repeat(count);
    let levels = |count: usize| format!("{}label = 3{}", "(".repeat(count), ")".repeat(count));
    let long = |len: usize| format!("label = 3{}", " ".repeat(len - 9));
    let (understood, refused): (Vec<String>, Vec<String>) = (
        vec![
            levels(100),
            "not ".repeat(100) + "label = 3",
            format!("{}label in (3)", "(not ".repeat(50)) + &")".repeat(50),
            long(65_536),
            format!("ordinal < {}", digits(400)),
            format!("ordinal < 0.{}", digits(399)),
            "ordinal < 1e400 and ratio < 1e+400".into(),
            "key_hash >= -0 and key_hash <= 1.0 and key_hash in 0..1e0, 1e-400".into(),
            "ordinal > -1e-400 and ratio != 1e-400".into(),
            "ordinal < 1e0000000000000000000000000000000000000000000400".into(),
            format!("ordinal < 1e{}1", "0".repeat(5000)),
            "ordinal in 007".into(),
            "label='cat'".into(),
            "label in 'dog','größe'".into(),
            "\"label\" = 'cat'".into(),
            r"key = 'n3/gr\u{f6}\u{0000df}e'".into(),
            r#"key != "#.to_owned() + r#"'\x00\"\\\''"#,
            "key STARTS With 'n1'".into(),
            "KEY = 1".into(),
            "not label in 3 and flag=true".into(),
            "ordinal in 5..7,30".into(),
        ],
        vec![
            levels(101),
            "not ".repeat(101) + "label = 3",
            format!("{}label in (3)", "(not ".repeat(51)) + &")".repeat(51),
            long(65_537),
            format!("ordinal < {}", digits(401)),
            format!("ordinal < 0.{}", digits(400)),
            "ordinal < 1e401".into(),
            "ordinal < 1e-401".into(),
            "ordinal < 1.".into(),
            "ordinal < +1".into(),
            "ordinal < - 1".into(),
            "ordinal < 1_000".into(),
            "ordinal < ٣".into(),
            "ordinal < 3é".into(),
            "ordinal < 3é4".into(),
            "label = 'bird'".into(),
            "width is present and width = 'cat'".into(),
            "label < 'cat'".into(),
            "label in 'cat'..'dog'".into(),
            "KEY starts with 'n1'".into(),
            "\"key\" = 'n1'".into(),
            "Ordinal = 1".into(),
            "key is present".into(),
            "ordinal is missing".into(),
            "key in 1".into(),
            "flag < true".into(),
            "flag in 0, 1".into(),
            r"key = '\0'".into(),
            r"key = '\x4'".into(),
            r"key = '\u{110000}'".into(),
            r"key = '\u{d800}'".into(),
            r"key = '\u{}'".into(),
            r"key = '\u{0000041}'".into(),
            r#""\xff" = 1"#.into(),
            "key_hash < 1.00000000000000000000000001".into(),
            "key_hash > -1e-400".into(),
            "key_hash != 90".into(),
            "key_hash not in 0, 0.5..1.5".into(),
            "key_hash in -0.5..0.5, 1".into(),
            "label in (3), 4".into(),
            "label in ()".into(),
            "label in ((3))".into(),
            "label in 3..3".into(),
            "label in 1e400..1e400".into(),
            "label = 3 and".into(),
            "label\u{a0}= 3".into(),
            "width > 3".into(),
            "".into(),
        ],
    );
    for (texts, expected) in [(understood, true), (refused, false)] {
        for text in texts {
            let [first, second] = chosen(&mut python, &columns, &text);
            let shown = text.chars().take(60).collect::<String>();
            assert_eq!([first.is_some(), second.is_some()], [expected; 2], "{shown}");
            assert_eq!(first, second, "{shown}");
        }
    }
}

/// SUB-1, SUB-9, PLN-9
#[test]
fn the_command_line_splits_a_dataset_by_the_hash_of_its_keys() {
    let (columns, mut python) = (dataset(), Python::start());
    let mut parts = Vec::new();
    for subset in ["key_hash < 0.75", "key_hash >= 0.75"] {
        let question =
            Question::new("plan", columns.dataset.path()).option("--order", "full").option("--subset", subset);
        let ordinals: Vec<i64> = python.ask(&question).lines().iter().map(|line| line.parse().unwrap()).collect();
        assert!(!ordinals.is_empty());
        parts.extend(ordinals);
    }
    parts.sort_unstable();
    assert_eq!(parts, (0..ROW_COUNT).collect::<Vec<_>>());
}
