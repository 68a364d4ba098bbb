//! The manifest: names the index and the segments of a dataset. spec.md: MAN-1 to MAN-5, EXT-1 to EXT-3, GEN-1.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::{check_incompatible, check_version, ensure};
use crate::external::external_path_reach;
use crate::json::{Object, at_most, parse, present};
use crate::manifest_start::version_of;
use crate::{DatasetFingerprint, Fingerprint, FormatError, MAX_SAMPLES, MAX_SEGMENTS, VERSION, to_usize};

const WHAT: &str = "manifest";
const FORMAT: &str = "grainstore";
const NATIVE: &str = "native";
const EXTERNAL: &str = "external";
const TAIL_HEAD: &str = ",\n  \"crc32\": \"";
const TAIL_END: &str = "\"\n}\n";
const COUNT_MAX: usize = to_usize(MAX_SEGMENTS);
const TAIL_LEN: usize = TAIL_HEAD.len() + 8 + TAIL_END.len();

/// The members that decide whether this version can read the rest.
#[derive(Deserialize)]
struct RawFeatures {
    incompatible_features: u32,
}

/// The named members. Others are ignored; these may not appear twice. spec.md: MAN-2.
#[derive(Serialize, Deserialize)]
struct RawManifest {
    format: String,
    version: u64,
    incompatible_features: u32,
    compatible_features: u32,
    index: Object<RawIndex>,
    #[serde(deserialize_with = "at_most::<_, _, COUNT_MAX>")]
    segments: Vec<Object<RawSegment>>,
    #[serde(deserialize_with = "at_most::<_, _, COUNT_MAX>")]
    generations: Vec<Object<RawGeneration>>,
    /// Compared as bytes before the document is parsed.
    #[serde(rename = "crc32", skip_serializing)]
    _crc32: IgnoredAny,
}

#[derive(Serialize, Deserialize)]
struct RawIndex {
    file: String,
    fingerprint: String,
}

#[derive(Serialize, Deserialize)]
struct RawSegment {
    kind: String,
    path: String,
    file_len: u64,
    sample_count: u64,
    fingerprint: String,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    index_file: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    data_fingerprint: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    modified_ns: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct RawGeneration {
    segment_count: u64,
    sample_count: u64,
    fingerprint: String,
}

/// The index file of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRef {
    /// Its name in the dataset's directory.
    pub file: String,
    /// The fingerprint of its directory.
    pub fingerprint: Fingerprint,
}

/// Who wrote the data of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentKind {
    /// Grainstore: a segment file with its own index.
    Native,
    /// Another program: its file stays as it is, and the index is in a file of its own.
    External {
        /// The index file's name in the dataset's directory.
        index_file: String,
        /// The fingerprint of the data file. spec.md: EXT-2.
        data_fingerprint: Fingerprint,
        /// When the data file was last modified, in nanoseconds since 1970. spec.md: EXT-3.
        modified_ns: i64,
    },
}

/// A segment in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRef {
    /// Native or external.
    pub kind: SegmentKind,
    /// The data's path, relative to the dataset's directory, or absolute.
    pub path: String,
    /// The length of that file in bytes.
    pub file_len: u64,
    /// Its number of samples, at least 1.
    pub sample_count: u64,
    /// The fingerprint of its own index.
    pub fingerprint: Fingerprint,
}

/// A committed state of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// How many segments it has, counted from the first.
    pub segment_count: u32,
    /// Their number of samples.
    pub sample_count: u64,
    /// Their chained fingerprint.
    pub fingerprint: Fingerprint,
}

/// A checked manifest: names are plain, counts agree, fingerprints chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    index: IndexRef,
    segments: Vec<SegmentRef>,
    generations: Vec<Generation>,
}

impl Manifest {
    /// The longest manifest in bytes; a longer one is refused unread. 2^20 segments need half of it.
    pub const MAX_LEN: u64 = 512 << 20;

    /// The file's name in the dataset's directory.
    pub const FILE_NAME: &'static str = "manifest.json";

