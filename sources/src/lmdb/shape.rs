//! The schema of a database and how its values are decoded: inferred from the first values and from the options.

use std::ops::Range;

use grainstore_format::{
    Attribute, AttributeType, AttributeValue, Field, FieldType, FormatError, Metadata, Schema, UserMetadata,
};

use super::datum::Datum;
use super::pattern::Pattern;
use super::source::{LmdbOptions, LmdbValues};
use crate::{Layout, Mapping, SourceError};

/// The name of a plain value in a mapping.
const VALUE: &str = "value";
/// How pictures begin, and where.
const PICTURES: [(usize, &[u8]); 5] =
    [(0, b"\xff\xd8\xff"), (0, b"\x89PNG\r\n\x1a\n"), (0, b"GIF8"), (8, b"WEBP"), (0, b"BM")];

/// The schema of the samples, and how they are decoded.
#[derive(Debug)]
pub(super) struct LmdbShape {
    pub(super) metadata: Metadata,
    pub(super) decoder: Decoder,
}

/// How keys and values become samples.
#[derive(Debug)]
pub(super) enum Decoder {
    /// A value is the one field.
    Raw,
    /// A value is a `Datum`.
    Datum(DatumShape),
    /// The values of several keys are the fields, one pattern each; the keys of the first pattern define the samples.
    Joined(Vec<Pattern>),
}

/// What is kept of a `Datum`.
#[derive(Debug)]
pub(super) struct DatumShape {
    numbers: Vec<Number>,
    blobs: Vec<Blob>,
    /// Whether fields that are not stored are an error, because no mapping excludes them.
    keeps_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Label,
    Channels,
    Height,
    Width,
    Encoded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blob {
    Data,
    FloatData,
}

/// A decoded value.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decoded {
    pub(super) attributes: Vec<Option<AttributeValue>>,
    pub(super) pieces: Vec<Option<FieldBytes>>,
}

/// The bytes of a field.
#[derive(Debug, PartialEq)]
pub(super) enum FieldBytes {
    /// They are in the value.
    Range(Range<usize>),
    /// They were converted.
    Gathered(Vec<u8>),
}

/// A payload, its fields, and where in the value it begins.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LmdbPayload {
    pub(super) bytes: Vec<u8>,
    pub(super) fields: Vec<Option<Range<u64>>>,
    pub(super) start: u64,
}

impl LmdbShape {
    /// The shape of samples whose first values are `values`: whole ones where they are to be split as `Datum`.
    pub(super) fn of(options: &LmdbOptions, values: &[Vec<u8>]) -> Result<Self, String> {
        let map = &options.map;
        if map.key().is_some() {
            return Err("a sample's key is its key in the database: it cannot be mapped to something else".into());
        }
        if map.targets().iter().any(|(_, source)| source.contains('*')) {
            return Self::joined(options);
        }
        match datums(options, values)? {
            Some(datums) => Self::of_datums(map, &datums),
            None => Self::raw(map, values),
        }
    }

    fn joined(options: &LmdbOptions) -> Result<Self, String> {
        let targets = options.map.targets();
        if options.values == LmdbValues::Datum {
            return Err(
                "values of several keys are joined as they are, not as Datum: remove one of the two options".into()
            );
        }
        let no_pattern = |source: &str| format!("\"{source}\": expected a key with one *, as the others have");
        let pattern = |(_, source): &(String, String)| Pattern::parse(source).ok_or_else(|| no_pattern(source));
        let patterns = targets.iter().map(pattern).collect::<Result<_, _>>()?;
        let metadata = metadata(Vec::new(), targets.iter().map(|(name, _)| name.as_str()));
        Ok(Self { metadata: metadata.map_err(|error| error.to_string())?, decoder: Decoder::Joined(patterns) })
    }

    fn raw(map: &Mapping, values: &[Vec<u8>]) -> Result<Self, String> {
        let pictures = !values.is_empty() && values.iter().all(|value| is_picture(value));
        let name = match map.targets() {
            [] if pictures => "image",
            [] => "data",
            [(name, source)] if source == VALUE => name,
            targets => {
                let unknown = targets.iter().map(|(_, source)| source).find(|source| *source != VALUE);
                let why = match unknown {
                    Some(source) => format!("it has nothing named \"{source}\""),
                    None => format!("\"{VALUE}\" is mapped to several names"),
                };
                return Err(format!("{why}: its values are plain bytes, named \"{VALUE}\""));
            }
        };
        let metadata = metadata(Vec::new(), [name].into_iter()).map_err(|error| error.to_string())?;
        Ok(Self { metadata, decoder: Decoder::Raw })
    }

