//! Prints on stderr which samples an epoch skipped: `--quiet` does not hide that.

use super::document::Skipped;
use crate::printer::Printer;
use crate::sizes::counted;

/// Number of samples that are named; a badly damaged file has thousands.
const NAMED_MAX: usize = 20;

/// Prints how many there are and names the first of them.
pub(crate) fn warn_of(skipped: &[Skipped], printer: &Printer) {
    if skipped.is_empty() {
        return;
    }
    printer.warn(format_args!("{} skipped as damaged", counted(skipped.len() as u64, "sample")));
    skipped.iter().take(NAMED_MAX).for_each(|sample| printer.warn(&sample.error));
    let more = skipped.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        printer.warn(format_args!("and {more} more: `--json` lists all"));
    }
}
