//! `grainstore inspect`: what a dataset contains, from its index alone.

use std::path::PathBuf;

use grainstore_format::{Alignment, AttributeType, FormatError, Schema, UserMetadata, escape_bytes, shown_path};
use grainstore_store::{Dataset, Facts, StoreError};
use serde::Serialize;
use serde_json::Value;

use crate::Exit;
use crate::external::External;
use crate::histogram::{Bin, Histogram};
use crate::printer::Printer;
use crate::sizes::{counted, shown_exact, shown_size};
use crate::stats::Stats;

/// Show what a dataset contains: counts, sizes, schema, and how large its samples are
///
/// Reads the index only, no sample. Without --json it prints a list and a histogram of the payload sizes.
#[derive(clap::Args)]
pub(crate) struct InspectArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// Also print statistics: of attributes how many samples have one, counts by value, range and quantiles; of fields
    /// their lengths
    #[arg(long)]
    stats: bool,
    /// Print one JSON document instead; sizes are in bytes
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct InspectDocument<'a> {
    path: String,
    samples: u64,
    keyed: bool,
    segments: u64,
    external_segments: u64,
    /// Their paths, in the opened generation.
    external_files: Vec<String>,
    payload_bytes: u64,
    stored_bytes: u64,
    file_bytes: u64,
    index_bytes: u64,
    index_bytes_per_sample: f64,
    chunk_size: u64,
    chunks: u64,
    edge_samples: u64,
    long_samples: u64,
    lz4_samples: u64,
    alignment: String,
    attributes: Vec<Item<'a>>,
    fields: Vec<Item<'a>>,
    classes: Option<u64>,
    /// The metadata that the user stores with the dataset, including `class_names`.
    user_metadata: &'a UserMetadata,
    generations: u64,
    fingerprint: String,
    payload_len_histogram: Vec<Bin>,
    /// With `--stats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
}

/// An attribute or a field.
#[derive(Serialize)]
struct Item<'a> {
    name: &'a str,
    r#type: String,
    /// Of an attribute of type `category`, in the order of their codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<&'a str>>,
}

impl InspectArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be opened, its index is damaged, or one of its files is missing.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let dataset = external.open(&self.path)?;
        let facts = dataset.facts()?;
        let mut sizes = Histogram::default();
        for ordinal in 0..facts.samples {
            sizes.add(dataset.locate(ordinal)?.raw_len());
        }
        if self.json {
            printer.json(&self.document(&dataset, &facts, &sizes)?)?;
        } else {
            self.print(printer, &dataset, &facts, &sizes)?;
        }
        Ok(Exit::Done)
    }

    fn document<'a>(
        &self,
        dataset: &'a Dataset,
        facts: &Facts,
        sizes: &Histogram,
    ) -> anyhow::Result<InspectDocument<'a>> {
        Ok(InspectDocument {
            path: shown_path(&self.path),
            samples: facts.samples,
            keyed: facts.keyed,
            segments: facts.segments,
            external_segments: facts.external_segments,
            external_files: external_files(dataset).collect(),
            payload_bytes: facts.payload_bytes,
            stored_bytes: facts.stored_bytes,
            file_bytes: facts.file_bytes,
            index_bytes: facts.index_bytes,
            index_bytes_per_sample: per_sample(facts),
            chunk_size: facts.chunk_size,
            chunks: facts.chunks,
            edge_samples: facts.edge_samples,
            long_samples: facts.long_samples,
            lz4_samples: facts.lz4_samples,
            alignment: facts.alignment.to_string(),
            attributes: attributes(dataset)?,
            fields: fields(dataset.schema()),
            classes: names(dataset, "label")?.map(|names| names.len() as u64),
            user_metadata: dataset.user_metadata(),
            generations: facts.generations,
            fingerprint: facts.fingerprint.to_string(),
            payload_len_histogram: sizes.bins(),
            stats: self.stats(dataset)?,
        })
    }

    fn print(&self, printer: &Printer, dataset: &Dataset, facts: &Facts, sizes: &Histogram) -> anyhow::Result<()> {
        printer.line(shown_path(&self.path))?;
        for (name, text) in rows(dataset, facts)? {
            printer.line(format_args!("  {name:<12} {text}"))?;
        }
        printer.line("")?;
        printer.line("payload sizes")?;
        sizes.chart().into_iter().try_for_each(|line| printer.line(format_args!("  {line}")))?;
        let Some(stats) = self.stats(dataset)? else { return Ok(()) };
        printer.line("")?;
        printer.line("statistics")?;
        stats.lines().into_iter().try_for_each(|line| printer.line(format_args!("  {line}")))
    }

    fn stats(&self, dataset: &Dataset) -> anyhow::Result<Option<Stats>> {
        if !self.stats {
            return Ok(None);
        }
        Stats::of(dataset, |attribute| names(dataset, attribute)).map(Some)
    }
}

