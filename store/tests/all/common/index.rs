//! An index made section by section, directly from spec.md.

use std::collections::BTreeMap;

use grainstore_format::{
    AttributeValue, Entry, EntryFields, FileKind, Fingerprint, Footer, Geometry, Header, KeyGeometry, LONG_STORED_LEN,
    LongTable, Metadata, SectionKind, SegmentRecord, UserMetadata, chunk_count, hash48, push_category, push_key,
};

use super::{DatasetModel, Placed};

/// An index whose sections tests can change; `file` computes the checksums.
#[derive(Clone)]
pub struct IndexParts {
    pub geometry: Geometry,
    pub sample_count: u64,
    pub segment_count: u32,
    pub stored_bytes: u64,
    pub payload_bytes: u64,
    pub edge_count: u64,
    /// (width, bytes)
    pub sections: BTreeMap<(SectionKind, u16), (u32, Vec<u8>)>,
    /// Bytes of the directory that are replaced before its checksum is computed.
    pub directory_patches: Vec<(usize, Vec<u8>)>,
    /// Bytes of the footer that are replaced before its checksum is computed.
    pub footer_patches: Vec<(usize, Vec<u8>)>,
    /// Bytes of the header that are replaced before its checksum is computed.
    pub header_patches: Vec<(usize, Vec<u8>)>,
}

impl IndexParts {
    /// Sample count and end of data of each segment.
    pub fn of(model: &DatasetModel, segments: &[(&[Placed], u64)]) -> Self {
        let all: Vec<&Placed> = segments.iter().flat_map(|(placed, _)| placed.iter()).collect();
        let mut index = Self {
            geometry: model.geometry,
            sample_count: all.len() as u64,
            segment_count: segments.len() as u32,
            stored_bytes: all.iter().map(|p| p.stored_len).sum(),
            payload_bytes: all.iter().map(|p| p.raw_len).sum(),
            edge_count: 0,
            sections: BTreeMap::new(),
            directory_patches: vec![],
            footer_patches: vec![],
            header_patches: vec![],
        };
        index.add_samples(segments);
        index.add_chunks(segments);
        if model.keyed {
            index.add_keys(&all);
        }
        index.add_attributes(model, &all);
        index.add_fields(model, &all);
        let metadata = Metadata {
            schema: model.schema(),
            user: UserMetadata::default().with_member("by", &"hand".into()).unwrap(),
        };
        index.put(SectionKind::Metadata, 0, 0, metadata.encode().unwrap());
        index
    }

