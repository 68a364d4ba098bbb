//! Which names of a source are taken, as the user has chosen: only some, or all but some.

use std::collections::BTreeSet;

use grainstore_format::{escape_bytes, shown_names};

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

    /// Whether everything is taken.
    pub fn is_all(&self) -> bool {
        self.only.is_empty() && self.exclude.is_empty()
    }

    /// Whether what becomes the key is left out: only where it is named among what is. The names to take say nothing
    /// about the key.
    pub(crate) fn excludes_key(&self, name: &str) -> bool {
        self.exclude.iter().any(|one| one == name)
    }

    /// Checks that every chosen name is one of `known`.
    ///
    /// # Errors
    /// Names the first one that is not, `what` it would be ("feature"), and all that are known.
    pub(crate) fn check<'a>(&self, what: &str, known: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        if self.is_all() {
            return Ok(());
        }
        let known: BTreeSet<&str> = known.into_iter().collect();
        match self.only.iter().chain(&self.exclude).find(|name| !known.contains(name.as_str())) {
            Some(name) => {
                let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
                let name = escape_bytes(name.as_bytes());
                Err(format!("there is no {what} \"{name}\" to choose (there are: {})", shown_names(&known)))
            }
            None => Ok(()),
        }
    }
}
