//! Tars that are cut, damaged or hostile: an error with the location, never a panic, and never a wrong sample.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::io::{self, Write};

use grainstore_sources::tar::{TarOptions, TarSource};
use grainstore_sources::{Layout, Reach, Source, SourceSample};

use crate::tar_support::{archive, bad, file, good, octal, raw_member, read, read_blocks, read_tar};

/// Headers at 0, 1024, 2048, 3072; zeros from 4096 on.
fn four() -> Vec<u8> {
    archive(&[("1.cls", b"1"), ("1.jpg", b"one"), ("2.cls", b"2"), ("2.jpg", b"two")])
}

#[test]
fn a_tar_cut_anywhere_returns_its_whole_samples_and_an_error_with_the_offset() {
    let whole = four();
    assert_eq!(whole.len(), 5120);
    let all = good(&whole);
    for len in 0..whole.len() {
        let Ok(found) = read_tar(&whole[..len], &TarOptions::default()) else {
            assert!(len < 515, "{len}");
            continue;
        };
        let (good, bad): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
        // Cut between two members it could be whole, but for the zeros at its end.
        assert_eq!(bad.is_empty(), len >= 4608, "{len}: {bad:?}");
        assert!(bad.iter().all(|bad| bad.as_ref().unwrap_err().reach == Reach::Rest), "{len}: {bad:?}");
        for (good, expected) in good.iter().zip(&all).filter(|_| len >= 2048) {
            let good = good.as_ref().unwrap();
            assert_eq!(
                (&good.key, &good.payload, &good.attributes),
                (&expected.key, &expected.payload, &expected.attributes)
            );
        }
        if len >= 2048 {
            assert_eq!(good.len(), if len >= 3072 + 515 { 2 } else { 1 }, "{len}");
        }
    }
}

#[test]
fn the_error_for_a_cut_has_the_missing_length_and_the_offset() {
    let whole = four();
    assert_eq!(
        bad(&whole[..3585]),
        ["\"2.jpg\" at byte 3072: has 3 bytes from byte 3584 on, but the archive ends at byte 3585"]
    );
    assert_eq!(bad(&whole[..3090]), ["at byte 3072: the archive ends after 18 of a header's 512 bytes"]);
    assert_eq!(bad(&whole[..4000]), ["at byte 4096: the archive ends at byte 4000, inside the member before"]);
}

#[test]
fn a_damaged_header_loses_only_the_samples_after_it() {
    for at in [3072, 3072 + 124, 3072 + 150, 3072 + 511] {
        let mut bytes = four();
        bytes[at] ^= 1;
        let found = read_tar(&bytes, &TarOptions::default()).unwrap();
        assert!(found[0].is_ok() && found.len() == 2, "{at}: {found:?}");
        let said = found[1].as_ref().unwrap_err();
        assert_eq!((said.reach, said.location.offset), (Reach::Rest, Some(3072)));
        assert_eq!(said.why.text, "there is no tar header here: its checksum is wrong");
    }
}

#[test]
fn links_devices_and_sparse_files_are_named_for_what_they_are() {
    for (kind, what) in [
        (b'1', "a hard link"),
        (b'2', "a symbolic link"),
        (b'3', "a device"),
        (b'4', "a device"),
        (b'6', "a pipe"),
        (b'S', "a sparse file"),
        (b'M', "the rest of a file that begins in another volume"),
        (b'?', "of a type that is not known"),
    ] {
        let mut bytes = archive(&[("1.jpg", b"x")])[..1024].to_vec();
        bytes.extend(raw_member(b"2.jpg", kind, octal(0), b""));
        bytes.extend(archive(&[("3.jpg", b"z")]));
        let expected = format!("\"2.jpg\" at byte 1024: it is {what}; samples are made of plain files");
        assert_eq!(bad(&bytes), [expected]);
        let found = read_tar(&bytes, &TarOptions::default()).unwrap();
        assert_eq!(found[2].as_ref().unwrap().key, "3");
    }
}

