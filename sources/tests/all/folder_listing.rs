//! What a folder may hold: odd names, links of every sort, pipes, or nothing. The listing has every
//! file once, in the order of path bytes, and counts what it ignores.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use grainstore_format::Remedy;
use grainstore_sources::ListingError;
use grainstore_sources::folder::listing::{Listing, OnUnreadable, ScanOptions};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

const SKIP: ScanOptions = ScanOptions { on_unreadable: OnUnreadable::Skip };

fn folder_of(paths: &[&[u8]]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        write(folder.path(), path);
    }
    folder
}

fn write(root: &Path, relative: &[u8]) {
    let path = root.join(OsStr::from_bytes(relative));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, relative).unwrap();
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn scan(root: &Path) -> Listing {
    Listing::scan(root, ScanOptions::default()).unwrap()
}

fn refusal(root: &Path, options: ScanOptions) -> ListingError {
    Listing::scan(root, options).unwrap_err()
}

fn paths(listing: &Listing) -> Vec<&[u8]> {
    (0..listing.len()).map(|index| listing.relative_path(index)).collect()
}

#[test]
fn lists_files_by_path_bytes_where_folders_and_names_interleave() {
    let folder = folder_of(&[b"a/1", b"a-b", b"a.txt", b"a0", b"a-b2/z", b"A", b"a/b/c/d", b"a/b.c"]);
    let expected = ["A", "a-b", "a-b2/z", "a.txt", "a/1", "a/b.c", "a/b/c/d", "a0"];
    assert_eq!(paths(&scan(folder.path())), expected.map(str::as_bytes));
}

#[test]
fn odd_hidden_and_long_names_are_files_like_any_other() {
    let long = "n".repeat(255);
    let deep = format!("{}/{long}", ["d".repeat(200), "e".repeat(200)].join("/"));
    let odd: [&[u8]; 9] = [
        b" ",
        b"..foo",
        b".hidden/.file",
        b"back\\slash",
        b"new\nline",
        b"not utf-8 \xff\xfe",
        b"two words/a  b",
        long.as_bytes(),
        deep.as_bytes(),
    ];
    let folder = folder_of(&odd);
    let listing = scan(folder.path());
    let expected: BTreeSet<&[u8]> = odd.into_iter().collect();
    assert_eq!(paths(&listing), expected.into_iter().collect::<Vec<_>>());
    for index in 0..listing.len() {
        assert_eq!(fs::read(listing.path(index)).unwrap(), listing.relative_path(index));
    }
}

#[test]
fn empty_files_are_listed_and_empty_folders_are_not() {
    let folder = folder_of(&[b"a/full"]);
    fs::write(folder.path().join("a/empty"), b"").unwrap();
    fs::create_dir_all(folder.path().join("b/c")).unwrap();
    assert_eq!(paths(&scan(folder.path())), [b"a/empty", &b"a/full"[..]]);
}

#[test]
fn a_link_to_a_file_is_a_file_and_a_link_to_a_folder_is_counted() {
    let folder = folder_of(&[b"real/file"]);
    let root = folder.path();
    symlink("real/file", root.join("link")).unwrap();
    symlink("link", root.join("link to link")).unwrap();
    symlink("real", root.join("folder link")).unwrap();
    symlink("..", root.join("real/loop")).unwrap();
    let listing = scan(root);
    assert_eq!(paths(&listing), [&b"link"[..], b"link to link", b"real/file"]);
    assert_eq!(fs::read(listing.path(1)).unwrap(), b"real/file");
    assert_eq!((listing.skipped_dir_links(), listing.skipped_special()), (2, 0));
}

#[test]
fn pipes_and_links_to_pipes_are_counted_and_never_opened() {
    let folder = folder_of(&[b"file"]);
    make_pipe(&folder.path().join("pipe"));
    symlink("pipe", folder.path().join("link")).unwrap();
    let listing = scan(folder.path());
    assert_eq!(paths(&listing), [b"file"]);
    assert_eq!((listing.skipped_dir_links(), listing.skipped_special()), (0, 2));
}

#[test]
fn links_that_lead_nowhere_stop_the_scan_with_the_first_of_them() {
    let folder = folder_of(&[b"file"]);
    let root = folder.path();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    let error = refusal(root, ScanOptions::default());
    let first = root.join("circle");
    assert_eq!(error.to_string(), format!("{}: cannot be read (unreadable paths in all: 2)", first.display()));
    assert!(error.source().is_some());
    assert_eq!(error.remedy(), Some(Remedy::SkipBad));
}

