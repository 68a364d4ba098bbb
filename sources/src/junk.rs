//! Files and folders that systems leave among other people's data, known by their names.

/// Files, in lower case.
const FILES: [&[u8]; 6] = [b".ds_store", b"thumbs.db", b"ehthumbs.db", b"desktop.ini", b".directory", b".localized"];

/// Folders, in lower case.
const FOLDERS: [&[u8]; 8] = [
    b"@eadir",
    b"__macosx",
    b".appledouble",
    b".spotlight-v100",
    b".fseventsd",
    b".ipynb_checkpoints",
    b"$recycle.bin",
    b"system volume information",
];

/// Whether a file of this name is no data: what Finder, Explorer and the like keep beside the files that they show.
pub(crate) fn is_junk_file(name: &[u8]) -> bool {
    // `._NAME` has what macOS knows of NAME, where the file system cannot hold it.
    name.starts_with(b"._") || name.starts_with(b".nfs0") || FILES.iter().any(|junk| junk.eq_ignore_ascii_case(name))
}

/// Whether a folder of this name holds no data.
pub(crate) fn is_junk_folder(name: &[u8]) -> bool {
    name.starts_with(b".Trash-") || FOLDERS.iter().any(|junk| junk.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_is_known_by_its_whole_name() {
        for name in [".DS_Store", "Thumbs.db", "desktop.ini", "._1.jpg", ".nfs000000001"] {
            assert!(is_junk_file(name.as_bytes()), "{name}");
        }
        for name in ["DS_Store", ".DS_Store.jpg", "a._", ".hidden.png", ".nfs", "thumbs.db.txt"] {
            assert!(!is_junk_file(name.as_bytes()), "{name}");
        }
        assert!(is_junk_folder(b"@eaDir") && is_junk_folder(b".Trash-1000") && !is_junk_folder(b"Trash"));
    }
}
