//! The names of the orders, and which one `auto` means.

use std::fmt;
use std::str::FromStr;

/// Mean stored length, in bytes, from which `auto` reads every sample by itself.
const FULL_FROM_MEAN_LEN: u64 = 65_536;

/// The order in which an epoch visits the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// By ordinal: for evaluation. order.md: PLN-3.
    Sequential,
    /// A permutation of all samples, each read by itself. order.md: PLN-4.
    Full,
    /// Near-uniform, reads each extent once. order.md: PLN-5.
    Chunked,
}

/// The caller's choice: one of the orders, or the one that suits the dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderChoice {
    /// Decided by the mean stored length of the samples. order.md: PLN-6.
    #[default]
    Auto,
    /// This order.
    Fixed(Order),
}

/// How much a dataset stores, and in how many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSize {
    /// Stored lengths of all samples together, in bytes.
    pub stored_bytes: u64,
    /// Samples in the dataset.
    pub sample_count: u64,
}

/// An unknown name of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("order is {found:?}, expected auto, full, chunked or sequential")]
pub struct ParseOrderError {
    found: String,
}

impl OrderChoice {
    /// The order that this choice means for a dataset of this size.
    ///
    /// It depends on the dataset alone, never on the machine: the order must be the same everywhere.
    #[must_use]
    pub fn resolve(self, size: StoredSize) -> Order {
        match self {
            Self::Fixed(order) => order,
            Self::Auto if size.mean_is_long() => Order::Full,
            Self::Auto => Order::Chunked,
        }
    }
}

impl StoredSize {
    /// Compares the sums, so that nothing is rounded.
    fn mean_is_long(self) -> bool {
        u128::from(self.stored_bytes) >= u128::from(FULL_FROM_MEAN_LEN) * u128::from(self.sample_count)
    }
}

impl From<Order> for OrderChoice {
    fn from(order: Order) -> Self {
        Self::Fixed(order)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Sequential => "sequential",
            Self::Full => "full",
            Self::Chunked => "chunked",
        })
    }
}

impl fmt::Display for OrderChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.pad("auto"),
            Self::Fixed(order) => order.fmt(formatter),
        }
    }
}

impl FromStr for OrderChoice {
    type Err = ParseOrderError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "full" => Ok(Self::Fixed(Order::Full)),
            "chunked" => Ok(Self::Fixed(Order::Chunked)),
            "sequential" => Ok(Self::Fixed(Order::Sequential)),
            _ => Err(ParseOrderError { found: name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for name in ["auto", "full", "chunked", "sequential"] {
            assert_eq!(name.parse::<OrderChoice>().unwrap().to_string(), name);
        }
        assert_eq!(OrderChoice::default(), OrderChoice::Auto);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "Full".parse::<OrderChoice>().unwrap_err();
        assert_eq!(error.to_string(), "order is \"Full\", expected auto, full, chunked or sequential");
    }

    /// PLN-6
    #[test]
    fn auto_is_full_from_a_mean_of_64_kib() {
        let resolve = |stored_bytes, sample_count| OrderChoice::Auto.resolve(StoredSize { stored_bytes, sample_count });
        assert_eq!(resolve(10 * 65_536, 10), Order::Full);
        assert_eq!(resolve(10 * 65_536 - 1, 10), Order::Chunked);
        assert_eq!(resolve(0, 10), Order::Chunked);
        assert_eq!(resolve(u64::MAX, 1), Order::Full);
        assert_eq!(resolve(u64::MAX, u64::MAX), Order::Chunked);
    }

    #[test]
    fn a_fixed_choice_ignores_the_size() {
        let size = StoredSize { stored_bytes: 1 << 40, sample_count: 1 };
        assert_eq!(OrderChoice::from(Order::Sequential).resolve(size), Order::Sequential);
    }
}
