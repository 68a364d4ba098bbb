//! Collects the rows of an index, column by column, both for a segment's own index and for the merged one.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::{
    AttributeType, AttributeValue, BitmapBuilder, DirectoryCounts, Entry, EntryFields, Geometry, KeyGroups,
    LONG_STORED_LEN, LongTable, Metadata, SegmentRecord, chunk_count, hash48, push_key,
};

use crate::categories::CategoryCodes;
use crate::column::{ColumnWriter, Spill};
use crate::sort::KeySorter;
use crate::storage::Storage;
use crate::{WriteError, WriterOptions};

/// Samples between two checks of the columns' lengths; with the longest keys, 16 MiB.
const RELIEVE_EVERY: u64 = 256;

/// What the index stores of one sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexRow<'a> {
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
    pub(crate) raw_len: u64,
    pub(crate) crc: u32,
    pub(crate) lz4: bool,
    pub(crate) key: &'a [u8],
    pub(crate) attributes: &'a [Option<AttributeValue>],
    pub(crate) fields: &'a [Option<Range<u64>>],
}

/// What all indexes of a dataset have in common.
#[derive(Debug, Clone)]
pub(crate) struct IndexSpec {
    pub(crate) geometry: Geometry,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) keyed: bool,
    /// Whether fields have columns; one field that is the whole payload needs none. spec.md: FLD-1.
    pub(crate) field_columns: bool,
    pub(crate) memory_len: u64,
}

impl IndexSpec {
    /// The index properties that follow from the options.
    pub(crate) fn of(options: &WriterOptions) -> Self {
        Self {
            geometry: options.geometry,
            metadata: Arc::new(options.metadata.clone()),
            keyed: options.keyed,
            field_columns: options.metadata.schema.fields().len() > 1,
            memory_len: options.memory_len,
        }
    }

    /// Whether segments of both can be in one dataset. spec.md: HDR-2, KEY-1, MET-1.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.geometry == other.geometry
            && self.metadata.schema == other.metadata.schema
            && self.keyed == other.keyed
            && self.field_columns == other.field_columns
    }
}

/// A column of which some samples may have no value.
#[derive(Default)]
pub(crate) struct Optional<T> {
    pub(crate) values: T,
    pub(crate) validity: BitColumn,
    pub(crate) any_missing: bool,
}

#[derive(Default)]
pub(crate) struct BitColumn {
    bits: BitmapBuilder,
    pub(crate) bytes: ColumnWriter,
}

impl BitColumn {
    fn push(&mut self, bit: bool) {
        if let Some(byte) = self.bits.push(bit) {
            self.bytes.push(&[byte]);
        }
    }

    fn close(&mut self) {
        if let Some(byte) = std::mem::take(&mut self.bits).finish() {
            self.bytes.push(&[byte]);
        }
    }
}

/// Offsets and lengths of a field, as 64-bit integers until it is known whether 32 bits are enough.
#[derive(Default)]
pub(crate) struct FieldBounds {
    pub(crate) offset: ColumnWriter,
    pub(crate) len: ColumnWriter,
}

#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) segments: ColumnWriter,
    pub(crate) entries: ColumnWriter,
    pub(crate) chunks: ColumnWriter, // 64-bit counts
    pub(crate) edges: BitColumn,
    pub(crate) long: ColumnWriter,
    pub(crate) raw_len: ColumnWriter,
    pub(crate) keys: ColumnWriter,
    pub(crate) key_groups: ColumnWriter,
    pub(crate) attributes: Vec<Optional<ColumnWriter>>, // 64-bit codes for categories
    pub(crate) categories: Vec<CategoryCodes>,          // one for each attribute, without any for other types
    pub(crate) fields: Vec<Optional<FieldBounds>>,
}

/// An index under construction.
pub(crate) struct IndexBuilder {
    pub(crate) spec: IndexSpec,
    pub(crate) spill: Spill,
    pub(crate) columns: Columns,
    pub(crate) sorter: KeySorter,
    pub(crate) counts: DirectoryCounts,
    pub(crate) any_lz4: bool,
    pub(crate) largest_chunk: u64,
    pub(crate) largest_field: u64,
    column_limit: usize,
    open: OpenSegment,
}

