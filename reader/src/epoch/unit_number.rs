//! The number of a unit.

/// Identifies a unit of an epoch's thread from when it is scheduled until the visit of its last sample ends. Later
/// units use the number again, so numbers stay small and index a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct UnitNumber(pub(super) u32);

impl UnitNumber {
    /// The index of the unit in a table of all units.
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}
