//! Stored bytes to a payload: the declared length or nothing.

use grainstore_store::{Encoding, Location, check_and_decode};

use crate::input::Input;
use crate::naive_lz4;

/// Most bytes that an input may declare.
const MAX_RAW_LEN: u32 = 1 << 18;

/// ENT-5, RAW-2, CON-4: the bytes are stored bytes (LZ4 or raw), or a payload that is compressed first.
pub fn payload(data: &[u8]) {
    let mut input = Input(data);
    let (mode, raw_len) = (input.byte(), u64::from(input.u32() % MAX_RAW_LEN));
    let bytes = input.rest();
    match mode % 4 {
        0 => check_block(bytes, raw_len),
        // The length that the block really has, so that good blocks are common.
        1 => check_block(bytes, naive_lz4::decode(bytes, MAX_RAW_LEN as usize).map_or(raw_len, |raw| raw.len() as u64)),
        2 => check_round_trip(bytes, raw_len),
        _ => check_raw(bytes, raw_len),
    }
}

fn location(stored: &[u8], encoding: Encoding) -> Location {
    Location { segment: 0, offset: 4096, stored_len: stored.len() as u64, crc: crc32fast::hash(stored), encoding }
}

/// The payload, in front of which other bytes stand; an error leaves those alone.
fn decoded(location: &Location, stored: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let result = check_and_decode(location, stored, &mut out);
    assert_eq!(out[..6], *b"before");
    if let Err(error) = result {
        assert_eq!((out.len(), error.to_string().is_empty()), (6, false));
        return None;
    }
    let payload = out.split_off(6);
    assert_eq!(payload.len() as u64, location.raw_len());
    Some(payload)
}

fn check_block(stored: &[u8], raw_len: u64) {
    let naive = naive_lz4::decode(stored, raw_len as usize).filter(|raw| raw.len() as u64 == raw_len);
    let mut location = location(stored, Encoding::Lz4 { raw_len });
    assert_eq!(decoded(&location, stored), naive);
    location.crc ^= 1;
    assert_eq!(decoded(&location, stored), None);
}

fn check_round_trip(raw: &[u8], seed: u64) {
    let stored = lz4_flex::block::compress(raw);
    let location = location(&stored, Encoding::Lz4 { raw_len: raw.len() as u64 });
    assert_eq!(decoded(&location, &stored).as_deref(), Some(raw));
    let mut damaged = stored.clone();
    let at = seed as usize % damaged.len();
    damaged[at] ^= 1 << (seed % 8);
    assert_eq!(decoded(&location, &damaged), None, "one bit is damaged");
    assert_eq!(decoded(&location, &stored[1..]), None);
}

fn check_raw(raw: &[u8], seed: u64) {
    let mut location = location(raw, Encoding::Raw);
    assert_eq!(decoded(&location, raw).as_deref(), Some(raw));
    location.stored_len = seed;
    assert!(decoded(&location, raw).is_none() || seed == raw.len() as u64);
}