#[test]
fn links_that_lead_nowhere_are_listed_where_they_are_to_be_skipped() {
    let folder = folder_of(&[b"file"]);
    let root = folder.path();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    let listing = Listing::scan(root, SKIP).unwrap();
    assert_eq!(paths(&listing), [b"file"]);
    let [(first, loops), (second, missing)] = listing.unreadable() else {
        panic!("two paths are unreadable: {:?}", listing.unreadable());
    };
    assert_eq!((first, second), (&root.join("circle"), &root.join("dangling")));
    assert!(loops.contains("symbolic links") && missing.contains("No such file"), "{loops}; {missing}");
}

#[test]
fn refuses_a_root_that_is_missing_or_a_file() {
    let folder = folder_of(&[b"file"]);
    let missing = folder.path().join("nothing");
    let error = refusal(&missing, SKIP);
    assert!(matches!(&error, ListingError::MissingRoot { path } if *path == missing));
    assert!(error.to_string().ends_with("nothing: no such folder"));
    let error = refusal(&folder.path().join("file"), SKIP);
    assert!(matches!(error, ListingError::NotAFolder { .. }));
    assert!(error.to_string().ends_with("file: not a folder"));
}

#[test]
fn refuses_a_folder_without_files_and_counts_what_else_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(matches!(refusal(root, SKIP), ListingError::NoFiles { ignored_count: 0, .. }));
    fs::create_dir(root.join("empty")).unwrap();
    symlink("empty", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    make_pipe(&root.join("empty/pipe"));
    assert!(matches!(refusal(root, SKIP), ListingError::NoFiles { ignored_count: 3, .. }));
}

#[test]
fn a_root_given_as_a_link_or_with_a_slash_after_it_is_scanned() {
    let folder = folder_of(&[b"real/a/1"]);
    symlink("real", folder.path().join("link")).unwrap();
    for name in ["link", "real/", "real/."] {
        assert_eq!(paths(&scan(&folder.path().join(name))), [b"a/1"]);
    }
}

#[test]
fn folders_nested_past_what_one_path_can_name_are_unreadable_and_not_lost() {
    let folder = folder_of(&[b"file"]);
    let root = folder.path();
    // Chains are made at the root and then hung into each other, deepest last.
    let component = "c".repeat(250);
    let chain = [component.as_str(); 10].join("/");
    fs::create_dir_all(root.join("a").join(&chain)).unwrap();
    fs::create_dir_all(root.join("b").join(&chain)).unwrap();
    fs::rename(root.join("b"), root.join("a").join(&chain).join("b")).unwrap();
    let listing = Listing::scan(root, SKIP).unwrap();
    assert_eq!(paths(&listing), [b"file"]);
    assert_eq!(listing.unreadable().len(), 1);
    assert!(listing.unreadable()[0].1.contains("too long"), "{:?}", listing.unreadable()[0].1);
}

#[test]
fn imagenet_has_its_folders_as_classes() {
    let folder = folder_of(&[b"n02/b.JPEG", b"n01/a.JPEG", b"n01-x/q.JPEG", b"n01/c.JPEG"]);
    let listing = scan(folder.path());
    let classes = listing.classes().unwrap();
    assert_eq!(classes.names().collect::<Vec<_>>(), [&b"n01"[..], b"n01-x", b"n02"]);
    let of_paths: Vec<_> = (0..4).map(|index| (listing.relative_path(index), classes.class_of(index))).collect();
    let expected: [(&[u8], u32); 4] =
        [(b"n01-x/q.JPEG", 1), (b"n01/a.JPEG", 0), (b"n01/c.JPEG", 0), (b"n02/b.JPEG", 2)];
    assert_eq!(of_paths, expected);
    write(folder.path(), b"README");
    assert!(scan(folder.path()).classes().is_none());
}

/// What a path of the model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File,
    Folder,
    FileLink,
    FolderLink,
    Dangling,
    Pipe,
}

