//! A folder of JPEG images in the shape of ImageNet: `class_0007/img_0001234.JPEG`.
//!
//! Every image is drawn from (seed, number), so the same spec gives the same files on any number of
//! threads. A picture is two smooth waves of light, a tint, and noise; the noise makes its bytes
//! incompressible and unlike any other image's. Sizes follow a log-normal law around
//! [`MEDIAN_LEN`]: the dimensions are chosen so that the encoded file comes out near the drawn size.
//!
//! No frame is held in memory: the encoder asks for rows, and a row is a function of its number.
//! Nothing is synced to the device; a demo that is lost is made again.

use std::f64::consts::TAU;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor};
use rayon::prelude::*;

use grainstore_format::shown_path;

use crate::random::{SplitMix64, mix};

/// Median of the sizes drawn, in bytes: about that of an ImageNet training image.
pub(crate) const MEDIAN_LEN: f64 = 95_000.0;
/// Standard deviation of the logarithm of the sizes drawn.
const SIGMA: f64 = 0.45;
/// Sizes are clamped to these bytes, so that no image is a stub and none is a poster.
const LEN_LIMITS: (f64, f64) = (4_000.0, 1_500_000.0);
/// What a file holds besides its pixels, in bytes: markers, quantisation and Huffman tables.
const HEADER_LEN: f64 = 623.0;
/// Encoded bytes per pixel at [`QUALITY`] and [`NOISE`], measured; changing either changes it.
const BYTES_PER_PIXEL: f64 = 0.87;
/// JPEG quality, 1 to 100.
const QUALITY: u8 = 95;
/// Range of the noise on the brightness, in levels of 256.
const NOISE: u16 = 128;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSpec {
    /// Number of images, at least one for each class.
    pub(crate) samples: u64,
    /// Number of classes, at least one; each is a directory, images are spread over them evenly.
    pub(crate) classes: u32,
    /// Where all randomness comes from.
    pub(crate) seed: u64,
}

impl Default for ImageSpec {
    fn default() -> Self {
        Self { samples: 20_000, classes: 100, seed: 0 }
    }
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageTotals {
    /// Files written.
    pub(crate) files: u64,
    /// Their lengths together, in bytes.
    pub(crate) bytes: u64,
}

impl ImageTotals {
    fn plus(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes + other.bytes }
    }
}

