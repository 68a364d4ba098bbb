//! The names of the files of a folder and of the members of a tar, and which names are refused.
//!
//! A name is the key and, with several fields, the name of the field. A key that is not a valid path below the target,
//! or that gives two files the same name, is refused and not changed: the names are part of what is exported.

use std::collections::HashMap;

use grainstore_format::escape_bytes;

use crate::ExportError;
use crate::index_pass::{self, Indexed};
use crate::job::ExportJob;

/// The longest file name, on almost every file system.
const PART_LEN_MAX: usize = 255;
/// The longest path below the target that one call accepts (`PATH_MAX` counts the zero at its end, too).
const PATH_LEN_MAX: usize = 4095;
/// The fewest digits of an ordinal that is used as a key; a larger dataset uses more.
const DIGITS_MIN: usize = 9;

/// Where the names are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Files. One field: the key; without keys, `000000000.bin`.
    Folder,
    /// Members of a tar. One field: the key if its last part has a dot, where WebDataset expects the field to begin. With
    /// several, the key ends at that dot.
    Tar,
}

/// Makes the names of files.
pub(crate) struct Naming {
    style: Style,
    is_keyed: bool,
    digit_count: usize,
    /// `.image`, `.caption`.
    suffixes: Vec<String>,
}

impl Naming {
    /// Fails if a field's name cannot be part of a file's name.
    pub(crate) fn new(job: &ExportJob<'_>, style: Style) -> Result<Self, ExportError> {
        let schema = job.schema();
        if let Some(field) = schema.fields().iter().find(|field| field.name.contains(['/', '\0'])) {
            let what = format!("field \"{}\" cannot be part of a file's name", escape_bytes(field.name.as_bytes()));
            return Err(ExportError::Unfit { what });
        }
        Ok(Self {
            style,
            is_keyed: job.collection().is_keyed(),
            digit_count: digit_count(job),
            suffixes: schema.fields().iter().map(|field| format!(".{}", field.name)).collect(),
        })
    }

    /// The common start of the names of a sample's files: its key, or its ordinal.
    pub(crate) fn stem(&self, ordinal: u64, key: Option<&[u8]>) -> Vec<u8> {
        key.map_or_else(|| padded(ordinal, self.digit_count), <[u8]>::to_vec)
    }

    /// The name of the file of the schema's field number `field`.
    pub(crate) fn file(&self, stem: &[u8], field: usize) -> Vec<u8> {
        let suffix = &self.suffixes[field];
        match (self.style, self.suffixes.len()) {
            (Style::Folder, 1) if self.is_keyed => stem.to_vec(),
            (Style::Folder, 1) => [stem, b".bin"].concat(),
            (Style::Tar, 1) if self.is_keyed && last_part(stem).contains(&b'.') => stem.to_vec(),
            (Style::Tar, _) => self.extra(stem, suffix),
            _ => [stem, suffix.as_bytes()].concat(),
        }
    }

    /// The name of a member of a sample that does not belong to a field. Readers take what follows the first dot for the
    /// suffix, so there is none before it.
    pub(crate) fn extra(&self, stem: &[u8], suffix: &str) -> Vec<u8> {
        [before_first_dot(stem), suffix.as_bytes()].concat()
    }

    /// The keys that would have a file with this name.
    fn owners<'p>(&self, path: &'p [u8]) -> Vec<&'p [u8]> {
        let stripped = self.suffixes.iter().filter_map(|suffix| path.strip_suffix(suffix.as_bytes()));
        match (self.style, self.suffixes.len()) {
            (Style::Folder, 1) => vec![path],
            (Style::Tar, 1) => {
                let with_dot = Some(path).filter(|path| last_part(path).contains(&b'.'));
                with_dot.into_iter().chain(stripped.filter(|stem| !last_part(stem).contains(&b'.'))).collect()
            }
            _ => stripped.collect(),
        }
    }
}

/// The number of digits of the ordinals of a dataset.
pub(crate) fn digit_count(job: &ExportJob<'_>) -> usize {
    let last = job.selection.sample_count().saturating_sub(1);
    last.to_string().len().max(DIGITS_MIN)
}

/// An ordinal that is used as a key.
pub(crate) fn padded(ordinal: u64, digit_count: usize) -> Vec<u8> {
    format!("{ordinal:0digit_count$}").into_bytes()
}

/// The last part of a path.
pub(crate) fn last_part(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(path, |slash| &path[slash + 1..])
}

/// A path up to the first dot of its last part, which WebDataset takes for the name of a sample. A dot at the start of
/// the part does not end the name.
pub(crate) fn before_first_dot(path: &[u8]) -> &[u8] {
    let part = last_part(path);
    let dot = part.iter().skip(1).position(|&byte| byte == b'.').map_or(part.len(), |dot| dot + 1);
    &path[..path.len() - part.len() + dot]
}

/// Checks the names of all files of all selected samples.
pub(crate) struct NameCheck<'a> {
    job: &'a ExportJob<'a>,
    naming: &'a Naming,
    /// Folders that no key alone shows to be the name of a file, and the first sample in each.
    folders: HashMap<Vec<u8>, u64>,
}

impl<'a> NameCheck<'a> {
    pub(crate) fn new(job: &'a ExportJob<'a>, naming: &'a Naming) -> Self {
        Self { job, naming, folders: HashMap::new() }
    }

