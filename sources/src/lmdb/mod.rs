//! LMDB databases: keys and values, as used with PyTorch, Caffe and LSUN.
//!
//! This code walks the pages itself, read-only; it neither maps the file nor touches its lock. liblmdb follows every
//! page number it finds, so a file that is cut off or made by an attacker crashes the process. Adopting needs the
//! offsets of values, which liblmdb does not report. And files of any page size can be read here.
//!
//! ```text
//! page 0, 1: meta; the one with the larger transaction counts     root (branch)
//! meta: page size, last page, free database, main database   ->   twig (branch)     twig: branch page above leaves
//! database: flags, depth, entries, root                           leaf leaf leaf    leaf: keys with values, or with
//!                                                                      overflow     the overflow pages of a value
//! ```
//!
//! Files of format 1 (LMDB 0.9, also from py-lmdb and heed), 64-bit and little-endian, can be read. Others are refused
//! with the reason, as are databases with several values for one key. Pages have 512 to 32768 bytes: larger offsets do
//! not fit into the format's 16 bits, so liblmdb uses 32768 where the system's pages are larger.
//! LMDB has no checksums: a flipped byte inside a value is not detected.
//!
//! # What a sample is
//! One key and its value, in the order of the database. The key is stored unchanged.
//! - Values that are Caffe's `Datum` become field `image` and attributes `label`, `channels`, `height`, `width`,
//!   `encoded`; `float_data`, where there is any, is a field of little-endian numbers. A mapping such as
//!   `image=data,label=label` chooses and renames.
//! - All other values are stored unchanged, as field `data`, or `image` if they begin like pictures (LSUN).
//!   `image=value` names the field. Tuples that were pickled or packed with msgpack, as `folder2lmdb` scripts store
//!   them, are not decoded but stored as bytes; [`LmdbOptions::exclude`] ignores the keys `__len__` and `__keys__`
//!   beside them.
//! - Keys `image-000000001`, `label-000000001`, `num-samples`, as in datasets for text recognition: the mapping
//!   `image=image-*,label=label-*` makes one sample of the keys in which `*` matches the same bytes. These bytes are
//!   the key of the sample, and the values are its fields. The keys of the first pattern define the samples. A field
//!   whose key is missing is absent. Keys that match no pattern, or have none of the first one beside them, are not packed;
//!   a warning counts them, but for `num-samples` and the like.
//!
//! # While another process writes
//! LMDB never overwrites a page of the newest transaction, but the transaction after the next may. So the meta pages
//! are read again after every read of pages and values. What was read is used only if no transaction was added.

mod datum;
mod file;
mod left_out;
mod meta;
mod page;
mod pattern;
mod samples;
mod shape;
mod source;
mod split;
mod tree;
mod window;

pub use meta::recognises;
pub use source::{LmdbOptions, LmdbSource, LmdbValues};
