//! Memory whose size comes from a file. It is requested here, so that a lack of it is an error and never ends the
//! process.
//!
//! Small allocations cannot report a lack of memory. So a large one is refused unless some memory is left after it, for
//! the small ones that follow.

/// Requests from this many bytes on are refused if less than [`LEFT_LEN`] would be left.
const LARGE_LEN: usize = 8 << 20;

/// Bytes left for small allocations. The C library maps and unmaps a block of this size without side effects.
const LEFT_LEN: usize = 40 << 20;

/// The system does not have the memory that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {len} bytes")]
pub struct NoMemory {
    /// Bytes that were requested.
    pub len: u64,
}

/// Makes a vector of `len` zero bytes.
///
/// # Errors
/// If the system does not have the memory.
pub fn zeroed(len: u64) -> Result<Vec<u8>, NoMemory> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, len)?;
    bytes.resize(crate::to_usize(len), 0);
    Ok(bytes)
}

/// Makes room for `count` more elements in a vector, and not for more than these.
///
/// # Errors
/// If the system does not have the memory.
pub fn reserve<T>(vector: &mut Vec<T>, count: u64) -> Result<(), NoMemory> {
    let len = count.saturating_mul(size_of::<T>() as u64);
    let lack = || NoMemory { len };
    vector.try_reserve_exact(usize::try_from(count).map_err(|_| lack())?).map_err(|_| lack())?;
    if len < LARGE_LEN as u64 { Ok(()) } else { check_room(0).map_err(|_| lack()) }
}

/// Appends an element, where elements of a file are collected one by one.
///
/// # Errors
/// If the system does not have the memory.
pub fn push<T>(vector: &mut Vec<T>, element: T) -> Result<(), NoMemory> {
    let len = (vector.len() as u64).saturating_add(1).saturating_mul(size_of::<T>() as u64);
    vector.try_reserve(1).map_err(|_| NoMemory { len })?;
    vector.push(element);
    Ok(())
}

/// Checks that the system has `len` bytes of memory now, and some more: for code that cannot report a lack of it.
///
/// # Errors
/// If it does not.
pub fn check_room(len: u64) -> Result<(), NoMemory> {
    let mut probe: Vec<u8> = Vec::new();
    let wanted = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(LEFT_LEN);
    // The compiler must not remove an allocation that nothing uses.
    let taken = probe.try_reserve_exact(wanted);
    std::hint::black_box(&probe);
    taken.map_err(|_| NoMemory { len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_exists_is_an_error() {
        assert_eq!(zeroed(1 << 62), Err(NoMemory { len: 1 << 62 }));
        assert_eq!(check_room(u64::MAX), Err(NoMemory { len: u64::MAX }));
        assert_eq!(reserve(&mut Vec::<u64>::new(), 1 << 60), Err(NoMemory { len: 1 << 63 }));
        assert_eq!(zeroed(0).unwrap().capacity(), 0);
        assert_eq!(zeroed(9).unwrap(), [0; 9]);
    }

    #[test]
    fn room_is_made_for_as_many_elements_as_are_requested() {
        let mut vector = vec![1_u32];
        reserve(&mut vector, 100).unwrap();
        assert!((101..200).contains(&vector.capacity()));
        push(&mut vector, 2).unwrap();
        assert_eq!(vector, [1, 2]);
        check_room(1 << 20).unwrap();
    }
}
