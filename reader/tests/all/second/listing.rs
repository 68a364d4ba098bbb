//! The expected output of the second reader's `ls`, made from the samples that were written.

use std::fmt::Write as _;

use grainstore_format::{AttributeValue, Schema};
use grainstore_writer::Sample;

use super::Packed;

/// The listing of a range of samples, whose ordinals count from 0 again.
pub(crate) fn listing(packed: &Packed, samples: &[Sample]) -> Vec<u8> {
    let lines = samples.iter().enumerate().map(|(ordinal, sample)| line(ordinal, sample, &packed.schema));
    lines.collect::<String>().into_bytes()
}

/// CON-2, bit by bit.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

fn line(ordinal: usize, sample: &Sample, schema: &Schema) -> String {
    let key = if sample.key.is_empty() { "null".into() } else { json_text(&sample.key) };
    let values = schema.attributes().iter().zip(&sample.attributes);
    let values =
        values.map(|(attribute, value)| format!("{}: {}", json_text(attribute.name.as_bytes()), json(value.as_ref())));
    let attributes = values.collect::<Vec<_>>().join(", ");
    format!("{ordinal}\t{key}\t{}\t{:08x}\t{{{attributes}}}\n", sample.payload.len(), crc32(&sample.payload))
}

fn json(value: Option<&AttributeValue>) -> String {
    match value {
        None => "null".into(),
        Some(AttributeValue::Bool(value)) => value.to_string(),
        Some(AttributeValue::Int(value)) => value.to_string(),
        Some(AttributeValue::Uint(value)) => value.to_string(),
        Some(AttributeValue::Float16(value)) => json_float(value.to_f64()),
        Some(AttributeValue::Bfloat16(value)) => json_float(value.to_f64()),
        Some(AttributeValue::Float32(value)) => json_float((*value).into()),
        Some(AttributeValue::Float64(value)) => json_float(*value),
        Some(AttributeValue::Timestamp(value)) => value.to_string(),
        Some(AttributeValue::Category(text)) => json_text(text.as_bytes()),
        Some(AttributeValue::Opaque(bytes)) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\"{hex}\"")
        }
    }
}

fn json_float(value: f64) -> String {
    match value {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => format!("{value:?}"),
    }
}

/// A name in ASCII; an invalid UTF-8 byte becomes the lone surrogate that Python uses for it.
fn json_text(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                ' '..='~' => text.push(character),
                _ => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| push_unit(&mut text, *unit)),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_unit(&mut text, 0xDC00 + u16::from(*byte)));
    }
    text + "\""
}

fn push_unit(text: &mut String, unit: u16) {
    write!(text, "\\u{unit:04x}").unwrap();
}