/// Write the images of `spec` below `root`, which must be new or empty.
///
/// `progress` is called after each file with the number of files written so far; an error from it
/// ends the work. Calls come from many threads, so a smaller number may follow a larger one.
///
/// # Errors
/// When the spec asks for no images, no classes or more classes than images, when `root` already
/// holds something, when a file cannot be written, or what `progress` returned; files made before
/// that stay.
pub(crate) fn make_images(
    root: &Path,
    spec: ImageSpec,
    progress: &(dyn Fn(u64) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<ImageTotals> {
    check(spec)?;
    make_directories(root, spec)?;
    let done = AtomicU64::new(0);
    (0..spec.samples)
        .into_par_iter()
        .map_init(Vec::new, |file, number| {
            let len = make_image(root, spec, number, file)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1)?;
            Ok(ImageTotals { files: 1, bytes: len })
        })
        .try_reduce(ImageTotals::default, |a, b| Ok(a.plus(b)))
}

fn check(spec: ImageSpec) -> anyhow::Result<()> {
    ensure!(spec.classes > 0, "an image folder needs at least one class");
    ensure!(
        spec.samples >= u64::from(spec.classes),
        "{} images cannot fill {} classes: each class needs at least one",
        spec.samples,
        spec.classes
    );
    Ok(())
}

fn make_directories(root: &Path, spec: ImageSpec) -> anyhow::Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot make {}", shown_path(root)))?;
    let mut present = fs::read_dir(root).with_context(|| format!("cannot list {}", shown_path(root)))?;
    ensure!(present.next().is_none(), "{}: not empty, and images would mix with what is there", shown_path(root));
    (0..spec.classes).into_par_iter().try_for_each(|class| {
        let path = root.join(class_name(class.into()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", shown_path(&path)))
    })
}

/// Draws, encodes and writes one image; returns its length in bytes. `file` is scratch.
fn make_image(root: &Path, spec: ImageSpec, number: u64, file: &mut Vec<u8>) -> anyhow::Result<u64> {
    let path = image_path(root, spec, number);
    file.clear();
    encode(&Picture::draw(spec.seed, number), file).with_context(|| format!("cannot encode {}", shown_path(&path)))?;
    fs::File::create_new(&path)
        .and_then(|mut created| created.write_all(file))
        .with_context(|| format!("cannot write {}", shown_path(path)))?;
    Ok(file.len() as u64)
}

fn image_path(root: &Path, spec: ImageSpec, number: u64) -> PathBuf {
    let class = u128::from(number) * u128::from(spec.classes) / u128::from(spec.samples);
    root.join(class_name(class)).join(format!("img_{number:07}.JPEG"))
}

fn class_name(class: u128) -> String {
    format!("class_{class:04}")
}

fn encode(picture: &Picture, file: &mut Vec<u8>) -> Result<(), jpeg_encoder::EncodingError> {
    let mut encoder = Encoder::new(file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode_image(picture)
}

/// One image before it is encoded: everything a row is computed from.
#[derive(Clone, Debug)]
struct Picture {
    width: u16,
    height: u16,
    waves: [Wave; 2],
    tints: [Wave; 2],
    noise_key: u64,
}

impl Picture {
    fn draw(seed: u64, number: u64) -> Self {
        let mut random = SplitMix64::new(mix(mix(seed).wrapping_add(number)));
        let (width, height) = dimensions(draw_len(&mut random), &mut random);
        let longest = width.max(height);
        Self {
            width,
            height,
            waves: [Wave::draw(&mut random, longest), Wave::draw(&mut random, longest)],
            tints: [Wave::draw(&mut random, longest), Wave::draw(&mut random, longest)],
            noise_key: random.next(),
        }
    }

    /// Brightness is a floor, two waves and the noise: at most 20 + 42 + 42 + 127, so a byte holds it.
    fn fill_luma(&self, y: u16, row: &mut Vec<u8>) {
        let mut random = SplitMix64::new(mix(self.noise_key.wrapping_add(u64::from(y))));
        let mut phases = self.waves.map(|wave| wave.phase_at_row(y));
        let mut left = usize::from(self.width);
        while left > 0 {
            let mut pixels = random.next().to_le_bytes();
            for pixel in &mut pixels {
                let light = 20 + level(phases[0]) / 6 + level(phases[1]) / 6;
                *pixel = light + scale(*pixel);
                phases[0] = phases[0].wrapping_add(self.waves[0].per_column);
                phases[1] = phases[1].wrapping_add(self.waves[1].per_column);
            }
            let taken = left.min(pixels.len());
            row.extend_from_slice(&pixels[..taken]);
            left -= taken;
        }
    }
}

impl ImageBuffer for &Picture {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        self.width
    }

    fn height(&self) -> u16 {
        self.height
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let [luma, blue, red, _] = buffers;
        self.fill_luma(y, luma);
        self.tints[0].fill_tint(y, self.width, blue);
        self.tints[1].fill_tint(y, self.width, red);
    }
}

/// A wave of light across the image. A phase is a fraction of a period, in 2^-32.
#[derive(Clone, Copy, Debug)]
struct Wave {
    origin: u32,
    per_column: u32,
    per_row: u32,
}

impl Wave {
    /// A wave of up to four periods over `longest` pixels in each direction.
    fn draw(random: &mut SplitMix64, longest: u16) -> Self {
        let mut step = || random.half() / u32::from(longest) * 8;
        Self { per_column: step(), per_row: step(), origin: random.half() }
    }

    fn phase_at_row(self, y: u16) -> u32 {
        self.origin.wrapping_add(self.per_row.wrapping_mul(u32::from(y)))
    }

    /// Adds a row of a colour difference: 64 levels around the neutral 128.
    fn fill_tint(self, y: u16, width: u16, row: &mut Vec<u8>) {
        let start = self.phase_at_row(y);
        let tint = |x| 96 + level(start.wrapping_add(self.per_column.wrapping_mul(u32::from(x)))) / 4;
        row.extend((0..width).map(tint));
    }
}

/// A triangle between 0 and 255: up in the first half of the period, down in the second.
fn level(phase: u32) -> u8 {
    let within_half = ((phase << 1) >> 24) as u8;
    if phase >> 31 == 0 { within_half } else { 255 - within_half }
}

/// A random byte brought into the range of the noise.
fn scale(byte: u8) -> u8 {
    ((u16::from(byte) * NOISE) >> 8) as u8
}

/// A file size from the log-normal law, in bytes.
fn draw_len(random: &mut SplitMix64) -> f64 {
    // Box and Muller's transform; 1 - u keeps the logarithm's argument above zero.
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    let normal = radius * (TAU * random.unit()).cos();
    (MEDIAN_LEN * (SIGMA * normal).exp()).clamp(LEN_LIMITS.0, LEN_LIMITS.1)
}

/// Width and height of an image that encodes to about `len` bytes, between 4:3 and 3:4.
fn dimensions(len: f64, random: &mut SplitMix64) -> (u16, u16) {
    let pixels = (len - HEADER_LEN) / BYTES_PER_PIXEL;
    let ratio = 0.75 + random.unit() * (4.0 / 3.0 - 0.75);
    let width = (pixels * ratio).sqrt();
    (side(width), side(pixels / width))
}

#[expect(clippy::cast_possible_truncation, reason = "the clamp keeps it in 1..=65,535, a JPEG's limits")]
fn side(pixels: f64) -> u16 {
    pixels.round().clamp(1.0, 65_535.0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a JPEG file that say whether it is one.
    struct Parsed {
        width: u16,
        height: u16,
        scan_offset: usize,
    }

    fn word(file: &[u8], at: usize) -> u16 {
        (u16::from(file[at]) << 8) | u16::from(file[at + 1])
    }

    /// Walks the marker segments up to the start of the scan; the naive way, and asserts as it goes.
    fn parse(file: &[u8]) -> Parsed {
        assert_eq!(file[..2], [0xff, 0xd8], "begins with SOI");
        assert_eq!(file[file.len() - 2..], [0xff, 0xd9], "ends with EOI");
        let (mut at, mut size) = (2, None);
        loop {
            assert_eq!(file[at], 0xff, "a marker at byte {at}");
            let marker = file[at + 1];
            let body = at + 4;
            at += 2 + usize::from(word(file, at + 2));
            match marker {
                0xc0 => size = Some((word(file, body + 3), word(file, body + 1))),
                0xda => break,
                _ => {}
            }
        }
        let (width, height) = size.expect("a baseline frame before the scan");
        Parsed { width, height, scan_offset: at }
    }

    fn encoded(picture: &Picture) -> Vec<u8> {
        let mut file = Vec::new();
        encode(picture, &mut file).unwrap();
        file
    }

    fn made(spec: ImageSpec) -> (tempfile::TempDir, ImageTotals) {
        let folder = tempfile::tempdir().unwrap();
        let totals = make_images(folder.path(), spec, &|_| Ok(())).unwrap();
        (folder, totals)
    }

    fn contents(folder: &Path, spec: ImageSpec) -> Vec<Vec<u8>> {
        (0..spec.samples).map(|number| fs::read(image_path(folder, spec, number)).unwrap()).collect()
    }

    #[test]
    fn every_image_is_a_whole_jpeg_of_its_own_dimensions() {
        for number in 0..20 {
            let picture = Picture::draw(3, number);
            let file = encoded(&picture);
            let parsed = parse(&file);
            assert_eq!((parsed.width, parsed.height), (picture.width, picture.height));
            // Inside a scan, 0xff is always followed by a stuffed zero: no stray marker.
            let scan = &file[parsed.scan_offset..file.len() - 2];
            assert!(scan.windows(2).all(|pair| pair[0] != 0xff || pair[1] == 0));
        }
    }

    #[test]
    fn images_of_one_pixel_and_of_the_smallest_size_stay_valid() {
        let mut picture = Picture::draw(1, 1);
        (picture.width, picture.height) = (1, 1);
        assert_eq!(parse(&encoded(&picture)).width, 1);
        (picture.width, picture.height) = dimensions(LEN_LIMITS.0, &mut SplitMix64::new(5));
        let file = encoded(&picture);
        assert_eq!(parse(&file).height, picture.height);
        assert!((3_500..5_000).contains(&file.len()), "{} bytes", file.len());
    }

    #[test]
    fn sizes_spread_around_a_median_of_95_kilobytes() {
        let mut lens: Vec<usize> =
            (0..300).into_par_iter().map(|number| encoded(&Picture::draw(11, number)).len()).collect();
        lens.sort_unstable();
        let median = lens[150] as f64;
        assert!((median / MEDIAN_LEN - 1.0).abs() < 0.15, "median {median}");
        // One sigma below and above the median lie at 16 % and 84 %.
        let spread = (lens[252] as f64 / lens[48] as f64).ln() / 2.0;
        assert!((spread - SIGMA).abs() < 0.12, "spread {spread}");
    }

    #[test]
    fn an_encoded_length_is_near_the_length_drawn() {
        for (number, len) in [6_000.0, 30_000.0, 95_000.0, 400_000.0, 1_500_000.0].into_iter().enumerate() {
            let mut picture = Picture::draw(2, number as u64);
            (picture.width, picture.height) = dimensions(len, &mut SplitMix64::new(number as u64));
            let ratio = encoded(&picture).len() as f64 / len;
            assert!((ratio - 1.0).abs() < 0.1, "{len} bytes wanted, {ratio} of it made");
        }
    }

    #[test]
    fn the_same_spec_makes_the_same_files_on_any_number_of_threads() {
        let spec = ImageSpec { samples: 12, classes: 5, seed: 9 };
        let (first, totals) = made(spec);
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (second, again) = alone.install(|| made(spec));
        assert_eq!(totals, again);
        assert_eq!(contents(first.path(), spec), contents(second.path(), spec));
    }

    #[test]
    fn every_image_differs_and_another_seed_makes_others() {
        let spec = ImageSpec { samples: 12, classes: 3, seed: 1 };
        let other = ImageSpec { seed: 2, ..spec };
        let (first, second) = (made(spec).0, made(other).0);
        let mut files = contents(first.path(), spec);
        files.extend(contents(second.path(), other));
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), 24);
    }

    #[test]
    fn classes_share_the_images_evenly_and_totals_count_them() {
        let spec = ImageSpec { samples: 10, classes: 4, seed: 0 };
        let (folder, totals) = made(spec);
        let mut bytes = 0;
        let mut counts = Vec::new();
        for class in 0..4 {
            let images = fs::read_dir(folder.path().join(class_name(class))).unwrap();
            let lens: Vec<u64> = images.map(|image| image.unwrap().metadata().unwrap().len()).collect();
            counts.push(lens.len());
            bytes += lens.iter().sum::<u64>();
        }
        assert_eq!(counts, [3, 2, 3, 2]);
        assert_eq!(totals, ImageTotals { files: 10, bytes });
        assert!(folder.path().join("class_0000/img_0000000.JPEG").is_file());
        assert!(folder.path().join("class_0003/img_0000009.JPEG").is_file());
    }

    #[test]
    fn progress_counts_every_file_once() {
        let folder = tempfile::tempdir().unwrap();
        let seen = std::sync::Mutex::new(Vec::new());
        let spec = ImageSpec { samples: 6, classes: 2, seed: 4 };
        let note = |files| {
            seen.lock().unwrap().push(files);
            Ok(())
        };
        make_images(folder.path(), spec, &note).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_error_from_progress_ends_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let spec = ImageSpec { samples: 500, classes: 1, seed: 4 };
        let made =
            make_images(folder.path(), spec, &|files| if files < 3 { Ok(()) } else { Err(anyhow::anyhow!("enough")) });
        assert_eq!(made.unwrap_err().to_string(), "enough");
        assert!(fs::read_dir(folder.path().join(class_name(0))).unwrap().count() < 500);
    }

    #[test]
    fn refuses_specs_that_leave_a_class_empty_and_folders_that_hold_something() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |samples, classes| {
            let spec = ImageSpec { samples, classes, seed: 0 };
            make_images(folder.path(), spec, &|_| Ok(())).unwrap_err().to_string()
        };
        assert_eq!(refusal(5, 0), "an image folder needs at least one class");
        assert_eq!(refusal(2, 3), "2 images cannot fill 3 classes: each class needs at least one");
        fs::write(folder.path().join("mine"), b"").unwrap();
        assert!(refusal(1, 1).contains("not empty"));
    }

    #[test]
    fn a_level_rises_and_falls_without_a_step() {
        let levels: Vec<u8> = (0..512_u32).map(|step| level(step << 23)).collect();
        assert_eq!((levels[0], levels[255], levels[256], levels[511]), (0, 255, 255, 0));
        assert!(levels.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1));
    }

    #[test]
    fn the_brightest_pixel_fits_a_byte() {
        let brightest = 20 + u16::from(level(u32::MAX / 2)) / 6 * 2 + u16::from(scale(255));
        assert!(brightest <= 255);
    }
}
