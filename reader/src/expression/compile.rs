//! Compiles an expression for one dataset: looks names up, checks types, turns values into sets. order.md: SUB-5 to
//! SUB-9.
//!
//! It looks at the schema, the user metadata and the categories, and reads no column.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use grainstore_format::{AttributeType, Remedy, Schema, escape_bytes, nearest_bfloat16, nearest_float16};
use grainstore_store::Dataset;

use super::SelectError;
use super::floats::{FloatItem, FloatSet};
use super::integers::{Base, IntegerSet};
use super::names::{NumberNames, matching};
use super::number::{IntegerCut, Number};
use super::tree::{Comparison, Condition, ListItem, Literal, Name, Node, Pattern, Predicate};

/// An expression in the terms of one dataset.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) node: CompiledNode,
    /// Attributes whose columns it needs.
    pub(super) attributes: Vec<String>,
    /// Strings that are no category of the attribute that they are compared with.
    pub(super) unknown: Vec<UnknownCategory>,
}

/// A string that is no category of an attribute of a dataset. Another dataset that is read with it may have it.
#[derive(Debug)]
pub(super) struct UnknownCategory {
    pub(super) attribute: String,
    /// Of the test, in characters counted from 1.
    pub(super) column: usize,
    pub(super) text: Vec<u8>,
}

/// An expression's node in the terms of one dataset.
#[derive(Debug)]
pub(super) enum CompiledNode {
    Any(Vec<CompiledNode>),
    All(Vec<CompiledNode>),
    Not(Box<CompiledNode>),
    Leaf(Leaf),
}

/// A set, and the values that are looked up in it. Attributes are named by their index in [`Compiled::attributes`].
#[derive(Debug)]
pub(super) enum Leaf {
    Integers(usize, IntegerSet),
    Floats(usize, FloatSet),
    Present(usize),
    Ordinal(IntegerSet),
    KeyHash(IntegerSet),
    /// Ascending.
    Keys(Vec<Vec<u8>>),
    KeyMatch(Pattern),
}

/// The expression in the terms of `dataset`.
pub(super) fn compile(node: &Node, dataset: &Dataset) -> Result<Compiled, SelectError> {
    let mut compiler = Compiler { dataset, attributes: Vec::new(), unknown: Vec::new() };
    let node = compiler.node(node)?;
    Ok(Compiled { node, attributes: compiler.attributes, unknown: compiler.unknown })
}

struct Compiler<'a> {
    dataset: &'a Dataset,
    attributes: Vec<String>,
    unknown: Vec<UnknownCategory>,
}

/// Why a test does not fit the dataset.
pub(super) struct Misfit {
    pub(super) what: String,
    pub(super) remedy: Remedy,
}

impl From<String> for Misfit {
    fn from(what: String) -> Self {
        Self { what, remedy: Remedy::ListAttributes }
    }
}

impl From<&str> for Misfit {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl Compiler<'_> {
    fn node(&mut self, node: &Node) -> Result<CompiledNode, SelectError> {
        Ok(match node {
            Node::Any(parts) => CompiledNode::Any(self.nodes(parts)?),
            Node::All(parts) => CompiledNode::All(self.nodes(parts)?),
            Node::Not(part) => CompiledNode::Not(Box::new(self.node(part)?)),
            Node::Condition(test) => self.test(test)?,
        })
    }

    fn nodes(&mut self, parts: &[Node]) -> Result<Vec<CompiledNode>, SelectError> {
        parts.iter().map(|part| self.node(part)).collect()
    }

    fn test(&mut self, test: &Condition) -> Result<CompiledNode, SelectError> {
        let leaf = match self.category_of(&test.name) {
            Some(attribute) if !matches!(test.predicate, Predicate::Present { .. }) => {
                let codes = match &test.predicate {
                    Predicate::Match(pattern) => {
                        let categories = self.dataset.categories(&attribute)?;
                        matching(categories.iter().map(|name| Some(name.as_bytes())), pattern, Base::Zero)
                    }
                    predicate => {
                        let texts = texts(predicate).map_err(|what| self.unfit(test, what.into()))?;
                        self.codes(&attribute, test.column.0, &texts)?
                    }
                };
                Ok(Leaf::Integers(self.index(&attribute), codes))
            }
            _ => {
                let names = NumberNames::of(test, self.dataset)?;
                self.leaf(&test.name, &test.predicate, &names).map_err(|misfit| self.unfit(test, misfit))
            }
        }?;
        let negated = match test.predicate {
            Predicate::Among { negated, .. } | Predicate::Present { negated } => negated,
            Predicate::Compare(..) | Predicate::Match(_) => false,
        };
        let leaf = CompiledNode::Leaf(leaf);
        Ok(if negated { CompiledNode::Not(Box::new(leaf)) } else { leaf })
    }