/// The segment whose rows are being added.
#[derive(Default)]
struct OpenSegment {
    sample_count: u64,
    chunk: u64, // its number in the segment
    owned: u64,
    edge: bool,
}

impl IndexBuilder {
    /// Makes a builder that spills to `spill_path`.
    pub(crate) fn new(spec: IndexSpec, storage: &Arc<dyn Storage>, spill_path: PathBuf) -> Self {
        let schema = &spec.metadata.schema;
        let mut columns = Columns::default();
        columns.attributes.resize_with(schema.attributes().len(), Optional::default);
        columns.categories.resize_with(schema.attributes().len(), CategoryCodes::default);
        let field_count = if spec.field_columns { schema.fields().len() } else { 0 };
        columns.fields.resize_with(field_count, Optional::default);
        let column_count = 8 + 2 * columns.attributes.len() + 3 * columns.fields.len();
        let share = grainstore_format::to_usize(spec.memory_len / 4) / column_count;
        Self {
            spill: Spill::new(Arc::clone(storage), spill_path),
            columns,
            sorter: KeySorter::new(spec.memory_len / 4),
            counts: DirectoryCounts {
                sample_count: 0,
                segment_count: 0,
                stored_bytes: 0,
                payload_bytes: 0,
                edge_count: 0,
            },
            any_lz4: false,
            largest_chunk: 0,
            largest_field: 0,
            column_limit: share.clamp(4096, 1 << 20),
            open: OpenSegment::default(),
            spec,
        }
    }

    /// Adds the next sample. Rows of a segment come in ordinal order, then [`IndexBuilder::end_segment`].
    pub(crate) fn push(&mut self, row: &IndexRow<'_>) -> Result<(), WriteError> {
        let ordinal = self.counts.sample_count;
        let entry = Entry::new(EntryFields {
            segment: self.counts.segment_count,
            offset: row.offset,
            stored_len: row.stored_len,
            crc: row.crc,
            lz4: row.lz4,
        })?;
        self.columns.entries.push(zerocopy::IntoBytes::as_bytes(&entry));
        if row.stored_len >= LONG_STORED_LEN {
            self.columns.long.push(&LongTable::encode_record(ordinal, row.stored_len));
        }
        let raw_len = if row.lz4 { u32::try_from(row.raw_len) } else { Ok(0) };
        let raw_len = raw_len.map_err(|_| WriteError::bug("a compressed sample is longer than 32 bits can count"))?;
        self.columns.raw_len.push(&raw_len.to_le_bytes());
        self.any_lz4 |= row.lz4;
        self.push_key(ordinal, row.key)?;
        self.push_attributes(row.attributes)?;
        self.push_fields(row.fields);
        self.own(row)?;
        self.counts.sample_count += 1;
        self.counts.stored_bytes += row.stored_len;
        self.counts.payload_bytes += row.raw_len;
        self.open.sample_count += 1;
        if ordinal.is_multiple_of(RELIEVE_EVERY) { self.relieve() } else { Ok(()) }
    }

    /// Ends a segment whose last sample ends at `data_end`.
    pub(crate) fn end_segment(&mut self, data_end: u64) -> Result<(), WriteError> {
        for _ in self.open.chunk..chunk_count(data_end, self.spec.geometry.chunk_size) {
            self.close_chunk()?;
        }
        let record = SegmentRecord { sample_count: self.open.sample_count, data_end };
        self.columns.segments.push(&record.encode());
        self.counts.segment_count += 1;
        self.open = OpenSegment::default();
        Ok(())
    }

    /// Fills the last bytes of bitmaps, and the last element of the groups of keys.
    pub(crate) fn close_columns(&mut self) {
        self.columns.edges.close();
        self.columns.attributes.iter_mut().for_each(|attribute| attribute.validity.close());
        self.columns.fields.iter_mut().for_each(|field| field.validity.close());
        if self.spec.keyed {
            let len = self.columns.keys.len();
            self.columns.key_groups.push(&len.to_le_bytes());
        }
    }

    /// The key of a sample that was added, once the columns are closed.
    pub(crate) fn key(&self, ordinal: u64) -> Result<Vec<u8>, WriteError> {
        let group = ordinal / KeyGroups::GROUP_LEN;
        let bounds = self.columns.key_groups.read(&self.spill, group * 8, 16)?;
        let (words, _) = bounds.as_chunks::<8>();
        let from = u64::from_le_bytes(words[0]);
        let to = u64::from_le_bytes(words[1]);
        let keys = self.columns.keys.read(&self.spill, from, to - from)?;
        Ok(KeyGroups::key_in_group(&keys, ordinal % KeyGroups::GROUP_LEN)?.to_vec())
    }

