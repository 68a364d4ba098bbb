//! The values of a column, 64 at a time, in the form that the sets need.

use grainstore_format::{AttributeType, to_usize};
use grainstore_store::Column;
use half::{bf16, f16};

use super::integers::Base;

/// Number of samples that are evaluated together.
pub(super) const GROUP: u64 = 64;
/// The same number as a `usize`.
pub(super) const GROUP_LEN: usize = 64;

/// The values of one group of samples.
pub(super) struct GroupValues<T> {
    values: [T; GROUP_LEN],
    len: usize,
}

impl<T> GroupValues<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        &self.values[..self.len]
    }
}

/// The numbers of an integer, timestamp or bool column, or the codes of one of categories.
pub(super) fn numbers(column: &Column<'_>, group: u64) -> GroupValues<u64> {
    match column.kind {
        AttributeType::Int8 => read(column, group, |[byte]| Base::of_signed(byte.cast_signed().into())),
        AttributeType::Int16 => read(column, group, |bytes| Base::of_signed(i16::from_le_bytes(bytes).into())),
        AttributeType::Int32 => read(column, group, |bytes| Base::of_signed(i32::from_le_bytes(bytes).into())),
        AttributeType::Int64 => read(column, group, |bytes| Base::of_signed(i64::from_le_bytes(bytes))),
        AttributeType::Uint16 => read(column, group, |bytes| u16::from_le_bytes(bytes).into()),
        AttributeType::Uint32 => read(column, group, |bytes| u32::from_le_bytes(bytes).into()),
        AttributeType::Timestamp => read(column, group, |bytes| Base::of_signed(i64::from_le_bytes(bytes))),
        AttributeType::Bool | AttributeType::Uint8 => read(column, group, |[byte]| byte.into()),
        // The others are not integers; a code has the width of its section.
        _ => match column.width {
            1 => read(column, group, |[byte]| byte.into()),
            2 => read(column, group, |bytes| u16::from_le_bytes(bytes).into()),
            4 => read(column, group, |bytes| u32::from_le_bytes(bytes).into()),
            _ => read(column, group, u64::from_le_bytes),
        },
    }
}

/// The values of a floating-point column; the narrower types widen exactly.
pub(super) fn floats(column: &Column<'_>, group: u64) -> GroupValues<f64> {
    match column.kind {
        AttributeType::Float16 => read(column, group, |bytes| f16::from_le_bytes(bytes).into()),
        AttributeType::Bfloat16 => read(column, group, |bytes| bf16::from_le_bytes(bytes).into()),
        AttributeType::Float32 => read(column, group, |bytes| f32::from_le_bytes(bytes).into()),
        _ => read(column, group, f64::from_le_bytes),
    }
}

/// Which samples of a group have a value.
pub(super) fn present(column: &Column<'_>, group: u64) -> u64 {
    column.validity.map_or(u64::MAX, |validity| validity.word(group))
}

fn read<const WIDTH: usize, T: Copy + Default>(
    column: &Column<'_>,
    group: u64,
    value: impl Fn([u8; WIDTH]) -> T,
) -> GroupValues<T> {
    // A group past the last sample has no values.
    let bytes = column.bytes.get(to_usize(group * GROUP) * WIDTH..).unwrap_or_default();
    let (bytes, _) = bytes.as_chunks::<WIDTH>();
    let mut values = GroupValues { values: [T::default(); GROUP_LEN], len: bytes.len().min(GROUP_LEN) };
    for (to, bytes) in values.values.iter_mut().zip(bytes) {
        *to = value(*bytes);
    }
    values
}
