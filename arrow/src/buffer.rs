//! Bytes that a consumer of Arrow reads in place, and what keeps them alive.

use std::any::Any;
use std::sync::Arc;

use grainstore_format::memory::{NoMemory, reserve};

/// What Arrow asks for at least.
const ALIGNMENT: usize = 8;

/// Bytes in memory that neither moves nor changes while this lives: aligned to 8 bytes.
#[derive(Clone)]
pub struct Buffer {
    start: *const u8,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

impl Buffer {
    /// Bytes of `owner`, without a copy if they are aligned.
    ///
    /// # Errors
    /// Those of `bytes`, or if there is no memory for the copy.
    pub fn lent<T, E>(owner: Arc<T>, bytes: impl for<'a> FnOnce(&'a T) -> Result<&'a [u8], E>) -> Result<Self, E>
    where
        T: Any + Send + Sync,
        E: From<NoMemory>,
    {
        let lent = bytes(&owner)?;
        if !lent.as_ptr().cast::<u64>().is_aligned() {
            return Ok(Self::copied(lent)?);
        }
        let (start, len) = (lent.as_ptr(), lent.len());
        Ok(Self { start, len, owner })
    }

    /// Bytes that were made for this.
    ///
    /// # Errors
    /// If they have to be copied, and there is no memory for it.
    pub fn owned(bytes: Vec<u8>) -> Result<Self, NoMemory> {
        // Allocations of this size are aligned to more than 8 bytes with every usual allocator.
        Self::lent(Arc::new(bytes), |bytes| Ok(bytes))
    }

    fn copied(bytes: &[u8]) -> Result<Self, NoMemory> {
        let mut words: Vec<u64> = Vec::new();
        reserve(&mut words, bytes.len().div_ceil(ALIGNMENT) as u64)?;
        for chunk in bytes.chunks(ALIGNMENT) {
            let mut word = [0; ALIGNMENT];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            words.push(u64::from_le_bytes(word));
        }
        let start = words.as_ptr().cast();
        Ok(Self { start, len: bytes.len(), owner: Arc::new(words) })
    }

    /// Where the bytes are. Valid while this, or its owner, lives.
    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    pub(crate) fn owner(self) -> Arc<dyn Any + Send + Sync> {
        self.owner
    }

    /// Number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nothing asks for it")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("start", &self.start).field("len", &self.len).finish_non_exhaustive()
    }
}