    pub fn put(&mut self, kind: SectionKind, item: u16, width: u32, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.sections.insert((kind, item), (width, bytes));
        }
    }

    pub fn section(&mut self, kind: SectionKind, item: u16) -> &mut Vec<u8> {
        &mut self.sections.get_mut(&(kind, item)).unwrap().1
    }

    /// Element `index` of a section, as a number.
    pub fn number(&mut self, kind: SectionKind, item: u16, index: usize) -> u64 {
        let (width, bytes) = &self.sections[&(kind, item)];
        let width = *width as usize;
        bytes[index * width..(index + 1) * width].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
    }

    pub fn set(&mut self, kind: SectionKind, item: u16, index: usize, value: u64) {
        let (width, bytes) = self.sections.get_mut(&(kind, item)).unwrap();
        let width = *width as usize;
        bytes[index * width..(index + 1) * width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// Changes the entry of sample `index`.
    pub fn change_entry(&mut self, index: usize, change: impl FnOnce(&mut EntryFields)) {
        let range = index * 16..(index + 1) * 16;
        let entry = Entry::slice_of(&self.section(SectionKind::Entries, 0)[range.clone()])[0];
        let grainstore_format::StoredLen::Here(stored_len) = entry.stored_len() else { panic!("a short sample") };
        let mut fields = EntryFields {
            segment: entry.segment(),
            offset: entry.offset(),
            stored_len: u64::from(stored_len),
            crc: entry.crc(),
            lz4: entry.is_lz4(),
        };
        change(&mut fields);
        // Packed by hand: `Entry::new` would refuse broken entries.
        let words = [
            u64::from(fields.segment) << 44 | fields.offset,
            u64::from(fields.crc) << 32 | u64::from(fields.lz4) << 31 | fields.stored_len.min(LONG_STORED_LEN),
        ];
        self.section(SectionKind::Entries, 0)[range].copy_from_slice(&words.map(u64::to_le_bytes).concat());
    }

    fn add_samples(&mut self, segments: &[(&[Placed], u64)]) {
        let (mut table, mut entries, mut long, mut raw_len) = (vec![], vec![], vec![], vec![]);
        let mut ordinal = 0;
        for (segment, (placed, data_end)) in segments.iter().enumerate() {
            table.extend(SegmentRecord { sample_count: placed.len() as u64, data_end: *data_end }.encode());
            for p in *placed {
                let word0 = (segment as u64) << 44 | p.offset;
                let len = p.stored_len.min(LONG_STORED_LEN);
                let word1 = u64::from(p.crc) << 32 | u64::from(p.sample.lz4) << 31 | len;
                entries.extend([word0, word1].map(u64::to_le_bytes).concat());
                if p.stored_len >= LONG_STORED_LEN {
                    long.extend(LongTable::encode_record(ordinal, p.stored_len));
                }
                raw_len.extend((if p.sample.lz4 { p.raw_len as u32 } else { 0 }).to_le_bytes());
                ordinal += 1;
            }
        }
        self.put(SectionKind::Segments, 0, 16, table);
        self.put(SectionKind::Entries, 0, 16, entries);
        self.put(SectionKind::Long, 0, 16, long);
        if raw_len.iter().any(|&byte| byte != 0) {
            self.put(SectionKind::RawLen, 0, 4, raw_len);
        }
    }

    fn add_chunks(&mut self, segments: &[(&[Placed], u64)]) {
        let (mut counts, mut edges) = (Vec::new(), Vec::new());
        let size = self.geometry.chunk_size;
        for (placed, data_end) in segments {
            let chunks = chunk_count(*data_end, size);
            for chunk in 0..chunks {
                let owns = |p: &&Placed| {
                    let byte = if p.stored_len == 0 { p.offset.max(1) - 1 } else { p.offset };
                    byte / size.bytes() == chunk
                };
                counts.push(placed.iter().filter(owns).count() as u64);
                let end = (chunk + 1) * size.bytes();
                edges.push(placed.iter().filter(owns).any(|p| p.offset + p.stored_len > end));
            }
        }
        let width = match counts.iter().max().unwrap() {
            0..=0xFF => 1,
            0x100..=0xFFFF => 2,
            _ => 4,
        };
        self.edge_count = edges.iter().filter(|&&edge| edge).count() as u64;
        let counts = counts.iter().flat_map(|count: &u64| count.to_le_bytes().into_iter().take(width as usize));
        self.put(SectionKind::Chunks, 0, width, counts.collect());
        self.put(SectionKind::Edges, 0, 0, bitmap(&edges));
    }

    /// KEY-1 to KEY-7, by sorting.
    pub fn add_keys(&mut self, all: &[&Placed]) {
        let n = all.len() as u64;
        let geometry = KeyGeometry::new(n);
        let hash = |p: &Placed| hash48(&p.sample.key, self.geometry.hash_seed);
        let mut slots: Vec<(u64, u64)> =
            (0..n).zip(all).map(|(o, p)| (geometry.bucket(hash(p)), geometry.slot(hash(p), o))).collect();
        slots.sort_unstable();
        let starts =
            (0..=geometry.bucket_count()).map(|bucket| slots.iter().filter(|slot| slot.0 < bucket).count() as u32);
        let buckets = starts.flat_map(u32::to_le_bytes).collect();
        let (mut keys, mut groups) = (Vec::new(), Vec::new());
        for (place, p) in all.iter().enumerate() {
            if place % 64 == 0 {
                groups.extend((keys.len() as u64).to_le_bytes());
            }
            push_key(&mut keys, &p.sample.key).unwrap();
        }
        groups.extend((keys.len() as u64).to_le_bytes());
        self.put(SectionKind::Slots, 0, 7, slots.iter().flat_map(|slot| KeyGeometry::encode_slot(slot.1)).collect());
        self.put(SectionKind::Buckets, 0, 4, buckets);
        self.put(SectionKind::Keys, 0, 0, keys);
        self.put(SectionKind::KeyGroups, 0, 8, groups);
    }

    fn add_attributes(&mut self, model: &DatasetModel, all: &[&Placed]) {
        for (place, (_, kind)) in model.attributes.iter().enumerate() {
            let categories = first_appearances(all, place);
            // The forger's codes are as wide as they can be.
            let (item, width) = (place as u16, kind.width().unwrap_or(4));
            let values = all.iter().flat_map(|p| {
                let bytes = match &p.sample.attributes[place] {
                    None => [0; 8],
                    Some(AttributeValue::Category(name)) => {
                        (categories.iter().position(|known| known == name).unwrap() as u64).to_le_bytes()
                    }
                    Some(value) => kind.encode(value).unwrap(),
                };
                bytes.into_iter().take(width as usize)
            });
            self.put(SectionKind::Attribute, item, width, values.collect());
            if !categories.is_empty() {
                let mut bytes = Vec::new();
                categories.iter().for_each(|name| push_category(&mut bytes, name).unwrap());
                self.put(SectionKind::Categories, item, 0, bytes);
            }
            let valid: Vec<bool> = all.iter().map(|p| p.sample.attributes[place].is_some()).collect();
            if valid.contains(&false) {
                self.put(SectionKind::Validity, item, 0, bitmap(&valid));
            }
        }
    }

    fn add_fields(&mut self, model: &DatasetModel, all: &[&Placed]) {
        if model.fields.len() == 1 {
            return;
        }
        for place in 0..model.fields.len() {
            let ranges: Vec<_> = all.iter().map(|p| p.sample.ranges()[place].clone()).collect();
            let column = |number: &dyn Fn(&std::ops::Range<u64>) -> u64| {
                ranges.iter().flat_map(|r| (r.as_ref().map_or(0, number) as u32).to_le_bytes()).collect()
            };
            self.put(SectionKind::FieldOffset, place as u16, 4, column(&|r| r.start));
            self.put(SectionKind::FieldLen, place as u16, 4, column(&|r| r.end - r.start));
            let valid: Vec<bool> = ranges.iter().map(Option::is_some).collect();
            if valid.contains(&false) {
                self.put(SectionKind::FieldValidity, place as u16, 0, bitmap(&valid));
            }
        }
    }

    /// The whole file: header, `data` (its first 4096 bytes are replaced), sections, directory, footer.
    pub fn file(&self, kind: FileKind, data: &[u8]) -> Vec<u8> {
        let mut header = Header { kind }.encode();
        patch(&mut header, &self.header_patches);
        let crc = crc32fast::hash(&header[..4092]);
        header[4092..].copy_from_slice(&crc.to_le_bytes());
        let mut bytes = data.to_vec();
        bytes.resize(bytes.len().max(4096), 0);
        bytes[..4096].copy_from_slice(&header);
        pad(&mut bytes);
        let index_offset = bytes.len() as u64;
        let mut records = Vec::new();
        for (&(kind, item), (width, section)) in &self.sections {
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(section);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            let list: Vec<u8> = section.chunks(65536).flat_map(|piece| crc32fast::hash(piece).to_le_bytes()).collect();
            bytes.extend_from_slice(&list);
            pad(&mut bytes);
            records.extend((kind as u16).to_le_bytes());
            records.extend(item.to_le_bytes());
            records.extend(width.to_le_bytes());
            records.extend(offset.to_le_bytes());
            records.extend((section.len() as u64).to_le_bytes());
            records.extend(crc32fast::hash(&list).to_le_bytes());
            records.extend([0; 4]);
        }
        let directory_offset = bytes.len() as u64;
        let directory = self.directory(&records);
        bytes.extend_from_slice(&directory);
        let len = (bytes.len() + 64).next_multiple_of(4096);
        bytes.resize(len - 64, 0);
        let mut footer = Footer::new(index_offset, directory_offset, &directory).unwrap().encode();
        patch(&mut footer, &self.footer_patches);
        let crc = crc32fast::hash(&footer[..60]);
        footer[60..].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&footer);
        bytes
    }

    pub fn directory(&self, records: &[u8]) -> Vec<u8> {
        let mut bytes = b"GRAINDIR".to_vec();
        bytes.extend(self.sample_count.to_le_bytes());
        bytes.extend(self.segment_count.to_le_bytes());
        bytes.push(self.geometry.chunk_size.bytes().trailing_zeros() as u8);
        bytes.extend([0; 3]);
        let alignment: u32 = self.geometry.alignment.to_string().parse().unwrap_or(0);
        bytes.extend(alignment.to_le_bytes());
        bytes.extend((self.sections.len() as u32).to_le_bytes());
        bytes.extend(self.geometry.hash_seed.to_le_bytes());
        for number in [self.stored_bytes, self.payload_bytes, self.edge_count] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend_from_slice(records);
        patch(&mut bytes, &self.directory_patches);
        bytes
    }
}

fn patch(bytes: &mut [u8], patches: &[(usize, Vec<u8>)]) {
    for (at, patch) in patches {
        bytes[*at..at + patch.len()].copy_from_slice(patch);
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
}

fn bitmap(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|bits| bits.iter().enumerate().fold(0, |byte, (i, &bit)| byte | u8::from(bit) << i)).collect()
}

/// The fingerprint of a grainstore file, found from its footer. FPR-1
pub fn fingerprint_of(file: &[u8]) -> Fingerprint {
    let footer = &file[file.len() - 64..];
    let len = u32::from_le_bytes(footer[20..24].try_into().unwrap()) as usize;
    let offset = u64::from_le_bytes(footer[24..32].try_into().unwrap()) as usize;
    Fingerprint::of_directory(file.get(offset..offset.saturating_add(len)).unwrap_or_default())
}

/// The categories of an attribute. spec.md: CAT-3.
fn first_appearances(all: &[&Placed], place: usize) -> Vec<std::sync::Arc<str>> {
    let mut names = Vec::new();
    for p in all {
        if let Some(AttributeValue::Category(name)) = &p.sample.attributes[place]
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}
