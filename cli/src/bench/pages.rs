//! Whether buffers are on huge pages: some virtual disks read nearly twice as fast into huge pages, so a limit that was
//! measured with one kind of page does not apply to reads into the other.
//!
//! The kernel reports it for each mapping in `/proc/self/smaps`; there is no other way to know.

use std::fs;

use grainstore_reader::engine::Buffer;

/// The share of some memory that is on huge pages; `None` if the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HugePages(pub(crate) Option<f64>);

/// Addresses at which buffers start.
pub(crate) fn addresses(buffers: &[Buffer]) -> Vec<usize> {
    buffers.iter().map(|buffer| buffer.as_slice().as_ptr().addr()).collect()
}

impl HugePages {
    /// Measures the mappings that contain these addresses.
    pub(crate) fn under(addresses: &[usize]) -> Self {
        Self(fs::read_to_string("/proc/self/smaps").ok().and_then(|smaps| share(&smaps, addresses)))
    }

    /// As text for people.
    pub(crate) fn text(self) -> String {
        match self.0 {
            None => "pages of unknown size".to_owned(),
            Some(share) if share < 0.05 => "plain pages".to_owned(),
            Some(share) if share > 0.95 => "huge pages".to_owned(),
            Some(share) => format!("{:.0} % huge pages", share * 100.0),
        }
    }
}

fn share(smaps: &str, addresses: &[usize]) -> Option<f64> {
    let mut resident_kb = 0_u64;
    let mut huge_kb = 0_u64;
    let mut wanted = false;
    for line in smaps.lines() {
        let Some((first, rest)) = line.split_once(' ') else { continue };
        if let Some((start, end)) = bounds(first) {
            wanted = addresses.iter().any(|address| (start..end).contains(address));
        } else if wanted {
            let kb = || rest.trim().strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
            match first {
                "Rss:" => resident_kb += kb(),
                "AnonHugePages:" | "ShmemPmdMapped:" => huge_kb += kb(),
                // Reserved huge pages are not counted as resident.
                "Private_Hugetlb:" | "Shared_Hugetlb:" => {
                    resident_kb += kb();
                    huge_kb += kb();
                }
                _ => {}
            }
        }
    }
    (resident_kb > 0).then(|| huge_kb as f64 / resident_kb as f64)
}

/// The first word of a mapping: `7f0000000000-7f0000200000`.
fn bounds(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0                          [heap]
Rss:                   8 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr
200000-600000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
Private_Hugetlb:       0 kB
800000-a00000 rw-p 00000000 00:00 0
Rss:                   0 kB
Private_Hugetlb:    2048 kB
";

    #[test]
    fn only_the_mappings_that_hold_a_buffer_count() {
        assert_eq!(share(SMAPS, &[0x1000]), Some(0.0));
        assert_eq!(share(SMAPS, &[0x20_0000, 0x5f_ffff]), Some(0.5));
        assert_eq!(share(SMAPS, &[0x80_0000]), Some(1.0));
        assert_eq!(share(SMAPS, &[0x60_0000]), None);
        assert_eq!(share("", &[0x1000]), None);
    }

    #[test]
    fn the_memory_of_this_process_is_found() {
        let buffers = vec![Buffer::with_capacity(1 << 20)];
        assert_eq!(buffers[0].as_slice().iter().map(|&byte| u64::from(byte)).sum::<u64>(), 0);
        if cfg!(target_os = "linux") {
            assert!(HugePages::under(&addresses(&buffers)).0.is_some());
        }
    }

    #[test]
    fn a_share_of_all_or_nothing_is_shown_in_words() {
        let text = |share| HugePages(share).text();
        assert_eq!((text(Some(0.0)).as_str(), text(Some(1.0)).as_str()), ("plain pages", "huge pages"));
        assert_eq!(text(Some(0.5)), "50 % huge pages");
    }
}
