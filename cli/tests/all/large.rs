//! A sample that is larger than the memory that the command may have goes in and out all the same.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::common::finish;
use crate::common::place::Place;

const SAMPLE_LEN: u64 = 600 << 20;
/// Private memory, in KiB: less than the sample, more than many threads' stacks.
const MEMORY_KIB: u64 = 400 << 10;

/// Runs a command that may have so much memory, and no more.
fn limited(place: &Place, line: &str) {
    let command = place.command(line);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -d {MEMORY_KIB} && exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    let run = finish(shell);
    assert_eq!(run.status, 0, "{line}: {run:?}");
}

fn assert_same(one: &Path, other: &Path) {
    let (mut one, mut other) = (File::open(one).unwrap(), File::open(other).unwrap());
    assert_eq!((one.metadata().unwrap().len(), other.metadata().unwrap().len()), (SAMPLE_LEN, SAMPLE_LEN));
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for _ in 0..SAMPLE_LEN >> 20 {
        one.read_exact(&mut left).unwrap();
        other.read_exact(&mut right).unwrap();
        assert!(left == right);
    }
}

#[test]
fn a_sample_larger_than_memory_is_packed_exported_adopted_and_got() {
    let place = Place::new();
    place.put("f/small.bin", "small");
    let big = File::create(place.path("f/big.bin")).unwrap();
    big.set_len(SAMPLE_LEN).unwrap();
    for (offset, byte) in [(0, 1), (SAMPLE_LEN / 2, 2), (SAMPLE_LEN - 1, 3)] {
        big.write_all_at(&[byte], offset).unwrap();
    }
    limited(&place, "convert f d");
    limited(&place, "export d x.tar --to tar");
    std::fs::remove_dir_all(place.path("d")).unwrap();
    limited(&place, "adopt x.tar a");
    limited(&place, "verify a");
    limited(&place, "get a big -o out");
    assert_same(&place.path("f/big.bin"), &place.path("out"));
}
