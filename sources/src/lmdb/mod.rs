//! LMDB databases: keys and values as people who use PyTorch, Caffe and LSUN have them.
//!
//! The pages are walked by code of our own that only reads, and neither maps the file nor touches its lock. liblmdb
//! follows every page number it finds, so a file that was cut off or made by an attacker crashes the process.
//! Adopting needs the offsets of values, which liblmdb does not report, and a file of any page size can be read here.
//!
//! ```text
//! page 0, 1: meta; the one with the larger transaction counts     root (branch)
//! meta: page size, last page, free database, main database   ->   twig (branch)     twig: last branch page on the way
//! database: flags, depth, entries, root                           leaf leaf leaf    leaf: keys with values, or with
//!                                                                      overflow     the overflow pages of a value
//! ```
//!
//! Files of format 1 (LMDB 0.9, also as py-lmdb and heed write it), 64-bit and little-endian, are read; others are
//! refused by name, as are databases with several values for one key. Pages have 512 to 32768 bytes: more do not fit
//! the format's 16-bit offsets, so liblmdb takes 32768 where the system has more.
//! LMDB has no checksums: a flipped byte inside a value is not noticed.
//!
//! # What a sample is
//! One key and its value, in the order of the database; the key is kept as it is.
//! - Values that are Caffe's `Datum` become field `image` and attributes `label`, `channels`, `height`, `width`,
//!   `encoded`; `float_data`, where there is any, is a field of little-endian numbers. A mapping such as
//!   `image=data,label=label` chooses and renames.
//! - All others are kept as they are, as field `data`, or `image` where they begin like pictures (LSUN). `image=value`
//!   names the field. What `folder2lmdb` scripts store, tuples that were pickled or packed with msgpack, is not taken
//!   apart: it is kept as bytes; [`LmdbOptions::exclude`] leaves out the keys `__len__` and `__keys__` beside them.
//! - Keys `image-000000001`, `label-000000001`, `num-samples`, as used for reading text: the mapping
//!   `image=image-*,label=label-*` makes one sample of the keys in which `*` stands for the same bytes. They are its
//!   key, the values its fields. The first pattern says which samples there are; a field whose key is missing is
//!   absent; keys that match no pattern are ignored.
//!
//! # While another process writes
//! LMDB never overwrites a page of the newest transaction, but the transaction after the next may. So the meta pages
//! are read again behind every page and value that is read: what was read is used only if no transaction was added.

mod datum;
mod file;
mod meta;
mod page;
mod parts;
mod pattern;
mod samples;
mod shape;
mod source;
mod tree;

pub use meta::recognises;
pub use source::{LmdbOptions, LmdbSource, LmdbValues};
