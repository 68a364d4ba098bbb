//! Keys, and the sections that are lists of small things.

use grainstore_format::{
    Alignment, AttributeType, Bitmap, BitmapBuilder, Categories, ChunkList, ChunkSize, Directory, DirectoryCounts,
    Entry, EntryFields, Geometry, KeyGeometry, KeyGroups, LONG_STORED_LEN, LongTable, MAX_KEY_LEN, MAX_SAMPLES,
    SectionKind, SectionRecord, SegmentRecord, SegmentTable, StoredLen, push_category, push_key, split_key,
    width_of_count,
};

use crate::input::Input;

/// KEY-1 to KEY-3, KEY-7, CAT-1: the bytes are a list of keys, categories, then a key, then a hash and its slot.
pub fn keys(data: &[u8]) {
    check_list(data);
    check_categories(data);
    check_one_key(data);
    let mut input = Input(data);
    check_slot(input.u64(), input.u64(), input.u64());
}

fn check_list(data: &[u8]) {
    let (mut rest, mut keys) = (data, Vec::new());
    while let Ok((key, after)) = split_key(rest) {
        keys.push(key);
        rest = after;
    }
    let mut list = Vec::new();
    keys.iter().for_each(|key| push_key(&mut list, key).unwrap());
    assert_eq!(list, data[..data.len() - rest.len()]);
    for place in 0..keys.len().min(64) + 1 {
        assert_eq!(KeyGroups::key_in_group(data, place as u64).ok(), keys.get(place).copied());
    }
}

/// CAT-1
fn check_categories(data: &[u8]) {
    let Ok(categories) = Categories::decode(data) else { return };
    let mut bytes = Vec::new();
    for (code, name) in (0..).zip(categories.iter()) {
        assert_eq!(categories.get(code), Some(name));
        push_category(&mut bytes, name).unwrap();
    }
    assert_eq!(bytes, data);
}

fn check_one_key(key: &[u8]) {
    let mut list = b"before".to_vec();
    let pushed = push_key(&mut list, key);
    assert_eq!(pushed.is_ok(), (1..=MAX_KEY_LEN).contains(&key.len()));
    if pushed.is_ok() {
        list.extend_from_slice(b"after");
        assert_eq!(split_key(&list[6..]).unwrap(), (key, &b"after"[..]));
    } else {
        assert_eq!(list, b"before");
    }
}

fn check_slot(sample_count: u64, ordinal: u64, hash: u64) {
    let sample_count = sample_count % MAX_SAMPLES + 1;
    let (geometry, ordinal, hash48) = (KeyGeometry::new(sample_count), ordinal % sample_count, hash >> 16);
    let bucket = geometry.bucket(hash48);
    assert!(bucket < geometry.bucket_count() && geometry.bucket_count() <= sample_count);
    let slot = KeyGeometry::decode_slot(&KeyGeometry::encode_slot(geometry.slot(hash48, ordinal)));
    assert_eq!((geometry.ordinal(slot), geometry.hash48(bucket, slot)), (ordinal, hash48));
}

/// CON-6, SEG, LNG, CHK, ENT and ATR: the first byte says which list the others are.
pub fn sections(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() % 6 {
        0 => check_bitmap(input.u16().into(), input.rest()),
        1 => check_segment_table(&mut input),
        2 => check_long_table(input.u64() % MAX_SAMPLES + 1, input.rest()),
        3 => check_chunk_list(&mut input),
        4 => check_entries(input.rest()),
        _ => check_value(input.byte(), input.rest()),
    }
}

fn check_bitmap(len: u64, bytes: &[u8]) {
    let Ok(bitmap) = Bitmap::decode(bytes, len) else { return };
    let mut builder = BitmapBuilder::default();
    let mut written: Vec<u8> = (0..len).filter_map(|bit| builder.push(bitmap.get(bit))).collect();
    written.extend(builder.finish());
    assert_eq!(written, bytes);
    assert_eq!(bitmap.count_ones(), (0..len).filter(|&bit| bitmap.get(bit)).count() as u64);
    assert!((len..len + 16).all(|bit| !bitmap.get(bit)) && bitmap.len() == len);
}

fn chunk_size(byte: u8) -> ChunkSize {
    ChunkSize::new(4096 << (byte % 19)).unwrap()
}

fn check_segment_table(input: &mut Input<'_>) {
    let (chunk_size, right_count, any_count) = (chunk_size(input.byte()), input.byte() & 1 == 0, input.u64());
    let bytes = input.rest();
    let sum = bytes.chunks_exact(16).fold(0, |sum: u64, record| sum.wrapping_add(crate::input::u64_at(record, 0)));
    let sample_count = if right_count { sum } else { any_count };
    let Ok(table) = SegmentTable::decode(bytes, sample_count, chunk_size) else { return };
    assert_eq!(table.records().iter().flat_map(SegmentRecord::encode).collect::<Vec<u8>>(), bytes);
    let (mut ordinal, mut chunk) = (0, 0);
    for (number, record) in table.records().iter().enumerate() {
        let ordinals = table.ordinals(number);
        assert_eq!(ordinals, ordinal..ordinal + record.sample_count);
        assert_eq!((table.segment_of(ordinals.start), table.segment_of(ordinals.end - 1)), (number, number));
        let chunks = table.chunks(number);
        assert_eq!(chunks.start, chunk);
        assert!((chunks.end - chunks.start) * chunk_size.bytes() >= record.data_end.max(1));
        assert!((chunks.end - chunks.start - 1) * chunk_size.bytes() <= record.data_end.saturating_sub(1));
        (ordinal, chunk) = (ordinals.end, chunks.end);
        let shorter = table.truncated(number + 1);
        assert_eq!((shorter.sample_count(), shorter.chunk_count(), shorter.len()), (ordinal, chunk, number + 1));
    }
    assert_eq!((table.sample_count(), table.chunk_count()), (ordinal, chunk));
    assert!(table.ordinals(table.len()).is_empty());
}

