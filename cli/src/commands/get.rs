//! `grainstore get`: one sample to stdout or into a file.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::anyhow;
use grainstore_format::{escape_bytes, shown_path};
use grainstore_host::Durability;
use grainstore_reader::{IoChoice, Reader, ReaderOptions};

use crate::Exit;
use crate::errors::bug;
use crate::external::External;
use crate::hints::WithHint;
use crate::output_file;
use crate::printer::Printer;

/// Longer samples are not held in memory.
const HELD_LEN_MAX: u64 = 64 << 20;

/// Write the payload of one sample to stdout, or to a file
///
/// The sample is found by its key or by its ordinal. Its checksum is verified first: nothing is written of a damaged
/// sample, and a sample of more than 64 MiB is read twice rather than held in memory. Exits with 1 if no sample has the
/// key, or if the sample has no such field.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// Key of the sample, exactly the bytes that were packed; after `--` if it starts with a dash
    #[arg(value_name = "KEY", required_unless_present = "ordinal", conflicts_with = "ordinal")]
    key: Option<OsString>,
    /// Take the sample with this ordinal instead; the first one is 0
    #[arg(long, value_name = "N")]
    ordinal: Option<u64>,
    /// Write one field of the payload only (`grainstore inspect` lists them)
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Write to this file, which appears only once it is complete, instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl GetArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be opened, there is no such ordinal or field, the sample cannot be read or is damaged, or
    /// the output cannot be written.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        // A single read does not benefit from direct I/O.
        let reader = Reader::open(&self.path, ReaderOptions { io: IoChoice::Buffered, ..external.reader_options() })?;
        let found = self.find(&reader, printer);
        for notice in reader.notices() {
            printer.warn(notice);
        }
        let Some(ordinal) = found? else { return Ok(Exit::No) };
        if self.field.is_none() && reader.collection().locate(ordinal)?.stored_len > HELD_LEN_MAX {
            return self.write_long(&reader, ordinal, printer);
        }
        let sample = reader.get(ordinal)?;
        let bytes = match &self.field {
            None => sample.payload.as_slice(),
            Some(name) => match sample.field(name)? {
                Some(bytes) => bytes,
                None => {
                    let name = escape_bytes(name.as_bytes());
                    printer.warn(format_args!("sample {} has no \"{name}\"", sample.ordinal));
                    return Ok(Exit::No);
                }
            },
        };
        match &self.output {
            None => printer.bytes(bytes)?,
            Some(path) => output_file::write(path, bytes, Durability::Later)?,
        }
        Ok(Exit::Done)
    }

    /// Reads a long sample twice: first for its checksum, then for its bytes.
    fn write_long(&self, reader: &Reader, ordinal: u64, printer: &Printer) -> anyhow::Result<Exit> {
        io::copy(&mut reader.stream(ordinal)?, &mut io::sink())?;
        let mut payload = reader.stream(ordinal)?;
        match &self.output {
            None => printer.copy(&mut payload)?,
            Some(path) => output_file::write_with(path, Durability::Later, |mut file| {
                io::copy(&mut payload, &mut file).map(drop)
            })?,
        }
        Ok(Exit::Done)
    }

    /// The ordinal; `None`, after a warning, if no sample has the key.
    fn find(&self, reader: &Reader, printer: &Printer) -> anyhow::Result<Option<u64>> {
        let key = match (&self.key, self.ordinal) {
            (Some(key), _) => key.as_bytes(),
            (None, Some(ordinal)) => return Ok(Some(ordinal)),
            (None, None) => return Err(bug("neither a key nor an ordinal was given")),
        };
        if !reader.collection().is_keyed() {
            let error = anyhow!("{}: its samples have no keys", shown_path(&self.path));
            return Err(error).hint("--ordinal takes a sample by its number");
        }
        let ordinal = reader.collection().find(key)?;
        if ordinal.is_none() {
            printer.warn(format_args!("{}: no such key: \"{}\"", shown_path(&self.path), escape_bytes(key)));
        }
        Ok(ordinal)
    }
}
