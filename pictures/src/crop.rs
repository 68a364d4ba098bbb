//! Which part of a picture is taken.

use crate::draws::Draws;

/// Which part of a picture is taken, before it is scaled to the size of the recipe.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Crop {
    /// All of it; its proportions are not kept.
    Whole,
    /// The picture is scaled until its shorter side has `resize` pixels, and the middle of that is taken.
    Center {
        /// Pixels of the shorter side.
        resize: u32,
    },
    /// A part of random area and proportions at a random place.
    RandomResized {
        /// The part's area, as a fraction of the picture's.
        scale: (f64, f64),
        /// Its width divided by its height.
        ratio: (f64, f64),
    },
}

/// A part of a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A random part, chosen as torchvision's `RandomResizedCrop` does.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, positive, and compared with the picture"
)]
pub(crate) fn random(draws: &mut Draws, width: u32, height: u32, scale: (f64, f64), ratio: (f64, f64)) -> Region {
    let area = f64::from(width) * f64::from(height);
    for _ in 0..10 {
        let target = area * draws.uniform(scale.0, scale.1);
        let aspect = draws.uniform(ratio.0.ln(), ratio.1.ln()).exp();
        let w = (target * aspect).sqrt().round_ties_even();
        let h = (target / aspect).sqrt().round_ties_even();
        if w >= 1.0 && h >= 1.0 && w <= f64::from(width) && h <= f64::from(height) {
            let (w, h) = (w as u32, h as u32);
            let top = draws.below(height - h + 1);
            let left = draws.below(width - w + 1);
            return Region { left, top, width: w, height: h };
        }
    }
    // The largest part in the middle whose proportions are allowed.
    let aspect = f64::from(width) / f64::from(height);
    let (w, h) = if aspect < ratio.0 {
        (width, (f64::from(width) / ratio.0).round_ties_even() as u32)
    } else if aspect > ratio.1 {
        ((f64::from(height) * ratio.1).round_ties_even() as u32, height)
    } else {
        (width, height)
    };
    let (w, h) = (w.clamp(1, width), h.clamp(1, height));
    Region { left: (width - w) / 2, top: (height - h) / 2, width: w, height: h }
}

/// The size of a picture whose shorter side has `resize` pixels, as torchvision's `Resize` rounds it.
pub(crate) fn shorter_side(width: u32, height: u32, resize: u32) -> (u32, u32) {
    let longer = |long: u32, short: u32| {
        let len = u64::from(resize) * u64::from(long) / u64::from(short);
        u32::try_from(len).unwrap_or(u32::MAX)
    };
    if width <= height { (resize, longer(height, width)) } else { (longer(width, height), resize) }
}

/// Where the middle begins, as torchvision's `CenterCrop` rounds it: halves to the even number.
pub(crate) fn middle(len: u32, part: u32) -> u32 {
    let rest = len.saturating_sub(part);
    rest / 2 + u32::from(rest % 4 == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_part_is_inside_and_of_the_area_and_proportions() {
        for bits in 0..2000_u128 {
            let part = random(
                &mut Draws::new(bits.wrapping_mul(0x1234_5678_9ABC_DEF1_2345)),
                500,
                375,
                (0.08, 1.0),
                (0.75, 4.0 / 3.0),
            );
            assert!(part.left + part.width <= 500 && part.top + part.height <= 375, "{part:?}");
            let (w, h) = (f64::from(part.width), f64::from(part.height));
            assert!(w * h >= 0.078 * 500.0 * 375.0 && (0.74..1.35).contains(&(w / h)), "{part:?}");
        }
        let narrow = random(&mut Draws::new(1), 1, 1000, (0.08, 1.0), (0.75, 4.0 / 3.0));
        assert_eq!(narrow, Region { left: 0, top: 499, width: 1, height: 1 });
    }

    #[test]
    fn sides_and_the_middle_are_rounded_as_torchvision_does() {
        assert_eq!(shorter_side(500, 375, 256), (341, 256));
        assert_eq!(shorter_side(375, 500, 256), (256, 341));
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|rest| middle(rest + 10, 10)), [0, 0, 1, 2, 2, 2, 3, 4]);
    }
}
