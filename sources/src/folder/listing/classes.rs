//! Classes from folders, as in ImageNet: one folder for each class, with the files directly inside.

/// The classes of a folder whose files are all at `class/file`, numbered from 0 in the order of their names.
#[derive(Clone, Debug)]
pub struct Classes {
    names: Vec<Box<[u8]>>,
    /// The first file of each class and the class, in the order of files. The order of names differs:
    /// `a-b/1` is before `a/1`, but `a` is before `a-b`.
    runs: Vec<(usize, u32)>,
    file_count: usize,
}

impl Classes {
    /// The classes of sorted paths; `None` where a path is not exactly `class/file`.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut runs: Vec<(usize, &[u8])> = Vec::new();
        let mut file_count = 0;
        for path in paths {
            let class = class_name(path)?;
            // The files of a class share the prefix `class/`, so they are next to each other in sorted paths.
            if runs.last().is_none_or(|&(_, last)| last != class) {
                runs.push((file_count, class));
            }
            file_count += 1;
        }
        Self::number(&runs, file_count)
    }

    /// Numbers the runs by name. `None` where there are more classes than a `u32` counts.
    fn number(runs: &[(usize, &[u8])], file_count: usize) -> Option<Self> {
        let mut by_name: Vec<(&[u8], usize)> = runs.iter().enumerate().map(|(run, &(_, name))| (name, run)).collect();
        by_name.sort_unstable();
        let mut numbered: Vec<(usize, u32)> = runs.iter().map(|&(first, _)| (first, 0)).collect();
        for (class, &(_, run)) in by_name.iter().enumerate() {
            numbered[run].1 = u32::try_from(class).ok()?;
        }
        let names = by_name.into_iter().map(|(name, _)| name.into()).collect();
        Some(Self { names, runs: numbered, file_count })
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no classes; never true of what [`Listing::classes`](super::Listing::classes) returns.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names of all classes in the order of their numbers, as bytes.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }

    /// The class of a file of the listing.
    ///
    /// # Panics
    /// When `index` is not below the listing's [`Listing::len`](super::Listing::len).
    pub fn class_of(&self, index: usize) -> u32 {
        assert!(index < self.file_count, "file {index} of {}", self.file_count);
        // The first run begins at file 0, so at least one run is counted.
        let run = self.runs.partition_point(|&(first, _)| first <= index) - 1;
        self.runs[run].1
    }
}

/// `class` of exactly `class/file`.
fn class_name(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().position(|&byte| byte == b'/')?;
    let (class, file) = path.split_at(slash);
    (!file[1..].contains(&b'/')).then_some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(paths: &[&str]) -> Option<Classes> {
        assert!(paths.is_sorted());
        Classes::of(paths.iter().map(|path| path.as_bytes()))
    }

    #[test]
    fn classes_are_numbered_by_name_even_where_files_are_in_another_order() {
        let classes = classes(&["a-b/1", "a/1", "a/2", "c/1"]).unwrap();
        assert_eq!((0..4).map(|index| classes.class_of(index)).collect::<Vec<_>>(), [1, 0, 0, 2]);
        assert_eq!(classes.names().collect::<Vec<_>>(), [&b"a"[..], b"a-b", b"c"]);
        assert_eq!(classes.len(), 3);
    }

    #[test]
    fn one_file_beside_the_classes_or_deeper_means_no_classes() {
        assert!(classes(&["a/1", "b"]).is_none());
        assert!(classes(&["a/1", "b/sub/1"]).is_none());
        assert!(classes(&["1", "2"]).is_none());
    }

    #[test]
    #[should_panic(expected = "file 2 of 2")]
    fn asking_for_the_class_of_a_file_past_the_end_panics() {
        classes(&["a/1", "b/1"]).unwrap().class_of(2);
    }
}