    fn of_datums(map: &Mapping, datums: &[Datum]) -> Result<Self, String> {
        let chosen = if map.is_empty() { all_of(datums) } else { map.targets().to_vec() };
        let mut shape = DatumShape { numbers: Vec::new(), blobs: Vec::new(), keeps_all: map.is_empty() };
        let mut attributes = Vec::new();
        let mut fields = Vec::new();
        for (name, source) in &chosen {
            if let Some((_, number)) = Number::NAMES.iter().find(|(known, _)| known == source) {
                shape.numbers.push(*number);
                attributes.push(Attribute { name: name.clone(), kind: number.kind() });
            } else if let Some(blob) = Blob::ALL.into_iter().find(|blob| blob.name() == source) {
                shape.blobs.push(blob);
                fields.push(name.as_str());
            } else {
                let known = "data, float_data, label, channels, height, width and encoded";
                return Err(format!("a Datum has no \"{source}\"; it has {known}"));
            }
        }
        let metadata = metadata(attributes, fields.into_iter()).map_err(|error| error.to_string())?;
        Ok(Self { metadata, decoder: Decoder::Datum(shape) })
    }

    /// Whether a key is that of a sample, and which key the sample has.
    pub(super) fn sample_key<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match &self.decoder {
            Decoder::Joined(patterns) => patterns.first()?.stem(key),
            Decoder::Raw | Decoder::Datum(_) => Some(key),
        }
    }

    /// The patterns whose keys make samples together; none where every key is a sample.
    pub(super) fn patterns(&self) -> &[Pattern] {
        if let Decoder::Joined(patterns) = &self.decoder { patterns } else { &[] }
    }

    /// Whether keys have to be searched.
    pub(super) fn searches(&self) -> bool {
        self.patterns().len() > 1
    }

    /// Why the values cannot be adopted.
    pub(super) fn not_adoptable(&self) -> Option<String> {
        match &self.decoder {
            Decoder::Joined(patterns) if patterns.len() > 1 => {
                Some("the fields of a sample are values of several keys, which are not contiguous".into())
            }
            Decoder::Datum(shape) if shape.blobs.contains(&Blob::FloatData) => {
                Some("the numbers of float_data are not contiguous: each follows a tag".into())
            }
            _ => None,
        }
    }
}

impl DatumShape {
    /// The fields and attributes of a value.
    pub(super) fn decode(&self, value: &[u8]) -> Result<Decoded, String> {
        let mut datum = Datum::decode(value)?;
        if self.keeps_all {
            self.check_kept(&datum)?;
        }
        let attributes = self.numbers.iter().map(|number| number.of(&datum)).collect();
        let pieces = self.blobs.iter().map(|blob| match blob {
            Blob::Data => datum.data.clone().map(FieldBytes::Range),
            Blob::FloatData => datum.float_data.take().map(FieldBytes::Gathered),
        });
        Ok(Decoded { attributes, pieces: pieces.collect() })
    }

    fn check_kept(&self, datum: &Datum) -> Result<(), String> {
        let lost = [(datum.data.is_some(), Blob::Data), (datum.float_data.is_some(), Blob::FloatData)];
        let lost = lost.into_iter().find(|(there, blob)| *there && !self.blobs.contains(blob));
        let Some((_, lost)) = lost else { return Ok(()) };
        Err(format!(
            "this Datum has {}, which the first ones do not have: choose what to take with a mapping",
            lost.name()
        ))
    }
}

impl Decoded {
    /// The payload in `layout`, with its fields. `value` is the value that was decoded.
    pub(super) fn payload(&self, mut value: Vec<u8>, layout: Layout) -> Result<LmdbPayload, String> {
        if let [piece] = self.pieces.as_slice() {
            return match piece {
                None => Ok(LmdbPayload::default()),
                Some(FieldBytes::Gathered(bytes)) => Ok(LmdbPayload { bytes: bytes.clone(), ..LmdbPayload::default() }),
                Some(FieldBytes::Range(range)) => {
                    value.truncate(range.end);
                    value.drain(..range.start.min(value.len()));
                    Ok(LmdbPayload { bytes: value, fields: Vec::new(), start: range.start as u64 })
                }
            };
        }
        match layout {
            Layout::Packed => self.packed(&value).map_err(|bug| bug.to_string()),
            Layout::InPlace => {
                self.in_place(&value).ok_or_else(|| "its fields are not stored in it as they are".into())
            }
        }
    }

