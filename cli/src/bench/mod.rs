//! The parts of `grainstore bench`: what the device can do, the ways of reading, and how both are shown.
//!
//! ```text
//! device: reads straight through an engine   -> limits A, B, C  \
//! ways:   a table, an entry each -> epochs, gets -> work         > report -> table or JSON
//! device: once more, since disks drift       -> limits A, B, C  /
//! ```

pub(crate) mod area;
pub(crate) mod bars;
pub(crate) mod device;
pub(crate) mod epochs;
pub(crate) mod gets;
pub(crate) mod limits;
pub(crate) mod pages;
pub(crate) mod report;
pub(crate) mod subject;
pub(crate) mod table;
pub(crate) mod ways;
pub(crate) mod work;
