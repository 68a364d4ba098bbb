//! Keys in an index: from key to ordinal (`search`), from ordinal to key (`list`), and all keys in order (`scan`).
//! spec.md: KEY-1 to KEY-7.

pub(crate) use self::list::MAX_GROUP_LEN;
pub use self::scan::KeyScan;

mod list;
mod scan;
mod search;