fn check_long_table(sample_count: u64, bytes: &[u8]) {
    let Ok(table) = LongTable::decode(bytes.to_vec(), sample_count) else { return };
    let mut written = Vec::new();
    for record in bytes.chunks_exact(16) {
        let ordinal = crate::input::u64_at(record, 0);
        let len = table.stored_len(ordinal).unwrap();
        assert!(ordinal < sample_count && len >= LONG_STORED_LEN);
        written.extend(LongTable::encode_record(ordinal, len));
        assert_eq!(table.clone().truncated(ordinal).len(), written.len() as u64 / 16 - 1);
    }
    assert_eq!(written, bytes);
    assert_eq!((table.len(), table.is_empty()), (bytes.len() as u64 / 16, bytes.is_empty()));
}

fn check_chunk_list(input: &mut Input<'_>) {
    let (size, width) = (chunk_size(input.byte()), 1_u32 << (input.byte() % 4));
    let edge_delta = u64::from(input.byte() % 8 == 1);
    let records = (0..input.byte() % 4 + 1)
        .map(|_| SegmentRecord { sample_count: u64::from(input.u16()), data_end: u64::from(input.u32() >> 8) });
    let Ok(table) = SegmentTable::new(records.collect(), size) else { return };
    let Ok(chunk_count) = usize::try_from(table.chunk_count()) else { return };
    let bytes = input.rest();
    let Some((counts, edges)) = bytes.split_at_checked(chunk_count * width as usize) else { return };
    let edge_count = edges.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>() + edge_delta;
    let Ok(directory) = directory_of(&table, size, width, edge_count) else { return };
    let Ok(list) = ChunkList::decode(counts.to_vec(), edges.to_vec(), &table, &directory) else { return };
    assert_eq!((list.len(), edge_delta), (table.chunk_count(), 0));
    let owned: Vec<u64> = (0..list.len()).map(|chunk| list.samples(chunk).end - list.samples(chunk).start).collect();
    assert!(width >= width_of_count(*owned.iter().max().unwrap()));
    let written: Vec<u8> = owned.iter().flat_map(|count| count.to_le_bytes()[..width as usize].to_vec()).collect();
    assert_eq!(written, counts);
    let edge_samples: Vec<u64> = list.edge_samples().collect();
    assert!(edge_samples.is_sorted_by(|a, b| a < b) && edge_samples.len() as u64 == edge_count);
    for segment in 0..table.len() {
        let older = list.clone().truncated(table.chunks(segment).end);
        let samples = table.ordinals(segment).end;
        assert_eq!((older.len(), older.samples(older.len() - 1).end), (table.chunks(segment).end, samples));
        assert!(older.edge_samples().eq(edge_samples.iter().copied().filter(|&ordinal| ordinal < samples)));
    }
}

/// A directory of the sections that are always there.
fn directory_of(
    table: &SegmentTable,
    chunk_size: ChunkSize,
    width: u32,
    edge_count: u64,
) -> Result<Directory, grainstore_format::FormatError> {
    let (n, chunks) = (table.sample_count(), table.chunk_count());
    let mut offset = 4096;
    let sections = [
        (SectionKind::Segments, 16, 16 * table.len() as u64),
        (SectionKind::Entries, 16, 16 * n),
        (SectionKind::Chunks, width, chunks * u64::from(width)),
        (SectionKind::Edges, 0, chunks.div_ceil(8)),
        (SectionKind::Metadata, 0, 100),
    ]
    .map(|(kind, width, len)| {
        let record = SectionRecord { kind, item: 0, width, offset, len, checksums_crc: 0 };
        offset = record.next_offset();
        record
    });
    let segment_count = u32::try_from(table.len()).unwrap();
    let counts = DirectoryCounts { sample_count: n, segment_count, stored_bytes: 0, payload_bytes: 0, edge_count };
    let geometry = Geometry { chunk_size, alignment: Alignment::PACKED, hash_seed: 0 };
    Directory::new(counts, geometry, sections.to_vec())
}

fn check_entries(bytes: &[u8]) {
    let entries = Entry::slice_of(bytes);
    assert_eq!(entries.len(), bytes.len() / Entry::LEN);
    for entry in entries {
        let stored_len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long => LONG_STORED_LEN,
        };
        let (segment, offset, crc, lz4) = (entry.segment(), entry.offset(), entry.crc(), entry.is_lz4());
        let legal = !lz4 || (1..LONG_STORED_LEN).contains(&stored_len);
        let again = Entry::new(EntryFields { segment, offset, stored_len, crc, lz4 });
        assert_eq!(again.ok(), legal.then_some(*entry));
    }
}

fn check_value(kind: u8, bytes: &[u8]) {
    use AttributeType::{Bfloat16, Bool, Float16, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp};
    use AttributeType::{Uint8, Uint16, Uint32, Uint64};
    let integers = [Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Timestamp];
    let kinds = [integers.as_slice(), &[Float16, Bfloat16, Float32, Float64]].concat();
    let kind = &kinds[usize::from(kind) % kinds.len()];
    let width = kind.width().unwrap() as usize;
    let bytes = &bytes[..bytes.len().min(width)];
    let Some(value) = kind.decode(bytes, &Categories::none()) else {
        assert!(bytes.len() < width || (*kind == Bool && bytes[0] > 1));
        return;
    };
    assert_eq!(kind.encode(&value).unwrap()[..width], *bytes);
    assert_eq!(AttributeType::from_name(kind.name()).as_ref(), Some(kind));
}