    fn packed(&self, value: &[u8]) -> Result<LmdbPayload, SourceError> {
        let mut payload = LmdbPayload::default();
        for piece in &self.pieces {
            let bytes = match piece {
                None => {
                    payload.fields.push(None);
                    continue;
                }
                Some(FieldBytes::Range(range)) => {
                    let bytes = value.get(range.clone());
                    bytes.ok_or_else(|| {
                        SourceError::bug("a field of a Datum is outside the value that it was found in")
                    })?
                }
                Some(FieldBytes::Gathered(bytes)) => bytes,
            };
            let start = payload.bytes.len() as u64;
            payload.bytes.extend_from_slice(bytes);
            payload.fields.push(Some(start..start + bytes.len() as u64));
        }
        Ok(payload)
    }

    fn in_place(&self, value: &[u8]) -> Option<LmdbPayload> {
        let range = |piece: &FieldBytes| match piece {
            FieldBytes::Range(range) => Some(range.clone()),
            FieldBytes::Gathered(_) => None,
        };
        let ranges: Vec<Range<usize>> = self.pieces.iter().flatten().map(range).collect::<Option<_>>()?;
        // Without any field, the payload is empty.
        let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let mut ranges = ranges.into_iter().map(|range| (range.start - start) as u64..(range.end - start) as u64);
        let fields = self.pieces.iter().map(|piece| piece.as_ref().and_then(|_| ranges.next())).collect();
        Some(LmdbPayload { bytes: value.get(start..end)?.to_vec(), fields, start: start as u64 })
    }
}

impl Number {
    const NAMES: [(&'static str, Self); 5] = [
        ("label", Self::Label),
        ("channels", Self::Channels),
        ("height", Self::Height),
        ("width", Self::Width),
        ("encoded", Self::Encoded),
    ];

    fn kind(self) -> AttributeType {
        match self {
            Self::Label => AttributeType::Int64,
            Self::Channels | Self::Height | Self::Width => AttributeType::Int32,
            Self::Encoded => AttributeType::Bool,
        }
    }

    fn of(self, datum: &Datum) -> Option<AttributeValue> {
        let number = match self {
            Self::Label => datum.label,
            Self::Channels => datum.channels,
            Self::Height => datum.height,
            Self::Width => datum.width,
            Self::Encoded => return datum.encoded.map(AttributeValue::Bool),
        };
        number.map(|number| AttributeValue::Int(number.into()))
    }
}

impl Blob {
    const ALL: [Self; 2] = [Self::Data, Self::FloatData];

    fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::FloatData => "float_data",
        }
    }
}

/// The values as `Datum`; `None` where they are plain bytes.
fn datums(options: &LmdbOptions, values: &[Vec<u8>]) -> Result<Option<Vec<Datum>>, String> {
    let decoded = || values.iter().map(|value| Datum::decode(value));
    match options.values {
        LmdbValues::Raw => Ok(None),
        LmdbValues::Datum => Ok(Some(decoded().filter_map(Result::ok).collect())),
        LmdbValues::Auto if values.is_empty() => Ok(None),
        LmdbValues::Auto => Ok(decoded().map(|datum| datum.ok().filter(Datum::is_plausible)).collect()),
    }
}

/// Everything in the first values, under the usual names.
fn all_of(datums: &[Datum]) -> Vec<(String, String)> {
    let floats = datums.iter().any(|datum| datum.float_data.is_some());
    let data = !floats || datums.iter().any(|datum| datum.data.is_some());
    let blobs = [(data, ("image", "data")), (floats, ("float_data", "float_data"))];
    let blobs = blobs.into_iter().filter(|(there, _)| *there).map(|(_, names)| names);
    let numbers = Number::NAMES.iter().map(|(name, _)| (*name, *name));
    blobs.chain(numbers).map(|(name, source)| (name.to_owned(), source.to_owned())).collect()
}

fn metadata<'a>(attributes: Vec<Attribute>, fields: impl Iterator<Item = &'a str>) -> Result<Metadata, FormatError> {
    let fields = fields.map(|name| Field { name: name.into(), kind: FieldType::Bytes }).collect();
    Ok(Metadata { schema: Schema::new(attributes, fields)?, user: UserMetadata::default() })
}

fn is_picture(value: &[u8]) -> bool {
    PICTURES.iter().any(|(at, magic)| value.get(*at..).is_some_and(|bytes| bytes.starts_with(magic)))
}