    /// Fails if a file of the sample cannot have its name. `extras` are the suffixes of its files that are not fields.
    pub(crate) fn look(&mut self, sample: &Indexed, extras: &[&str]) -> Result<(), ExportError> {
        // Ordinals are valid names, and all different.
        let Some(key) = &sample.key else { return Ok(()) };
        let refused = |why| ExportError::BadName { ordinal: sample.ordinal, key: key.clone(), why };
        for field in 0..self.naming.suffixes.len() {
            let path = self.naming.file(key, field);
            self.naming.check_path(&path).map_err(refused)?;
            self.check_folders(&path, sample.ordinal)?.map_or(Ok(()), |why| Err(refused(why)))?;
            self.check_taken(&path, Some(key))?.map_or(Ok(()), |why| Err(refused(why)))?;
        }
        for suffix in extras {
            let path = self.naming.extra(key, suffix);
            self.check_taken(&path, None)?.map_or(Ok(()), |why| Err(refused(why)))?;
        }
        Ok(())
    }

    /// Ends the pass. Fails if a folder has the name of a file that is called by a part of its sample's key, or that is
    /// not a field: such files are not found by a key, so all names are made once more if a folder ends like one.
    pub(crate) fn finish(mut self, extras: &[&str]) -> Result<(), ExportError> {
        let suffixes: Vec<&str> =
            self.naming.suffixes.iter().map(String::as_str).chain(extras.iter().copied()).collect();
        self.folders.retain(|folder, _| suffixes.iter().any(|suffix| folder.ends_with(suffix.as_bytes())));
        if self.naming.style != Style::Tar || self.folders.is_empty() {
            return Ok(());
        }
        index_pass::each(self.job, |sample| {
            let Some(key) = &sample.key else { return Ok(()) };
            let fields = (0..self.naming.suffixes.len()).map(|field| self.naming.file(key, field));
            for path in fields.chain(extras.iter().map(|suffix| self.naming.extra(key, suffix))) {
                if let Some(&ordinal) = self.folders.get(&path) {
                    let why = folder_is_file(&path, &sample_with(sample.ordinal, key));
                    let key = self.job.collection().key(ordinal)?.unwrap_or_default();
                    return Err(ExportError::BadName { ordinal, key, why });
                }
            }
            Ok(())
        })
    }

    /// Why the parent folders of a file cannot be created, if so.
    fn check_folders(&mut self, path: &[u8], ordinal: u64) -> Result<Option<String>, ExportError> {
        let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        for folder in slashes.filter_map(|(position, _)| path.get(..position)) {
            // Its parents have been checked with it.
            if self.folders.contains_key(folder) {
                return Ok(None);
            }
            if let Some(other) = self.owner(folder, None)? {
                return Ok(Some(folder_is_file(folder, &other)));
            }
            self.folders.insert(folder.to_vec(), ordinal);
        }
        Ok(None)
    }

    /// Why the name of a file is taken, if so.
    fn check_taken(&self, path: &[u8], own: Option<&[u8]>) -> Result<Option<String>, ExportError> {
        let other = self.owner(path, own)?;
        Ok(other.map(|other| format!("its file \"{}\" is also that of {other}", escape_bytes(path))))
    }

    /// Another selected sample that has a file with this name, described for an error.
    fn owner(&self, path: &[u8], own: Option<&[u8]>) -> Result<Option<String>, ExportError> {
        let owners = self.naming.owners(path).into_iter();
        for key in owners.filter(|key| !key.is_empty() && Some(*key) != own) {
            if let Some(ordinal) = self.job.collection().find(key)?
                && self.job.selection.contains(ordinal)
            {
                return Ok(Some(sample_with(ordinal, key)));
            }
        }
        Ok(None)
    }
}

fn folder_is_file(folder: &[u8], other: &str) -> String {
    format!("its folder \"{}\" is the file of {other}", escape_bytes(folder))
}

fn sample_with(ordinal: u64, key: &[u8]) -> String {
    format!("sample {ordinal} (key \"{}\")", escape_bytes(key))
}

impl Naming {
    /// Fails, with a reason, if a path is not below the target, or is not in its simplest form.
    fn check_path(&self, path: &[u8]) -> Result<(), String> {
        if path.contains(&0) {
            return Err("it has a zero byte, which ends a name".into());
        }
        if path.first() == Some(&b'/') {
            return Err("as a path it begins at the root, not below the target".into());
        }
        for part in path.split(|&byte| byte == b'/') {
            match part {
                b".." => return Err("its part \"..\" leads out of the target".into()),
                b"." => return Err("its part \".\" is not a file name".into()),
                b"" => return Err("it has an empty part, which is not a file name".into()),
                _ if self.style == Style::Folder && part.len() > PART_LEN_MAX => {
                    return Err(format!("a part has {} bytes, names of files have {PART_LEN_MAX} at most", part.len()));
                }
                _ => {}
            }
        }
        if self.style == Style::Folder && path.len() > PATH_LEN_MAX {
            return Err(format!("as a path it has {} bytes, paths have {PATH_LEN_MAX} at most", path.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_of_the_last_part_ends_a_name_unless_the_part_begins_with_it() {
        for (path, name) in
            [("a.b/c.d.e", "a.b/c"), ("a", "a"), ("a.", "a"), (".a", ".a"), ("x/.a.b", "x/.a"), ("x/", "x/")]
        {
            assert_eq!(before_first_dot(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }
}
