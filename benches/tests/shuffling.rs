//! The experiment of docs/shuffling.md runs, finds its markers in the page, and separates good orders from bad ones.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

/// The page and the picture after a quick run, which has put its figures there.
fn quick_run() -> [String; 2] {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/shuffling.md");
    let out = tempfile::tempdir().unwrap();
    std::fs::copy(page, out.path().join("shuffling.md")).unwrap();
    let run =
        Command::new(env!("CARGO_BIN_EXE_shuffling")).args(["--quick", "--out"]).arg(out.path()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    ["shuffling.md", "shuffling.svg"].map(|name| std::fs::read_to_string(out.path().join(name)).unwrap())
}

/// The cells of the row that starts so.
fn row<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    let line = page.lines().find(|line| line.starts_with(start));
    line.unwrap_or_default().split('|').map(str::trim).collect()
}

/// Test accuracy in percent of networks trained from the store by class.
fn accuracy(page: &str, order: &str) -> f64 {
    row(page, &format!("| by class | {order} |"))[6].split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_quick_run_renews_both_tables_and_the_picture() {
    let [page, picture] = quick_run();
    assert!(page.contains("20,000 samples of 12,288 bytes") && !page.contains("1,281,167 samples of"), "{page}");
    assert_eq!(row(&page, "| a full shuffle, in expectation")[4], "163", "parts that 256 draws from 20,000 hit");
    assert!(!page.contains("NaN"), "{page}");

    let [full, chunked, sequential] =
        ["`full`", "`chunked`, 48 lanes", "`sequential`"].map(|order| accuracy(&page, order));
    assert!(full > 2.0 * sequential && chunked > 2.0 * sequential, "{full}, {chunked}, {sequential}");

    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!(picture.matches("<path ").count() - picture.matches("stroke-opacity").count(), 5, "{picture}");
    assert!(!picture.contains("NaN"), "{picture}");
}

#[test]
fn an_unknown_flag_is_reported() {
    let run = Command::new(env!("CARGO_BIN_EXE_shuffling")).arg("--slow").output().unwrap();
    assert!(!run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("expected --quick or --out DIR"), "{run:?}");
}
