//! How a dataset is opened.

/// How a dataset is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Which generation, counted from 0, the oldest; none: the newest.
    pub generation: Option<usize>,
    /// Where sections of the index lie once they are loaded.
    pub index_memory: IndexMemory,
    /// Whether files outside the dataset's parent directory are read, where a dataset that was adopted names them. A
    /// dataset from somebody else could name any file of this machine.
    pub allow_external: bool,
}

/// Where a section of the index lies once it is loaded whole. Until then it is read piece by piece, either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexMemory {
    /// In memory of this process, read once: what happens to the file later changes nothing.
    #[default]
    Owned,
    /// In a map of the file, which processes share and the system may drop and read again. All of it is checked once,
    /// when it is mapped.
    ///
    /// Only for files that nobody touches while they are open: where one is cut short, reading ends the process with
    /// SIGBUS; where one is written to, answers come from bytes that nobody checked.
    Mapped,
}
