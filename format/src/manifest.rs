//! The manifest: names the index and the segments of a dataset. spec.md: MAN-1 to MAN-4, EXT-1 to EXT-3, GEN-1.

use serde::{Deserialize, Serialize};

use crate::error::{check_incompatible, check_version, ensure};
use crate::external::external_path_reach;
use crate::json_members::JsonMembers;
use crate::{DatasetFingerprint, Fingerprint, FormatError, MAX_SAMPLES, MAX_SEGMENTS, VERSION};

const WHAT: &str = "manifest";
const FORMAT: &str = "grainstore";
const TAIL_HEAD: &str = ",\n  \"crc32\": \"";
const TAIL_END: &str = "\"\n}\n";
const TAIL_LEN: usize = TAIL_HEAD.len() + 8 + TAIL_END.len();

/// The members that are read first: whether this version can read the rest.
#[derive(Deserialize)]
struct RawPreface {
    format: String,
    version: u64,
    incompatible_features: u32,
    compatible_features: u32,
}

#[derive(Serialize, Deserialize)]
struct RawManifest {
    format: String,
    version: u64,
    incompatible_features: u32,
    compatible_features: u32,
    index: RawIndex,
    segments: Vec<RawSegment>,
    generations: Vec<RawGeneration>,
    #[serde(flatten, skip_serializing)]
    others: JsonMembers,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIndex {
    file: String,
    fingerprint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSegment {
    kind: RawKind,
    path: String,
    file_len: u64,
    sample_count: u64,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_ns: Option<i64>,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum RawKind {
    Native,
    External,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
        let not_json = |error: serde_json::Error| FormatError::NotGrainstore { what: WHAT, found: error.to_string() };
        // The version is checked first: another version may store its checksum elsewhere.
        let preface: RawPreface = serde_json::from_slice(bytes).map_err(not_json)?;
        if preface.format != FORMAT {
            let found = format!("its format is \"{}\"", crate::escape_bytes(preface.format.as_bytes()));
            return Err(FormatError::NotGrainstore { what: WHAT, found });
        }
        check_version(preface.version)?;
        check_crc(bytes)?;
        check_incompatible(preface.incompatible_features)?;
        let raw: RawManifest =
            serde_json::from_slice(bytes).map_err(|error| FormatError::damaged(WHAT, error.to_string()))?;
        let unknown = raw.others.names().find(|name| *name != "crc32");
        ensure(unknown.is_none() || preface.compatible_features != 0, WHAT, || {
            format!("unknown member \"{}\"", crate::escape_bytes(unknown.map_or(b"", |name| name.as_bytes())))
        })?;
        let manifest = Self {
            index: IndexRef { file: raw.index.file, fingerprint: fingerprint(&raw.index.fingerprint)? },
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
            index: RawIndex { file: self.index.file.clone(), fingerprint: self.index.fingerprint.to_string() },
            segments: self.segments.iter().map(encode_segment).collect(),
            generations: self
                .generations
                .iter()
                .map(|generation| RawGeneration {
                    segment_count: u64::from(generation.segment_count),
                    sample_count: generation.sample_count,
                    fingerprint: generation.fingerprint.to_string(),
                })
                .collect(),
            others: JsonMembers::default(),
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

/// Refuses a name that leads out of the dataset's directory. spec.md: MAN-3.
fn check_plain_name(name: &str) -> Result<(), FormatError> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    ensure(plain, WHAT, || format!("\"{}\" is not a plain file name", crate::escape_bytes(name.as_bytes())))
}

fn fingerprint(text: &str) -> Result<Fingerprint, FormatError> {
    text.parse().map_err(|error: String| FormatError::damaged(WHAT, error))
}

fn decode_segment(raw: RawSegment) -> Result<SegmentRef, FormatError> {
    let kind = match (raw.kind, raw.index_file, raw.data_fingerprint, raw.modified_ns) {
        (RawKind::Native, None, None, None) => SegmentKind::Native,
        (RawKind::External, Some(index_file), Some(data), Some(modified_ns)) => {
            SegmentKind::External { index_file, data_fingerprint: fingerprint(&data)?, modified_ns }
        }
        _ => {
            let path = crate::escape_bytes(raw.path.as_bytes());
            let detail =
                format!("segment \"{path}\" has members of another kind of segment, or lacks one of its own kind");
            return Err(FormatError::damaged(WHAT, detail));
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

fn encode_segment(segment: &SegmentRef) -> RawSegment {
    let (kind, index_file, data_fingerprint, modified_ns) = match &segment.kind {
        SegmentKind::Native => (RawKind::Native, None, None, None),
        SegmentKind::External { index_file, data_fingerprint, modified_ns } => {
            (RawKind::External, Some(index_file.clone()), Some(data_fingerprint.to_string()), Some(*modified_ns))
        }
    };
    RawSegment {
        kind,
        path: segment.path.clone(),
        file_len: segment.file_len,
        sample_count: segment.sample_count,
        fingerprint: segment.fingerprint.to_string(),
        index_file,
        data_fingerprint,
        modified_ns,
    }
}

fn decode_generation(raw: &RawGeneration) -> Result<Generation, FormatError> {
    let segment_count = u32::try_from(raw.segment_count)
        .map_err(|_| FormatError::damaged(WHAT, format!("a generation has {} segments", raw.segment_count)))?;
    Ok(Generation { segment_count, sample_count: raw.sample_count, fingerprint: fingerprint(&raw.fingerprint)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CON-8, MAN-2
    #[test]
    fn a_member_that_appears_twice_is_refused() {
        let fingerprint = Fingerprint(1);
        let segment = SegmentRef {
            kind: SegmentKind::Native,
            path: "00000.seg".into(),
            file_len: 28672,
            sample_count: 1,
            fingerprint,
        };
        let manifest = Manifest::new(IndexRef { file: "00000.seg".into(), fingerprint }, vec![segment], &[]).unwrap();
        let text = String::from_utf8(manifest.encode().unwrap()).unwrap();
        let with = |members: &str| {
            let body = text[..text.len() - TAIL_LEN].replace("\"compatible_features\": 0", members);
            let crc = crc32fast::hash(body.as_bytes());
            Manifest::decode(format!("{body}{TAIL_HEAD}{crc:08x}{TAIL_END}").as_bytes())
        };
        assert_eq!(with("\"compatible_features\": 1, \"colour\": {\"a\": 1}"), Ok(manifest));
        for twice in [
            "\"compatible_features\": 0, \"compatible_features\": 0",
            "\"compatible_features\": 0, \"crc32\": 1",
            "\"compatible_features\": 1, \"colour\": 1, \"colour\": 1",
            "\"compatible_features\": 1, \"colour\": {\"a\": 1, \"a\": 1}",
        ] {
            assert!(with(twice).is_err(), "{twice}");
        }
    }
}
