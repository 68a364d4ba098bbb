//! What the kernel counts of this process: bytes fetched from devices, and the most memory it had.

/// Bytes that this process had devices fetch. 0 where the kernel does not count, or files lie in memory.
pub(crate) fn device_read_bytes() -> u64 {
    field("/proc/self/io", "read_bytes:").unwrap_or(0)
}

/// The most memory, in bytes, that the process has had since it began or since the last reset.
#[must_use]
pub fn peak_memory_len() -> Option<u64> {
    field("/proc/self/status", "VmHWM:").map(|kib| kib << 10)
}

/// Resets the peak to what is in use now. Where the kernel cannot do it, the peak stays the process's.
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
