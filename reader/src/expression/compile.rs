//! An expression made ready for one dataset: names found, types checked, values as sets. spec.md: SUB-5 to SUB-9.
//!
//! It looks at the schema and the user metadata, and reads no column.

use std::ops::RangeInclusive;

use grainstore_format::{AttributeType, Schema, escape_bytes};
use grainstore_store::Dataset;

use super::SelectError;
use super::floats::{FloatItem, FloatSet};
use super::integers::{Base, IntegerSet};
use super::number::{Cut, Number};
use super::tree::{Item, Name, Node, Predicate, Side, Test, Value};

/// The attribute whose values are classes, and the names of them in the user metadata.
const CLASS_ATTRIBUTE: &str = "label";
const CLASS_NAMES: &str = "class_names";

/// An expression in the terms of one dataset.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) step: Step,
    /// Attributes whose columns it needs.
    pub(super) attributes: Vec<String>,
}

/// An expression's node in the terms of one dataset.
#[derive(Debug)]
pub(super) enum Step {
    Any(Vec<Step>),
    All(Vec<Step>),
    Not(Box<Step>),
    Leaf(Leaf),
}

/// A set, and whose values are looked for in it. Attributes are named by their place in [`Compiled::attributes`].
#[derive(Debug)]
pub(super) enum Leaf {
    Integers(usize, IntegerSet),
    Floats(usize, FloatSet),
    Present(usize),
    Ordinal(IntegerSet),
    KeyHash(IntegerSet),
    /// Ascending.
    Keys(Vec<Vec<u8>>),
    KeyPrefix(Vec<u8>),
}

/// The expression in the terms of `dataset`.
pub(super) fn compile(node: &Node, dataset: &Dataset) -> Result<Compiled, SelectError> {
    let mut compiler = Compiler { dataset, attributes: Vec::new() };
    let step = compiler.step(node)?;
    Ok(Compiled { step, attributes: compiler.attributes })
}

struct Compiler<'a> {
    dataset: &'a Dataset,
    attributes: Vec<String>,
}

impl Compiler<'_> {
    fn step(&mut self, node: &Node) -> Result<Step, SelectError> {
        Ok(match node {
            Node::Any(parts) => Step::Any(self.steps(parts)?),
            Node::All(parts) => Step::All(self.steps(parts)?),
            Node::Not(part) => Step::Not(Box::new(self.step(part)?)),
            Node::Test(test) => self.test(test)?,
        })
    }

    fn steps(&mut self, parts: &[Node]) -> Result<Vec<Step>, SelectError> {
        parts.iter().map(|part| self.step(part)).collect()
    }

    fn test(&mut self, test: &Test) -> Result<Step, SelectError> {
        let leaf = self.leaf(&test.name, &test.predicate).map_err(|what| SelectError::Unfit {
            path: self.dataset.path().to_owned(),
            name: test.name.to_string(),
            column: test.place.0,
            what,
        })?;
        let negated = match test.predicate {
            Predicate::Among { negated, .. } | Predicate::Present { negated } => negated,
            Predicate::Side(..) | Predicate::StartsWith(_) => false,
        };
        let leaf = Step::Leaf(leaf);
        Ok(if negated { Step::Not(Box::new(leaf)) } else { leaf })
    }

    /// The set of a test, before it is negated.
    fn leaf(&mut self, name: &Name, predicate: &Predicate) -> Result<Leaf, String> {
        let no_classes = |_: &[u8]| Err("compared with a string, expected a number".to_owned());
        match name {
            Name::Attribute(name) => self.attribute(name, predicate),
            Name::Ordinal => integers(predicate, Base::Zero, Number::cut, no_classes).map(Leaf::Ordinal),
            Name::Key | Name::KeyHash if !self.dataset.is_keyed() => Err("the dataset has no keys".to_owned()),
            Name::KeyHash => {
                check_fractions(predicate)?;
                integers(predicate, Base::Zero, Number::cut_of_fraction, no_classes).map(Leaf::KeyHash)
            }
            Name::Key => keys(predicate),
        }
    }

    fn attribute(&mut self, name: &str, predicate: &Predicate) -> Result<Leaf, String> {
        let schema = self.dataset.schema();
        let attribute = schema.attributes().iter().find(|attribute| attribute.name == name);
        let attribute = attribute.ok_or_else(|| no_such_attribute(schema))?;
        let place = self.place(name);
        if matches!(predicate, Predicate::Present { .. }) {
            return Ok(Leaf::Present(place));
        }
        let base = match attribute.kind {
            AttributeType::Bool => return bools(predicate).map(|set| Leaf::Integers(place, set)),
            AttributeType::Float32 => {
                // So that 0.1 is what a float32 column holds where 0.1 was put in.
                #[expect(clippy::cast_possible_truncation, reason = "the nearest one is wanted")]
                let nearest = |number: &Number| f64::from(number.nearest() as f32);
                return floats(predicate, nearest).map(|set| Leaf::Floats(place, set));
            }
            AttributeType::Float64 => {
                return floats(predicate, Number::nearest).map(|set| Leaf::Floats(place, set));
            }
            AttributeType::Uint8 | AttributeType::Uint16 | AttributeType::Uint32 | AttributeType::Uint64 => Base::Zero,
            AttributeType::Int8 | AttributeType::Int16 | AttributeType::Int32 | AttributeType::Int64 => Base::Lowest,
        };
        let classes = |text: &[u8]| classes(self.dataset, name, text);
        integers(predicate, base, Number::cut, classes).map(|set| Leaf::Integers(place, set))
    }

    fn place(&mut self, name: &str) -> usize {
        self.attributes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.attributes.push(name.to_owned());
            self.attributes.len() - 1
        })
    }
}

