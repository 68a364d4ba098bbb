//! Writes a complete index at the end of a file: sections, directory, footer. spec.md: sections 4 to 6.

use grainstore_format::{
    BLOCK_LEN, ChecksumBuilder, Directory, Fingerprint, Footer, KeyGeometry, SectionKind, SectionRecord, round_up,
    width_of_count,
};

use crate::WriteError;
use crate::column::{ColumnWriter, Spill};
use crate::index::{FieldBounds, IndexBuilder, Optional};
use crate::output::Output;

/// Facts about a file after its index is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Emitted {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) file_len: u64,
    pub(crate) sample_count: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) payload_bytes: u64,
}

/// Writes the index at the end of `output`, which keeps its temporary name.
pub(crate) fn emit(mut builder: IndexBuilder, output: &mut Output) -> Result<Emitted, WriteError> {
    builder.close_columns();
    let key_columns = if builder.spec.keyed { Some(sort_keys(&mut builder)?) } else { None };
    let index_offset = round_up(output.len(), BLOCK_LEN);
    let mut sections = Sections { output, spill: &builder.spill, records: Vec::new() };
    emit_samples(&mut sections, &builder)?;
    if let Some(keys) = &key_columns {
        sections.column(SectionKind::Keys, 0, 0, &builder.columns.keys)?;
        sections.column(SectionKind::KeyGroups, 0, 8, &builder.columns.key_groups)?;
        sections.narrowed(SectionKind::Buckets, 0, keys.bucket_width, &keys.buckets)?;
        sections.column(SectionKind::Slots, 0, 7, &keys.slots)?;
    }
    let metadata = builder.spec.metadata.encode()?;
    sections.section(SectionKind::Metadata, 0, 0, |write| write(&metadata))?;
    emit_attributes(&mut sections, &builder.columns.attributes, &builder)?;
    emit_fields(&mut sections, &builder.columns.fields, builder.largest_field)?;
    for (item, codes) in (0_u16..).zip(&builder.columns.categories).filter(|(_, codes)| !codes.section().is_empty()) {
        sections.section(SectionKind::Categories, item, 0, |write| write(codes.section()))?;
    }
    let records = sections.records;
    let directory = Directory::new(builder.counts, builder.spec.geometry, records)?.encode();
    let footer = Footer::new(index_offset, round_up(output.len(), BLOCK_LEN), &directory)?;
    output.pad_to(footer.directory_offset())?;
    output.write(&directory)?;
    output.pad_to(footer.file_len() - Footer::LEN as u64)?;
    output.write(&footer.encode())?;
    let counts = builder.counts;
    builder.spill.finish()?;
    Ok(Emitted {
        fingerprint: Fingerprint::of_directory(&directory),
        file_len: footer.file_len(),
        sample_count: counts.sample_count,
        stored_bytes: counts.stored_bytes,
        payload_bytes: counts.payload_bytes,
    })
}

fn emit_samples(sections: &mut Sections<'_>, builder: &IndexBuilder) -> Result<(), WriteError> {
    let columns = &builder.columns;
    sections.column(SectionKind::Segments, 0, 16, &columns.segments)?;
    sections.column(SectionKind::Entries, 0, 16, &columns.entries)?;
    sections.narrowed(SectionKind::Chunks, 0, width_of_count(builder.largest_chunk), &columns.chunks)?;
    sections.column(SectionKind::Edges, 0, 0, &columns.edges.bytes)?;
    if columns.long.len() > 0 {
        sections.column(SectionKind::Long, 0, 16, &columns.long)?;
    }
    if builder.any_lz4 {
        sections.column(SectionKind::RawLen, 0, 4, &columns.raw_len)?;
    }
    Ok(())
}

fn emit_attributes(
    sections: &mut Sections<'_>,
    columns: &[Optional<ColumnWriter>],
    builder: &IndexBuilder,
) -> Result<(), WriteError> {
    let kinds = builder.spec.metadata.schema.attributes();
    let codes = &builder.columns.categories;
    for (((item, column), codes), attribute) in (0_u16..).zip(columns).zip(codes).zip(kinds) {
        match attribute.kind.width() {
            Some(width) => sections.column(SectionKind::Attribute, item, width, &column.values)?,
            None => sections.narrowed(SectionKind::Attribute, item, codes.width(), &column.values)?,
        }
    }
    for (item, column) in (0_u16..).zip(columns).filter(|(_, column)| column.any_missing) {
        sections.column(SectionKind::Validity, item, 0, &column.validity.bytes)?;
    }
    Ok(())
}

