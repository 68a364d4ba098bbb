//! Asks a dataset everything, and compares each answer with what is known.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use grainstore_format::{AttributeValue, Header, MAX_LZ4_RAW_LEN};
use grainstore_store::{Dataset, Encoding, Location, OpenedFile, StoreError, check_and_decode};

/// What a fixture's sample is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) location: Location,
    pub(super) key: Option<Vec<u8>>,
    pub(super) attributes: Vec<Option<AttributeValue>>,
    pub(super) fields: Vec<Option<Range<u64>>>,
    pub(super) payload: Vec<u8>,
}

/// What is known of the samples.
pub(super) struct Truth<'a> {
    pub(super) samples: &'a [Known],
    /// Whether every answer must be as it was, because no checksum was put right.
    pub(super) all: bool,
}

/// Asks every question; the first that was answered by an error, or not as `verify` promises.
///
/// Panics where an answer is wrong.
pub(super) fn ask(dataset: &Dataset, truth: &Truth<'_>) -> Option<String> {
    let mut complaints = Complaints(None);
    let before: Vec<Option<Location>> = (0..dataset.sample_count()).map(|i| dataset.locate(i).ok()).collect();
    complaints.hear("load", dataset.load());
    if truth.all {
        assert_eq!(dataset.sample_count(), truth.samples.len() as u64);
    }
    for (ordinal, before) in (0..).zip(before) {
        let known = truth.samples.get(ordinal as usize);
        if let Some(location) = complaints.hear("locate", dataset.locate(ordinal)) {
            assert!(before.is_none_or(|before| before == location), "sample {ordinal} moves when the index is loaded");
            assert!(!truth.all || known.is_some_and(|known| known.location == location));
            let known = known.filter(|known| known.location == location);
            ask_payload(dataset, ordinal, &location, known.map(|known| &known.payload[..]), &mut complaints);
        }
        ask_row(dataset, ordinal, known.filter(|_| truth.all), &mut complaints);
        if let Some(key) = known.and_then(|known| known.key.as_deref()) {
            ask_key(dataset, key);
        }
    }
    ask_columns(dataset, &mut complaints);
    ask_sums(dataset, &mut complaints);
    assert!(dataset.locate(dataset.sample_count()).is_err() && dataset.key(u64::MAX).is_err());
    assert!(!matches!(dataset.find(b"no sample has this key"), Ok(Some(_))));
    complaints.0
}

fn ask_payload(
    dataset: &Dataset,
    ordinal: u64,
    location: &Location,
    known: Option<&[u8]>,
    complaints: &mut Complaints,
) {
    let segment = &dataset.segments()[location.segment];
    let data_end = dataset.segment_table().records()[location.segment].data_end;
    let data = if segment.is_external() { 0..data_end } else { Header::LEN as u64..data_end };
    assert!(data.start <= location.offset && location.offset + location.stored_len <= data.end);
    assert!(data.end <= segment.file_len() && segment.ordinals().contains(&ordinal));
    if let Encoding::Lz4 { raw_len } = location.encoding {
        assert!((1..=MAX_LZ4_RAW_LEN).contains(&raw_len) && raw_len <= 255 * location.stored_len);
    }
    if complaints.hear("segment_file", dataset.segment_file(location.segment)).is_none() {
        return;
    }
    let file = File::open(segment.path()).expect("a segment that was checked is there");
    let opened = OpenedFile { len: segment.file_len(), fd: Some(file.as_fd()) };
    let read = |bytes: &mut [u8], offset| {
        file.read_exact_at(bytes, offset).expect("it has the length that was checked");
        Ok(())
    };
    let checked = dataset.check_opened_segment(location.segment, opened, read);
    if complaints.hear("check_opened_segment", checked).is_none() {
        return;
    }
    let mut stored = vec![0; location.stored_len as usize];
    file.read_exact_at(&mut stored, location.offset).expect("it has the length that was checked");
    let mut payload = Vec::new();
    let decoded = check_and_decode(location, &stored, &mut payload);
    let decoded = decoded.map_err(|error| dataset.payload_error(ordinal, location, &error));
    if complaints.hear("check_and_decode", decoded).is_none() {
        return;
    }
    assert_eq!(payload.len() as u64, location.raw_len());
    assert!(known.is_none_or(|known| known == payload), "sample {ordinal} has other bytes");
    if let Some(fields) = complaints.hear("fields", dataset.fields(ordinal, location.raw_len())) {
        assert_eq!(fields.len(), dataset.schema().fields().len());
        assert!(fields.iter().flatten().all(|field| field.start <= field.end && field.end <= location.raw_len()));
    }
}

