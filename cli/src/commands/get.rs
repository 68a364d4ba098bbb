//! `grainstore get`: one sample to stdout or into a file.

use std::ffi::OsString;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::anyhow;
use grainstore_format::{escape_bytes, shown_path};
use grainstore_host::Durability;
use grainstore_reader::{IoChoice, ReadError, Reader, ReaderOptions};

use crate::Exit;
use crate::errors::bug;
use crate::external::External;
use crate::hints::WithHint;
use crate::output_file;
use crate::printer::Printer;

/// Longer samples are not held in memory.
const HELD_LEN_MAX: u64 = 64 << 20;

/// Write one sample, or one field of it, to stdout or to a file
///
/// The sample is found by its key or by its ordinal. If samples have several fields, --field chooses one. The checksum
/// of the sample is verified first: nothing is written of a damaged sample, and a sample of more than 64 MiB is read
/// twice rather than held in memory. Exits with 1 if no sample has the key, or if the sample has no such field.
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
    /// The field to write (`grainstore inspect` lists them); needed only where samples have several
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
        let location = reader.collection().locate(ordinal)?;
        let field = self.chosen_field(&reader)?;
        if location.raw_len() > HELD_LEN_MAX {
            return self.write_long(&reader, ordinal, field, printer);
        }
        let sample = reader.get(ordinal)?;
        let Some(bytes) = sample.field(field)? else { return Ok(lacks(ordinal, field, printer)) };
        match &self.output {
            None => printer.bytes(bytes)?,
            Some(path) => output_file::write(path, bytes, Durability::Later)?,
        }
        Ok(Exit::Done)
    }

    /// The field to write: what was asked for, or the only one. Fields are never written joined, as nothing in the
    /// output would show where one ends.
    fn chosen_field<'a>(&'a self, reader: &'a Reader) -> anyhow::Result<&'a str> {
        let schema = reader.collection().schema();
        match (&self.field, schema.fields()) {
            (Some(name), _) => Ok(name),
            (None, [only]) => Ok(&only.name),
            (None, fields) => {
                let names: Vec<String> = fields.iter().map(|field| escape_bytes(field.name.as_bytes())).collect();
                let path = shown_path(&self.path);
                let error = anyhow!("{path}: its samples have {} fields: {}", names.len(), names.join(", "));
                Err(error).hint("--field NAME writes one of them")
            }
        }
    }

    /// Reads a long sample twice: first for its checksum, then for the bytes of the field.
    fn write_long(&self, reader: &Reader, ordinal: u64, field: &str, printer: &Printer) -> anyhow::Result<Exit> {
        let Some(range) = field_range(reader, ordinal, field)? else { return Ok(lacks(ordinal, field, printer)) };
        io::copy(&mut reader.stream(ordinal)?, &mut io::sink())?;
        let mut payload = reader.stream(ordinal)?;
        io::copy(&mut (&mut payload).take(range.start), &mut io::sink())?;
        let mut bytes = payload.take(range.end.saturating_sub(range.start));
        match &self.output {
            None => printer.copy(&mut bytes)?,
            Some(path) => {
                output_file::write_with(path, Durability::Later, |mut file| io::copy(&mut bytes, &mut file).map(drop))?
            }
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

/// Where a field is in the payload; `None` if the sample lacks it.
fn field_range(reader: &Reader, ordinal: u64, field: &str) -> anyhow::Result<Option<Range<u64>>> {
    let collection = reader.collection();
    let payload_len = collection.locate(ordinal)?.raw_len();
    let fields = collection.schema().fields();
    let Some(number) = fields.iter().position(|known| known.name == field) else {
        let known = fields.iter().map(|field| field.name.clone()).collect();
        return Err(ReadError::NoSuchField { name: field.to_owned(), known }.into());
    };
    if collection.has_field_columns() {
        Ok(collection.fields(ordinal, payload_len)?.into_iter().nth(number).flatten())
    } else {
        Ok(Some(0..payload_len))
    }
}

fn lacks(ordinal: u64, field: &str, printer: &Printer) -> Exit {
    printer.warn(format_args!("sample {ordinal} has no \"{}\"", escape_bytes(field.as_bytes())));
    Exit::No
}
