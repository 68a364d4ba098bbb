//! Opening a dataset, by its paths or by what pickle kept of one.

use std::sync::Arc;

use grainstore_format::memory::zeroed;
use grainstore_format::{shown_path, to_usize};
use grainstore_reader::Subset;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::argument::{parsed, paths as paths_of};
use crate::dataset::Dataset;
use crate::error::Raised;
use crate::logging;
use crate::opened::{How, Numbers, Opened, SharedReader};
use crate::selection::Selection;

/// Open the dataset at `paths`, or several that are read end to end as one collection.
///
/// io: how files are read: "auto", "direct", "buffered" or "mapped" (with the index, too: a file whose index is cut off
/// meanwhile kills the process; "auto" maps samples alone, if they are in memory already). engine: "auto", "uring" or "pread", which uses `threads`
/// threads. payload: the type of byte fields in a sample: "bytes", or without a copy "memoryview" or "numpy". keys:
/// whether samples also have an item "key".
#[pyfunction]
#[pyo3(signature = (paths, *, io="auto", engine="auto", threads=16, queue_bytes=8_388_608, cache_bytes=0, generation=None, allow_external=false, timeout_s=120.0, payload="bytes", keys=false))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn open(
    py: Python<'_>,
    paths: &Bound<'_, PyAny>,
    io: &str,
    engine: &str,
    threads: usize,
    queue_bytes: u64,
    cache_bytes: u64,
    generation: Option<usize>,
    allow_external: bool,
    timeout_s: f64,
    payload: &str,
    keys: bool,
) -> PyResult<Dataset> {
    let paths = paths_of(paths)?;
    let numbers = Numbers { threads, queue_bytes, cache_bytes, generation, allow_external, timeout_s };
    let options = numbers.options(io, engine)?;
    let how = How { paths, io: io.into(), engine: engine.into(), options, payloads: parsed(payload)?, keys };
    logging::listen(py)?;
    let opened = logging::delivered(py, py.detach(|| Opened::open(how)))?;
    let selection = Selection::Range(0..opened.reader.collection().sample_count());
    let names = Arc::clone(&opened.names);
    Ok(Dataset { shared: SharedReader::new(opened), selection, names })
}

/// Open what another process had open: called by pickle.
#[pyfunction]
#[pyo3(name = "_reopen", signature = (arguments, fingerprint, selection, columns))]
pub(crate) fn reopen(
    arguments: &Bound<'_, PyDict>,
    fingerprint: &str,
    selection: (String, Vec<u8>),
    columns: Vec<String>,
) -> PyResult<Dataset> {
    let py = arguments.py();
    let dataset = py.import("grainstore._core")?.call_method("open", (), Some(arguments))?;
    let dataset = dataset.cast::<Dataset>()?.get();
    let opened = dataset.shared.get()?;
    let found = opened.fingerprint().to_string();
    if found != fingerprint {
        let path = opened.how.paths.first().ok_or_else(|| Raised::bug("a dataset is open without a path"))?;
        let what =
            format!("{}: it is another dataset now: fingerprint {found}, expected {fingerprint}", shown_path(path));
        return Err(Raised::new("Error", what).at(path).into());
    }
    let sample_count = opened.reader.collection().sample_count();
    let names = Arc::new(opened.names.narrowed(&columns)?);
    Ok(Dataset { shared: Arc::clone(&dataset.shared), selection: unpacked(sample_count, selection)?, names })
}

/// What pickle keeps of a dataset: the function that opens it again, and its arguments.
pub(crate) fn reduced<'py>(py: Python<'py>, dataset: &Dataset) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let opened = dataset.shared.get()?;
    let arguments = opened.how.arguments(py, opened.generation().or(opened.how.options.generation))?;
    let (kind, bytes) = packed(&dataset.selection)?;
    let selection = (kind, PyBytes::new(py, &bytes));
    let columns: Vec<&str> = dataset.names.all().map(|(name, _)| name.text()).collect();
    let all = (arguments, opened.fingerprint().to_string(), selection, columns).into_pyobject(py)?;
    Ok((py.import("grainstore._core")?.getattr("_reopen")?, all))
}

/// A selection as a name and bytes, for pickle.
fn packed(selection: &Selection) -> Result<(&'static str, Vec<u8>), Raised> {
    let bytes = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Ok(match selection {
        Selection::Range(range) => ("range", bytes(&[range.start, range.end])),
        Selection::Subset(subset) => {
            let mut bits = zeroed(subset.sample_count().div_ceil(8))?;
            for ordinal in subset.ordinals_in(0..subset.sample_count()) {
                bits[to_usize(ordinal / 8)] |= 1 << (ordinal % 8);
            }
            ("subset", bits)
        }
        Selection::List(ordinals) => ("list", bytes(ordinals)),
    })
}

fn unpacked(sample_count: u64, (kind, bytes): (String, Vec<u8>)) -> Result<Selection, Raised> {
    let wrong = || Raised::option("invalid pickled view");
    let numbers = || bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
    let selection = match kind.as_str() {
        "range" => match numbers().collect::<Vec<_>>()[..] {
            [start, end] if start <= end && end <= sample_count => Selection::Range(start..end),
            _ => return Err(wrong()),
        },
        "subset" => {
            let mut bytes = bytes.clone();
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let words = bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
            Selection::Subset(Arc::new(Subset::from_words(sample_count, words.collect()).map_err(|_| wrong())?))
        }
        "list" if bytes.len() % 8 == 0 && numbers().all(|ordinal| ordinal < sample_count) => {
            Selection::List(numbers().collect())
        }
        _ => return Err(wrong()),
    };
    Ok(selection)
}
