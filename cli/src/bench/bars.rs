//! Bars: a share as a row of cells that can be compared at a glance.

use std::env;

/// Cells of a bar.
pub(crate) const CELL_COUNT: usize = 16;

/// The characters that bars are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// Full blocks, and a last one in eighths.
    Blocks,
    /// Hash signs, for terminals that may know nothing else.
    Hashes,
}

impl Cells {
    /// Chooses the characters that the locale of this process allows.
    pub(crate) fn of_locale() -> Self {
        Self::of(|name| env::var(name).ok())
    }

    /// The first of these variables that is set decides, as in POSIX.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
        let name = locale.unwrap_or_default().to_ascii_uppercase();
        if name.contains("UTF-8") || name.contains("UTF8") { Self::Blocks } else { Self::Hashes }
    }

    /// A share from 0 to 1, padded to [`CELL_COUNT`] cells; more than 1 fills them all.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number, not negative")]
    pub(crate) fn bar(self, share: f64) -> String {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let bar = match self {
            Self::Hashes => "#".repeat((share * CELL_COUNT as f64).round() as usize),
            Self::Blocks => {
                let eighths = (share * (8 * CELL_COUNT) as f64).round() as usize;
                let last = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
                "█".repeat(eighths / 8) + last
            }
        };
        format!("{bar:<CELL_COUNT$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_as_many_cells_as_its_share_and_always_the_same_width() {
        for (share, blocks, hashes) in [(0.0, "", ""), (1.0 / 128.0, "▏", ""), (0.5, "████████", "########")]
        {
            assert_eq!(Cells::Blocks.bar(share).trim_end(), blocks);
            assert_eq!(Cells::Hashes.bar(share).trim_end(), hashes);
        }
        for share in [-1.0, 0.03, 0.999, 1.0, 7.5, f64::NAN, f64::INFINITY] {
            for cells in [Cells::Blocks, Cells::Hashes] {
                assert_eq!(cells.bar(share).chars().count(), CELL_COUNT, "{share}");
            }
        }
        assert_eq!(Cells::Hashes.bar(1.7), "#".repeat(CELL_COUNT));
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let of = |variables: &[(&str, &str)]| {
            Cells::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[("LANG", "de_DE.UTF-8")]), Cells::Blocks);
        assert_eq!(of(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]), Cells::Blocks);
        assert_eq!(of(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]), Cells::Hashes);
        assert_eq!(of(&[]), Cells::Hashes);
    }
}
