//! The folder that a demo works in: created for it, and removed with the files of the demo, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use grainstore_format::shown_path;

/// The names that a demo may create in its folder, and removes.
const MADE: [&str; 5] = ["small", "large", "small.grain", "large.grain", "demo.grain"];

/// Maximum number of names to try.
const NAMES: u32 = 100;

/// A new folder `grainstore-demo...`. It is removed on drop unless it is to be kept.
#[derive(Debug)]
pub(crate) struct Workplace {
    path: PathBuf,
    kept: bool,
}

impl Workplace {
    /// Makes a folder inside `parent`.
    ///
    /// # Errors
    /// If nothing can be made there.
    pub(crate) fn create(parent: &Path) -> anyhow::Result<Self> {
        for number in 0..NAMES {
            let suffix = if number == 0 { String::new() } else { format!("-{number}") };
            let path = parent.join(format!("grainstore-demo{suffix}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, kept: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make {}", shown_path(&path))),
            }
        }
        bail!("{}: contains {NAMES} folders of earlier demos", shown_path(parent))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the generated files named `name` go.
    pub(crate) fn files(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the dataset of the files named `name` goes.
    pub(crate) fn dataset(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.grain"))
    }

    /// Keeps everything.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Removes what the demo made. Other files in the folder stay, and then the folder stays too.
    fn remove(&self) -> io::Result<()> {
        for path in MADE.map(|name| self.path.join(name)) {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::remove_dir(&self.path)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !self.kept {
            // The caller checks whether the folder still exists.
            let _ = self.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(parent: &Path) -> Workplace {
        let workplace = Workplace::create(parent).unwrap();
        for folder in [workplace.files("small").join("class"), workplace.dataset("small")] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("x"), "x").unwrap();
        }
        workplace
    }

    #[test]
    fn each_demo_has_a_folder_of_its_own_and_takes_it_away() {
        let parent = tempfile::tempdir().unwrap();
        let first = filled(parent.path());
        let second = filled(parent.path());
        assert_ne!(first.path(), second.path());
        drop(first);
        assert!(second.dataset("small").exists());
        drop(second);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_else_put_there_stays() {
        let parent = tempfile::tempdir().unwrap();
        let workplace = filled(parent.path());
        let path = workplace.path().to_path_buf();
        fs::write(path.join("mine"), "x").unwrap();
        drop(workplace);
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);
    }

    #[test]
    fn a_kept_folder_keeps_everything() {
        let parent = tempfile::tempdir().unwrap();
        let mut workplace = filled(parent.path());
        workplace.keep();
        let files = workplace.files("small");
        let dataset = workplace.dataset("small");
        drop(workplace);
        assert!(files.join("class/x").exists() && dataset.join("x").exists());
    }
}