fn emit_fields(sections: &mut Sections<'_>, columns: &[Optional<FieldBounds>], largest: u64) -> Result<(), WriteError> {
    let width = if largest <= u64::from(u32::MAX) { 4 } else { 8 };
    for (item, column) in (0_u16..).zip(columns) {
        sections.narrowed(SectionKind::FieldOffset, item, width, &column.values.offset)?;
    }
    for (item, column) in (0_u16..).zip(columns) {
        sections.narrowed(SectionKind::FieldLen, item, width, &column.values.len)?;
    }
    for (item, column) in (0_u16..).zip(columns).filter(|(_, column)| column.any_missing) {
        sections.column(SectionKind::FieldValidity, item, 0, &column.validity.bytes)?;
    }
    Ok(())
}

/// Writes sections, one after the other.
struct Sections<'a> {
    output: &'a mut Output,
    spill: &'a Spill,
    records: Vec<SectionRecord>,
}

type Write<'a> = dyn FnMut(&[u8]) -> Result<(), WriteError> + 'a;

impl Sections<'_> {
    /// Writes a column unchanged.
    fn column(&mut self, kind: SectionKind, item: u16, width: u32, column: &ColumnWriter) -> Result<(), WriteError> {
        let spill = self.spill;
        self.section(kind, item, width, |write| column.for_each_part(spill, write))
    }

    /// Writes a column of 64-bit integers that all fit in `width` bytes.
    fn narrowed(&mut self, kind: SectionKind, item: u16, width: u32, column: &ColumnWriter) -> Result<(), WriteError> {
        let spill = self.spill;
        self.section(kind, item, width, |write| {
            let mut narrow = Vec::new();
            column.for_each_part(spill, |part| {
                narrow.clear();
                let (words, _) = part.as_chunks::<8>();
                words.iter().for_each(|word| narrow.extend_from_slice(&word[..width as usize]));
                write(&narrow)
            })
        })
    }

    fn section(
        &mut self,
        kind: SectionKind,
        item: u16,
        width: u32,
        fill: impl FnOnce(&mut Write<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let offset = round_up(self.output.len(), BLOCK_LEN);
        self.output.pad_to(offset)?;
        let mut checksums = ChecksumBuilder::default();
        let output = &mut *self.output;
        fill(&mut |bytes| {
            checksums.update(bytes);
            output.write(bytes)
        })?;
        let len = self.output.len() - offset;
        let list = checksums.finish();
        let checksums_crc = crc32fast::hash(&list);
        self.output.pad_to(offset + round_up(len, 4))?;
        self.output.write(&list)?;
        self.records.push(SectionRecord { kind, item, width, offset, len, checksums_crc });
        Ok(())
    }
}

struct KeyColumns {
    buckets: ColumnWriter, // 64-bit
    slots: ColumnWriter,
    bucket_width: u32,
}

/// Sorts the keys into buckets of slots, and fails if a key appears twice. spec.md: KEY-1 to KEY-5.
fn sort_keys(builder: &mut IndexBuilder) -> Result<KeyColumns, WriteError> {
    let sample_count = builder.counts.sample_count;
    let geometry = KeyGeometry::new(sample_count);
    let sorter = std::mem::replace(&mut builder.sorter, crate::sort::KeySorter::new(0));
    let mut sorted = sorter.finish(&mut builder.spill)?;
    let mut buckets = ColumnWriter::default();
    let mut slots = ColumnWriter::default();
    let mut next_bucket = 0_u64;
    let mut slot_count = 0_u64;
    let mut equal: Vec<u64> = Vec::new();
    let mut hash_before = None;
    while let Some((hash, ordinal)) = sorted.next(&builder.spill)? {
        if hash_before != Some(hash) {
            check_distinct(builder, &equal)?;
            equal.clear();
            hash_before = Some(hash);
        }
        equal.push(ordinal);
        while next_bucket <= geometry.bucket(hash) {
            buckets.push(&slot_count.to_le_bytes());
            buckets.relieve(&mut builder.spill, COLUMN_LIMIT)?;
            next_bucket += 1;
        }
        slots.push(&KeyGeometry::encode_slot(geometry.slot(hash, ordinal)));
        slots.relieve(&mut builder.spill, COLUMN_LIMIT)?;
        slot_count += 1;
    }
    check_distinct(builder, &equal)?;
    for _ in next_bucket..=geometry.bucket_count() {
        buckets.push(&slot_count.to_le_bytes());
        buckets.relieve(&mut builder.spill, COLUMN_LIMIT)?;
    }
    Ok(KeyColumns { buckets, slots, bucket_width: KeyGeometry::bucket_width(sample_count) })
}

const COLUMN_LIMIT: usize = 1 << 20;

/// Fails unless the samples of these ordinals, whose keys have the same hash, have different keys.
fn check_distinct(builder: &IndexBuilder, ordinals: &[u64]) -> Result<(), WriteError> {
    if ordinals.len() < 2 {
        return Ok(());
    }
    let mut seen = std::collections::HashMap::new();
    for &second in ordinals {
        let key = builder.key(second)?;
        if let Some(first) = seen.insert(key.clone(), second) {
            return Err(WriteError::DuplicateKey { key, first, second });
        }
    }
    Ok(())
}
