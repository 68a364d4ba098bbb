//! Strings that stand for the numbers of an attribute: `label = 'cat'`, `split in 'val', 'test'`. order.md: SUB-8.

use grainstore_format::{Remedy, escape_bytes, shown_names};
use grainstore_store::{Dataset, StoreError};

use super::SHOWN_NAMES;
use super::compile::{Misfit, NO_TEXT};
use super::integers::{Base, IntegerSet};
use super::tree::{Condition, ListItem, Literal, Name, Pattern, Predicate};

/// What the strings of a test may stand for.
#[derive(Default)]
pub(super) struct NumberNames {
    /// The member of the user metadata that has the names, or would.
    member: Option<String>,
    /// A name for each number from 0; an item of the list that is no string names none.
    names: Option<Vec<Option<String>>>,
}

impl NumberNames {
    /// The names for a test; none are read for one that has no string.
    pub(super) fn of(test: &Condition, dataset: &Dataset) -> Result<Self, StoreError> {
        let Name::Attribute(attribute) = &test.name else { return Ok(Self::default()) };
        if !has_text(&test.predicate) {
            return Ok(Self::default());
        }
        let names = dataset.names(attribute)?;
        let names = names.map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        Ok(Self { member: dataset.schema().names_member(attribute), names })
    }

    /// The numbers of this name.
    pub(super) fn numbers(&self, text: &[u8]) -> Result<Vec<i128>, Misfit> {
        let (Some(names), Some(member)) = (&self.names, &self.member) else { return Err(self.no_names()) };
        let is_wanted = |name: &Option<String>| name.as_deref().map(str::as_bytes) == Some(text);
        let numbers: Vec<i128> =
            (0..).zip(names).filter(|(_, name)| is_wanted(name)).map(|(number, _)| number).collect();
        if !numbers.is_empty() {
            return Ok(numbers);
        }
        let shown: Vec<String> = names.iter().flatten().take(SHOWN_NAMES).cloned().collect();
        let more = if names.iter().flatten().count() > SHOWN_NAMES { ", ..." } else { "" };
        let there_are = format!("{}{more}", shown_names(&shown));
        let member = escape_bytes(member.as_bytes());
        let what = format!("no \"{}\" among the {} {member} (there are: {there_are})", escape_bytes(text), names.len());
        Err(Misfit { what, remedy: Remedy::ListNames })
    }

    /// The numbers whose names match.
    pub(super) fn matching(&self, pattern: &Pattern, base: Base) -> Result<IntegerSet, Misfit> {
        let names = self.names.as_ref().ok_or(NO_TEXT)?;
        Ok(matching(names.iter().map(|name| name.as_deref().map(str::as_bytes)), pattern, base))
    }

    fn no_names(&self) -> Misfit {
        let what = "compared with a string, expected a number";
        match &self.member {
            Some(member) => {
                let member = escape_bytes(member.as_bytes());
                format!("{what}: the metadata have no list \"{member}\" with names of its numbers").into()
            }
            None => what.into(),
        }
    }
}

/// The places of the texts that match.
pub(super) fn matching<'t>(texts: impl Iterator<Item = Option<&'t [u8]>>, pattern: &Pattern, base: Base) -> IntegerSet {
    let found = (0_i128..).zip(texts).filter(|(_, text)| text.is_some_and(|text| pattern.holds(text)));
    IntegerSet::new(&found.map(|(place, _)| place..=place).collect::<Vec<_>>(), base)
}

fn has_text(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Among { items, .. } => items.iter().any(|item| matches!(item, ListItem::Literal(Literal::Text(_)))),
        Predicate::Match(_) => true,
        Predicate::Compare(..) | Predicate::Present { .. } => false,
    }
}