    /// A manifest of these segments; `earlier` are the segment counts of the generations before this one.
    ///
    /// # Errors
    /// If a reader would refuse it.
    pub fn new(index: IndexRef, segments: Vec<SegmentRef>, earlier: &[u32]) -> Result<Self, FormatError> {
        let count = u32::try_from(segments.len()).map_err(|_| FormatError::Limit {
            what: "number of segments",
            found: segments.len() as u64,
            limit: MAX_SEGMENTS,
        })?;
        let chain = chain(&segments)?;
        let generation = |&segment_count: &u32| {
            let last = (segment_count as usize).checked_sub(1).and_then(|last| chain.get(last));
            let Some(&(sample_count, fingerprint)) = last else {
                let text = format!("a generation of {segment_count} segments, the dataset has {count}");
                return Err(FormatError::Invalid(text));
            };
            Ok(Generation { segment_count, sample_count, fingerprint })
        };
        let generations = earlier.iter().chain([&count]).map(generation).collect::<Result<_, _>>()?;
        let manifest = Self { index, segments, generations };
        manifest.check(&chain)?;
        Ok(manifest)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If a rule of the manifest is broken.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        // The version is checked first: another version may have anything after it.
        check_version(version_of(bytes)?)?;
        check_crc(bytes)?;
        check_incompatible(parse::<RawFeatures>(WHAT, bytes)?.incompatible_features)?;
        let raw: RawManifest = parse(WHAT, bytes)?;
        let Object(index) = raw.index;
        let manifest = Self {
            index: IndexRef { fingerprint: fingerprint(&index.fingerprint)?, file: index.file },
            segments: raw.segments.into_iter().map(decode_segment).collect::<Result<_, _>>()?,
            generations: raw.generations.iter().map(decode_generation).collect::<Result<_, _>>()?,
        };
        manifest.check(&chain(&manifest.segments)?)?;
        Ok(manifest)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// Never for a manifest that was checked, as all are; the JSON library's otherwise.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let raw = RawManifest {
            format: FORMAT.into(),
            version: u64::from(VERSION),
            incompatible_features: 0,
            compatible_features: 0,
            index: Object(RawIndex { file: self.index.file.clone(), fingerprint: self.index.fingerprint.to_string() }),
            segments: self.segments.iter().map(encode_segment).collect(),
            generations: self.generations.iter().map(encode_generation).collect(),
            _crc32: IgnoredAny,
        };
        let mut text = serde_json::to_string_pretty(&raw).map_err(|error| FormatError::Invalid(error.to_string()))?;
        text.truncate(text.trim_end_matches(['\n', '}']).len());
        let crc = crc32fast::hash(text.as_bytes());
        Ok(format!("{text}{TAIL_HEAD}{crc:08x}{TAIL_END}").into_bytes())
    }

    /// The index file.
    pub fn index(&self) -> &IndexRef {
        &self.index
    }

    /// The segments, in order; at least one.
    pub fn segments(&self) -> &[SegmentRef] {
        &self.segments
    }

    /// The generations, oldest first; the last one is current.
    pub fn generations(&self) -> &[Generation] {
        &self.generations
    }

    /// The fingerprint of the whole dataset.
    pub fn fingerprint(&self) -> Fingerprint {
        debug_assert!(!self.generations.is_empty(), "`check` requires a generation");
        self.generations.last().map_or(Fingerprint(0), |generation| generation.fingerprint)
    }

    fn check(&self, chain: &[(u64, Fingerprint)]) -> Result<(), FormatError> {
        let count = self.segments.len() as u64;
        ensure((1..=MAX_SEGMENTS).contains(&count), WHAT, || format!("it names {count} segments"))?;
        check_plain_name(&self.index.file)?;
        for segment in &self.segments {
            match &segment.kind {
                SegmentKind::Native => check_plain_name(&segment.path)?,
                SegmentKind::External { index_file, .. } => {
                    check_plain_name(index_file)?;
                    external_path_reach(&segment.path)?;
                }
            }
        }
        ensure(self.generations.is_sorted_by(|a, b| a.segment_count < b.segment_count), WHAT, || {
            "its generations do not ascend".into()
        })?;
        for (number, generation) in self.generations.iter().enumerate() {
            let expected = (generation.segment_count as usize).checked_sub(1).and_then(|last| chain.get(last));
            ensure(expected == Some(&(generation.sample_count, generation.fingerprint)), WHAT, || {
                format!("generation {number} does not agree with its {} segments", generation.segment_count)
            })?;
        }
        let covered = self.generations.last().map_or(0, |generation| u64::from(generation.segment_count));
        ensure(covered == count, WHAT, || format!("its last generation has {covered} of {count} segments"))
    }
}

