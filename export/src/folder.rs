//! A folder of plain files: a file for each field of each sample, and `attributes.jsonl` unless the names of folders
//! already hold the attributes.
//!
//! Files are written by all threads and synced together at the end (`syncfs`): a sync for each of a million small files
//! would be a million waits for the device, and none of them helps before the folder has its final name.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grainstore_format::escape_bytes;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::Value;

use crate::ExportError;
use crate::fetch::{ExportedSample, Fetched};
use crate::index_pass::{self, Indexed};
use crate::job::ExportJob;
use crate::labels::LabelsByFolder;
use crate::names::{NameCheck, Naming, Style};
use crate::read_groups::ReadGroups;
use crate::whole_folder::WholeFolder;
use crate::{json, labels, workers};

/// The file that lists the attributes.
const LIST: &str = "attributes.jsonl";
/// The member of each line that names the sample.
const PATH: &str = "path";

/// The plan of a folder export: how files are named, and whether there is a list.
pub(crate) struct Folder {
    naming: Naming,
    has_list: bool,
    /// Samples whose key is not UTF-8.
    escaped_count: u64,
    /// The note on names that the list has no place for.
    names_left_out: Option<String>,
}

/// The open folder. Files are created relative to it, even if its path changes meanwhile.
struct Root<'a> {
    fd: OwnedFd,
    path: &'a Path,
}

impl Folder {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let naming = Naming::new(job, Style::Folder)?;
        let attributes = job.schema().attributes();
        let mut names = NameCheck::new(job, &naming);
        let mut labels = LabelsByFolder::new(job)?;
        let mut list_like = None;
        let mut escaped_count = 0;
        let mut unfit = None;
        index_pass::each(job, |sample| {
            names.look(&sample, &[])?;
            labels.look(&sample);
            if unfit.is_none() {
                unfit = json::check(attributes, &sample).err();
            }
            escaped_count += u64::from(sample.key.as_deref().is_some_and(|key| std::str::from_utf8(key).is_err()));
            if list_like.is_none() && sample.key.as_deref().is_some_and(is_list_like) {
                list_like = sample.key.map(|key| (sample.ordinal, key));
            }
            Ok(())
        })?;
        let has_list = !attributes.is_empty() && !labels.holds();
        if let Some((ordinal, key)) = list_like.filter(|_| has_list) {
            let why = format!("the attributes of all samples are stored in the file {LIST}");
            return Err(ExportError::BadName { ordinal, key, why });
        }
        if has_list && attributes.iter().any(|attribute| attribute.name == PATH) {
            let what = format!("attribute \"{PATH}\": {LIST} has the path of a sample under this name");
            return Err(ExportError::Unfit { what });
        }
        unfit.filter(|_| has_list).map_or(Ok(()), Err)?;
        let names_left_out = if has_list { labels::names_left_out(job)? } else { None };
        Ok(Self { naming, has_list, escaped_count, names_left_out })
    }

    fn write_files(&self, job: &ExportJob<'_>, root: &Root<'_>) -> Result<(), ExportError> {
        let ordinals = job.selection.ordinals(0..job.selection.len());
        let groups = Mutex::new(ReadGroups::new(job.collection(), ordinals));
        workers::run(job, job.thread_count(), || {
            loop {
                job.go_on()?;
                let group = groups.lock().unwrap_or_else(PoisonError::into_inner).next_group()?;
                let Some(group) = group else { return Ok(()) };
                Fetched::read(job, group)?.each(job, |sample| self.write_sample(job, root, sample))?;
            }
        })
    }

    fn write_sample(
        &self,
        job: &ExportJob<'_>,
        root: &Root<'_>,
        sample: &mut ExportedSample<'_>,
    ) -> Result<(), ExportError> {
        let stem = self.naming.stem(sample.facts.ordinal, sample.facts.key.as_deref());
        let mut file_count = 0;
        for (number, range) in sample.facts.fields.iter().enumerate() {
            let Some(range) = range else { continue };
            let name = self.naming.file(&stem, number);
            let mut file = root.create(&name)?;
            sample
                .payload
                .copy(range, &mut file)
                .map_err(|error| ExportError::io("write it", &root.of(&name))(error))?;
            file_count += 1;
        }
        job.made_files(file_count);
        Ok(())
    }

    /// Writes one line for each sample, with null for missing values.
    fn write_list(&self, job: &ExportJob<'_>, root: &Root<'_>) -> Result<(), ExportError> {
        let path = root.of(LIST.as_bytes());
        let mut out = BufWriter::with_capacity(1 << 16, root.create(LIST.as_bytes())?);
        let skipped: HashSet<u64> = job.skipped_ordinals();
        index_pass::each(job, |sample| {
            if skipped.contains(&sample.ordinal) {
                return Ok(());
            }
            let line = self.line(job, &sample);
            line.and_then(|line| writeln!(out, "{line}")).map_err(ExportError::io("write it", &path))
        })?;
        out.flush().map_err(ExportError::io("write it", &path))?;
        job.made_files(1);
        Ok(())
    }

    fn line(&self, job: &ExportJob<'_>, sample: &Indexed) -> io::Result<String> {
        let schema = job.schema();
        let stem = self.naming.stem(sample.ordinal, sample.key.as_deref());
        // With several fields, the common start of the names of their files.
        let path = if schema.fields().len() == 1 { self.naming.file(&stem, 0) } else { stem };
        let path = std::str::from_utf8(&path).map_or_else(|_| escape_bytes(&path), str::to_owned);
        let mut members = vec![(PATH, path.into())];
        for (attribute, value) in schema.attributes().iter().zip(&sample.attributes) {
            let value = match value {
                Some(value) => json::accepted(value)?,
                None => Value::Null,
            };
            members.push((attribute.name.as_str(), value));
        }
        Ok(json::object(members.into_iter()))
    }

    fn notes(&self) -> Vec<String> {
        let count = self.escaped_count;
        let are = if self.escaped_count == 1 { "key is" } else { "keys are" };
        let escaped = format!("{count} {are} not UTF-8, and escaped in {LIST}; the files have the bytes of the keys");
        let escaped = (self.has_list && count > 0).then_some(escaped);
        escaped.into_iter().chain(self.names_left_out.clone()).collect()
    }
}