fn no_such_attribute(schema: &Schema) -> String {
    let known = schema.attributes().iter().map(|attribute| Name::Attribute(attribute.name.clone()).to_string());
    match known.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no such attribute (the dataset has none)".to_owned(),
        known => format!("no such attribute (there are: {known})"),
    }
}

/// The integers that meet a predicate: numbers become integers through `cut`, strings through `named`.
fn integers(
    predicate: &Predicate,
    base: Base,
    cut: impl Fn(&Number) -> Cut,
    named: impl Fn(&[u8]) -> Result<Vec<i128>, String>,
) -> Result<IntegerSet, String> {
    let mut ranges = Vec::new();
    match predicate {
        Predicate::Side(side, number) => ranges.push(on_side(*side, cut(number))),
        Predicate::Among { items, .. } => {
            for item in items {
                match item {
                    Item::Value(Value::Number(number)) => {
                        ranges.push(cut(number).first_at_least()..=cut(number).last_at_most());
                    }
                    Item::Range(start, end) => ranges.push(cut(start).first_at_least()..=cut(end).last_below()),
                    Item::Value(Value::Text(text)) => {
                        ranges.extend(named(text)?.into_iter().map(|value| value..=value))
                    }
                    Item::Value(Value::Bool(_)) => return Err("compared with a bool, expected a number".to_owned()),
                }
            }
        }
        Predicate::StartsWith(_) | Predicate::Present { .. } => return Err("expected a comparison".to_owned()),
    }
    Ok(IntegerSet::new(&ranges, base))
}

/// That a hash is compared with numbers from 0 to 1: whoever writes 90 means 0.9. spec.md: SUB-9.
fn check_fractions(predicate: &Predicate) -> Result<(), String> {
    let outside = |number: &&Number| number.cut().last_at_most() < 0 || number.cut().first_at_least() > 1;
    let numbers: Vec<&Number> = match predicate {
        Predicate::Side(_, number) => vec![number],
        Predicate::Among { items, .. } => items.iter().flat_map(numbers_of).collect(),
        Predicate::StartsWith(_) | Predicate::Present { .. } => Vec::new(),
    };
    match numbers.into_iter().find(outside) {
        Some(number) => Err(format!("compared with {number}, expected a number from 0 to 1")),
        None => Ok(()),
    }
}

