//! Collects rows by column, and writes them as a row group when there are enough.

use std::path::Path;

use ::parquet::column::writer::ColumnWriterImpl;
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use bytes::Bytes;
use grainstore_format::{AttributeType, AttributeValue, FieldType, escape_bytes, to_usize};
use grainstore_host::SteadyFile;

use super::library_error;
use super::schema::FileSchema;
use crate::ExportError;
use crate::fetch::ExportedSample;
use crate::shards::ShardWriter;

/// The payload bytes after which a row group is written.
const GROUP_LEN: u64 = 64 << 20;
/// The most bytes of a page of byte strings, unless a single value is longer.
const PAGE_LEN: usize = 1 << 20;

/// Writes one file.
pub(super) struct RowWriter<'a> {
    schema: &'a FileSchema,
    path: &'a Path,
    file: SerializedFileWriter<SteadyFile>,
    columns: Vec<ParquetColumn>,
    row_count: usize,
    group_len: u64,
}

/// One column of the rows that are collected.
struct ParquetColumn {
    /// 1 for each row that has a value, else 0; `None` for a column in which every row has a value.
    levels: Option<Vec<i16>>,
    values: ColumnValues,
}

enum ColumnValues {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl<'a> RowWriter<'a> {
    pub(super) fn begin(
        schema: &'a FileSchema,
        file: SteadyFile,
        path: &'a Path,
    ) -> std::result::Result<Self, ExportError> {
        let root = schema.root.clone();
        let properties = schema.properties.clone();
        let file = SerializedFileWriter::new(file, root, properties).map_err(library_error(path))?;
        Ok(Self { schema, path, file, columns: empty_columns(schema), row_count: 0, group_len: 0 })
    }

    fn write_group(&mut self) -> Result<()> {
        let columns = std::mem::replace(&mut self.columns, empty_columns(self.schema));
        self.row_count = 0;
        self.group_len = 0;
        let mut group = self.file.next_row_group()?;
        for column in &columns {
            let missing =
                || ParquetError::General("internal error: a row group lacks a column; please report it".into());
            let mut writer = group.next_column()?.ok_or_else(missing)?;
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close().map(drop)
    }

    fn push(&mut self, sample: &mut ExportedSample<'_>) -> std::result::Result<(), ExportError> {
        let facts = sample.facts;
        let mut columns = self.columns.iter_mut();
        let mut next_column = || columns.next().ok_or_else(|| ExportError::bug("a file has too few columns"));
        if self.schema.is_keyed {
            let key = facts.key.clone().ok_or_else(|| ExportError::bug("a sample of a dataset with keys has none"))?;
            next_column()?.push_bytes(Some(key))?;
        }
        for value in &facts.attributes {
            next_column()?.push(value.as_ref())?;
        }
        for (field, range) in self.schema.schema.fields().iter().zip(&facts.fields) {
            let column = next_column()?;
            let Some(range) = range else {
                column.push_bytes(None)?;
                continue;
            };
            let mut bytes = room(range.end.saturating_sub(range.start))?;
            sample.payload.copy(range, &mut bytes).map_err(ExportError::io("write it", self.path))?;
            if field.kind == FieldType::Str && std::str::from_utf8(&bytes).is_err() {
                let why = format!("its \"{}\" is not UTF-8", escape_bytes(field.name.as_bytes()));
                return Err(ExportError::BadSample { ordinal: facts.ordinal, key: facts.key.clone(), why });
            }
            column.push_bytes(Some(bytes))?;
        }
        Ok(())
    }
}

impl ShardWriter for RowWriter<'_> {
    fn write(&mut self, sample: &mut ExportedSample<'_>) -> std::result::Result<(), ExportError> {
        self.push(sample)?;
        self.row_count += 1;
        self.group_len = self.group_len.saturating_add(sample.facts.written_len());
        if self.group_len < GROUP_LEN { Ok(()) } else { self.write_group().map_err(library_error(self.path)) }
    }

    fn finish(mut self: Box<Self>) -> std::result::Result<(), ExportError> {
        if self.row_count > 0 {
            self.write_group().map_err(library_error(self.path))?;
        }
        let mut file = self.file.into_inner().map_err(library_error(self.path))?;
        file.sync().map_err(ExportError::io("sync it", self.path))
    }
}

fn empty_columns(schema: &FileSchema) -> Vec<ParquetColumn> {
    let key = schema.is_keyed.then(|| ParquetColumn { levels: None, values: ColumnValues::Bytes(Vec::new()) });
    let optional = |values| ParquetColumn { levels: Some(Vec::new()), values };
    let attributes = schema.schema.attributes().iter().map(|attribute| optional(ColumnValues::of(&attribute.kind)));
    let fields = schema.schema.fields().iter().map(|_| optional(ColumnValues::Bytes(Vec::new())));
    key.into_iter().chain(attributes).chain(fields).collect()
}

/// Allocates memory for a value; a dataset may claim a length that does not fit in memory.
fn room(len: u64) -> std::result::Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    let no_memory = |_| ExportError::Read(grainstore_reader::ReadError::NoMemory { len });
    bytes.try_reserve_exact(to_usize(len)).map_err(no_memory)?;
    Ok(bytes)
}

