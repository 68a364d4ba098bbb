//! Says on stderr which samples an epoch went on without: `--quiet` does not hide that.

use super::document::Skipped;
use crate::commands::counted;
use crate::printer::Printer;

/// Samples that are named; a file that is damaged all over has thousands.
const NAMED_MAX: usize = 20;

/// Tells how many there are and names the first of them.
pub(crate) fn warn_of(skipped: &[Skipped], printer: &Printer) {
    if skipped.is_empty() {
        return;
    }
    printer.warn(format_args!("{} left out as damaged", counted(skipped.len() as u64, "sample")));
    skipped.iter().take(NAMED_MAX).for_each(|sample| printer.warn(&sample.error));
    let more = skipped.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        printer.warn(format_args!("and {more} more: `--json` lists all"));
    }
}