/// The lines of the list: a name and a text each.
fn rows(dataset: &Dataset, facts: &Facts) -> anyhow::Result<Vec<(&'static str, String)>> {
    let keys = if facts.keyed { "with keys" } else { "without keys" };
    let attributes = attributes(dataset)?;
    let mut rows = vec![
        ("samples", format!("{}, {keys}", facts.samples)),
        ("payload", shown_size(facts.payload_bytes)),
        ("stored", format!("{}, {}", shown_size(facts.stored_bytes), compression(facts))),
        ("files", shown_size(facts.file_bytes)),
        ("index", format!("{}, {:.1} bytes a sample", shown_size(facts.index_bytes), per_sample(facts))),
        ("segments", segments(facts)),
        ("chunks", format!("{} of {}", facts.chunks, shown_exact(facts.chunk_size))),
        (
            "edges",
            format!("{} over a chunk boundary ({:.1} %)", counted(facts.edge_samples, "sample"), edge_percent(facts)),
        ),
        ("alignment", shown_alignment(facts.alignment)),
        ("attributes", listed(&attributes)),
        ("fields", listed(&fields(dataset.schema()))),
    ];
    if facts.external_segments > 0 {
        rows.push(("external", some_of(external_files(dataset), facts.external_segments)));
    }
    for Item { name, categories, .. } in &attributes {
        if let Some(categories) = categories {
            let names = categories.iter().map(|category| escape_bytes(category.as_bytes()));
            let names = some_of(names, categories.len() as u64);
            let name = escape_bytes(name.as_bytes());
            rows.push(("categories", format!("{name} {}: {names}", categories.len())));
        }
    }
    for attribute in dataset.schema().attributes() {
        let Some(names) = names(dataset, &attribute.name)? else { continue };
        rows.push(match attribute.name.as_str() {
            "label" => ("classes", first_of(&names)),
            other => ("names", format!("{} {}", escape_bytes(other.as_bytes()), first_of(&names))),
        });
    }
    rows.push(("generations", facts.generations.to_string()));
    rows.push(("fingerprint", facts.fingerprint.to_string()));
    Ok(rows)
}

fn compression(facts: &Facts) -> String {
    match facts.lz4_samples {
        0 => "not compressed".to_owned(),
        count => format!("{} as LZ4", counted(count, "sample")),
    }
}

fn segments(facts: &Facts) -> String {
    match facts.external_segments {
        0 => facts.segments.to_string(),
        count => format!("{}, {count} of them external", facts.segments),
    }
}

/// The paths of the external files.
fn external_files(dataset: &Dataset) -> impl Iterator<Item = String> {
    dataset.segments().iter().filter(|segment| segment.is_external()).map(|segment| shown_path(segment.path()))
}

fn per_sample(facts: &Facts) -> f64 {
    facts.index_bytes as f64 / facts.samples.max(1) as f64
}

fn edge_percent(facts: &Facts) -> f64 {
    100.0 * facts.edge_samples as f64 / facts.samples.max(1) as f64
}

fn shown_alignment(alignment: Alignment) -> String {
    if alignment == Alignment::PACKED {
        format!("{alignment} (samples are back to back)")
    } else {
        alignment.to_string()
    }
}

fn attributes(dataset: &Dataset) -> anyhow::Result<Vec<Item<'_>>> {
    let attributes = dataset.schema().attributes().iter();
    let items = attributes.map(|attribute| {
        let categories = match attribute.kind {
            AttributeType::Category => Some(dataset.categories(&attribute.name)?.iter().collect()),
            _ => None,
        };
        Ok(Item { name: &attribute.name, r#type: attribute.kind.name().to_owned(), categories })
    });
    items.collect()
}

fn fields(schema: &Schema) -> Vec<Item<'_>> {
    schema
        .fields()
        .iter()
        .map(|field| Item { name: &field.name, r#type: field.kind.name(), categories: None })
        .collect()
}

fn listed(items: &[Item<'_>]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("{} {}", escape_bytes(item.name.as_bytes()), escape_bytes(item.r#type.as_bytes())))
        .collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// The names of an attribute's numbers; `None` if it has none, or more of them than can be held: the metadata is printed
/// as text.
fn names(dataset: &Dataset, attribute: &str) -> anyhow::Result<Option<Vec<Value>>> {
    match dataset.names(attribute) {
        Err(StoreError::Format { source: FormatError::UnheldMember { .. }, .. }) => Ok(None),
        names => Ok(names?),
    }
}

/// The number of names, and the first few with their numbers.
fn first_of(names: &[Value]) -> String {
    let text = |name: &Value| escape_bytes(name.as_str().unwrap_or("?").as_bytes());
    let shown = names.iter().enumerate().map(|(number, name)| format!("{number} {}", text(name)));
    format!("{}: {}", names.len(), some_of(shown, names.len() as u64))
}

/// The first few of `count` names.
fn some_of(names: impl Iterator<Item = String>, count: u64) -> String {
    let shown: Vec<String> = names.take(4).collect();
    let more = if count > 4 { ", ... (--json has all)" } else { "" };
    format!("{}{more}", shown.join(", "))
}
