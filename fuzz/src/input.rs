//! Numbers from the fuzzer's bytes, and changes of bytes that put checksums right.

/// Takes numbers off the front; zeros once nothing is left.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take<const LEN: usize>(&mut self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let len = LEN.min(self.0.len());
        let (now, later) = self.0.split_at(len);
        bytes[..len].copy_from_slice(now);
        self.0 = later;
        bytes
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Puts the CRC-32 of the bytes before `at` at `at`.
pub(crate) fn seal(bytes: &mut [u8], at: usize) {
    let crc = crc32fast::hash(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
