//! Which names of a source are taken, as the user has chosen: only some, or all but some.

use grainstore_format::escape_bytes;

/// Names to take, and names to leave out. Empty lists take everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Takes these alone; all where it is empty.
    pub only: Vec<String>,
    /// Leaves these out.
    pub exclude: Vec<String>,
}

impl Chosen {
    /// Whether something that has these names is taken: its name in the source, and its name in the dataset.
    pub(crate) fn takes(&self, names: [&str; 2]) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| names.contains(&name.as_str()));
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.exclude)
    }

    /// Checks that every chosen name is one that `knows` knows.
    ///
    /// # Errors
    /// Names the first one that is not, and `what` it would be: "feature".
    pub(crate) fn check(&self, what: &str, knows: impl Fn(&str) -> bool) -> Result<(), String> {
        match self.only.iter().chain(&self.exclude).find(|name| !knows(name)) {
            Some(name) => Err(format!("there is no {what} \"{}\" to choose", escape_bytes(name.as_bytes()))),
            None => Ok(()),
        }
    }
}
