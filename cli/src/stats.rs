//! Statistics of attributes and of the lengths of fields, for `inspect --stats`: counts by value, ranges, quantiles.
//!
//! Exact: the values of one attribute at a time are sorted, as 8 bytes that ascend with the value. No sample is read.

use std::collections::BTreeMap;
use std::ops::Range;

use grainstore_format::memory::NoMemory;
use grainstore_format::{AttributeType, AttributeValue, escape_bytes, to_usize};
use grainstore_store::Dataset;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::json_value;

/// Attributes with more different values have no counts by value.
const DISTINCT_MAX: usize = 1000;
/// Counts that the text shows.
const SHOWN_MAX: usize = 12;
/// The shares of the values that lie below a quantile, in percent.
const QUANTILES: [u64; 7] = [1, 5, 25, 50, 75, 95, 99];

/// What `--stats` adds to the document.
#[derive(Serialize)]
pub(crate) struct Stats {
    attributes: Vec<AttributeStats>,
    fields: Vec<FieldStats>,
}

#[derive(Serialize)]
struct AttributeStats {
    name: String,
    r#type: String,
    /// Samples that have a value.
    present: u64,
    missing: u64,
    /// Values that are not a number: they are in no range and no quantile.
    nan: u64,
    /// Null where values have no order, such as categories.
    min: Value,
    max: Value,
    quantiles: Map<String, Value>,
    /// Different values; null if there are too many to be counted by value.
    distinct: Option<usize>,
    /// The most frequent first.
    counts: Option<Vec<ValueCount>>,
}

#[derive(Serialize)]
struct ValueCount {
    value: Value,
    /// The name of the value, where it is a number that has one: for a label, that of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    samples: u64,
}

#[derive(Serialize)]
struct FieldStats {
    name: String,
    r#type: String,
    present: u64,
    missing: u64,
    total_bytes: u64,
    min_bytes: Option<u64>,
    max_bytes: Option<u64>,
    quantiles_bytes: Map<String, Value>,
}

impl Stats {
    /// Reads all attributes, and all ranges of fields; `names` gives those of an attribute's numbers.
    ///
    /// # Errors
    /// If the index is damaged, or there is no memory for the values of an attribute.
    pub(crate) fn of(
        dataset: &Dataset,
        names: impl Fn(&str) -> anyhow::Result<Option<Vec<Value>>>,
    ) -> anyhow::Result<Self> {
        let schema = dataset.schema();
        let mut attributes = Vec::new();
        for attribute in schema.attributes() {
            let names = names(&attribute.name)?;
            attributes.push(attribute_stats(dataset, &attribute.name, &attribute.kind, names.as_deref())?);
        }
        Ok(Self { attributes, fields: field_stats(dataset)? })
    }

    /// The lines of the text.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.attributes.iter().map(AttributeStats::line).chain(self.fields.iter().map(FieldStats::line)).collect()
    }
}

