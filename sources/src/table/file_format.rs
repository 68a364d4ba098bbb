//! The format of a table's file: CSV, TSV or JSON Lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

use grainstore_format::shown_path;
use grainstore_host::open_regular;

use crate::SourceError;
use crate::compressed::{Compression, head_of};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The format of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableFormat {
    Delimited(u8),
    JsonLines,
}

/// Opens a file: its format, and its content after the byte order mark.
pub(super) fn open(path: &Path) -> Result<(TableFormat, impl BufRead), SourceError> {
    let failed = |source| SourceError::Path { path: path.to_owned(), source };
    let (mut file, _) = open_regular(path).map_err(failed)?;
    let head = head_of(&mut &file).map_err(failed)?;
    let form = form(path, &head)?;
    file.rewind().map_err(failed)?;
    let mut content = BufReader::with_capacity(1 << 20, file);
    skip_bom(&mut content).map_err(failed)?;
    Ok((form, content))
}

fn skip_bom(content: &mut BufReader<File>) -> std::io::Result<()> {
    if content.fill_buf()?.starts_with(BOM) {
        content.consume(BOM.len());
    }
    Ok(())
}

/// The format, by the extension or else by the first bytes.
fn form(path: &Path, head: &[u8]) -> Result<TableFormat, SourceError> {
    let refused = |why: String| Err(SourceError::Refused { path: path.to_owned(), why: why.into() });
    let compression = Compression::of(head);
    if matches!(compression, Compression::Gzip | Compression::Zstd) {
        let name = compression.name();
        return refused(format!("it is compressed with {name}; unpack it, tables are read as plain text"));
    }
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(match extension.to_ascii_lowercase().as_str() {
        _ if text.is_empty() => return refused("it is empty".into()),
        _ if head.contains(&0) => return refused("it is not text; CSV, TSV or JSON Lines is expected".into()),
        "csv" => TableFormat::Delimited(b','),
        "tsv" | "tab" => TableFormat::Delimited(b'\t'),
        _ if text.starts_with(b"[") => {
            let file = shown_path(path);
            return refused(format!("it is one JSON list; a line for each object is expected (jq -c '.[]' {file})"));
        }
        "jsonl" | "ndjson" => TableFormat::JsonLines,
        _ if text.starts_with(b"{") => TableFormat::JsonLines,
        _ if lines.contains(&b'\t') && !lines.contains(&b',') => TableFormat::Delimited(b'\t'),
        _ => TableFormat::Delimited(b','),
    })
}
