//! Attributes and keys of datasets as Arrow columns, through Arrow's C data interface: what pyarrow, polars, DuckDB and
//! others read without knowing this library, and without a copy where the index holds what Arrow wants.
//!
//! ```text
//! Columns     which columns, of which rows: the schema, and a batch for each member       columns.rs
//!   Column    one attribute of some rows of a member: lent from the index, or converted   values.rs
//!   Buffer    bytes and their owner                                                       buffer.rs
//! Stream      the C structures, their callbacks and what they own                         interface.rs
//! ```
//!
//! Only `interface.rs` has `unsafe`. The interface: <https://arrow.apache.org/docs/format/CDataInterface.html> and
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>. It is three structures that never change, so no crate
//! of Arrow is needed.
#![deny(unsafe_code)]

mod buffer;
mod columns;
#[allow(unsafe_code, reason = "the C structures are made and released here, and nowhere else")]
mod interface;
mod values;

pub use buffer::Buffer;
pub use columns::{ColumnError, Columns, Rows};
pub use interface::{ArrowArray, ArrowSchema, ArrowStream};
