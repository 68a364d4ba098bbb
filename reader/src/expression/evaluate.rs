//! Finds the samples that meet an expression, 64 at a time. order.md: SUB-5, SUB-8 to SUB-10.
//!
//! Every node is evaluated for a mask of samples: `and` evaluates its second part only for the samples that met the
//! first, `or` only for those that did not. So a sample may lack a value that is not evaluated for it.

use grainstore_store::{Column, Dataset, KeyScan};
use xxhash_rust::xxh64::xxh64;

use super::SelectError;
use super::column::{GROUP, GROUP_LEN, floats, numbers, present};
use super::compile::{Compiled, CompiledNode, Leaf};
use super::integers::{IntegerSet, pack};
use super::tree::Name;

/// Evaluates one expression over one dataset.
pub(super) struct Evaluator<'a> {
    dataset: &'a Dataset,
    /// The ordinal of the dataset's first sample, for the expression.
    first_ordinal: u64,
    compiled: &'a Compiled,
    columns: Vec<Column<'a>>,
    keys: Option<KeyScan<'a>>,
}

impl<'a> Evaluator<'a> {
    /// Loads the columns that the expression needs.
    pub(super) fn new(dataset: &'a Dataset, first_ordinal: u64, compiled: &'a Compiled) -> Result<Self, SelectError> {
        let columns = compiled.attributes.iter().map(|name| dataset.column(name)).collect::<Result<_, _>>()?;
        Ok(Self { dataset, first_ordinal, compiled, columns, keys: dataset.key_scan()? })
    }

    /// Which samples of a group meet the expression: bit i for sample `64 * group + i` of the dataset.
    pub(super) fn group(&mut self, group: u64) -> Result<u64, SelectError> {
        let len = (self.dataset.sample_count() - group * GROUP).min(GROUP);
        self.node(&self.compiled.node, group, u64::MAX >> (GROUP - len))
    }

    fn node(&mut self, node: &CompiledNode, group: u64, mask: u64) -> Result<u64, SelectError> {
        match node {
            CompiledNode::Leaf(_) if mask == 0 => Ok(0),
            CompiledNode::Leaf(leaf) => Ok(self.leaf(leaf, group, mask)? & mask),
            CompiledNode::Not(part) => Ok(mask & !self.node(part, group, mask)?),
            CompiledNode::All(parts) => parts.iter().try_fold(mask, |left, part| self.node(part, group, left)),
            CompiledNode::Any(parts) => self.any(parts, group, mask),
        }
    }

    fn any(&mut self, parts: &[CompiledNode], group: u64, mask: u64) -> Result<u64, SelectError> {
        parts.iter().try_fold(0, |met, part| Ok(met | self.node(part, group, mask & !met)?))
    }

    fn leaf(&mut self, leaf: &Leaf, group: u64, mask: u64) -> Result<u64, SelectError> {
        match leaf {
            Leaf::Integers(index, set) => {
                self.check_present(*index, group, mask)?;
                Ok(set.bits(numbers(&self.columns[*index], group).as_slice()))
            }
            Leaf::Floats(index, set) => {
                self.check_present(*index, group, mask)?;
                Ok(set.bits(floats(&self.columns[*index], group).as_slice()))
            }
            Leaf::Present(index) => Ok(present(&self.columns[*index], group)),
            Leaf::Ordinal(set) => Ok(set.bits(&ordinals(self.first_ordinal + group * GROUP))),
            Leaf::KeyHash(set) => self.key_hashes(group, mask, set),
            Leaf::Keys(keys) => {
                self.keys(group, mask, |key| keys.binary_search_by(|other| other.as_slice().cmp(key)).is_ok())
            }
            Leaf::KeyMatch(pattern) => self.keys(group, mask, |key| pattern.holds(key)),
        }
    }

    fn check_present(&self, index: usize, group: u64, mask: u64) -> Result<(), SelectError> {
        let missing = mask & !present(&self.columns[index], group);
        if missing == 0 {
            return Ok(());
        }
        let ordinal = self.first_ordinal + group * GROUP + u64::from(missing.trailing_zeros());
        let attribute = Name::Attribute(self.compiled.attributes[index].clone()).to_string();
        Err(SelectError::Missing { path: self.dataset.path().to_owned(), attribute, ordinal })
    }

    fn key_hashes(&mut self, group: u64, mask: u64, set: &IntegerSet) -> Result<u64, SelectError> {
        let mut hashes = [0; GROUP_LEN];
        self.for_each_key(group, mask, |index, key| hashes[index] = xxh64(key, 0))?;
        Ok(set.bits(&hashes))
    }

    fn keys(&mut self, group: u64, mask: u64, test: impl Fn(&[u8]) -> bool) -> Result<u64, SelectError> {
        let mut met = [false; GROUP_LEN];
        self.for_each_key(group, mask, |index, key| met[index] = test(key))?;
        Ok(pack(&met, |met| met))
    }

    /// Calls `take` with the keys of the masked samples and their indices in the group.
    fn for_each_key(&mut self, group: u64, mask: u64, mut take: impl FnMut(usize, &[u8])) -> Result<(), SelectError> {
        let Some(keys) = &mut self.keys else { return Ok(()) };
        let mut index = 0;
        keys.group(group, |key| {
            if mask >> index & 1 == 1 {
                take(index, key);
            }
            index += 1;
        })?;
        Ok(())
    }
}

fn ordinals(first: u64) -> [u64; GROUP_LEN] {
    std::array::from_fn(|index| first + index as u64)
}
