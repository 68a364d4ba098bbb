//! A table whose places are numbered, and taken again when they are free.

/// Things by number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Takes a free place and returns its number.
    pub(super) fn put(&mut self, thing: T) -> usize {
        if let Some(number) = self.free.pop() {
            self.places[number] = Some(thing);
            return number;
        }
        self.places.push(Some(thing));
        self.places.len() - 1
    }

    /// Frees a place; `None` where nothing is there.
    pub(super) fn take(&mut self, number: usize) -> Option<T> {
        let thing = self.places.get_mut(number)?.take()?;
        self.free.push(number);
        Some(thing)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_once_and_used_again() {
        let mut slots = Slots::default();
        assert_eq!((slots.put('a'), slots.put('b'), slots.len()), (0, 1, 2));
        assert_eq!((slots.take(0), slots.take(0), slots.take(7)), (Some('a'), None, None));
        assert_eq!((slots.put('c'), slots.put('d'), slots.len()), (0, 2, 3));
        assert_eq!([0, 1, 2].map(|number| slots.take(number)), [Some('c'), Some('b'), Some('d')]);
        assert_eq!(slots.len(), 0);
    }
}