impl AttributeStats {
    fn line(&self) -> String {
        let mut parts = vec![format!("{} present, {} missing", self.present, self.missing)];
        if self.nan > 0 {
            parts.push(format!("{} not a number", self.nan));
        }
        if !self.min.is_null() {
            parts.push(format!("{} to {}, median {}", self.min, self.max, median(&self.quantiles)));
        }
        if let (Some(distinct), Some(counts)) = (self.distinct, &self.counts) {
            let one = |count: &ValueCount| {
                let value = match &count.value {
                    Value::String(text) => escape_bytes(text.as_bytes()),
                    other => other.to_string(),
                };
                let class = count.class.as_ref().map_or_else(String::new, |class| format!(" {class}"));
                format!("{value}{class}: {}", count.samples)
            };
            let shown: Vec<String> = counts.iter().take(SHOWN_MAX).map(one).collect();
            let more = if distinct > SHOWN_MAX { ", ... (--json has all)" } else { "" };
            parts.push(format!("{distinct} different ({}{more})", shown.join(", ")));
        }
        format!("{} {}: {}", escape_bytes(self.name.as_bytes()), escape_bytes(self.r#type.as_bytes()), parts.join("; "))
    }
}

impl FieldStats {
    fn line(&self) -> String {
        let range = match (self.min_bytes, self.max_bytes) {
            (Some(min), Some(max)) => format!("; {min} to {max} bytes, median {}", median(&self.quantiles_bytes)),
            _ => String::new(),
        };
        let name = escape_bytes(self.name.as_bytes());
        let kind = escape_bytes(self.r#type.as_bytes());
        format!("{name} {kind}: {} present, {} missing{range}", self.present, self.missing)
    }
}

fn median(quantiles: &Map<String, Value>) -> &Value {
    quantiles.get("50").unwrap_or(&Value::Null)
}

fn attribute_stats(
    dataset: &Dataset,
    name: &str,
    kind: &AttributeType,
    names: Option<&[Value]>,
) -> anyhow::Result<AttributeStats> {
    let column = dataset.column(name)?;
    let mut ranks = Vec::new();
    let mut texts = BTreeMap::<Box<str>, u64>::new();
    let (mut present, mut nan) = (0, 0);
    let count = dataset.sample_count();
    reserve(&mut ranks, if is_ordered(kind) { count } else { 0 })?;
    for value in (0..count).filter_map(|ordinal| column.get(ordinal)) {
        present += 1;
        match (&value, rank(&value)) {
            (AttributeValue::Category(text), _) => *texts.entry(text.as_ref().into()).or_default() += 1,
            (_, Some(rank)) => ranks.push(rank),
            (AttributeValue::Opaque(_), None) => {}
            (_, None) => nan += 1,
        }
    }
    ranks.sort_unstable();
    let value = |rank: u64| unrank(kind, rank).map_or(Value::Null, |value| json_value(&value));
    let counted = match kind {
        AttributeType::Category => {
            let counts = texts.into_iter().map(|(text, samples)| (Value::from(text.as_ref()), None, samples));
            Some(sorted(counts.collect()))
        }
        AttributeType::Opaque(_) => None,
        _ => runs(&ranks).map(|runs| {
            let class = |rank| name_of(names?, &unrank(kind, rank)?);
            sorted(runs.into_iter().map(|(rank, samples)| (value(rank), class(rank), samples)).collect())
        }),
    };
    Ok(AttributeStats {
        name: name.to_owned(),
        r#type: kind.name().to_owned(),
        present,
        missing: count - present,
        nan,
        min: ranks.first().map_or(Value::Null, |rank| value(*rank)),
        max: ranks.last().map_or(Value::Null, |rank| value(*rank)),
        quantiles: quantiles(&ranks, value),
        distinct: counted.as_ref().map(Vec::len),
        counts: counted,
    })
}

fn field_stats(dataset: &Dataset) -> anyhow::Result<Vec<FieldStats>> {
    let fields = dataset.schema().fields();
    let mut lens: Vec<Vec<u64>> = vec![Vec::new(); fields.len()];
    let count = dataset.sample_count();
    for lens in &mut lens {
        reserve(lens, count)?;
    }
    for ordinal in 0..count {
        let payload_len = dataset.locate(ordinal)?.raw_len();
        let ranges = if dataset.has_field_columns() {
            dataset.fields(ordinal, payload_len)?
        } else {
            vec![Some(0..payload_len)]
        };
        for (lens, range) in lens.iter_mut().zip(ranges) {
            lens.extend(range.map(|Range { start, end }| end.saturating_sub(start)));
        }
    }
    let stats = fields.iter().zip(lens).map(|(field, mut lens)| {
        lens.sort_unstable();
        FieldStats {
            name: field.name.clone(),
            r#type: field.kind.name(),
            present: lens.len() as u64,
            missing: count - lens.len() as u64,
            total_bytes: lens.iter().sum(),
            min_bytes: lens.first().copied(),
            max_bytes: lens.last().copied(),
            quantiles_bytes: quantiles(&lens, Value::from),
        }
    });
    Ok(stats.collect())
}

fn reserve(values: &mut Vec<u64>, count: u64) -> Result<(), NoMemory> {
    values.try_reserve_exact(to_usize(count)).map_err(|_| NoMemory { len: count.saturating_mul(8) })
}

/// The quantiles of sorted values: the smallest value that this share of all values does not exceed.
fn quantiles(sorted: &[u64], value: impl Fn(u64) -> Value) -> Map<String, Value> {
    let count = sorted.len() as u64;
    let at = |percent: u64| {
        // 10^18 samples times 99 is below 2^64 only as u128.
        let place = (u128::from(count) * u128::from(percent)).div_ceil(100).max(1) - 1;
        usize::try_from(place).ok().and_then(|place| sorted.get(place)).map_or(Value::Null, |found| value(*found))
    };
    QUANTILES.iter().map(|percent| (percent.to_string(), at(*percent))).collect()
}

/// How often each of the sorted values occurs; `None` if there are too many different ones.
fn runs(sorted: &[u64]) -> Option<Vec<(u64, u64)>> {
    let mut runs = Vec::new();
    for equal in sorted.chunk_by(|one, next| one == next) {
        if runs.len() == DISTINCT_MAX {
            return None;
        }
        runs.extend(equal.first().map(|value| (*value, equal.len() as u64)));
    }
    Some(runs)
}

/// The most frequent first; equally frequent ones in the order of their values.
fn sorted(mut counts: Vec<(Value, Option<String>, u64)>) -> Vec<ValueCount> {
    counts.sort_by_key(|(_, _, samples)| std::cmp::Reverse(*samples));
    counts.into_iter().map(|(value, class, samples)| ValueCount { value, class, samples }).collect()
}

fn name_of(names: &[Value], value: &AttributeValue) -> Option<String> {
    let number = match value {
        AttributeValue::Int(number) => usize::try_from(*number).ok()?,
        AttributeValue::Uint(number) => usize::try_from(*number).ok()?,
        _ => return None,
    };
    Some(escape_bytes(names.get(number)?.as_str()?.as_bytes()))
}

fn is_ordered(kind: &AttributeType) -> bool {
    !matches!(kind, AttributeType::Category | AttributeType::Opaque(_))
}

const SIGN: u64 = 1 << 63;

/// A number that ascends with the value; `None` where it has no order.
fn rank(value: &AttributeValue) -> Option<u64> {
    let float = |number: f64| {
        let bits = if number == 0.0 { 0 } else { number.to_bits() }; // one zero
        (!number.is_nan()).then_some(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    };
    match value {
        AttributeValue::Bool(value) => Some(u64::from(*value)),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => Some(value.cast_unsigned() ^ SIGN),
        AttributeValue::Uint(value) => Some(*value),
        AttributeValue::Float16(value) => float(value.to_f64()),
        AttributeValue::Bfloat16(value) => float(value.to_f64()),
        AttributeValue::Float32(value) => float(f64::from(*value)),
        AttributeValue::Float64(value) => float(*value),
        AttributeValue::Category(_) | AttributeValue::Opaque(_) => None,
    }
}

/// The value that has this rank.
fn unrank(kind: &AttributeType, rank: u64) -> Option<AttributeValue> {
    let float = f64::from_bits(if rank & SIGN == 0 { !rank } else { rank & !SIGN });
    Some(match kind {
        AttributeType::Bool => AttributeValue::Bool(rank != 0),
        AttributeType::Int8 | AttributeType::Int16 | AttributeType::Int32 | AttributeType::Int64 => {
            AttributeValue::Int((rank ^ SIGN).cast_signed())
        }
        AttributeType::Timestamp => AttributeValue::Timestamp((rank ^ SIGN).cast_signed()),
        AttributeType::Uint8 | AttributeType::Uint16 | AttributeType::Uint32 | AttributeType::Uint64 => {
            AttributeValue::Uint(rank)
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was an f32")]
        AttributeType::Float32 => AttributeValue::Float32(float as f32),
        AttributeType::Float16 | AttributeType::Bfloat16 | AttributeType::Float64 => AttributeValue::Float64(float),
        AttributeType::Category | AttributeType::Opaque(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_ascend_with_values_and_lead_back_to_them() {
        let ascending = [f64::NEG_INFINITY, -1.5, -0.0, 1e-300, 2.0, f64::INFINITY];
        let ranks: Vec<u64> = ascending.iter().filter_map(|value| rank(&AttributeValue::Float64(*value))).collect();
        assert!(ranks.is_sorted() && ranks.len() == 6);
        for (rank, value) in ranks.iter().zip(ascending) {
            assert_eq!(unrank(&AttributeType::Float64, *rank), Some(AttributeValue::Float64(value)));
        }
        assert_eq!(rank(&AttributeValue::Float64(f64::NAN)), None);
        for value in [i64::MIN, -1, 0, 7, i64::MAX].map(AttributeValue::Int) {
            assert_eq!(rank(&value).and_then(|rank| unrank(&AttributeType::Int64, rank)), Some(value));
        }
    }

    #[test]
    fn quantiles_are_values_that_occur() {
        let found = quantiles(&[1, 2, 3, 4], Value::from);
        assert_eq!(
            (&found["1"], &found["25"], &found["50"], &found["99"]),
            (&1.into(), &1.into(), &2.into(), &4.into())
        );
        assert_eq!(quantiles(&[], Value::from)["50"], Value::Null);
    }

    #[test]
    fn values_are_counted_up_to_a_number_of_different_ones() {
        assert_eq!(runs(&[3, 3, 5]), Some(vec![(3, 2), (5, 1)]));
        let many: Vec<u64> = (0..1001).collect();
        assert!(runs(&many[..1000]).is_some_and(|runs| runs.len() == 1000) && runs(&many).is_none());
    }
}