/// Key, attributes and fields; `known` where they must be as they were.
fn ask_row(dataset: &Dataset, ordinal: u64, known: Option<&Known>, complaints: &mut Complaints) {
    if let Some(key) = complaints.hear("key", dataset.key(ordinal)) {
        assert_eq!(key.is_some(), dataset.is_keyed());
        assert!(known.is_none_or(|known| known.key == key));
        let found = key.as_deref().and_then(|key| complaints.hear("find", dataset.find(key)));
        if found.is_some_and(|found| found != Some(ordinal)) {
            assert!(known.is_none(), "sample {ordinal} is not found by its key");
            complaints.add(|| format!("sample {ordinal} is not found by its key"));
        }
    }
    if let Some(attributes) = complaints.hear("attributes", dataset.attributes(ordinal)) {
        assert_eq!(attributes.len(), dataset.schema().attributes().len());
        assert!(known.is_none_or(|known| known.attributes == attributes));
    }
    if let Some(known) = known
        && let Ok(fields) = dataset.fields(ordinal, known.payload.len() as u64)
    {
        assert_eq!(known.fields, fields);
    }
}

/// Whatever is found by a key has that key, though the index may have lost it. KEY-6
fn ask_key(dataset: &Dataset, key: &[u8]) {
    if let Ok(Some(found)) = dataset.find(key) {
        assert!(dataset.key(found).is_ok_and(|other| other.as_deref() == Some(key)), "sample {found} has another key");
    }
}

/// A column says what the samples say one by one.
fn ask_columns(dataset: &Dataset, complaints: &mut Complaints) {
    for (place, attribute) in dataset.schema().attributes().iter().enumerate() {
        let Some(column) = complaints.hear("column", dataset.column(&attribute.name)) else { continue };
        assert_eq!((column.kind, column.len), (&attribute.kind, dataset.sample_count()));
        for ordinal in 0..column.len {
            let Ok(row) = dataset.attributes(ordinal) else { continue };
            let (one, other) = (&row[place], &column.get(ordinal));
            // Compared as text: a NaN is no other value.
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
        assert_eq!(column.get(column.len), None);
    }
}

fn ask_sums(dataset: &Dataset, complaints: &mut Complaints) {
    complaints.hear("stored_bytes", dataset.stored_bytes());
    complaints.hear("payload_bytes", dataset.payload_bytes());
    let Some(facts) = complaints.hear("facts", dataset.facts()) else { return };
    let locations: Vec<Location> = (0..facts.samples).filter_map(|ordinal| dataset.locate(ordinal).ok()).collect();
    assert_eq!(locations.len() as u64, facts.samples, "what was loaded can be located");
    assert_eq!(facts.stored_bytes, locations.iter().map(|location| location.stored_len).sum::<u64>());
    assert_eq!(facts.payload_bytes, locations.iter().map(Location::raw_len).sum::<u64>());
    let Some(chunks) = complaints.hear("chunks", dataset.chunks()) else { return };
    assert_eq!(chunks.len(), facts.chunks);
    let owned: u64 = (0..chunks.len()).map(|chunk| chunks.samples(chunk).end - chunks.samples(chunk).start).sum();
    assert_eq!(owned, facts.samples);
    for ordinal in chunks.edge_samples() {
        let (size, place) = (dataset.geometry().chunk_size, locations[ordinal as usize]);
        assert!(size.crosses_out_of(size.owner(place.offset, place.stored_len), place.offset, place.stored_len));
    }
}

/// The first error; the others only have to have a text.
struct Complaints(Option<String>);

impl Complaints {
    fn hear<T>(&mut self, question: &str, answer: Result<T, StoreError>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.add(|| format!("{question}: {error}"));
                None
            }
        }
    }

    fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.is_none() {
            self.0 = Some(what());
        }
    }
}
