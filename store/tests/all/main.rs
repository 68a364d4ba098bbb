//! The tests of the store in one program, so that their dependencies are linked once.

mod common;

mod accessors;
mod broken_index;
mod broken_manifest;
mod collection;
mod damage;
mod entries_against_chunks;
mod external_paths;
mod hostile_index;
mod key_scan;
mod long_samples;
mod lookups;
mod mapped_index;
mod reads_in_pieces;
mod types;
mod verification_continues;