/// A tree as a map from relative paths, and the same tree on disk.
struct Model {
    folder: TempDir,
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Model {
    fn build(wanted: &[(Vec<Vec<u8>>, Node)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("target folder")).unwrap();
        fs::write(folder.path().join("target folder/not to be found"), b"").unwrap();
        fs::write(folder.path().join("target file"), b"").unwrap();
        let mut model = Self { folder, nodes: BTreeMap::new() };
        for (components, node) in wanted {
            model.add(components, *node);
        }
        model
    }

    /// Adds a node and its parents, unless another node is in the way.
    fn add(&mut self, components: &[Vec<u8>], node: Node) {
        let ends = 1..=components.len();
        for path in ends.map(|end| components[..end].join(&b'/')) {
            let kind = if path.len() == components.join(&b'/').len() { node } else { Node::Folder };
            match self.nodes.get(&path) {
                Some(Node::Folder) => {}
                Some(_) => return,
                None => self.make(path, kind),
            }
        }
    }

    fn make(&mut self, relative: Vec<u8>, node: Node) {
        let path = self.folder.path().join("root").join(OsStr::from_bytes(&relative));
        let outside = |name: &str| self.folder.path().join(name);
        match node {
            Node::File => fs::write(&path, b"").unwrap(),
            Node::Folder => fs::create_dir(&path).unwrap(),
            Node::FileLink => symlink(outside("target file"), &path).unwrap(),
            Node::FolderLink => symlink(outside("target folder"), &path).unwrap(),
            Node::Dangling => symlink(outside("no target"), &path).unwrap(),
            Node::Pipe => make_pipe(&path),
        }
        self.nodes.insert(relative, node);
    }

    fn paths_of(&self, kinds: &[Node]) -> Vec<&[u8]> {
        self.nodes.iter().filter(|(_, node)| kinds.contains(node)).map(|(path, _)| path.as_slice()).collect()
    }

    fn count(&self, kind: Node) -> u64 {
        self.paths_of(&[kind]).len() as u64
    }
}

/// The naive classes: the sorted set of first components, where every path has two.
fn naive_classes(files: &[&[u8]]) -> Option<(Vec<Vec<u8>>, Vec<u32>)> {
    let split = |path: &&[u8]| path.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let files: Vec<Vec<Vec<u8>>> = files.iter().map(split).collect();
    let names: BTreeSet<Vec<u8>> = files.iter().map(|file| file[0].clone()).collect();
    let names: Vec<Vec<u8>> = names.into_iter().collect();
    let numbers = 0_u32..;
    let numbered: BTreeMap<&Vec<u8>, u32> = names.iter().zip(numbers).collect();
    let class = |file: &Vec<Vec<u8>>| numbered[&file[0]];
    let classes = files.iter().map(class).collect();
    files.iter().all(|file| file.len() == 2).then_some((names, classes))
}

fn assert_agrees(model: &Model, listing: &Listing) {
    let files = model.paths_of(&[Node::File, Node::FileLink]);
    assert_eq!(paths(listing), files);
    assert_eq!(listing.skipped_dir_links(), model.count(Node::FolderLink));
    assert_eq!(listing.skipped_special(), model.count(Node::Pipe));
    let dangling = model.paths_of(&[Node::Dangling]);
    let unreadable = listing.unreadable().iter().map(|(path, _)| path.strip_prefix(listing.root()).unwrap());
    assert_eq!(unreadable.map(|path| path.as_os_str().as_bytes()).collect::<Vec<_>>(), dangling);
    let classes = listing.classes().map(|classes| {
        let names = classes.names().map(<[u8]>::to_vec).collect::<Vec<_>>();
        (names, (0..listing.len()).map(|index| classes.class_of(index)).collect::<Vec<_>>())
    });
    assert_eq!(classes, naive_classes(&files));
}

fn component() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"ab-.0 \n\xff".to_vec());
    prop::collection::vec(byte, 1..3).prop_filter("a name of its own", |name| name != b"." && name != b"..")
}

fn trees() -> impl Strategy<Value = Vec<(Vec<Vec<u8>>, Node)>> {
    use Node::{Dangling, File, FileLink, Folder, FolderLink, Pipe};
    let any_depth = prop::collection::vec(component(), 1..5);
    let node = prop::sample::select(vec![File, File, File, FileLink, Folder, FolderLink, Dangling, Pipe]);
    let wild = prop::collection::vec((any_depth, node), 0..40);
    let classes = prop::collection::vec(component(), 2..3).prop_map(|path| (path, File));
    prop_oneof![3 => wild, 1 => prop::collection::vec(classes, 1..30)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn agrees_with_a_map_of_the_tree_on_any_number_of_threads(wanted in trees(), threads in 1_usize..5) {
        let model = Model::build(&wanted);
        let root = model.folder.path().join("root");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let skipping = pool.install(|| Listing::scan(&root, SKIP));
        let stopping = Listing::scan(&root, ScanOptions::default());
        match &skipping {
            Ok(listing) => assert_agrees(&model, listing),
            Err(error) => {
                prop_assert!(matches!(error, ListingError::NoFiles { .. }), "{error}");
                prop_assert!(model.paths_of(&[Node::File, Node::FileLink]).is_empty());
            }
        }
        let dangling = model.paths_of(&[Node::Dangling]);
        if let Some(first) = dangling.first() {
            let Err(ListingError::Unreadable { path, count, .. }) = &stopping else {
                return Err(TestCaseError::fail(format!("{stopping:?}")));
            };
            prop_assert_eq!(path, &root.join(OsStr::from_bytes(first)));
            prop_assert_eq!(*count, dangling.len());
        } else {
            prop_assert_eq!(stopping.is_ok(), skipping.is_ok());
        }
    }
}
