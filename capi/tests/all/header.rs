//! The header and the Rust declarations are one interface: functions, status numbers, structures.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::process::Command;

use grainstore::Bytes;
use grainstore::dataset::OpenOptions;
use grainstore::epoch::EpochOptions;
use grainstore::status::Status;

const HEADER: &str = include_str!("../../include/grainstore.h");
const SOURCES: [&str; 6] = [
    include_str!("../../src/attributes.rs"),
    include_str!("../../src/batch.rs"),
    include_str!("../../src/dataset.rs"),
    include_str!("../../src/epoch.rs"),
    include_str!("../../src/sample.rs"),
    include_str!("../../src/status.rs"),
];

/// A function: its arguments (name, C type), and the C type of its result.
type Function = (Vec<(String, String)>, String);

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The header without comments and lines of the preprocessor.
fn code() -> String {
    let mut code = String::new();
    let mut rest = HEADER;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").unwrap().1;
    }
    code.push_str(rest);
    code.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// `const char *path` as name and type.
fn c_argument(text: &str) -> (String, String) {
    let at = text.rfind([' ', '*']).unwrap() + 1;
    (text[at..].to_owned(), one_line(&text[..at].replace('*', " * ")))
}

fn c_functions() -> BTreeMap<String, Function> {
    let mut functions = BTreeMap::new();
    for statement in code().split(';') {
        let statement = one_line(statement.rsplit('}').next().unwrap());
        let Some((head, arguments)) = statement.split_once('(') else { continue };
        let (name, result) = c_argument(head);
        let arguments = arguments.trim_end_matches(')');
        let arguments = if arguments == "void" { "" } else { arguments };
        let arguments = arguments.split(',').map(str::trim).filter(|one| !one.is_empty()).map(c_argument).collect();
        functions.insert(name, (arguments, result));
    }
    functions
}

fn c_name(rust: &str) -> String {
    let mut name = String::from("grainstore");
    for letter in rust.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn scalar(rust: &str) -> Option<&'static str> {
    Some(match rust {
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "f64" => "double",
        "usize" => "size_t",
        "c_char" => "char",
        _ => return None,
    })
}

/// The C type that a Rust type stands for at the border.
fn c_type(rust: &str) -> String {
    let inside = |prefix: &str| rust.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(scalar) = scalar(rust) {
        return scalar.to_owned();
    }
    if let Some(handle) = inside("Option<&") {
        return format!("const {} *", c_name(handle));
    }
    if let Some(handle) = inside("Option<Box<") {
        return format!("{} *", c_name(handle.trim_end_matches('>')));
    }
    if let Some(result) = inside("Out<") {
        return format!("{} *", c_type(result));
    }
    if let Some(item) = inside("Buffer<") {
        return format!("{} *", c_type(item));
    }
    if let Some(item) = inside("Items<").or_else(|| inside("Options<")) {
        return format!("const {} *", c_type(item));
    }
    match rust {
        "Text" => "const char *".into(),
        "Numbers" => "const uint64_t *".into(),
        "()" => "void".into(),
        pointer if pointer.starts_with("*const ") => format!("const {} *", c_type(&pointer[7..])),
        name => c_name(name),
    }
}

fn rust_functions() -> BTreeMap<String, Function> {
    let mut functions = BTreeMap::new();
    for source in SOURCES {
        for part in source.split("#[unsafe(no_mangle)]\npub extern \"C\" fn ").skip(1) {
            let declaration = one_line(part.split_once('{').unwrap().0);
            let (name, rest) = declaration.split_once('(').unwrap();
            let (arguments, result) = rest.rsplit_once(')').unwrap();
            let argument = |one: &str| {
                let (name, kind) = one.split_once(": ").unwrap();
                (name.trim().to_owned(), c_type(kind.trim()))
            };
            let arguments = arguments.split(',').filter(|one| !one.trim().is_empty()).map(argument).collect();
            let result = result.trim().strip_prefix("-> ").unwrap_or("()");
            functions.insert(name.to_owned(), (arguments, c_type(result)));
        }
    }
    functions
}

#[test]
fn the_header_declares_the_functions_of_the_library_with_their_types() {
    let (declared, defined) = (c_functions(), rust_functions());
    assert!(defined.len() > 25, "{}", defined.len());
    for (name, function) in &defined {
        assert_eq!(declared.get(name), Some(function), "{name}");
    }
    assert_eq!(declared.len(), defined.len());
    // Every function that is exported is among them.
    let exported: usize = SOURCES.iter().map(|source| source.matches("no_mangle").count()).sum();
    assert_eq!(exported, defined.len());
}

#[test]
fn the_status_numbers_are_the_same() {
    let of_header: BTreeMap<String, i32> = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("#define GRAINSTORE_"))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect();
    let of_rust: BTreeMap<String, i32> = include_str!("../../src/status.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once(": Self = Self("))
        .map(|(name, number)| (name.to_owned(), number.trim_end_matches(");").parse().unwrap()))
        .collect();
    assert_eq!(of_header, of_rust);
    assert_eq!(of_header.get("INTERNAL"), Some(&Status::INTERNAL.0));
}

/// The members of a Rust structure with their offsets.
macro_rules! layout {
    ($type:ident: $($member:ident)*) => {{
        let members: Vec<(&str, usize)> = vec![$((stringify!($member), offset_of!($type, $member))),*];
        // Complete: destructuring fails for a member that is missing here.
        let _ = |value: $type| { let $type { $($member: _),* } = value; };
        (size_of::<$type>(), members)
    }};
}

#[test]
fn the_structures_have_the_same_layout() {
    let structures = [
        ("grainstore_bytes", layout!(Bytes: data len)),
        (
            "grainstore_open_options",
            layout!(OpenOptions: size io engine threads queue_bytes cache_bytes generation allow_external timeout_ms),
        ),
        (
            "grainstore_epoch_options",
            layout!(EpochOptions: size seed epoch batch_size rank world window_bytes lanes group followed order tail
                subset state on_damage),
        ),
    ];
    let mut program = String::from("#include <grainstore.h>\n");
    for (name, (size, members)) in &structures {
        program += &format!("_Static_assert(sizeof({name}) == {size}, \"{name}\");\n");
        for (member, offset) in members {
            program += &format!("_Static_assert(offsetof({name}, {member}) == {offset}, \"{name}.{member}\");\n");
        }
        let declared = code();
        let body = declared.split_once(&format!("struct {name} {{")).unwrap().1.split_once('}').unwrap().0;
        assert_eq!(body.matches(';').count(), members.len(), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layout.c");
    std::fs::write(&file, program).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I"]);
    cc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include")).arg(&file);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