fn numbers_of(item: &Item) -> Vec<&Number> {
    match item {
        Item::Value(Value::Number(number)) => vec![number],
        Item::Value(_) => Vec::new(),
        Item::Range(start, end) => vec![start, end],
    }
}

fn on_side(side: Side, cut: Cut) -> RangeInclusive<i128> {
    match side {
        Side::Below => i128::MIN..=cut.last_below(),
        Side::AtMost => i128::MIN..=cut.last_at_most(),
        Side::Above => cut.first_above()..=i128::MAX,
        Side::AtLeast => cut.first_at_least()..=i128::MAX,
    }
}

/// The labels of the classes of this name.
fn classes(dataset: &Dataset, attribute: &str, name: &[u8]) -> Result<Vec<i128>, String> {
    let names = dataset.user_metadata().get(CLASS_NAMES).and_then(|names| names.as_array());
    let Some(names) = names.filter(|_| attribute == CLASS_ATTRIBUTE) else {
        return Err(
            "compared with a string, expected a number: only label can have names, if there are class_names".to_owned()
        );
    };
    let labels: Vec<i128> = (0..)
        .zip(names)
        .filter(|(_, class)| class.as_str().map(str::as_bytes) == Some(name))
        .map(|(label, _)| label)
        .collect();
    if labels.is_empty() {
        return Err(format!("no class \"{}\" among the {} class_names", escape_bytes(name), names.len()));
    }
    Ok(labels)
}

fn bools(predicate: &Predicate) -> Result<IntegerSet, String> {
    let wrong = || "a bool is compared by ==, != or in, and with true or false".to_owned();
    let Predicate::Among { items, .. } = predicate else {
        return Err(wrong());
    };
    let ranges = items.iter().map(|item| match item {
        Item::Value(Value::Bool(value)) => Ok(i128::from(*value)..=i128::from(*value)),
        Item::Value(_) | Item::Range(..) => Err(wrong()),
    });
    Ok(IntegerSet::new(&ranges.collect::<Result<Vec<_>, _>>()?, Base::Zero))
}

/// The values that meet a predicate, numbers being what `nearest` makes of them.
fn floats(predicate: &Predicate, nearest: impl Fn(&Number) -> f64) -> Result<FloatSet, String> {
    let items = match predicate {
        Predicate::Side(side, number) => vec![FloatItem::Side(*side, nearest(number))],
        Predicate::Among { items, .. } => {
            items.iter().map(|item| float_item(item, &nearest)).collect::<Result<_, _>>()?
        }
        Predicate::StartsWith(_) | Predicate::Present { .. } => return Err("expected a comparison".to_owned()),
    };
    Ok(FloatSet(items))
}

fn float_item(item: &Item, nearest: impl Fn(&Number) -> f64) -> Result<FloatItem, String> {
    match item {
        Item::Value(Value::Number(number)) => Ok(FloatItem::Equal(nearest(number))),
        Item::Range(start, end) => Ok(FloatItem::Range(nearest(start), nearest(end))),
        Item::Value(Value::Bool(_)) => Err("compared with a bool, expected a number".to_owned()),
        Item::Value(Value::Text(_)) => Err("compared with a string, expected a number".to_owned()),
    }
}

fn keys(predicate: &Predicate) -> Result<Leaf, String> {
    let wrong = || "a key is compared by ==, !=, in or starts with, and with strings".to_owned();
    let items = match predicate {
        Predicate::Among { items, .. } => items,
        Predicate::StartsWith(text) => return Ok(Leaf::KeyPrefix(text.clone())),
        Predicate::Side(..) | Predicate::Present { .. } => return Err(wrong()),
    };
    let texts = items.iter().map(|item| match item {
        Item::Value(Value::Text(text)) => Ok(text.clone()),
        Item::Value(_) | Item::Range(..) => Err(wrong()),
    });
    let mut texts: Vec<Vec<u8>> = texts.collect::<Result<_, _>>()?;
    texts.sort_unstable();
    Ok(Leaf::Keys(texts))
}
