//! Seeds of the corpora: small inputs that a parser accepts, so that the fuzzer need not find them.

use grainstore_format::{EntryFields, FileKind, Footer, Header, LONG_STORED_LEN, LongTable, SegmentRecord, push_key};

use crate::{open, order};

/// A file of a corpus.
pub struct Seed {
    /// Whose corpus.
    pub target: &'static str,
    /// The file's name, without `.bin`.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Names and contents of the seeds of one target.
pub(crate) type Named = Vec<(String, Vec<u8>)>;

/// All seeds, the same at every call.
pub fn seeds() -> Vec<Seed> {
    let lists: [(&str, Named); 12] = [
        ("header", headers()),
        ("footer", footers()),
        ("directory", open::directories()),
        ("manifest", open::manifests()),
        ("metadata", metadata()),
        ("keys", keys()),
        ("sections", sections()),
        ("payload", payloads()),
        ("plan", plans()),
        ("subset_expression", expressions()),
        ("open", open::changed_datasets()),
        ("state", states()),
    ];
    let all = lists
        .into_iter()
        .flat_map(|(target, seeds)| seeds.into_iter().map(move |(name, bytes)| Seed { target, name, bytes }));
    all.collect()
}

fn headers() -> Named {
    let header = |kind| Header { kind }.encode()[..48].to_vec();
    vec![("segment".into(), header(FileKind::Segment)), ("index".into(), header(FileKind::Index))]
}

fn footers() -> Named {
    let footer = |index_offset, directory_offset| {
        Footer::new(index_offset, directory_offset, &[0; 224]).unwrap().encode().to_vec()
    };
    let other_len = [&footer(4096, 28672)[..], &28672_u64.to_le_bytes()].concat();
    vec![
        ("segment".into(), footer(1 << 20, (1 << 20) + 24576)),
        ("index".into(), footer(4096, 28672)),
        ("other_length".into(), other_len),
    ]
}

fn metadata() -> Named {
    let spec = r#"{"schema":{"attributes":[{"name":"label","type":"int64"}],"fields":[{"name":"image","type":"bytes"}]},"user":{"class_names":["cat","dog"]}}"#;
    let arrays = r#"{"schema":{"attributes":[{"name":"a","type":"bool"},{"name":"b","type":"float64"}],"fields":[{"name":"x","type":"float32[3,224,224]"},{"name":"y","type":"str"}]},"user":{"n":-0.1e-7,"o":{"p":[null,true,18446744073709551615]}}}"#;
    vec![("spec".into(), spec.into()), ("arrays".into(), arrays.into())]
}

fn keys() -> Named {
    let list = |keys: &[&[u8]]| {
        let mut bytes = Vec::new();
        keys.iter().for_each(|key| push_key(&mut bytes, key).unwrap());
        bytes
    };
    vec![
        ("three".into(), list(&[b"a", b"bc", b"class/def.jpg"])),
        ("two_byte_length".into(), list(&[&[b'k'; 300], b"a"])),
        ("needless_byte".into(), vec![0x81, 0, b'a']),
        ("one_too_many".into(), [list(&[b"a".as_slice(); 70]), vec![200, 1]].concat()),
    ]
}

fn sections() -> Named {
    let record = |sample_count, data_end| SegmentRecord { sample_count, data_end }.encode().to_vec();
    let segments = [vec![1, 0, 0], vec![0; 8], record(3, 4097), record(1, 9000)].concat();
    let long = [
        vec![2],
        10_u64.to_le_bytes().to_vec(),
        LongTable::encode_record(3, 1 << 33).to_vec(),
        LongTable::encode_record(9, LONG_STORED_LEN).to_vec(),
    ];
    // Chunks of 4096 bytes, width 1, one segment of 5 samples that ends at 12000: 2, 0 and 3 samples, one edge.
    let chunks = vec![3, 0, 0, 0, 0, 5, 0, 0, 0xE0, 0x2E, 0, 2, 0, 3, 0b001];
    let fields = EntryFields { segment: 3, offset: 4096, stored_len: 500, crc: 7, lz4: true };
    let entry = grainstore_format::Entry::new(fields).map(|entry| entry_bytes(&entry)).unwrap();
    vec![
        ("bitmap".into(), vec![0, 10, 0, 0b1010_0101, 0b11]),
        ("segments".into(), segments),
        ("long".into(), long.concat()),
        ("chunks".into(), chunks),
        ("entries".into(), [&[4][..], &entry].concat()),
        ("bool".into(), vec![5, 0, 1]),
        ("float64".into(), [&[5, 10][..], &f64::NAN.to_le_bytes()].concat()),
    ]
}

fn entry_bytes(entry: &grainstore_format::Entry) -> [u8; 16] {
    let word0 = u64::from(entry.segment()) << 44 | entry.offset();
    let len = match entry.stored_len() {
        grainstore_format::StoredLen::Here(len) => u64::from(len),
        grainstore_format::StoredLen::Long => LONG_STORED_LEN,
    };
    let word1 = u64::from(entry.crc()) << 32 | u64::from(entry.is_lz4()) << 31 | len;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word0.to_le_bytes());
    bytes[8..].copy_from_slice(&word1.to_le_bytes());
    bytes
}

