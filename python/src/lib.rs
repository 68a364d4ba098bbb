//! The Python module `grainstore._core`: a thin layer over the reader, the converters and the writer.
//!
//! Each class has its own file; no call holds Python's lock while it waits. Nothing here decides what a dataset is: the
//! libraries do that. The package around it (`python/grainstore`) adds the loader and the adapters for frameworks.
#![deny(unsafe_code)]
mod argument;
mod arrow;
mod batch;
mod buffers;
mod column;
mod command;
mod convert;
mod dataset;
mod draws;
mod epoch;
mod error;
mod export;
mod fork;
mod given;
mod hint;
mod kept_names;
mod key;
mod keys;
mod logging;
mod mapping;
mod numpy;
mod opened;
mod opening;
mod payloads;
#[cfg(feature = "pictures")]
mod pictures;
mod progress;
mod sample;
mod sample_file;
mod samples;
mod schema;
mod selection;
mod verify;
#[allow(unsafe_code, reason = "memory is lent to Python here, and nowhere else")]
mod view;
mod weights;
mod writer;
/// The compiled part of the package `grainstore`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::buffers::Buffers;
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::convert::{adopt, append, convert, delete};
    #[pymodule_export]
    use crate::dataset::Dataset;
    #[pymodule_export]
    use crate::draws::draw_seed;
    #[pymodule_export]
    use crate::epoch::Epoch;
    #[pymodule_export]
    use crate::export::export;
    #[pymodule_export]
    use crate::keys::Keys;
    #[pymodule_export]
    use crate::logging::deliver_reports;
    #[pymodule_export]
    use crate::opening::{open, reopen};
    #[cfg(feature = "pictures")]
    #[pymodule_export]
    use crate::pictures::Image;
    #[pymodule_export]
    use crate::sample_file::SampleBytes;
    #[pymodule_export]
    use crate::verify::{rebuild_index, verify};
    #[pymodule_export]
    use crate::view::Memory;
    #[pymodule_export]
    use crate::weights::{Weights, reweigh};
    #[pymodule_export]
    use crate::writer::Writer;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "as Python spells it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