    fn unfit(&self, test: &Condition, misfit: Misfit) -> SelectError {
        SelectError::Unfit {
            path: self.dataset.path().to_owned(),
            name: test.name.to_string(),
            column: test.column.0,
            what: misfit.what,
            remedy: misfit.remedy,
        }
    }

    /// The name of an attribute of type `category`.
    fn category_of(&self, name: &Name) -> Option<String> {
        let Name::Attribute(name) = name else { return None };
        let attribute = self.dataset.schema().attributes().iter().find(|attribute| attribute.name == *name);
        attribute.filter(|attribute| attribute.kind == AttributeType::Category).map(|_| name.clone())
    }

    /// The codes of these categories.
    fn codes(&mut self, attribute: &str, column: usize, texts: &[Vec<u8>]) -> Result<IntegerSet, SelectError> {
        let categories = self.dataset.categories(attribute)?;
        let mut wanted: HashSet<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let found = (0_i128..).zip(categories.iter()).filter(|(_, name)| wanted.remove(name.as_bytes()));
        let codes: Vec<_> = found.map(|(code, _)| code..=code).collect();
        let unknown = |text: &[u8]| UnknownCategory { attribute: attribute.to_owned(), column, text: text.to_vec() };
        self.unknown.extend(texts.iter().filter(|text| wanted.contains(text.as_slice())).map(|text| unknown(text)));
        Ok(IntegerSet::new(&codes, Base::Zero))
    }

    /// The set of a test, before it is negated.
    fn leaf(&mut self, name: &Name, predicate: &Predicate, names: &NumberNames) -> Result<Leaf, Misfit> {
        let no_names = |text: &[u8]| NumberNames::default().numbers(text);
        match name {
            Name::Attribute(name) => self.attribute(name, predicate, names),
            Name::Ordinal => integers(predicate, Base::Zero, Number::cut, no_names).map(Leaf::Ordinal),
            Name::Key | Name::KeyHash if !self.dataset.is_keyed() => Err("the dataset has no keys".into()),
            Name::KeyHash => {
                check_fractions(predicate)?;
                integers(predicate, Base::Zero, Number::cut_of_fraction, no_names).map(Leaf::KeyHash)
            }
            Name::Key => Ok(keys(predicate)?),
        }
    }