#[test]
fn a_sparse_file_with_a_long_map_is_skipped_whole() {
    let mut sparse = raw_member(b"2.jpg", b'S', octal(512), b"");
    sparse[482] = 1;
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes().copy_from_slice(&sparse);
    header.set_cksum();
    let mut more = [0; 512];
    more[504] = 1;
    let blocks = [&header.as_bytes()[..], &more, &[0; 512], &[b'd'; 512]].concat();
    let bytes = [&archive(&[("1.jpg", b"x")])[..1024], &blocks, &archive(&[("3.jpg", b"z")])].concat();
    let found = read_tar(&bytes, &TarOptions::default()).unwrap();
    assert!(found[1].as_ref().unwrap_err().why.text.contains("a sparse file"));
    assert_eq!(found[2].as_ref().unwrap().key, "3");
    let pax = b"22 GNU.sparse.major=1\n";
    let mut bytes = archive(&[("1.jpg", b"x")])[..1024].to_vec();
    bytes.extend(raw_member(b"p", b'x', octal(pax.len()), pax));
    bytes.extend(archive(&[("2.jpg", b"z")]));
    assert_eq!(bad(&bytes), ["\"2.jpg\" at byte 1024: it is a sparse file; samples are made of plain files"]);
}

#[test]
fn an_extension_or_a_value_unlike_the_first_samples_spoils_its_sample_only() {
    // More samples than are examined come before it.
    let names: Vec<String> = (0..1001).flat_map(|i| [format!("{i:04}.cls"), format!("{i:04}.jpg")]).collect();
    let mut members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"1"[..])).collect();
    members.extend([("a.cls", &b"1"[..]), ("a.jpg", b"1"), ("a.webp", b"1"), ("b.cls", b"cat"), ("b.jpg", b"1")]);
    members.extend([("c.cls", &b"1"[..]), ("d", b"1"), ("e.cls", b"1"), ("e.jpg", b"1")]);
    let bytes = archive(&members);
    let at = |name: &str| members.iter().position(|(one, _)| *one == name).unwrap() * 1024;
    let expected = [
        format!(
            "\"a.webp\" at byte {}: its extension \"webp\" is not one of those of the first samples (jpg)",
            at("a.webp")
        ),
        format!("\"b\" at byte {}: its .cls is not an integer, unlike those of the first samples", at("b.cls")),
        format!(
            "\"c\" at byte {}: its sample has no \"jpg\", the only field, so nothing would be stored of it",
            at("c.cls")
        ),
        format!("\"d\" at byte {}: its name has no extension, so its field is unknown (jpg)", at("d")),
    ];
    assert_eq!(bad(&bytes), expected);
    let found = read_tar(&bytes, &TarOptions::default()).unwrap();
    assert_eq!(found.len(), 1001 + 5);
    assert_eq!(found.last().unwrap().as_ref().unwrap().key, "e");
}

#[test]
fn the_same_extension_twice_is_reported_with_both_offsets() {
    let bytes = archive(&[("1.cls", b"1"), ("1.jpg", b"x"), ("1.JPG", b"y"), ("2.cls", b"2"), ("2.jpg", b"z")]);
    let expected = "\"1.JPG\" at byte 2048: its sample has two members of this kind, at bytes 1536 and 2560";
    assert_eq!(bad(&bytes), [expected]);
    assert_eq!(read_tar(&bytes, &TarOptions::default()).unwrap()[1].as_ref().unwrap().key, "2");
}

#[test]
fn a_stem_that_comes_again_later_is_another_sample_of_that_key() {
    let all = good(&archive(&[("1.jpg", b"x"), ("2.jpg", b"y"), ("1.jpg", b"z")]));
    assert_eq!(all.iter().map(|got| got.key.as_str()).collect::<Vec<_>>(), ["1", "2", "1"]);
}

