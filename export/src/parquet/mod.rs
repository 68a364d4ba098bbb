//! Parquet files: a column `key`, one for each attribute with its exact type, one for each field.
//!
//! Fields are stored uncompressed, because pictures do not shrink, unless they are text; the other columns use Snappy.
//! A row group holds about 64 MiB of payload. The file's metadata holds what Parquet has no type for: under
//! `grainstore` the schema and the dataset's own metadata, under `huggingface` the names of numbers for the `datasets`
//! library.

use std::path::Path;

use grainstore_host::SteadyFile;

use crate::ExportError;
use crate::index_pass;
use crate::job::ExportJob;
use crate::shards::{ShardWriter, Sharded};

mod declared_names;
mod rows;
mod schema;

use self::declared_names::DeclaredNames;
use self::rows::RowWriter;
use self::schema::FileSchema;

/// The longest value: pages have lengths of 31 bits.
const VALUE_LEN_MAX: u64 = (1 << 31) - (1 << 20);

/// The plan of a Parquet export.
pub(crate) struct Parquet {
    schema: FileSchema,
    notes: Vec<String>,
}

impl Parquet {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let schema = job.schema();
        let names_key = schema.attribute(schema::KEY).is_some() || schema.field(schema::KEY).is_some();
        if names_key && job.collection().is_keyed() {
            let what = "an attribute or field is called \"key\": the keys' column has this name";
            return Err(ExportError::Unfit { what: what.into() });
        }
        let mut declared = DeclaredNames::of(job)?;
        let mut is_utf8 = true;
        index_pass::each(job, |sample| {
            is_utf8 &= sample.key.as_deref().is_none_or(|key| std::str::from_utf8(key).is_ok());
            declared.look(&sample);
            sample.check_len(VALUE_LEN_MAX, "a value in Parquet")
        })?;
        let (names, notes) = declared.finish();
        let user = job.columns().user_metadata(job.collection())?;
        Ok(Self { schema: FileSchema::of(job, &names, &user, is_utf8).map_err(library_error(job.out))?, notes })
    }
}

impl Sharded for Parquet {
    fn begin<'a>(&'a self, file: SteadyFile, path: &'a Path) -> Result<Box<dyn ShardWriter + 'a>, ExportError> {
        Ok(Box::new(RowWriter::begin(&self.schema, file, path)?))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// Makes an error of the Parquet library, or of the file below it.
fn library_error(path: &Path) -> impl FnOnce(::parquet::errors::ParquetError) -> ExportError {
    use ::parquet::errors::ParquetError;
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => ExportError::io("write it", path)(*error),
            Err(source) => ExportError::Library { path: path.to_path_buf(), source },
        },
        other => ExportError::Library { path: path.to_path_buf(), source: Box::new(other) },
    }
}