impl ColumnValues {
    fn of(kind: &AttributeType) -> Self {
        match kind {
            AttributeType::Bool => Self::Bool(Vec::new()),
            AttributeType::Int8
            | AttributeType::Int16
            | AttributeType::Int32
            | AttributeType::Uint8
            | AttributeType::Uint16
            | AttributeType::Uint32 => Self::Int32(Vec::new()),
            AttributeType::Int64 | AttributeType::Uint64 | AttributeType::Timestamp => Self::Int64(Vec::new()),
            AttributeType::Float16 => Self::Fixed(Vec::new()),
            AttributeType::Bfloat16 | AttributeType::Float32 => Self::Float(Vec::new()),
            AttributeType::Float64 => Self::Double(Vec::new()),
            AttributeType::Category | AttributeType::Opaque(_) => Self::Bytes(Vec::new()),
        }
    }
}

impl ParquetColumn {
    fn push(&mut self, value: Option<&AttributeValue>) -> std::result::Result<(), ExportError> {
        self.note(value.is_some());
        let Some(value) = value else { return Ok(()) };
        let too_wide = |_| ExportError::bug("a value does not fit the type of its attribute");
        // The column's type was derived from the attribute's. Unsigned values keep their bits.
        match (&mut self.values, value) {
            (ColumnValues::Bool(values), AttributeValue::Bool(value)) => values.push(*value),
            (ColumnValues::Int32(values), AttributeValue::Int(value)) => {
                values.push(i32::try_from(*value).map_err(too_wide)?);
            }
            (ColumnValues::Int32(values), AttributeValue::Uint(value)) => {
                values.push(u32::try_from(*value).map_err(too_wide)?.cast_signed());
            }
            (ColumnValues::Int64(values), AttributeValue::Int(value) | AttributeValue::Timestamp(value)) => {
                values.push(*value);
            }
            (ColumnValues::Int64(values), AttributeValue::Uint(value)) => values.push(value.cast_signed()),
            (ColumnValues::Fixed(values), AttributeValue::Float16(value)) => {
                values.push(FixedLenByteArray::from(value.to_le_bytes().to_vec()));
            }
            (ColumnValues::Float(values), AttributeValue::Float32(value)) => values.push(*value),
            (ColumnValues::Float(values), AttributeValue::Bfloat16(value)) => values.push(value.to_f32()),
            (ColumnValues::Double(values), AttributeValue::Float64(value)) => values.push(*value),
            (ColumnValues::Bytes(values), AttributeValue::Category(text)) => {
                values.push(ByteArray::from(text.as_ref()))
            }
            (ColumnValues::Bytes(values), AttributeValue::Opaque(bytes)) => {
                values.push(ByteArray::from(bytes.to_vec()))
            }
            _ => return Err(ExportError::bug("a value is not of the type of its attribute")),
        }
        Ok(())
    }

    fn push_bytes(&mut self, bytes: Option<Vec<u8>>) -> std::result::Result<(), ExportError> {
        self.note(bytes.is_some());
        let ColumnValues::Bytes(values) = &mut self.values else {
            return Err(ExportError::bug("bytes for a column of numbers"));
        };
        values.extend(bytes.map(|bytes| ByteArray::from(Bytes::from(bytes))));
        Ok(())
    }

    fn note(&mut self, has_value: bool) {
        if let Some(levels) = &mut self.levels {
            levels.push(has_value.into());
        }
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.levels.as_deref();
        match &self.values {
            ColumnValues::Bool(values) => write(writer.typed::<BoolType>(), values, levels),
            ColumnValues::Int32(values) => write(writer.typed::<Int32Type>(), values, levels),
            ColumnValues::Int64(values) => write(writer.typed::<Int64Type>(), values, levels),
            ColumnValues::Float(values) => write(writer.typed::<FloatType>(), values, levels),
            ColumnValues::Double(values) => write(writer.typed::<DoubleType>(), values, levels),
            ColumnValues::Fixed(values) => write(writer.typed::<FixedLenByteArrayType>(), values, levels),
            ColumnValues::Bytes(values) => write_bytes(writer.typed::<ByteArrayType>(), values, levels),
        }
    }
}

fn write<T: DataType>(writer: &mut ColumnWriterImpl<'_, T>, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
    writer.write_batch(values, levels, None).map(drop)
}

/// Writes one page of values at a time: the library checks whether a page is full only between calls.
fn write_bytes(
    writer: &mut ColumnWriterImpl<'_, ByteArrayType>,
    mut values: &[ByteArray],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut levels) = levels else {
        while !values.is_empty() {
            let (page, rest) = values.split_at(page_count(values));
            write(writer, page, None)?;
            values = rest;
        }
        return Ok(());
    };
    while !levels.is_empty() {
        let (page, rest) = values.split_at(page_count(values));
        let end = nth_value_end(levels, page.len());
        let (page_levels, rest_levels) = levels.split_at(end);
        write(writer, page, Some(page_levels))?;
        values = rest;
        levels = rest_levels;
    }
    Ok(())
}

/// The number of values that fill a page; at least 1 if there are any.
fn page_count(values: &[ByteArray]) -> usize {
    let mut len = 0_usize;
    let fits = |value: &&ByteArray| {
        len = len.saturating_add(value.len());
        len <= PAGE_LEN
    };
    values.iter().take_while(fits).count().max(1).min(values.len())
}

/// The number of rows up to the last of the first `count` values, plus the rows without a value that follow it.
fn nth_value_end(levels: &[i16], count: usize) -> usize {
    let mut values = levels.iter().enumerate().filter(|(_, level)| **level > 0).skip(count);
    values.next().map_or(levels.len(), |(position, _)| position)
}