#[test]
fn names_are_keys_and_are_not_used_as_paths() {
    let names: [&[u8]; 5] = [b"/etc/passwd.jpg", b"../../x.jpg", b"a\\b.jpg", b"\xff\x01 \n.jpg", b"C:/x.jpg"];
    let mut bytes: Vec<u8> = names.iter().flat_map(|name| raw_member(name, b'0', octal(1), b"x")).collect();
    bytes.extend([0; 1024]);
    let keys: Vec<_> = good(&bytes).into_iter().map(|got| got.key).collect();
    assert_eq!(keys, ["/etc/passwd", "../../x", "a\\b", "\u{fffd}\u{1} \n", "C:/x"]);
}

#[test]
fn names_that_are_too_long_for_a_key_or_empty_are_reported() {
    let long = [&vec![b'n'; 70_000][..], b".jpg"].concat();
    let mut bytes = archive(&[("1.jpg", b"x")])[..1024].to_vec();
    bytes.extend(raw_member(b"././@LongLink", b'L', octal(long.len()), &long));
    bytes.extend(archive(&[("2.jpg", b"y")])[..1024].to_vec());
    bytes.extend(raw_member(b"././@LongLink", b'L', octal(1), b"\0"));
    bytes.extend(archive(&[("3.jpg", b"y")])[..1024].to_vec());
    let huge = vec![b'n'; (1 << 20) + 1];
    bytes.extend(raw_member(b"././@LongLink", b'L', octal(huge.len()), &huge));
    bytes.extend(archive(&[("4.jpg", b"z")]));
    let said = bad(&bytes);
    assert!(said[0].contains("its key has 70000 bytes; keys have 1 to 65535"), "{said:?}");
    assert!(said[1].contains("its key has 0 bytes"), "{said:?}");
    assert!(said[2].contains("the header with its name has 1048577 bytes"), "{said:?}");
    assert_eq!(said.len(), 3);
}

#[test]
#[expect(clippy::big_endian_bytes, reason = "the numbers of a tar are that")]
fn sizes_past_the_end_and_past_all_files_are_refused_without_allocating() {
    let sizes = [1_u64 << 60, u64::MAX, i64::MAX.cast_unsigned(), 2048];
    for len in sizes {
        let mut size = [0; 12];
        size[0] = 0x80;
        size[4..].copy_from_slice(&len.to_be_bytes());
        let mut bytes = archive(&[("1.jpg", b"x")])[..1024].to_vec();
        bytes.extend(raw_member(b"2.jpg", b'0', size, b"y"));
        let found = read_tar(&bytes, &TarOptions::default()).unwrap();
        assert_eq!(found[1].as_ref().unwrap_err().reach, Reach::Rest, "{len}");
        assert!(found[0].is_ok() && found.len() == 2);
        let compressed = zstd::encode_all(&bytes[..], 1).unwrap();
        let (_folder, path) = file(&compressed);
        let source = TarSource::open(&[path], &TarOptions::default()).unwrap();
        let mut samples = source.open(0, 0, Layout::Packed).unwrap();
        assert!(samples.next().unwrap().is_some());
        // The end of a stream shows its length.
        if let Ok(found) = samples.next() {
            assert!(matches!(found, Some(SourceSample::Long { .. })), "{len}: {found:?}");
            assert!(io::copy(&mut samples.payload(), &mut io::sink()).is_err(), "{len}");
            assert_eq!(samples.next().unwrap_err().reach, Reach::Rest, "{len}");
        }
        assert!(matches!(samples.next(), Ok(None)), "{len}");
    }
}

