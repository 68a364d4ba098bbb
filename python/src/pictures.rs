//! `Image`: pictures of a batch, decoded to one array by threads without Python's lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use grainstore_pictures::{Crop, Decoder, FieldError, Filter, Layout, Recipe, RecipeOptions, field_of};
use grainstore_plan::SampleVisit;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyTuple};

use crate::batch::{Batch, Decoded};
use crate::error::Raised;
use crate::schema::Names;

/// How pictures become arrays of one shape: `Loader(dataset, decode=Image(224, "random-resized-crop"))`.
///
/// size: height and width in pixels, or one number for both. crop: what part of a picture is taken: "resize" (all of it),
/// "center-crop" (the shorter side is scaled to `resize` pixels, by default 8/7 of the size, and the middle is taken) or
/// "random-resized-crop" (a part of `scale` of the area, whose width divided by its height is in `ratio`). flip: the
/// probability that a picture is mirrored; True is 0.5. interpolation: "bilinear" or "bicubic", with antialiasing.
/// layout: "NHWC" or "NCHW". fast: whether a JPEG may be decoded at a half, a quarter or an eighth of its size where that
/// suffices; pixels differ a little. field: the field with the pictures, if it is not the only one of bytes or called
/// "image". max_pixels: a larger picture is an error. on_error: "raise", or "skip" to continue without pictures that do
/// not decode.
#[pyclass(frozen, module = "grainstore")]
pub(crate) struct Image {
    recipe: Recipe,
    field: Option<String>,
    skips: bool,
    /// The arguments, for pickle and for people.
    arguments: Py<PyTuple>,
}

#[derive(FromPyObject)]
enum Size {
    Side(u32),
    Sides((u32, u32)),
}

#[derive(FromPyObject)]
enum Flip {
    Truth(bool),
    Probability(f64),
}

/// The height and width of a size.
fn sides(size: &Bound<'_, PyAny>) -> PyResult<(u32, u32)> {
    match size.extract() {
        Ok(Size::Side(side)) => Ok((side, side)),
        Ok(Size::Sides(sides)) => Ok(sides),
        Err(_) => {
            let given = size.repr()?;
            Err(PyTypeError::new_err(format!("size is a number of pixels, or a pair of height and width, not {given}")))
        }
    }
}

fn one_of<T: Copy>(name: &str, given: &str, known: &[(&str, T)]) -> Result<T, Raised> {
    let found = known.iter().find(|(text, _)| *text == given).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(text, _)| *text).collect();
        Raised::option(format!("{name} is {given:?}, expected {}", names.join(", ")))
    })
}

impl Image {
    /// The number of the field that holds the pictures.
    fn field_of(&self, names: &Names) -> Result<usize, Raised> {
        let fields: Vec<_> = names.fields().map(|(_, (name, kind))| (name.text(), kind)).collect();
        let found = field_of(&fields, self.field.as_deref()).map_err(|error| raised("Image", &error))?;
        let place = names.fields().nth(found).map(|(place, _)| place);
        place.ok_or_else(|| Raised::bug("a field of pictures is none of the batch's"))
    }
}

/// The error of `call`, which has a `field` argument.
pub(crate) fn raised(call: &str, error: &FieldError) -> Raised {
    let message = format!("{call}: {error}");
    match error {
        FieldError::NoSuch { .. } => Raised::new("NoSuchName", message),
        FieldError::Unclear { .. } => Raised::option(format!("{message}: field=")),
        _ => Raised::option(message),
    }
}

/// A picture of a batch that did not decode.
struct Undecoded {
    place: usize,
    reason: String,
}

