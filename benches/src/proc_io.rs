//! The kernel's counters of this process: bytes read from devices, and peak memory.

/// Bytes that devices read for this process. 0 if the kernel does not count them, or the files are in memory.
pub(crate) fn device_read_bytes() -> u64 {
    field("/proc/self/io", "read_bytes:").unwrap_or(0)
}

/// The peak memory in bytes since the process began, or since the last reset.
#[must_use]
pub fn peak_memory_len() -> Option<u64> {
    field("/proc/self/status", "VmHWM:").map(|kib| kib << 10)
}

/// Resets the peak to the memory in use now. If the kernel cannot do it, the peak stays that since the process began.
pub fn reset_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn field(path: &str, name: &str) -> Option<u64> {
    number_after(&std::fs::read_to_string(path).ok()?, name)
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "rchar: 1\nread_bytes: 4096\ncancelled_write_bytes: 3\n";
        assert_eq!(number_after(text, "read_bytes:"), Some(4096));
        assert_eq!(number_after("VmPeak:\t 9 kB\nVmHWM:\t   84 kB\n", "VmHWM:"), Some(84));
        assert_eq!(number_after(text, "write_bytes:"), None);
    }

    #[test]
    fn memory_that_was_used_shows_in_the_peak() {
        reset_peak_memory();
        let before = peak_memory_len().unwrap();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(peak_memory_len().unwrap() >= before.max(64 << 20));
        drop(block);
    }
}
