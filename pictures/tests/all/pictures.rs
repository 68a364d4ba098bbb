use grainstore_pictures::{Crop, Decoder, Layout, PictureError, Recipe, RecipeError, RecipeOptions};

/// A PNG of one colour channel each: 6 x 4 pixels that tell their column and row.
fn numbered() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 6, 4);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let pixels: Vec<u8> = (0..24).flat_map(|number| [number % 6, number / 6, 9]).collect();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

fn decoded(recipe: &Recipe, bytes: &[u8], bits: u128) -> Result<Vec<u8>, PictureError> {
    let mut pixels = vec![0; recipe.byte_len()];
    Decoder::new().decode(recipe, bytes, bits, &mut pixels)?;
    Ok(pixels)
}

#[test]
fn pixels_are_mirrored_and_laid_out_as_the_recipe_says() {
    let bytes = numbered();
    let plain = Recipe::new(4, 6, Crop::Whole, RecipeOptions::default()).unwrap();
    let pixels = decoded(&plain, &bytes, 0).unwrap();
    assert_eq!(pixels[..6], [0, 0, 9, 1, 0, 9]);
    let options = RecipeOptions { mirror: 1.0, layout: Layout::Planar, ..RecipeOptions::default() };
    let planes = decoded(&Recipe::new(4, 6, Crop::Whole, options).unwrap(), &bytes, 0).unwrap();
    assert_eq!(planes[..6], [5, 4, 3, 2, 1, 0]);
    assert_eq!(planes[24..31], [0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(planes[48..], [9; 24]);
}

#[test]
fn a_recipe_that_makes_no_sense_is_refused() {
    let made = |height, crop, options| Recipe::new(height, 8, crop, options).unwrap_err();
    assert!(matches!(made(0, Crop::Whole, RecipeOptions::default()), RecipeError::Size { height: 0, .. }));
    assert!(matches!(made(9, Crop::Center { resize: 8 }, RecipeOptions::default()), RecipeError::Shorter { .. }));
    for scale in [(0.0, 1.0), (0.5, 0.4), (0.5, 1.5), (f64::NAN, 1.0)] {
        let crop = Crop::RandomResized { scale, ratio: (1.0, 1.0) };
        assert!(matches!(made(8, crop, RecipeOptions::default()), RecipeError::Range { .. }), "{scale:?}");
    }
    let often = RecipeOptions { mirror: 1.5, ..RecipeOptions::default() };
    assert_eq!(made(8, Crop::Whole, often), RecipeError::Probability(1.5));
}

#[test]
fn bytes_that_are_no_whole_picture_are_an_error() {
    let recipe = Recipe::new(4, 4, Crop::Whole, RecipeOptions::default()).unwrap();
    assert!(matches!(decoded(&recipe, b"", 0), Err(PictureError::UnknownFormat { .. })));
    assert!(matches!(decoded(&recipe, b"GIF89a", 0), Err(PictureError::UnknownFormat { .. })));
    assert!(matches!(decoded(&recipe, &[0xFF, 0xD8, 0xFF], 0), Err(PictureError::Truncated)));
    let bytes = numbered();
    for len in 12..bytes.len() - 16 {
        assert!(decoded(&recipe, &bytes[..len], 0).is_err(), "{len} bytes");
    }
    let small = RecipeOptions { pixels_max: 23, ..RecipeOptions::default() };
    let refused = decoded(&Recipe::new(4, 4, Crop::Whole, small).unwrap(), &bytes, 0);
    assert!(matches!(refused, Err(PictureError::TooLarge { width: 6, height: 4, max: 23 })));
}
