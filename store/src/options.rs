//! How a dataset is opened.

/// How a dataset is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The generation, counted from the oldest, which is 0; `None`: the newest.
    pub generation: Option<usize>,
    /// Where sections of the index are held once they are loaded.
    pub index_memory: IndexMemory,
    /// Whether an adopted dataset may read files outside its parent directory. A dataset from an untrusted origin could
    /// name any file of this machine.
    pub allow_external: bool,
}

/// Where a section of the index is held once it is loaded. Until then it is read in pieces, in both cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexMemory {
    /// In memory of this process, read once: later changes of the file have no effect.
    #[default]
    Owned,
    /// In a map of the file, which processes share and the system may drop and read again. All of it is checked once,
    /// when it is mapped.
    ///
    /// Only for files that nobody changes while they are open: if a file is truncated, reading ends the process with
    /// SIGBUS; if it is overwritten, answers come from bytes that were not checked.
    Mapped,
}
