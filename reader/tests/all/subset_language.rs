//! Which texts are expressions, what they mean by examples, and the errors of invalid ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use grainstore_format::{AttributeType, AttributeValue, UserMetadata};
use grainstore_reader::{Expression, Subset};
use xxhash_rust::xxh64::xxh64;

use crate::columns::{Columns, Row, columns, columns_with, with_names};

fn written(text: &str) -> String {
    text.parse::<Expression>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

fn refused(text: &str) -> String {
    text.parse::<Expression>().map(|expression| panic!("{text} is {expression}")).unwrap_err().to_string()
}

/// Ten samples: `label` is 0 to 9, `width` ten times that (missing for sample 4), `half` a quarter of it, `flag` true
/// for odd ones.
fn ten() -> Columns {
    let row = |ordinal: u32| -> Row {
        let label = i64::from(ordinal);
        let values = vec![
            Some(AttributeValue::Int(label)),
            (ordinal != 4).then_some(AttributeValue::Int(10 * label)),
            Some(AttributeValue::Float32(ordinal as f32 / 4.0)),
            Some(AttributeValue::Bool(ordinal % 2 == 1)),
        ];
        (format!("n{ordinal}").into_bytes(), values)
    };
    let attributes = [
        ("label", AttributeType::Int64),
        ("width", AttributeType::Int32),
        ("half", AttributeType::Float32),
        ("flag", AttributeType::Bool),
    ];
    columns(&attributes, &["zero", "one", "two", "one"], &(0..10).map(row).collect::<Vec<_>>())
}

fn chosen(columns: &Columns, text: &str) -> Vec<u64> {
    let subset = text.parse::<Expression>().unwrap().select(&columns.dataset);
    subset.unwrap_or_else(|error| panic!("{text}: {error}")).ordinals_in(0..10).collect()
}

fn unfit(columns: &Columns, text: &str) -> String {
    let expression: Expression = text.parse().unwrap();
    let error = expression.check(&columns.dataset).unwrap_err().to_string();
    assert_eq!(expression.select(&columns.dataset).unwrap_err().to_string(), error);
    let path = format!("{}: ", columns.dataset.path().display());
    error.strip_prefix(&path).unwrap().to_owned()
}

/// SUB-1
#[test]
fn the_hash_of_a_subset_is_that_of_its_bitmap() {
    let subset = Subset::from_ordinals(10, [2, 3, 7]).unwrap();
    assert_eq!(format!("{:016x}", subset.hash()), "7f41621bd8517fb3");
    assert_eq!(subset.hash(), xxh64(&[0b1000_1100, 0], 10));
}

/// SUB-2, SUB-3
#[test]
fn spelling_and_blanks_do_not_matter() {
    for (text, expected) in [
        ("a=1", "a == 1"),
        ("a IN(1,2..3)", "a in 1, 2..3"),
        ("a not\n in 1", "a != 1"),
        ("NOT a is Missing", "not a is missing"),
        ("a<1 or b<2 and not (c<3 or d<4)", "a < 1 or b < 2 and not (c < 3 or d < 4)"),
        ("(a<1 or b<2) and (c<3)", "(a < 1 or b < 2) and c < 3"),
        ("(a<1 and b<2) or (c<3 or d<4)", "a < 1 and b < 2 or (c < 3 or d < 4)"),
        ("a<1 and (b<2 and c<3)", "a < 1 and (b < 2 and c < 3)"),
        ("key Starts With 'n0'", "key starts with 'n0'"),
        ("contains CONTAINS 'a\\'' or with contains ''", "contains contains 'a\\'' or with contains ''"),
        ("\"a\" == TRUE", "a == true"),
        (
            "\"key\" = 1 or \"Or\" = 2 or \"a b\" = 3 or \"\" = 4",
            "\"key\" == 1 or \"Or\" == 2 or \"a b\" == 3 or \"\" == 4",
        ),
        (r#"key == '\x00\xff\'"\u{e9}\n\\é'"#, r#"key == '\u{0}\xff\'\"é\n\\é'"#),
        ("missing is missing and starts < 3", "missing is missing and starts < 3"),
        ("a in -1..1.50, 1e3", "a in -1..1.5, 1000"),
    ] {
        assert_eq!(written(text), expected);
        assert_eq!(written(expected), expected);
    }
}

/// SUB-2, SUB-3, SUB-4
#[test]
fn an_invalid_expression_is_refused_with_its_column() {
    for (text, expected) in [
        ("", "expected an attribute, `not` or a parenthesis at column 1, found the end"),
        ("label in", "expected a value after `in` at column 9, found the end"),
        ("label in 3,", "expected a value after `,` at column 12, found the end"),
        ("label in 3 7", "expected `and`, `or` or the end after `3` at column 12, found `7`"),
        (
            "label",
            "expected a comparison, `in`, `is`, `starts with` or `contains` after `label` at column 6, found the end",
        ),
        ("label starts 'a'", "expected `with` after `starts` at column 14, found `'a'`"),
        ("label contains 3", "expected a string after `contains` at column 16, found `3`"),
        ("label < 'a'", "expected a number after `<` at column 9, found `'a'`"),
        ("label in 3..x", "expected a number after `..` at column 13, found `x`"),
        ("label == 3..4", "expected `and`, `or` or the end after `3` at column 11, found `..`"),
        ("label is not missing", "expected `missing` or its opposite, `present`, after `is` at column 10, found `not`"),
        (
            "label in \"cat\"",
            "expected a value after `in` at column 10, found `\"cat\"`: strings are written in single quotes: 'cat'",
        ),
        (
            "label = cat",
            "expected a value after `=` at column 9, found `cat`: strings are written in single quotes: 'cat'",
        ),
        (
            "key starts with n0",
            "expected a string after `with` at column 17, found `n0`: strings are written in single quotes: 'n0'",
        ),
        ("label = and", "expected a value after `=` at column 9, found `and`"),
        ("label is gone", "expected `missing` or `present` after `is` at column 10, found `gone`"),
        ("key is present", "expected no `is`: only attributes can be missing, key cannot at column 8, found `present`"),
        ("label not 3", "expected `in` after `not` at column 11, found `3`"),
        ("(label = 3", "expected `)` after `3` at column 11, found the end"),
        ("label = 3)", "expected no more: no parenthesis is open at column 10, found `)`"),
        ("label in (3", "expected `)` after `3` at column 12, found the end"),
        ("()", "expected an attribute, `not` or a parenthesis after `(` at column 2, found `)`"),
        (
            "label and = 3",
            "expected a comparison, `in`, `is`, `starts with` or `contains` after `label` at column 7, found `and`",
        ),
        ("and = 3", "expected an attribute, `not` or a parenthesis at column 1, found `and`"),
        ("é = 3", "unknown character \"é\" at column 1"),
        ("\"é\" = 3 && a", "unknown character \"&\" (write `and`) at column 9"),
        ("a = 3 || a", "unknown character \"|\" (write `or`) at column 7"),
        ("a in [3]", "unknown character \"[\" (write parentheses) at column 6"),
        ("a = 3b", "number followed by \"b\" at column 5"),
        ("a = .5", "unknown character \".\" (write 0.5) at column 5"),
        ("a in 7..3", "empty range 7..3 at column 6"),
        ("a in 3..3.0", "empty range 3..3 at column 6"),
        ("key = 'abc", "string without a closing ' at column 7"),
        ("\"abc = 3", "string without a closing \" at column 1"),
        (r"key = '\q'", "unknown escape in the string at column 7"),
        (r"key = '\u{d800}'", "unknown escape in the string at column 7"),
        (r"key = '\x4'", "unknown escape in the string at column 7"),
        (r#""\xff" = 3"#, "name that is not UTF-8 at column 1"),
        ("a = 1e401", "number of more than 400 digits, or with an exponent above 400, at column 5"),
    ] {
        assert_eq!(refused(text), expected);
    }
}

/// SUB-2
#[test]
fn depth_and_length_have_a_bound() {
    let nested = |levels: usize| format!("{}a = 1{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(written(&nested(100)), "a == 1");
    assert_eq!(refused(&nested(101)), "more than 100 levels of parentheses and `not` at column 101");
    assert_eq!(refused(&"(".repeat(65_536)), "more than 100 levels of parentheses and `not` at column 101");
    assert_eq!(refused(&"not ".repeat(16_384)), "more than 100 levels of parentheses and `not` at column 401");
    assert_eq!(refused(&" ".repeat(65_537)), "an expression has at most 65536 bytes, found 65537");
    // A long expression need not be deep.
    let long = ["a = 1"; 5000].join(" and ");
    assert_eq!(written(&long), ["a == 1"; 5000].join(" and "));
}

/// SUB-5, SUB-6, SUB-7
#[test]
fn tests_of_an_expression_match_their_meaning() {
    let ten = ten();
    for (text, expected) in [
        ("label in 3, 7 and width >= 64", vec![7]),
        ("label in 2..4, 9", vec![2, 3, 9]),
        ("label not in 2..9", vec![0, 1, 9]),
        ("label < 2.5 or label > 8.999", vec![0, 1, 2, 9]),
        ("label = 2.5", vec![]),
        ("label in 0.5..2.5", vec![1, 2]),
        ("half = 0.25 or half in 2..3", vec![1, 8, 9]),
        ("flag = true and not label = 3", vec![1, 5, 7, 9]),
        ("flag != true", vec![0, 2, 4, 6, 8]),
        ("flag in true, false and ordinal < 2", vec![0, 1]),
        ("ordinal in 9, 3", vec![3, 9]),
        ("not (label < 8 or flag = true)", vec![8]),
        ("label < 1 or label > 7 and flag = true", vec![0, 9]),
    ] {
        assert_eq!(chosen(&ten, text), expected, "{text}");
    }
}

/// SUB-8
#[test]
fn labels_have_names_and_keys_are_strings() {
    let ten = ten();
    assert_eq!(chosen(&ten, "label in 'one', 'two'"), [1, 2, 3]);
    assert_eq!(chosen(&ten, "label in 'zero', 5"), [0, 5]);
    assert_eq!(chosen(&ten, "label != 'one' and ordinal < 5"), [0, 2, 4]);
    assert_eq!(chosen(&ten, "key in 'n7', 'n2', 'n2', 'x'"), [2, 7]);
    assert_eq!(chosen(&ten, "key != 'n7' and key starts with 'n'"), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
    assert!(chosen(&ten, "key starts with 'n77'").is_empty());
    assert_eq!(chosen(&ten, "key contains '7' or not key contains 'n'"), [7]);
    assert_eq!(chosen(&ten, "label contains 'o' and not label starts with 'on'"), [0, 2]);
    assert!(chosen(&ten, "label contains 'cow'").is_empty());
}

/// SUB-8
#[test]
fn numbers_of_any_attribute_have_names() {
    let attributes = ["split", "fine_label", "label", "class"].map(|name| (name, AttributeType::Uint8));
    let attributes = [&attributes[..], &[("seen", AttributeType::Timestamp)]].concat();
    let row = |ordinal: u64| -> Row {
        let values =
            [ordinal % 3, ordinal % 4, ordinal % 2, ordinal % 2].map(|value| Some(AttributeValue::Uint(value)));
        (vec![], [&values[..], &[Some(AttributeValue::Timestamp(0))]].concat())
    };
    let user = with_names(UserMetadata::default(), "split_names", &["train", "val", "test"]);
    let user = with_names(user, "fine_label_names", &["ant", "bee", "ant", "bird"]);
    let user = with_names(with_names(user, "class_names", &["cat", "dog"]), "seen_names", &["day"]);
    let many = columns_with(&attributes, user, &(0..10).map(row).collect::<Vec<_>>());
    assert_eq!(chosen(&many, "split == 'val'"), [1, 4, 7]);
    assert_eq!(chosen(&many, "split not in 'val', 'test'"), [0, 3, 6, 9]);
    assert_eq!(chosen(&many, "fine_label in ('ant', 'bird') and label = 'cat'"), [0, 2, 4, 6, 8]);
    assert_eq!(chosen(&many, "fine_label starts with 'b' and split contains 't'"), [3, 5, 9]);
    assert_eq!(
        unfit(&many, "split = 'dev'"),
        "split at column 1: no \"dev\" among the 3 split_names (there are: train, val, test)"
    );
    assert!(unfit(&many, "class = 'cat'").ends_with("expected a number"), "class_names are the label's");
    assert!(unfit(&many, "seen = 'day'").ends_with("expected nanoseconds since 1970"));

    let numbers: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let user = with_names(UserMetadata::default(), "class_names", &numbers);
    let alone = columns_with(&[("class", AttributeType::Int8)], user, &[(vec![], vec![Some(AttributeValue::Int(7))])]);
    assert_eq!(chosen(&alone, "class = '7'"), [0]);
    assert!(unfit(&alone, "class = 'x'").ends_with("12 class_names (there are: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)"));
}

/// SUB-9
#[test]
fn the_hash_of_the_key_splits_samples_in_two() {
    let rows: Vec<Row> = (0..1000).map(|ordinal| (format!("key {ordinal}").into_bytes(), vec![])).collect();
    let (all, odd) = (columns(&[], &[], &rows), rows.iter().skip(1).step_by(2).cloned().collect::<Vec<_>>());
    let odd = columns(&[], &[], &odd);
    let select = |columns: &Columns, text: &str| text.parse::<Expression>().unwrap().select(&columns.dataset).unwrap();
    let (train, test) = (select(&all, "key_hash < 0.9"), select(&all, "key_hash >= 0.9"));
    assert_eq!((train.len() + test.len(), test.len()), (1000, 87));
    for (ordinal, row) in (0..).zip(&rows) {
        let is_train = xxh64(&row.0, 0) <= 16_602_069_666_338_596_454;
        assert_eq!((train.contains(ordinal), test.contains(ordinal)), (is_train, !is_train));
    }
    let odd_train = select(&odd, "key_hash < 0.9");
    assert!((0..500).all(|ordinal| odd_train.contains(ordinal) == train.contains(2 * ordinal + 1)));
    assert_eq!(select(&all, "key_hash in 0..1").len(), 1000);
}

/// SUB-10
#[test]
fn a_missing_value_is_an_error_unless_it_is_guarded() {
    let ten = ten();
    let error = "width >= 30".parse::<Expression>().unwrap().select(&ten.dataset).unwrap_err().to_string();
    let expected = "sample 4 has no width: write `width is present and ...` before what compares it";
    assert_eq!(error, format!("{}: {expected}", ten.dataset.path().display()));
    let mut words = Vec::new();
    let later = "not width < 3".parse::<Expression>().unwrap().evaluate_into(&ten.dataset, 100, &mut words);
    assert!(later.unwrap_err().to_string().contains("sample 104 has no width"));
    assert_eq!(chosen(&ten, "width is present and width >= 80"), [8, 9]);
    assert_eq!(chosen(&ten, "width is missing or width >= 80"), [4, 8, 9]);
    assert_eq!(chosen(&ten, "ordinal != 4 and width >= 80"), [8, 9]);
    assert_eq!(chosen(&ten, "not (width is present)"), [4]);
}

/// SUB-6, SUB-8, SUB-10
#[test]
fn unknown_names_are_reported_before_anything_is_read() {
    let ten = ten();
    for (text, expected) in [
        ("wdth > 3", "wdth at column 1: no such attribute (there are: label, width, half, flag)"),
        (
            "label > 3 and \"ordinal\" = 1",
            "\"ordinal\" at column 15: no such attribute (there are: label, width, half, flag)",
        ),
        ("label = true", "label at column 1: compared with a bool, expected a number"),
        ("half = 'a'", "half at column 1: compared with a string, expected a number"),
        ("flag > 0", "flag at column 1: a bool is compared by ==, != or in, and with true or false"),
        ("flag = 1", "flag at column 1: a bool is compared by ==, != or in, and with true or false"),
        ("key > 3", "key at column 1: a key is compared by ==, !=, in, starts with or contains, and with strings"),
        (
            "key in 'a', 3",
            "key at column 1: a key is compared by ==, !=, in, starts with or contains, and with strings",
        ),
        ("label = 'three'", "label at column 1: no \"three\" among the 4 class_names (there are: zero, one, two, one)"),
        (
            "width = 'one'",
            "width at column 1: compared with a string, expected a number: the metadata have no list \"width_names\" with names of its numbers",
        ),
        ("key_hash < 90", "key_hash at column 1: compared with 90, expected a number from 0 to 1"),
        ("key_hash in 0.5, 0.7..1.01", "key_hash at column 1: compared with 1.01, expected a number from 0 to 1"),
        ("label = 0 or key_hash != -1e-9", "key_hash at column 14: compared with -1e-9, expected a number from 0 to 1"),
        ("key_hash = true", "key_hash at column 1: compared with a bool, expected a number"),
        (
            "width contains '1'",
            "width at column 1: `starts with` and `contains` search keys, categories and names of numbers",
        ),
        (
            "ordinal starts with '1'",
            "ordinal at column 1: `starts with` and `contains` search keys, categories and names of numbers",
        ),
        ("ordinal = 'one'", "ordinal at column 1: compared with a string, expected a number"),
        ("label < 0 and wdth > 3", "wdth at column 15: no such attribute (there are: label, width, half, flag)"),
    ] {
        assert_eq!(unfit(&ten, text), expected);
    }
    let bare = columns(&[("label", AttributeType::Uint8)], &[], &[(vec![], vec![Some(AttributeValue::Uint(1))])]);
    assert_eq!(unfit(&bare, "key_hash < 0.5"), "key_hash at column 1: the dataset has no keys");
    assert_eq!(unfit(&bare, "label > 3 or key = 'a'"), "key at column 14: the dataset has no keys");
    assert!(unfit(&bare, "label = 'one'").contains("the metadata have no list \"class_names\""));
    let none = columns(&[], &[], &[(vec![], vec![])]);
    assert_eq!(unfit(&none, "label = 1"), "label at column 1: no such attribute (the dataset has none)");
    assert_eq!(chosen(&none, "ordinal < 3"), [0]);
    assert_eq!(chosen(&bare, "label = 1"), [0]);
}

/// SUB-10
#[test]
fn only_the_columns_that_are_asked_for_are_read() {
    let rows: Vec<Row> = (0..200_000_u32)
        .map(|ordinal| (format!("{ordinal:07}").into_bytes(), vec![Some(AttributeValue::Uint(ordinal.into())); 2]))
        .collect();
    let two = columns(&[("a", AttributeType::Uint32), ("b", AttributeType::Uint32)], &[], &rows);
    let read = |text: &str| {
        let before = two.dataset.index_bytes_read();
        let found = text.parse::<Expression>().unwrap().select(&two.dataset).unwrap().len();
        (found, two.dataset.index_bytes_read() - before)
    };
    assert_eq!(read("ordinal < 70"), (70, 0));
    let (found, column) = read("a >= 199990");
    assert!(found == 10 && (800_000..870_000).contains(&column), "{column} bytes");
    let (found, keys) = read("key starts with '01'");
    // Keys of 7 bytes and their lengths: 1.6 MB, some pieces twice.
    assert!(found == 100_000 && (1_600_000..2_000_000).contains(&keys), "{keys} bytes");
}