    fn attribute(&mut self, name: &str, predicate: &Predicate, names: &NumberNames) -> Result<Leaf, Misfit> {
        let schema = self.dataset.schema();
        let attribute = schema.attributes().iter().find(|attribute| attribute.name == name);
        let attribute = attribute.ok_or_else(|| no_such_attribute(schema, name))?;
        let index = self.index(name);
        if matches!(predicate, Predicate::Present { .. }) {
            return Ok(Leaf::Present(index));
        }
        let base = match &attribute.kind {
            AttributeType::Bool => return Ok(Leaf::Integers(index, bools(predicate)?)),
            AttributeType::Float16 => {
                return Ok(Leaf::Floats(
                    index,
                    floats(predicate, |number| nearest_float16(number.nearest()).to_f64())?,
                ));
            }
            AttributeType::Bfloat16 => {
                return Ok(Leaf::Floats(
                    index,
                    floats(predicate, |number| nearest_bfloat16(number.nearest()).to_f64())?,
                ));
            }
            AttributeType::Float32 => {
                // So that 0.1 equals what a float32 column stores for 0.1.
                #[expect(clippy::cast_possible_truncation, reason = "the nearest one is wanted")]
                let nearest = |number: &Number| f64::from(number.nearest() as f32);
                return Ok(Leaf::Floats(index, floats(predicate, nearest)?));
            }
            AttributeType::Float64 => {
                return Ok(Leaf::Floats(index, floats(predicate, Number::nearest)?));
            }
            AttributeType::Uint8 | AttributeType::Uint16 | AttributeType::Uint32 | AttributeType::Uint64 => Base::Zero,
            AttributeType::Int8 | AttributeType::Int16 | AttributeType::Int32 | AttributeType::Int64 => Base::Lowest,
            AttributeType::Timestamp => {
                let no_text = |_: &[u8]| Err("compared with a string, expected nanoseconds since 1970".into());
                let set = integers(predicate, Base::Lowest, Number::cut, no_text)?;
                return Ok(Leaf::Integers(index, set));
            }
            AttributeType::Category => return Err(CATEGORY_TESTS.into()), // compiled by `codes`
            AttributeType::Opaque(kind) => {
                let kind = escape_bytes(kind.as_bytes());
                let what =
                    format!("its type \"{kind}\" is unknown to this version, only `is missing` and `is present` work");
                return Err(Misfit { what, remedy: Remedy::Upgrade });
            }
        };
        if let Predicate::Match(pattern) = predicate {
            return names.matching(pattern, base).map(|set| Leaf::Integers(index, set));
        }
        integers(predicate, base, Number::cut, |text| names.numbers(text)).map(|set| Leaf::Integers(index, set))
    }

    fn index(&mut self, name: &str) -> usize {
        self.attributes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.attributes.push(name.to_owned());
            self.attributes.len() - 1
        })
    }
}

fn no_such_attribute(schema: &Schema, name: &str) -> Misfit {
    if schema.fields().iter().any(|field| field.name == name) {
        let what = "a field of the samples: expressions compare attributes, which are in the index".to_owned();
        return Misfit { what, remedy: Remedy::SelectByField };
    }
    let known = schema.attributes().iter().map(|attribute| Name::Attribute(attribute.name.clone()).to_string());
    match known.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no such attribute (the dataset has none)".into(),
        known => format!("no such attribute (there are: {known})").into(),
    }
}

/// The integers that meet a predicate: numbers become integers through `cut`, strings through `named`.
fn integers(
    predicate: &Predicate,
    base: Base,
    cut: impl Fn(&Number) -> IntegerCut,
    named: impl Fn(&[u8]) -> Result<Vec<i128>, Misfit>,
) -> Result<IntegerSet, Misfit> {
    let mut ranges = Vec::new();
    match predicate {
        Predicate::Compare(side, number) => ranges.push(on_side(*side, cut(number))),
        Predicate::Among { items, .. } => {
            for item in items {
                match item {
                    ListItem::Literal(Literal::Number(number)) => {
                        ranges.push(cut(number).first_at_least()..=cut(number).last_at_most());
                    }
                    ListItem::Range(start, end) => ranges.push(cut(start).first_at_least()..=cut(end).last_below()),
                    ListItem::Literal(Literal::Text(text)) => {
                        ranges.extend(named(text)?.into_iter().map(|value| value..=value))
                    }
                    ListItem::Literal(Literal::Bool(_)) => return Err("compared with a bool, expected a number".into()),
                }
            }
        }
        Predicate::Match(_) => return Err(NO_TEXT.into()),
        Predicate::Present { .. } => return Err("expected a comparison".into()),
    }
    Ok(IntegerSet::new(&ranges, base))
}

/// Checks that a hash is compared with numbers from 0 to 1: a user who writes 90 means 0.9. order.md: SUB-9.
fn check_fractions(predicate: &Predicate) -> Result<(), Misfit> {
    let outside = |number: &&Number| number.cut().last_at_most() < 0 || number.cut().first_at_least() > 1;
    let numbers: Vec<&Number> = match predicate {
        Predicate::Compare(_, number) => vec![number],
        Predicate::Among { items, .. } => items.iter().flat_map(numbers_of).collect(),
        Predicate::Match(_) | Predicate::Present { .. } => Vec::new(),
    };
    match numbers.into_iter().find(outside) {
        Some(number) => {
            let what = format!("compared with {number}, expected a number from 0 to 1");
            Err(Misfit { what, remedy: Remedy::UseKeyHashFraction })
        }
        None => Ok(()),
    }
}

