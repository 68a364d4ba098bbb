//! Pictures: any bytes give pixels or an error, and the same ones each time.

use grainstore_pictures::{Crop, Decoder, Layout, Recipe, RecipeOptions};

/// Larger ones would only take time.
const PIXELS_MAX: u64 = 1 << 16;

/// The first byte chooses the recipe, the second what is random; the rest is the picture.
pub fn pictures(data: &[u8]) {
    let [how, bits, bytes @ ..] = data else { return };
    let crop = match how & 3 {
        0 => Crop::Whole,
        1 => Crop::Center { resize: 9 },
        _ => Crop::RandomResized { scale: (0.08, 1.0), ratio: (0.75, 4.0 / 3.0) },
    };
    let layout = if how & 4 == 0 { Layout::Interleaved } else { Layout::Planar };
    let options =
        RecipeOptions { mirror: 0.5, layout, reduce: how & 8 != 0, pixels_max: PIXELS_MAX, ..RecipeOptions::default() };
    let recipe = Recipe::new(8, 7, crop, options).unwrap();
    let bits = u128::from(*bits) * (u128::MAX / 255);
    let mut decoder = Decoder::new();
    let mut first = vec![0x55; recipe.byte_len()];
    let is_decoded = decoder.decode(&recipe, bytes, bits, &mut first).is_ok();
    // A decoder that has decoded something keeps nothing of it but memory.
    let mut second = vec![0xAA; recipe.byte_len()];
    assert_eq!(decoder.decode(&recipe, bytes, bits, &mut second).is_ok(), is_decoded);
    assert!(!is_decoded || first == second, "the pixels differ at the second time");
}
