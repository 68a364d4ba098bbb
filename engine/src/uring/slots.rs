//! A table of numbered slots, which are reused.

/// Items by slot number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Puts an item into a free slot and returns its number.
    pub(super) fn put(&mut self, item: T) -> usize {
        if let Some(number) = self.free.pop() {
            self.entries[number] = Some(item);
            return number;
        }
        self.entries.push(Some(item));
        self.entries.len() - 1
    }

    /// Takes an item out of its slot; `None` if the slot is free.
    pub(super) fn take(&mut self, number: usize) -> Option<T> {
        let item = self.entries.get_mut(number)?.take()?;
        self.free.push(number);
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_taken_once_and_its_slot_reused() {
        let mut slots = Slots::default();
        assert_eq!((slots.put('a'), slots.put('b'), slots.len()), (0, 1, 2));
        assert_eq!((slots.take(0), slots.take(0), slots.take(7)), (Some('a'), None, None));
        assert_eq!((slots.put('c'), slots.put('d'), slots.len()), (0, 2, 3));
        assert_eq!([0, 1, 2].map(|number| slots.take(number)), [Some('c'), Some('b'), Some('d')]);
        assert_eq!(slots.len(), 0);
    }
}