fn numbers_of(item: &ListItem) -> Vec<&Number> {
    match item {
        ListItem::Literal(Literal::Number(number)) => vec![number],
        ListItem::Literal(_) => Vec::new(),
        ListItem::Range(start, end) => vec![start, end],
    }
}

fn on_side(side: Comparison, cut: IntegerCut) -> RangeInclusive<i128> {
    match side {
        Comparison::Below => i128::MIN..=cut.last_below(),
        Comparison::AtMost => i128::MIN..=cut.last_at_most(),
        Comparison::Above => cut.first_above()..=i128::MAX,
        Comparison::AtLeast => cut.first_at_least()..=i128::MAX,
    }
}

fn bools(predicate: &Predicate) -> Result<IntegerSet, String> {
    let wrong = || "a bool is compared by ==, != or in, and with true or false".to_owned();
    let Predicate::Among { items, .. } = predicate else {
        return Err(wrong());
    };
    let ranges = items.iter().map(|item| match item {
        ListItem::Literal(Literal::Bool(value)) => Ok(i128::from(*value)..=i128::from(*value)),
        ListItem::Literal(_) | ListItem::Range(..) => Err(wrong()),
    });
    Ok(IntegerSet::new(&ranges.collect::<Result<Vec<_>, _>>()?, Base::Zero))
}

/// The values that meet a predicate, with numbers rounded by `nearest`.
fn floats(predicate: &Predicate, nearest: impl Fn(&Number) -> f64) -> Result<FloatSet, String> {
    let items = match predicate {
        Predicate::Compare(side, number) => vec![FloatItem::Compare(*side, nearest(number))],
        Predicate::Among { items, .. } => {
            items.iter().map(|item| float_item(item, &nearest)).collect::<Result<_, _>>()?
        }
        Predicate::Match(_) => return Err(NO_TEXT.to_owned()),
        Predicate::Present { .. } => return Err("expected a comparison".to_owned()),
    };
    Ok(FloatSet(items))
}

fn float_item(item: &ListItem, nearest: impl Fn(&Number) -> f64) -> Result<FloatItem, String> {
    match item {
        ListItem::Literal(Literal::Number(number)) => Ok(FloatItem::Equal(nearest(number))),
        ListItem::Range(start, end) => Ok(FloatItem::Range(nearest(start), nearest(end))),
        ListItem::Literal(Literal::Bool(_)) => Err("compared with a bool, expected a number".to_owned()),
        ListItem::Literal(Literal::Text(_)) => Err("compared with a string, expected a number".to_owned()),
    }
}

/// Why a value is not searched.
pub(super) const NO_TEXT: &str = "`starts with` and `contains` search keys, categories and names of numbers";

/// The tests of a category.
const CATEGORY_TESTS: &str = "a category is compared by ==, !=, in, starts with or contains, and with strings";

/// The strings that a category is compared with.
fn texts(predicate: &Predicate) -> Result<Vec<Vec<u8>>, &'static str> {
    let Predicate::Among { items, .. } = predicate else { return Err(CATEGORY_TESTS) };
    let texts = items.iter().map(|item| match item {
        ListItem::Literal(Literal::Text(text)) => Ok(text.clone()),
        ListItem::Literal(_) | ListItem::Range(..) => Err(CATEGORY_TESTS),
    });
    texts.collect()
}

fn keys(predicate: &Predicate) -> Result<Leaf, String> {
    let wrong = || "a key is compared by ==, !=, in, starts with or contains, and with strings".to_owned();
    let items = match predicate {
        Predicate::Among { items, .. } => items,
        Predicate::Match(pattern) => return Ok(Leaf::KeyMatch(pattern.clone())),
        Predicate::Compare(..) | Predicate::Present { .. } => return Err(wrong()),
    };
    let texts = items.iter().map(|item| match item {
        ListItem::Literal(Literal::Text(text)) => Ok(text.clone()),
        ListItem::Literal(_) | ListItem::Range(..) => Err(wrong()),
    });
    let mut texts: Vec<Vec<u8>> = texts.collect::<Result<_, _>>()?;
    texts.sort_unstable();
    Ok(Leaf::Keys(texts))
}