impl WholeFolder for Folder {
    fn write(self, job: &ExportJob<'_>, folder: &Path) -> Result<Vec<String>, ExportError> {
        let root = Root::open(folder)?;
        self.write_files(job, &root)?;
        if self.has_list {
            self.write_list(job, &root)?;
        }
        job.events.on_finish();
        root.sync()?;
        Ok(self.notes())
    }
}

/// Whether the file of a sample with this key would be the list, or be in a folder of that name.
fn is_list_like(key: &[u8]) -> bool {
    let rest = key.strip_prefix(LIST.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}

impl<'a> Root<'a> {
    fn open(path: &'a Path) -> Result<Self, ExportError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty());
        Ok(Self { fd: fd.map_err(|errno| ExportError::io("open it", path)(errno.into()))?, path })
    }

    /// A path below it, for messages.
    fn of(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
    }

    /// Creates a file, and its parent folders.
    fn create(&self, name: &[u8]) -> Result<File, ExportError> {
        let created = match self.open_new(name) {
            Err(Errno::NOENT) => self.make_folders(name).and_then(|()| self.open_new(name)),
            other => other,
        };
        created.map(File::from).map_err(|errno| ExportError::io("create it", &self.of(name))(errno.into()))
    }

    /// Creates a file without following links.
    fn open_new(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        #[cfg(target_os = "linux")]
        match rustix::fs::openat2(
            &self.fd,
            name,
            flags,
            mode,
            rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS,
        ) {
            // Old kernels do not have `openat2`, and some sandboxes refuse it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
        rustix::fs::openat(&self.fd, name, flags, mode)
    }

    fn make_folders(&self, name: &[u8]) -> Result<(), Errno> {
        let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for folder in slashes.filter_map(|(position, _)| name.get(..position)) {
            match rustix::fs::mkdirat(&self.fd, folder, Mode::from_raw_mode(0o777)) {
                // Another thread may have created it. If it is not a folder, creating the file fails.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes everything below it durable.
    fn sync(&self) -> Result<(), ExportError> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&self.fd).map_err(|errno| ExportError::io("sync it", self.path)(errno.into()))?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        Ok(())
    }
}