/// Decodes pictures into rows of one array, with threads that each take the next picture. `None` is a missing one.
fn decode_all(
    recipe: &Recipe,
    pictures: &[(Option<&[u8]>, u128)],
    rows: &mut [u8],
    thread_count: usize,
    goes_on: bool,
) -> Vec<Undecoded> {
    let row_len = recipe.byte_len();
    let stop = AtomicBool::new(false);
    let work = Mutex::new(pictures.iter().zip(rows.chunks_exact_mut(row_len)).enumerate());
    let undecoded = Mutex::new(Vec::new());
    let taken = AtomicUsize::new(0);
    let run = || {
        let mut decoder = Decoder::new();
        while !stop.load(Ordering::Relaxed) {
            let Some((place, ((bytes, bits), row))) = work.lock().ok().and_then(|mut work| work.next()) else { return };
            taken.fetch_add(1, Ordering::Relaxed);
            let reason = match bytes {
                None => Some("it has no picture".to_owned()),
                Some(bytes) => decoder.decode(recipe, bytes, *bits, row).err().map(|error| error.to_string()),
            };
            if let Some(reason) = reason {
                stop.fetch_or(!goes_on, Ordering::Relaxed);
                if let Ok(mut undecoded) = undecoded.lock() {
                    undecoded.push(Undecoded { place, reason });
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..thread_count.min(pictures.len()) {
            // Where the system has no thread left, fewer do it.
            let _ = std::thread::Builder::new().name("grain-decode".into()).spawn_scoped(scope, run);
        }
        run();
    });
    let mut undecoded = undecoded.into_inner().unwrap_or_default();
    undecoded.sort_by_key(|one| one.place);
    undecoded
}

#[pymethods]
impl Image {
    #[new]
    #[pyo3(signature = (size, crop="resize", *, scale=(0.08, 1.0), ratio=(0.75, 4.0 / 3.0), resize=None, flip=Flip::Probability(0.0), interpolation="bilinear", layout="NHWC", fast=false, field=None, max_pixels=89_478_485, on_error="raise"))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn python_new(
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        crop: &str,
        scale: (f64, f64),
        ratio: (f64, f64),
        resize: Option<u32>,
        flip: Flip,
        interpolation: &str,
        layout: &str,
        fast: bool,
        field: Option<String>,
        max_pixels: u64,
        on_error: &str,
    ) -> PyResult<Self> {
        let (height, width) = sides(size)?;
        let default = u32::try_from((u64::from(height.max(width)) * 8 + 3) / 7).unwrap_or(u32::MAX);
        let shorter = resize.unwrap_or(default);
        let part = one_of(
            "crop",
            crop,
            &[
                ("resize", Crop::Whole),
                ("center-crop", Crop::Center { resize: shorter }),
                ("random-resized-crop", Crop::RandomResized { scale, ratio }),
            ],
        )?;
        if resize.is_some() && crop != "center-crop" {
            return Err(Raised::option(format!("resize is for crop=\"center-crop\", and crop is {crop:?}")).into());
        }
        let mirror = match flip {
            Flip::Truth(truth) => f64::from(u8::from(truth)) / 2.0,
            Flip::Probability(probability) => probability,
        };
        let options = RecipeOptions {
            mirror,
            filter: one_of(
                "interpolation",
                interpolation,
                &[("bilinear", Filter::Bilinear), ("bicubic", Filter::Bicubic)],
            )?,
            layout: one_of("layout", layout, &[("NHWC", Layout::Interleaved), ("NCHW", Layout::Planar)])?,
            reduce: fast,
            pixels_max: max_pixels,
        };
        let skips = one_of("on_error", on_error, &[("raise", false), ("skip", true)])?;
        let recipe = Recipe::new(height, width, part, options).map_err(|error| Raised::option(error.to_string()))?;
        let sizes = (height, width);
        let arguments =
            (sizes, crop, scale, ratio, resize, mirror, interpolation, layout, fast, &field, max_pixels, on_error);
        let arguments = arguments.into_pyobject(py)?.unbind();
        Ok(Self { recipe, field, skips, arguments })
    }

    /// Check that the pictures of a batch could be decoded: whether the dataset has a field for them.
    fn _check(&self, batch: &Batch) -> PyResult<()> {
        self.field_of(batch.names())?;
        Ok(())
    }

    /// Whether pictures that do not decode are left out.
    #[getter]
    fn _skips(&self) -> bool {
        self.skips
    }

    /// The batch, with its pictures as one array.
    fn _decode(&self, py: Python<'_>, batch: &Batch, seed: u64, epoch: u64, num_threads: usize) -> PyResult<Batch> {
        let field = self.field_of(batch.names())?;
        let spans = batch.field_spans(py, field)?;
        let inner = batch.reader_batch();
        let lost = || Raised::bug("a field is outside its batch");
        let mut pictures = Vec::with_capacity(spans.len());
        for (place, (span, &ordinal)) in spans.into_iter().zip(inner.ordinals()).enumerate() {
            let bytes = span.map(|span| inner.block().get(span).ok_or_else(lost)).transpose()?;
            let repeat = inner.repeats().get(place).copied().unwrap_or(0);
            pictures.push((bytes, SampleVisit { seed, epoch, ordinal, repeat }.draw_seed()));
        }
        let row_len = self.recipe.byte_len();
        let mut undecoded = Vec::new();
        let block = PyByteArray::new_with(py, pictures.len() * row_len, |rows| {
            undecoded = py.detach(|| decode_all(&self.recipe, &pictures, rows, num_threads, self.skips));
            Ok(())
        })?;
        let sides = (self.recipe.height(), self.recipe.width());
        let shape = match self.recipe.options().layout {
            Layout::Planar => (pictures.len(), 3, sides.0, sides.1),
            _ => (pictures.len(), sides.0 as usize, sides.1, 3),
        };
        let numpy = py.import("numpy")?;
        // NumPy refuses an empty buffer.
        let rows = if pictures.is_empty() {
            numpy.call_method1("zeros", (shape, "u1"))?
        } else {
            numpy.call_method1("frombuffer", (block, "u1"))?.call_method1("reshape", (shape,))?
        };
        if let Some(first) = undecoded.first().filter(|_| !self.skips) {
            return Err(batch.failed(first.place, "UndecodablePicture", &first.reason).into());
        }
        let mut left_out = undecoded.iter().map(|one| one.place).peekable();
        let mut places = Vec::with_capacity(pictures.len());
        for place in 0..pictures.len() {
            if left_out.next_if_eq(&place).is_none() {
                places.push(place);
            }
        }
        let rows = if undecoded.is_empty() { rows } else { rows.get_item(places.clone())? };
        let ordinals = inner.ordinals();
        let skipped = undecoded.into_iter().filter_map(|one| Some((*ordinals.get(one.place)?, one.reason))).collect();
        Ok(batch.with_decoded(&places, Decoded { field, rows: rows.unbind(), skipped }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let made = py.import("grainstore._pictures")?.getattr("_image")?;
        Ok((made, self.arguments.bind(py).clone()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let arguments = self.arguments.bind(py);
        let (size, crop) = (arguments.get_item(0)?.repr()?, arguments.get_item(1)?.repr()?);
        Ok(format!("grainstore.Image({size}, {crop})"))
    }
}