    fn push_key(&mut self, ordinal: u64, key: &[u8]) -> Result<(), WriteError> {
        if !self.spec.keyed {
            return Ok(());
        }
        if ordinal.is_multiple_of(KeyGroups::GROUP_LEN) {
            let len = self.columns.keys.len();
            self.columns.key_groups.push(&len.to_le_bytes());
        }
        push_key(self.columns.keys.tail_mut(), key)?;
        self.sorter.push((hash48(key, self.spec.geometry.hash_seed), ordinal), &mut self.spill)
    }

    fn push_attributes(&mut self, values: &[Option<AttributeValue>]) -> Result<(), WriteError> {
        debug_assert_eq!(values.len(), self.columns.attributes.len(), "the row was checked against the schema");
        let kinds = self.spec.metadata.schema.attributes();
        let Columns { attributes, categories, .. } = &mut self.columns;
        for (((column, codes), attribute), value) in attributes.iter_mut().zip(categories).zip(kinds).zip(values) {
            let (bytes, width) = match (&attribute.kind, value) {
                (AttributeType::Category, Some(AttributeValue::Category(name))) => {
                    (u64::from(codes.code_of(name, &attribute.name)?).to_le_bytes(), 8)
                }
                (kind, Some(value)) => {
                    let bytes = kind.encode(value).ok_or_else(|| WriteError::bug("a value is not of its type"))?;
                    (bytes, kind.width().unwrap_or(8))
                }
                (kind, None) => ([0; 8], kind.width().unwrap_or(8)), // spec.md: ATR-2
            };
            column.values.push(&bytes[..width as usize]);
            column.validity.push(value.is_some());
            column.any_missing |= value.is_none();
        }
        Ok(())
    }

    fn push_fields(&mut self, ranges: &[Option<Range<u64>>]) {
        for (column, range) in self.columns.fields.iter_mut().zip(ranges) {
            let Range { start, end } = range.clone().unwrap_or(0..0); // spec.md: FLD-3
            column.values.offset.push(&start.to_le_bytes());
            column.values.len.push(&(end - start).to_le_bytes());
            column.validity.push(range.is_some());
            column.any_missing |= range.is_none();
            self.largest_field = self.largest_field.max(end);
        }
    }

    /// Counts the sample for the chunk that owns it. spec.md: CHK-1, CHK-3.
    fn own(&mut self, row: &IndexRow<'_>) -> Result<(), WriteError> {
        let chunk_size = self.spec.geometry.chunk_size;
        let owner = chunk_size.owner(row.offset, row.stored_len);
        while self.open.chunk < owner {
            self.close_chunk()?;
        }
        self.open.owned += 1;
        self.open.edge = chunk_size.crosses_out_of(owner, row.offset, row.stored_len);
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<(), WriteError> {
        self.columns.chunks.push(&self.open.owned.to_le_bytes());
        self.columns.edges.push(self.open.edge);
        self.largest_chunk = self.largest_chunk.max(self.open.owned);
        self.counts.edge_count += u64::from(self.open.edge);
        self.open =
            OpenSegment { chunk: self.open.chunk + 1, sample_count: self.open.sample_count, owned: 0, edge: false };
        self.columns.chunks.relieve(&mut self.spill, self.column_limit)
    }

    fn relieve(&mut self) -> Result<(), WriteError> {
        let Columns { segments, entries, chunks, edges, long, raw_len, keys, key_groups, attributes, fields, .. } =
            &mut self.columns;
        let fixed = [segments, entries, chunks, &mut edges.bytes, long, raw_len, keys, key_groups].into_iter();
        let attributes = attributes.iter_mut().flat_map(|a| [&mut a.values, &mut a.validity.bytes]);
        let fields = fields.iter_mut().flat_map(|f| [&mut f.values.offset, &mut f.values.len, &mut f.validity.bytes]);
        for column in fixed.chain(attributes).chain(fields) {
            column.relieve(&mut self.spill, self.column_limit)?;
        }
        Ok(())
    }
}
