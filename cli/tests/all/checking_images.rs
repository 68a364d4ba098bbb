//! `verify --check-images`: pictures that do not decode are found, though their bytes are those that were packed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use grainstore_format::{Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_writer::{Sample, WriterOptions};
use serde_json::Value;

use crate::common::Fixture;
use crate::common::place::Place;

/// A PNG of noise, of `side` pixels each way.
fn picture(side: u32, seed: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let mut state = seed;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    });
    writer.write_image_data(&noise.take(side as usize * side as usize * 3).collect::<Vec<u8>>()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A folder `photos` of 20 pictures, three of which do not decode; a segment holds a few of them.
fn place() -> Place {
    let place = Place::new();
    for number in 0..20 {
        // One is longer than the buffer of the check.
        let mut bytes = picture(if number == 8 { 1000 } else { 20 }, number);
        let half = bytes.len() / 2;
        match number {
            3 => bytes.truncate(half),
            8 => bytes[half] ^= 1,
            15 => bytes = b"<html>not found</html>".to_vec(),
            _ => {}
        }
        place.put(&format!("photos/{}/{number:02}.png", number % 2), bytes);
    }
    place
}

#[test]
fn pictures_that_do_not_decode_are_listed_and_can_be_deleted() {
    let place = place();
    for options in ["--segment-size 10K", "--compress lz4 --order source"] {
        place.run_ok(&format!("convert photos d --restart --overwrite {options}"));
        // Nothing is wrong with how they are stored.
        place.run_ok("verify d");
        let run = place.run("verify d --check-images");
        assert_eq!(run.status, 1, "{run:?}");
        let mut lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines.pop().unwrap().contains("20 samples, 17 pictures, "), "{}", run.stdout);
        lines.sort_by_key(|line| line.find("(key").map(|at| &line[at..]));
        let wanted = [("0/08.png", "PNG: "), ("1/03.png", "the bytes end before"), ("1/15.png", "<html>")];
        assert_eq!(lines.len(), wanted.len(), "{}", run.stdout);
        for (line, (key, why)) in lines.iter().zip(wanted) {
            assert!(line.contains(&format!("(key \"{key}\")")) && line.contains("field \"image\": "), "{line}");
            assert!(line.contains(why) || why == "<html>" && line.contains("not the bytes of a JPEG"), "{line}");
        }
    }
    let document: Value = serde_json::from_str(&place.run("verify d --check-images --json").stdout).unwrap();
    assert_eq!(
        (&document["ok"], &document["damaged"], &document["checked_images"]),
        (&false.into(), &3.into(), &17.into())
    );
    let ordinals = document["damages"].as_array().unwrap().iter().map(|one| one["ordinal"].to_string());
    place.put("bad", ordinals.collect::<Vec<_>>().join("\n"));
    place.run_ok("delete d --ordinals bad");
    let clean = place.json("verify d --check-images --quiet");
    assert_eq!((&clean["ok"], &clean["checked_images"]), (&true.into(), &17.into()));
    assert_eq!(place.json("verify d --quiet")["checked_images"], Value::Null);
}

#[test]
fn the_field_with_the_pictures_is_named_where_it_is_unclear() {
    let field = |name: &str| Field { name: name.into(), kind: FieldType::Bytes };
    let schema = Schema::new(vec![], vec![field("left"), field("right")]).unwrap();
    let options = WriterOptions::with_metadata(Metadata { schema, user: UserMetadata::default() });
    let sample = |number: u32| {
        let left = picture(4, number);
        let left_len = left.len() as u64;
        // The last sample has only the left one.
        let right = (number < 3).then_some(left_len..left_len + 10);
        let payload = [left, if right.is_some() { b"no picture".to_vec() } else { vec![] }].concat();
        Sample { fields: vec![Some(0..left_len), right], ..Sample::new(format!("k{number}"), payload) }
    };
    let fixture = Fixture::write(options, (0..4).map(sample));
    let run = fixture.run("verify", ["--check-images"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("which field has the pictures is unclear (there are: left, right)"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: --field NAME"), "{}", run.stderr);
    assert_eq!(fixture.run("verify", ["--check-images", "--field", "left"]).status, 0);
    let run = fixture.run("verify", ["--check-images", "--field", "right"]);
    assert_eq!(run.status, 1);
    assert_eq!(run.stdout.matches("field \"right\": these are not the bytes").count(), 3, "{}", run.stdout);
    assert_eq!(run.stdout.matches("field \"right\": the sample has none").count(), 1, "{}", run.stdout);
    let run = fixture.run("verify", ["--check-images", "--field", "middle"]);
    assert!(run.stderr.contains("there is no field \"middle\" (there are: left, right)"), "{}", run.stderr);
    assert_eq!(fixture.run("verify", ["--field", "left"]).status, 2);
}
