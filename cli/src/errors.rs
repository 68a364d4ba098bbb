//! Errors as text, and the error for a mistake of the command itself.

use std::error::Error;

/// A state that our own code cannot reach: a failed assertion where assertions are on, else an error.
#[cold]
pub(crate) fn bug(what: &'static str) -> anyhow::Error {
    debug_assert!(false, "{what}");
    anyhow::anyhow!("internal error: {what}; please report it")
}

/// The chain of causes, outermost first; a cause that the outer text already includes is not repeated.
pub(crate) fn on_one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(link) = next {
        next = link.source();
        let cause = link.to_string().replace('\n', " ");
        if !text.ends_with(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_shown_once_even_if_the_error_around_it_includes_it() {
        let error = anyhow::anyhow!("inner\nend").context("file: inner end").context("outer");
        assert_eq!(on_one_line(error.as_ref()), "outer: file: inner end");
    }
}