fn payloads() -> Named {
    let seed = |mode: u8, raw_len: u32, bytes: &[u8]| [&[mode][..], &raw_len.to_le_bytes(), bytes].concat();
    let raw = b"abcabcabcabcabcabcabcabcabcabcabc and something else".repeat(8);
    let block = lz4_flex::block::compress(&raw);
    vec![
        ("right_length".into(), seed(1, 0, &block)),
        ("one_too_few".into(), seed(0, 415, &block)),
        ("run".into(), seed(1, 0, &lz4_flex::block::compress(&[b'z'; 5000]))),
        ("round_trip".into(), seed(2, 9, &raw)),
        ("raw".into(), seed(3, 6, b"sample")),
        ("offset_of_zero".into(), seed(0, 10, &[0x14, b'a', 0, 0, 0x10, b'b'])),
        ("ends_with_a_match".into(), seed(0, 5, &[0x10, b'a', 1, 0])),
        ("empty_last_literals".into(), seed(1, 0, &[0x10, b'a', 1, 0, 0])),
    ]
}

fn plans() -> Named {
    let seed = |order_byte: u8, lanes: u16, start: u16, chunks: &[u8]| {
        let (seed, epoch, fingerprint) = (7_u64, 1_u8, 5_u32);
        let numbers = [&seed.to_le_bytes()[..], &[epoch], &fingerprint.to_le_bytes()].concat();
        [&[order_byte][..], &lanes.to_le_bytes(), &start.to_le_bytes(), &numbers, chunks].concat()
    };
    let chunks = [3, 9, 2, 0, 0, 0, 4, 255, 1, 170, 40, 3];
    vec![
        ("chunked".into(), seed(order::CHUNKED, 3, 5, &chunks)),
        ("groups".into(), seed(order::CHUNKED_IN_PAIRS, 3, 5, &chunks)),
        ("full".into(), seed(order::FULL, 0, 5, &chunks)),
        ("sequential".into(), seed(order::SEQUENTIAL, 0, 0, &chunks)),
        ("many_lanes".into(), seed(order::ALSO_CHUNKED, 50, 49, &chunks)),
        ("no_samples".into(), seed(order::ALSO_CHUNKED, 1, 0, &[0, 0])),
    ]
}

fn expressions() -> Named {
    let seeds = [
        ("labels", "label in 'cat', 7..9 and width is present and width >= 64"),
        ("split", "key_hash < 0.9 or key_hash in 9e-1..0.95"),
        ("keys", r"key starts with 'n1' and not (key = 'n1\x31' or key != '\u{6e}12')"),
        ("patterns", r"label contains 'ca' or split starts with 'tr' and not key contains '\x31'"),
        ("ranges", "ordinal not in (3, 100..120, 1e2..1.5e2) or \"half\" >= -2.50"),
        ("bools", "flag = true and width is missing or \"flag\" != false"),
        ("missing", "half < 3 and width > 2000"),
    ];
    seeds.into_iter().map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).collect()
}

fn states() -> Named {
    let head = r#"{"grainstore_state":1,"fingerprint":"0123456789abcdef","subset":null,"#;
    let full =
        format!(r#"{head}"seed":7,"epoch":2,"order":"full","lanes":null,"group":null,"mixture":null,"position":96}}"#);
    let chunked = format!(
        r#"{head}"weights":"00000000000000ff","seed":18446744073709551615,"epoch":0,"order":"chunked","lanes":8,"group":2,"mixture":null,"position":0}}"#
    );
    vec![("full".into(), full.into()), ("chunked".into(), chunked.into())]
}
