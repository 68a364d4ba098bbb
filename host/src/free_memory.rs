//! How much memory the page cache may take: what the system has free, and what the process's control group allows.
//!
//! Only the choice of how to read depends on it, never an order.

use std::path::{Path, PathBuf};

/// Memory in bytes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// What the system can give without swapping, page cache included.
    pub available: Option<u64>,
    /// What the limits of the process's control groups leave: the least of them, page cache counted as free.
    pub limit: Option<u64>,
}

impl FreeMemory {
    /// Reads what the system reports now.
    #[must_use]
    pub fn now() -> Self {
        // A system without these files reports nothing.
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let groups = groups(&read("/proc/self/cgroup"));
        Self { available: available_in(&read("/proc/meminfo")), limit: groups.iter().filter_map(Group::room).min() }
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

/// The names of a control group's files.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// Limits in bytes; beyond the second one the kernel slows the group down and takes its memory back.
    limits: &'static [&'static str],
    used: &'static str,
    /// The line of `memory.stat` with the bytes of the page cache, and of those of them that are files in memory only.
    page_cache: &'static str,
    memory_files: &'static str,
}

const V1: Names = Names {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    page_cache: "total_cache",
    memory_files: "total_shmem",
};
const V2: Names =
    Names { limits: &["memory.max", "memory.high"], used: "memory.current", page_cache: "file", memory_files: "shmem" };

/// A control group: its folder, and what its files are called.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    names: &'static Names,
}

/// The process's control group and the groups above it, from `/proc/self/cgroup`. In a container the path may be the
/// host's, and missing; then the root, which exists, is the container's.
fn groups(processes: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in processes.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, names) = match controllers {
            "" => ("/sys/fs/cgroup", &V2),
            list if list.split(',').any(|controller| controller == "memory") => ("/sys/fs/cgroup/memory", &V1),
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        groups.extend(group.ancestors().map(|above| Group { folder: Path::new(root).join(above), names }));
    }
    groups
}

impl Group {
    /// What its limits leave in bytes: all of them, less what is used for other things than the page cache, which the
    /// kernel takes back, except for files that are nowhere else. `None` without a limit.
    fn room(&self) -> Option<u64> {
        let read = |name: &str| std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let limit = self.names.limits.iter().filter_map(|name| limit_in(&read(name))).min()?;
        let used = limit_in(&read(self.names.used)).unwrap_or(0);
        let stat = read("memory.stat");
        let of_stat = |name| stat_in(&stat, name).unwrap_or(0);
        let taken_back = of_stat(self.names.page_cache).saturating_sub(of_stat(self.names.memory_files));
        Some(limit.saturating_sub(used.saturating_sub(taken_back)))
    }
}

/// The value of a line of `memory.stat`.
fn stat_in(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
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
    fn groups_are_found_up_to_the_root() {
        let folders = |groups: Vec<Group>| groups.into_iter().map(|group| group.folder).collect::<Vec<_>>();
        let found = folders(groups("0::/a/b\n"));
        assert_eq!(found, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"].map(PathBuf::from));
        let found = groups("5:cpu:/x\n4:hugetlb,memory:/\nnonsense\n");
        assert_eq!(found, [Group { folder: "/sys/fs/cgroup/memory/".into(), names: &V1 }]);
    }

    #[test]
    fn a_limit_leaves_what_is_not_used_and_the_page_cache() {
        let folder = std::env::temp_dir().join(format!("grainstore-free-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let group = Group { folder: folder.clone(), names: &V2 };
        put("memory.max", "max\n");
        assert_eq!(group.room(), None, "no limit");
        put("memory.max", "1000\n");
        assert_eq!(group.room(), Some(1000), "nothing is known to be used");
        put("memory.current", "700\n");
        put("memory.stat", "anon 500\nfile_mapped 7\nfile 200\n");
        assert_eq!(group.room(), Some(500));
        put("memory.stat", "anon 500\nshmem 150\nfile 200\n");
        assert_eq!(group.room(), Some(350), "files in memory stay");
        put("memory.stat", "anon 500\nfile_mapped 7\nfile 200\n");
        put("memory.high", "600\n");
        assert_eq!(group.room(), Some(100));
        put("memory.max", "300\n");
        assert_eq!(group.room(), Some(0), "more is used than the limit");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_limit_is_none() {
        assert_eq!((limit_in("max\n"), limit_in("1048576\n"), limit_in("")), (None, Some(1 << 20), None));
        let memory = FreeMemory { available: Some(5), limit: Some(3) };
        assert_eq!((memory.usable(), FreeMemory::default().usable()), (Some(3), None));
    }
}