#[test]
fn an_extension_header_without_a_member_or_malformed_is_reported() {
    let mut bytes = archive(&[("1.jpg", b"x")])[..1024].to_vec();
    bytes.extend(raw_member(b"p", b'x', octal(5), b"9 a=b"));
    bytes.extend(archive(&[("2.jpg", b"y")])[..1024].to_vec());
    bytes.extend(raw_member(b"././@LongLink", b'L', octal(5), b"3.jpg"));
    assert_eq!(
        bad(&bytes),
        [
            "\"2.jpg\" at byte 1024: its PAX header is malformed",
            "at byte 4096: a member was announced, but the archive ends"
        ]
    );
    let (_folder, path) = file(&bytes);
    let source = TarSource::open(&[path], &TarOptions::default()).unwrap();
    assert_eq!(read_blocks(&source, Layout::Packed), read(&source, Layout::Packed));
}

#[test]
fn archives_joined_end_to_end_are_reported_and_padding_is_not() {
    let one = archive(&[("1.jpg", b"x")]);
    let mut padded = one.clone();
    padded.resize(40_000, 0);
    assert_eq!(good(&padded).len(), 1);
    padded.extend(b"garbage");
    assert_eq!(good(&padded).len(), 1);
    let joined = [&one[..], &archive(&[("2.jpg", b"y")])].concat();
    let said = bad(&joined);
    assert!(
        said[0].starts_with("at byte 2048: the archive ends at byte 1024, but a member \"2.jpg\" follows"),
        "{said:?}"
    );
    assert_eq!(read_tar(&joined, &TarOptions::default()).unwrap().len(), 2);
}

#[test]
fn data_that_are_not_a_tar_are_refused_with_what_was_found() {
    for (bytes, why) in [
        (&b""[..], "the file is empty"),
        (&[0; 1024], "it holds no files"),
        (&[b'x'; 1024], "there is no tar header here"),
        (&[b'x'; 100], "the archive ends after 100 of a header's 512 bytes"),
    ] {
        let said = read_tar(bytes, &TarOptions::default()).unwrap_err().to_string();
        assert!(said.contains("no tar archive with files: ") && said.contains(why), "{said}");
    }
    let missing = TarSource::open(&["/nowhere/x.tar".into()], &TarOptions::default()).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/x.tar: cannot be opened"), "{missing}");
}

#[test]
fn a_compressed_tar_that_is_cut_or_damaged_is_reported() {
    let names: Vec<String> = (0..200).map(|i| format!("{i}.jpg")).collect();
    let payloads: Vec<Vec<u8>> = (0..200_u32).map(|i| i.to_le_bytes().repeat(300)).collect();
    let members: Vec<(&str, &[u8])> =
        names.iter().zip(&payloads).map(|(name, all)| (name.as_str(), &all[..])).collect();
    let plain = archive(&members);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let gz = gz.finish().unwrap();
    let zst = zstd::encode_all(&plain[..], 1).unwrap();
    let all = good(&plain);
    for whole in [gz, zst] {
        for len in (whole.len() / 2..whole.len()).step_by(97) {
            let found = read_tar(&whole[..len], &TarOptions::default()).unwrap();
            assert_eq!(found.last().unwrap().as_ref().unwrap_err().reach, Reach::Rest, "{len}");
            for (found, expected) in found[..found.len() - 1].iter().zip(&all) {
                assert_eq!(found.as_ref().unwrap(), expected);
            }
        }
    }
}

#[test]
fn a_file_that_shrinks_between_the_passes_is_reported() {
    let (_folder, path) = file(&four());
    let source = TarSource::open(std::slice::from_ref(&path), &TarOptions::default()).unwrap();
    let blocks = source.blocks(0).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(3100).unwrap();
    let found = read(&source, Layout::Packed);
    assert!(found[0].is_ok() && found[1].is_err() && found.len() == 2);
    assert_ne!(source.blocks(0).unwrap(), blocks);
    assert_eq!(read_blocks(&source, Layout::Packed), found);
    assert!(source.open(0, u64::MAX, Layout::Packed).unwrap().next().is_err());
    assert!(source.open(1, 0, Layout::Packed).is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(source.open(0, 0, Layout::Packed).is_err() && source.blocks(0).is_err());
}
