//! The one `hint:` line below an error: a flag or a command to try.
//!
//! A command attaches its own hint with [`WithHint::hint`]; errors of the libraries get theirs here.

use std::fmt;

use grainstore_format::FormatError;
use grainstore_reader::engine::{self, EngineError};
use grainstore_reader::plan::PlanError;
use grainstore_reader::{ReadError, SelectError, StateError};
use grainstore_store::StoreError;

use crate::printer::on_one_line;

/// An error with a hint. It shows its whole chain itself, so it is the last link of the chain around it.
#[derive(Debug)]
struct Hinted {
    error: anyhow::Error,
    hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&on_one_line(self.error.as_ref()))
    }
}

impl std::error::Error for Hinted {}

/// Attaches a hint to an error.
pub(crate) trait WithHint<T> {
    /// The same, and where it is an error the line `hint: ...` is printed below it.
    ///
    /// # Errors
    /// The error that it was.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithHint<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| Hinted { error: error.into(), hint: hint.into() }.into())
    }
}

/// The hint for an error, if there is one.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|link| {
        if let Some(hinted) = link.downcast_ref::<Hinted>() {
            return Some(hinted.hint.clone());
        }
        if let Some(FormatError::TooNew { .. } | FormatError::UnknownFeature { .. }) = link.downcast_ref() {
            return Some("upgrade grainstore".to_owned());
        }
        // A transparent error hides what it wraps from the chain, so it is unwrapped here.
        match link.downcast_ref() {
            Some(ReadError::Store(store)) => hint_of_store(store),
            Some(ReadError::Engine(engine)) => hint_of_engine(engine),
            Some(ReadError::Plan(plan)) => hint_of_plan(plan),
            Some(ReadError::State(state)) => hint_of_state(state),
            Some(read) => hint_of_read(read),
            None => (link.downcast_ref().and_then(hint_of_store))
                .or_else(|| link.downcast_ref().and_then(hint_of_select))
                .or_else(|| link.downcast_ref().and_then(hint_of_engine))
                .or_else(|| link.downcast_ref().and_then(hint_of_state)),
        }
    })
}

