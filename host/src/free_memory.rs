//! How much memory the page cache may take: what the system has free, and what the process's control group allows.
//!
//! Only the choice of how to read depends on it, never an order.

use std::path::{Path, PathBuf};

/// Memory in bytes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// What the system can give without swapping, page cache included.
    pub available: Option<u64>,
    /// The smallest limit of the process's control groups.
    pub limit: Option<u64>,
}

impl FreeMemory {
    /// Reads what the system reports now.
    #[must_use]
    pub fn now() -> Self {
        // A system without these files reports nothing.
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let limits = limit_files(&read("/proc/self/cgroup"));
        Self {
            available: available_in(&read("/proc/meminfo")),
            limit: limits.iter().filter_map(|path| limit_in(&std::fs::read_to_string(path).ok()?)).min(),
        }
    }

    /// The smaller of the two; `None` if neither is known.
    #[must_use]
    pub fn usable(self) -> Option<u64> {
        self.available.into_iter().chain(self.limit).min()
    }
}

/// `MemAvailable` of `/proc/meminfo`, which counts in units of 1024 bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files with the limits of the process's control group and of the groups above it, from `/proc/self/cgroup`.
/// In a container the path may be the host's, and missing; then the root, which exists, is the container's.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|above| Path::new(root).join(above).join(name)));
    }
    files
}

/// A limit in bytes; `max` is none.
fn limit_in(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n";
        assert_eq!(available_in(text), Some(8_000_000 * 1024));
        for text in ["", "MemAvailable: many kB", "MemAvailable: 5", "MemAvailable: 18446744073709551615 kB"] {
            assert_eq!(available_in(text), None, "{text}");
        }
    }

    #[test]
    fn limits_are_read_up_to_the_root() {
        let files = limit_files("0::/a/b\n");
        let expected = ["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"];
        assert_eq!(files, expected.map(PathBuf::from));
        let files = limit_files("5:cpu:/x\n4:hugetlb,memory:/\nnonsense\n");
        assert_eq!(files, [PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes")]);
    }

    #[test]
    fn no_limit_is_none() {
        assert_eq!((limit_in("max\n"), limit_in("1048576\n"), limit_in("")), (None, Some(1 << 20), None));
        let memory = FreeMemory { available: Some(5), limit: Some(3) };
        assert_eq!((memory.usable(), FreeMemory::default().usable()), (Some(3), None));
    }
}
