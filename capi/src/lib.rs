//! The C library. Its contract (ownership, lifetimes, threads) is in `include/grainstore.h`, which a test compares with
//! the declarations here.
//!
//! A handle of C is a `Box` of Rust, or a reference to what is in it: `Option<&Dataset>` is `const grainstore_dataset *`
//! with NULL as `None`. So the functions are safe Rust; pointers to text, numbers and options are read and written in
//! `border.rs` only, the one file with `unsafe`.
//!
//! Every function that can fail returns a status and leaves a text for its thread (`status.rs`). No panic crosses the
//! border.

pub mod attributes;
pub mod batch;
mod border;
pub mod dataset;
pub mod epoch;
mod hint;
pub mod sample;
pub mod status;

pub use border::{Buffer, Bytes, Items, Numbers, Options, Out, Place, Text};
