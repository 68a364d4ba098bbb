//! The orders that are compared.

use std::fmt;

use crate::report::grouped;
use crate::scale::Scale;

/// Lanes of the chunked orders.
const LANES: [u64; 6] = [768, 192, 48, 12, 3, 1];

/// How a dataset is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Class by class: `convert --order source`.
    ByClass,
    /// In random order: what `convert` does by default.
    Shuffled,
}

/// The order in which samples are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Full,
    /// With a window of this many chunks, one for each lane.
    Chunked {
        lanes: u64,
    },
    /// In stored order, through a buffer of this many samples, from which each next one is drawn.
    Buffer {
        samples: usize,
    },
    /// In stored order.
    Sequential,
}

/// One of the settings that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) stored: Stored,
    pub(crate) order: Order,
}

impl Setting {
    /// All of them, from the best mixed to the worst.
    pub(crate) fn all(scale: &Scale) -> Vec<Self> {
        let by_class = |order| Self { stored: Stored::ByClass, order };
        let shuffled = |order| Self { stored: Stored::Shuffled, order };
        let lanes = LANES.into_iter().filter(|lanes| lanes * 2 <= scale.chunks());
        let chunked: Vec<_> = lanes.map(|lanes| Order::Chunked { lanes }).collect();
        let buffers = [scale.samples() / 10, scale.samples() / 100].map(|samples| Order::Buffer { samples });
        let mut settings = vec![by_class(Order::Full)];
        settings.extend(chunked.iter().copied().map(by_class));
        settings.extend(buffers.map(by_class));
        settings.push(by_class(Order::Sequential));
        settings.extend([chunked[0], chunked[chunked.len() - 1], buffers[1], Order::Sequential].map(shuffled));
        settings
    }

    /// The mean number of samples in memory to draw from; none where any sample may come next, or only one.
    pub(crate) fn window_samples(&self, scale: &Scale) -> Option<u64> {
        match self.order {
            Order::Full | Order::Sequential => None,
            Order::Chunked { lanes } => Some(lanes * scale.samples_per_chunk()),
            Order::Buffer { samples } => Some(samples as u64),
        }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByClass => "by class",
            Self::Shuffled => "shuffled",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("`full`"),
            Self::Chunked { lanes: 1 } => f.write_str("`chunked`, 1 lane"),
            Self::Chunked { lanes } => write!(f, "`chunked`, {lanes} lanes"),
            Self::Buffer { samples } => write!(f, "shuffle buffer of {}", grouped(*samples as u64)),
            Self::Sequential => f.write_str("`sequential`"),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.stored, self.order)
    }
}
