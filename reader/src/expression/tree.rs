//! The syntax tree of an expression, and its text. order.md: SUB-2 to SUB-4.

use std::fmt::{self, Display};

use grainstore_format::escape_bytes;
use memchr::memmem;

use super::number::Number;

/// Reserved words, in upper or lower case.
pub(super) const KEYWORDS: [&str; 7] = ["or", "and", "not", "in", "is", "true", "false"];

/// The sample's ordinal.
pub(super) const ORDINAL: &str = "ordinal";
/// The sample's key.
pub(super) const KEY: &str = "key";
/// The hash of the sample's key, as a fraction.
pub(super) const KEY_HASH: &str = "key_hash";

/// An expression, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Two or more, joined by `or`.
    Any(Vec<Node>),
    /// Two or more, joined by `and`.
    All(Vec<Node>),
    Not(Box<Node>),
    Condition(Condition),
}

/// A condition that a sample meets or not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) name: Name,
    pub(super) column: TextPosition,
    pub(super) predicate: Predicate,
}

/// The column of the text at which a test starts, counted from 1 in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPosition(pub(super) usize);

impl PartialEq for TextPosition {
    /// Always equal: two tests at different columns are the same test.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Name {
    Attribute(String),
    Ordinal,
    Key,
    KeyHash,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predicate {
    /// The value is on one side of a number.
    Compare(Comparison, Number),
    /// The value is one of these items, of which there is at least one; or, negated, none of them.
    Among { items: Vec<ListItem>, negated: bool },
    /// The text matches.
    Match(Pattern),
    /// There is a value; or, negated, there is none.
    Present { negated: bool },
}

/// What a text is searched for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    StartsWith(Vec<u8>),
    Contains(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ListItem {
    Literal(Literal),
    /// From the first on, below the second.
    Range(Number, Number),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Number(Number),
    Bool(bool),
    Text(Vec<u8>),
}

impl Node {
    /// Writes a part of another node, in parentheses if `brackets`.
    fn shown_in(&self, formatter: &mut fmt::Formatter<'_>, brackets: bool) -> fmt::Result {
        if brackets { write!(formatter, "({self})") } else { self.fmt(formatter) }
    }
}

impl Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, joint) = match self {
            Self::Any(parts) => (parts, " or "),
            Self::All(parts) => (parts, " and "),
            Self::Not(part) => {
                formatter.write_str("not ")?;
                return part.shown_in(formatter, matches!(**part, Self::Any(_) | Self::All(_)));
            }
            Self::Condition(test) => return test.fmt(formatter),
        };
        for (index, part) in parts.iter().enumerate() {
            formatter.write_str(if index == 0 { "" } else { joint })?;
            let loose = matches!(part, Self::Any(_)) || matches!((self, part), (Self::All(_), Self::All(_)));
            part.shown_in(formatter, loose)?;
        }
        Ok(())
    }
}

impl Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ", self.name)?;
        match &self.predicate {
            Predicate::Compare(side, number) => write!(formatter, "{} {number}", side.symbol()),
            Predicate::Among { items, negated } => write_items(formatter, items, *negated),
            Predicate::Match(pattern) => pattern.fmt(formatter),
            Predicate::Present { negated: true } => formatter.write_str("is missing"),
            Predicate::Present { negated: false } => formatter.write_str("is present"),
        }
    }
}

/// Writes `== 3` for one value, else `in 3, 7..9`.
fn write_items(formatter: &mut fmt::Formatter<'_>, items: &[ListItem], negated: bool) -> fmt::Result {
    if let [ListItem::Literal(value)] = items {
        return write!(formatter, "{} {value}", if negated { "!=" } else { "==" });
    }
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    write!(formatter, "{} {}", if negated { "not in" } else { "in" }, items.join(", "))
}

impl Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal => formatter.write_str(ORDINAL),
            Self::Key => formatter.write_str(KEY),
            Self::KeyHash => formatter.write_str(KEY_HASH),
            Self::Attribute(name) if needs_no_quotes(name) => formatter.write_str(name),
            Self::Attribute(name) => write!(formatter, "\"{}\"", escape_bytes(name.as_bytes())),
        }
    }
}

impl Pattern {
    /// Whether a text matches.
    pub(super) fn holds(&self, text: &[u8]) -> bool {
        match self {
            Self::StartsWith(start) => text.starts_with(start),
            Self::Contains(part) => memmem::find(text, part).is_some(),
        }
    }
}

impl Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartsWith(start) => write!(formatter, "starts with {}", quoted(start)),
            Self::Contains(part) => write!(formatter, "contains {}", quoted(part)),
        }
    }
}

impl Comparison {
    fn symbol(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl Display for ListItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => value.fmt(formatter),
            Self::Range(start, end) => write!(formatter, "{start}..{end}"),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Bool(value) => value.fmt(formatter),
            Self::Text(text) => formatter.write_str(&quoted(text)),
        }
    }
}

/// Whether a character may be part of a word without quotes.
pub(super) fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Whether a name is understood as an attribute's without quotes.
fn needs_no_quotes(name: &str) -> bool {
    let is_word = name.chars().all(is_word_character) && !name.starts_with(|first: char| first.is_ascii_digit());
    let taken = KEYWORDS.iter().any(|keyword| name.eq_ignore_ascii_case(keyword));
    is_word && !name.is_empty() && !taken && ![ORDINAL, KEY, KEY_HASH].contains(&name)
}

fn quoted(text: &[u8]) -> String {
    format!("'{}'", escape_bytes(text).replace('\'', "\\'"))
}
