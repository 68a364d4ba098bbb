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

/// A chunk of a RIFF file.
fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_le_bytes();
    let pad = vec![0; content.len() % 2];
    [name, &len[..], content, &pad].concat()
}

/// A WebP of 16 x 16 pixels with these chunks.
fn webp(is_animated: bool, chunks: &[Vec<u8>]) -> Vec<u8> {
    let flags = if is_animated { 0x12 } else { 0x10 };
    let header = chunk(b"VP8X", &[flags, 0, 0, 0, 15, 0, 0, 15, 0, 0]);
    chunk(b"RIFF", &[b"WEBP", header.as_slice(), &chunks.concat()].concat())
}

/// The beginning of a lossy frame of so many pixels each way.
fn lossy(side: u16) -> Vec<u8> {
    let side = side.to_le_bytes();
    let mut frame = vec![0x10, 0, 0, 0x9D, 0x01, 0x2A, side[0], side[1], side[0], side[1]];
    frame.resize(4000, 0);
    chunk(b"VP8 ", &frame)
}

#[test]
fn a_lossy_frame_of_another_size_than_its_place_is_refused_before_it_is_decoded() {
    let recipe = Recipe::new(4, 4, Crop::Whole, RecipeOptions::default()).unwrap();
    let alpha = chunk(b"ALPH", &[0, 255]);
    for side in [0, 32, 16_383] {
        let frame = [&[0; 12][..], &[100, 0, 0, 0], &alpha, &lossy(side)].concat();
        let animated = webp(true, &[chunk(b"ANIM", &[0; 6]), chunk(b"ANMF", &frame)]);
        let still = webp(false, &[alpha.clone(), lossy(side)]);
        for (bytes, place) in [(animated, "1 x 1"), (still, "16 x 16")] {
            let error = decoded(&recipe, &bytes, 0).unwrap_err().to_string();
            assert_eq!(error, format!("WebP: a frame of {side} x {side} pixels, expected {place}"));
        }
    }
}

#[test]
fn a_thin_picture_is_not_scaled_to_more_pixels_than_are_allowed() {
    let mut bytes = Vec::new();
    let mut writer = png::Encoder::new(&mut bytes, 1, 5000).write_header().unwrap();
    writer.write_image_data(&[7; 5000]).unwrap();
    writer.finish().unwrap();
    let small = RecipeOptions { pixels_max: 1_000_000, ..RecipeOptions::default() };
    let center = |resize| Recipe::new(8, 8, Crop::Center { resize }, small).unwrap();
    let error = decoded(&center(256), &bytes, 0).unwrap_err();
    assert!(matches!(error, PictureError::TooThin { full_width: 256, full_height: 1_280_000, .. }), "{error}");
    assert_eq!(decoded(&center(8), &bytes, 0).unwrap(), [7; 8 * 8 * 3]);
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
