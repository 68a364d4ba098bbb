//! C programs, compiled with the system's compiler, that read datasets made here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use grainstore_format::{Attribute, AttributeType, AttributeValue, Field, FieldType, Metadata, Schema, UserMetadata};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// The folder of the libraries: that of the test's own program.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    output
}

fn compile(source: &str, folder: &Path, name: &str) -> PathBuf {
    let (code, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&code, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-I", HEADERS]).arg(&code).arg("-o").arg(&program);
    cc.arg(libraries().join("libgrainstore.so")).arg(format!("-Wl,-rpath,{}", libraries().display()));
    run(&mut cc);
    program
}

/// `count` samples with the fields image and text, and attributes.
fn write(path: &Path, count: u64) {
    let attribute = |name: &str, kind| Attribute { name: name.into(), kind };
    let field = |name: &str, kind| Field { name: name.into(), kind };
    let schema = Schema::new(
        vec![
            attribute("label", AttributeType::Int32),
            attribute("weight", AttributeType::Float32),
            attribute("split", AttributeType::Category),
            attribute("huge", AttributeType::Uint64),
        ],
        vec![field("image", FieldType::Bytes), field("text", FieldType::Str)],
    )
    .unwrap();
    let options = WriterOptions::with_metadata(Metadata { schema, user: UserMetadata::default() });
    let mut writer = DatasetWriter::create(path, options).unwrap();
    for i in 0..count {
        let number = u32::try_from(i).unwrap();
        let mut payload = number.to_le_bytes().repeat(5 + number as usize % 7);
        let image_len = payload.len() as u64;
        let has_text = i % 3 != 1;
        if has_text {
            payload.extend_from_slice(b"text");
        }
        let text = has_text.then_some(image_len..image_len + 4);
        let split = if i % 2 == 0 { "train" } else { "val" };
        let attributes = vec![
            Some(AttributeValue::Int(i.cast_signed() - 5)),
            (i % 4 != 3).then_some(AttributeValue::Float32(0.5)),
            Some(AttributeValue::Category(split.into())),
            Some(AttributeValue::Uint(u64::MAX)),
        ];
        let key = format!("key/{i}").into_bytes();
        writer.write(Sample { key, attributes, payload, fields: vec![Some(0..image_len), text] }).unwrap();
    }
    writer.finish().unwrap();
}

/// The program of the page.
fn page_program() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/c.md")).unwrap();
    let (_, rest) = page.split_once("```c\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_program_of_the_page_visits_every_sample() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.grain");
    write(&path, 300);
    let program = compile(&page_program(), folder.path(), "page");
    let output = run(Command::new(&program).arg(&path).arg("key/3"));
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(found, "300 samples\nkey/3: 32 bytes\nepoch 0: 300\nepoch 1, resumed: 236\n");
    let missing = Command::new(&program).arg(folder.path().join("b.grain")).arg("x").output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("b.grain"));
}

#[test]
fn the_border_holds_against_wrong_calls_and_its_bytes_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.grain");
    write(&path, 20);
    let program = compile(include_str!("../c/border.c"), folder.path(), "border");
    run(Command::new(&program).arg(&path));
    // Where valgrind is installed: nothing is read or freed that should not be, and nothing is left.
    if Command::new("valgrind").arg("--version").output().is_ok() {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        run(valgrind.arg(&program).arg(&path));
    } else {
        eprintln!("valgrind is not installed: memory is not checked");
    }
}

#[test]
fn the_static_library_works_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.grain");
    write(&path, 20);
    let (code, program) = (folder.path().join("border.c"), folder.path().join("border"));
    std::fs::write(&code, include_str!("../c/border.c")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-I", HEADERS]).arg(&code).arg("-o").arg(&program);
    cc.arg(libraries().join("libgrainstore.a")).args(["-lpthread", "-ldl", "-lm"]);
    run(&mut cc);
    run(Command::new(&program).arg(&path));
}
