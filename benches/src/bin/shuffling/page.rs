//! Puts tables into a page, between its markers.

use std::path::Path;

use crate::Outcome;

/// Replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->`, for each name and table.
pub(crate) fn put(path: &Path, tables: &[(&str, &str)]) -> Outcome<()> {
    let mut page = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (name, table) in tables {
        page = replaced(&page, name, table).ok_or_else(|| format!("{}: no place for {name}", path.display()))?;
    }
    Ok(std::fs::write(path, page)?)
}

fn replaced(page: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_of_that_name_changes() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n<!-- y -->\nkept\n<!-- end of y -->\n";
        let once = replaced(page, "x", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n<!-- y -->\nkept\n<!-- end of y -->\n");
        assert_eq!(replaced(&once, "x", "new").unwrap(), once);
        assert_eq!(replaced(page, "z", "new"), None);
    }
}