/// Sample count and fingerprint of the first 1, 2, 3, ... segments.
fn chain(segments: &[SegmentRef]) -> Result<Vec<(u64, Fingerprint)>, FormatError> {
    let mut samples = 0_u64;
    let mut chained = DatasetFingerprint::new();
    let mut sums = Vec::with_capacity(segments.len());
    for segment in segments {
        samples = samples.saturating_add(segment.sample_count);
        ensure(segment.sample_count >= 1 && samples <= MAX_SAMPLES, WHAT, || {
            format!("segment \"{}\" has {} samples", crate::escape_bytes(segment.path.as_bytes()), segment.sample_count)
        })?;
        chained.push(segment.fingerprint, segment.sample_count);
        sums.push((samples, chained.get()));
    }
    Ok(sums)
}

fn check_crc(bytes: &[u8]) -> Result<(), FormatError> {
    let (body, tail) = bytes
        .len()
        .checked_sub(TAIL_LEN)
        .and_then(|body_len| bytes.split_at_checked(body_len))
        .ok_or_else(|| FormatError::damaged(WHAT, "it is cut short"))?;
    let crc = crc32fast::hash(body);
    let expected = format!("{TAIL_HEAD}{crc:08x}{TAIL_END}");
    ensure(tail == expected.as_bytes(), WHAT, || {
        format!("it ends with \"{}\", its CRC-32 is {crc:08x}", crate::escape_bytes(tail))
    })
}

/// Refuses a name that leads out of the dataset's directory, or that no file can have. spec.md: MAN-3.
fn check_plain_name(name: &str) -> Result<(), FormatError> {
    let plain = (1..=255).contains(&name.len()) && name != "." && name != ".." && !name.contains(['/', '\0']);
    ensure(plain, WHAT, || format!("\"{}\" is not a plain file name", crate::escape_bytes(name.as_bytes())))
}

fn fingerprint(text: &str) -> Result<Fingerprint, FormatError> {
    text.parse().map_err(|error: String| FormatError::damaged(WHAT, error))
}

fn decode_segment(Object(raw): Object<RawSegment>) -> Result<SegmentRef, FormatError> {
    let kind = match (raw.kind.as_str(), raw.index_file, raw.data_fingerprint, raw.modified_ns) {
        (NATIVE, None, None, None) => SegmentKind::Native,
        (EXTERNAL, Some(index_file), Some(data), Some(modified_ns)) => {
            SegmentKind::External { index_file, data_fingerprint: fingerprint(&data)?, modified_ns }
        }
        (NATIVE | EXTERNAL, ..) => {
            let path = crate::escape_bytes(raw.path.as_bytes());
            let detail =
                format!("segment \"{path}\" has members of another kind of segment, or lacks one of its own kind");
            return Err(FormatError::damaged(WHAT, detail));
        }
        (other, ..) => {
            let kind = crate::escape_bytes(other.as_bytes());
            return Err(FormatError::damaged(WHAT, format!("a segment is of the unknown kind \"{kind}\"")));
        }
    };
    Ok(SegmentRef {
        kind,
        path: raw.path,
        file_len: raw.file_len,
        sample_count: raw.sample_count,
        fingerprint: fingerprint(&raw.fingerprint)?,
    })
}

fn encode_segment(segment: &SegmentRef) -> Object<RawSegment> {
    let (kind, index_file, data_fingerprint, modified_ns) = match &segment.kind {
        SegmentKind::Native => (NATIVE, None, None, None),
        SegmentKind::External { index_file, data_fingerprint, modified_ns } => {
            (EXTERNAL, Some(index_file.clone()), Some(data_fingerprint.to_string()), Some(*modified_ns))
        }
    };
    Object(RawSegment {
        kind: kind.to_owned(),
        path: segment.path.clone(),
        file_len: segment.file_len,
        sample_count: segment.sample_count,
        fingerprint: segment.fingerprint.to_string(),
        index_file,
        data_fingerprint,
        modified_ns,
    })
}

fn encode_generation(generation: &Generation) -> Object<RawGeneration> {
    Object(RawGeneration {
        segment_count: u64::from(generation.segment_count),
        sample_count: generation.sample_count,
        fingerprint: generation.fingerprint.to_string(),
    })
}

fn decode_generation(Object(raw): &Object<RawGeneration>) -> Result<Generation, FormatError> {
    let segment_count = u32::try_from(raw.segment_count)
        .map_err(|_| FormatError::damaged(WHAT, format!("a generation has {} segments", raw.segment_count)))?;
    Ok(Generation { segment_count, sample_count: raw.sample_count, fingerprint: fingerprint(&raw.fingerprint)? })
}