fn hint_of_read(error: &ReadError) -> Option<String> {
    let hint = match error {
        ReadError::NoMemory { .. } => "a smaller `--window` or `--batch-size` needs less",
        ReadError::Option { what } => return hint_of_option(what),
        ReadError::Stalled { .. } => {
            "if the device or the network is only slow, a longer `--timeout` waits for it; the system's log (`dmesg`) \
             tells of one that fails"
        }
        ReadError::Closed { source: engine::FileError::Map { .. } } => "`--io auto` reads without mapping files",
        ReadError::Unreadable { source: engine::FileError::EndOfFile { .. }, .. } => {
            "the file has been cut short: `grainstore verify` lists everything that is damaged"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// An option that cannot be is named by the first word.
fn hint_of_option(what: &str) -> Option<String> {
    let hint = match what.split(' ').next() {
        Some("window") => "`--window` is 256M where it is not given; `--order full` needs none",
        Some("queue") => "`--queue` is 8M where it is not given",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn hint_of_plan(error: &PlanError) -> Option<String> {
    let hint = match error {
        PlanError::NoRanks => "`--world` is 1 where it is not given: one rank that reads everything",
        PlanError::RankOutOfRange { .. } => "`--world` is the number of ranks, `--rank` counts them from 0",
        PlanError::LanesOutOfRange { .. } => "without `--lanes` their number follows from `--window`",
        PlanError::EmptySubset => {
            "`grainstore ls` lists the ordinal, key and attributes of every sample, which `--subset` chooses by"
        }
        PlanError::PaddingTooLong { .. } => "`--tail short` and `--tail drop` repeat nothing",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn hint_of_select(error: &SelectError) -> Option<String> {
    match error {
        SelectError::Unfit { what, .. } if what.starts_with("no class ") => {
            Some("`grainstore inspect --json` lists all class names".to_owned())
        }
        SelectError::Unfit { what, .. } if what.ends_with(" from 0 to 1") => {
            Some("'key_hash < 0.9' is nine tenths of the samples".to_owned())
        }
        SelectError::Unfit { .. } => Some("`grainstore inspect` lists the attributes and their types".to_owned()),
        SelectError::Store(store) => hint_of_store(store),
        _ => None,
    }
}

fn hint_of_state(error: &StateError) -> Option<String> {
    const ANEW: &str = "another `--state` file begins anew";
    match error {
        StateError::Malformed { .. } => {
            Some("the file is cut short, or not a state: delete it to begin the epoch anew, or name another".to_owned())
        }
        StateError::TooNew { .. } => Some("upgrade grainstore".to_owned()),
        StateError::OfOther { what: "dataset", .. } => Some(ANEW.to_owned()),
        StateError::OfOther { what: "subset", found, .. } if found == "all samples" => {
            Some(format!("run it without `--subset` to go on with it; {ANEW}"))
        }
        StateError::OfOther { what: "subset", .. } => {
            Some(format!("the `--subset` that it was begun with goes on with it; {ANEW}"))
        }
        StateError::OfOther { what, found, .. } => Some(format!("`--{what} {found}` goes on with it; {ANEW}")),
        _ => None,
    }
}

fn hint_of_engine(error: &EngineError) -> Option<String> {
    matches!(error, EngineError::Refused { .. }).then(|| "`--engine auto` reads with threads instead".to_owned())
}

fn hint_of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::NoSuchOrdinal { sample_count, .. } if *sample_count > 0 => {
            Some(format!("ordinals go from 0 to {}", sample_count - 1))
        }
        StoreError::NotFound { path } | StoreError::Format { path, .. } | StoreError::Mismatch { path, .. }
            if path.extension().is_some_and(|end| end == "idx") =>
        {
            Some("`grainstore rebuild-index` makes the index again from the segments".to_owned())
        }
        StoreError::Outside { .. } => Some(
            "`--allow-external`, or GRAINSTORE_ALLOW_EXTERNAL=1, reads such files; a dataset can name any, so allow it \
             only where you trust this one"
                .to_owned(),
        ),
        StoreError::Sample { .. } => Some("`grainstore verify` lists everything that is damaged".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_hint_is_found_through_context_and_the_text_stays_whole() {
        let error =
            Err::<(), _>(anyhow!("inner").context("outer")).hint("try --this").context("outermost").unwrap_err();
        assert_eq!(format!("{error:#}"), "outermost: outer: inner");
        assert_eq!(hint_of(&error).as_deref(), Some("try --this"));
    }

    #[test]
    fn an_ordinal_out_of_range_is_answered_with_the_range() {
        let error = StoreError::NoSuchOrdinal { ordinal: 9, sample_count: 4 }.into();
        assert_eq!(hint_of(&error).as_deref(), Some("ordinals go from 0 to 3"));
    }

    #[test]
    fn a_file_outside_is_answered_with_what_allows_it() {
        let outside = || StoreError::Outside { path: "a.grain".into(), target: "/x.tar".into() };
        for error in [outside().into(), ReadError::from(outside()).into()] {
            assert!(hint_of(&error).is_some_and(|hint| hint.starts_with("`--allow-external`, ")));
        }
    }

    #[test]
    fn an_option_that_cannot_be_is_answered_with_its_flag() {
        let hint = |what: &str| hint_of(&ReadError::Option { what: what.to_owned() }.into());
        assert!(hint("window is 1 bytes, expected 9 or more").is_some_and(|hint| hint.starts_with("`--window` ")));
        assert!(hint("queue is 0 bytes, expected 1 or more").is_some_and(|hint| hint.starts_with("`--queue` ")));
        assert_eq!(hint("colour is red, expected blue"), None);
    }

    #[test]
    fn a_read_that_does_not_come_is_answered_with_the_timeout() {
        let error = ReadError::Stalled { path: "a.seg".into(), range: 0..1, timeout: Duration::from_secs(3) };
        assert!(hint_of(&error.into()).is_some_and(|hint| hint.contains("`--timeout`")));
    }

    #[test]
    fn a_refused_engine_is_answered_whether_the_reader_or_the_bench_asked_for_it() {
        let refused = || EngineError::Refused { why: "no".to_owned() };
        let hints = [hint_of(&refused().into()), hint_of(&ReadError::from(refused()).into())];
        assert!(hints.iter().flatten().all(|hint| hint.starts_with("`--engine auto` ")));
        assert_eq!(hints.iter().flatten().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_mapped_or_was_cut_short_is_answered() {
        let path: Arc<Path> = Path::new("a.seg").into();
        let source = engine::FileError::Map { path: Arc::clone(&path), source: ErrorKind::OutOfMemory.into() };
        assert!(hint_of(&ReadError::Closed { source }.into()).is_some_and(|hint| hint.starts_with("`--io auto`")));
        let source = engine::FileError::EndOfFile { path, range: 0..9, file_len: 5 };
        let error = ReadError::Unreadable { ordinal: 1, key: None, source };
        assert!(hint_of(&error.into()).is_some_and(|hint| hint.contains("`grainstore verify`")));
    }

    #[test]
    fn a_state_of_another_epoch_is_answered_by_the_flag_that_goes_on_with_it() {
        let of = |what, found: &str| StateError::OfOther { what, found: found.to_owned(), expected: String::new() };
        let hint = |error: StateError| hint_of(&ReadError::from(error).into()).unwrap();
        assert_eq!(hint(of("lanes", "24")), "`--lanes 24` goes on with it; another `--state` file begins anew");
        assert_eq!(hint(of("dataset", "ab")), "another `--state` file begins anew");
        assert_eq!(hint(StateError::TooNew { found: 2 }), "upgrade grainstore");
        assert!(
            hint(StateError::Malformed { why: String::new() }).starts_with("the file is cut short, or not a state")
        );
        let all = of("subset", "all samples");
        assert!(hint(all).starts_with("run it without `--subset`"));
        assert!(hint(of("subset", "ab")).starts_with("the `--subset` that it was begun with"));
    }

    #[test]
    fn a_class_that_there_is_not_is_answered_by_where_all_are() {
        let unfit = |what: &str| SelectError::Unfit {
            path: "a.grain".into(),
            name: "label".into(),
            column: 1,
            what: what.to_owned(),
        };
        let hint = |what: &str| hint_of(&unfit(what).into()).unwrap();
        assert!(hint("no class \"catt\" among the 4 class_names").starts_with("`grainstore inspect --json`"));
        assert!(hint("no such attribute").starts_with("`grainstore inspect` "));
    }

    #[test]
    fn most_errors_have_no_hint() {
        assert_eq!(hint_of(&anyhow!("no")), None);
    }
}
